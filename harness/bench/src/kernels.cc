// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/kernels.h"

#include "pageout/bench/error.h"
#include "pageout/bench/process.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pageout::bench {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// The last line that a script printed, as JSON.
json last_line(const std::string& text, const std::string& what)
{
	const auto lines = split(trim(text), '\n');
	try {
		return json::parse(lines.back());
	} catch (const json::exception& error) {
		throw Error(fmt::format("{}: its answer is no JSON ({}): {:.200}", what, error.what(), lines.back()));
	}
}

template <typename T> T member(const json& object, const char* name, const std::string& what)
{
	try {
		return object.at(name).get<T>();
	} catch (const json::exception& error) {
		throw Error(fmt::format("{}: its answer's \"{}\": {}", what, name, error.what()));
	}
}

} // namespace

Kernels::Kernels(fs::path root, BuildOptions options) : root_(std::move(root)), options_(std::move(options)) {}

std::vector<std::string> Kernels::command(const std::string& script, std::vector<std::string> words) const
{
	const fs::path path = root_ / "scripts" / script;
	if (!fs::is_regular_file(path))
		throw Error(fmt::format("{}: not there: is {} a whole checkout?", path.string(), root_.string()));
	std::vector<std::string> argv = {"/usr/bin/python3", path.string()};
	argv.insert(argv.end(), words.begin(), words.end());
	return argv;
}

std::vector<Step> Kernels::steps() const
{
	const std::string what = "scripts/kernel.py steps";
	std::vector<Step> steps;
	const json answer = last_line(capture(command("kernel.py", {"steps"}), what), what);
	for (const auto& entry : member<json>(answer, "steps", what))
		steps.push_back({member<std::string>(entry, "name", what), member<std::string>(entry, "subject", what)});
	return steps;
}

Kernel Kernels::build(const std::string& step) const
{
	std::vector<std::string> words = {"build", "--step", step};
	if (!options_.linux_dir.empty())
		words.insert(words.end(), {"--linux", options_.linux_dir});
	for (const auto& fragment : options_.fragments)
		words.insert(words.end(), {"--config", fragment});
	for (const auto& profile : options_.profiles)
		words.insert(words.end(), {"--profile", profile});

	const std::string what = fmt::format("building step {}", step);
	const json answer = last_line(capture(command("kernel.py", words), what), what);
	const auto text = [&](const char* name) { return member<std::string>(answer, name, what); };
	return {text("step"), text("subject"), text("key"), text("config_digest"), text("compiler"), text("kernel_release"),
		text("bzimage"), text("initramfs"), text("modules_dir")};
}

Programs Kernels::programs() const
{
	const std::string what = "building the programs' image";
	const json answer = last_line(capture(command("image.py", {"programs"}), what), what);
	return {member<std::string>(answer, "image", what), member<std::uint64_t>(answer, "bytes", what), member<std::string>(answer, "key", what)};
}

} // namespace pageout::bench
