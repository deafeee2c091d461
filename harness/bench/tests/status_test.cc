// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/status.h"

#include "pageout/bench/text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

namespace pageout::bench {
namespace {

/// A run that went well; each case below takes something away from it.
Evidence good()
{
	Evidence e;
	e.hello = true;
	e.console.booted = true;
	e.result = GuestResult{"PASS", "", 0, 0};
	e.oom_kills = 0;
	e.clocksource = "tsc";
	e.clock_resolution_ns = 1;
	return e;
}

Evidence cut_short(const std::string& console)
{
	Evidence e = good();
	e.result.reset();
	e.oom_kills.reset();
	e.console = scan_console(console);
	return e;
}

struct Case {
	const char* name;
	std::function<Evidence()> evidence;
	Status status;
	const char* reason; ///< has to be in it
};

class StatusTable : public testing::TestWithParam<Case> {};

TEST_P(StatusTable, Decides)
{
	const Verdict verdict = decide(GetParam().evidence());
	EXPECT_EQ(to_string(verdict.status), to_string(GetParam().status)) << verdict.reason;
	EXPECT_NE(verdict.reason.find(GetParam().reason), std::string::npos) << verdict.reason;
}

template <typename Change> std::function<Evidence()> but(Change change)
{
	return [change] {
		Evidence e = good();
		change(e);
		return e;
	};
}

std::function<Evidence()> console(std::string text, GuestEnd::How how = GuestEnd::How::exited)
{
	return [text, how] {
		Evidence e = cut_short(text);
		e.end.how = how;
		return e;
	};
}

using How = GuestEnd::How;

INSTANTIATE_TEST_SUITE_P(
	Host, StatusTable,
	testing::Values(
		Case{"pass", good, Status::pass, ""},
		Case{"nothing_known", [] { return Evidence{}; }, Status::no_boot, "the console is empty"},
		Case{"workload_failed", but([](Evidence& e) { e.result = GuestResult{"WORKLOAD-FAILED", "status 1", 1, 0}; }), Status::workload_failed, "status 1"},
		Case{"corruption", but([](Evidence& e) { e.result = GuestResult{"CORRUPTION", "page 4", 3, 0}; }), Status::corruption, "page 4"},
		Case{"no_tracing", but([](Evidence& e) { e.result = GuestResult{"NO-TRACING", "debugfs is off", 0, 0}; }), Status::no_tracing, "debugfs"},
		Case{"guest_says_hang", but([](Evidence& e) { e.result = GuestResult{"HANG", "3600 s", 0, 0}; }), Status::hang, "3600"},
		Case{"coarse_by_guest", but([](Evidence& e) { e.result = GuestResult{"COARSE-CLOCK", "4000000 ns", 0, 0}; }), Status::coarse_clock, "4000000"},
		Case{"coarse_though_pass", but([](Evidence& e) { e.clock_resolution_ns = 4000000; }), Status::coarse_clock, "4000000"},
		Case{"no_clock_told", but([](Evidence& e) { e.clocksource.clear(); }), Status::coarse_clock, "tsc"},
		Case{"coarse_is_fine_on_the_hosts_clock", but([](Evidence& e) { e.clocksource = "hpet"; e.virtual_clock = false; }), Status::pass, ""},
		Case{"oom_though_pass", but([](Evidence& e) { e.oom_kills = 1; }), Status::oom, "1 OOM kill"},
		Case{"oom_explains_a_failure", but([](Evidence& e) { e.oom_kills = 1; e.result = GuestResult{"WORKLOAD-FAILED", "signal 9", 0, 9}; }), Status::oom, ""},
		Case{"kill_in_a_group", but([](Evidence& e) { e.oom_kills = 1; e.console = scan_console("Memory cgroup out of memory: Killed process 7 (x)\n"); }), Status::oom, "process 7"},
		Case{"kill_in_a_group_that_is_there_for_it", but([](Evidence& e) { e.oom_kills = 1; e.group_kills = true; e.console = scan_console("Memory cgroup out of memory: Killed process 7 (x)\n"); }), Status::pass, ""},
		Case{"kill_beside_those_of_groups", but([](Evidence& e) { e.oom_kills = 2; e.group_kills = true; e.console = scan_console("Memory cgroup out of memory: Killed process 7 (x)\nOut of memory: Killed process 8 (y)\n"); }), Status::oom, "process 8"},
		Case{"group_with_nobody_left_to_kill", but([](Evidence& e) { e.group_kills = true; e.console = scan_console("x invoked oom-killer: gfp_mask=0x0\nOut of memory and no killable processes...\n"); }), Status::pass, ""},
		Case{"machine_with_nobody_left_to_kill", but([](Evidence& e) { e.group_kills = true; e.console = scan_console("x invoked oom-killer: gfp_mask=0x0\nMem-Info:\nOut of memory and no killable processes...\n"); }), Status::oom, "no killable"},
		Case{"splat_beside_a_failure", but([](Evidence& e) { e.result = GuestResult{"WORKLOAD-FAILED", "signal 11", 0, 11}; e.console = scan_console("BUG: KASAN: x\n"); }), Status::workload_failed, "KASAN"},
		Case{"dropped", but([](Evidence& e) { e.trace_dropped = 7; }), Status::trace_dropped, "7"},
		Case{"damaged_trace", but([](Evidence& e) { e.trace_damage = "cut at byte 5"; }), Status::trace_dropped, "byte 5"},
		Case{"missing_frames", but([](Evidence& e) { e.missing = {"vmstat.after"}; }), Status::no_result, "vmstat.after"},
		Case{"incomplete_workload", but([](Evidence& e) { e.workload_incomplete = "lacks its end"; }), Status::workload_failed, "lacks its end"},
		Case{"pass_with_exit_status", but([](Evidence& e) { e.result->exit_code = 1; }), Status::workload_failed, "exit status 1"},
		Case{"unknown_word", but([](Evidence& e) { e.result->status = "GREAT"; }), Status::no_result, "GREAT"},
		Case{"guest_cannot_skip", but([](Evidence& e) { e.result->status = "SKIPPED"; }), Status::no_result, "SKIPPED"},
		Case{"damaged_mailbox", but([](Evidence& e) { e.mailbox_damage = "no frame begins at 64"; }), Status::no_result, "no frame begins"},
		Case{"result_but_no_end", but([](Evidence& e) { e.end.how = How::timed_out; }), Status::no_result, "did not end well"},
		Case{"result_but_bad_exit", but([](Evidence& e) { e.end.code = 1; }), Status::no_result, "did not end well"},
		Case{"splat_in_the_log", but([](Evidence& e) { e.log_splat = "BUG: KASAN: x"; }), Status::panic, "KASAN"},
		Case{"emulator_killed", [] { Evidence e = cut_short(""); e.end = {How::signaled, 9, 1, ""}; return e; }, Status::no_result, "signal 9"},
		Case{"emulator_refused", [] { Evidence e; e.end = {How::exited, 1, 0, "qemu: no such machine"}; return e; }, Status::no_boot, "no such machine"},
		Case{"never_alive", [] { Evidence e; e.end.how = How::boot_timed_out; e.console = scan_console("[    0.0] Linux version 6.12\n"); return e; }, Status::no_boot, "Linux version 6.12"},
		Case{"panic_before_hello", [] { Evidence e; e.console = scan_console("[    1.5] Kernel panic - not syncing: VFS: Unable to mount root fs\n"); return e; }, Status::no_boot, "VFS"},
		Case{"silent_end", console("all is well\n"), Status::no_result, "without a result"},
		Case{"time_out", console("all is well\n", How::timed_out), Status::timeout, "time-out"}),
	[](const auto& info) { return info.param.name; });

/// Consoles as kernels really printed them, one a file: the name up to the first dot is the status that the host has to see.
TEST(Consoles, CapturedOnesAreUnderstood)
{
	std::size_t count = 0;
	for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(BENCH_TEST_DATA) / "consoles")) {
		const std::string file = entry.path().filename();
		SCOPED_TRACE(file);
		Evidence e = cut_short(read_file(entry.path()));
		const auto expected = status_from(split(file, '.').front());
		ASSERT_TRUE(expected);
		e.end.how = *expected == Status::hang || *expected == Status::timeout ? How::timed_out : How::exited;
		if (*expected == Status::no_boot)
			e.hello = false;
		const Verdict verdict = decide(e);
		EXPECT_EQ(to_string(verdict.status), to_string(*expected)) << verdict.reason;
		EXPECT_FALSE(verdict.reason.empty());
		++count;
	}
	EXPECT_GE(count, 6u);
}

TEST(Consoles, OrdinaryLinesAreNoFindings)
{
	const auto found = scan_console("[    0.000000] Linux version 6.12.117 (gcc)\r\n"
					"[    0.1] random: crng init done\n"
					"[    0.2] Warning: unable to open an initial console.\n"
					"[    0.3] sysrq: HELP : panic crash\n"
					"[    0.4] debug: BUG count is 0\n");
	EXPECT_TRUE(found.booted);
	EXPECT_EQ(found.panic + found.oom + found.hung + found.splat, "");
	EXPECT_EQ(found.last_line, "debug: BUG count is 0");
}

TEST(Consoles, SplatsAreFound)
{
	for (const char* line : {"[   12.0] BUG: KASAN: slab-use-after-free in shrink_folio_list+0x1/0x2", "[  9.9][   T12] WARNING: CPU: 0 PID: 30 at mm/vmscan.c:1 f+0x1/0x2",
				 "BUG: sleeping function called from invalid context at x.c:1", "[ 1.0] WARNING: possible circular locking dependency detected",
				 "[ 1.0] Oops: Oops: 0000 [#1] SMP", "[ 1.0] BUG: unable to handle page fault for address: 00", "[ 2.0] UBSAN: shift-out-of-bounds in x.c:1",
				 "[ 2.0] BUG kmalloc-64 (Tainted: G    B  ): Right Redzone overwritten", "[ 3.0] BUG: Bad page state in process x  pfn:1",
				 "[ 3.0] swap_free: Unused swap offset entry 000001", "[ 3.0] INFO: trying to register non-static key."})
		EXPECT_NE(scan_console(line).splat, "") << line;
	EXPECT_NE(scan_console("[ 2.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [a:1]").hung, "");
	EXPECT_NE(scan_console("[ 2.0] INFO: task dd:12 blocked for more than 120 seconds.").hung, "");
}

TEST(Status, NamesAreTheContract)
{
	EXPECT_EQ(status_names(), (std::vector<std::string>{"NO-RESULT", "PASS", "WORKLOAD-FAILED", "CORRUPTION", "OOM", "PANIC", "HANG", "TIMEOUT", "NO-BOOT", "NO-TRACING",
							    "TRACE-DROPPED", "COARSE-CLOCK", "SKIPPED"}));
	for (const auto& name : status_names())
		EXPECT_EQ(to_string(*status_from(name)), name);
	EXPECT_FALSE(status_from("pass"));
	EXPECT_EQ(Verdict{}.status, Status::no_result);
}

} // namespace
} // namespace pageout::bench
