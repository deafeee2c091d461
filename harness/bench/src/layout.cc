// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/layout.h"

#include "pageout/bench/error.h"
#include "pageout/bench/scenario.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>

namespace pageout::bench {

namespace {

constexpr std::uint64_t mib = 1ULL << 20;
constexpr std::uint64_t low_memory_end = 3ULL << 30; // above it the PC has its hole
// The PC's loader puts the initramfs right below the smaller of the memory's end and this (the kernel's initrd_addr_max),
// and the firmware has its tables above: nothing of ours may lie there when the machine starts.
constexpr std::uint64_t initramfs_end = 2ULL << 30;
constexpr std::uint64_t firmware_bytes = 16 * mib;
constexpr std::uint64_t job_bytes = 1 * mib;

std::uint64_t aligned(std::uint64_t bytes)
{
	return (bytes + mib - 1) / mib * mib;
}

} // namespace

Layout make_layout(const Scenario& scenario, std::uint64_t programs_bytes, std::uint64_t initramfs_bytes)
{
	Layout layout;
	const std::uint64_t boot_bytes = aligned(initramfs_bytes) + firmware_bytes;
	const std::uint64_t hole = initramfs_end - boot_bytes;
	std::uint64_t at = aligned(scenario.mem_bytes);

	const auto place = [&](std::string name, std::uint64_t bytes) {
		if (at < initramfs_end && at + aligned(bytes) > hole)
			at = initramfs_end;
		Region region{std::move(name), at, bytes};
		at += aligned(bytes);
		return region;
	};

	layout.mem_bytes = scenario.mem_bytes;
	layout.job = place("job", job_bytes);
	layout.out = place("out", aligned(scenario.mailbox_bytes));
	layout.prog = place("prog", programs_bytes);
	for (const auto& disk : scenario.disks)
		layout.disks.push_back(place(disk.name, disk.bytes));

	if (at <= hole) {
		layout.boot = {"boot", at, boot_bytes};
		at += boot_bytes;
	} else {
		layout.boot = {"boot", hole, boot_bytes};
		at = std::max(at, initramfs_end);
	}
	layout.total_bytes = at;
	if (at > low_memory_end)
		throw Error(fmt::format("{}: memory ({}), mailbox and disks need {} MiB of guest-physical memory and there are {} below "
					"the PC's hole: make the disks or the mailbox smaller",
					scenario.name, format_size(scenario.mem_bytes), at / mib, low_memory_end / mib), 2);
	return layout;
}

} // namespace pageout::bench
