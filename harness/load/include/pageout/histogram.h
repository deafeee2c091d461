// SPDX-License-Identifier: GPL-2.0-only
//
// Percentiles of many durations in little, fixed memory.
#pragma once

#include <array>
#include <cstdint>

namespace pageout::load {

// Counts values in buckets that are exact below 64 and at most 1/32 wide above;
// the largest value is kept exactly.
class Histogram {
public:
	void add(std::uint64_t value);
	std::uint64_t count() const { return count_; }
	std::uint64_t max() const { return max_; }
	// The smallest bucket bound that at least `per_million` millionths of
	// the values do not exceed, never more than max(); 0 when empty.
	std::uint64_t percentile(std::uint32_t per_million) const;

private:
	static constexpr unsigned sub_bits = 5;
	static unsigned bucket(std::uint64_t value);
	static std::uint64_t upper_bound(unsigned bucket);

	std::array<std::uint32_t, (64 - sub_bits + 1) << sub_bits> buckets_{};
	std::uint64_t count_ = 0;
	std::uint64_t max_ = 0;
};

} // namespace pageout::load
