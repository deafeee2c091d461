// SPDX-License-Identifier: GPL-2.0-only
#include "physical.h"

#include <algorithm>
#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>

namespace pageout::guest {
namespace {

constexpr std::uint64_t page = 4096;
// Holds the largest frame wherever it begins in a page.
constexpr std::size_t window_bytes = (1 << 20) + page;

} // namespace

Region region_of(std::string_view cmdline, std::string_view name)
{
	const std::string key = std::string(name) + "=";
	for (std::size_t at = 0; at < cmdline.size();) {
		const auto end = std::min(cmdline.find_first_of(" \n", at), cmdline.size());
		const std::string word(cmdline.substr(at, end - at));
		at = end + 1;
		if (!word.starts_with(key))
			continue;
		char *rest = nullptr;
		Region region;
		region.address = std::strtoull(word.c_str() + key.size(), &rest, 0);
		if (*rest == ',') {
			region.bytes = std::strtoull(rest + 1, &rest, 0);
			if (*rest == '\0' && region.address != 0 && region.address % page == 0 && region.bytes >= page)
				return region;
		}
		fail("kernel command line: \"" + word + "\" is not " + key + "ADDRESS,SIZE");
	}
	fail("kernel command line: nothing says " + key + "ADDRESS,SIZE");
}

Physical::Physical(const Region &region, bool writable)
    : region_(region), memory_(open_file("/dev/mem", writable ? O_RDWR : O_RDONLY)),
      protection_(writable ? PROT_READ | PROT_WRITE : PROT_READ), first_(map(0, page))
{
}

Physical::~Physical()
{
	munmap(first_, page);
	if (window_)
		munmap(window_, window_bytes);
}

void *Physical::map(std::uint64_t offset, std::size_t length) const
{
	void *address =
		mmap(nullptr, length, protection_, MAP_SHARED, memory_.get(), off_t(region_.address + offset));
	if (address == MAP_FAILED)
		fail_errno("cannot map " + std::to_string(length) + " bytes of /dev/mem at " +
			   std::to_string(region_.address + offset));
	return address;
}

std::byte *Physical::at(std::uint64_t offset, std::size_t length)
{
	if (length > region_.bytes || offset > region_.bytes - length)
		fail("an access beyond a region of " + std::to_string(region_.bytes) + " bytes");
	if (offset + length <= page)
		return static_cast<std::byte *>(first_) + offset;
	if (!window_ || offset < window_offset_ || offset + length > window_offset_ + window_bytes) {
		if (length > window_bytes - page)
			fail("an access of " + std::to_string(length) + " bytes, more than the window");
		if (window_)
			munmap(window_, window_bytes);
		window_ = nullptr;
		window_offset_ = offset & ~(page - 1);
		// The end of the window may lie beyond the region, where nobody
		// writes to.
		window_ = map(window_offset_, window_bytes);
	}
	return static_cast<std::byte *>(window_) + (offset - window_offset_);
}

std::span<const std::byte> Physical::first_page() const
{
	return {static_cast<const std::byte *>(first_), page};
}

} // namespace pageout::guest
