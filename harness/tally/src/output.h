// SPDX-License-Identifier: GPL-2.0-only
//
// What the output formats share.
#ifndef TALLY_OUTPUT_H
#define TALLY_OUTPUT_H

#include <cstdint>
#include <string>
#include <string_view>

#include "pageout/tally.h"

namespace pageout::tally {

inline std::uint64_t lowest_in_bucket(std::size_t i) { return i == 0 ? 0 : std::uint64_t{1} << (i - 1); }
inline std::uint64_t highest_in_bucket(std::size_t i)
{
    return i == 0 ? 0 : i == 64 ? UINT64_MAX : (std::uint64_t{1} << i) - 1;
}

// 1234567 as "1,234,567".
std::string commas(std::uint64_t n);
std::string_view verdict_name(Verdict v);
std::string_view severity_name(Severity s);
// When the first event was, as "2026-01-31 12:00:00.123456789 UTC"; there must be a wall_offset_ns.
std::string wall_start(const Summary& s);

}  // namespace pageout::tally

#endif
