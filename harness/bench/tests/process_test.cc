// SPDX-License-Identifier: GPL-2.0-only
//
// Emulators that misbehave, played by shell scripts: none is left behind, and each end is told apart.
#include "pageout/bench/process.h"

#include "pageout/bench/error.h"
#include "pageout/bench/guest_memory.h"
#include "pageout/bench/qemu.h"
#include "pageout/bench/scenario.h"
#include "pageout/bench/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pageout::bench {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Emulator : public testing::Test {
protected:
	void SetUp() override
	{
		std::string name = testing::TempDir() + "/pageout-emulator-XXXXXX";
		ASSERT_NE(::mkdtemp(name.data()), nullptr);
		folder_ = name;
	}
	void TearDown() override { fs::remove_all(folder_); }

	/// A program that writes its pid down and then does `body`.
	std::vector<std::string> script(const std::string& body)
	{
		const fs::path path = folder_ / "qemu";
		std::ofstream(path) << "#!/bin/sh\necho $$ > " << (folder_ / "pid").string() << "\n" << body << "\n";
		::chmod(path.c_str(), 0755);
		return {path.string()};
	}
	GuestEnd run(const std::string& body, std::chrono::milliseconds boot = 10s, std::chrono::milliseconds timeout = 10s, bool alive = true)
	{
		return run_emulator(script(body), folder_ / "log", {}, boot, timeout, [=] { return alive; }, {});
	}
	bool gone(const std::string& file = "pid")
	{
		const int pid = std::atoi(read_file(folder_ / file).c_str());
		// It may be a zombie, for as long as its new parent does not ask for it.
		for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(20ms)) {
			if (::kill(pid, 0) != 0)
				return true;
			// Not read_file(): it may be gone by now, which the next turn sees.
			std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
			std::string stat;
			std::getline(in, stat);
			const auto name_end = stat.rfind(')');
			if (name_end != std::string::npos && stat.compare(name_end, 4, ") Z ") == 0)
				return true;
		}
		return false;
	}
	fs::path folder_;
};

TEST_F(Emulator, EndsByItself)
{
	const GuestEnd end = run("exit 7");
	EXPECT_EQ(end.how, GuestEnd::How::exited);
	EXPECT_EQ(end.code, 7);
}

TEST_F(Emulator, IsKilled)
{
	const GuestEnd end = run("kill -SEGV $$");
	EXPECT_EQ(end.how, GuestEnd::How::signaled);
	EXPECT_EQ(end.code, SIGSEGV);
}

TEST_F(Emulator, WhatItSaysIsKept)
{
	const GuestEnd end = run("echo out; echo 'qemu: bad option' >&2; exit 1");
	EXPECT_NE(end.diagnostics.find("qemu: bad option"), std::string::npos);
	EXPECT_NE(end.diagnostics.find("out"), std::string::npos);
}

TEST_F(Emulator, SpewsWithoutHarm)
{
	const GuestEnd end = run("i=0; while [ $i -lt 20000 ]; do echo 'a line of nonsense that fills any pipe'; i=$((i+1)); done; exit 0");
	EXPECT_EQ(end.how, GuestEnd::How::exited);
	EXPECT_LT(end.diagnostics.size(), 500u);
	EXPECT_GT(fs::file_size(folder_ / "log"), 700'000u);
}

TEST_F(Emulator, TimesOutAndIsGone)
{
	const auto start = std::chrono::steady_clock::now();
	const GuestEnd end = run("trap '' TERM INT; sleep 100", 10s, 500ms);
	EXPECT_EQ(end.how, GuestEnd::How::timed_out);
	EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
	EXPECT_TRUE(gone());
}

TEST_F(Emulator, WithoutASignOfLifeItIsStoppedSooner)
{
	const GuestEnd end = run("sleep 100", 300ms, 60s, false);
	EXPECT_EQ(end.how, GuestEnd::How::boot_timed_out);
	EXPECT_TRUE(gone());
}

TEST_F(Emulator, ItsChildrenGoWithIt)
{
	const GuestEnd end = run("sleep 100 & echo $! > " + (folder_ / "child").string() + "; exit 0");
	EXPECT_EQ(end.how, GuestEnd::How::exited);
	EXPECT_TRUE(gone("child"));
}

TEST_F(Emulator, InterruptionReachesIt)
{
	const InterruptScope scope;
	std::thread later([] {
		std::this_thread::sleep_for(300ms);
		::kill(::getpid(), SIGINT);
	});
	try {
		run("sleep 100", 60s, 60s);
		ADD_FAILURE() << "not interrupted";
	} catch (const Interrupted& interrupted) {
		EXPECT_EQ(interrupted.exit_status(), 130);
	}
	later.join();
	EXPECT_TRUE(gone());
}

TEST_F(Emulator, DoesNotOutliveAKilledBench)
{
	const auto argv = script("sleep 100");
	const pid_t bench = ::fork();
	if (bench == 0) {
		run_emulator(argv, folder_ / "log", {}, 60s, 60s, [] { return true; }, {});
		::_exit(0);
	}
	for (int i = 0; i < 200 && !fs::exists(folder_ / "pid"); ++i)
		std::this_thread::sleep_for(20ms);
	std::this_thread::sleep_for(100ms);
	::kill(bench, SIGKILL);
	::waitpid(bench, nullptr, 0);
	EXPECT_TRUE(gone());
}

TEST_F(Emulator, SeesTheMemoryByItsNamelessFile)
{
	GuestMemory memory(16 << 20, 1 << 20);
	const auto argv = script("printf hello | dd of=/proc/self/fd/" + std::to_string(memory.fd()) + " bs=1 seek=4096 conv=notrunc 2>/dev/null");
	const GuestEnd end = run_emulator(argv, folder_ / "log", {memory.fd()}, 10s, 10s, [] { return true; }, {});
	EXPECT_EQ(end.code, 0) << end.diagnostics;
	EXPECT_EQ(std::memcmp(memory.bytes(4096, 5).data(), "hello", 5), 0);
}

TEST_F(Emulator, MissingIsSaidWithThePackage)
{
	::setenv("PAGEOUT_QEMU", "no-such-qemu", 1);
	try {
		(void)find_qemu();
		FAIL();
	} catch (const Error& error) {
		EXPECT_NE(std::string(error.what()).find("apt-get install qemu-system-x86"), std::string::npos) << error.what();
	}
	::unsetenv("PAGEOUT_QEMU");
	EXPECT_THROW(run_emulator({"/no/such/qemu"}, folder_ / "log", {}, 1s, 1s, [] { return true; }, {}), Error);
}

class Kvm : public Emulator {
protected:
	Accel choose(const std::string& body, const std::string& request = "auto")
	{
		std::ofstream(folder_ / "kvm") << "";
		return choose_accel(request, "host", script(body).front(), folder_ / "kvm", 500ms);
	}
};

TEST_F(Kvm, Absent)
{
	const Accel accel = choose_accel("auto", "host", script("exit 99").front(), folder_ / "no-kvm", 500ms);
	EXPECT_EQ(accel.name, "tcg");
	EXPECT_NE(accel.finding.find("absent"), std::string::npos) << accel.finding;
	EXPECT_THROW(choose_accel("kvm", "host", script("exit 99").front(), folder_ / "no-kvm", 500ms), Error);
}

TEST_F(Kvm, Unreadable)
{
	const auto program = script("exit 99");
	std::ofstream(folder_ / "kvm") << "";
	::chmod((folder_ / "kvm").c_str(), 0);
	::chmod(folder_.c_str(), 0755);
	// Root reads everything, so the question is asked by nobody.
	const pid_t child = ::fork();
	if (child == 0) {
		if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0))
			::_exit(2);
		const Accel accel = choose_accel("auto", "host", program.front(), folder_ / "kvm", 500ms);
		::_exit(accel.name == "tcg" && accel.finding.find("unreadable") != std::string::npos ? 0 : 1);
	}
	int status = 0;
	ASSERT_EQ(::waitpid(child, &status, 0), child);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Kvm, PresentButDead)
{
	Accel accel = choose("sleep 100");
	EXPECT_EQ(accel.name, "tcg");
	EXPECT_NE(accel.finding.find("present but dead: a probe guest gave no answer"), std::string::npos) << accel.finding;
	EXPECT_TRUE(gone());
	accel = choose("echo 'failed to initialize kvm' >&2; exit 1");
	EXPECT_EQ(accel.name, "tcg");
	EXPECT_NE(accel.finding.find("failed to initialize kvm"), std::string::npos) << accel.finding;
	EXPECT_THROW(choose("exit 1", "kvm"), Error);
}

TEST_F(Kvm, Answers)
{
	EXPECT_EQ(choose("exit 99").name, "kvm");
}

TEST_F(Kvm, AKernelHasToBootToo)
{
	const auto prove = [&](const std::string& body, const std::string& request = "auto") {
		return prove_kvm({"kvm", "answered"}, request, script(body).front(), "bzImage", 500ms);
	};
	// The emulator's console is the file that its arguments name.
	const std::string console = "for word; do case $word in *path=*) out=${word#*path=};; esac; done; ";
	EXPECT_EQ(prove(console + "echo '[ 1.0] Kernel panic - not syncing: VFS: Unable to mount root fs' > $out").name, "kvm");
	Accel accel = prove(console + "echo '[ 0.0] Linux version 6.12' > $out; sleep 100");
	EXPECT_EQ(accel.name, "tcg");
	EXPECT_NE(accel.finding.find("present but dead"), std::string::npos) << accel.finding;
	EXPECT_NE(accel.finding.find("Linux version 6.12"), std::string::npos) << accel.finding;
	EXPECT_TRUE(gone());
	accel = prove("echo 'failed to set MSR' >&2; kill -ABRT $$");
	EXPECT_EQ(accel.name, "tcg");
	EXPECT_NE(accel.finding.find("signal 6 (failed to set MSR)"), std::string::npos) << accel.finding;
	EXPECT_EQ(prove("exit 0").name, "tcg"); // silence proves nothing
	EXPECT_THROW(prove("exit 0", "kvm"), Error);
	EXPECT_EQ(prove_kvm({"tcg", "absent"}, "auto", "/no/such/qemu", "x", 1ms).finding, "absent");
}

TEST_F(Kvm, IsNotAskedForVirtualTime)
{
	EXPECT_EQ(choose_accel("auto", "virtual", "/no/such/qemu", folder_ / "kvm", 500ms).name, "tcg");
	EXPECT_THROW(choose_accel("kvm", "virtual", "/no/such/qemu", folder_ / "kvm", 500ms), Error);
}

TEST(Command, VirtualTimeHasNoOtherSourceOfTimeOrChance)
{
	Scenario s;
	s.clock = "virtual";
	s.icount_shift = 2;
	s.cmdline = {"extra=1"};
	s.cmdline_remove = {"tsc=reliable"};
	Layout layout;
	layout.mem_bytes = 64 << 20;
	layout.total_bytes = 1 << 30;
	layout.job = {"job", 0x4000000, 0x100000};
	const auto argv = qemu_argv(s, layout, "tcg", {"{qemu}", "{bzimage}", "{initramfs}", "{memory}", "{console}"});
	const std::string line = shell_line(argv);
	for (const char* part : {"env 'LD_PRELOAD={turns}' '{qemu}' ", "debug-threads=on", "-accel tcg ", "-icount shift=2,sleep=off", "-rtc base=2020-01-01,clock=vm", "-seed 1", "-cpu max,-rdrand,-rdseed", "-no-reboot", "-nodefaults", "-m 1024M",
				 "share=on", "-M pc,", "mem=67108864", "nokaslr", "pageout.job=0x4000000,0x100000", "extra=1", "clearcpuid=rep_good,erms,fsrm"})
		EXPECT_NE(line.find(part), std::string::npos) << part << "\n" << line;
	EXPECT_EQ(line.find("tsc=reliable"), std::string::npos);
	EXPECT_EQ(line.find("kvm"), std::string::npos);
}

TEST(Capture, ReturnsOutputAndQuotesFailures)
{
	EXPECT_EQ(capture({"/bin/sh", "-c", "echo hello"}, "x"), "hello\n");
	try {
		capture({"/bin/sh", "-c", "exit 5"}, "building a thing");
		FAIL();
	} catch (const Error& error) {
		EXPECT_NE(std::string(error.what()).find("building a thing failed (status 5)"), std::string::npos) << error.what();
	}
	EXPECT_THROW(capture({"/no/such/tool"}, "x"), Error);
}

} // namespace
} // namespace pageout::bench
