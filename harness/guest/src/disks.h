// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "pageout/job.h"

namespace pageout::guest {

// The first page of a swap area of `bytes`, as mkswap writes it.
std::array<std::byte, 4096> swap_header(std::uint64_t bytes, std::uint64_t uuid_low);

// Attaches the disk to simdisk and makes it ready for its role: a swap area that
// is on, an ext4 on /mnt/NAME, or just /dev/simNAME. Throws.
void bring_up(const job::Disk &disk, std::uint64_t index);

// Requests that the disk has not finished.
std::uint64_t in_flight(const std::string &disk);

} // namespace pageout::guest
