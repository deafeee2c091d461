// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace pageout::bench::test {

struct RecordFields {
	std::uint64_t time_ns = 0;
	std::uint64_t sector = 0;
	std::uint32_t bytes = 0;
	std::uint32_t action = 1;
	std::uint32_t device = 254u << 20;
	std::uint32_t cpu = 0;
	std::uint32_t sequence = 1;
	std::string payload = {};
};

/// One record of a blktrace stream, little-endian.
inline std::string record(const RecordFields& f)
{
	std::string out(48, '\0');
	const auto put = [&](std::size_t at, auto value) { std::memcpy(out.data() + at, &value, sizeof value); };
	put(0, std::uint32_t{0x65617407});
	put(4, f.sequence);
	put(8, f.time_ns);
	put(16, f.sector);
	put(24, f.bytes);
	put(28, f.action);
	put(36, f.device);
	put(40, f.cpu);
	put(46, static_cast<std::uint16_t>(f.payload.size()));
	return out + f.payload;
}

// Actions: what happened in the low half, the categories in the high half.
inline constexpr std::uint32_t category(unsigned bit) { return 1u << (16 + bit); }
inline constexpr std::uint32_t queue_read = 1 | category(0) | category(4);
inline constexpr std::uint32_t issue_read = 7 | category(0) | category(6) | category(8);
inline constexpr std::uint32_t complete_read = 8 | category(0) | category(7) | category(8);
inline constexpr std::uint32_t get_request_read = 4 | category(0);
inline constexpr std::uint32_t back_merge_read = 2 | category(0);

} // namespace pageout::bench::test
