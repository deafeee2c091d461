// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/process.h"

#include "pageout/bench/error.h"
#include "pageout/bench/guest_memory.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pageout::bench {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::array<int, 3> caught = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> pending_signal{0};
std::atomic<bool> whole_group_has_it{false}; ///< a terminal's Ctrl-C reaches every process of the foreground by itself
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores it");
std::array<struct sigaction, caught.size()> previous_actions;

void remember(int number, siginfo_t* info, void*)
{
	whole_group_has_it.store(info->si_code == SI_KERNEL);
	pending_signal.store(number);
}

std::vector<char*> c_arguments(const std::vector<std::string>& argv)
{
	std::vector<char*> words;
	for (const auto& word : argv)
		words.push_back(const_cast<char*>(word.c_str()));
	words.push_back(nullptr);
	return words;
}

/// In the child, between fork and exec: only async-signal-safe calls from here on.
[[noreturn]] void become(char* const* argv, int in, int out, int err, const std::vector<int>& keep, int report, pid_t parent, bool own_group)
{
	if (own_group)
		::setpgid(0, 0);
	::prctl(PR_SET_PDEATHSIG, own_group ? SIGKILL : SIGTERM);
	for (const int number : caught)
		::signal(number, SIG_DFL);
	sigset_t none;
	sigemptyset(&none);
	::sigprocmask(SIG_SETMASK, &none, nullptr);

	int error = 0;
	if (::getppid() != parent) // it died before prctl() took effect
		error = ESRCH;
	if (!error && (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0))
		error = errno;
	for (const int fd : keep)
		if (!error && ::fcntl(fd, F_SETFD, 0) != 0)
			error = errno;
	if (!error) {
		::execvp(argv[0], argv);
		error = errno;
	}
	[[maybe_unused]] const auto n = ::write(report, &error, sizeof error);
	::_exit(127);
}

struct Spawned {
	pid_t pid;
	Fd pidfd;
};

Spawned spawn(const std::vector<std::string>& argv, int out, int err, const std::vector<int>& keep, bool own_group)
{
	int report[2];
	if (::pipe2(report, O_CLOEXEC) != 0)
		throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
	Fd report_in(report[0]), report_out(report[1]);
	Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
	if (!null)
		throw Error(fmt::format("/dev/null: {}", std::strerror(errno)));

	const auto words = c_arguments(argv);
	const pid_t parent = ::getpid();
	const pid_t pid = ::fork();
	if (pid < 0)
		throw Error(fmt::format("cannot start {}: {}", argv[0], std::strerror(errno)));
	if (pid == 0)
		become(words.data(), null.get(), out < 0 ? null.get() : out, err < 0 ? null.get() : err, keep, report_out.get(), parent, own_group);
	report_out.reset();

	int error = 0;
	ssize_t n;
	while ((n = ::read(report_in.get(), &error, sizeof error)) < 0 && errno == EINTR)
		;
	if (n > 0) {
		::waitpid(pid, nullptr, 0);
		throw Error(fmt::format("cannot execute {}: {}", argv[0], std::strerror(error)));
	}
	Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
	if (!pidfd) {
		::kill(own_group ? -pid : pid, SIGKILL);
		::waitpid(pid, nullptr, 0);
		throw Error(fmt::format("cannot watch {}: {}", argv[0], std::strerror(errno)));
	}
	return {pid, std::move(pidfd)};
}

ChildEnd end_of(int status)
{
	if (WIFSIGNALED(status))
		return {true, WTERMSIG(status)};
	return {false, WEXITSTATUS(status)};
}

Fd open_log(const fs::path& path)
{
	if (path.empty())
		return Fd();
	Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
	if (!fd)
		throw Error(fmt::format("{}: cannot write: {}", path.string(), std::strerror(errno)));
	return fd;
}

} // namespace

InterruptScope::InterruptScope()
{
	pending_signal = 0;
	struct sigaction action = {};
	action.sa_sigaction = remember;
	action.sa_flags = SA_SIGINFO; // no SA_RESTART: whoever sleeps has to wake
	for (std::size_t i = 0; i < caught.size(); ++i)
		::sigaction(caught[i], &action, &previous_actions[i]);
}

InterruptScope::~InterruptScope()
{
	for (std::size_t i = 0; i < caught.size(); ++i)
		::sigaction(caught[i], &previous_actions[i], nullptr);
	pending_signal = 0;
}

int InterruptScope::pending() noexcept
{
	return pending_signal.load();
}

void InterruptScope::check()
{
	if (const int number = pending())
		throw Interrupted(number);
}

Child::Child(const std::vector<std::string>& argv, const Streams& streams, const std::vector<int>& keep)
{
	const Fd out = open_log(streams.out);
	const bool shared = streams.err == streams.out;
	const Fd err = shared ? Fd() : open_log(streams.err);
	auto [pid, pidfd] = spawn(argv, out.get(), shared ? out.get() : err.get(), keep, true);
	pid_ = pid;
	pidfd_ = pidfd.release();
}

Child::~Child()
{
	kill();
}

std::optional<ChildEnd> Child::wait_until(Clock::time_point until, const std::function<void()>& tick)
{
	using std::chrono::milliseconds;
	for (;;) {
		InterruptScope::check();
		const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
		pollfd watched{pidfd_, POLLIN, 0};
		const int n = ::poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 200)));
		if (n < 0 && errno != EINTR)
			throw Error(fmt::format("cannot wait for a child: {}", std::strerror(errno)));
		if (n > 0) {
			int status = 0;
			while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR)
				;
			::kill(-pid_, SIGKILL); // whatever it started in its group
			pid_ = -1;
			::close(std::exchange(pidfd_, -1));
			return end_of(status);
		}
		if (tick)
			tick();
		if (Clock::now() >= until)
			return std::nullopt;
	}
}

void Child::kill() noexcept
{
	if (pid_ > 0) {
		::kill(-pid_, SIGKILL);
		while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR)
			;
		pid_ = -1;
	}
	if (pidfd_ >= 0)
		::close(std::exchange(pidfd_, -1));
}

std::string capture(const std::vector<std::string>& argv, const std::string& what)
{
	int ends[2];
	if (::pipe2(ends, O_CLOEXEC) != 0)
		throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
	Fd in(ends[0]), out(ends[1]);
	auto [pid, pidfd] = spawn(argv, out.get(), 2, {}, false);
	out.reset();

	std::string text;
	std::array<char, 1 << 16> buffer;
	bool passed_on = false;
	for (;;) {
		if (const int number = InterruptScope::pending(); number && !passed_on) {
			if (!whole_group_has_it.load())
				::kill(pid, number);
			passed_on = true;
		}
		pollfd watched{in.get(), POLLIN, 0};
		if (::poll(&watched, 1, 200) <= 0)
			continue;
		const ssize_t n = ::read(in.get(), buffer.data(), buffer.size());
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		text.append(buffer.data(), static_cast<std::size_t>(n));
	}
	int status = 0;
	while (::waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	InterruptScope::check();
	const ChildEnd end = end_of(status);
	if (end.signaled || end.code)
		throw Error(fmt::format("{} failed ({} {}); its own message is above\n  command: {}", what, end.signaled ? "signal" : "status", end.code,
					shell_line(argv)));
	return text;
}

std::optional<fs::path> find_executable(const std::string& name)
{
	if (name.find('/') != std::string::npos)
		return ::access(name.c_str(), X_OK) == 0 ? std::optional<fs::path>(name) : std::nullopt;
	const char* path = std::getenv("PATH");
	for (const auto& folder : split(path ? path : "/usr/bin:/bin", ':')) {
		const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
		if (::access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate))
			return candidate;
	}
	return std::nullopt;
}

} // namespace pageout::bench
