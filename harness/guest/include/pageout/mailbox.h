// SPDX-License-Identifier: GPL-2.0-only
//
// The mailbox: named frames that the guest leaves in memory which the host can
// see (docs/seams.md, "Mailbox"). A reader for the host, a writer for the guest.
// All integers are little-endian; all sizes are bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pageout::mailbox {

inline constexpr std::size_t region_header_bytes = 64;
inline constexpr std::size_t frame_header_bytes = 64;
inline constexpr std::size_t name_bytes = 48; // with its NUL padding; a name has 1 to 47 characters
inline constexpr std::uint32_t frame_magic = 0x4d415246;
inline constexpr std::string_view region_magic = "PGOUTBX1";

// What is in the region is not a mailbox, or a damaged one. `offset` is in bytes
// from the start of the region; what() says it too.
class FormatError : public std::runtime_error {
public:
	FormatError(const std::string &what, std::size_t offset)
	    : std::runtime_error(what), offset(offset) {}
	std::size_t offset;
};

// One frame; `data` points into the region that was read.
struct Frame {
	std::string name;
	std::span<const std::byte> data;
};

// All complete frames, in order. A region whose header is all zeros is one that
// no guest has written to yet: no frames. Throws FormatError on anything else
// that is not a mailbox, and on a frame that does not fit or has a bad name.
std::vector<Frame> read(std::span<const std::byte> region);

// Frames of one name joined, in order: name -> contents.
std::map<std::string, std::string> join(const std::vector<Frame> &frames);

// Where a Writer puts bytes. map() makes [offset, offset + length) of the region
// writable and returns its first byte; the pointer is good until the next map().
// length is at most Writer::max_reserve_bytes.
using Map = std::function<std::byte *(std::uint64_t offset, std::size_t length)>;

// Writes frames. `used` in the region's header moves only when a frame is
// complete. Nothing is allocated after construction.
class Writer {
public:
	static constexpr std::size_t max_reserve_bytes = 1 << 20;

	// region_bytes includes the header. Writes the header (no frames).
	// The last reserve_bytes are kept for put_last(). Throws
	// std::invalid_argument when the region is too small for both.
	Writer(Map map, std::uint64_t region_bytes, std::uint64_t reserve_bytes);

	// A plain piece of memory as the region (tests, tools).
	static Map over(std::span<std::byte> region);

	// A file in one go, as one frame or several. False, and nothing written,
	// when not all of it fits.
	bool put(std::string_view name, std::span<const std::byte> data);
	bool put(std::string_view name, std::string_view text);
	// The same, but may use the reserve.
	bool put_last(std::string_view name, std::string_view text);

	// Room for the data of the next frame, to be filled in place: at most
	// `want` bytes, fewer when little is left, empty when the mailbox is full.
	// commit() makes it a frame; a length of 0 makes none.
	std::span<std::byte> reserve(std::size_t want, bool last = false);
	void commit(std::string_view name, std::size_t length);

	// Bytes of complete frames so far, and what frames may take in all.
	std::uint64_t used() const { return used_; }
	std::uint64_t capacity() const { return capacity_; }

private:
	bool put_within(std::string_view name, std::span<const std::byte> data, bool last);

	Map map_;
	std::uint64_t capacity_;
	std::uint64_t reserve_;
	std::uint64_t used_ = 0;
};

} // namespace pageout::mailbox
