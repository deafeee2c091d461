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

std::string_view verdict_name(Verdict v);
std::string_view severity_name(Severity s);
// "2026-01-31 12:00:00.123456789 UTC" from nanoseconds since 1970.
std::string wall_time(std::int64_t ns);

}  // namespace pageout::tally

#endif
