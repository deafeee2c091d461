// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/random.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace pageout::load {
namespace {

TEST(Random, IsTheSameEverywhere)
{
	// SplitMix64's published first numbers from the seed 1234567.
	Random random(1234567);
	EXPECT_EQ(random.next(), 6457827717110365317u);
	EXPECT_EQ(random.next(), 3203168211198807973u);
	EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(Random, BelowAndUnitStayInside)
{
	Random random(1);
	for (int i = 0; i < 10000; ++i) {
		ASSERT_LT(random.below(7), 7u);
		ASSERT_EQ(random.below(1), 0u);
		const double unit = random.unit();
		ASSERT_GE(unit, 0);
		ASSERT_LT(unit, 1);
	}
}

class PermutationOf : public testing::TestWithParam<std::uint64_t> {};

TEST_P(PermutationOf, HitsEveryElementOnce)
{
	const auto size = GetParam();
	for (const std::uint64_t seed : {0u, 1u, 77u}) {
		const Permutation order(size, seed);
		std::vector<bool> seen(size);
		for (std::uint64_t i = 0; i < size; ++i) {
			const auto at = order(i);
			ASSERT_LT(at, size);
			ASSERT_FALSE(seen[at]);
			seen[at] = true;
		}
	}
}

INSTANTIATE_TEST_SUITE_P(Sizes, PermutationOf, testing::Values(1, 2, 3, 4, 5, 16, 17, 1000, 24576, 65536, 65537));

TEST(Permutation, IsRandomAndDependsOnTheSeed)
{
	constexpr std::uint64_t size = 24576;
	const Permutation one(size, 1), two(size, 2);
	std::uint64_t same = 0, in_order = 0, near = 0;
	for (std::uint64_t i = 0; i < size; ++i) {
		same += one(i) == two(i);
		in_order += one(i) == i;
		if (i > 0)
			near += std::uint64_t(std::llabs(std::int64_t(one(i)) - std::int64_t(one(i - 1)))) <= 8;
	}
	// One coincidence on average; 16 neighbours of 24575 on average.
	EXPECT_LT(same, 12u);
	EXPECT_LT(in_order, 12u);
	EXPECT_LT(near, 60u);
}

TEST(Permutation, RefusesWhatItCannot)
{
	EXPECT_THROW(Permutation(0, 1), std::invalid_argument);
	EXPECT_THROW(Permutation((std::uint64_t{1} << 40) + 1, 1), std::invalid_argument);
}

class ZipfOf : public testing::TestWithParam<double> {};

TEST_P(ZipfOf, HasTheFrequenciesOfTheLaw)
{
	constexpr std::uint64_t size = 1000, draws = 400'000;
	const Zipf zipf(size, GetParam());
	Random random(42);
	std::vector<std::uint64_t> counts(size);
	for (std::uint64_t i = 0; i < draws; ++i) {
		const auto rank = zipf(random);
		ASSERT_LT(rank, size);
		++counts[rank];
	}
	double total = 0;
	for (std::uint64_t k = 1; k <= size; ++k)
		total += std::pow(double(k), -GetParam());
	// Ranks alone while they are frequent, then in groups; five standard
	// deviations each.
	for (std::uint64_t begin = 0; begin < size;) {
		double expected = 0;
		std::uint64_t found = 0, end = begin;
		while (end < size && (expected < 400 || end == begin)) {
			expected += double(draws) * std::pow(double(end + 1), -GetParam()) / total;
			found += counts[end++];
		}
		EXPECT_NEAR(double(found), expected, 5 * std::sqrt(expected) + 1) << begin << ".." << end;
		begin = end;
	}
}

INSTANTIATE_TEST_SUITE_P(Thetas, ZipfOf, testing::Values(0.2, 0.5, 0.99, 1.0, 1.2, 2.0));

TEST(Zipf, OneElementAndNonsense)
{
	Random random(1);
	EXPECT_EQ(Zipf(1, 0.99)(random), 0u);
	EXPECT_THROW(Zipf(0, 1), std::invalid_argument);
	EXPECT_THROW(Zipf(10, 0), std::invalid_argument);
	EXPECT_THROW(Zipf(10, std::nan("")), std::invalid_argument);
}

} // namespace
} // namespace pageout::load
