// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/size.h"

#include <charconv>
#include <limits>

namespace pageout::load {

std::optional<std::uint64_t> parse_size(std::string_view text)
{
	std::uint64_t number = 0;
	const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
	if (error != std::errc{})
		return {};
	std::string_view unit(rest, text.size() - std::size_t(rest - text.data()));
	unsigned shift = 0;
	if (!unit.empty()) {
		const auto at = std::string_view("KMGT").find(unit[0] >= 'a' ? char(unit[0] - 32) : unit[0]);
		if (at != std::string_view::npos) {
			shift = 10 * (unsigned(at) + 1);
			unit.remove_prefix(1);
			if (unit == "iB")
				unit = {};
		}
		if (unit == "B")
			unit = {};
	}
	if (!unit.empty() || number > std::numeric_limits<std::uint64_t>::max() >> shift)
		return {};
	return number << shift;
}

} // namespace pageout::load
