// SPDX-License-Identifier: GPL-2.0-only
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "child.h"
#include "disks.h"
#include "physical.h"
#include "samples.h"
#include "trace_start.h"

namespace pageout::guest {
namespace {

constexpr const char *timer_list = "cpu: 0\n clock 0:\n  .resolution: 1 nsecs\n clock 1:\n  .resolution: 1 nsecs\n"
				   "  .idle_sleeptime : 5000000 nsecs\n  .iowait_sleeptime: 7000 nsecs\n"
				   "cpu: 1\n  .resolution: 1 nsecs\n  .idle_sleeptime : 1000 nsecs\n  .iowait_sleeptime: 0 nsecs\n";

TEST(Clock, IsReadFromTheTimerList)
{
	auto facts = clock_facts("tsc\n", timer_list);
	EXPECT_EQ(facts.source, "tsc");
	EXPECT_EQ(facts.resolution_ns, 1u);
	EXPECT_EQ(idle_us(timer_list), 5008u);
	// One coarse base is enough to spoil a run.
	facts = clock_facts("tsc-early\n", std::string(timer_list) + "  .resolution: 4000000 nsecs\n");
	EXPECT_EQ(facts.source, "tsc-early");
	EXPECT_EQ(facts.resolution_ns, 4'000'000u);
	EXPECT_THROW(clock_facts("tsc\n", "nothing here"), Outcome);
}

TEST(KibLines, AreFoundByTheirWholeName)
{
	const std::string text = "MemTotal:       61440 kB\nSwapCached:        4 kB\nCached:         1200 kB\n";
	EXPECT_EQ(kib_line_bytes(text, "MemTotal"), 61440u * 1024);
	EXPECT_EQ(kib_line_bytes(text, "Cached"), 1200u * 1024);
	EXPECT_THROW(kib_line_bytes(text, "MemFree"), Outcome);
}

TEST(CommandLine, Regions)
{
	const auto region = region_of("quiet pageout.job=0x8000000,0x10000 pageout.out=0x9000000,1048576\n", "pageout.out");
	EXPECT_EQ(region.address, 0x9000000u);
	EXPECT_EQ(region.bytes, 1048576u);
	for (const char *wrong : {"", "pageout.outer=0x1000,0x1000", "pageout.out=0x1000", "pageout.out=0x1001,0x1000",
				  "pageout.out=0x1000,0", "pageout.out=0x1000,0x1000x", "pageout.out=a,b"})
		EXPECT_THROW(region_of(wrong, "pageout.out"), Outcome) << wrong;
}

TEST(SwapHeader, IsWhatOthersRecognize)
{
	const auto header = swap_header(64 << 20, 7);
	const auto path = std::filesystem::temp_directory_path() / ("pageout-swap-" + std::to_string(getpid()));
	{
		std::ofstream file(path, std::ios::binary);
		file.write(reinterpret_cast<const char *>(header.data()), header.size());
		file.seekp((64 << 20) - 1);
		file.put('\0');
	}
	Child blkid({{"/sbin/blkid", "-p", path.string()}, {}, 0, 0});
	std::string said;
	char buffer[512];
	for (ssize_t n; (n = read(blkid.out(), buffer, sizeof buffer)) > 0;)
		said.append(buffer, std::size_t(n));
	std::filesystem::remove(path);
	EXPECT_NE(said.find("TYPE=\"swap\""), std::string::npos) << said;
	EXPECT_NE(said.find("LABEL=\"pageout\""), std::string::npos) << said;
	std::uint32_t last_page;
	std::memcpy(&last_page, header.data() + 1028, sizeof last_page);
	EXPECT_EQ(last_page, (64u << 20) / 4096 - 1);
}

std::vector<std::byte> record(std::uint32_t action, std::uint32_t device, std::uint16_t pdu)
{
	std::vector<std::byte> bytes(48u + pdu);
	const std::uint32_t magic = 0x65617407;
	std::memcpy(bytes.data(), &magic, 4);
	std::memcpy(bytes.data() + 28, &action, 4);
	std::memcpy(bytes.data() + 36, &device, 4);
	std::memcpy(bytes.data() + 46, &pdu, 2);
	return bytes;
}

TEST(TraceStart, WaitsForEveryDeviceInPiecesOfAnySize)
{
	constexpr std::uint32_t notify = 1u << 26, a = 8 << 20, b = (8 << 20) | 16;
	std::vector<std::byte> stream;
	for (const auto &piece : {record(notify | 0, a, 16), record(notify | 1, a, 8), record(0x10001, a, 0), record(notify | 2, b, 31),
				  record(notify | 1, b, 8)})
		stream.insert(stream.end(), piece.begin(), piece.end());
	const auto without_pdu = stream.size() - 8; // started() needs the record's head alone
	for (std::size_t size = 1; size <= stream.size(); ++size) {
		TraceStart start({a, b});
		for (std::size_t at = 0; at < stream.size(); at += size) {
			EXPECT_EQ(start.started(), at >= without_pdu) << size << " " << at;
			start.feed(std::span(stream).subspan(at, std::min(size, stream.size() - at)));
		}
		EXPECT_TRUE(start.started());
	}
	TraceStart start({a});
	EXPECT_THROW(start.feed(std::vector<std::byte>(48)), Outcome);
}

TEST(Child, GivesWhatAProgramSaysAndHowItEnds)
{
	Child child({{"sh", "-c", "echo out; echo err >&2; echo $WORD $HOME; exit 7"}, {{"WORD", "w"}, {"HOME", "/h"}}, 0, 0});
	std::string out, err;
	char buffer[512];
	for (ssize_t n; (n = read(child.out(), buffer, sizeof buffer)) > 0;)
		out.append(buffer, std::size_t(n));
	for (ssize_t n; (n = read(child.err(), buffer, sizeof buffer)) > 0;)
		err.append(buffer, std::size_t(n));
	pollfd ended{child.ended(), POLLIN, 0};
	ASSERT_EQ(poll(&ended, 1, 10000), 1);
	ASSERT_TRUE(child.try_reap());
	EXPECT_EQ(out, "out\nw /h\n");
	EXPECT_EQ(err, "err\n");
	EXPECT_EQ(child.exit_code(), 7);
	EXPECT_EQ(child.term_signal(), 0);
}

TEST(Child, IsKilledWithAllItStarted)
{
	pid_t pid;
	// Orphans come to this process, and need not wait for the host's init to reap them.
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	{
		Child child({{"sh", "-c", "sleep 1000 & sleep 1000"}, {}, 0, 0});
		pid = child.pid();
		EXPECT_FALSE(child.try_reap());
	}
	for (int i = 0; i < 1000 && kill(-pid, 0) == 0; ++i) {
		waitpid(-pid, nullptr, WNOHANG);
		poll(nullptr, 0, 1);
	}
	EXPECT_NE(kill(-pid, 0), 0);
}

TEST(Child, WhatIsNotThereIsAnError)
{
	try {
		Child child({{"no-such-program"}, {}, 0, 0});
		FAIL();
	} catch (const Outcome &outcome) {
		EXPECT_EQ(outcome.status, "WORKLOAD-FAILED");
		EXPECT_NE(std::string(outcome.what()).find("no-such-program"), std::string::npos);
	}
}

} // namespace
} // namespace pageout::guest
