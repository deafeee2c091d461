// SPDX-License-Identifier: GPL-2.0-only
//
// What the agent reads of the guest and leaves in the mailbox.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "pageout/job.h"
#include "pageout/mailbox.h"

namespace pageout::guest {

struct ClockFacts {
	std::string source;
	std::uint64_t resolution_ns; // the coarsest of all timer bases
};

// From the text of /proc/timer_list and the name of the clock source. Throws
// when the list says no resolution.
ClockFacts clock_facts(const std::string &clocksource, const std::string &timer_list);

// Time that all CPUs were idle, in microseconds, from /proc/timer_list.
std::uint64_t idle_us(const std::string &timer_list);

// "Name:   12 kB" of /proc/meminfo and the like, in bytes. Throws.
std::uint64_t kib_line_bytes(const std::string &text, const std::string &name);

// vmstat, stat, uptime, diskstat, probe and pageout_stats, as `.before` or
// `.after`; simdisk's own counts only after. Throws.
void sample(mailbox::Writer &box, const job::Job &job, bool after);

// memory.json: what the guest's own programs hold. `programs` are names and
// process ids.
std::string memory_report(const std::vector<std::pair<std::string, pid_t>> &programs, std::uint64_t trace_buffers_bytes);

// Puts the kernel's log into the mailbox.
void put_dmesg(mailbox::Writer &box);

} // namespace pageout::guest
