// SPDX-License-Identifier: GPL-2.0-only
//
// What a page holds: a function of the run's seed, the page's number and the
// pass that wrote it. Every word differs from its neighbours, and a page that
// is stale, zero, shifted or another one's is told apart from the right one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pageout::load {

using Word = std::uint64_t;
using Page = std::span<Word>; // one page of memory, in words: a multiple of 32, 16-byte aligned
using ConstPage = std::span<const Word>;

// Which content: (seed, page, pass).
struct Tag {
	std::uint64_t seed;
	std::uint64_t page;
	std::uint64_t pass;
};

// Word `index` of a page's content.
Word word_at(const Tag &tag, std::size_t index);

// Writes the whole page, or its first word only: some 600 and 20 instructions
// for a page of 4096 bytes.
void fill_page(Page page, const Tag &tag);
void fill_word(Page page, const Tag &tag);

// True when the whole page, or its first word, holds what fill_ wrote.
bool page_matches(ConstPage page, const Tag &tag);
bool word_matches(ConstPage page, const Tag &tag);

// What is wrong with a page that does not match.
struct Mismatch {
	std::size_t offset_bytes; // of the first wrong byte, in the page
	std::uint8_t expected;
	std::uint8_t found;
	std::size_t wrong_bytes;
	Word expected_word; // the word that holds the first wrong byte
	Word found_word;
	bool all_zero;                   // the page holds nothing but zeros
	std::optional<Tag> content_of;   // the page holds, whole, what belongs to this page and pass
};

// Compares byte by byte; `words` is how many words of the page count (1 after
// fill_word). content_of is looked for among pages [0, pages) and passes
// [0, passes). Empty when the page is right.
std::optional<Mismatch> examine(ConstPage page, const Tag &tag, std::size_t words, std::uint64_t pages,
				std::uint64_t passes);

} // namespace pageout::load
