// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/histogram.h"

#include <algorithm>
#include <bit>

namespace pageout::load {

unsigned Histogram::bucket(std::uint64_t value)
{
	const unsigned width = unsigned(std::bit_width(value));
	if (width <= sub_bits + 1)
		return unsigned(value);
	const unsigned shift = width - sub_bits - 1;
	return (shift << sub_bits) + unsigned(value >> shift);
}

std::uint64_t Histogram::upper_bound(unsigned bucket)
{
	if (bucket < 2u << sub_bits)
		return bucket;
	const unsigned shift = (bucket >> sub_bits) - 1;
	const std::uint64_t top = bucket - (shift << sub_bits);
	return ((top + 1) << shift) - 1;
}

void Histogram::add(std::uint64_t value)
{
	++buckets_[bucket(value)];
	++count_;
	max_ = std::max(max_, value);
}

std::uint64_t Histogram::percentile(std::uint32_t per_million) const
{
	if (count_ == 0)
		return 0;
	const auto rank = std::max<std::uint64_t>(
		1, std::uint64_t((static_cast<unsigned __int128>(count_) * per_million + 999'999) / 1'000'000));
	std::uint64_t seen = 0;
	for (unsigned i = 0; i < buckets_.size(); ++i) {
		seen += buckets_[i];
		if (seen >= rank)
			return std::min(upper_bound(i), max_);
	}
	return max_;
}

} // namespace pageout::load
