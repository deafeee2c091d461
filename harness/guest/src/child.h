// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "system.h"

namespace pageout::guest {

// A program with its standard output and error on pipes, in a process group of
// its own.
class Child {
public:
	struct How {
		std::vector<std::string> argv;
		std::vector<std::pair<std::string, std::string>> env; // beside the agent's own
		int fifo_priority = 0; // > 0: SCHED_FIFO
		int oom_score_adj = 0;
	};

	// Throws: nothing there to execute, no memory.
	explicit Child(const How &how);
	~Child(); // kills and reaps what still runs
	Child(const Child &) = delete;
	Child &operator=(const Child &) = delete;

	pid_t pid() const { return pid_; }
	int out() const { return out_.get(); } // -1 after its end was read
	int err() const { return err_.get(); }
	int ended() const { return pidfd_.get(); } // readable when it has ended
	void close_out() { out_.reset(); }
	void close_err() { err_.reset(); }

	// To the program and all that it started, also when it has ended itself.
	void signal_group(int signal) const;
	void signal(int signal) const;
	// Reaps; false when it still runs.
	bool try_reap();
	bool reaped() const { return reaped_; }
	// After try_reap(): 0 and a signal, or an exit code and 0.
	int exit_code() const;
	int term_signal() const;

private:
	pid_t pid_ = -1;
	Descriptor out_, err_, pidfd_;
	bool reaped_ = false;
	int status_ = 0;
};

} // namespace pageout::guest
