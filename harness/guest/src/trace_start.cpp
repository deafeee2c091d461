// SPDX-License-Identifier: GPL-2.0-only
#include "trace_start.h"

#include <algorithm>
#include <cstring>

#include "system.h"

namespace pageout::guest {
namespace {

// include/uapi/linux/blktrace_api.h
constexpr std::uint32_t magic = 0x65617407;
constexpr std::uint32_t notify = 1u << (10 + 16);
constexpr std::uint32_t timestamp = 1;

template <typename T> T field(const std::array<std::byte, 48> &header, std::size_t offset)
{
	T value;
	std::memcpy(&value, header.data() + offset, sizeof value);
	return value;
}

} // namespace

void TraceStart::feed(std::span<const std::byte> piece)
{
	while (!waiting_.empty() && !piece.empty()) {
		if (skip_ > 0) {
			const auto n = std::min(skip_, piece.size());
			skip_ -= n;
			piece = piece.subspan(n);
			continue;
		}
		const auto n = std::min(header_.size() - have_, piece.size());
		std::memcpy(header_.data() + have_, piece.data(), n);
		have_ += n;
		piece = piece.subspan(n);
		if (have_ < header_.size())
			return;
		have_ = 0;
		if (field<std::uint32_t>(header_, 0) != magic)
			throw Outcome("NO-TRACING", "blktrace's output does not begin with records of version 7");
		skip_ = field<std::uint16_t>(header_, 46);
		const auto action = field<std::uint32_t>(header_, 28);
		if ((action & notify) && (action & 0xff) == timestamp)
			std::erase(waiting_, field<std::uint32_t>(header_, 36));
	}
}

} // namespace pageout::guest
