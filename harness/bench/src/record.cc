// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/record.h"

#include "pageout/bench/error.h"
#include "pageout/bench/models.h"
#include "pageout/bench/text.h"

#include "pageout/tally.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

namespace pageout::bench {

namespace {

constexpr double ns_per_s = 1e9;

Json count_json(const tally::Count& count)
{
	return {{"count", count.count}, {"bytes", count.bytes}};
}

Json direction_json(const tally::Direction& d)
{
	return {{"queued", count_json(d.queued)},
		{"dispatched", count_json(d.dispatched)},
		{"completed", count_json(d.completed)},
		{"requeued", count_json(d.requeued)},
		{"merged_bio", count_json(d.merged_bio())},
		{"merged_request", count_json(d.merged_request)},
		{"split", count_json(d.split)},
		{"failed", count_json(d.failed)}};
}

/// (Q + X) - (D - R + M) over the devices that have requests at all: a bio-based one (simdisk's synchronous models, zram,
/// brd) completes bios without ever making a request of them, so that nothing can be balanced there.
Json residue_json(const std::vector<tally::Device>& devices)
{
	std::int64_t read = 0, write = 0;
	for (const auto& device : devices)
		if (!device.bio_based && !device.above_another) {
			read += device.counts.read.identity_residue();
			write += device.counts.write.identity_residue();
		}
	return {{"read", read}, {"write", write}};
}

Json block_json(const tally::Counts& c, const std::vector<tally::Device>& devices)
{
	return {{"read", direction_json(c.read)},
		{"write", direction_json(c.write)},
		{"flush", direction_json(c.flush)},
		{"discard", direction_json(c.discard)},
		{"plugs", c.plugs},
		{"unplugs", c.unplugs},
		{"timer_unplugs", c.timer_unplugs},
		{"identity_residue", residue_json(devices)}};
}

std::optional<double> pages_per_request(const tally::Direction& d)
{
	if (!d.dispatched.count)
		return std::nullopt;
	return static_cast<double>(d.dispatched.bytes) / page_bytes / static_cast<double>(d.dispatched.count);
}

template <typename T> Json or_null(const std::optional<T>& value)
{
	return value ? Json(*value) : Json(nullptr);
}

std::span<const std::byte> bytes_of(std::string_view text)
{
	return std::as_bytes(std::span(text.data(), text.size()));
}

std::optional<double> median(std::vector<double> values)
{
	if (values.empty())
		return std::nullopt;
	std::sort(values.begin(), values.end());
	const std::size_t half = values.size() / 2;
	return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Json counters_json(const std::map<std::string, std::int64_t>& counters)
{
	Json object = Json::object();
	for (const auto& [name, value] : counters)
		object[name] = value;
	return object;
}

std::map<std::string, std::int64_t> difference(const std::map<std::string, std::int64_t>& before, std::map<std::string, std::int64_t> after)
{
	for (auto& [name, value] : after)
		if (const auto was = before.find(name); was != before.end())
			value -= was->second;
	return after;
}

/// /proc/stat: the first CPU line's times and the plain counters; per-interrupt counts are left out.
std::map<std::string, std::int64_t> read_proc_stat(std::string_view text)
{
	constexpr std::array<std::string_view, 10> times = {"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"};
	std::map<std::string, std::int64_t> counters;
	for (const auto& line : split(text, '\n')) {
		std::vector<std::string> words = split(line, ' ');
		std::erase(words, "");
		if (words.size() < 2)
			continue;
		const auto number = [](const std::string& word) { return std::strtoll(word.c_str(), nullptr, 10); };
		if (words[0] == "cpu") {
			for (std::size_t i = 1; i < words.size() && i <= times.size(); ++i)
				counters[fmt::format("{}_ticks", times[i - 1])] = number(words[i]);
		} else if (words[0] == "intr" || words[0] == "ctxt" || words[0] == "processes" || words[0] == "softirq") {
			counters[words[0]] = number(words[1]);
		}
	}
	return counters;
}

std::map<std::string, std::int64_t> read_diskstat(std::string_view text)
{
	constexpr std::array<std::string_view, 17> names = {
		"reads", "reads_merged", "sectors_read", "read_ms", "writes", "writes_merged", "sectors_written", "write_ms", "in_flight",
		"io_ms", "queue_ms", "discards", "discards_merged", "sectors_discarded", "discard_ms", "flushes", "flush_ms"};
	std::map<std::string, std::int64_t> counters;
	std::string flat(text);
	std::replace(flat.begin(), flat.end(), '\n', ' ');
	std::vector<std::string> words = split(flat, ' ');
	std::erase(words, "");
	for (std::size_t i = 0; i < words.size() && i < names.size(); ++i)
		counters[std::string(names[i])] = std::strtoll(words[i].c_str(), nullptr, 10);
	return counters;
}

/// The mailbox's frames, with the absence of one told apart from its being empty.
class Frames {
public:
	explicit Frames(const std::map<std::string, std::string>& frames) : frames_(frames) {}

	bool has(const std::string& name) const { return frames_.count(name); }
	std::string_view text(const std::string& name) const
	{
		const auto found = frames_.find(name);
		return found == frames_.end() ? std::string_view() : std::string_view(found->second);
	}
	/// null where the frame is absent or is no JSON (then it is named in `broken`).
	Json json(const std::string& name)
	{
		if (!has(name))
			return nullptr;
		Json value = Json::parse(text(name), nullptr, false);
		if (!value.is_discarded())
			return value;
		broken.push_back(name);
		return nullptr;
	}
	Json counters_over(const std::string& stem, std::map<std::string, std::int64_t> (*read)(std::string_view)) const
	{
		if (!has(stem + ".after"))
			return nullptr;
		return counters_json(difference(read(text(stem + ".before")), read(text(stem + ".after"))));
	}

	std::vector<std::string> broken;

private:
	const std::map<std::string, std::string>& frames_;
};

std::optional<std::int64_t> integer(const Json& object, const char* name)
{
	if (object.is_object() && object.contains(name) && object[name].is_number_integer())
		return object[name].get<std::int64_t>();
	return std::nullopt;
}

std::string text_of(const Json& object, const char* name)
{
	if (object.is_object() && object.contains(name) && object[name].is_string())
		return object[name].get<std::string>();
	return {};
}

std::string first_damage(const tally::Summary& summary)
{
	for (const auto& diagnostic : summary.diagnostics)
		if (diagnostic.severity != tally::Severity::note)
			return diagnostic.to_string();
	return summary.partial() ? "the trace could not be read whole" : "";
}

/// What the disk did while one phase (or pass) lasted.
struct Window {
	const Phase* phase;
	tally::Counts counts;
	std::uint64_t bytes_moved() const { return counts.read.completed.bytes + counts.write.completed.bytes; }
};

std::vector<Window> windows_of(std::string_view trace, const std::vector<Phase>& phases)
{
	tally::Options options;
	options.order = options.lives = false;
	std::vector<Window> windows;
	for (const auto& phase : phases) {
		if (!phase.end_ns || phase.ns > phase.end_ns)
			continue;
		const std::string part = records_between(trace, phase.end_ns - phase.ns, phase.end_ns);
		windows.push_back({&phase, tally::tally_bytes(bytes_of(part), "trace", options).total});
	}
	return windows;
}

Json window_json(const Window& window, std::uint64_t media_bytes_per_s)
{
	Json json = {{"pass", window.phase->pass}, {"phase", window.phase->name.empty() ? Json(nullptr) : Json(window.phase->name)},
		     {"seconds", static_cast<double>(window.phase->ns) / ns_per_s}, {"pages", window.phase->pages}};
	const auto side = [](const tally::Direction& d) {
		return Json{{"queued", count_json(d.queued)}, {"dispatched", count_json(d.dispatched)}, {"completed", count_json(d.completed)},
			    {"pages_per_request", or_null(pages_per_request(d))}};
	};
	json["read"] = side(window.counts.read);
	json["write"] = side(window.counts.write);
	json["unplugs"] = window.counts.unplugs;
	json["media_limit_s"] = media_bytes_per_s ? Json(static_cast<double>(window.bytes_moved()) / static_cast<double>(media_bytes_per_s)) : Json(nullptr);
	return json;
}

/// The steady passes: how long one takes, and how long the disk alone would need for the bytes that one moves.
struct Steady {
	std::vector<unsigned> passes;
	std::optional<double> seconds, media_limit_s, pages_per_read_request, pages_per_write_request;
};

Steady steady_of(const Scenario& scenario, const WorkloadOutput& output, const std::vector<Window>& pass_windows,
		 const std::vector<Window>& phase_windows, std::uint64_t media_bytes_per_s)
{
	const bool whole = scenario.steady_phases.empty();
	const auto counts = [&](const Phase& phase) {
		return phase.pass >= scenario.steady_first_pass &&
		       (whole || std::find(scenario.steady_phases.begin(), scenario.steady_phases.end(), phase.name) != scenario.steady_phases.end());
	};
	std::map<unsigned, double> seconds, bytes;
	tally::Counts moved;
	for (const auto& phase : whole ? output.passes : output.phases)
		if (counts(phase))
			seconds[phase.pass] += static_cast<double>(phase.ns) / ns_per_s;
	for (const auto& window : whole ? pass_windows : phase_windows)
		if (counts(*window.phase)) {
			bytes[window.phase->pass] += static_cast<double>(window.bytes_moved());
			moved += window.counts;
		}

	Steady steady;
	std::vector<double> all_seconds, limits;
	for (const auto& [pass, value] : seconds) {
		steady.passes.push_back(pass);
		all_seconds.push_back(value);
	}
	for (const auto& [pass, value] : bytes)
		if (media_bytes_per_s)
			limits.push_back(value / static_cast<double>(media_bytes_per_s));
	steady.seconds = median(all_seconds);
	steady.media_limit_s = median(limits);
	steady.pages_per_read_request = pages_per_request(moved.read);
	steady.pages_per_write_request = pages_per_request(moved.write);
	return steady;
}

std::string join_words(const std::vector<std::string>& words)
{
	return fmt::format("{}", fmt::join(words, " "));
}

Json environment_json(const RunIdentity& id)
{
	const Scenario& s = id.scenario;
	return {{"bench_version", PAGEOUT_VERSION},
		{"kernel_release", id.kernel.release},
		{"kernel_key", id.kernel.key},
		{"initramfs_key", id.kernel.initramfs.parent_path().filename().string()},
		{"programs_key", id.programs.key},
		{"config_digest", id.kernel.config_digest},
		{"profiles", s.profiles},
		{"compiler", id.kernel.compiler},
		{"qemu_version", id.qemu_version},
		{"accel", id.accel},
		{"cpus", s.cpus},
		{"icount_shift", s.clock == "virtual" ? Json(s.icount_shift) : Json(nullptr)},
		{"kernel_cmdline", join_words(id.cmdline)},
		{"lru", s.lru},
		{"page_cluster", s.page_cluster},
		{"settings", id.job.value("settings", Json::array())},
		{"disks", id.job.value("disks", Json::array())}};
}

/// The fields that do not depend on how the run ended.
Json head(const RunIdentity& id, const Verdict& verdict)
{
	const Scenario& s = id.scenario;
	const Disk* disk = s.main_disk();
	return {{"schema", record_schema},
		{"status", to_string(verdict.status)},
		{"reason", verdict.reason},
		{"expected_status", s.expected_of(id.step.label).status},
		{"step", id.step.label},
		{"kernel_step", id.step.kernel},
		{"subject", id.step.subject},
		{"scenario", s.name},
		{"workload", s.workload_name()},
		{"workload_argv", id.job.contains("workload") ? id.job["workload"]["argv"] : Json(nullptr)},
		{"disk", disk ? Json(disk->model) : Json(nullptr)},
		{"sample", id.sample},
		{"jitter_us", jitter_us(s, id.sample)},
		{"mem_bytes", s.mem_bytes},
		{"clock", s.clock},
		{"lru", s.lru},
		{"page_cluster", s.page_cluster},
		{"passes", s.passes}};
}

} // namespace

Json make_job(const Scenario& s, const Layout& layout, unsigned sample)
{
	Json disks = Json::array();
	for (std::size_t i = 0; i < s.disks.size(); ++i) {
		const Disk& disk = s.disks[i];
		disks.push_back({{"name", disk.name}, {"role", disk.role}, {"model", disk.model}, {"phys", layout.disks[i].phys},
				 {"bytes", disk.bytes}, {"scheduler", scheduler_of(disk)}, {"priority", disk.priority}, {"params", disk.params}});
	}
	Json settings = Json::array();
	for (const auto& setting : s.settings)
		settings.push_back({{"path", setting.path}, {"value", setting.value}, {"optional", setting.optional}});
	Json job = {{"schema", "pageout-job/1"},
		    {"mode", "run"},
		    {"lru", s.lru},
		    {"page_cluster", s.page_cluster},
		    {"settings", settings},
		    {"disks", disks},
		    {"trace", s.trace},
		    {"trace_buffers", {{"kib", s.trace_buffer_kib}, {"count", s.trace_buffer_count}}},
		    {"workload", nullptr},
		    {"fio_job", nullptr},
		    {"probe", s.probe},
		    {"clock", s.clock},
		    {"virtual_limit_s", s.virtual_limit_s}};
	job["workload"] = {{"argv", workload_argv(s, sample)}, {"env", s.env}};
	if (!s.fio_job.empty())
		job["fio_job"] = s.fio_job;
	return job;
}

std::map<std::string, std::int64_t> read_counters(std::string_view text)
{
	std::map<std::string, std::int64_t> counters;
	for (const auto& raw : split(text, '\n')) {
		const std::string_view line = trim(raw);
		const auto blank = line.find_last_of(" \t");
		if (blank == std::string_view::npos)
			continue;
		const std::string_view word = line.substr(blank + 1);
		std::int64_t value = 0;
		const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
		if (error == std::errc{} && end == word.data() + word.size())
			counters[std::string(trim(line.substr(0, blank)))] = value;
	}
	return counters;
}

std::optional<double> number_at(const Json& record, std::string_view dotted_path)
{
	const Json* at = &record;
	for (const auto& word : split(dotted_path, '.')) {
		if (at->is_object() && at->contains(word)) {
			at = &(*at)[word];
		} else if (std::size_t index = 0; at->is_array() && !word.empty() &&
			   std::from_chars(word.data(), word.data() + word.size(), index).ptr == word.data() + word.size() && index < at->size()) {
			at = &(*at)[index];
		} else {
			return std::nullopt;
		}
	}
	return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

Outcome evaluate(const RunIdentity& id, const RunOutput& output)
{
	const Scenario& s = id.scenario;
	Frames frames(output.frames);
	Outcome outcome;
	Evidence evidence;

	const Json hello = frames.json("hello.json");
	const Json clock = frames.json("clock.json");
	const Json memory = frames.json("memory.json");
	const Json result = frames.json("result.json");
	const Json dropped = frames.json("dropped.json");
	const Json fio = frames.json("fio.json");
	const Json up_before = frames.json("uptime.before");
	const Json up_after = frames.json("uptime.after");
	const Json vmstat = frames.counters_over("vmstat", read_counters);

	// The trace, and what of it belongs to which pass.
	const std::string_view trace = frames.text("trace");
	outcome.trace = split_by_cpu(trace);
	tally::Options options;
	options.order = options.lives = true;
	if (dropped.is_object()) {
		for (const auto& [name, count] : dropped.items())
			evidence.trace_dropped += count.is_number_integer() ? count.get<std::int64_t>() : 0;
		options.dropped = static_cast<std::uint64_t>(evidence.trace_dropped);
	}
	const tally::Summary summary = tally::tally_bytes(bytes_of(trace), "trace", options);

	const bool ours = s.fio_job.empty() && starts_with(s.argv.front(), "pageout-load");
	const WorkloadOutput workload = read_workload_output(frames.text("workload.out"), ours);
	const std::uint64_t media_rate = s.main_disk() ? media_bytes_per_s(*s.main_disk()) : 0;
	const auto pass_windows = windows_of(trace, workload.passes);
	const auto phase_windows = windows_of(trace, workload.phases);
	const Steady steady = steady_of(s, workload, pass_windows, phase_windows, media_rate);

	// The status.
	evidence.end = output.end;
	evidence.console = scan_console(output.console);
	evidence.mailbox_damage = output.mailbox_damage;
	evidence.hello = hello.is_object();
	evidence.log_splat = scan_console(frames.text("dmesg")).splat;
	evidence.virtual_clock = s.clock == "virtual";
	evidence.clocksource = text_of(clock, "clocksource");
	evidence.clock_resolution_ns = integer(clock, "resolution_ns").value_or(0);
	evidence.oom_kills = integer(vmstat, "oom_kill");
	evidence.group_kills = s.group_kills;
	evidence.trace_damage = outcome.trace.damage.empty() ? first_damage(summary) : outcome.trace.damage;
	if (result.is_object())
		evidence.result = GuestResult{text_of(result, "status"), text_of(result, "reason"),
					      static_cast<int>(integer(result, "exit_code").value_or(-1)),
					      static_cast<int>(integer(result, "signal").value_or(0))};
	std::vector<std::string> needed = {"hello.json", "clock.json", "memory.json", "vmstat.before", "vmstat.after", "stat.before", "stat.after",
					   "uptime.before", "uptime.after", "dmesg", s.fio_job.empty() ? "workload.out" : "fio.json"};
	for (const auto& disk : s.disks)
		for (const auto& name : {fmt::format("diskstat.{}.before", disk.name), fmt::format("diskstat.{}.after", disk.name),
					 fmt::format("simdisk.{}.after", disk.name)})
			needed.push_back(name);
	if (!s.trace.empty())
		needed.push_back("dropped.json");
	if (s.probe)
		needed.insert(needed.end(), {"probe.before", "probe.after"});
	for (const auto& name : needed)
		// A workload of the user's may print nothing; ours always does.
		if (!frames.has(name) && (name != "workload.out" || ours))
			evidence.missing.push_back(name);
	for (const auto& name : frames.broken)
		evidence.missing.push_back(name + " that is JSON");
	if (ours) {
		if (!workload.damage.empty())
			evidence.workload_incomplete = workload.damage;
		else if (!workload.started || !workload.ended)
			evidence.workload_incomplete = "its output lacks its start or its end";
		else if (workload.passes.size() != s.passes && std::find(s.argv.begin(), s.argv.end(), "{passes}") != s.argv.end())
			evidence.workload_incomplete = fmt::format("{} passes were asked for and {} are in its output", s.passes, workload.passes.size());
	}
	outcome.verdict = decide(evidence);
	if (outcome.verdict.status == Status::corruption && !workload.corruption.empty())
		outcome.verdict.reason = workload.corruption; // page, pass, offset, expected, found

	// The record.
	Json& record = outcome.record;
	record = head(id, outcome.verdict);
	record["partial"] = outcome.verdict.status != Status::pass;

	Json passes = Json::array();
	for (const auto& pass : workload.passes)
		passes.push_back(static_cast<double>(pass.ns) / ns_per_s);
	Json phases = Json::object();
	for (const auto& phase : workload.phases)
		phases[phase.name].push_back(static_cast<double>(phase.ns) / ns_per_s);
	record["passes_s"] = passes;
	record["phases_s"] = phases;

	const auto up = [](const Json& before, const Json& after, const char* name) -> std::optional<double> {
		const auto was = integer(before, name), is = integer(after, name);
		return was && is ? std::optional(static_cast<double>(*is - *was)) : std::nullopt;
	};
	const auto elapsed_ns = up(up_before, up_after, "monotonic_ns");
	record["elapsed_s"] = elapsed_ns ? Json(*elapsed_ns / ns_per_s) : Json(nullptr);

	// Without passes (fio, a program of the user's) the whole run stands for the steady pass.
	const bool has_passes = !workload.passes.empty() || !workload.phases.empty();
	const auto all_bytes = static_cast<double>(summary.total.read.completed.bytes + summary.total.write.completed.bytes);
	const std::optional<double> steady_s = has_passes ? steady.seconds : elapsed_ns ? std::optional(*elapsed_ns / ns_per_s) : std::nullopt;
	const std::optional<double> limit_s = has_passes ? steady.media_limit_s
					      : media_rate && !s.trace.empty() ? std::optional(all_bytes / static_cast<double>(media_rate)) : std::nullopt;
	record["steady"] = {{"of", has_passes ? "passes" : "run"}, {"passes", steady.passes}, {"phases", s.steady_phases}, {"seconds", or_null(steady_s)},
			    {"pages_per_read_request", or_null(has_passes ? steady.pages_per_read_request : pages_per_request(summary.total.read))},
			    {"pages_per_write_request", or_null(has_passes ? steady.pages_per_write_request : pages_per_request(summary.total.write))}};
	record["media_limit_s"] = or_null(limit_s);
	record["media_bytes_per_s"] = media_rate ? Json(media_rate) : Json(nullptr);

	record["block"] = block_json(summary.total, summary.devices);
	record["trace_dropped"] = dropped.is_object() ? Json(evidence.trace_dropped) : Json(nullptr);
	record["trace"] = {{"records", summary.records}, {"bytes", trace.size()}, {"damage", evidence.trace_damage}};
	Json devices = Json::array();
	for (std::size_t i = 0; i < summary.devices.size(); ++i) {
		const auto& device = summary.devices[i];
		// Devices are numbered in the order in which the job's disks were made.
		std::string name;
		if (summary.devices.size() == s.trace.size()) {
			std::vector<std::string> in_order;
			for (const auto& disk : s.disks)
				if (std::find(s.trace.begin(), s.trace.end(), disk.name) != s.trace.end())
					in_order.push_back(disk.name);
			name = in_order[i];
		}
		Json entry = {{"device", fmt::format("{}:{}", device.id.major, device.id.minor)}, {"name", name}, {"bio_based", device.bio_based}};
		entry.update(block_json(device.counts, {device}));
		devices.push_back(entry);
	}
	record["devices"] = devices;
	Json windows = Json::array();
	for (const auto* list : {&phase_windows, &pass_windows})
		for (const auto& window : *list)
			windows.push_back(window_json(window, media_rate));
	record["windows"] = windows;

	const auto latency = [](const tally::Latency& l) -> Json {
		if (!l.samples)
			return nullptr;
		return {{"samples", l.samples}, {"mean_ns", l.mean_ns()}, {"p50_ns", l.p50_ns}, {"p90_ns", l.p90_ns}, {"p99_ns", l.p99_ns}, {"max_ns", l.max_ns}};
	};
	record["latency"] = {{"read", {{"q2c", latency(summary.total.read.q2c)}, {"d2c", latency(summary.total.read.d2c)}}},
			     {"write", {{"q2c", latency(summary.total.write.q2c)}, {"d2c", latency(summary.total.write.d2c)}}}};

	record["vmstat"] = vmstat;
	record["stat"] = frames.counters_over("stat", read_proc_stat);
	record["pageout_stats"] = frames.counters_over("pageout_stats", read_counters);
	record["probe"] = frames.counters_over("probe", read_counters);
	Json diskstat = Json::object(), simdisk = Json::object();
	for (const auto& disk : s.disks) {
		diskstat[disk.name] = frames.counters_over("diskstat." + disk.name, read_diskstat);
		const std::string name = fmt::format("simdisk.{}.after", disk.name);
		simdisk[disk.name] = frames.has(name) ? counters_json(read_counters(frames.text(name))) : Json(nullptr);
	}
	record["diskstat"] = diskstat;
	record["simdisk"] = simdisk;
	record["memory"] = memory;

	// Kernel work a page: what of the time was neither idle nor the workload's own, in instructions.
	// Phases count a page once for each time it is touched; passes do where a workload has no phases (or only a first filling).
	const auto pages_of = [](const std::vector<Phase>& list) {
		std::uint64_t sum = 0;
		for (const auto& phase : list)
			sum += phase.pages;
		return sum;
	};
	const std::uint64_t pages = std::max(pages_of(workload.phases), pages_of(workload.passes));
	const auto idle_us = up(up_before, up_after, "idle_us"), user_us = up(up_before, up_after, "user_us");
	record["pages"] = pages;
	if (s.clock == "virtual" && elapsed_ns && idle_us && user_us && pages) {
		const double busy_ns = *elapsed_ns * s.cpus - (*idle_us + *user_us) * 1000;
		record["kernel_instructions_per_page"] = busy_ns / std::ldexp(1.0, static_cast<int>(s.icount_shift)) / static_cast<double>(pages);
	} else {
		record["kernel_instructions_per_page"] = nullptr;
	}
	const auto ratio = steady_s && limit_s && *limit_s > 0 ? std::optional(*steady_s / *limit_s) : std::nullopt;
	record["derived"] = {{"pages_per_read_request", or_null(pages_per_request(summary.total.read))},
			     {"pages_per_write_request", or_null(pages_per_request(summary.total.write))},
			     {"pages_read", summary.total.read.completed.bytes / page_bytes},
			     {"pages_written", summary.total.write.completed.bytes / page_bytes},
			     {"steady_to_media_limit", or_null(ratio)}};

	Json events = Json::array();
	for (const auto& line : split(frames.text("workload.out"), '\n'))
		if (Json event = Json::parse(line, nullptr, false); event.is_object())
			events.push_back(std::move(event));
	record["workload_events"] = events;
	record["workload_exit"] = result.is_object() ? Json{{"exit_code", result.value("exit_code", Json())}, {"signal", result.value("signal", Json())}} : Json(nullptr);
	record["fio"] = fio;
	record["clock_check"] = clock;

	Json environment = environment_json(id);
	environment["kernel_version"] = text_of(hello, "version");
	environment["guest_cmdline"] = std::string(trim(text_of(hello, "cmdline")));
	record["environment"] = environment;
	record["job"] = id.job;
	record["qemu_command"] = shell_line(id.qemu_command);

	// What was expected of it.
	const Expectation& expected = s.expected_of(id.step.label);
	Json checks = Json::array();
	for (const auto& bound : expected.bounds) {
		const auto value = number_at(record, bound.field);
		const bool met = value && (!bound.min || *value >= *bound.min) && (!bound.max || *value <= *bound.max);
		checks.push_back({{"field", bound.field}, {"value", or_null(value)}, {"min", or_null(bound.min)}, {"max", or_null(bound.max)}, {"met", met}});
	}
	record["expectations"] = checks;
	return outcome;
}

Outcome skipped(const RunIdentity& id, const std::string& reason)
{
	Outcome outcome;
	outcome.verdict = {Status::skipped, reason};
	outcome.record = head(id, outcome.verdict);
	outcome.record["partial"] = true;
	outcome.record["environment"] = environment_json(id);
	return outcome;
}

bool same_inputs(const Json& record, const RunIdentity& id)
{
	const auto equal = [&](const char* name, const Json& value) { return record.contains(name) && record[name] == value; };
	const Json environment = environment_json(id);
	if (!equal("status", "PASS") || !equal("schema", Json(record_schema)) || !equal("job", id.job) || !equal("step", id.step.label) ||
	    !equal("subject", id.step.subject) || !equal("scenario", id.scenario.name) || !equal("sample", id.sample) ||
	    !equal("qemu_command", shell_line(id.qemu_command)) || !record.contains("environment"))
		return false;
	for (const auto& [name, value] : environment.items())
		if (!record["environment"].contains(name) || record["environment"][name] != value)
			return false;
	return true;
}

} // namespace pageout::bench
