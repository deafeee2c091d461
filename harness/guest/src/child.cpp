// SPDX-License-Identifier: GPL-2.0-only
#include "child.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace pageout::guest {
namespace {

std::pair<Descriptor, Descriptor> make_pipe()
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		fail_errno("cannot make a pipe");
	return {Descriptor(ends[0]), Descriptor(ends[1])};
}

struct Actions {
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	Actions()
	{
		posix_spawn_file_actions_init(&files);
		posix_spawnattr_init(&attributes);
	}
	~Actions()
	{
		posix_spawn_file_actions_destroy(&files);
		posix_spawnattr_destroy(&attributes);
	}
};

} // namespace

Child::Child(const How &how)
{
	auto [out_read, out_write] = make_pipe();
	auto [err_read, err_write] = make_pipe();

	Actions actions;
	posix_spawn_file_actions_addopen(&actions.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions.files, out_write.get(), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions.files, err_write.get(), STDERR_FILENO);
	short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&actions.attributes, &none);
	posix_spawnattr_setsigdefault(&actions.attributes, &all);
	posix_spawnattr_setpgroup(&actions.attributes, 0);
	flags |= POSIX_SPAWN_SETSCHEDULER;
	const sched_param priority = {how.fifo_priority};
	posix_spawnattr_setschedpolicy(&actions.attributes, how.fifo_priority > 0 ? SCHED_FIFO : SCHED_OTHER);
	posix_spawnattr_setschedparam(&actions.attributes, &priority);
	posix_spawnattr_setflags(&actions.attributes, flags);

	std::vector<char *> argv;
	for (const auto &word : how.argv)
		argv.push_back(const_cast<char *>(word.c_str()));
	argv.push_back(nullptr);
	std::vector<std::string> words;
	for (const auto &[name, value] : how.env)
		words.push_back(name + "=" + value);
	std::vector<char *> env;
	for (auto &word : words)
		env.push_back(word.data());
	for (char **at = environ; *at; ++at) {
		const std::string_view name(*at, strcspn(*at, "="));
		bool replaced = false;
		for (const auto &[other, value] : how.env)
			replaced = replaced || other == name;
		if (!replaced)
			env.push_back(*at);
	}
	env.push_back(nullptr);

	// A program inherits what the OOM killer thinks of its parent.
	const auto own_score = read_file("/proc/self/oom_score_adj");
	write_file("/proc/self/oom_score_adj", std::to_string(how.oom_score_adj), "starting " + how.argv[0]);
	const int error = posix_spawnp(&pid_, argv[0], &actions.files, &actions.attributes, argv.data(), env.data());
	try_write_file("/proc/self/oom_score_adj", own_score);
	if (error != 0)
		fail("cannot execute " + how.argv[0] + ": " + std::strerror(error));
	out_ = std::move(out_read);
	err_ = std::move(err_read);
	pidfd_ = Descriptor(int(syscall(SYS_pidfd_open, pid_, 0)));
	if (!pidfd_)
		fail_errno("pidfd_open");
}

Child::~Child()
{
	if (pid_ <= 0 || reaped_)
		return;
	signal_group(SIGKILL);
	// Stuck in the kernel, on a disk that no longer answers for one, it never dies: then the
	// verdict must not wait for it.
	for (int tenths = 0; tenths < 10 && !try_reap(); ++tenths)
		usleep(100'000);
}

void Child::signal_group(int number) const
{
	kill(-pid_, number);
}

void Child::signal(int number) const
{
	if (!reaped_)
		kill(pid_, number);
}

bool Child::try_reap()
{
	if (!reaped_)
		reaped_ = waitpid(pid_, &status_, WNOHANG) == pid_;
	return reaped_;
}

int Child::exit_code() const
{
	return reaped_ && WIFEXITED(status_) ? WEXITSTATUS(status_) : 0;
}

int Child::term_signal() const
{
	return reaped_ && WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
}

} // namespace pageout::guest
