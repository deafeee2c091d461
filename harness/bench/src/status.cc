// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/status.h"

#include "pageout/bench/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

namespace pageout::bench {

namespace {

constexpr std::array<std::pair<Status, std::string_view>, 13> names = {{
	{Status::no_result, "NO-RESULT"},
	{Status::pass, "PASS"},
	{Status::workload_failed, "WORKLOAD-FAILED"},
	{Status::corruption, "CORRUPTION"},
	{Status::oom, "OOM"},
	{Status::panic, "PANIC"},
	{Status::hang, "HANG"},
	{Status::timeout, "TIMEOUT"},
	{Status::no_boot, "NO-BOOT"},
	{Status::no_tracing, "NO-TRACING"},
	{Status::trace_dropped, "TRACE-DROPPED"},
	{Status::coarse_clock, "COARSE-CLOCK"},
	{Status::skipped, "SKIPPED"},
}};

/// A line without the kernel's "[   12.345678] " and "[ T123] ".
std::string_view message_of(std::string_view line)
{
	line = trim(line);
	while (!line.empty() && line.front() == '[') {
		const auto end = line.find("] ");
		if (end == std::string_view::npos)
			break;
		line = trim(line.substr(end + 2));
	}
	return line;
}

bool contains_any(std::string_view line, std::initializer_list<std::string_view> marks)
{
	for (const auto mark : marks)
		if (line.find(mark) != std::string_view::npos)
			return true;
	return false;
}

void note(std::string& into, std::string_view line)
{
	if (into.empty())
		into = line;
}

std::string describe(const GuestEnd& end)
{
	const std::string said = end.diagnostics.empty() ? "" : fmt::format(" (it said: {})", end.diagnostics);
	switch (end.how) {
	case GuestEnd::How::exited: return fmt::format("the emulator ended with status {}{}", end.code, said);
	case GuestEnd::How::signaled: return fmt::format("the emulator was killed by signal {}{}", end.code, said);
	case GuestEnd::How::timed_out: return fmt::format("stopped at the host's time-out, after {:.0f} s{}", end.wall_s, said);
	case GuestEnd::How::boot_timed_out: return fmt::format("no sign of life in {:.0f} s{}", end.wall_s, said);
	}
	return {};
}

/// The console's line of an OOM kill that spoils the run, "" where there is none.
const std::string& oom_line(const Evidence& e)
{
	return e.console.oom.empty() && !e.group_kills ? e.console.group_oom : e.console.oom;
}

/// The guest never gave its verdict: console and emulator have to tell.
Verdict decide_without_result(const Evidence& e)
{
	const bool by_time = e.end.how == GuestEnd::How::timed_out || e.end.how == GuestEnd::How::boot_timed_out;

	if (e.end.how == GuestEnd::How::signaled)
		return {Status::no_result, describe(e.end)};
	if (!e.hello) {
		std::string why = describe(e.end);
		if (!e.console.panic.empty())
			why = fmt::format("{}; {}", e.console.panic, why);
		else if (!e.console.last_line.empty())
			why += fmt::format("; the console's last line: {}", e.console.last_line);
		else
			why += "; the console is empty";
		return {Status::no_boot, why};
	}
	if (const auto& oom = oom_line(e); !oom.empty())
		return {Status::oom, oom};
	if (!e.console.panic.empty()) {
		const bool hung = contains_any(e.console.panic, {"hung_task", "softlockup", "hard LOCKUP", "RCU Stall"});
		return {hung ? Status::hang : Status::panic, e.console.panic};
	}
	if (!e.console.hung.empty())
		return {Status::hang, e.console.hung};
	if (!e.console.splat.empty())
		return {Status::panic, e.console.splat};
	if (by_time)
		return {Status::timeout, describe(e.end)};
	return {Status::no_result, fmt::format("the guest ended without a result; {}", describe(e.end))};
}

Verdict decide_with_result(const Evidence& e)
{
	const auto said = status_from(e.result->status);
	const auto& oom = oom_line(e);

	// An OOM kill explains whatever else went wrong, and spoils whatever went right.
	if (!oom.empty() || (e.oom_kills.value_or(0) > 0 && !e.group_kills))
		return {Status::oom, oom.empty() ? fmt::format("{} OOM kills", *e.oom_kills) : oom};
	if (!said || *said == Status::skipped || *said == Status::no_result)
		return {Status::no_result, fmt::format("the guest gave \"{}\", which is no status it can know", e.result->status)};
	if (*said != Status::pass) {
		std::string reason = e.result->reason;
		for (const auto* splat : {&e.console.panic, &e.console.splat, &e.console.hung})
			if (!splat->empty() && reason.find(*splat) == std::string::npos)
				reason += fmt::format("; the kernel said: {}", *splat);
		return {*said, reason};
	}

	// From here on the guest says PASS: everything that a PASS stands for has to be there.
	for (const auto* splat : {&e.console.panic, &e.console.splat, &e.log_splat})
		if (!splat->empty())
			return {Status::panic, *splat};
	if (!e.console.hung.empty())
		return {Status::hang, e.console.hung};
	if (e.virtual_clock && (e.clocksource != "tsc" || e.clock_resolution_ns != 1))
		return {Status::coarse_clock, fmt::format("clocksource \"{}\" with timers of {} ns; measuring needs tsc at 1 ns",
							  e.clocksource, e.clock_resolution_ns)};
	if (e.trace_dropped != 0)
		return {Status::trace_dropped, fmt::format("the kernel dropped {} trace records: enlarge trace_buffers", e.trace_dropped)};
	if (!e.trace_damage.empty())
		return {Status::trace_dropped, fmt::format("the trace is damaged: {}", e.trace_damage)};
	if (e.result->exit_code != 0 || e.result->signal != 0)
		return {Status::workload_failed, fmt::format("PASS with exit status {} and signal {}", e.result->exit_code, e.result->signal)};
	if (!e.workload_incomplete.empty())
		return {Status::workload_failed, e.workload_incomplete};
	if (!e.missing.empty())
		return {Status::no_result, fmt::format("the guest brought no {}", fmt::join(e.missing, ", "))};
	if (e.end.how != GuestEnd::How::exited || e.end.code != 0)
		return {Status::no_result, fmt::format("the guest gave its result but did not end well: {}", describe(e.end))};
	return {Status::pass, e.result->reason};
}

} // namespace

std::string_view to_string(Status status)
{
	for (const auto& [value, name] : names)
		if (value == status)
			return name;
	return "NO-RESULT";
}

std::optional<Status> status_from(std::string_view name)
{
	for (const auto& [value, text] : names)
		if (text == name)
			return value;
	return std::nullopt;
}

std::vector<std::string> status_names()
{
	std::vector<std::string> all;
	for (const auto& entry : names)
		all.emplace_back(entry.second);
	return all;
}

ConsoleFindings scan_console(std::string_view text)
{
	ConsoleFindings found;
	bool of_group = false; // the OOM killer's latest words are a memory cgroup's: they lack the machine's Mem-Info

	for (const auto& raw : split(text, '\n')) {
		const std::string_view line = message_of(raw);
		if (line.empty())
			continue;
		found.last_line = line;
		if (starts_with(line, "Linux version "))
			found.booted = true;
		if (contains_any(line, {"Kernel panic - not syncing"}))
			note(found.panic, line);
		if (contains_any(line, {"Out of memory: Killed process", "not syncing: Out of memory", "Out of memory: OOM victim",
					"System is deadlocked on memory"}))
			note(found.oom, line);
		if (contains_any(line, {"Memory cgroup out of memory: Killed process"}))
			note(found.group_oom, line);
		if (contains_any(line, {" invoked oom-killer: "}))
			of_group = true;
		else if (starts_with(line, "Mem-Info:"))
			of_group = false;
		else if (contains_any(line, {"Out of memory and no killable processes"}))
			note(of_group ? found.group_oom : found.oom, line);
		if (contains_any(line, {"blocked for more than", "soft lockup - CPU", "watchdog: BUG: soft lockup", "Watchdog detected hard LOCKUP",
					"self-detected stall on CPU", "detected stalls on CPUs"}))
			note(found.hung, line);
		else if (starts_with(line, "BUG: ") || starts_with(line, "BUG ") || starts_with(line, "WARNING: ") || starts_with(line, "Oops: ") || starts_with(line, "kernel BUG at") ||
			 starts_with(line, "UBSAN: ") || starts_with(line, "general protection fault") ||
			 starts_with(line, "INFO: possible ") || starts_with(line, "INFO: trying to register non-static key") ||
			 starts_with(line, "swap_info_get: ") || starts_with(line, "get_swap_device: ") || starts_with(line, "swap_free: ") || starts_with(line, "page_table_check") ||
			 contains_any(line, {"possible recursive locking detected", "possible circular locking dependency detected",
					     "inconsistent lock state", "suspicious RCU usage", "list_add corruption", "list_del corruption"}))
			note(found.splat, line);
	}
	return found;
}

Verdict decide(const Evidence& e)
{
	if (!e.mailbox_damage.empty())
		return {Status::no_result, fmt::format("{}; {}", e.mailbox_damage, describe(e.end))};
	return e.result ? decide_with_result(e) : decide_without_result(e);
}

} // namespace pageout::bench
