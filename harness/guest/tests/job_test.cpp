// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/job.h"

#include <cstring>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pageout::job {
namespace {

using Json = nlohmann::ordered_json;

Json example()
{
	return Json::parse(R"({
	    "schema": "pageout-job/1", "mode": "run", "lru": "mglru", "page_cluster": 5,
	    "settings": [{"path": "/sys/kernel/mm/pageout/cluster_pages", "value": "32", "optional": true}],
	    "disks": [{"name": "swap", "role": "swap", "model": "ata-2005", "phys": 134217728, "bytes": 268435456,
	               "scheduler": "mq-deadline", "priority": -1, "params": {"tags": "64", "reorder": 1}},
	              {"name": "file", "role": "ext4", "model": "nvme", "phys": 402653184, "bytes": 65536}],
	    "trace": ["swap", "file"], "trace_buffers": {"kib": 256, "count": 4},
	    "workload": {"argv": ["pageout-load", "random-dirty"], "env": {"A": "b c"}},
	    "fio_job": null, "probe": true, "clock": "virtual", "virtual_limit_s": 3600})");
}

std::string refusal(const Json &json)
{
	try {
		parse(json.dump());
	} catch (const JobError &error) {
		return error.what();
	}
	return "accepted";
}

TEST(Job, TravelsAsTheContractSays)
{
	const auto bytes = encode("{}");
	ASSERT_EQ(bytes.size(), 18u);
	EXPECT_EQ(std::memcmp(bytes.data(), "PGOUTJOB\1\0\0\0\2\0\0\0{}", 18), 0);
	EXPECT_EQ(decode(bytes), "{}");
	auto longer = bytes;
	longer.resize(4096);
	EXPECT_EQ(decode(longer), "{}");
}

TEST(Job, DamagedHeadersAreNamed)
{
	const auto refused = [](std::vector<std::byte> bytes) {
		try {
			decode(bytes);
		} catch (const JobError &error) {
			return std::string(error.what());
		}
		return std::string("accepted");
	};
	auto bytes = encode("{}");
	EXPECT_EQ(refused(bytes), "accepted");
	EXPECT_NE(refused(std::vector<std::byte>(4096)).find("left no job"), std::string::npos);
	EXPECT_NE(refused(std::vector<std::byte>(8)).find("smaller than the header"), std::string::npos);
	bytes[8] = std::byte{2};
	EXPECT_NE(refused(bytes).find("byte 8: version 2"), std::string::npos);
	bytes[8] = std::byte{1};
	bytes[12] = std::byte{3};
	EXPECT_NE(refused(bytes).find("byte 12"), std::string::npos);
	bytes[15] = std::byte{255};
	EXPECT_NE(refused(bytes).find("byte 12"), std::string::npos);
}

TEST(Job, AllOfItIsRead)
{
	const auto job = parse(example().dump());
	EXPECT_EQ(job.mode, Mode::run);
	EXPECT_EQ(job.lru, Lru::mglru);
	EXPECT_EQ(job.page_cluster, 5);
	ASSERT_EQ(job.settings.size(), 1u);
	EXPECT_EQ(job.settings[0].path, "/sys/kernel/mm/pageout/cluster_pages");
	EXPECT_EQ(job.settings[0].value, "32");
	EXPECT_TRUE(job.settings[0].optional);
	ASSERT_EQ(job.disks.size(), 2u);
	EXPECT_EQ(job.disks[0].role, Role::swap);
	EXPECT_EQ(job.disks[0].scheduler, "mq-deadline");
	EXPECT_EQ(job.disks[0].priority, -1);
	EXPECT_EQ(job.disks[0].add_line(), "name=swap model=ata-2005 phys=134217728 bytes=268435456 tags=64 reorder=1");
	EXPECT_EQ(job.disks[1].role, Role::ext4);
	EXPECT_EQ(job.disks[1].scheduler, "");
	EXPECT_EQ(job.trace, (std::vector<std::string>{"swap", "file"}));
	EXPECT_EQ(job.trace_buffer_kib, 256u);
	EXPECT_EQ(job.trace_buffer_count, 4u);
	EXPECT_EQ(job.argv, (std::vector<std::string>{"pageout-load", "random-dirty"}));
	EXPECT_EQ(job.env[0], std::pair(std::string("A"), std::string("b c")));
	EXPECT_EQ(job.fio_job, "");
	EXPECT_TRUE(job.probe);
	EXPECT_EQ(job.clock, Clock::virtual_time);
	EXPECT_EQ(job.virtual_limit_s, 3600u);
}

TEST(Job, FioInsteadOfAProgram)
{
	auto json = example();
	json["fio_job"] = "mmap-dirty.fio";
	json.erase("workload");
	EXPECT_EQ(parse(json.dump()).fio_job, "mmap-dirty.fio");
}

TEST(Job, KunitNeedsNothingElse)
{
	EXPECT_EQ(parse(R"({"schema": "pageout-job/1", "mode": "kunit"})").mode, Mode::kunit);
}

TEST(Job, WrongMembersAreNamed)
{
	const auto with = [](const char *pointer, const Json &value) {
		auto json = example();
		json[Json::json_pointer(pointer)] = value;
		return refusal(json);
	};
	const std::pair<std::pair<const char *, Json>, const char *> cases[] = {
		{{"/schema", "pageout-job/2"}, "job.schema"},
		{{"/mode", "walk"}, "\"walk\" is not one of run, kunit"},
		{{"/mode", 3}, "job.mode: is not a string"},
		{{"/lru", "lifo"}, "job.lru"},
		{{"/page_cluster", "3"}, "job.page_cluster: is not an integer"},
		{{"/page_cluster", 32}, "from 0 to 31"},
		{{"/page_cluster", -1}, "from 0 to 31"},
		{{"/page_clustr", 3}, "unknown member \"page_clustr\""},
		{{"/settings/0/path", "sys/x"}, "job.settings[0].path: is not an absolute path"},
		{{"/settings/0/vaule", "1"}, "job.settings[0]: unknown member \"vaule\""},
		{{"/settings/0/optional", 1}, "job.settings[0].optional"},
		{{"/disks/0/role", "tape"}, "job.disks[0].role"},
		{{"/disks/0/name", "prog"}, "job.disks[0].name"},
		{{"/disks/0/name", "a b"}, "job.disks[0].name"},
		{{"/disks/0/name", "../x"}, "job.disks[0].name"},
		{{"/disks/0/model", "a b=c"}, "job.disks[0].model"},
		{{"/disks/0/phys", 5000}, "multiples of 4096"},
		{{"/disks/0/bytes", 0}, "job.disks[0].bytes"},
		{{"/disks/0/bytes", 18446744073709551615u}, "job.disks[0].bytes"},
		{{"/disks/0/params/tags", "6 4"}, "job.disks[0].params.tags"},
		{{"/disks/0/params/tags", 1.5}, "job.disks[0].params.tags"},
		{{"/disks/1/name", "swap"}, "job.disks[1]: a second disk named \"swap\""},
		{{"/trace/0", "swop"}, "job.trace[0]: there is no disk \"swop\""},
		{{"/trace/1", "swap"}, "job.trace[1]: \"swap\" is named twice"},
		{{"/trace/1", 7}, "job.trace[1]: is not a string"},
		{{"/trace_buffers/kib", 0}, "job.trace_buffers.kib"},
		{{"/workload/argv", Json::array()}, "says what to run"},
		{{"/workload/argv/1", 5}, "job.workload.argv[1]"},
		{{"/workload/env/A", 5}, "job.workload.env.A"},
		{{"/fio_job", "../x.fio"}, "job.fio_job"},
		{{"/probe", "yes"}, "job.probe"},
		{{"/clock", "sun"}, "job.clock"},
		{{"/virtual_limit_s", 0}, "job.virtual_limit_s"},
		{{"/disks", 5}, "job.disks: is not an array"},
		{{"/disks/0", 5}, "job.disks[0]: is not an object"},
	};
	for (const auto &[change, message] : cases)
		EXPECT_NE(with(change.first, change.second).find(message), std::string::npos)
			<< change.first << ": " << with(change.first, change.second);
}

TEST(Job, MissingMembersAreNamed)
{
	for (const char *name : {"schema", "mode", "lru", "page_cluster", "disks", "trace", "trace_buffers", "clock", "virtual_limit_s"}) {
		auto json = example();
		json.erase(name);
		EXPECT_NE(refusal(json).find(std::string("has no member \"") + name), std::string::npos) << refusal(json);
	}
}

TEST(Job, BrokenTextIsNamedByByte)
{
	try {
		parse("{\"schema\": }");
		FAIL();
	} catch (const JobError &error) {
		EXPECT_NE(std::string(error.what()).find("byte 28"), std::string::npos) << error.what();
	}
}

} // namespace
} // namespace pageout::job
