// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/trace.h"

#include "pageout/bench/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <cstring>

namespace pageout::bench {

static_assert(std::endian::native == std::endian::little, "the guest is little-endian, and so has the host to be");

namespace {

constexpr std::size_t record_bytes = 48;
constexpr std::uint32_t magic = 0x65617407;
constexpr std::uint32_t notify = 1u << (10 + 16);

struct Record {
	std::uint64_t time_ns;
	std::uint32_t action;
	std::uint32_t cpu;
	std::size_t bytes; ///< with its payload
};

template <typename T> T load(std::string_view from, std::size_t offset)
{
	T value;
	std::memcpy(&value, from.data() + offset, sizeof value);
	return value;
}

/// The record that begins at `at`; false, with the reason, where none does.
bool read_record(std::string_view stream, std::size_t at, Record& record, std::string& damage)
{
	if (stream.size() - at < record_bytes) {
		damage = fmt::format("a record is cut at byte {}: {} bytes are left", at, stream.size() - at);
		return false;
	}
	const auto view = stream.substr(at);
	if (load<std::uint32_t>(view, 0) != magic) {
		damage = fmt::format("no record begins at byte {}", at);
		return false;
	}
	record.time_ns = load<std::uint64_t>(view, 8);
	record.action = load<std::uint32_t>(view, 28);
	record.cpu = load<std::uint32_t>(view, 40);
	record.bytes = record_bytes + load<std::uint16_t>(view, 46);
	if (record.bytes > view.size()) {
		damage = fmt::format("the payload of the record at byte {} is cut", at);
		return false;
	}
	return true;
}

} // namespace

TraceSplit split_by_cpu(std::string_view stream)
{
	TraceSplit split;
	Record record;
	for (std::size_t at = 0; at < stream.size() && read_record(stream, at, record, split.damage); at += record.bytes)
		split.cpus[record.cpu].append(stream.substr(at, record.bytes));
	return split;
}

std::string records_between(std::string_view stream, std::uint64_t after_ns, std::uint64_t until_ns)
{
	std::string window, damage;
	Record record;
	for (std::size_t at = 0; at < stream.size() && read_record(stream, at, record, damage); at += record.bytes)
		if (!(record.action & notify) && record.time_ns > after_ns && record.time_ns <= until_ns)
			window.append(stream.substr(at, record.bytes));
	return window;
}

WorkloadOutput read_workload_output(std::string_view text, bool strict)
{
	using nlohmann::json;
	WorkloadOutput output;

	for (const auto& raw : split(text, '\n')) {
		if (trim(raw).empty())
			continue;
		const json line = json::parse(raw, nullptr, false);
		if (!line.is_object() || !line.contains("event") || !line["event"].is_string()) {
			if (strict && output.damage.empty())
				output.damage = fmt::format("the workload printed what is no event: {:.120}", raw);
			continue;
		}
		const std::string event = line["event"];
		try {
			if (event == "start") {
				output.started = true;
			} else if (event == "end") {
				output.ended = true;
			} else if (event == "corruption") {
				if (output.corruption.empty())
					output.corruption = raw;
			} else if (event == "phase" || event == "pass") {
				Phase phase;
				phase.pass = line.at("pass");
				phase.ns = line.at("ns");
				phase.pages = line.at("pages");
				phase.end_ns = line.value("end_ns", std::uint64_t{0});
				if (event == "phase")
					phase.name = line.at("phase");
				(event == "phase" ? output.phases : output.passes).push_back(std::move(phase));
			}
		} catch (const json::exception& error) {
			if (output.damage.empty())
				output.damage = fmt::format("the workload's event {:.120}: {}", raw, error.what());
		}
	}
	return output;
}

} // namespace pageout::bench
