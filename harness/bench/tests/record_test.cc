// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/record.h"

#include "support.h"

#include <gtest/gtest.h>

namespace pageout::bench {
namespace {

using namespace test;

/// A small run: two passes of one second; in each two pages are read by one request, after a merge.
struct SmallRun {
	RunIdentity identity;
	RunOutput output;

	SmallRun()
	{
		Scenario& s = identity.scenario;
		s.name = "small";
		s.argv = {"pageout-load", "anon-cycle", "--passes", "{passes}"};
		s.passes = 2;
		s.steady_first_pass = 1;
		Disk disk;
		disk.name = "swap";
		disk.role = "swap";
		disk.model = "ata-2005";
		disk.bytes = 128 << 20;
		s.disks = {disk};
		s.trace = {"swap"};
		identity.step = {"base", "base", "Linux 6.12"};
		identity.accel = "tcg";
		identity.kernel.key = "abc";
		Layout layout;
		layout.disks = {{"swap", 1 << 28, 128 << 20}};
		identity.job = make_job(s, layout);
		identity.qemu_command = {"{qemu}", "-x"};

		auto& f = output.frames;
		f["hello.json"] = R"({"schema": "pageout-guest/1", "kernel": "6.12", "version": "#1", "cmdline": "a b"})";
		f["clock.json"] = R"({"clocksource": "tsc", "resolution_ns": 1})";
		f["memory.json"] = R"({"mem_total_bytes": 1, "mem_available_bytes": 1, "programs_rss_bytes": 1, "programs": {}})";
		f["dropped.json"] = R"({"swap": 0})";
		f["vmstat.before"] = "pswpin 10\npswpout 0\noom_kill 0\n";
		f["vmstat.after"] = "pswpin 14\npswpout 0\noom_kill 0\nnr_new 3\n";
		f["stat.before"] = "cpu  1 0 2 3 0 0 0 0 0 0\nctxt 5\n";
		f["stat.after"] = "cpu  2 0 4 6 0 0 0 0 0 0\nctxt 9\n";
		f["uptime.before"] = R"({"monotonic_ns": 1000000000, "idle_us": 0, "user_us": 0})";
		f["uptime.after"] = R"({"monotonic_ns": 3000000000, "idle_us": 1500000, "user_us": 300000})";
		f["diskstat.swap.before"] = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
		f["diskstat.swap.after"] = "       2 2 32 5 0 0 0 0 0 5 5 0 0 0 0 0 0\n";
		f["simdisk.swap.after"] = "requests 2\nlate_max_ns 10\nmodel ata-2005\n";
		f["probe.before"] = "bios 1\n";
		f["probe.after"] = "bios 5\n";
		f["dmesg"] = "fine\n";
		f["result.json"] = R"({"status": "PASS", "reason": "", "exit_code": 0, "signal": 0})";
		f["workload.out"] = R"({"event": "start", "workload": "anon-cycle", "bytes": 8192, "passes": 2, "seed": 1}
{"event": "pass", "pass": 0, "ns": 1000000000, "pages": 2, "end_ns": 2000000000}
{"event": "pass", "pass": 1, "ns": 1000000000, "pages": 2, "end_ns": 3000000000}
{"event": "end", "verified_pages": 4}
)";
		std::uint32_t sequence = 0;
		for (const std::uint64_t second : {1, 2}) {
			const std::uint64_t t = second * 1'000'000'000;
			const auto add = [&](std::uint64_t after, std::uint32_t action, std::uint64_t sector, std::uint32_t bytes) {
				f["trace"] += record({.time_ns = t + after, .sector = sector, .bytes = bytes, .action = action, .sequence = ++sequence});
			};
			add(10, queue_read, 0, 4096);
			add(11, get_request_read, 0, 4096);
			add(12, queue_read, 8, 4096);
			add(13, back_merge_read, 8, 4096);
			add(14, issue_read, 0, 8192);
			add(900, complete_read, 0, 8192);
		}
	}
	Outcome evaluate() const { return bench::evaluate(identity, output); }
};

TEST(Record, OfAPass)
{
	const Outcome outcome = SmallRun().evaluate();
	const Json& r = outcome.record;
	ASSERT_EQ(outcome.verdict.status, Status::pass) << outcome.verdict.reason;
	EXPECT_EQ(r["schema"], "pageout-run/1");
	EXPECT_EQ(r["step"], "base");
	EXPECT_EQ(r["disk"], "ata-2005");
	EXPECT_EQ(r["workload"], "anon-cycle");
	EXPECT_EQ(r["passes_s"], Json::parse("[1.0, 1.0]"));
	EXPECT_EQ(r["block"]["read"]["queued"], Json::parse(R"({"count": 4, "bytes": 16384})"));
	EXPECT_EQ(r["block"]["read"]["dispatched"], Json::parse(R"({"count": 2, "bytes": 16384})"));
	EXPECT_EQ(r["block"]["read"]["merged_bio"], Json::parse(R"({"count": 2, "bytes": 8192})"));
	EXPECT_EQ(r["block"]["identity_residue"]["read"], 0);
	EXPECT_EQ(r["vmstat"]["pswpin"], 4);
	EXPECT_EQ(r["vmstat"]["nr_new"], 3);
	EXPECT_EQ(r["stat"]["ctxt"], 4);
	EXPECT_EQ(r["probe"]["bios"], 4);
	EXPECT_EQ(r["diskstat"]["swap"]["sectors_read"], 32);
	EXPECT_EQ(r["simdisk"]["swap"]["requests"], 2);
	EXPECT_EQ(r["derived"]["pages_per_read_request"], 2.0);
	EXPECT_EQ(r["windows"].size(), 2u);
	EXPECT_EQ(r["windows"][1]["read"]["dispatched"]["count"], 1);
	EXPECT_EQ(r["steady"]["passes"], Json::parse("[1]"));
	// 2 s less 1.5 s idle and 0.3 s of the workload's own, at 1 ns an instruction, over 4 pages.
	EXPECT_DOUBLE_EQ(r["kernel_instructions_per_page"].get<double>(), 0.2e9 / 4);
	const double limit = r["media_limit_s"];
	EXPECT_DOUBLE_EQ(limit, 8192 / r["media_bytes_per_s"].get<double>());
	EXPECT_DOUBLE_EQ(r["derived"]["steady_to_media_limit"].get<double>(), 1.0 / limit);
	EXPECT_FALSE(r.contains("host"));
	ASSERT_EQ(outcome.trace.cpus.size(), 1u);
}

TEST(Record, AllNamedFieldsAreThereWhateverTheStatus)
{
	SmallRun run;
	for (const bool empty : {false, true}) {
		if (empty)
			run.output.frames.clear();
		const Json r = run.evaluate().record;
		for (const char* field : {"schema", "status", "step", "subject", "scenario", "workload", "disk", "mem_bytes", "clock", "passes_s", "phases_s", "media_limit_s", "block",
					  "trace_dropped", "vmstat", "kernel_instructions_per_page", "environment", "devices", "probe", "diskstat", "simdisk", "pageout_stats", "memory",
					  "qemu_command"})
			EXPECT_TRUE(r.contains(field)) << field;
	}
}

TEST(Record, NothingIsNoBootAndKeepsWhatThereIs)
{
	SmallRun run;
	run.output.frames.clear();
	const Outcome outcome = run.evaluate();
	EXPECT_EQ(outcome.verdict.status, Status::no_boot);
	EXPECT_EQ(outcome.record["partial"], true);
	EXPECT_TRUE(outcome.record["vmstat"].is_null());
	EXPECT_TRUE(outcome.record["kernel_instructions_per_page"].is_null());
}

TEST(Record, PartialResultsAreKept)
{
	SmallRun run;
	run.output.frames.erase("result.json");
	run.output.frames.erase("vmstat.after");
	run.output.console = "[ 9.0] Kernel panic - not syncing: sysrq triggered crash\n";
	const Outcome outcome = run.evaluate();
	EXPECT_EQ(outcome.verdict.status, Status::panic);
	EXPECT_EQ(outcome.record["passes_s"].size(), 2u);
	EXPECT_EQ(outcome.record["block"]["read"]["queued"]["count"], 4);
	EXPECT_EQ(outcome.record["partial"], true);
}

TEST(Record, MissingFramesAreNoPass)
{
	for (const char* name : {"vmstat.after", "uptime.before", "memory.json", "simdisk.swap.after", "probe.after", "dropped.json", "dmesg", "diskstat.swap.before"}) {
		SmallRun run;
		run.output.frames.erase(name);
		const Outcome outcome = run.evaluate();
		EXPECT_EQ(outcome.verdict.status, Status::no_result) << name;
		EXPECT_NE(outcome.verdict.reason.find(name), std::string::npos) << outcome.verdict.reason;
	}
}

TEST(Record, AWorkloadThatStopsHalfWayIsNoPass)
{
	SmallRun run;
	auto& out = run.output.frames["workload.out"];
	const std::string whole = out;
	out = whole.substr(0, whole.find("{\"event\": \"end\""));
	EXPECT_EQ(run.evaluate().verdict.status, Status::workload_failed);
	out = whole;
	out.erase(out.find("{\"event\": \"pass\", \"pass\": 1"), out.find("{\"event\": \"end\"") - out.find("{\"event\": \"pass\", \"pass\": 1"));
	EXPECT_NE(run.evaluate().verdict.reason.find("2 passes were asked for and 1"), std::string::npos) << run.evaluate().verdict.reason;
}

TEST(Record, CorruptionNamesThePage)
{
	SmallRun run;
	run.output.frames["workload.out"] += R"({"event": "corruption", "page": 4, "pass": 1, "offset": 8, "expected": 1, "found": 2})" "\n";
	run.output.frames["result.json"] = R"({"status": "CORRUPTION", "reason": "a page is wrong", "exit_code": 3, "signal": 0})";
	const Outcome outcome = run.evaluate();
	EXPECT_EQ(outcome.verdict.status, Status::corruption);
	for (const char* part : {"\"page\": 4", "\"pass\": 1", "\"offset\": 8", "\"expected\": 1", "\"found\": 2"})
		EXPECT_NE(outcome.verdict.reason.find(part), std::string::npos) << outcome.verdict.reason;
}

TEST(Record, DroppedRecordsAndDamagedTracesAreNoPass)
{
	SmallRun run;
	run.output.frames["dropped.json"] = R"({"swap": 3})";
	EXPECT_EQ(run.evaluate().verdict.status, Status::trace_dropped);
	EXPECT_EQ(run.evaluate().record["trace_dropped"], 3);
	run.output.frames["dropped.json"] = R"({"swap": 0})";
	run.output.frames["trace"] += "junk";
	EXPECT_EQ(run.evaluate().verdict.status, Status::trace_dropped);
	EXPECT_EQ(run.evaluate().record["block"]["read"]["queued"]["count"], 4);
}

TEST(Record, BoundsAreCheckedAndMissingFieldsDoNotMeetThem)
{
	SmallRun run;
	run.identity.scenario.expect.bounds = {{"vmstat.pswpin", 4, {}}, {"derived.pages_per_read_request", {}, 1.5}, {"passes_s.1", 0.5, 1.5}, {"no.such.field", 0, {}}};
	const Json checks = run.evaluate().record["expectations"];
	EXPECT_EQ(checks[0]["met"], true);
	EXPECT_EQ(checks[1]["met"], false);
	EXPECT_EQ(checks[2]["met"], true);
	EXPECT_EQ(checks[3]["met"], false);
}

TEST(Record, SameInputsAreRecognised)
{
	SmallRun run;
	const Json record = run.evaluate().record;
	EXPECT_TRUE(same_inputs(record, run.identity));
	const auto differs = [&](auto change) {
		SmallRun other;
		change(other.identity);
		EXPECT_FALSE(same_inputs(record, other.identity));
	};
	differs([](RunIdentity& i) { i.kernel.key = "other"; });
	differs([](RunIdentity& i) { i.qemu_version = "8"; });
	differs([](RunIdentity& i) { i.scenario.page_cluster = 5; });
	differs([](RunIdentity& i) { i.step.label = "full"; });
	differs([](RunIdentity& i) { i.sample = 2; });
	differs([](RunIdentity& i) { i.job["virtual_limit_s"] = 1; });
	run.output.frames.erase("dmesg"); // not PASS: never reused
	EXPECT_FALSE(same_inputs(run.evaluate().record, run.identity));
}

TEST(Record, SkippedSaysWhy)
{
	const SmallRun run;
	const Outcome outcome = skipped(run.identity, "needs step 7 or later");
	EXPECT_EQ(outcome.record["status"], "SKIPPED");
	EXPECT_EQ(outcome.record["reason"], "needs step 7 or later");
}

TEST(Record, FioStandsForTheWholeRun)
{
	SmallRun run;
	run.identity.scenario.argv.clear();
	run.identity.scenario.fio_job = "mmap-dirty.fio";
	run.output.frames.erase("workload.out");
	run.output.frames["fio.json"] = R"({"fio version": "fio-3.33"})";
	const Outcome outcome = run.evaluate();
	EXPECT_EQ(outcome.verdict.status, Status::pass) << outcome.verdict.reason;
	EXPECT_EQ(outcome.record["workload"], "fio:mmap-dirty");
	EXPECT_EQ(outcome.record["fio"]["fio version"], "fio-3.33");
	EXPECT_EQ(outcome.record["steady"]["of"], "run");
	EXPECT_EQ(outcome.record["steady"]["seconds"], 2.0);
}

TEST(Counters, TakeTheLastWordOfALine)
{
	const auto counters = read_counters("a 1\n hist[2] x 5 \nno number here\nneg -3\nempty\n\n");
	EXPECT_EQ(counters.size(), 3u);
	EXPECT_EQ(counters.at("hist[2] x"), 5);
	EXPECT_EQ(counters.at("neg"), -3);
}

TEST(NumberAt, FollowsDots)
{
	const Json json = Json::parse(R"({"a": {"b": [1, 2.5]}, "t": "x"})");
	EXPECT_EQ(number_at(json, "a.b.1"), 2.5);
	EXPECT_FALSE(number_at(json, "a.b.2"));
	EXPECT_FALSE(number_at(json, "a.b.x"));
	EXPECT_FALSE(number_at(json, "t"));
	EXPECT_FALSE(number_at(json, ""));
}

} // namespace
} // namespace pageout::bench
