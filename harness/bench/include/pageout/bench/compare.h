// SPDX-License-Identifier: GPL-2.0-only
//
// Records side by side: a column a step, absolutes and ratios, the environment's differences above the numbers.
#pragma once

#include "pageout/bench/record.h"

#include <filesystem>
#include <string>
#include <vector>

namespace pageout::bench {

struct LoadedRecord {
	std::filesystem::path file;
	unsigned source = 0; ///< which of the command's arguments it came from
	Json json;
};

/// A record.json, or all of them below a folder. Throws Error that names the file and what is wrong with it, and where
/// there is none.
std::vector<LoadedRecord> load_records(const std::filesystem::path& record_or_folder, unsigned source);

/// The comparison as JSON, "pageout-comparison/1" (docs/run-record.md). Records that are not PASS are in its "left_out",
/// with their reasons, and in no number.
Json compare_records(const std::vector<LoadedRecord>& records, const std::vector<std::string>& source_names);

std::string comparison_text(const Json& comparison);
std::string comparison_markdown(const Json& comparison);

/// What sets two runs apart, host times left aside: "" when record and traces are the same to the byte, else the first
/// difference.
std::string first_difference(const std::filesystem::path& left, const std::filesystem::path& right);

/// Whether the bench can see what the plug of swap readahead does (Linux 3.6): read dispatches a page read of
/// control:ra-unplugged against base.
struct ControlCheck {
	double base = 0, control = 0; ///< dispatches a page read
	double ratio = 0;
	bool sees = false;
	std::string reason; ///< why it is blind
};
ControlCheck check_control(const std::vector<LoadedRecord>& records, double least_ratio = 3.0);

} // namespace pageout::bench
