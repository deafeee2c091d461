// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/chunks.h"

#include <gtest/gtest.h>

namespace pageout::load {
namespace {

// Fire's groups failed for it once in 400 runs: of a chunk of one page nothing can be unmapped and the rest be kept.
TEST(Chunks, EveryOneHasAPart)
{
	for (std::uint64_t pages = 2; pages < 3000; ++pages) {
		Random random(pages);
		std::uint64_t sum = 0;
		for (const auto size : chunk_sizes(random, pages)) {
			EXPECT_GE(size, 2U) << pages;
			EXPECT_LE(size, huge_pages / 2 + 2 * huge_pages) << pages;
			sum += size;
		}
		EXPECT_EQ(sum, pages);
	}
}

// The same seed cuts the same way, and another one another way.
TEST(Chunks, DependOnTheSeed)
{
	Random one(1);
	Random again(1);
	Random two(2);
	const auto sizes = chunk_sizes(one, 100000);
	EXPECT_EQ(sizes, chunk_sizes(again, 100000));
	EXPECT_NE(sizes, chunk_sizes(two, 100000));
}

} // namespace
} // namespace pageout::load
