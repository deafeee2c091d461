// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <stdexcept>
#include <string>

namespace pageout::bench {

/// A failure that its user can do something about: the message names the thing, the place and the remedy.
/// exit_status is what the program ends with: 1 = it failed, 2 = it was asked wrongly.
class Error : public std::runtime_error {
public:
	explicit Error(const std::string& what, int exit_status = 1) : std::runtime_error(what), exit_status_(exit_status) {}
	int exit_status() const noexcept { return exit_status_; }

private:
	int exit_status_;
};

/// The user (or the system) asked us to stop: Ctrl-C, SIGTERM, SIGHUP.
class Interrupted : public Error {
public:
	explicit Interrupted(int signal_number)
		: Error("interrupted", 128 + signal_number) {}
};

} // namespace pageout::bench
