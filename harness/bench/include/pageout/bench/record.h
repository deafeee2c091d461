// SPDX-License-Identifier: GPL-2.0-only
//
// From what a guest left behind to the run record (docs/run-record.md).
#pragma once

#include "pageout/bench/kernels.h"
#include "pageout/bench/layout.h"
#include "pageout/bench/scenario.h"
#include "pageout/bench/status.h"
#include "pageout/bench/steps.h"
#include "pageout/bench/trace.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pageout::bench {

using Json = nlohmann::ordered_json;

inline constexpr std::string_view record_schema = "pageout-run/1";
inline constexpr std::uint64_t page_bytes = 4096;

/// The job for the guest (docs/seams.md, "Job").
Json make_job(const Scenario& scenario, const Layout& layout, unsigned sample = 1);

/// What identifies a run before it starts. Two runs with equal identities give equal records, host times apart, in virtual time.
struct RunIdentity {
	Scenario scenario;
	StepRequest step;
	unsigned sample = 1;
	Kernel kernel;
	Programs programs;
	std::string accel;        ///< "tcg" or "kvm"
	std::string qemu_version;
	Json job;
	std::vector<std::string> qemu_command; ///< with {qemu}, {bzimage}, {initramfs}, {memory}, {console} for the paths
	std::vector<std::string> cmdline;
};

/// What came out of it.
struct RunOutput {
	std::map<std::string, std::string> frames; ///< of the mailbox, joined by name
	std::string mailbox_damage;
	std::string console;
	GuestEnd end;
};

struct Outcome {
	Verdict verdict;
	Json record;      ///< without its "host"
	TraceSplit trace;
};

/// Decides the status and builds the record. Whatever could be read is in it, whatever the status.
Outcome evaluate(const RunIdentity& identity, const RunOutput& output);
/// A run that was not made, for a reason.
Outcome skipped(const RunIdentity& identity, const std::string& reason);

/// "name value" lines, the value being the last word of each; other lines are left out.
std::map<std::string, std::int64_t> read_counters(std::string_view text);

/// The value at a dotted path ("derived.pages_per_read_request", "passes_s.1"), where there is a number.
std::optional<double> number_at(const Json& record, std::string_view dotted_path);

/// The same run before: equal in all that decides the result, and PASS.
bool same_inputs(const Json& record, const RunIdentity& identity);

} // namespace pageout::bench
