// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/steps.h"

#include "pageout/bench/error.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <tuple>

namespace pageout::bench {

namespace {

std::optional<unsigned> number(std::string_view text)
{
	unsigned value = 0;
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
	if (text.empty() || error != std::errc{} || end != text.data() + text.size())
		return std::nullopt;
	return value;
}

unsigned last_patch(const std::vector<Step>& available)
{
	unsigned last = 0;
	for (const auto& step : available)
		last = std::max(last, number(step.name).value_or(0));
	return last;
}

class Resolver {
public:
	Resolver(std::string_view list, const std::vector<Step>& available)
		: list_(list), available_(available), last_(last_patch(available)) {}

	std::vector<StepRequest> resolve()
	{
		for (const auto& raw : split(list_, ','))
			word(trim(raw));
		return std::move(requests_);
	}

private:
	[[noreturn]] void fail(std::string_view word, std::string_view why) const
	{
		std::string names;
		for (const auto& step : available_)
			names += (names.empty() ? "" : ", ") + step.name;
		throw Error(fmt::format("--steps {}: \"{}\" {}; there are: {} (and full, all, ranges like 2-4)", list_, word, why, names), 2);
	}

	void add(std::string label, std::string_view kernel, std::string_view said)
	{
		const auto step = std::find_if(available_.begin(), available_.end(), [&](const Step& s) { return s.name == kernel; });
		if (step == available_.end())
			fail(said, "is no step");
		const auto same = [&](const StepRequest& r) { return r.label == label; };
		if (std::none_of(requests_.begin(), requests_.end(), same))
			requests_.push_back({std::move(label), step->name, step->subject});
	}

	void range(unsigned first, unsigned last, std::string_view said)
	{
		if (first > last)
			fail(said, "runs backwards");
		for (unsigned k = first; k <= last; ++k) {
			const std::string name = k ? std::to_string(k) : "base";
			add(name, name, said);
		}
	}

	void word(std::string_view said)
	{
		if (said.empty())
			fail(said, "names nothing (a comma too many?)");
		if (said == "all")
			return range(0, last_, said);
		if (said == "full")
			return add("full", last_ ? std::to_string(last_) : "base", said);
		if (const auto k = number(said))
			return range(*k, *k, said);
		if (const auto dash = said.find('-'); dash != std::string_view::npos && number(said.substr(0, dash))) {
			const auto first = number(said.substr(0, dash));
			const auto end = said.substr(dash + 1);
			const auto last = end.empty() ? std::optional(last_) : number(end);
			if (!last)
				fail(said, "is no range");
			return range(*first, *last, said);
		}
		add(std::string(said), said, said);
	}

	std::string_view list_;
	const std::vector<Step>& available_;
	unsigned last_;
	std::vector<StepRequest> requests_;
};

} // namespace

std::vector<StepRequest> resolve_steps(std::string_view list, const std::vector<Step>& available)
{
	return Resolver(list, available).resolve();
}

bool step_before(std::string_view left, std::string_view right)
{
	const auto rank = [](std::string_view name) {
		if (starts_with(name, "control:"))
			return std::tuple(0u, 0u, name);
		if (name == "base")
			return std::tuple(1u, 0u, name);
		if (name == "full")
			return std::tuple(2u, std::numeric_limits<unsigned>::max(), name);
		if (const auto k = number(name))
			return std::tuple(2u, *k, name);
		return std::tuple(3u, 0u, name);
	};
	return rank(left) < rank(right);
}

} // namespace pageout::bench
