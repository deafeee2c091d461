// SPDX-License-Identifier: GPL-2.0-only
//
// The raw stream of `blktrace -o -`: cut into one file a CPU, and into windows of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pageout::bench {

struct TraceSplit {
	std::map<std::uint32_t, std::string> cpus; ///< CPU -> its records, in the stream's order
	std::string damage;                        ///< "" or what is wrong, and at which byte
};

/// Cuts the stream by the CPU that each record names. Stops at the first byte that begins no record.
TraceSplit split_by_cpu(std::string_view stream);

/// The records of the stream whose time lies in (after_ns, until_ns], notes left out. Times are CLOCK_MONOTONIC.
std::string records_between(std::string_view stream, std::uint64_t after_ns, std::uint64_t until_ns);

/// What ended in a window.
struct Phase {
	unsigned pass = 0;
	std::string name;       ///< "" is a whole pass
	std::uint64_t ns = 0;
	std::uint64_t pages = 0;
	std::uint64_t end_ns = 0; ///< 0: the workload did not say
};

/// pageout-load's output.
struct WorkloadOutput {
	std::vector<Phase> passes, phases;
	bool started = false;
	bool ended = false;
	std::string corruption; ///< the event, as text
	std::string damage;     ///< a line that is no JSON, where JSON was expected
};

/// Reads the JSON lines; `strict` makes a line that is none a damage (other programs may print what they like).
WorkloadOutput read_workload_output(std::string_view text, bool strict);

} // namespace pageout::bench
