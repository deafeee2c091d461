// SPDX-License-Identifier: GPL-2.0-only
//
// Memory that the kernel was told not to use, through /dev/mem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "system.h"

namespace pageout::guest {

struct Region {
	std::uint64_t address; // guest-physical
	std::uint64_t bytes;
};

// `name=ADDRESS,SIZE` on the kernel's command line. Throws.
Region region_of(std::string_view cmdline, std::string_view name);

// A region, of which a window at a time is mapped: mapping all of a large region
// would take two thousandths of its size in page tables, out of the memory under
// test.
class Physical {
public:
	// Throws.
	Physical(const Region &region, bool writable);
	~Physical();
	Physical(const Physical &) = delete;
	Physical &operator=(const Physical &) = delete;

	// The bytes [offset, offset + length) of the region. Good until the next
	// call, except for the region's first page, which stays. Throws.
	std::byte *at(std::uint64_t offset, std::size_t length);
	std::span<const std::byte> first_page() const;

private:
	void *map(std::uint64_t offset, std::size_t length) const;

	Region region_;
	Descriptor memory_;
	int protection_;
	void *first_;
	void *window_ = nullptr;
	std::uint64_t window_offset_ = 0;
};

} // namespace pageout::guest
