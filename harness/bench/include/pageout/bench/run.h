// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "pageout/bench/kernels.h"
#include "pageout/bench/progress.h"
#include "pageout/bench/qemu.h"
#include "pageout/bench/record.h"
#include "pageout/bench/scenario.h"

#include <filesystem>
#include <string>
#include <vector>

namespace pageout::bench {

struct RunOptions {
	std::filesystem::path out;
	std::string accel = "auto";
	unsigned jobs = 0;   ///< runs at the same time; 0: as many as there are CPUs in virtual time, one on the host's clock
	bool resume = false; ///< take a run that is there already, made from the same inputs
	std::string linux_dir;
	std::vector<std::string> fragments;
};

struct RunResult {
	std::string step;
	unsigned sample = 0;
	std::string status, reason;
	bool as_expected = false; ///< the scenario's status, and all its bounds met
	bool reused = false;
	std::vector<std::string> unmet; ///< the bounds that were not, as text
	std::filesystem::path folder;
};

/// Builds what is missing and runs every sample of every step. Results are in DIR/STEP/SAMPLE, whole or not there.
std::vector<RunResult> run_scenario(const std::filesystem::path& root, const Scenario& scenario, const std::string& steps, const RunOptions& options,
				    Progress& progress);

} // namespace pageout::bench
