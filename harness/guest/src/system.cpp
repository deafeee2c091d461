// SPDX-License-Identifier: GPL-2.0-only
#include "system.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mount.h>
#include <time.h>

namespace pageout::guest {

void fail(const std::string &what)
{
	throw Outcome("WORKLOAD-FAILED", what);
}

void fail_errno(const std::string &what)
{
	fail(what + ": " + std::strerror(errno));
}

Descriptor open_file(const std::string &path, int flags)
{
	Descriptor fd(open(path.c_str(), flags | O_CLOEXEC));
	if (!fd)
		fail_errno("cannot open " + path);
	return fd;
}

bool try_read_file(const std::string &path, std::string &text)
{
	const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
	if (!fd)
		return false;
	text.clear();
	for (;;) {
		char buffer[4096];
		const ssize_t n = read(fd.get(), buffer, sizeof buffer);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n == 0)
			return true;
		text.append(buffer, std::size_t(n));
	}
}

std::string read_file(const std::string &path)
{
	std::string text;
	if (!try_read_file(path, text))
		fail_errno("cannot read " + path);
	return text;
}

int try_write_file(const std::string &path, std::string_view text)
{
	const Descriptor fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
	if (!fd)
		return errno;
	const ssize_t n = write(fd.get(), text.data(), text.size());
	if (n < 0)
		return errno;
	return std::size_t(n) == text.size() ? 0 : EIO;
}

void write_file(const std::string &path, std::string_view text, const std::string &what)
{
	if (const int error = try_write_file(path, text); error != 0)
		fail(what + ": cannot write \"" + std::string(text) + "\" to " + path + ": " + std::strerror(error));
}

void mount_on(const std::string &source, const std::string &target, const std::string &type, unsigned long flags,
	      const std::string &options)
{
	if (mount(source.c_str(), target.c_str(), type.c_str(), flags, options.c_str()) != 0)
		fail_errno("cannot mount " + source + " (" + type + ") on " + target);
}

std::uint64_t monotonic_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

void say(const std::string &text)
{
	const std::string line = "pageout-guest: " + text + "\n";
	if (write(STDERR_FILENO, line.data(), line.size()) < 0)
		return; // nobody is left to be told
}

} // namespace pageout::guest
