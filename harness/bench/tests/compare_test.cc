// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/compare.h"

#include "pageout/bench/error.h"
#include "pageout/bench/text.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <unistd.h>

namespace pageout::bench {
namespace {

namespace fs = std::filesystem;

Json make_record(const std::string& step, double seconds, double dispatches = 100, double queued = 800)
{
	Json r = {{"schema", "pageout-run/1"}, {"status", "PASS"}, {"reason", ""}, {"step", step}, {"subject", "subject of " + step}, {"scenario", "small"}, {"workload", "anon-cycle"},
		  {"disk", "ata-2005"}, {"sample", 1}, {"mem_bytes", 64 << 20}, {"clock", "virtual"}, {"lru", "classic"}, {"page_cluster", 3}, {"passes", 2}};
	r["passes_s"] = {seconds, seconds * 2};
	r["phases_s"] = Json::object();
	r["steady"] = {{"seconds", seconds * 2}};
	r["media_limit_s"] = 1.0;
	r["block"]["read"]["dispatched"] = {{"count", dispatches}, {"bytes", queued * 4096}};
	r["block"]["read"]["queued"] = {{"count", queued}, {"bytes", queued * 4096}};
	r["vmstat"] = {{"pswpin", queued}, {"allocstall_normal", 0}, {"nr_dull", 4}};
	r["environment"] = {{"qemu_version", "7.2"}, {"kernel_key", step}, {"settings", Json::array()}};
	r["host"] = {{"wall_s", seconds}};
	return r;
}

LoadedRecord loaded(Json json, unsigned source = 0)
{
	return {"/x/record.json", source, std::move(json)};
}

const Json* row_named(const Json& table, const std::string& name)
{
	for (const auto& row : table["rows"])
		if (row["name"] == name)
			return &row;
	return nullptr;
}

TEST(Compare, AColumnAStepInOrderWithRatiosToBase)
{
	const Json c = compare_records({loaded(make_record("full", 0.25, 50)), loaded(make_record("base", 1)), loaded(make_record("control:x", 4, 800)), loaded(make_record("1", 1.005))}, {"a"});
	ASSERT_EQ(c["tables"].size(), 1u);
	const Json& t = c["tables"][0];
	ASSERT_EQ(t["columns"].size(), 4u);
	EXPECT_EQ(t["columns"][0]["label"], "control:x");
	EXPECT_EQ(t["columns"][1]["label"], "base");
	EXPECT_EQ(t["columns"][2]["label"], "1");
	EXPECT_EQ(t["columns"][3]["label"], "full");
	EXPECT_TRUE(t["columns"][1]["baseline"].is_null());
	EXPECT_EQ(t["columns"][0]["baseline"], 1);

	const Json& pass = *row_named(t, "pass 2");
	EXPECT_EQ(pass["cells"][3]["median"], 0.5);
	EXPECT_EQ(pass["cells"][3]["ratio"], 0.25);
	EXPECT_EQ(pass["cells"][3]["verdict"], "better");
	EXPECT_EQ(pass["cells"][0]["verdict"], "worse");
	EXPECT_EQ(pass["cells"][2]["verdict"], "same"); // half a percent
	EXPECT_TRUE(pass["cells"][1]["ratio"].is_null());
	EXPECT_EQ((*row_named(t, "Read Dispatches"))["cells"][0]["ratio"], 8.0);
	EXPECT_EQ((*row_named(t, "Read Dispatches"))["cells"][0]["bytes"], 800 * 4096);
	EXPECT_EQ(row_named(t, "nr_dull"), nullptr);
	EXPECT_EQ(row_named(t, "allocstall_normal"), nullptr); // zero everywhere says nothing
}

TEST(Compare, WorseIsAsVisibleAsBetter)
{
	const Json c = compare_records({loaded(make_record("base", 1, 100)), loaded(make_record("full", 2, 50))}, {"a"});
	const Json& t = c["tables"][0];
	EXPECT_FALSE(t["better"].empty());
	EXPECT_FALSE(t["worse"].empty());
	const std::string text = comparison_text(c), md = comparison_markdown(c);
	EXPECT_NE(text.find("2.00x !"), std::string::npos) << text;
	EXPECT_NE(text.find("0.50x +"), std::string::npos) << text;
	EXPECT_NE(text.find("Worse: "), std::string::npos);
	EXPECT_NE(text.find("! full: pass 1: 1.00 -> 2.00 (2.00x)"), std::string::npos) << text;
	EXPECT_NE(md.find("**2.00x worse**"), std::string::npos) << md;
	EXPECT_NE(md.find("**0.50x better**"), std::string::npos) << md;
	EXPECT_NE(text.find("Reads Queued:"), std::string::npos);
}

TEST(Compare, FromZeroHasNoRatioButAVerdict)
{
	Json base = make_record("base", 1), full = make_record("full", 1);
	full["vmstat"]["allocstall_normal"] = 5;
	const Json c = compare_records({loaded(base), loaded(full)}, {"a"});
	const Json& cell = (*row_named(c["tables"][0], "allocstall_normal"))["cells"][1];
	EXPECT_TRUE(cell["ratio"].is_null());
	EXPECT_EQ(cell["verdict"], "worse");
	EXPECT_NE(comparison_text(c).find("new !"), std::string::npos);
}

TEST(Compare, OnlyPassEnters)
{
	Json failed = make_record("full", 0.001);
	failed["status"] = "OOM";
	failed["reason"] = "1 OOM kills";
	const Json c = compare_records({loaded(make_record("base", 1)), loaded(failed)}, {"a"});
	EXPECT_EQ(c["tables"][0]["columns"].size(), 1u);
	ASSERT_EQ(c["left_out"].size(), 1u);
	EXPECT_EQ(c["left_out"][0]["status"], "OOM");
	EXPECT_NE(comparison_text(c).find("OOM: 1 OOM kills"), std::string::npos) << comparison_text(c);
	EXPECT_EQ(comparison_text(c).find("0.001"), std::string::npos);
}

TEST(Compare, SamplesAreMedianAndRange)
{
	std::vector<LoadedRecord> records;
	unsigned sample = 0;
	for (const double s : {3.0, 1.0, 10.0}) {
		Json r = make_record("base", s);
		r["clock"] = "host";
		r["sample"] = ++sample;
		records.push_back(loaded(r));
	}
	const Json c = compare_records(records, {"a"});
	const Json& cell = (*row_named(c["tables"][0], "pass 1"))["cells"][0];
	EXPECT_EQ(cell["n"], 3);
	EXPECT_EQ(cell["median"], 3.0);
	EXPECT_EQ(cell["min"], 1.0);
	EXPECT_EQ(cell["max"], 10.0);
	EXPECT_EQ(c["tables"][0]["columns"][0]["samples_identical"], false);
	EXPECT_NE(comparison_text(c).find("3.00 (1.00..10.00)"), std::string::npos) << comparison_text(c);
	// An even number: the middle of the two in the middle.
	records.pop_back();
	EXPECT_EQ((*row_named(compare_records(records, {"a"})["tables"][0], "pass 1"))["cells"][0]["median"], 2.0);
}

TEST(Compare, VirtualSamplesAreIdenticalByConstructionOrItIsSaid)
{
	Json second = make_record("base", 1);
	second["sample"] = 2;
	second["host"]["wall_s"] = 99;
	EXPECT_NE(comparison_text(compare_records({loaded(make_record("base", 1)), loaded(second)}, {"a"})).find("identical to the byte"), std::string::npos);
	second["passes_s"][0] = 1.5;
	EXPECT_NE(comparison_text(compare_records({loaded(make_record("base", 1)), loaded(second)}, {"a"})).find("which virtual time forbids"), std::string::npos);
}

TEST(Compare, OverlappingRangesAreUnclear)
{
	std::vector<LoadedRecord> records;
	for (const auto& [step, s] : {std::pair{"base", 1.0}, std::pair{"base", 1.3}, std::pair{"1", 1.2}, std::pair{"1", 1.4}, std::pair{"2", 0.5}, std::pair{"2", 0.6}}) {
		Json r = make_record(step, s);
		r["jitter_us"] = static_cast<int>(s * 1000);
		records.push_back(loaded(r));
	}
	const Json c = compare_records(records, {"a"});
	const Json& cells = (*row_named(c["tables"][0], "pass 1"))["cells"];
	EXPECT_EQ(cells[1]["verdict"], "unclear");
	EXPECT_EQ(cells[2]["verdict"], "better");
	EXPECT_NE(comparison_text(c).find("~"), std::string::npos);
	EXPECT_NE(comparison_text(c).find("begin at different moments"), std::string::npos);
	EXPECT_EQ(comparison_text(c).find("which virtual time forbids"), std::string::npos);
}

TEST(Compare, TwoSourcesSideBySideWithTheirDifferencesOnTop)
{
	Json other = make_record("base", 0.5);
	other["page_cluster"] = 5;
	other["environment"]["qemu_version"] = "10.0";
	const Json c = compare_records({loaded(make_record("base", 1), 0), loaded(other, 1)}, {"left", "right"});
	ASSERT_EQ(c["tables"].size(), 1u);
	EXPECT_EQ(c["tables"][0]["columns"][0]["label"], "A:base");
	EXPECT_EQ(c["tables"][0]["columns"][1]["label"], "B:base");
	EXPECT_EQ(c["tables"][0]["columns"][1]["baseline"], 0);
	const std::string text = comparison_text(c);
	EXPECT_LT(text.find("qemu_version"), text.find("Seconds of every pass"));
	EXPECT_NE(text.find("10.0"), std::string::npos);
	EXPECT_NE(comparison_markdown(c).find("| qemu_version | 7.2 | 10.0 |"), std::string::npos);
}

TEST(Compare, EndsWithALineATable)
{
	Json ssd = make_record("1", 0.5);
	ssd["disk"] = "ssd-850pro";
	const Json c = compare_records({loaded(make_record("base", 1)), loaded(make_record("full", 0.5)), loaded(ssd)}, {"a"});
	EXPECT_EQ(c["summary"]["columns"], Json::parse(R"(["base", "1", "full"])"));
	ASSERT_EQ(c["summary"]["lines"].size(), 2u);
	EXPECT_EQ(c["summary"]["lines"][0]["cells"][2]["seconds"], 1.0);
	EXPECT_EQ(c["summary"]["lines"][0]["cells"][2]["seconds_verdict"], "better");
	EXPECT_TRUE(c["summary"]["lines"][0]["cells"][1].is_null());
	const std::string text = comparison_text(c);
	EXPECT_GT(text.find("Where the kernel loses"), text.find("Block layer"));
	EXPECT_NE(text.find("1.00 s +"), std::string::npos) << text;
	EXPECT_NE(comparison_markdown(c).find("| 1.00 s + |"), std::string::npos) << comparison_markdown(c);
}

TEST(Compare, OneFolderOfSeveralConfigurationsGivesATableEach)
{
	Json ssd = make_record("base", 1);
	ssd["disk"] = "ssd-850pro";
	EXPECT_EQ(compare_records({loaded(make_record("base", 1)), loaded(ssd)}, {"a"})["tables"].size(), 2u);
}

class Folder : public testing::Test {
protected:
	void SetUp() override
	{
		std::string name = testing::TempDir() + "/pageout-compare-XXXXXX";
		ASSERT_NE(::mkdtemp(name.data()), nullptr);
		folder_ = name;
	}
	void TearDown() override { fs::remove_all(folder_); }
	void put(const std::string& where, const std::string& text)
	{
		fs::create_directories((folder_ / where).parent_path());
		write_file_atomically(folder_ / where, text);
	}
	std::string error_of(const fs::path& path)
	{
		try {
			(void)load_records(path, 0);
		} catch (const Error& error) {
			return error.what();
		}
		return "no error";
	}
	fs::path folder_;
};

TEST_F(Folder, RecordsAreFoundAndRunsInTheMakingAreNot)
{
	put("base/1/record.json", make_record("base", 1).dump());
	put("full/1/record.json", make_record("full", 1).dump());
	put("full/.2.part-77/record.json", "{\"half\":");
	EXPECT_EQ(load_records(folder_, 0).size(), 2u);
	EXPECT_EQ(load_records(folder_ / "base/1/record.json", 0).size(), 1u);
}

TEST_F(Folder, BadRecordsAreNamed)
{
	EXPECT_NE(error_of(folder_).find("no record.json"), std::string::npos);
	EXPECT_NE(error_of(folder_ / "none").find("none"), std::string::npos);
	const std::string whole = make_record("base", 1).dump();
	put("cut/1/record.json", whole.substr(0, whole.size() / 2));
	EXPECT_NE(error_of(folder_ / "cut").find("cut/1/record.json: no whole JSON"), std::string::npos) << error_of(folder_ / "cut");
	put("alien/1/record.json", "{\"schema\": \"other/1\"}");
	EXPECT_NE(error_of(folder_ / "alien").find("no record of schema pageout-run/1"), std::string::npos);
}

TEST_F(Folder, IdenticalRunsAreTellable)
{
	Json a = make_record("base", 1), b = a;
	b["host"]["wall_s"] = 7;
	b["sample"] = 2;
	put("a/record.json", a.dump());
	put("b/record.json", b.dump());
	put("a/trace.blktrace.0", "12345");
	put("b/trace.blktrace.0", "12345");
	EXPECT_EQ(first_difference(folder_ / "a", folder_ / "b"), "");
	put("b/trace.blktrace.0", "12x45");
	EXPECT_NE(first_difference(folder_ / "a", folder_ / "b").find("from byte 2"), std::string::npos);
	put("b/trace.blktrace.0", "1234");
	EXPECT_NE(first_difference(folder_ / "a", folder_ / "b").find("from byte 4"), std::string::npos);
	put("b/trace.blktrace.0", "12345");
	put("b/trace.blktrace.1", "");
	EXPECT_NE(first_difference(folder_ / "a", folder_ / "b").find("one side only"), std::string::npos);
	b["vmstat"]["pswpin"] = 1;
	put("b/record.json", b.dump());
	EXPECT_NE(first_difference(folder_ / "a", folder_ / "b").find("/vmstat/pswpin"), std::string::npos);
}

TEST(Control, SeesOrIsBlind)
{
	const auto check = [](double control, double base) {
		return check_control({loaded(make_record("base", 1, base)), loaded(make_record("control:ra-unplugged", 1, control))});
	};
	EXPECT_TRUE(check(800, 100).sees);
	EXPECT_DOUBLE_EQ(check(800, 100).ratio, 8);
	EXPECT_TRUE(check(300, 100).sees);
	EXPECT_FALSE(check(299, 100).sees);
	EXPECT_FALSE(check(100, 100).sees);
	EXPECT_FALSE(check_control({loaded(make_record("base", 1))}).sees);
	EXPECT_NE(check_control({loaded(make_record("base", 1))}).reason.find("control:ra-unplugged"), std::string::npos);
}

} // namespace
} // namespace pageout::bench
