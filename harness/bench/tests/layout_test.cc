// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/layout.h"

#include "pageout/bench/error.h"
#include "pageout/bench/guest_memory.h"
#include "pageout/bench/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include <unistd.h>

namespace pageout::bench {
namespace {

constexpr std::uint64_t mib = 1ULL << 20;

Scenario with_disks(std::initializer_list<std::uint64_t> sizes)
{
	Scenario scenario;
	scenario.name = "test";
	for (const auto bytes : sizes) {
		Disk disk;
		disk.name = "d" + std::to_string(scenario.disks.size());
		disk.bytes = bytes;
		scenario.disks.push_back(disk);
	}
	return scenario;
}

void expect_sound(const Layout& layout)
{
	std::vector<Region> all = {{"kernel", 0, layout.mem_bytes}, layout.job, layout.out, layout.prog, layout.boot};
	all.insert(all.end(), layout.disks.begin(), layout.disks.end());
	std::sort(all.begin(), all.end(), [](const Region& a, const Region& b) { return a.phys < b.phys; });
	for (std::size_t i = 0; i < all.size(); ++i) {
		EXPECT_EQ(all[i].phys % mib, 0u) << all[i].name;
		EXPECT_LE(all[i].end(), i + 1 < all.size() ? all[i + 1].phys : layout.total_bytes) << all[i].name;
	}
	// The emulator puts the initramfs below the smaller of the memory's end and 2 GiB.
	EXPECT_EQ(layout.boot.end(), std::min<std::uint64_t>(layout.total_bytes, 2048 * mib));
	EXPECT_EQ(layout.total_bytes % mib, 0u);
	EXPECT_LE(layout.total_bytes, 3072 * mib);
}

TEST(Layout, NothingOverlaps)
{
	expect_sound(make_layout(with_disks({}), 100 * mib + 1, 4 * mib));
	expect_sound(make_layout(with_disks({512 * mib}), 100 * mib, 4 * mib + 123));
	expect_sound(make_layout(with_disks({512 * mib, mib + 4096, 64 * mib}), 100 * mib, 4 * mib));
}

TEST(Layout, RegionsAreAsLargeAsAskedFor)
{
	const auto layout = make_layout(with_disks({512 * mib, mib + 4096}), 99 * mib + 5, 4 * mib);
	EXPECT_EQ(layout.mem_bytes, 64 * mib);
	EXPECT_GE(layout.job.phys, layout.mem_bytes);
	EXPECT_EQ(layout.prog.bytes, 99 * mib + 5);
	EXPECT_EQ(layout.disks[0].bytes, 512 * mib);
	EXPECT_EQ(layout.disks[1].bytes, mib + 4096);
}

TEST(Layout, LargeDisksLeaveTheInitramfsAlone)
{
	for (std::uint64_t size = 1200 * mib; size < 1600 * mib; size += 37 * mib)
		expect_sound(make_layout(with_disks({size, 700 * mib}), 100 * mib, 4 * mib));
}

TEST(Layout, TooMuchIsRefused)
{
	EXPECT_THROW(make_layout(with_disks({3000 * mib}), 100 * mib, 4 * mib), Error);
}

TEST(GuestMemory, HoldsWhatIsWrittenAndIsSparse)
{
	GuestMemory memory(1ULL << 32, 1 << 20);
	const std::string text = "hello";
	memory.write(3ULL << 30, std::as_bytes(std::span(text)));
	const auto back = memory.bytes(3ULL << 30, text.size());
	EXPECT_EQ(std::string(reinterpret_cast<const char*>(back.data()), back.size()), text);
	EXPECT_EQ(memory.bytes(12345, 1)[0], std::byte{0});
	EXPECT_THROW((void)memory.bytes((1ULL << 32) - 1, 2), Error);
}

TEST(GuestMemory, CopiesFilesWithTheirHoles)
{
	const std::string path = testing::TempDir() + "/sparse-" + std::to_string(::getpid());
	{
		std::ofstream out(path, std::ios::binary);
		out << "begin";
		out.seekp(5 << 20);
		out << "end";
	}
	GuestMemory memory(64 << 20, 1 << 20);
	memory.write_file(1 << 20, path, 6 << 20);
	EXPECT_EQ(std::memcmp(memory.bytes(1 << 20, 5).data(), "begin", 5), 0);
	EXPECT_EQ(std::memcmp(memory.bytes((1 << 20) + (5 << 20), 3).data(), "end", 3), 0);
	EXPECT_THROW(memory.write_file(0, path, 1 << 20), Error); // larger than its region
	EXPECT_THROW(memory.write_file(0, path + "-none", 1 << 20), Error);
	::unlink(path.c_str());
}

TEST(GuestMemory, NoRoomIsSaidWithTheRemedy)
{
	try {
		GuestMemory memory(1ULL << 60, 1ULL << 60);
		FAIL();
	} catch (const Error& error) {
		EXPECT_NE(std::string(error.what()).find("TMPDIR"), std::string::npos) << error.what();
	}
}

} // namespace
} // namespace pageout::bench
