// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/chunks.h"

#include <algorithm>

namespace pageout::load {

std::vector<std::uint64_t> chunk_sizes(Random &random, std::uint64_t pages)
{
	std::vector<std::uint64_t> sizes;
	while (pages > 0) {
		std::uint64_t size = std::min(pages, huge_pages / 2 + random.below(2 * huge_pages));
		if (pages - size == 1)
			++size;
		sizes.push_back(size);
		pages -= size;
	}
	return sizes;
}

} // namespace pageout::load
