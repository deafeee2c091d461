// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/scenario.h"

#include "pageout/bench/error.h"
#include "pageout/bench/layout.h"
#include "pageout/bench/models.h"
#include "pageout/bench/record.h"

#include "pageout/job.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace pageout::bench {
namespace {

const std::string good = R"(schema = "pageout-scenario/1"
mem = "48M"
passes = 3
trace = ["swap"]
[workload]
argv = ["pageout-load", "anon-cycle", "--passes", "{passes}", "--note", "{mem}"]
[[disk]]
name = "swap"
role = "swap"
model = "ata-2005"
size = "128M"
params = { tags = 64 }
[steady]
first_pass = 1
[expect.bounds."derived.pages_per_read_request"]
min = 2
[expect.step."control:ra-unplugged"]
bounds."block.read.dispatched.count" = { max = 10.5 }
[expect.step.3]
status = "OOM"
)";

TEST(Scenario, IsRead)
{
	const Scenario s = parse_scenario(good, "dir/x.toml");
	EXPECT_EQ(s.name, "x");
	EXPECT_EQ(s.mem_bytes, 48ULL << 20);
	EXPECT_EQ(s.passes, 3u);
	EXPECT_EQ(s.workload_name(), "anon-cycle");
	ASSERT_NE(s.main_disk(), nullptr);
	EXPECT_EQ(s.main_disk()->bytes, 128ULL << 20);
	EXPECT_EQ(s.main_disk()->params.at("tags"), "64");
	EXPECT_EQ(workload_argv(s)[3], "3");
	EXPECT_EQ(workload_argv(s)[5], std::to_string(48 << 20));
	ASSERT_EQ(s.expected_of("base").bounds.size(), 1u);
	EXPECT_EQ(s.expected_of("base").bounds[0].min, 2.0);
	EXPECT_FALSE(s.expected_of("base").bounds[0].max);
	EXPECT_EQ(s.expected_of("control:ra-unplugged").bounds.size(), 2u);
	EXPECT_EQ(s.expected_of("control:ra-unplugged").status, "PASS");
	EXPECT_EQ(s.expected_of("3").status, "OOM");
}

struct Wrong {
	const char* from;
	const char* to;
	const char* said; ///< has to be in the message
};

class WrongScenario : public testing::TestWithParam<Wrong> {};

TEST_P(WrongScenario, IsRefusedWithFileLineAndKey)
{
	const Wrong& wrong = GetParam();
	std::string text = good;
	const auto at = text.find(wrong.from);
	ASSERT_NE(at, std::string::npos) << wrong.from;
	text.replace(at, std::string(wrong.from).size(), wrong.to);
	try {
		parse_scenario(text, "dir/x.toml");
		FAIL() << wrong.to;
	} catch (const Error& error) {
		EXPECT_NE(std::string(error.what()).find(wrong.said), std::string::npos) << error.what();
		EXPECT_EQ(std::string(error.what()).find("dir/x.toml:"), 0u) << error.what();
		EXPECT_EQ(error.exit_status(), 2);
	}
}

INSTANTIATE_TEST_SUITE_P(All, WrongScenario,
			 testing::Values(Wrong{"mem = \"48M\"", "mem = \"48Q\"", ":2: mem: "}, Wrong{"mem = \"48M\"", "mem = ", ":2:"},
					 Wrong{"passes = 3", "passes = \"3\"", ":3: passes: has to be a whole number"}, Wrong{"passes = 3", "pases = 3", "did you mean passes?"},
					 Wrong{"passes = 3", "passes = 0", ":3: passes: "}, Wrong{"passes = 3", "passes = 1", "first_pass"},
					 Wrong{"[\"swap\"]", "[\"swop\"]", ":4: trace: there is no disk \"swop\""}, Wrong{"[\"swap\"]", "\"swap\"", ":4: trace: has to be an array"},
					 Wrong{"argv = [", "fio_job = \"x.fio\"\nargv = [", "workload.argv: "}, Wrong{"\"ata-2005\"", "\"ata\"", ":10: disk[0].model: \"ata\" is none of"},
					 Wrong{"role = \"swap\"\n", "", "disk[0].role: is missing"}, Wrong{"size = \"128M\"", "size = 5", "disk[0].size: "},
					 Wrong{"name = \"swap\"", "name = \"Swap!\"", "disk[0].name: "}, Wrong{"min = 2", "mim = 2", "did you mean min?"},
					 Wrong{"min = 2", "", "expect.bounds.derived.pages_per_read_request.min: a bound needs"}, Wrong{"\"OOM\"", "\"BOOM\"", "expect.step.3.status: "},
					 Wrong{"\"pageout-scenario/1\"", "\"pageout-scenario/9\"", ":1: schema: "}, Wrong{"[steady]", "[steady]\nx = 1", "steady.x: unknown key"}));

TEST(Scenario, VariedSamplesBeginAtDifferentMoments)
{
	Overrides o;
	EXPECT_EQ(workload_argv(apply(parse_scenario(good, "x.toml"), o), 3).size(), 6u);
	o.vary = true;
	const Scenario s = apply(parse_scenario(good, "x.toml"), o);
	EXPECT_EQ(workload_argv(s, 1).back(), "0");
	EXPECT_NE(workload_argv(s, 2).back(), workload_argv(s, 3).back());
	EXPECT_EQ(workload_argv(s, 2)[6], "--wait-us");
	Scenario other = parse_scenario(good, "x.toml");
	other.argv = {"sh"};
	EXPECT_THROW(apply(other, o), Error);
}

TEST(Scenario, OverridesFromTheCommandLine)
{
	Overrides o;
	o.disk_model = "ssd-850pro";
	o.mem_bytes = 96ULL << 20;
	o.passes = 5;
	o.lru = "mglru";
	o.page_cluster = 5;
	o.set = {"cluster_pages=64", "/proc/sys/vm/swappiness=100"};
	const Scenario s = apply(parse_scenario(good, "x.toml"), o);
	EXPECT_EQ(s.disks[0].model, "ssd-850pro");
	EXPECT_EQ(workload_argv(s)[3], "5");
	EXPECT_EQ(s.lru, "mglru");
	EXPECT_EQ(s.page_cluster, 5);
	ASSERT_EQ(s.settings.size(), 2u);
	EXPECT_EQ(s.settings[0].path, "/sys/kernel/mm/pageout/cluster_pages");
	EXPECT_EQ(s.settings[0].value, "64");
	EXPECT_EQ(s.settings[1].path, "/proc/sys/vm/swappiness");

	const auto refused = [](auto change) {
		Overrides wrong;
		change(wrong);
		EXPECT_THROW(apply(parse_scenario(good, "x.toml"), wrong), Error);
	};
	refused([](Overrides& w) { w.disk_model = "floppy"; });
	refused([](Overrides& w) { w.mem_bytes = 5; });
	refused([](Overrides& w) { w.passes = 1; }); // the steady pass would never come
	refused([](Overrides& w) { w.set = {"nonsense"}; });
	refused([](Overrides& w) { w.set = {"=1"}; });
}

/// Every scenario that is shipped is sound: it parses, has room in memory, its disks make sense, and the guest takes its job.
TEST(Scenario, AllThatAreShippedAreSound)
{
	std::size_t count = 0;
	for (const auto& entry : std::filesystem::directory_iterator(BENCH_SCENARIOS)) {
		if (entry.path().extension() != ".toml")
			continue;
		SCOPED_TRACE(entry.path().string());
		const Scenario s = load_scenario(entry.path());
		const Layout layout = make_layout(s, 120 << 20, 8 << 20);
		for (const auto& disk : s.disks)
			EXPECT_NO_THROW((void)media_bytes_per_s(disk));
		const auto parsed = job::parse(make_job(s, layout).dump());
		EXPECT_EQ(parsed.disks.size(), s.disks.size());
		EXPECT_FALSE(s.description.empty());
		++count;
	}
	EXPECT_GE(count, 9u);
}

TEST(Scenario, UnknownNamesListWhatThereIs)
{
	try {
		(void)find_scenario("random-dirt", std::filesystem::path(BENCH_SCENARIOS).parent_path());
		FAIL();
	} catch (const Error& error) {
		EXPECT_NE(std::string(error.what()).find("did you mean random-dirty?"), std::string::npos) << error.what();
	}
}

TEST(Models, ParamsAreChecked)
{
	Disk disk;
	disk.name = "x";
	disk.model = "ata-2005";
	disk.bytes = 128 << 20;
	EXPECT_GT(media_bytes_per_s(disk), 10'000'000u);
	disk.params = {{"no_such_field", "1"}};
	EXPECT_THROW((void)media_bytes_per_s(disk), Error);
	disk.params = {{"tags", "many"}};
	EXPECT_THROW((void)media_bytes_per_s(disk), Error);
	disk.params = {{"tags", "99999999999"}};
	EXPECT_THROW((void)media_bytes_per_s(disk), Error);
	disk.params = {};
	EXPECT_EQ(scheduler_of(disk), "mq-deadline");
	disk.model = "ram-sync";
	EXPECT_EQ(media_bytes_per_s(disk), 0u);
	EXPECT_EQ(scheduler_of(disk), ""); // nothing to schedule
	disk.scheduler = "kyber";
	EXPECT_THROW((void)scheduler_of(disk), Error);
}

} // namespace
} // namespace pageout::bench
