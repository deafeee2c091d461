// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/histogram.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "pageout/random.h"

namespace pageout::load {
namespace {

TEST(Histogram, IsEmptyAtFirst)
{
	const Histogram histogram;
	EXPECT_EQ(histogram.count(), 0u);
	EXPECT_EQ(histogram.max(), 0u);
	EXPECT_EQ(histogram.percentile(500'000), 0u);
}

TEST(Histogram, SmallValuesAreExact)
{
	Histogram histogram;
	for (std::uint64_t value = 0; value < 64; ++value)
		histogram.add(value);
	for (std::uint32_t i = 1; i <= 64; ++i)
		EXPECT_EQ(histogram.percentile(i * 15'625), i - 1);
}

TEST(Histogram, OneValueIsEveryPercentile)
{
	for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{1'000'003},
					  ~std::uint64_t{0}}) {
		Histogram histogram;
		histogram.add(value);
		EXPECT_EQ(histogram.percentile(1), value);
		EXPECT_EQ(histogram.percentile(1'000'000), value);
	}
}

TEST(Histogram, IsWithinOnePartIn32)
{
	Random random(3);
	std::vector<std::uint64_t> values;
	Histogram histogram;
	for (int i = 0; i < 20'000; ++i) {
		values.push_back(random.next() >> (i % 60));
		histogram.add(values.back());
	}
	std::sort(values.begin(), values.end());
	for (const std::uint32_t p : {1u, 10'000u, 500'000u, 900'000u, 999'000u, 1'000'000u}) {
		const auto exact = values[std::max<std::size_t>(1, (values.size() * std::uint64_t{p} + 999'999) / 1'000'000) - 1];
		EXPECT_GE(histogram.percentile(p), exact);
		EXPECT_LE(histogram.percentile(p) - exact, exact / 32 + 1);
	}
	EXPECT_EQ(histogram.percentile(1'000'000), values.back());
}

} // namespace
} // namespace pageout::load
