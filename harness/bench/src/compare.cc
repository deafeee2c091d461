// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/compare.h"

#include "pageout/bench/error.h"
#include "pageout/bench/steps.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace pageout::bench {

namespace fs = std::filesystem;

namespace {

/// Which way a number has to go to be better; `none`: it says what happened, not how well.
enum class Better { none, lower, higher };

struct RowSpec {
	std::string group, name, field; ///< field: dotted path
	std::string unit;               ///< "s", "count", "pages", "x", "instructions", "ns"
	std::string bytes_field;        ///< "" or the path of the bytes that belong to a count
	Better better = Better::none;
	bool even_if_zero = true;
};

/// A change below this share is no change.
constexpr double same_share = 0.01;

std::vector<RowSpec> fixed_rows()
{
	std::vector<RowSpec> rows;
	const auto add = [&](RowSpec row) { rows.push_back(std::move(row)); };

	add({"time", "elapsed", "elapsed_s", "s", "", Better::lower, true});
	add({"time", "steady pass", "steady.seconds", "s", "", Better::lower, true});
	add({"time", "media limit of it", "media_limit_s", "s", "", Better::none, true});
	add({"time", "times the limit", "derived.steady_to_media_limit", "x", "", Better::lower, true});
	add({"shape", "steady: pages a read request", "steady.pages_per_read_request", "pages", "", Better::higher, true});
	add({"shape", "steady: pages a write request", "steady.pages_per_write_request", "pages", "", Better::higher, true});
	add({"shape", "all: pages a read request", "derived.pages_per_read_request", "pages", "", Better::higher, true});
	add({"shape", "all: pages a write request", "derived.pages_per_write_request", "pages", "", Better::higher, true});
	add({"shape", "kernel instructions a page", "kernel_instructions_per_page", "instructions", "", Better::lower, true});
	for (const auto& [title, side] : {std::pair{"Read", "read"}, std::pair{"Write", "write"}}) {
		const auto count = [&](std::string name, const char* what, Better better, bool zero) {
			const std::string path = fmt::format("block.{}.{}", side, what);
			add({"block", std::move(name), path + ".count", "count", path + ".bytes", better, zero});
		};
		count(fmt::format("{}s Queued", title), "queued", Better::lower, true);
		count(fmt::format("{} Dispatches", title), "dispatched", Better::lower, true);
		count(fmt::format("{}s Requeued", title), "requeued", Better::lower, false);
		count(fmt::format("{}s Completed", title), "completed", Better::none, true);
		count(fmt::format("{} Merges (bio)", title), "merged_bio", Better::none, true);
		count(fmt::format("{} Merges (request)", title), "merged_request", Better::none, true);
		count(fmt::format("{}s Failed", title), "failed", Better::lower, false);
	}
	add({"block", "IO unplugs", "block.unplugs", "count", "", Better::none, true});
	add({"block", "Timer unplugs", "block.timer_unplugs", "count", "", Better::none, false});
	add({"block", "Flushes", "block.flush.queued.count", "count", "", Better::none, false});
	add({"block", "Discards", "block.discard.queued.count", "count", "block.discard.queued.bytes", Better::none, false});
	for (const auto& side : {"read", "write"}) {
		add({"latency", fmt::format("{} queue to completion, median", side), fmt::format("latency.{}.q2c.p50_ns", side), "ns", "", Better::lower, false});
		add({"latency", fmt::format("{} queue to completion, 99 %", side), fmt::format("latency.{}.q2c.p99_ns", side), "ns", "", Better::lower, false});
	}
	return rows;
}

/// Counters of /proc/vmstat that say something of page-out; the others are in the records.
const std::map<std::string, Better>& vmstat_counters()
{
	static const std::map<std::string, Better> counters = {
		{"pswpin", Better::lower},
		{"pswpout", Better::lower},
		{"pgmajfault", Better::lower},
		{"pgscan_kswapd", Better::lower},
		{"pgscan_direct", Better::lower},
		{"pgsteal_kswapd", Better::none},
		{"pgsteal_direct", Better::none},
		{"allocstall_normal", Better::lower},
		{"allocstall_dma32", Better::lower},
		{"allocstall_movable", Better::lower},
		{"workingset_refault_anon", Better::lower},
		{"workingset_refault_file", Better::lower},
		{"workingset_activate_anon", Better::none},
		{"pgactivate", Better::none},
		{"pgdeactivate", Better::none},
		{"pgrefill", Better::lower},
		{"pgrotated", Better::none},
		{"nr_vmscan_write", Better::none},
		{"pageoutrun", Better::none},
		{"swap_ra", Better::none},
		{"swap_ra_hit", Better::none},
		{"thp_swpout", Better::none},
	};
	return counters;
}

bool is_shape_counter(const std::string& name)
{
	return starts_with(name, "swpin_") || starts_with(name, "swpout_") || starts_with(name, "pageout_");
}

struct Column {
	unsigned source = 0;
	std::string step;
	std::vector<const LoadedRecord*> records; ///< its samples
};

struct Cell {
	std::size_t n = 0;
	double median = 0, min = 0, max = 0;
};

std::optional<Cell> cell_of(const Column& column, const std::string& field)
{
	std::vector<double> values;
	for (const auto* record : column.records)
		if (const auto value = number_at(record->json, field))
			values.push_back(*value);
	if (values.empty())
		return std::nullopt;
	std::sort(values.begin(), values.end());
	const std::size_t half = values.size() / 2;
	return Cell{values.size(), values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2, values.front(), values.back()};
}

bool varied(const Column& column)
{
	return std::any_of(column.records.begin(), column.records.end(),
			   [](const LoadedRecord* r) { return r->json.value("jitter_us", 0) != 0; });
}

Json without_host(const Json& record)
{
	Json copy = record;
	copy.erase("host");
	copy.erase("sample");
	return copy;
}

/// What makes two records rows of the same table.
std::string configuration(const Json& r)
{
	std::string text;
	for (const auto* field : {"disk", "lru", "page_cluster", "mem_bytes", "clock", "passes"})
		text += fmt::format("{} ", r.contains(field) ? r[field].dump() : "null");
	if (r.contains("environment") && r["environment"].contains("settings"))
		text += r["environment"]["settings"].dump();
	if (r.contains("environment") && r["environment"].contains("profiles"))
		text += r["environment"]["profiles"].dump();
	return text;
}

std::vector<std::pair<std::string, std::vector<const LoadedRecord*>>> tables_of(const std::vector<const LoadedRecord*>& records, std::size_t sources)
{
	// Two sources that differ in configuration on purpose (page-cluster, disk, …) are compared all the same, provided
	// that each has only one configuration of the scenario: there is no doubt then what to compare with what.
	std::map<std::string, std::map<unsigned, std::set<std::string>>> configurations;
	for (const auto* record : records)
		configurations[record->json.value("scenario", "")][record->source].insert(configuration(record->json));
	const auto joined = [&](const std::string& scenario) {
		const auto& by_source = configurations[scenario];
		return sources > 1 && std::all_of(by_source.begin(), by_source.end(), [](const auto& entry) { return entry.second.size() == 1; });
	};

	std::vector<std::pair<std::string, std::vector<const LoadedRecord*>>> tables;
	for (const auto* record : records) {
		const std::string scenario = record->json.value("scenario", "");
		const std::string key = joined(scenario) ? scenario : scenario + " " + configuration(record->json);
		auto found = std::find_if(tables.begin(), tables.end(), [&](const auto& table) { return table.first == key; });
		if (found == tables.end())
			found = tables.insert(tables.end(), {key, {}});
		found->second.push_back(record);
	}
	std::sort(tables.begin(), tables.end(), [](const auto& left, const auto& right) { return left.first < right.first; });
	return tables;
}

std::vector<Column> columns_of(const std::vector<const LoadedRecord*>& records)
{
	std::vector<Column> columns;
	for (const auto* record : records) {
		const std::string step = record->json.value("step", "");
		auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return c.source == record->source && c.step == step; });
		if (found == columns.end())
			found = columns.insert(columns.end(), {record->source, step, {}});
		found->records.push_back(record);
	}
	std::stable_sort(columns.begin(), columns.end(), [](const Column& left, const Column& right) {
		return left.source != right.source ? left.source < right.source : step_before(left.step, right.step);
	});
	return columns;
}

/// The column that a column's ratios refer to, or itself.
std::size_t baseline_of(const std::vector<Column>& columns, std::size_t index)
{
	const unsigned first_source = columns.front().source;
	const auto find = [&](unsigned source, std::string_view step) -> std::optional<std::size_t> {
		for (std::size_t i = 0; i < columns.size(); ++i)
			if (columns[i].source == source && columns[i].step == step)
				return i;
		return std::nullopt;
	};
	if (columns[index].source != first_source)
		if (const auto same = find(first_source, columns[index].step))
			return *same;
	if (const auto base = find(first_source, "base"))
		return *base;
	// Without a base the first step that is no control.
	for (std::size_t i = 0; i < columns.size(); ++i)
		if (!starts_with(columns[i].step, "control:"))
			return i;
	return 0;
}

/// Fields of the environment in which the columns differ, or the records of one column among themselves.
Json environment_differences(const std::vector<Column>& columns, Json& common)
{
	static const std::set<std::string> told_elsewhere = {"kernel_key", "initramfs_key"}; // each step has its own, by construction
	std::map<std::string, std::vector<std::set<std::string>>> values;
	const auto note = [&](const std::string& field, std::size_t column, const Json& value) {
		auto& row = values[field];
		row.resize(columns.size());
		row[column].insert(value.is_string() ? value.get<std::string>() : value.dump());
	};
	for (std::size_t i = 0; i < columns.size(); ++i)
		for (const auto* record : columns[i].records) {
			for (const auto* field : {"disk", "mem_bytes", "clock", "passes"})
				if (record->json.contains(field))
					note(field, i, record->json[field]);
			if (Json argv = record->json.value("workload_argv", Json()); argv.is_array()) {
				// Samples that begin at different moments are told of elsewhere.
				const auto wait = std::find(argv.begin(), argv.end(), "--wait-us");
				if (wait != argv.end())
					argv.erase(wait, argv.end());
				note("workload_argv", i, argv);
			}
			if (record->json.contains("environment"))
				for (const auto& [field, value] : record->json["environment"].items())
					if (!told_elsewhere.count(field))
						note(field, i, value);
		}

	Json differences = Json::array();
	common = Json::object();
	for (auto& [field, row] : values) {
		row.resize(columns.size());
		const bool same = std::all_of(row.begin(), row.end(), [&](const auto& set) { return set == row.front() && set.size() == 1; });
		if (same) {
			common[field] = *row.front().begin();
			continue;
		}
		Json cells = Json::array();
		for (const auto& set : row) {
			std::string text;
			for (const auto& value : set)
				text += (text.empty() ? "" : " | ") + value;
			cells.push_back(set.empty() ? Json(nullptr) : Json(text));
		}
		differences.push_back({{"field", field}, {"values", cells}});
	}
	return differences;
}

Json row_json(const RowSpec& spec, const std::vector<Column>& columns)
{
	static const std::map<Better, Json> names = {{Better::none, nullptr}, {Better::lower, "lower"}, {Better::higher, "higher"}};
	std::vector<std::optional<Cell>> cells;
	for (const auto& column : columns)
		cells.push_back(cell_of(column, spec.field));

	Json row = {{"group", spec.group}, {"name", spec.name}, {"field", spec.field}, {"unit", spec.unit}, {"better", names.at(spec.better)}, {"cells", Json::array()}};
	for (std::size_t i = 0; i < columns.size(); ++i) {
		if (!cells[i]) {
			row["cells"].push_back(nullptr);
			continue;
		}
		const Cell& cell = *cells[i];
		Json json = {{"n", cell.n}, {"median", cell.median}, {"min", cell.min}, {"max", cell.max}, {"bytes", nullptr}, {"ratio", nullptr}, {"verdict", nullptr}};
		if (!spec.bytes_field.empty())
			if (const auto bytes = cell_of(columns[i], spec.bytes_field))
				json["bytes"] = bytes->median;
		const std::size_t base = baseline_of(columns, i);
		if (base != i && cells[base]) {
			const double was = cells[base]->median;
			if (was != 0)
				json["ratio"] = cell.median / was;
			const double change = cell.median - was;
			const bool same = std::abs(change) <= same_share * std::abs(was);
			// Ranges of several samples that overlap: chance alone may have made the difference.
			const bool overlap = cell.n > 1 && cells[base]->n > 1 && cell.min <= cells[base]->max && cells[base]->min <= cell.max &&
					     (cell.min != cell.max || cells[base]->min != cells[base]->max);
			if (same)
				json["verdict"] = "same";
			else if (overlap)
				json["verdict"] = "unclear";
			else if (spec.better != Better::none)
				json["verdict"] = (change < 0) == (spec.better == Better::lower) ? "better" : "worse";
			else
				json["verdict"] = "changed";
		}
		row["cells"].push_back(json);
	}
	return row;
}

bool says_nothing(const Json& row, bool even_if_zero)
{
	bool any = false, nonzero = false;
	for (const auto& cell : row["cells"])
		if (!cell.is_null()) {
			any = true;
			nonzero |= cell["min"] != 0.0 || cell["max"] != 0.0;
		}
	return !any || (!nonzero && !even_if_zero);
}

/// Seconds of every pass and phase, as in the message of 2005; then all other rows.
std::vector<RowSpec> rows_for(const std::vector<Column>& columns)
{
	std::size_t passes = 0;
	std::map<std::string, std::size_t> phases;
	std::vector<std::string> phase_order;
	std::set<std::string> vmstat;
	for (const auto& column : columns)
		for (const auto* record : column.records) {
			const Json& r = record->json;
			if (r.contains("passes_s"))
				passes = std::max(passes, r["passes_s"].size());
			if (r.contains("phases_s") && r["phases_s"].is_object())
				for (const auto& [name, values] : r["phases_s"].items()) {
					if (!phases.count(name))
						phase_order.push_back(name);
					phases[name] = std::max(phases[name], values.size());
				}
			if (r.contains("vmstat") && r["vmstat"].is_object())
				for (const auto& [name, value] : r["vmstat"].items())
					if (vmstat_counters().count(name) || is_shape_counter(name))
						vmstat.insert(name);
		}

	std::vector<RowSpec> rows;
	for (std::size_t i = 0; i < passes; ++i)
		rows.push_back({"seconds", fmt::format("pass {}", i + 1), fmt::format("passes_s.{}", i), "s", "", Better::lower, true});
	for (const auto& name : phase_order)
		for (std::size_t i = 0; i < phases[name]; ++i)
			rows.push_back({"seconds", fmt::format("{} {}", name, i + 1), fmt::format("phases_s.{}.{}", name, i), "s", "", Better::lower, true});
	for (auto& row : fixed_rows())
		rows.push_back(std::move(row));
	for (const auto& name : vmstat) {
		const auto known = vmstat_counters().find(name);
		rows.push_back({"vmstat", name, "vmstat." + name, "count", "", known == vmstat_counters().end() ? Better::none : known->second, false});
	}
	return rows;
}

Json table_json(const std::vector<const LoadedRecord*>& records, const std::vector<std::string>& source_names)
{
	const auto columns = columns_of(records);
	const Json& first = columns.front().records.front()->json;
	const bool many_sources = std::any_of(columns.begin(), columns.end(), [&](const Column& c) { return c.source != columns.front().source; });

	Json table;
	for (const auto* field : {"scenario", "workload", "disk", "lru", "page_cluster", "mem_bytes", "clock", "passes"})
		table[field] = first.contains(field) ? first[field] : Json(nullptr);
	table["columns"] = Json::array();
	for (std::size_t i = 0; i < columns.size(); ++i) {
		const Column& column = columns[i];
		const Json& record = column.records.front()->json;
		const bool identical = std::all_of(column.records.begin(), column.records.end(), [&](const auto* r) { return without_host(r->json) == without_host(record); });
		const std::size_t base = baseline_of(columns, i);
		table["columns"].push_back({{"label", many_sources ? fmt::format("{}:{}", static_cast<char>('A' + column.source), column.step) : column.step},
					    {"step", column.step},
					    {"subject", record.value("subject", "")},
					    {"source", source_names.at(column.source)},
					    {"samples", column.records.size()},
					    {"samples_identical", identical},
					    {"samples_varied", varied(column)},
					    {"baseline", base == i ? Json(nullptr) : Json(base)}});
	}
	Json common;
	table["environment"]["differences"] = environment_differences(columns, common);
	table["environment"]["common"] = common;

	table["rows"] = Json::array();
	table["better"] = Json::array();
	table["worse"] = Json::array();
	for (const auto& spec : rows_for(columns)) {
		Json row = row_json(spec, columns);
		if (says_nothing(row, spec.even_if_zero))
			continue;
		for (std::size_t i = 0; i < columns.size(); ++i) {
			const Json& cell = row["cells"][i];
			if (cell.is_null() || !cell["verdict"].is_string() || (cell["verdict"] != "better" && cell["verdict"] != "worse"))
				continue;
			table[cell["verdict"].get<std::string>()].push_back({{"row", spec.name},
									     {"group", spec.group},
									     {"unit", spec.unit},
									     {"column", table["columns"][i]["label"]},
									     {"from", row["cells"][baseline_of(columns, i)]["median"]},
									     {"to", cell["median"]},
									     {"ratio", cell["ratio"]}});
		}
		table["rows"].push_back(row);
	}
	return table;
}

/// One line a table: how far from the disk's own limit each step's steady pass is. Columns are the steps of all tables.
Json summary_json(const Json& tables)
{
	std::vector<std::string> labels;
	for (const auto& table : tables)
		for (const auto& column : table["columns"])
			if (std::find(labels.begin(), labels.end(), column["label"]) == labels.end())
				labels.push_back(column["label"]);
	std::stable_sort(labels.begin(), labels.end(), step_before);

	Json summary = {{"columns", labels}, {"lines", Json::array()}};
	for (const auto& table : tables) {
		Json line = {{"scenario", table["scenario"]}, {"disk", table["disk"]}, {"lru", table["lru"]}, {"page_cluster", table["page_cluster"]}, {"cells", Json::array()}};
		for (const auto& label : labels) {
			Json cell = nullptr;
			for (std::size_t i = 0; i < table["columns"].size(); ++i) {
				if (table["columns"][i]["label"] != label)
					continue;
				cell = Json::object();
				for (const auto& [name, field] : {std::pair{"seconds", "steady.seconds"}, std::pair{"media_limit_s", "media_limit_s"},
								  std::pair{"times_limit", "derived.steady_to_media_limit"},
								  std::pair{"pages_per_read_request", "steady.pages_per_read_request"},
								  std::pair{"pages_per_write_request", "steady.pages_per_write_request"}}) {
					cell[name] = nullptr;
					cell[fmt::format("{}_verdict", name)] = nullptr;
					for (const auto& row : table["rows"])
						if (row["field"] == field && !row["cells"][i].is_null()) {
							cell[name] = row["cells"][i]["median"];
							cell[fmt::format("{}_verdict", name)] = row["cells"][i]["verdict"];
						}
				}
			}
			line["cells"].push_back(cell);
		}
		summary["lines"].push_back(line);
	}
	return summary;
}

bool is_record(const Json& json)
{
	return json.is_object() && json.contains("schema") && json["schema"] == record_schema && json.contains("status") && json.contains("step");
}

} // namespace

std::vector<LoadedRecord> load_records(const fs::path& where, unsigned source)
{
	std::vector<fs::path> files;
	std::error_code error;

	if (fs::is_directory(where, error)) {
		for (auto at = fs::recursive_directory_iterator(where, error); !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
			if (at->path().filename().string().front() == '.' && at->is_directory()) {
				at.disable_recursion_pending(); // a run that is still being made
				continue;
			}
			if (at->path().filename() == "record.json")
				files.push_back(at->path());
		}
		if (error)
			throw Error(fmt::format("{}: cannot read: {}", where.string(), error.message()));
		if (files.empty())
			throw Error(fmt::format("{}: no record.json in it or below: give a record, or the folder that `pageout-bench run --out` filled", where.string()));
		std::sort(files.begin(), files.end());
	} else {
		files.push_back(where);
	}

	std::vector<LoadedRecord> records;
	for (const auto& file : files) {
		Json json;
		try {
			json = Json::parse(read_file(file));
		} catch (const Json::parse_error& parse) {
			throw Error(fmt::format("{}: no whole JSON (byte {}): it was cut or damaged; run that step again", file.string(), parse.byte));
		}
		if (!is_record(json))
			throw Error(fmt::format("{}: no record of schema {}", file.string(), record_schema));
		records.push_back({file, source, std::move(json)});
	}
	return records;
}

Json compare_records(const std::vector<LoadedRecord>& records, const std::vector<std::string>& source_names)
{
	Json comparison = {{"schema", "pageout-comparison/1"}, {"sources", source_names}, {"tables", Json::array()}, {"left_out", Json::array()}};
	std::vector<const LoadedRecord*> good;
	for (const auto& record : records) {
		if (record.json["status"] == "PASS") {
			good.push_back(&record);
			continue;
		}
		comparison["left_out"].push_back({{"file", record.file.string()},
						  {"scenario", record.json.value("scenario", "")},
						  {"step", record.json.value("step", "")},
						  {"status", record.json["status"]},
						  {"reason", record.json.value("reason", "")}});
	}
	for (const auto& [key, members] : tables_of(good, source_names.size()))
		comparison["tables"].push_back(table_json(members, source_names));
	comparison["summary"] = summary_json(comparison["tables"]);
	return comparison;
}

std::string first_difference(const fs::path& left, const fs::path& right)
{
	const auto read = [](const fs::path& folder) {
		auto records = load_records(fs::is_directory(folder) ? folder / "record.json" : folder, 0);
		Json json = std::move(records.front().json);
		json.erase("host");
		json.erase("sample");
		return json;
	};
	const Json first = read(left), second = read(right);
	// What went in explains what came out, so it is looked at first.
	for (const auto* inputs : {"environment", "job", "qemu_command"})
		if (first.contains(inputs) && second.contains(inputs) && first[inputs] != second[inputs]) {
			const Json changes = Json::diff(first[inputs], second[inputs]);
			return fmt::format("the inputs differ: {}: {}", inputs, changes.front().dump());
		}
	const Json a = first.flatten(), b = second.flatten();
	for (const auto& [path, value] : a.items())
		if (!b.contains(path) || b[path] != value)
			return fmt::format("record {}: {} against {}", path, value.dump(), b.contains(path) ? b[path].dump() : "nothing");
	for (const auto& [path, value] : b.items())
		if (!a.contains(path))
			return fmt::format("record {}: nothing against {}", path, value.dump());

	const auto traces = [](const fs::path& where) {
		std::map<std::string, fs::path> files;
		for (const auto& entry : fs::directory_iterator(fs::is_directory(where) ? where : where.parent_path()))
			if (starts_with(entry.path().filename().string(), "trace.blktrace."))
				files[entry.path().filename()] = entry.path();
		return files;
	};
	const auto ours = traces(left), theirs = traces(right);
	for (const auto* set : {&ours, &theirs})
		for (const auto& [name, path] : *set) {
			if (!ours.count(name) || !theirs.count(name))
				return fmt::format("{} is on one side only", name);
			const std::string x = read_file(ours.at(name)), y = read_file(theirs.at(name));
			if (x != y) {
				const auto at = std::mismatch(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(std::min(x.size(), y.size())), y.begin());
				return fmt::format("{} differs from byte {} on ({} against {} bytes)", name, at.first - x.begin(), x.size(), y.size());
			}
		}
	return {};
}

ControlCheck check_control(const std::vector<LoadedRecord>& records, double least_ratio)
{
	ControlCheck check;
	const auto dispatches_a_page = [&](std::string_view step) -> std::optional<double> {
		std::vector<double> values;
		for (const auto& record : records) {
			if (record.json.value("step", "") != step || record.json["status"] != "PASS")
				continue;
			const auto requests = number_at(record.json, "block.read.dispatched.count");
			const auto bytes = number_at(record.json, "block.read.dispatched.bytes");
			if (requests && bytes && *bytes > 0)
				values.push_back(*requests / (*bytes / page_bytes));
		}
		if (values.empty())
			return std::nullopt;
		std::sort(values.begin(), values.end());
		return values[values.size() / 2];
	};
	const auto base = dispatches_a_page("base"), control = dispatches_a_page("control:ra-unplugged");
	if (!base || !control) {
		check.reason = fmt::format("no PASS of {} that read anything", base ? "control:ra-unplugged" : "base");
		return check;
	}
	check.base = *base;
	check.control = *control;
	check.ratio = *control / *base;
	check.sees = check.ratio >= least_ratio;
	if (!check.sees)
		check.reason = fmt::format("the plug of swap readahead saves a factor of {:.2f} of read dispatches; at least {:.1f} has to be seen", check.ratio, least_ratio);
	return check;
}

} // namespace pageout::bench
