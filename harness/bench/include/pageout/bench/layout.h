// SPDX-License-Identifier: GPL-2.0-only
//
// Where things lie in guest-physical memory (docs/seams.md, "Guest-physical memory map").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pageout::bench {

struct Scenario;

struct Region {
	std::string name;
	std::uint64_t phys = 0;
	std::uint64_t bytes = 0;
	std::uint64_t end() const { return phys + bytes; }
};

struct Layout {
	std::uint64_t mem_bytes = 0;   ///< the kernel's own memory, from 0
	std::uint64_t total_bytes = 0; ///< what the emulator gets
	Region job, out, prog;
	Region boot;                   ///< where firmware and emulator put the initramfs before the kernel moves it
	std::vector<Region> disks;     ///< in the scenario's order
};

/// Throws Error where it does not fit below 3 GiB.
Layout make_layout(const Scenario& scenario, std::uint64_t programs_bytes, std::uint64_t initramfs_bytes);

} // namespace pageout::bench
