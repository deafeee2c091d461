// SPDX-License-Identifier: GPL-2.0-only
//
// What the agent needs of the system, with errors that say what and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace pageout::guest {

// Ends the run with this status of the contract and this reason.
class Outcome : public std::runtime_error {
public:
	Outcome(std::string status, const std::string &reason) : std::runtime_error(reason), status(std::move(status)) {}
	std::string status;
};

// Something that the run needs could not be done: WORKLOAD-FAILED.
[[noreturn]] void fail(const std::string &what);
[[noreturn]] void fail_errno(const std::string &what);

class Descriptor {
public:
	explicit Descriptor(int fd = -1) : fd_(fd) {}
	Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Descriptor &operator=(Descriptor &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~Descriptor() { reset(); }
	void reset()
	{
		if (fd_ >= 0)
			close(fd_);
		fd_ = -1;
	}
	int get() const { return fd_; }
	explicit operator bool() const { return fd_ >= 0; }

private:
	int fd_;
};

// Opens, or throws what fail_errno() throws. Close-on-exec is always set.
Descriptor open_file(const std::string &path, int flags);

// A file of proc or sys, whole. read_file() throws; try_read_file() returns
// whether it could be read.
std::string read_file(const std::string &path);
bool try_read_file(const std::string &path, std::string &text);

// One write(2) of the text to an existing file. Throws; `what` names the reason
// for the write in the message.
void write_file(const std::string &path, std::string_view text, const std::string &what);
// The same, 0 or an errno.
int try_write_file(const std::string &path, std::string_view text);

void mount_on(const std::string &source, const std::string &target, const std::string &type, unsigned long flags,
	      const std::string &options);

std::uint64_t monotonic_ns();

// A line on the console.
void say(const std::string &text);

} // namespace pageout::guest
