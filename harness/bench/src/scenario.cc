// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/scenario.h"

#include "pageout/bench/error.h"
#include "pageout/bench/models.h"
#include "pageout/bench/status.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <limits>
#include <set>

namespace pageout::bench {

namespace fs = std::filesystem;

namespace {

/// A table of the file: hands out its keys one by one, with the place in every complaint, and at the end names the
/// keys that nobody asked for.
class Table {
public:
	Table(const toml::table& table, const fs::path& file, std::string where)
		: table_(table), file_(file), where_(std::move(where)) {}

	[[noreturn]] void fail(const toml::node* node, std::string_view key, std::string_view why) const
	{
		const auto line = node ? node->source().begin.line : table_.source().begin.line;
		throw Error(fmt::format("{}:{}: {}: {}", file_.string(), line ? line : 1, path(key), why), 2);
	}

	bool has(std::string_view key) const { return table_.contains(key); }

	template <typename T> void read(std::string_view key, T& into)
	{
		if (const toml::node* node = take(key))
			into = value<T>(*node, key);
	}

	void size(std::string_view key, std::uint64_t& into)
	{
		const toml::node* node = take(key);
		if (!node)
			return;
		if (const auto number = node->value_exact<std::int64_t>(); number && *number >= 0) {
			into = static_cast<std::uint64_t>(*number);
			return;
		}
		try {
			into = parse_size(value<std::string>(*node, key));
		} catch (const Error& error) {
			fail(node, key, error.what());
		}
	}

	void one_of(std::string_view key, std::string& into, const std::vector<std::string>& allowed)
	{
		const toml::node* node = take(key);
		if (!node)
			return;
		into = value<std::string>(*node, key);
		if (std::find(allowed.begin(), allowed.end(), into) == allowed.end())
			fail(node, key, fmt::format("\"{}\" is none of {}", into, fmt::join(allowed, ", ")));
	}

	/// Numbers and booleans become text: what a kernel file or a module parameter takes is text anyway.
	void words(std::string_view key, std::map<std::string, std::string>& into)
	{
		const toml::node* node = take(key);
		if (!node)
			return;
		if (!node->is_table())
			fail(node, key, "has to be a table of texts");
		for (const auto& [name, entry] : *node->as_table())
			into[std::string(name.str())] = scalar(entry, fmt::format("{}.{}", key, name.str()));
	}

	std::string scalar(std::string_view key)
	{
		const toml::node* node = take(key);
		if (!node)
			fail(nullptr, key, "is missing");
		return scalar(*node, key);
	}

	std::optional<Table> table(std::string_view key)
	{
		const toml::node* node = take(key);
		if (!node)
			return std::nullopt;
		if (!node->is_table())
			fail(node, key, "has to be a table");
		return Table(*node->as_table(), file_, path(key));
	}

	std::vector<Table> tables(std::string_view key)
	{
		std::vector<Table> all;
		const toml::node* node = take(key);
		if (!node)
			return all;
		const auto* array = node->as_array();
		if (!array)
			fail(node, key, fmt::format("has to be an array of tables: [[{}]]", path(key)));
		for (const auto& entry : *array) {
			if (!entry.is_table())
				fail(&entry, key, "has to be a table");
			all.emplace_back(*entry.as_table(), file_, fmt::format("{}[{}]", path(key), all.size()));
		}
		return all;
	}

	/// All sub-tables, whatever their names.
	std::vector<std::pair<std::string, Table>> all_tables()
	{
		std::vector<std::pair<std::string, Table>> all;
		for (const auto& [name, node] : table_) {
			const std::string key(name.str());
			if (auto sub = table(key))
				all.emplace_back(key, std::move(*sub));
		}
		return all;
	}

	void require(std::string_view key) const
	{
		if (!table_.contains(key))
			fail(nullptr, key, "is missing");
	}

	/// Call last: a key that nobody read is a mistake of the author, not something to ignore.
	void finish() const
	{
		for (const auto& [name, node] : table_) {
			const std::string key(name.str());
			if (taken_.count(key))
				continue;
			const auto near = nearest(key, {taken_.begin(), taken_.end()});
			fail(&node, key, near ? fmt::format("unknown key; did you mean {}?", *near)
					      : fmt::format("unknown key; known here: {}", fmt::join(taken_, ", ")));
		}
	}

private:
	std::string path(std::string_view key) const
	{
		return where_.empty() ? std::string(key) : fmt::format("{}.{}", where_, key);
	}

	const toml::node* take(std::string_view key)
	{
		taken_.insert(std::string(key));
		return table_.get(key);
	}

	std::string scalar(const toml::node& node, std::string_view key) const
	{
		if (const auto text = node.value_exact<std::string>())
			return *text;
		if (const auto number = node.value_exact<std::int64_t>())
			return std::to_string(*number);
		if (const auto flag = node.value_exact<bool>())
			return *flag ? "1" : "0";
		fail(&node, key, "has to be a text, a whole number or a boolean");
	}

	template <typename T> T value(const toml::node& node, std::string_view key) const
	{
		if constexpr (std::is_same_v<T, std::string>) {
			if (const auto text = node.value_exact<std::string>())
				return *text;
			fail(&node, key, "has to be a text in quotes");
		} else if constexpr (std::is_same_v<T, bool>) {
			if (const auto flag = node.value_exact<bool>())
				return *flag;
			fail(&node, key, "has to be true or false");
		} else if constexpr (std::is_integral_v<T>) {
			const auto number = node.value_exact<std::int64_t>();
			if (!number)
				fail(&node, key, "has to be a whole number");
			const auto low = std::is_signed_v<T> ? std::int64_t{std::numeric_limits<T>::min()} : 0;
			if (*number < low || *number > std::int64_t{std::numeric_limits<T>::max()})
				fail(&node, key, fmt::format("{} is out of range", *number));
			return static_cast<T>(*number);
		} else if constexpr (std::is_same_v<T, std::optional<double>>) {
			if (const auto number = node.value<double>())
				return *number;
			fail(&node, key, "has to be a number");
		} else {
			T all; // a vector of texts
			const auto* array = node.as_array();
			if (!array)
				fail(&node, key, "has to be an array of texts");
			for (const auto& entry : *array)
				all.push_back(value<std::string>(entry, key));
			return all;
		}
	}

	const toml::table& table_;
	const fs::path& file_;
	std::string where_;
	std::set<std::string> taken_;
};

Expectation read_expectation(Table& table, Expectation expectation)
{
	table.one_of("status", expectation.status, status_names());
	if (auto bounds = table.table("bounds")) {
		for (auto& [field, limits] : bounds->all_tables()) {
			Bound bound{.field = field, .min = {}, .max = {}};
			limits.read("min", bound.min);
			limits.read("max", bound.max);
			limits.finish();
			if (!bound.min && !bound.max)
				limits.fail(nullptr, "min", "a bound needs min, max or both");
			expectation.bounds.push_back(bound);
		}
		bounds->finish();
	}
	return expectation;
}

Disk read_disk(Table& table)
{
	Disk disk;
	for (const auto* key : {"name", "role", "model", "size"})
		table.require(key);
	table.read("name", disk.name);
	table.one_of("role", disk.role, {"swap", "ext4", "raw"});
	table.one_of("model", disk.model, disk_model_names());
	table.size("size", disk.bytes);
	table.read("scheduler", disk.scheduler);
	table.read("priority", disk.priority);
	table.read("fixed", disk.fixed);
	table.words("params", disk.params);
	table.finish();
	constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyz0123456789";
	if (disk.name.empty() || disk.name.size() > 16 || disk.name.find_first_not_of(name_characters) != std::string::npos)
		table.fail(nullptr, "name", "a disk's name is 1 to 16 small letters and digits (it becomes /dev/simNAME)");
	if (disk.name == "prog")
		table.fail(nullptr, "name", "\"prog\" is the disk of the bench's own programs");
	if (disk.bytes < (1 << 20) || disk.bytes % 4096)
		table.fail(nullptr, "size", "a disk has at least 1M, in whole pages of 4096 bytes");
	return disk;
}

} // namespace

const Expectation& Scenario::expected_of(const std::string& step_label) const
{
	const auto found = expect_step.find(step_label);
	return found == expect_step.end() ? expect : found->second;
}

std::string Scenario::workload_name() const
{
	if (!fio_job.empty())
		return "fio:" + fs::path(fio_job).stem().string();
	const std::string program = fs::path(argv.front()).filename();
	return program == "pageout-load" && argv.size() > 1 ? argv[1] : program;
}

const Disk* Scenario::main_disk() const
{
	for (const auto& disk : disks)
		if (!trace.empty() && disk.name == trace.front())
			return &disk;
	return disks.empty() ? nullptr : &disks.front();
}

Scenario parse_scenario(const std::string& text, const fs::path& file)
{
	toml::table document;
	try {
		document = toml::parse(text, file.string());
	} catch (const toml::parse_error& error) {
		throw Error(fmt::format("{}:{}:{}: {}", file.string(), error.source().begin.line, error.source().begin.column,
					error.description()), 2);
	}

	Scenario s;
	s.file = file;
	Table top(document, file, "");

	std::string schema;
	for (const auto* key : {"schema", "workload"})
		top.require(key);
	top.one_of("schema", schema, {"pageout-scenario/1"});
	s.name = file.stem().string();
	top.read("description", s.description);
	top.size("mem", s.mem_bytes);
	top.read("cpus", s.cpus);
	top.read("passes", s.passes);
	top.read("samples", s.samples);
	top.read("seed", s.seed);
	top.read("seconds", s.seconds);
	top.read("group_kills", s.group_kills);
	top.read("vary", s.vary);
	top.one_of("lru", s.lru, {"classic", "mglru"});
	top.read("page_cluster", s.page_cluster);
	top.one_of("clock", s.clock, {"virtual", "host"});
	top.read("icount_shift", s.icount_shift);
	top.read("profiles", s.profiles);
	top.read("probe", s.probe);
	top.size("mailbox", s.mailbox_bytes);
	top.read("trace", s.trace);
	top.read("cmdline", s.cmdline);
	top.read("cmdline_remove", s.cmdline_remove);
	top.read("virtual_limit_s", s.virtual_limit_s);
	top.read("host_timeout_s", s.host_timeout_s);
	top.read("boot_timeout_s", s.boot_timeout_s);

	if (auto buffers = top.table("trace_buffers")) {
		buffers->read("kib", s.trace_buffer_kib);
		buffers->read("count", s.trace_buffer_count);
		buffers->finish();
	}
	if (auto workload = top.table("workload")) {
		workload->read("argv", s.argv);
		workload->words("env", s.env);
		workload->read("fio_job", s.fio_job);
		workload->finish();
		if (s.argv.empty() == s.fio_job.empty())
			workload->fail(nullptr, "argv", "a workload has argv or fio_job, one of them");
	}
	for (auto& table : top.tables("disk")) {
		Disk disk = read_disk(table);
		if (std::any_of(s.disks.begin(), s.disks.end(), [&](const Disk& d) { return d.name == disk.name; }))
			table.fail(nullptr, "name", fmt::format("two disks are named {}", disk.name));
		s.disks.push_back(std::move(disk));
	}
	for (auto& table : top.tables("setting")) {
		Setting setting;
		table.require("path");
		table.read("path", setting.path);
		setting.value = table.scalar("value");
		table.read("optional", setting.optional);
		table.finish();
		s.settings.push_back(std::move(setting));
	}
	if (auto steady = top.table("steady")) {
		steady->read("first_pass", s.steady_first_pass);
		steady->read("phases", s.steady_phases);
		steady->finish();
	}
	if (auto requires_table = top.table("requires")) {
		requires_table->read("step", s.needs_step);
		requires_table->one_of("accel", s.needs_accel, {"kvm"});
		requires_table->finish();
	}
	if (auto expect = top.table("expect")) {
		s.expect = read_expectation(*expect, {});
		if (auto steps = expect->table("step"))
			for (auto& [label, table] : steps->all_tables()) {
				s.expect_step[label] = read_expectation(table, s.expect);
				table.finish();
			}
		expect->finish();
	}
	top.finish();

	for (const auto& name : s.trace)
		if (std::none_of(s.disks.begin(), s.disks.end(), [&](const Disk& d) { return d.name == name; }))
			top.fail(document.get("trace"), "trace", fmt::format("there is no disk \"{}\"", name));
	if (s.cpus < 1 || s.cpus > 8)
		top.fail(document.get("cpus"), "cpus", "1 to 8");
	if (s.passes < 1)
		top.fail(document.get("passes"), "passes", "at least 1");
	if (s.samples < 1)
		top.fail(document.get("samples"), "samples", "at least 1");
	if (s.icount_shift > 10)
		top.fail(document.get("icount_shift"), "icount_shift", "0 to 10 (an instruction takes 2^shift ns)");
	if (s.page_cluster < 0 || s.page_cluster > 12)
		top.fail(document.get("page_cluster"), "page_cluster", "0 to 12");
	if (s.steady_first_pass >= s.passes)
		top.fail(document.get("steady"), "steady.first_pass", fmt::format("pass {} never comes: there are {}", s.steady_first_pass, s.passes));
	return s;
}

Scenario load_scenario(const fs::path& file)
{
	return parse_scenario(read_file(file), file);
}

fs::path find_scenario(const std::string& name_or_file, const fs::path& root)
{
	if (fs::is_regular_file(name_or_file))
		return name_or_file;
	const fs::path folder = root / "scenarios";
	if (name_or_file.find('/') == std::string::npos && fs::is_regular_file(folder / (name_or_file + ".toml")))
		return folder / (name_or_file + ".toml");

	std::vector<std::string> names;
	std::error_code error;
	for (const auto& entry : fs::directory_iterator(folder, error))
		if (entry.path().extension() == ".toml")
			names.push_back(entry.path().stem().string());
	std::sort(names.begin(), names.end());
	const auto near = nearest(name_or_file, names);
	throw Error(fmt::format("--scenario {}: neither a file nor one of: {}{}", name_or_file, fmt::join(names, ", "),
				near ? fmt::format("; did you mean {}?", *near) : ""), 2);
}

Scenario apply(Scenario s, const Overrides& o)
{
	if (o.disk_model) {
		const auto names = disk_model_names();
		if (std::find(names.begin(), names.end(), *o.disk_model) == names.end())
			throw Error(fmt::format("--disk {}: no such model; there are: {}", *o.disk_model, fmt::join(names, ", ")), 2);
		for (auto& disk : s.disks)
			if (!disk.fixed)
				disk.model = *o.disk_model;
	}
	if (o.mem_bytes) {
		if (*o.mem_bytes < (36ULL << 20) || *o.mem_bytes % (1 << 20))
			throw Error(fmt::format("--mem {}: at least 36M, in whole megabytes", format_size(*o.mem_bytes)), 2);
		s.mem_bytes = *o.mem_bytes;
	}
	if (o.passes) {
		if (*o.passes <= s.steady_first_pass)
			throw Error(fmt::format("--passes {}: the steady passes of {} begin with number {}: ask for at least {}",
						*o.passes, s.name, s.steady_first_pass, s.steady_first_pass + 1), 2);
		s.passes = *o.passes;
	}
	if (o.samples)
		s.samples = *o.samples;
	if (o.cpus)
		s.cpus = *o.cpus;
	const auto fills = [&](std::string_view mark) {
		return std::any_of(s.argv.begin(), s.argv.end(), [&](const std::string& word) { return word.find(mark) != std::string::npos; });
	};
	if (o.seed && !fills("{seed}"))
		throw Error(fmt::format("--seed: {}'s workload has no {{seed}} in its argv", s.name), 2);
	if (o.seconds && !fills("{seconds}"))
		throw Error(fmt::format("--seconds: {}'s workload has no {{seconds}} in its argv", s.name), 2);
	s.seed = o.seed.value_or(s.seed);
	s.seconds = o.seconds.value_or(s.seconds);
	s.vary |= o.vary;
	if (s.vary && (s.argv.empty() || s.argv.front() != "pageout-load"))
		throw Error(fmt::format("--vary: {}'s workload is not pageout-load, which alone can begin later", s.name), 2);
	if (o.icount_shift)
		s.icount_shift = *o.icount_shift;
	if (o.host_timeout_s)
		s.host_timeout_s = *o.host_timeout_s;
	if (o.lru)
		s.lru = *o.lru;
	if (o.clock)
		s.clock = *o.clock;
	if (!o.profiles.empty())
		s.profiles = o.profiles;
	if (o.page_cluster)
		s.page_cluster = *o.page_cluster;
	for (const auto& word : o.set) {
		const auto equals = word.find('=');
		if (equals == std::string::npos || equals == 0)
			throw Error(fmt::format("--set {}: write PATH=VALUE, like cluster_pages=32", word), 2);
		std::string path = word.substr(0, equals);
		if (path.front() != '/')
			path = "/sys/kernel/mm/pageout/" + path;
		s.settings.push_back({path, word.substr(equals + 1), false});
	}
	return s;
}

unsigned jitter_us(const Scenario& scenario, unsigned sample)
{
	constexpr unsigned step_us = 1237; // prime: the moments fall all over the 4 ms of a tick and the 8333 us of a revolution
	return scenario.vary ? (sample - 1) * step_us : 0;
}

std::vector<std::string> workload_argv(const Scenario& scenario, unsigned sample)
{
	std::vector<std::string> argv;
	for (std::string word : scenario.argv) {
		const auto fill = [&](std::string_view mark, const std::string& value) {
			for (auto at = word.find(mark); at != std::string::npos; at = word.find(mark, at + value.size()))
				word.replace(at, mark.size(), value);
		};
		fill("{passes}", std::to_string(scenario.passes));
		fill("{mem}", std::to_string(scenario.mem_bytes));
		fill("{seed}", std::to_string(scenario.seed));
		fill("{seconds}", std::to_string(scenario.seconds));
		argv.push_back(std::move(word));
	}
	if (scenario.vary)
		argv.insert(argv.end(), {"--wait-us", std::to_string(jitter_us(scenario, sample))});
	return argv;
}

} // namespace pageout::bench
