// SPDX-License-Identifier: GPL-2.0-only
//
// pageout-guest: process 1 of the guest. Does the job that the host left in
// memory, leaves what came of it in the mailbox, and ends the guest.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/blktrace_api.h>

#include <nlohmann/json.hpp>

#include "child.h"
#include "disks.h"
#include "pageout/job.h"
#include "pageout/mailbox.h"
#include "physical.h"
#include "samples.h"
#include "system.h"
#include "trace_start.h"

namespace pageout::guest {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t second_ns = 1'000'000'000;

// Above the workload, which would otherwise let the kernel's trace buffers fill;
// the tracer above the agent, whose pipe it fills.
constexpr int agent_priority = 1;
constexpr int tracer_priority = 2;

struct Result {
	std::string status = "PASS";
	std::string reason;
	int exit_code = 0;
	int signal = 0;
};

class Agent {
public:
	Agent(mailbox::Writer &box, const job::Job &job) : box_(box), job_(job) {}

	Result run();

private:
	void check_clock();
	void load_modules();
	void set_up();
	void start_tracing();
	void stop_tracing();
	void settle();
	Result run_workload();
	std::string memory();

	// Moves what the programs said into the mailbox; waits for that up to
	// timeout_ns.
	void pump(std::uint64_t timeout_ns);
	bool move(int fd, const char *name, bool trace);

	mailbox::Writer &box_;
	const job::Job &job_;
	std::unique_ptr<Child> tracer_;
	std::optional<TraceStart> trace_start_;
	std::string tracer_error_;
	std::unique_ptr<Child> workload_;
	std::uint64_t lost_trace_bytes_ = 0;
	std::uint64_t lost_output_bytes_ = 0;
	std::uint64_t dropped_ = 0;
	bool tracer_died_ = false;
};

// A kernel that has just booted still calibrates its clock, for about a second,
// and changes over to it then: in the middle of what is measured, if that began.
void Agent::check_clock()
{
	const auto read = [] {
		return clock_facts(read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
				   read_file("/proc/timer_list"));
	};
	const auto good = [](const ClockFacts &facts) { return facts.source == "tsc" && facts.resolution_ns == 1; };
	auto facts = read();
	const bool needed = job_.clock == job::Clock::virtual_time;
	for (int tenths = 0; needed && !good(facts) && tenths < 50; ++tenths) {
		poll(nullptr, 0, 100);
		facts = read();
	}
	box_.put("clock.json", Json{{"clocksource", facts.source}, {"resolution_ns", facts.resolution_ns}}.dump());
	if (needed && !good(facts))
		throw Outcome("COARSE-CLOCK", "the clock source is " + facts.source + " and timers resolve " +
						      std::to_string(facts.resolution_ns) +
						      " ns; to measure, the clock must be tsc and timers resolve 1 ns");
}

void load_module(const std::string &path)
{
	const auto fd = open_file(path, O_RDONLY);
	if (syscall(SYS_finit_module, fd.get(), "", 0) != 0)
		fail_errno("cannot load " + path);
}

std::vector<std::string> modules()
{
	std::vector<std::string> names;
	DIR *directory = opendir("/modules");
	if (!directory)
		fail_errno("cannot read /modules");
	while (const dirent *entry = readdir(directory))
		if (entry->d_name[0] != '.')
			names.push_back(entry->d_name);
	closedir(directory);
	std::sort(names.begin(), names.end());
	return names;
}

bool is_kunit(const std::string &name)
{
	return name == "kunit.ko" || name.starts_with("kunit_");
}

// pageout_probe only where it is wanted, since a tracepoint that is watched costs
// instructions; whatever else there is, always. Then the modules' files go: they
// are in the memory under test.
void Agent::load_modules()
{
	bool probe = false;
	for (const auto &name : modules()) {
		const bool is_probe = name == "pageout_probe.ko";
		if ((is_probe && job_.probe) || (!is_probe && !is_kunit(name)))
			load_module("/modules/" + name);
		probe = probe || is_probe;
	}
	if (job_.probe && !probe)
		fail("the job asks for the probe, and there is no /modules/pageout_probe.ko");
	if (umount2("/modules", 0) != 0)
		fail_errno("cannot unmount /modules");
}

void Agent::set_up()
{
	const std::string lru = "/sys/kernel/mm/lru_gen/enabled";
	std::string ignored;
	if (try_read_file(lru, ignored))
		write_file(lru, job_.lru == job::Lru::mglru ? "y" : "n", "choosing the LRU");
	else if (job_.lru == job::Lru::mglru)
		fail("the job asks for the multi-generational LRU, and this kernel has no " + lru);
	write_file("/proc/sys/vm/page-cluster", std::to_string(job_.page_cluster), "page_cluster");

	std::uint64_t index = 1;
	for (const auto &disk : job_.disks)
		bring_up(disk, index++);

	for (const auto &setting : job_.settings) {
		const int error = try_write_file(setting.path, setting.value);
		if (error == 0)
			continue;
		const auto what = "setting " + setting.path + " to \"" + setting.value + "\": " + std::strerror(error);
		if (!setting.optional || error != ENOENT)
			fail(what);
		say(what + " (optional)");
	}

	// Whatever bringing up left in memory is not the workload's.
	sync();
	write_file("/proc/sys/vm/drop_caches", "3", "dropping caches");
	malloc_trim(0);
}

bool Agent::move(int fd, const char *name, bool trace)
{
	auto room = box_.reserve(64 << 10);
	char nowhere[1024];
	const bool full = room.empty();
	const ssize_t n = full ? read(fd, nowhere, sizeof nowhere) : read(fd, room.data(), room.size());
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	if (full) {
		(trace ? lost_trace_bytes_ : lost_output_bytes_) += std::uint64_t(n);
		return true;
	}
	if (trace && trace_start_)
		trace_start_->feed(room.first(std::size_t(n)));
	box_.commit(name, std::size_t(n));
	return true;
}

void Agent::pump(std::uint64_t timeout_ns)
{
	enum { trace_out, trace_err, load_out, load_err, load_end, trace_end, count };
	pollfd fds[count];
	for (auto &fd : fds)
		fd = {-1, POLLIN, 0};
	if (tracer_) {
		fds[trace_out].fd = tracer_->out();
		fds[trace_err].fd = tracer_->err();
		// Its end is of interest when both pipes are empty.
		if (tracer_->out() < 0 && tracer_->err() < 0 && !tracer_->reaped())
			fds[trace_end].fd = tracer_->ended();
	}
	if (workload_) {
		fds[load_out].fd = workload_->out();
		fds[load_err].fd = workload_->err();
		if (!workload_->reaped())
			fds[load_end].fd = workload_->ended();
	}
	const timespec timeout = {time_t(timeout_ns / second_ns), long(timeout_ns % second_ns)};
	if (ppoll(fds, count, &timeout, nullptr) <= 0)
		return;
	if (fds[trace_out].revents && !move(fds[trace_out].fd, "trace", true))
		tracer_->close_out();
	if (fds[trace_err].revents) {
		char buffer[512];
		const ssize_t n = read(fds[trace_err].fd, buffer, sizeof buffer);
		if (n > 0 && tracer_error_.size() < 4096)
			tracer_error_.append(buffer, std::size_t(n));
		else if (n == 0)
			tracer_->close_err();
	}
	if (fds[load_out].revents && !move(fds[load_out].fd, "workload.out", false))
		workload_->close_out();
	if (fds[load_err].revents && !move(fds[load_err].fd, "workload.err", false))
		workload_->close_err();
	if (fds[load_end].revents)
		workload_->try_reap();
	if (fds[trace_end].revents)
		tracer_->try_reap();
}

void Agent::start_tracing()
{
	if (job_.trace.empty())
		return;
	struct stat status;
	if (stat("/sys/kernel/debug/block", &status) != 0)
		throw Outcome("NO-TRACING", "there is no /sys/kernel/debug/block: debugfs is off, or the kernel was built "
					    "without CONFIG_BLK_DEV_IO_TRACE");
	Child::How how;
	how.argv = {"blktrace", "-b", std::to_string(job_.trace_buffer_kib), "-n", std::to_string(job_.trace_buffer_count),
		    "-o", "-"};
	std::vector<std::uint32_t> devices;
	for (const auto &name : job_.trace) {
		const std::string device = "/dev/sim" + name;
		how.argv.insert(how.argv.end(), {"-d", device});
		if (stat(device.c_str(), &status) != 0)
			fail_errno(device);
		devices.push_back(major(status.st_rdev) << 20 | minor(status.st_rdev));
	}
	how.env = {{"LD_PRELOAD", "/lib/pageout-lock.so"}};
	how.fifo_priority = tracer_priority;
	how.oom_score_adj = -1000;
	trace_start_.emplace(std::move(devices));
	tracer_ = std::make_unique<Child>(how);

	const auto deadline = monotonic_ns() + 30 * second_ns;
	while (!trace_start_->started()) {
		const auto now = monotonic_ns();
		if (now >= deadline || tracer_->reaped()) {
			tracer_->signal_group(SIGKILL);
			const auto why = tracer_error_.empty() ? std::string("it said nothing") : "it said: " + tracer_error_;
			throw Outcome("NO-TRACING", std::string("blktrace ") +
							    (tracer_->reaped() ? "ended" : "did not start in 30 s") +
							    " before it traced all disks; " + why);
		}
		pump(deadline - now);
	}
	trace_start_.reset();
}

// Nothing may be under way when tracing stops, so that every request that was
// queued is in the trace as completed.
void Agent::settle()
{
	const auto deadline = monotonic_ns() + 10 * second_ns;
	unsigned quiet = 0;
	while (quiet < 3 && monotonic_ns() < deadline) {
		pump(second_ns / 100);
		std::uint64_t requests = 0;
		for (const auto &disk : job_.disks)
			requests += in_flight(disk.name);
		quiet = requests == 0 ? quiet + 1 : 0;
	}
}

// The kernel's count of dropped records is final once tracing has stopped, and
// gone once blktrace has torn it down. So the agent stops it, reads the counts,
// and only then tells blktrace, which finds tracing stopped, reads what is left
// in the buffers, and goes.
void Agent::stop_tracing()
{
	if (!tracer_)
		return;
	Json counts = Json::object();
	for (const auto &name : job_.trace) {
		const auto device = open_file("/dev/sim" + name, O_RDONLY | O_NONBLOCK);
		if (ioctl(device.get(), BLKTRACESTOP) != 0 && errno != EINVAL)
			fail_errno("cannot stop tracing /dev/sim" + name);
		std::string text;
		if (!try_read_file("/sys/kernel/debug/block/sim" + name + "/dropped", text)) {
			tracer_died_ = true; // and tore down what it traced
			continue;
		}
		const auto dropped = std::strtoull(text.c_str(), nullptr, 10);
		counts[name] = dropped;
		dropped_ += dropped;
	}
	tracer_died_ = tracer_died_ || tracer_->out() < 0 || tracer_->try_reap();
	tracer_->signal(SIGINT);
	const auto deadline = monotonic_ns() + 60 * second_ns;
	while (!tracer_->reaped() && monotonic_ns() < deadline)
		pump(second_ns);
	if (!tracer_->reaped()) {
		tracer_died_ = true;
		tracer_error_ += " (blktrace did not end in 60 s after SIGINT)";
	} else if (tracer_->exit_code() != 0 || tracer_->term_signal() != 0) {
		tracer_died_ = true;
		tracer_error_ += " (exit status " + std::to_string(tracer_->exit_code()) + ", signal " +
				 std::to_string(tracer_->term_signal()) + ")";
	}
	box_.put_last("dropped.json", counts.dump());
	if (!tracer_error_.empty())
		box_.put_last("blktrace.err", tracer_error_);
}

std::string Agent::memory()
{
	std::vector<std::pair<std::string, pid_t>> programs = {{"pageout-guest", getpid()}};
	std::uint64_t buffers = 0;
	if (tracer_) {
		programs.emplace_back("blktrace", tracer_->pid());
		buffers = std::uint64_t(job_.trace_buffer_kib) * 1024 * job_.trace_buffer_count * job_.trace.size() *
			  std::uint64_t(sysconf(_SC_NPROCESSORS_ONLN));
	}
	return memory_report(programs, buffers);
}

Result Agent::run_workload()
{
	const std::string fio_json = "/tmp/fio.json";
	Child::How how;
	how.argv = job_.argv;
	how.env = job_.env;
	if (!job_.fio_job.empty())
		how.argv = {"fio", "--output-format=json", "--output=" + fio_json, "/jobs/" + job_.fio_job};
	workload_ = std::make_unique<Child>(how);

	Result result;
	const auto deadline = monotonic_ns() + job_.virtual_limit_s * second_ns;
	while (!workload_->reaped()) {
		const auto now = monotonic_ns();
		if (now >= deadline) {
			result.status = "HANG";
			result.reason = how.argv[0] + " was still running after " + std::to_string(job_.virtual_limit_s) +
					" s on the guest's clock";
			// What blocks, for the log.
			try_write_file("/proc/sysrq-trigger", "w");
			workload_->signal_group(SIGKILL);
			const auto patience = monotonic_ns() + 10 * second_ns;
			while (!workload_->reaped() && monotonic_ns() < patience)
				pump(second_ns);
			if (!workload_->reaped())
				result.reason += "; it did not die of SIGKILL in 10 s";
			return result;
		}
		pump(deadline - now);
	}
	// What its processes left behind may hold the pipes open.
	workload_->signal_group(SIGKILL);
	const auto patience = monotonic_ns() + second_ns;
	while ((workload_->out() >= 0 || workload_->err() >= 0) && monotonic_ns() < patience)
		pump(second_ns / 10);

	if (!job_.fio_job.empty()) {
		std::string text;
		if (try_read_file(fio_json, text) && !box_.put("fio.json", text))
			lost_output_bytes_ += text.size();
	}
	result.exit_code = workload_->exit_code();
	result.signal = workload_->term_signal();
	const bool is_load = how.argv[0].substr(how.argv[0].rfind('/') + 1) == "pageout-load";
	if (result.signal != 0) {
		result.status = "WORKLOAD-FAILED";
		result.reason = how.argv[0] + " was killed by signal " + std::to_string(result.signal);
	} else if (is_load && result.exit_code == 3) {
		result.status = "CORRUPTION";
		result.reason = "a page does not hold what was written there; workload.out says which";
	} else if (is_load && result.exit_code == 4) {
		result.status = "HANG";
		result.reason = "a process of the workload went on no more; workload.out and dmesg say where it is";
	} else if (result.exit_code != 0) {
		result.status = "WORKLOAD-FAILED";
		result.reason = how.argv[0] + " exited with status " + std::to_string(result.exit_code);
	}
	return result;
}

Result Agent::run()
{
	check_clock();
	load_modules();
	set_up();
	start_tracing();
	box_.put("memory.json", memory());
	sample(box_, job_, false);
	Result result = run_workload();
	try {
		settle();
		stop_tracing();
		sample(box_, job_, true);
	} catch (const Outcome &outcome) {
		// What became of the workload matters more.
		if (result.status == "PASS")
			throw;
		result.reason += std::string("; and then: ") + outcome.what();
	}

	if (lost_output_bytes_ > 0)
		say("the mailbox was full: " + std::to_string(lost_output_bytes_) + " bytes of output were lost");
	if (result.status == "PASS" && tracer_died_) {
		result.status = "NO-TRACING";
		result.reason = "blktrace did not last to the end; it said: " + tracer_error_;
	} else if (result.status == "PASS" && dropped_ > 0) {
		result.status = "TRACE-DROPPED";
		result.reason = "the kernel dropped " + std::to_string(dropped_) +
				" trace records; more or larger trace_buffers would hold them";
	} else if (result.status == "PASS" && lost_trace_bytes_ > 0) {
		result.status = "TRACE-DROPPED";
		result.reason = "the mailbox was full: " + std::to_string(lost_trace_bytes_) +
				" bytes of the trace were lost; make it larger";
	} else if (result.status == "PASS" && lost_output_bytes_ > 0) {
		result.status = "WORKLOAD-FAILED";
		result.reason = "the mailbox was full: " + std::to_string(lost_output_bytes_) +
				" bytes of the workload's output were lost; make it larger";
	}
	return result;
}

// The suites' results go to the console, which the host reads.
Result run_kunit()
{
	load_module("/modules/kunit.ko");
	bool any = false;
	for (const auto &name : modules()) {
		if (!name.starts_with("kunit_"))
			continue;
		load_module("/modules/" + name);
		any = true;
	}
	if (!any)
		fail("there is no /modules/kunit_*.ko to run");
	return {};
}

void prepare_machine()
{
	try_write_file("/proc/self/oom_score_adj", "-1000");
	mount_on("tmpfs", "/tmp", "tmpfs", 0, "size=0");
	mount_on("tmpfs", "/mnt", "tmpfs", 0, "size=64k");
	// Where a workload's memory lies must not depend on random numbers, which
	// are others for each kernel: alignment decides what is a neighbour.
	write_file("/proc/sys/kernel/randomize_va_space", "0", "fixed addresses");
	// Whether it is there is found out by who needs it.
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, "");
	const sched_param priority = {agent_priority};
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) != 0)
		fail_errno("cannot run with real-time priority");
	// Only what is touched: the memory under test is small.
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
		fail_errno("cannot lock the agent's memory");
}

Json hello(const std::string &cmdline)
{
	utsname names;
	uname(&names);
	return {{"schema", "pageout-guest/1"},
		{"kernel", names.release},
		{"version", names.version},
		{"cmdline", cmdline.substr(0, cmdline.find('\n'))}};
}

void work()
{
	const auto cmdline = read_file("/proc/cmdline");
	const auto region = region_of(cmdline, "pageout.out");
	Physical memory(region, true);
	mailbox::Writer box([&](std::uint64_t offset, std::size_t length) { return memory.at(offset, length); }, region.bytes,
			    std::min<std::uint64_t>(2 << 20, region.bytes / 2));
	box.put("hello.json", hello(cmdline).dump());

	Result result;
	try {
		prepare_machine();
		const auto job_region = region_of(cmdline, "pageout.job");
		job::Job job;
		{
			Physical job_memory(job_region, false);
			const auto bytes = std::size_t(std::min<std::uint64_t>(job_region.bytes, 1 << 20));
			job = job::parse(job::decode({job_memory.at(0, bytes), bytes}));
		}
		result = job.mode == job::Mode::kunit ? run_kunit() : Agent(box, job).run();
	} catch (const Outcome &outcome) {
		result = {outcome.status, outcome.what(), 0, 0};
	} catch (const std::exception &error) {
		result = {"WORKLOAD-FAILED", error.what(), 0, 0};
	}
	if (result.status != "PASS")
		say(result.status + ": " + result.reason);
	put_dmesg(box);
	const Json json = {{"status", result.status},
			   {"reason", result.reason},
			   {"exit_code", result.exit_code},
			   {"signal", result.signal}};
	box.put_last("result.json", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

} // namespace
} // namespace pageout::guest

int main()
{
	if (getpid() != 1) {
		dprintf(STDERR_FILENO, "pageout-guest is process 1 of a guest of pageout-bench; it does nothing elsewhere\n");
		return 2;
	}
	try {
		pageout::guest::work();
	} catch (const std::exception &error) {
		pageout::guest::say(error.what());
	}
	// No sync: nothing of this guest outlives it.
	reboot(RB_AUTOBOOT);
	return 1;
}
