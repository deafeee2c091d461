// SPDX-License-Identifier: GPL-2.0-only
//
// Runs pageout-load as its users do and reads what it prints.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Run {
	int status = -1;
	std::vector<Json> events;
	std::string text;

	std::vector<Json> all(const std::string &event) const
	{
		std::vector<Json> found;
		for (const auto &line : events)
			if (line.at("event") == event)
				found.push_back(line);
		return found;
	}
};

Run run(const std::string &arguments)
{
	Run result;
	FILE *pipe = popen(("timeout 60 " PAGEOUT_LOAD " " + arguments + " 2>&1").c_str(), "r");
	std::array<char, 4096> buffer;
	for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
		result.text.append(buffer.data(), n);
	const int status = pclose(pipe);
	result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	std::istringstream lines(result.text);
	for (std::string line; std::getline(lines, line);)
		if (line.starts_with('{'))
			result.events.push_back(Json::parse(line));
	return result;
}

class Folder {
public:
	explicit Folder(const fs::path &parent)
	{
		std::string name = (parent / "pageout-load-XXXXXX").string();
		path_ = mkdtemp(name.data());
	}
	~Folder() { fs::remove_all(path_); }
	const fs::path &path() const { return path_; }

private:
	fs::path path_;
};

void expect_complete(const Run &run, std::size_t passes, std::uint64_t verified)
{
	ASSERT_EQ(run.status, 0) << run.text;
	ASSERT_EQ(run.all("start").size(), 1u);
	ASSERT_EQ(run.all("pass").size(), passes);
	ASSERT_EQ(run.all("end").size(), 1u);
	EXPECT_EQ(run.events.front().at("event"), "start");
	EXPECT_EQ(run.events.back().at("event"), "end");
	EXPECT_EQ(run.events.back().at("verified_pages"), verified);
	for (std::size_t i = 0; i < passes; ++i) {
		EXPECT_EQ(run.all("pass")[i].at("pass"), i);
		EXPECT_GT(run.all("pass")[i].at("ns"), 0);
		EXPECT_GT(run.all("pass")[i].at("end_ns"), run.all("pass")[i].at("ns"));
	}
}

TEST(Program, AnonCycle)
{
	const auto result = run("anon-cycle --bytes 1M --passes 3 --seed 5");
	expect_complete(result, 3, 512);
	const auto start = result.all("start")[0];
	EXPECT_EQ(start.at("workload"), "anon-cycle");
	EXPECT_EQ(start.at("bytes"), 1 << 20);
	EXPECT_EQ(start.at("passes"), 3);
	EXPECT_EQ(start.at("seed"), 5);
	EXPECT_EQ(result.all("pass")[0].at("pages"), 256);
}

TEST(Program, TouchFit)
{
	expect_complete(run("touch-fit --bytes 64K --passes 4 --verify word"), 4, 48);
}

TEST(Program, RandomDirtyHasPhases)
{
	const auto result = run("random-dirty --bytes 1M --passes 2");
	expect_complete(result, 2, 3 * 256);
	const auto phases = result.all("phase");
	ASSERT_EQ(phases.size(), 4u);
	for (std::size_t i = 0; i < 4; ++i) {
		EXPECT_EQ(phases[i].at("phase"), i % 2 ? "read" : "dirty");
		EXPECT_EQ(phases[i].at("pages"), 256);
		EXPECT_EQ(phases[i].at("pass"), i / 2);
	}
	// Phases fill their pass without a gap.
	const auto passes = result.all("pass");
	EXPECT_EQ(phases[0].at("ns").get<std::uint64_t>() + phases[1].at("ns").get<std::uint64_t>(), passes[0].at("ns"));
	EXPECT_EQ(phases[1].at("end_ns"), passes[0].at("end_ns"));
}

TEST(Program, Interleave)
{
	expect_complete(run("interleave --processes 3 --bytes-each 256K --batch 7 --passes 3"), 3, 2 * 3 * 64);
	expect_complete(run("interleave --processes 1 --bytes-each 64K --passes 2"), 2, 16);
	expect_complete(run("interleave --processes 2 --bytes-each 64K --batch 1000 --passes 2"), 2, 32);
	expect_complete(run("interleave --processes 3 --bytes-each 256K --batch 7 --passes 3 --free"), 3, 2 * 3 * 64);
	expect_complete(run("interleave --processes 1 --bytes-each 64K --passes 2 --free"), 2, 16);
	expect_complete(run("interleave --processes 1 --bytes-each 64K --passes 2 --wait-us 1500"), 2, 16);
}

TEST(Program, MappedFile)
{
	const Folder folder(fs::current_path());
	const auto result = run("mmap-file --dir " + folder.path().string() + " --bytes 256K --units 3 --passes 2");
	expect_complete(result, 2, 3 * 64);
	EXPECT_EQ(result.all("unit").size(), 6u);
	EXPECT_TRUE(fs::is_empty(folder.path())) << "the file stays behind";

	EXPECT_EQ(run("mmap-file --keep --dir " + folder.path().string() + " --bytes 256K --units 3").status, 0);
	EXPECT_EQ(fs::file_size(folder.path() / "pageout-load.mmap"), 3u * 256 * 1024);
}

TEST(Program, MappedTmpfs)
{
	const Folder folder("/dev/shm");
	expect_complete(run("mmap-tmpfs --dir " + folder.path().string() + " --bytes 64K --units 2 --passes 2"), 2, 32);
	const auto wrong = run("mmap-tmpfs --dir /proc --bytes 64K");
	EXPECT_EQ(wrong.status, 1);
	EXPECT_NE(wrong.text.find("not on a tmpfs"), std::string::npos) << wrong.text;
}

TEST(Program, Zipf)
{
	const auto result = run("zipf --bytes 1M --ops 5000 --passes 2 --theta 1.1 --write-percent 30");
	expect_complete(result, 2, 10000);
	EXPECT_EQ(result.all("phase")[0].at("phase"), "fill");
	EXPECT_EQ(result.all("pass")[1].at("pages"), 5000);
}

TEST(Program, AllocSteady)
{
	const auto result = run("alloc-steady --bytes 256K --chunk 16K --allocations 40 --interval-us 100 --passes 2");
	// 80 allocations of 4 pages, of which all but the 16 last are read back.
	expect_complete(result, 2, 64 * 4);
	const auto stalls = result.all("stalls");
	ASSERT_EQ(stalls.size(), 2u);
	EXPECT_EQ(stalls[0].at("count"), 40);
	EXPECT_LE(stalls[0].at("p50_ns"), stalls[0].at("p99_ns"));
	EXPECT_LE(stalls[0].at("p999_ns"), stalls[0].at("max_ns"));
	EXPECT_GE(result.all("pass")[0].at("ns"), 40 * 100'000);
}

TEST(Program, CorruptionIsFoundWhereItIs)
{
	for (const std::string workload :
	     {"random-dirty --bytes 256K", "anon-cycle --bytes 256K", "interleave --processes 4 --bytes-each 64K",
	      "touch-fit --bytes 256K", "zipf --bytes 256K --theta 0.1 --ops 10000 --write-percent 0",
	      "alloc-steady --bytes 256K --interval-us 1 --allocations 40 --chunk 16K", "free-shared --bytes 256K --pressure 64K"}) {
		for (const std::string verify : {"full", "word"}) {
			const auto result = run(workload + " --passes 2 --provoke corrupt-page=21 --verify " + verify);
			EXPECT_EQ(result.status, 3) << workload << result.text;
			ASSERT_EQ(result.all("corruption").size(), 1u) << workload << result.text;
			const auto event = result.all("corruption")[0];
			EXPECT_EQ(event.at("page"), 21);
			EXPECT_EQ(event.at("pass"), 0);
			EXPECT_EQ(event.at("wrong_bytes"), 1);
			EXPECT_EQ(event.at("expected").get<int>() ^ event.at("found").get<int>(), 1);
			if (verify == "word") {
				EXPECT_EQ(event.at("offset"), 1);
			} else {
				EXPECT_EQ(event.at("offset"), sysconf(_SC_PAGESIZE) / 2 + 9);
			}
			EXPECT_TRUE(result.all("end").empty());
		}
	}
}

TEST(Program, FailuresSayWhyAndWhere)
{
	auto result = run("anon-cycle --bytes 1000");
	EXPECT_EQ(result.status, 1);
	EXPECT_NE(result.text.find("multiple of the page size"), std::string::npos) << result.text;
	result = run("mmap-file --dir /nowhere --bytes 64K");
	EXPECT_EQ(result.status, 1);
	EXPECT_NE(result.text.find("/nowhere"), std::string::npos) << result.text;
	result = run("random-dirty --bytes 64K --provoke fail");
	EXPECT_EQ(result.status, 1);
	EXPECT_EQ(result.all("pass").size(), 1u);
	result = run("interleave --bytes-each 64K --provoke fail");
	EXPECT_EQ(result.status, 1);
	result = run("anon-cycle --bytes 64K --provoke corrupt-page=16");
	EXPECT_EQ(result.status, 1);
	EXPECT_NE(result.text.find("pages 0 to 15"), std::string::npos) << result.text;
	// Nobody reads the result: that is no success.
	EXPECT_EQ(run("anon-cycle --bytes 64K > /dev/full").status, 1);
}

TEST(Program, UsageErrorsAreStatus2)
{
	for (const char *arguments : {"", "nothing", "anon-cycle --bytes 1X", "anon-cycle --bytes 0", "anon-cycle --passes 0",
				      "anon-cycle --verify some", "anon-cycle --provoke what", "interleave --batch 0", "zipf --theta 0"}) {
		const auto result = run(arguments);
		EXPECT_EQ(result.status, 2) << arguments << result.text;
		EXPECT_TRUE(result.events.empty()) << arguments;
	}
}

TEST(Program, HelpAndVersion)
{
	const auto help = run("--help");
	EXPECT_EQ(help.status, 0);
	EXPECT_NE(help.text.find("Example"), std::string::npos);
	EXPECT_EQ(help.text.find("provoke"), std::string::npos);
	const auto version = run("--version");
	EXPECT_EQ(version.status, 0);
	EXPECT_EQ(version.text, "pageout-load " PAGEOUT_VERSION "\n");
}

} // namespace
