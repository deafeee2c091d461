// SPDX-License-Identifier: GPL-2.0-only
#include "samples.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <sys/klog.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "system.h"

namespace pageout::guest {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Calls use(number) for each line that has `name` and then a number.
template <typename Use> void each_number(const std::string &text, std::string_view name, Use use)
{
	for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
		const auto digits = text.find_first_not_of(" :\t", at + name.size());
		std::uint64_t number;
		if (digits == std::string::npos)
			return;
		if (std::from_chars(text.data() + digits, text.data() + text.size(), number).ec == std::errc{})
			use(number);
	}
}

void put(mailbox::Writer &box, const std::string &name, const std::string &text)
{
	if (!box.put_last(name, text))
		fail("the mailbox is full: " + name + " does not fit; make it larger");
}

std::string uptime(const std::string &timer_list)
{
	rusage children, self;
	getrusage(RUSAGE_CHILDREN, &children);
	getrusage(RUSAGE_SELF, &self);
	const auto us = [](const timeval &t) { return std::uint64_t(t.tv_sec) * 1'000'000 + std::uint64_t(t.tv_usec); };
	const Json json = {{"monotonic_ns", monotonic_ns()},
			   {"idle_us", idle_us(timer_list)},
			   {"user_us", us(children.ru_utime) + us(self.ru_utime)}};
	return json.dump();
}

// `name value` of each file of the series' statistics; empty without the series.
std::string pageout_stats()
{
	std::error_code error;
	std::vector<fs::path> paths;
	for (const auto &entry : fs::recursive_directory_iterator("/sys/kernel/mm/pageout/stats", error))
		if (entry.is_regular_file())
			paths.push_back(entry.path());
	std::sort(paths.begin(), paths.end());
	std::string text;
	for (const auto &path : paths) {
		std::string value = read_file(path);
		while (!value.empty() && value.back() == '\n')
			value.pop_back();
		text += path.lexically_relative("/sys/kernel/mm/pageout/stats").string() + " " + value + "\n";
	}
	return text;
}

} // namespace

ClockFacts clock_facts(const std::string &clocksource, const std::string &timer_list)
{
	ClockFacts facts{clocksource.substr(0, clocksource.find('\n')), 0};
	each_number(timer_list, ".resolution:", [&](std::uint64_t ns) { facts.resolution_ns = std::max(facts.resolution_ns, ns); });
	if (facts.resolution_ns == 0)
		fail("/proc/timer_list says no timer resolution");
	return facts;
}

std::uint64_t idle_us(const std::string &timer_list)
{
	std::uint64_t ns = 0;
	each_number(timer_list, ".idle_sleeptime", [&](std::uint64_t n) { ns += n; });
	each_number(timer_list, ".iowait_sleeptime", [&](std::uint64_t n) { ns += n; });
	return ns / 1000;
}

std::uint64_t kib_line_bytes(const std::string &text, const std::string &name)
{
	const std::string key = name + ":";
	std::size_t at = text.starts_with(key) ? 0 : text.find("\n" + key);
	if (at == std::string::npos)
		fail("no line \"" + key + "\"");
	at = text.find_first_of("0123456789", text.find(':', at));
	std::uint64_t kib = 0;
	if (at == std::string::npos ||
	    std::from_chars(text.data() + at, text.data() + text.size(), kib).ec != std::errc{})
		fail("no number in line \"" + key + "\"");
	return kib * 1024;
}

void sample(mailbox::Writer &box, const job::Job &job, bool after)
{
	const std::string when = after ? ".after" : ".before";
	put(box, "vmstat" + when, read_file("/proc/vmstat"));
	put(box, "stat" + when, read_file("/proc/stat"));
	put(box, "uptime" + when, uptime(read_file("/proc/timer_list")));
	for (const auto &disk : job.disks) {
		put(box, "diskstat." + disk.name + when, read_file("/sys/block/sim" + disk.name + "/stat"));
		// Without debugfs there is none; a run that needs debugfs has failed
		// by now.
		std::string text;
		if (after && try_read_file("/sys/kernel/debug/simdisk/" + disk.name + "/stats", text))
			put(box, "simdisk." + disk.name + when, text);
	}
	if (job.probe)
		put(box, "probe" + when, read_file("/sys/kernel/debug/pageout_probe/stats"));
	if (const auto stats = pageout_stats(); !stats.empty())
		put(box, "pageout_stats" + when, stats);
}

std::string memory_report(const std::vector<std::pair<std::string, pid_t>> &programs, std::uint64_t trace_buffers_bytes)
{
	const auto meminfo = read_file("/proc/meminfo");
	Json each = Json::object();
	std::uint64_t rss = 0, pss = 0, locked = 0;
	for (const auto &[name, pid] : programs) {
		const auto rollup = read_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
		const auto bytes = kib_line_bytes(rollup, "Rss");
		each[name] = bytes;
		rss += bytes;
		pss += kib_line_bytes(rollup, "Pss");
		locked += kib_line_bytes(rollup, "Locked");
	}
	const Json json = {{"mem_total_bytes", kib_line_bytes(meminfo, "MemTotal")},
			   {"mem_available_bytes", kib_line_bytes(meminfo, "MemAvailable")},
			   {"mem_free_bytes", kib_line_bytes(meminfo, "MemFree")},
			   {"programs_rss_bytes", rss},
			   {"programs_pss_bytes", pss},
			   {"programs_locked_bytes", locked},
			   {"programs", each},
			   {"trace_buffers_bytes", trace_buffers_bytes},
			   {"page_cache_bytes", kib_line_bytes(meminfo, "Cached") + kib_line_bytes(meminfo, "Buffers")},
			   {"slab_bytes", kib_line_bytes(meminfo, "Slab")}};
	return json.dump();
}

void put_dmesg(mailbox::Writer &box)
{
	constexpr int read_all = 3, size_buffer = 10; // SYSLOG_ACTION_*, see syslog(2)
	const int size = klogctl(size_buffer, nullptr, 0);
	const auto room = box.reserve(size > 0 ? std::size_t(size) : 1 << 17, true);
	if (room.empty())
		return;
	const int length = klogctl(read_all, reinterpret_cast<char *>(room.data()), int(room.size()));
	if (length > 0)
		box.commit("dmesg", std::size_t(length));
}

} // namespace pageout::guest
