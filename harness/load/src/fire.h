// SPDX-License-Identifier: GPL-2.0-only
//
// fire: many processes that use memory in every way there is while the machine is
// turned over under them, and verify every byte. All choices come from one seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pageout::load {

struct FireOptions {
	std::uint64_t seed = 1;
	std::uint64_t seconds = 60;         // of work, before the last verification of everything
	std::uint64_t bytes = 0;            // of all workers' memory
	std::uint64_t stall_seconds = 180;  // without a step: hung
	bool machine = false;               // change the machine too: swap, CPUs, switches, groups, disks, faults
	std::vector<std::string> roles;     // these only; none named: all
	std::vector<std::string> without;   // but not these
	std::vector<std::string> swaps;     // devices that are switched on and off as swap; their contents are lost
	std::vector<std::string> directories; // on file systems with disks: files and swap files go there
	std::vector<std::string> lossy;     // simdisk names whose writes may be made to fail: swap only
	bool read_errors = false;           // their reads too: whoever needs what cannot be read gets SIGBUS and is started anew
	std::uint64_t corrupt_after = 0;    // a fault on purpose: a wrong byte after that many steps of the first worker
	std::uint64_t hang_after = 0;       // ... or no further step
};

// The names of the roles, in the order in which they get their random numbers.
std::vector<std::string> fire_roles();

// The pages verified. Throws WorkloadError, ReportedCorruption, WorkerHung or OutputError.
std::uint64_t run_fire(const FireOptions &options);

} // namespace pageout::load
