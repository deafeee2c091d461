// SPDX-License-Identifier: GPL-2.0-only
//
// How a stretch of memory is cut into chunks of odd sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "pageout/random.h"

namespace pageout::load {

// Pages of a huge page.
inline constexpr std::uint64_t huge_pages = 512;

// Sizes, in pages, of the chunks of `pages` pages: no multiple of anything, so that edges of page tables,
// of clusters and of huge pages fall everywhere. None has less than two, or it had no part; pages > 1.
std::vector<std::uint64_t> chunk_sizes(Random &random, std::uint64_t pages);

} // namespace pageout::load
