// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/trace.h"

#include "support.h"

#include <gtest/gtest.h>

namespace pageout::bench {
namespace {

using test::record;

TEST(Trace, IsSplitByCpuInOrder)
{
	const std::string a = record({.time_ns = 1, .cpu = 0}), b = record({.time_ns = 2, .cpu = 3, .payload = "12345678"}), c = record({.time_ns = 3, .cpu = 0});
	const TraceSplit split = split_by_cpu(a + b + c);
	EXPECT_EQ(split.damage, "");
	ASSERT_EQ(split.cpus.size(), 2u);
	EXPECT_EQ(split.cpus.at(0), a + c);
	EXPECT_EQ(split.cpus.at(3), b);
}

TEST(Trace, DamageIsNamedAndWhatCameBeforeIsKept)
{
	const std::string a = record({.time_ns = 1});
	EXPECT_NE(split_by_cpu(a + "junkjunkjunkjunkjunkjunkjunkjunkjunkjunkjunkjunkjunk").damage.find("byte 48"), std::string::npos);
	EXPECT_NE(split_by_cpu(a + a.substr(0, 20)).damage.find("byte 48"), std::string::npos);
	const std::string cut = record({.time_ns = 1, .payload = "12345678"}).substr(0, 50);
	EXPECT_NE(split_by_cpu(a + cut).damage.find("payload"), std::string::npos);
	EXPECT_EQ(split_by_cpu(a + cut).cpus.at(0), a);
	EXPECT_EQ(split_by_cpu("").damage, "");
}

TEST(Trace, WindowsAreHalfOpenAndWithoutNotes)
{
	std::string stream, expected;
	for (const std::uint64_t t : {10, 20, 30, 40}) {
		stream += record({.time_ns = t});
		if (t == 20 || t == 30)
			expected += record({.time_ns = t});
	}
	stream += record({.time_ns = 25, .action = 1u << 26});
	EXPECT_EQ(records_between(stream, 10, 30), expected);
}

TEST(WorkloadOutput, IsRead)
{
	const auto output = read_workload_output(R"({"event": "start", "workload": "x", "bytes": 1, "passes": 1, "seed": 1}
{"event": "phase", "pass": 0, "phase": "dirty", "ns": 5, "pages": 7, "end_ns": 100}
{"event": "pass", "pass": 0, "ns": 9, "pages": 14}
{"event": "unit", "pass": 0, "unit": 0, "ns": 9, "pages": 14}
{"event": "end", "verified_pages": 7}
)", true);
	EXPECT_TRUE(output.started && output.ended);
	EXPECT_EQ(output.damage, "");
	ASSERT_EQ(output.phases.size(), 1u);
	EXPECT_EQ(output.phases[0].name, "dirty");
	EXPECT_EQ(output.phases[0].end_ns, 100u);
	ASSERT_EQ(output.passes.size(), 1u);
	EXPECT_EQ(output.passes[0].pages, 14u);
	EXPECT_EQ(output.passes[0].end_ns, 0u);
}

TEST(WorkloadOutput, OthersMayPrintWhatTheyLike)
{
	EXPECT_EQ(read_workload_output("hello\n[1]\n{}\n", false).damage, "");
	EXPECT_NE(read_workload_output("hello\n", true).damage, "");
	EXPECT_NE(read_workload_output("{\"event\": \"pass\", \"pass\": 0}\n", true).damage, "");
	EXPECT_NE(read_workload_output("{\"event\": \"corruption\", \"page\": 4}\n", true).corruption, "");
}

} // namespace
} // namespace pageout::bench
