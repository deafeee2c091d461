// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/pattern.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace pageout::load {
namespace {

// Pages of 4096 bytes and of 64 KiB, as machines have them.
class Pattern : public testing::TestWithParam<std::size_t> {
protected:
	Page page() { return {reinterpret_cast<Word *>((std::uintptr_t(memory_.data()) + 15) & ~std::uintptr_t{15}), words()}; }
	std::size_t words() const { return GetParam() / sizeof(Word); }

private:
	std::vector<Word> memory_ = std::vector<Word>(GetParam() / sizeof(Word) + 2);
};

TEST_P(Pattern, EveryWordIsAFunctionOfThePlace)
{
	const Tag tag{7, 42, 3};
	fill_page(page(), tag);
	for (std::size_t i = 0; i < words(); ++i)
		ASSERT_EQ(page()[i], word_at(tag, i)) << i;
	EXPECT_TRUE(page_matches(page(), tag));
	EXPECT_TRUE(word_matches(page(), tag));
}

TEST_P(Pattern, AllWordsOfAPageDiffer)
{
	fill_page(page(), {1, 2, 3});
	EXPECT_EQ(std::set<Word>(page().begin(), page().end()).size(), words());
}

TEST_P(Pattern, AnyFlippedBitIsFound)
{
	const Tag tag{1, 9, 1};
	fill_page(page(), tag);
	for (std::size_t bit = 0; bit < GetParam() * 8; bit += 13) {
		page()[bit / 64] ^= Word{1} << (bit % 64);
		ASSERT_FALSE(page_matches(page(), tag)) << bit;
		const auto mismatch = examine(page(), tag, words(), 16, 4);
		ASSERT_TRUE(mismatch) << bit;
		ASSERT_EQ(mismatch->offset_bytes, bit / 8);
		ASSERT_EQ(mismatch->expected ^ mismatch->found, 1 << bit % 8);
		ASSERT_EQ(mismatch->wrong_bytes, 1u);
		ASSERT_FALSE(mismatch->all_zero);
		ASSERT_FALSE(mismatch->content_of);
		page()[bit / 64] ^= Word{1} << (bit % 64);
	}
	EXPECT_TRUE(page_matches(page(), tag));
	EXPECT_FALSE(examine(page(), tag, words(), 16, 4));
}

TEST_P(Pattern, OtherContentsAreTold)
{
	for (const Tag wrong : {Tag{1, 9, 0}, Tag{1, 10, 1}, Tag{1, 0, 3}}) {
		fill_page(page(), wrong);
		const auto mismatch = examine(page(), {1, 9, 1}, words(), 16, 4);
		ASSERT_TRUE(mismatch);
		ASSERT_TRUE(mismatch->content_of);
		EXPECT_EQ(mismatch->content_of->page, wrong.page);
		EXPECT_EQ(mismatch->content_of->pass, wrong.pass);
	}
	fill_page(page(), {2, 9, 1}); // another run's
	EXPECT_FALSE(examine(page(), {1, 9, 1}, words(), 16, 4)->content_of);
}

TEST_P(Pattern, ZerosAreTold)
{
	std::fill(page().begin(), page().end(), 0);
	EXPECT_FALSE(page_matches(page(), {1, 0, 0}));
	EXPECT_TRUE(examine(page(), {1, 0, 0}, words(), 4, 4)->all_zero);
}

TEST_P(Pattern, OneWordModeTouchesOneWord)
{
	const Tag tag{5, 6, 7};
	std::fill(page().begin(), page().end(), 0);
	fill_word(page(), tag);
	EXPECT_TRUE(word_matches(page(), tag));
	EXPECT_FALSE(word_matches(page(), {5, 6, 8}));
	EXPECT_EQ(page()[1], 0u);
	EXPECT_FALSE(examine(page(), tag, 1, 16, 16));
	EXPECT_EQ(examine(page(), {5, 6, 8}, 1, 16, 16)->content_of->pass, 7u);
}

TEST_P(Pattern, TagsDoNotCollide)
{
	std::set<Word> seen;
	for (std::uint64_t seed = 0; seed < 4; ++seed)
		for (std::uint64_t page = 0; page < 2000; ++page)
			for (std::uint64_t pass = 0; pass < 8; ++pass)
				ASSERT_TRUE(seen.insert(word_at({seed, page, pass}, 0)).second);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Pattern, testing::Values(4096, 65536));

} // namespace
} // namespace pageout::load
