// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/mailbox.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pageout::mailbox {
namespace {

struct Region {
	alignas(8) std::array<std::byte, 8192> bytes{};
	std::span<std::byte> span() { return bytes; }
	std::span<const std::byte> view() const { return bytes; }
	template <typename T> void put(std::size_t offset, T value) { std::memcpy(bytes.data() + offset, &value, sizeof value); }
	Writer writer(std::uint64_t reserve = 0) { return Writer(Writer::over(span()), bytes.size(), reserve); }
};

std::string text(const Frame &frame)
{
	return {reinterpret_cast<const char *>(frame.data.data()), frame.data.size()};
}

TEST(Mailbox, UntouchedRegionHasNoFrames)
{
	Region region;
	EXPECT_TRUE(read(region.view()).empty());
}

TEST(Mailbox, HeaderIsAsTheContractSays)
{
	Region region;
	region.writer();
	EXPECT_EQ(std::memcmp(region.bytes.data(), "PGOUTBX1", 8), 0);
	std::uint64_t capacity, used;
	std::memcpy(&capacity, region.bytes.data() + 8, 8);
	std::memcpy(&used, region.bytes.data() + 16, 8);
	EXPECT_EQ(capacity, region.bytes.size() - 64);
	EXPECT_EQ(used, 0u);
	EXPECT_TRUE(read(region.view()).empty());
}

TEST(Mailbox, FramesComeBackInOrder)
{
	Region region;
	auto box = region.writer();
	for (std::size_t length = 1; length <= 20; ++length)
		ASSERT_TRUE(box.put("file" + std::to_string(length % 3), std::string(length, char('a' + length))));
	const auto frames = read(region.view());
	ASSERT_EQ(frames.size(), 20u);
	for (std::size_t i = 0; i < 20; ++i) {
		EXPECT_EQ(frames[i].name, "file" + std::to_string((i + 1) % 3));
		EXPECT_EQ(text(frames[i]), std::string(i + 1, char('a' + i + 1)));
	}
	const auto files = join(frames);
	EXPECT_EQ(files.at("file0"), std::string(3, 'd') + std::string(6, 'g') + std::string(9, 'j') + std::string(12, 'm') +
					     std::string(15, 'p') + std::string(18, 's'));
}

TEST(Mailbox, FrameLiesAsTheContractSays)
{
	Region region;
	auto box = region.writer();
	box.put("abc", "12345");
	const auto *frame = region.bytes.data() + 64;
	EXPECT_EQ(std::memcmp(frame, "\x46\x52\x41\x4d\0\0\0\0\5\0\0\0\0\0\0\0abc\0", 20), 0);
	EXPECT_EQ(std::memcmp(frame + 64, "12345\0\0\0", 8), 0);
	EXPECT_EQ(box.used(), 72u);
}

TEST(Mailbox, AFrameThatIsNotCommittedIsNotThere)
{
	Region region;
	auto box = region.writer();
	box.put("first", "1");
	const auto room = box.reserve(100);
	std::memset(room.data(), 'x', room.size());
	EXPECT_EQ(read(region.view()).size(), 1u);
	box.commit("second", 100);
	EXPECT_EQ(read(region.view()).size(), 2u);
	box.reserve(100);
	box.commit("nothing", 0);
	EXPECT_EQ(read(region.view()).size(), 2u);
}

TEST(Mailbox, WhatIsFullRefusesAndKeepsTheReserve)
{
	Region region;
	auto box = region.writer(1024);
	while (box.put("filler", std::string(100, 'f')))
		;
	EXPECT_TRUE(box.reserve(1).size() <= 1);
	const auto before = read(region.view()).size();
	EXPECT_FALSE(box.put("more", std::string(1000, 'm')));
	EXPECT_EQ(read(region.view()).size(), before) << "half a file was written";
	EXPECT_TRUE(box.put_last("result.json", std::string(900, 'r')));
	EXPECT_EQ(read(region.view()).back().name, "result.json");
	EXPECT_FALSE(box.put_last("again", std::string(900, 'r')));
	while (!box.reserve(1, true).empty())
		box.commit("tiny", 1);
	EXPECT_LE(box.used(), box.capacity());
	EXPECT_NO_THROW(read(region.view()));
}

TEST(Mailbox, LargeFilesBecomeSeveralFrames)
{
	std::vector<std::byte> memory(8 << 20);
	Writer box(Writer::over(memory), memory.size(), 0);
	std::string large(3 << 20, ' ');
	for (std::size_t i = 0; i < large.size(); ++i)
		large[i] = char(i * 7 + i / 1000);
	ASSERT_TRUE(box.put("large", large));
	const auto frames = read(memory);
	EXPECT_GE(frames.size(), 3u);
	EXPECT_EQ(join(frames).at("large"), large);
}

TEST(Mailbox, NamesHaveLimits)
{
	Region region;
	auto box = region.writer();
	EXPECT_TRUE(box.put(std::string(47, 'n'), "1"));
	EXPECT_EQ(read(region.view())[0].name, std::string(47, 'n'));
	EXPECT_THROW(box.put(std::string(48, 'n'), "1"), std::invalid_argument);
	EXPECT_THROW(box.put("", "1"), std::invalid_argument);
}

TEST(Mailbox, ARegionTooSmallIsRefused)
{
	std::array<std::byte, 63> memory{};
	EXPECT_THROW(Writer(Writer::over(memory), memory.size(), 0), std::invalid_argument);
	Region region;
	EXPECT_THROW(region.writer(8192), std::invalid_argument);
	EXPECT_THROW(read(std::span(memory)), FormatError);
}

// Every damage is named with the byte where it is.
TEST(Mailbox, DamageIsNamed)
{
	const auto damaged = [](auto damage) {
		Region region;
		auto box = region.writer();
		box.put("one", "12345678");
		box.put("two", "12345678");
		damage(region);
		try {
			read(region.view());
		} catch (const FormatError &error) {
			EXPECT_NE(std::string(error.what()).find(std::to_string(error.offset)), std::string::npos);
			return std::int64_t(error.offset);
		}
		return std::int64_t{-1};
	};
	EXPECT_EQ(damaged([](Region &) {}), -1);
	EXPECT_EQ(damaged([](Region &r) { r.put(0, 'X'); }), 0);
	EXPECT_EQ(damaged([](Region &r) { r.put(8, std::uint64_t{8192}); }), 8);
	EXPECT_EQ(damaged([](Region &r) { r.put(16, std::uint64_t{8192}); }), 16);
	EXPECT_EQ(damaged([](Region &r) { r.put(16, std::uint64_t{80}); }), 64 + 72);  // the second frame's header is cut
	EXPECT_EQ(damaged([](Region &r) { r.put(16, std::uint64_t{140}); }), 64 + 72 + 8); // its data is
	EXPECT_EQ(damaged([](Region &r) { r.put(64, std::uint32_t{1}); }), 64);
	EXPECT_EQ(damaged([](Region &r) { r.put(68, std::uint32_t{1}); }), 68);
	EXPECT_EQ(damaged([](Region &r) { r.put(72, ~std::uint64_t{0}); }), 72);
	EXPECT_EQ(damaged([](Region &r) { r.put(72, ~std::uint64_t{0} - 6); }), 72);
	EXPECT_EQ(damaged([](Region &r) { r.put(80, '\0'); }), 80);
	EXPECT_EQ(damaged([](Region &r) { std::memset(r.bytes.data() + 80, 'n', 48); }), 80);
}

// No byte of a region makes the reader read beyond it or fail in another way.
TEST(Mailbox, AnyCorruptByteIsSurvived)
{
	Region clean;
	{
		auto box = clean.writer();
		box.put("one", "123");
		box.put("two", std::string(70, 't'));
	}
	for (std::size_t at = 0; at < 400; ++at)
		for (int value = 0; value < 256; ++value) {
			Region region = clean;
			region.bytes[at] = std::byte(value);
			try {
				for (const auto &frame : read(region.view())) {
					ASSERT_GE(frame.data.data(), region.bytes.data());
					ASSERT_LE(frame.data.data() + frame.data.size(), region.bytes.data() + region.bytes.size());
				}
			} catch (const FormatError &) {
			}
		}
}

} // namespace
} // namespace pageout::mailbox
