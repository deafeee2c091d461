// SPDX-License-Identifier: GPL-2.0-only
//
// What a run came to, decided from evidence and never from silence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pageout::bench {

enum class Status {
	no_result, ///< the default: nothing is known, which fails
	pass,
	workload_failed,
	corruption,
	oom,
	panic,
	hang,
	timeout,
	no_boot,
	no_tracing,
	trace_dropped,
	coarse_clock,
	skipped,
};

std::string_view to_string(Status status); ///< "PASS", "WORKLOAD-FAILED", …
std::optional<Status> status_from(std::string_view name);
std::vector<std::string> status_names();

/// What a kernel's console (or log) says about its end. Each text is the first line that says so, "" where none does.
struct ConsoleFindings {
	std::string panic;        ///< "Kernel panic - not syncing: …"
	std::string oom;          ///< "Out of memory: Killed process …", or the panic of a deadlock on memory
	std::string group_oom;    ///< a kill in a memory cgroup that is at its limit, which says nothing about the machine
	std::string hung;         ///< hung tasks, soft lockups, RCU stalls
	std::string splat;        ///< BUG, WARNING, KASAN, lockdep, …: a kernel that does this measures nothing
	bool booted = false;      ///< "Linux version" was printed
	std::string last_line;
};
ConsoleFindings scan_console(std::string_view text);

/// How the emulator ended.
struct GuestEnd {
	enum class How {
		exited,   ///< by itself, with `code`
		signaled, ///< killed by a signal that we did not send, `code`
		timed_out, ///< we killed it at the host's time-out
		boot_timed_out, ///< we killed it: no sign of life in time
	} how = How::exited;
	int code = 0;
	double wall_s = 0;
	std::string diagnostics; ///< what the emulator itself said
};

/// The guest's own verdict, its last frame.
struct GuestResult {
	std::string status;
	std::string reason;
	int exit_code = 0;
	int signal = 0;
};

struct Evidence {
	GuestEnd end;
	ConsoleFindings console;
	bool hello = false;
	std::optional<GuestResult> result;
	std::string mailbox_damage;           ///< why the mailbox could not be read, "" when it could
	std::string log_splat;                ///< a splat in the guest's dmesg
	std::optional<std::int64_t> oom_kills; ///< vmstat's oom_kill over the run
	bool group_kills = false;              ///< those in memory cgroups, which it counts too, are part of the workload
	std::int64_t trace_dropped = 0;
	std::string trace_damage;             ///< the trace reader's complaint
	bool virtual_clock = true;
	std::string clocksource;              ///< "" when the guest said nothing
	std::int64_t clock_resolution_ns = 0;
	std::vector<std::string> missing;     ///< frames that a PASS must have brought
	std::string workload_incomplete;      ///< the workload ended well but its output lacks something
};

struct Verdict {
	Status status = Status::no_result;
	std::string reason;
};

Verdict decide(const Evidence& evidence);

} // namespace pageout::bench
