// SPDX-License-Identifier: GPL-2.0-only
//
// Children that do not outlive us, and interruptions that reach every one of them.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pageout::bench {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end the program but are remembered; waiting for a child then throws
/// Interrupted in whatever thread does it.
class InterruptScope {
public:
	InterruptScope();
	~InterruptScope();
	InterruptScope(const InterruptScope&) = delete;
	InterruptScope& operator=(const InterruptScope&) = delete;

	static int pending() noexcept; ///< the signal's number, 0 = none
	static void check();           ///< throws Interrupted when one is pending
};

struct ChildEnd {
	bool signaled = false;
	int code = 0; ///< exit status or signal
};

/// A child in its own process group. The kernel kills it when the thread that made it ends, and the destructor kills and
/// reaps what still runs.
class Child {
public:
	struct Streams {
		std::filesystem::path out; ///< file for standard output; empty: /dev/null
		std::filesystem::path err; ///< the same for standard error; equal to `out`: one file for both
	};
	/// `keep` are descriptors that the child inherits under their own numbers. Throws Error when argv[0] cannot be executed.
	Child(const std::vector<std::string>& argv, const Streams& streams, const std::vector<int>& keep = {});
	~Child();
	Child(const Child&) = delete;
	Child& operator=(const Child&) = delete;

	/// Waits until the child has ended or `until` has come (nullopt). Calls `tick` at least every 200 ms.
	std::optional<ChildEnd> wait_until(std::chrono::steady_clock::time_point until, const std::function<void()>& tick = {});
	/// SIGKILL to the whole group, and reaped.
	void kill() noexcept;

private:
	int pid_ = -1;
	int pidfd_ = -1;
};

/// Runs a tool: its standard error is ours, its standard output is returned. It is in our process group's stead: an
/// interruption is passed on and waited for, because builds clean up after themselves. Throws Error quoting `what` when it
/// fails.
std::string capture(const std::vector<std::string>& argv, const std::string& what);

/// The executable's path as the PATH gives it, or nothing.
std::optional<std::filesystem::path> find_executable(const std::string& name);

} // namespace pageout::bench
