// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/mailbox.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

static_assert(std::endian::native == std::endian::little, "the mailbox is little-endian and is written in place");

namespace pageout::mailbox {
namespace {

template <typename T> T load(std::span<const std::byte> from, std::size_t offset)
{
	T value;
	std::memcpy(&value, from.data() + offset, sizeof value);
	return value;
}

constexpr std::uint64_t padded(std::uint64_t bytes)
{
	return (bytes + 7) & ~std::uint64_t{7};
}

[[noreturn]] void fail(const std::string &what, std::size_t offset)
{
	throw FormatError("mailbox: at byte " + std::to_string(offset) + ": " + what, offset);
}

} // namespace

std::vector<Frame> read(std::span<const std::byte> region)
{
	if (region.size() < region_header_bytes)
		fail("the region has " + std::to_string(region.size()) + " bytes, less than its header", 0);
	const auto header = region.first(region_header_bytes);
	if (std::all_of(header.begin(), header.end(), [](std::byte b) { return b == std::byte{0}; }))
		return {};
	if (std::memcmp(header.data(), region_magic.data(), region_magic.size()) != 0)
		fail("no PGOUTBX1 header: this is not a mailbox", 0);
	const auto capacity = load<std::uint64_t>(region, 8);
	const auto used = load<std::uint64_t>(region, 16);
	if (capacity > region.size() - region_header_bytes)
		fail("capacity " + std::to_string(capacity) + " is more than the region holds", 8);
	if (used > capacity)
		fail("used " + std::to_string(used) + " is more than capacity " + std::to_string(capacity), 16);

	std::vector<Frame> frames;
	const std::size_t end = region_header_bytes + used;
	for (std::size_t at = region_header_bytes; at < end;) {
		if (end - at < frame_header_bytes)
			fail("a frame's header is cut", at);
		if (load<std::uint32_t>(region, at) != frame_magic)
			fail("no frame begins here", at);
		if (load<std::uint32_t>(region, at + 4) != 0)
			fail("a frame with unknown flags", at + 4);
		const auto length = load<std::uint64_t>(region, at + 8);
		const std::size_t room = end - at - frame_header_bytes;
		if (length > room || padded(length) > room)
			fail("a frame of " + std::to_string(length) + " bytes does not fit", at + 8);
		const char *name = reinterpret_cast<const char *>(region.data()) + at + 16;
		const std::size_t name_length = strnlen(name, name_bytes);
		if (name_length == 0 || name_length == name_bytes)
			fail("a frame's name is empty or has no end", at + 16);
		frames.push_back({std::string(name, name_length), region.subspan(at + frame_header_bytes, length)});
		at += frame_header_bytes + padded(length);
	}
	return frames;
}

std::map<std::string, std::string> join(const std::vector<Frame> &frames)
{
	std::map<std::string, std::string> files;
	for (const auto &frame : frames)
		files[frame.name].append(reinterpret_cast<const char *>(frame.data.data()), frame.data.size());
	return files;
}

Writer::Writer(Map map, std::uint64_t region_bytes, std::uint64_t reserve_bytes)
    : map_(std::move(map)), capacity_(0), reserve_(reserve_bytes)
{
	if (region_bytes < region_header_bytes || region_bytes - region_header_bytes < reserve_bytes)
		throw std::invalid_argument("mailbox: a region of " + std::to_string(region_bytes) +
					    " bytes is too small for its header and a reserve of " +
					    std::to_string(reserve_bytes));
	capacity_ = (region_bytes - region_header_bytes) & ~std::uint64_t{7};
	std::byte *header = map_(0, region_header_bytes);
	std::memset(header, 0, region_header_bytes);
	std::memcpy(header + 8, &capacity_, sizeof capacity_);
	std::memcpy(header, region_magic.data(), region_magic.size());
}

Map Writer::over(std::span<std::byte> region)
{
	return [region](std::uint64_t offset, std::size_t length) {
		if (offset > region.size() || length > region.size() - offset)
			throw std::out_of_range("mailbox: write beyond the region");
		return region.data() + offset;
	};
}

std::span<std::byte> Writer::reserve(std::size_t want, bool last)
{
	const std::uint64_t limit = last ? capacity_ : capacity_ - reserve_;
	if (used_ + frame_header_bytes >= limit)
		return {};
	const std::uint64_t room = (limit - used_ - frame_header_bytes) & ~std::uint64_t{7};
	const std::size_t length =
		std::min<std::uint64_t>({want, room, max_reserve_bytes - frame_header_bytes});
	if (length == 0)
		return {};
	std::byte *frame = map_(region_header_bytes + used_, frame_header_bytes + padded(length));
	return {frame + frame_header_bytes, length};
}

void Writer::commit(std::string_view name, std::size_t length)
{
	if (name.empty() || name.size() >= name_bytes)
		throw std::invalid_argument("mailbox: a frame's name has 1 to 47 characters");
	if (length == 0)
		return;
	const std::uint64_t size = length;
	std::byte *frame = map_(region_header_bytes + used_, frame_header_bytes + padded(length));
	std::memset(frame, 0, frame_header_bytes);
	std::memcpy(frame, &frame_magic, sizeof frame_magic);
	std::memcpy(frame + 8, &size, sizeof size);
	std::memcpy(frame + 16, name.data(), name.size());
	std::memset(frame + frame_header_bytes + length, 0, padded(length) - length);
	used_ += frame_header_bytes + padded(length);
	// The host may look at any time, and a guest may stop at any time.
	std::atomic_ref<std::uint64_t> used(*reinterpret_cast<std::uint64_t *>(map_(16, sizeof used_)));
	used.store(used_, std::memory_order_release);
}

bool Writer::put_within(std::string_view name, std::span<const std::byte> data, bool last)
{
	constexpr std::size_t piece = max_reserve_bytes - frame_header_bytes;
	const std::uint64_t frames = (data.size() + piece - 1) / piece;
	// All or nothing: half a file is worse than none.
	const std::uint64_t limit = last ? capacity_ : capacity_ - reserve_;
	if (used_ > limit || padded(data.size()) + frames * frame_header_bytes > limit - used_)
		return false;
	while (!data.empty()) {
		const auto room = reserve(std::min(data.size(), piece), last);
		std::memcpy(room.data(), data.data(), room.size());
		commit(name, room.size());
		data = data.subspan(room.size());
	}
	return true;
}

bool Writer::put(std::string_view name, std::span<const std::byte> data)
{
	return put_within(name, data, false);
}

bool Writer::put(std::string_view name, std::string_view text)
{
	return put_within(name, std::as_bytes(std::span(text)), false);
}

bool Writer::put_last(std::string_view name, std::string_view text)
{
	return put_within(name, std::as_bytes(std::span(text)), true);
}

} // namespace pageout::mailbox
