// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pageout::bench {

/// One kernel of the series: "control:NAME", "base", or "K" = base and the first K patches.
struct Step {
	std::string name;
	std::string subject;
};

/// A step as it was asked for. `label` is what the record calls it ("full" stays "full"); `kernel` is the Step's name.
struct StepRequest {
	std::string label;
	std::string kernel;
	std::string subject;
};

/// Reads a LIST like "base,3,5-7,full,control:ra-unplugged". Ranges may lack their end ("5-"); "all" is base and every
/// patch; 0 is base. A step named twice is taken once. Throws Error that quotes the word and lists what there is.
std::vector<StepRequest> resolve_steps(std::string_view list, const std::vector<Step>& available);

/// Sort order of a table's columns: controls, base, 1, 2, …, full.
bool step_before(std::string_view left, std::string_view right);

} // namespace pageout::bench
