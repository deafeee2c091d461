// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/pattern.h"

#include <algorithm>

#include "pageout/random.h"

namespace pageout::load {
namespace {

// Odd, so that no two words of a page are the same.
constexpr Word step = 0x9e3779b97f4a7c15;

// Two words at a time: every x86-64 and arm64 has registers for that.
typedef Word Pair __attribute__((vector_size(16), may_alias));
// ... and this many pairs a turn of a loop; a page is a multiple of that.
constexpr std::size_t block = 16;

Word first_word(const Tag &tag)
{
	return mix64(mix64(tag.seed ^ mix64(tag.page + 1)) + tag.pass);
}

} // namespace

Word word_at(const Tag &tag, std::size_t index)
{
	return first_word(tag) + step * index;
}

void fill_page(Page page, const Tag &tag)
{
	const Word first = first_word(tag);
	Pair value = {first, first + step};
	const Pair stride = {2 * step, 2 * step};
	Pair *at = reinterpret_cast<Pair *>(page.data());
	Pair *const end = at + page.size() / 2;
	for (; at != end; at += block) {
#pragma GCC unroll 16
		for (std::size_t i = 0; i < block; ++i) {
			at[i] = value;
			value += stride;
		}
	}
}

void fill_word(Page page, const Tag &tag)
{
	page[0] = first_word(tag);
}

bool page_matches(ConstPage page, const Tag &tag)
{
	const Word first = first_word(tag);
	Pair value = {first, first + step};
	const Pair stride = {2 * step, 2 * step};
	Pair difference = {0, 0};
	const Pair *at = reinterpret_cast<const Pair *>(page.data());
	const Pair *const end = at + page.size() / 2;
	for (; at != end; at += block) {
#pragma GCC unroll 16
		for (std::size_t i = 0; i < block; ++i) {
			difference |= at[i] ^ value;
			value += stride;
		}
	}
	return (difference[0] | difference[1]) == 0;
}

bool word_matches(ConstPage page, const Tag &tag)
{
	return page[0] == first_word(tag);
}

std::optional<Mismatch> examine(ConstPage page, const Tag &tag, std::size_t words, std::uint64_t pages,
				std::uint64_t passes)
{
	std::optional<Mismatch> result;
	bool zero = true;
	bool regular = true;
	for (std::size_t i = 0; i < words; ++i) {
		const Word expected = word_at(tag, i);
		const Word found = page[i];
		zero = zero && found == 0;
		regular = regular && found == page[0] + step * i;
		for (unsigned byte = 0; byte < sizeof(Word); ++byte) {
			const auto want = std::uint8_t(expected >> (8 * byte));
			const auto have = std::uint8_t(found >> (8 * byte));
			if (want == have)
				continue;
			if (!result)
				result = Mismatch{i * sizeof(Word) + byte, want, have, 0, expected, found, false, {}};
			++result->wrong_bytes;
		}
	}
	if (!result)
		return result;
	result->all_zero = zero;
	for (std::uint64_t p = 0; regular && !result->content_of && p < pages; ++p)
		for (std::uint64_t q = 0; q < passes; ++q)
			if (first_word({tag.seed, p, q}) == page[0]) {
				result->content_of = Tag{tag.seed, p, q};
				break;
			}
	return result;
}

} // namespace pageout::load
