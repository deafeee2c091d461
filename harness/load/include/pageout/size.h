// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pageout::load {

// "4096", "64K", "96M", "1G" (powers of 1024; a trailing B or iB is allowed) in
// bytes. Empty when it is not a size or exceeds 64 bits.
std::optional<std::uint64_t> parse_size(std::string_view text);

} // namespace pageout::load
