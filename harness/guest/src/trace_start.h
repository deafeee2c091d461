// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pageout::guest {

// Reads the head of a blktrace stream, in pieces of any size, until every device
// has begun to be traced: the kernel notes the time of day when it starts a
// device, before anything else.
class TraceStart {
public:
	// Kernel device numbers (major << 20 | minor).
	explicit TraceStart(std::vector<std::uint32_t> devices) : waiting_(std::move(devices)) {}

	// Throws Outcome NO-TRACING when this is not a trace.
	void feed(std::span<const std::byte> piece);
	bool started() const { return waiting_.empty(); }

private:
	std::vector<std::uint32_t> waiting_;
	std::array<std::byte, 48> header_{};
	std::size_t have_ = 0; // bytes of the header
	std::size_t skip_ = 0; // bytes of what follows it
};

} // namespace pageout::guest
