// SPDX-License-Identifier: GPL-2.0-only
//
// A comparison as text for a terminal and as Markdown. No arithmetic here: it shows what compare.cc found.
#include "pageout/bench/compare.h"

#include "pageout/bench/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pageout::bench {

namespace {

std::string grouped(double value)
{
	std::string digits = fmt::format("{:.0f}", std::abs(value));
	for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
		digits.insert(static_cast<std::size_t>(at), ",");
	return (value < 0 ? "-" : "") + digits;
}

std::string bytes_text(double bytes)
{
	const double kib = bytes / 1024;
	return kib < 10000 ? grouped(kib) + " KiB" : grouped(kib / 1024) + " MiB";
}

std::string number_text(double value, const std::string& unit)
{
	if (unit == "s")
		return fmt::format("{:.{}f}", value, value >= 100 ? 1 : value >= 0.1 ? 2 : 4);
	if (unit == "pages" || unit == "x")
		return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
	if (unit == "ns")
		return fmt::format("{:.{}f} us", value / 1000, value < 100'000 ? 1 : 0);
	return grouped(value);
}

std::string value_text(const Json& cell, const std::string& unit)
{
	std::string text = number_text(cell["median"].get<double>(), unit);
	if (cell["n"].get<std::size_t>() > 1 && cell["min"] != cell["max"])
		text += fmt::format(" ({}..{})", number_text(cell["min"].get<double>(), unit), number_text(cell["max"].get<double>(), unit));
	return text;
}

std::string ratio_text(const Json& ratio)
{
	if (!ratio.is_number())
		return "new";
	const double value = ratio.get<double>();
	return fmt::format("{:.{}f}x", value, value >= 100 ? 0 : value >= 10 ? 1 : value < 0.1 ? 3 : 2);
}

/// A dumb display width: every code point is one column.
std::size_t width(const std::string& text)
{
	return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t columns, bool left = false)
{
	const std::string blank(columns > width(text) ? columns - width(text) : 0, ' ');
	return left ? text + blank : blank + text;
}

const char* group_title(const std::string& group)
{
	if (group == "seconds") return "Seconds of every pass and phase";
	if (group == "time") return "The steady pass and the disk's own limit";
	if (group == "shape") return "Shape of the requests, and the kernel's work";
	if (group == "block") return "Block layer";
	if (group == "latency") return "Latency";
	if (group == "vmstat") return "/proc/vmstat";
	return "Other";
}

std::string headline(const Json& table)
{
	return fmt::format("{}: {} on {}, {} of memory, {} LRU, page-cluster {}, {} time", table["scenario"].get<std::string>(), table["workload"].get<std::string>(),
			   table["disk"].is_string() ? table["disk"].get<std::string>() : "no disk",
			   table["mem_bytes"].is_number() ? format_size(table["mem_bytes"].get<std::uint64_t>()) : "?", table["lru"].is_string() ? table["lru"].get<std::string>() : "?",
			   table["page_cluster"].dump(), table["clock"].is_string() ? table["clock"].get<std::string>() : "?");
}

std::vector<std::string> sample_notes(const Json& table)
{
	std::vector<std::string> notes;
	bool several = false, all_identical = true, varied = false;
	for (const auto& column : table["columns"]) {
		several |= column["samples"].get<std::size_t>() > 1;
		all_identical &= column["samples_identical"].get<bool>();
		varied |= column["samples_varied"].get<bool>();
		if (column["samples"].get<std::size_t>() > 1 && !column["samples_identical"].get<bool>() && !column["samples_varied"].get<bool>() &&
		    table["clock"] == "virtual")
			notes.push_back(fmt::format("{}: its {} samples differ, which virtual time forbids: something of the host got in", column["label"].get<std::string>(),
						    column["samples"].get<std::size_t>()));
	}
	if (varied)
		notes.emplace_back("Samples begin at different moments (--vary): their ranges say how much of a number is chance.");
	if (several && all_identical && table["clock"] == "virtual")
		notes.emplace_back("All samples of a column are identical to the byte, host times apart: virtual time has no spread, by construction.");
	else if (several)
		notes.emplace_back("Values are medians, with (minimum..maximum) where the samples differ.");
	return notes;
}

std::string baseline_note(const Json& table)
{
	std::string note;
	for (const auto& column : table["columns"])
		if (column["baseline"].is_number()) {
			const auto& base = table["columns"][column["baseline"].get<std::size_t>()];
			note += fmt::format("{}{} against {}", note.empty() ? "" : ", ", column["label"].get<std::string>(), base["label"].get<std::string>());
		}
	return note;
}

/// Two lines of a summary as the message of 2012 gave it; sizes are binary.
std::string summary_block(const Json& table, std::size_t index)
{
	const auto find = [&](const std::string& name) -> std::pair<std::string, std::string> {
		for (const auto& row : table["rows"])
			if (row["name"] == name && !row["cells"][index].is_null()) {
				const auto& cell = row["cells"][index];
				return {grouped(cell["median"].get<double>()), cell["bytes"].is_number() ? bytes_text(cell["bytes"].get<double>()) : ""};
			}
		return {"0", ""};
	};
	const auto sum = [&](const std::string& side) -> std::pair<std::string, std::string> {
		double count = 0, bytes = 0;
		for (const auto& row : table["rows"])
			if ((row["name"] == side + " Merges (bio)" || row["name"] == side + " Merges (request)") && !row["cells"][index].is_null()) {
				count += row["cells"][index]["median"].get<double>();
				if (row["cells"][index]["bytes"].is_number())
					bytes += row["cells"][index]["bytes"].get<double>();
			}
		return {grouped(count), bytes_text(bytes)};
	};
	std::string text;
	const auto line = [&](const std::string& left, const std::pair<std::string, std::string>& l, const std::string& right, const std::pair<std::string, std::string>& r) {
		text += fmt::format("  {:<18}{:>10}  {:>11}   {:<18}{:>10}  {:>11}\n", left + ":", l.first, l.second, right + ":", r.first, r.second);
	};
	line("Reads Queued", find("Reads Queued"), "Writes Queued", find("Writes Queued"));
	line("Read Dispatches", find("Read Dispatches"), "Write Dispatches", find("Write Dispatches"));
	line("Reads Requeued", find("Reads Requeued"), "Writes Requeued", find("Writes Requeued"));
	line("Reads Completed", find("Reads Completed"), "Writes Completed", find("Writes Completed"));
	line("Read Merges", sum("Read"), "Write Merges", sum("Write"));
	line("IO unplugs", find("IO unplugs"), "Timer unplugs", find("Timer unplugs"));
	return text;
}

std::string change_line(const Json& change)
{
	const auto unit = change["unit"].get<std::string>();
	return fmt::format("{}: {}: {} -> {} ({})", change["column"].get<std::string>(), change["row"].get<std::string>(), number_text(change["from"].get<double>(), unit),
			   number_text(change["to"].get<double>(), unit), ratio_text(change["ratio"]));
}

/// The columns whose before/after blocks are shown: all when they are few, else the baseline and the last.
std::vector<std::size_t> block_columns(const Json& table)
{
	std::vector<std::size_t> all;
	const std::size_t n = table["columns"].size();
	if (n <= 3) {
		for (std::size_t i = 0; i < n; ++i)
			all.push_back(i);
		return all;
	}
	const Json& base = table["columns"][n - 1]["baseline"];
	if (base.is_number())
		all.push_back(base.get<std::size_t>());
	all.push_back(n - 1);
	return all;
}

/// The summary's lines as cells of text: the first cell names the line.
std::vector<std::vector<std::string>> summary_cells(const Json& summary)
{
	std::vector<std::vector<std::string>> lines;
	std::vector<std::string> head = {""};
	for (const auto& label : summary["columns"])
		head.push_back(label.get<std::string>());
	lines.push_back(head);
	const auto mark = [](const Json& cell, const char* name) -> std::string {
		const Json& verdict = cell[fmt::format("{}_verdict", name)];
		if (!verdict.is_string())
			return "";
		return verdict == "better" ? " +" : verdict == "worse" ? " !" : verdict == "same" ? " =" : verdict == "unclear" ? " ~" : "";
	};
	for (const auto& line : summary["lines"]) {
		std::vector<std::string> seconds = {fmt::format("{}, {}, {} LRU, page-cluster {}", line["scenario"].get<std::string>(),
								line["disk"].is_string() ? line["disk"].get<std::string>() : "no disk",
								line["lru"].is_string() ? line["lru"].get<std::string>() : "?", line["page_cluster"].dump())};
		std::vector<std::string> limit = {"  the disk alone would need"}, reads = {"  pages a read request"}, writes = {"  pages a write request"};
		for (const auto& cell : line["cells"]) {
			const auto put = [&](std::vector<std::string>& into, const char* name, const char* unit, const std::string& more) {
				into.push_back(cell.is_null() || !cell[name].is_number() ? "-" : number_text(cell[name].get<double>(), unit) + more + mark(cell, name));
			};
			put(seconds, "seconds", "s", " s" + (!cell.is_null() && cell["times_limit"].is_number() ? fmt::format(" ({}x)", number_text(cell["times_limit"].get<double>(), "x")) : ""));
			if (cell.is_null() || !cell["media_limit_s"].is_number())
				limit.emplace_back("-");
			else
				limit.push_back(number_text(cell["media_limit_s"].get<double>(), "s") + " s");
			put(reads, "pages_per_read_request", "pages", "");
			put(writes, "pages_per_write_request", "pages", "");
		}
		for (auto& row : {seconds, limit, reads, writes})
			lines.push_back(row);
	}
	return lines;
}

constexpr const char* summary_title = "Where the kernel loses, and what each step changes: seconds of a steady pass (times the disk's own limit)";

std::string summary_text(const Json& summary)
{
	const auto lines = summary_cells(summary);
	std::vector<std::size_t> widths(lines.front().size());
	for (const auto& line : lines)
		for (std::size_t i = 0; i < line.size(); ++i)
			widths[i] = std::max(widths[i], width(line[i]));
	std::string out = fmt::format("{}\n", summary_title);
	for (const auto& line : lines) {
		std::string text = "  " + padded(line[0], widths[0], true);
		for (std::size_t i = 1; i < line.size(); ++i)
			text += "  " + padded(line[i], widths[i]);
		out += text + "\n";
	}
	return out + "\n";
}

std::string summary_markdown(const Json& summary)
{
	std::string out = fmt::format("## {}\n\n", summary_title);
	bool head = true;
	for (const auto& line : summary_cells(summary)) {
		out += "|";
		for (const auto& cell : line)
			out += fmt::format(" {} |", cell);
		out += "\n";
		if (head) {
			out += "|---|";
			for (std::size_t i = 1; i < line.size(); ++i)
				out += "---:|";
			out += "\n";
		}
		head = false;
	}
	return out + "\n\"+\" is better than the baseline, \"!\" is worse, \"=\" is within 1 %, \"~\" is unclear: the samples' ranges overlap.\n\n";
}

} // namespace

std::string comparison_text(const Json& comparison)
{
	std::string out;
	for (const auto& table : comparison["tables"]) {
		const auto& columns = table["columns"];
		out += headline(table) + "\n" + std::string(width(headline(table)), '=') + "\n";
		for (const auto& column : columns)
			out += fmt::format("  {:<24} {}{}\n", column["label"].get<std::string>(), column["subject"].get<std::string>(),
					   column["samples"].get<std::size_t>() > 1 ? fmt::format(" (n = {})", column["samples"].get<std::size_t>()) : "");
		const auto& differences = table["environment"]["differences"];
		out += !differences.empty() ? "\nThe environments differ:\n" : columns.size() > 1 ? "\nThe environments are the same.\n" : "";
		for (const auto& difference : differences) {
			out += fmt::format("  {}\n", difference["field"].get<std::string>());
			for (std::size_t i = 0; i < columns.size(); ++i)
				out += fmt::format("    {:<22} {}\n", columns[i]["label"].get<std::string>(),
						   difference["values"][i].is_null() ? "-" : difference["values"][i].get<std::string>());
		}
		for (const auto& note : sample_notes(table))
			out += note + "\n";
		if (const std::string note = baseline_note(table); !note.empty())
			out += fmt::format("Ratios: {}. \"+\" is better, \"!\" is worse, \"=\" within 1 %, \"~\" the samples' ranges overlap.\n", note);

		// Values and ratios of one column stand in two sub-columns.
		std::vector<std::size_t> value_width(columns.size()), ratio_width(columns.size());
		std::size_t name_width = 0;
		std::vector<std::vector<std::pair<std::string, std::string>>> body;
		for (const auto& row : table["rows"]) {
			std::vector<std::pair<std::string, std::string>> line;
			name_width = std::max(name_width, width(row["name"].get<std::string>()));
			for (std::size_t i = 0; i < columns.size(); ++i) {
				const auto& cell = row["cells"][i];
				std::string value = cell.is_null() ? "-" : value_text(cell, row["unit"].get<std::string>());
				std::string ratio;
				if (!cell.is_null() && cell["bytes"].is_number())
					value += fmt::format(" {:>9}", bytes_text(cell["bytes"].get<double>()));
				if (!cell.is_null() && cell["verdict"].is_string()) {
					const auto verdict = cell["verdict"].get<std::string>();
					ratio = ratio_text(cell["ratio"]) + (verdict == "better" ? " +" : verdict == "worse" ? " !" : verdict == "same" ? " =" : verdict == "unclear" ? " ~" : "  ");
				}
				value_width[i] = std::max(value_width[i], width(value));
				ratio_width[i] = std::max(ratio_width[i], width(ratio));
				line.emplace_back(value, ratio);
			}
			body.push_back(std::move(line));
		}
		for (std::size_t i = 0; i < columns.size(); ++i) {
			const std::size_t label = width(columns[i]["label"].get<std::string>());
			const std::size_t gap = ratio_width[i] ? ratio_width[i] + 1 : 0;
			if (label > value_width[i] + gap)
				value_width[i] = label - gap;
		}
		std::string group;
		for (std::size_t r = 0; r < body.size(); ++r) {
			const auto& row = table["rows"][r];
			if (row["group"] != group) {
				group = row["group"].get<std::string>();
				out += fmt::format("\n{}\n{}", group_title(group), padded("", name_width + 2, true));
				for (std::size_t i = 0; i < columns.size(); ++i)
					out += "  " + padded(columns[i]["label"].get<std::string>(), value_width[i] + (ratio_width[i] ? ratio_width[i] + 1 : 0));
				out += "\n";
			}
			std::string line = "  " + padded(row["name"].get<std::string>(), name_width, true);
			for (std::size_t i = 0; i < columns.size(); ++i) {
				line += "  " + padded(body[r][i].first, value_width[i]);
				if (ratio_width[i])
					line += " " + padded(body[r][i].second, ratio_width[i]);
			}
			while (!line.empty() && line.back() == ' ')
				line.pop_back();
			out += line + "\n";
		}
		out += "\n";
		for (const std::size_t i : block_columns(table))
			out += fmt::format("{}:\n{}", columns[i]["label"].get<std::string>(), summary_block(table, i));
		for (const auto& [title, list] : {std::pair{"Worse", "worse"}, std::pair{"Better", "better"}}) {
			out += fmt::format("\n{}: {}\n", title, table[list].empty() ? "nothing" : std::to_string(table[list].size()));
			for (const auto& change : table[list])
				if (change["group"] != "vmstat")
					out += fmt::format("  {} {}\n", list == std::string_view("worse") ? "!" : "+", change_line(change));
		}
		out += "\n";
	}
	if (!comparison["tables"].empty())
		out += summary_text(comparison["summary"]);
	if (!comparison["left_out"].empty()) {
		out += "Left out, because only PASS enters a comparison:\n";
		for (const auto& entry : comparison["left_out"])
			out += fmt::format("  {} {}: {}: {} ({})\n", entry["scenario"].get<std::string>(), entry["step"].get<std::string>(), entry["status"].get<std::string>(),
					   entry["reason"].get<std::string>(), entry["file"].get<std::string>());
	}
	return out;
}

std::string comparison_markdown(const Json& comparison)
{
	const auto escaped = [](std::string text) {
		for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
			text.insert(at, "\\");
		return text;
	};
	std::string out;
	if (!comparison["tables"].empty())
		out += summary_markdown(comparison["summary"]);
	for (const auto& table : comparison["tables"]) {
		const auto& columns = table["columns"];
		out += fmt::format("## {}\n\n", headline(table));
		for (const auto& column : columns)
			out += fmt::format("- `{}`: {}{}\n", column["label"].get<std::string>(), column["subject"].get<std::string>(),
					   column["samples"].get<std::size_t>() > 1 ? fmt::format(" (n = {})", column["samples"].get<std::size_t>()) : "");
		out += "\n";
		const auto& differences = table["environment"]["differences"];
		if (differences.empty()) {
			out += "The environments are the same.\n";
		} else {
			out += "**The environments differ:**\n\n| |";
			for (const auto& column : columns)
				out += fmt::format(" {} |", escaped(column["label"].get<std::string>()));
			out += "\n|---|";
			for (std::size_t i = 0; i < columns.size(); ++i)
				out += "---|";
			out += "\n";
			for (const auto& difference : differences) {
				out += fmt::format("| {} |", difference["field"].get<std::string>());
				for (const auto& value : difference["values"])
					out += fmt::format(" {} |", value.is_null() ? "-" : escaped(value.get<std::string>()));
				out += "\n";
			}
		}
		out += "\n";
		for (const auto& note : sample_notes(table))
			out += note + "\n\n";
		if (const std::string note = baseline_note(table); !note.empty())
			out += fmt::format("Ratios: {}; within 1 % is no change, and \"~\" is none that the samples can tell: their ranges overlap.\n", note);

		std::string group;
		for (const auto& row : table["rows"]) {
			if (row["group"] != group) {
				group = row["group"].get<std::string>();
				out += fmt::format("\n### {}\n\n| |", group_title(group));
				for (const auto& column : columns)
					out += fmt::format(" {} |", escaped(column["label"].get<std::string>()));
				out += "\n|---|";
				for (std::size_t i = 0; i < columns.size(); ++i)
					out += "---:|";
				out += "\n";
			}
			out += fmt::format("| {} |", row["name"].get<std::string>());
			for (std::size_t i = 0; i < columns.size(); ++i) {
				const auto& cell = row["cells"][i];
				if (cell.is_null()) {
					out += " - |";
					continue;
				}
				out += " " + value_text(cell, row["unit"].get<std::string>());
				if (cell["bytes"].is_number())
					out += fmt::format(", {}", bytes_text(cell["bytes"].get<double>()));
				if (cell["verdict"].is_string()) {
					const auto verdict = cell["verdict"].get<std::string>();
					if (verdict == "worse")
						out += fmt::format(" (**{} worse**)", ratio_text(cell["ratio"]));
					else if (verdict == "better")
						out += fmt::format(" (**{} better**)", ratio_text(cell["ratio"]));
					else if (verdict != "same")
						out += fmt::format(" ({}{})", ratio_text(cell["ratio"]), verdict == "unclear" ? " ~" : "");
				}
				out += " |";
			}
			out += "\n";
		}
		out += "\n### Before and after, as blkparse sums up\n\n```\n";
		for (const std::size_t i : block_columns(table))
			out += fmt::format("{}:\n{}", columns[i]["label"].get<std::string>(), summary_block(table, i));
		out += "```\n";
		for (const auto& [title, list] : {std::pair{"What got worse", "worse"}, std::pair{"What got better", "better"}}) {
			out += fmt::format("\n### {}\n\n", title);
			if (table[list].empty())
				out += "Nothing.\n";
			for (const auto& change : table[list])
				if (change["group"] != "vmstat")
					out += fmt::format("- {}\n", change_line(change));
		}
		out += "\n";
	}
	if (!comparison["left_out"].empty()) {
		out += "## Left out, because only PASS enters a comparison\n\n| scenario | step | status | reason |\n|---|---|---|---|\n";
		for (const auto& entry : comparison["left_out"])
			out += fmt::format("| {} | {} | {} | {} |\n", entry["scenario"].get<std::string>(), entry["step"].get<std::string>(), entry["status"].get<std::string>(),
					   escaped(entry["reason"].get<std::string>()));
	}
	return out;
}

} // namespace pageout::bench
