// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace pageout::bench {

/// Diagnostics and progress on standard error, from several threads. On a terminal one line with the elapsed time is
/// rewritten; elsewhere whole lines come, and while nothing else happens one every half minute.
class Progress {
public:
	Progress();
	~Progress();
	Progress(const Progress&) = delete;
	Progress& operator=(const Progress&) = delete;

	void say(const std::string& line);                              ///< a line that stays
	void update(const std::string& task, const std::string& state); ///< what a task does now
	void finish(const std::string& task, const std::string& line);  ///< the task is over; the line stays

private:
	struct Task {
		std::chrono::steady_clock::time_point start, told;
		std::string state;
	};
	void clear();
	void draw(std::chrono::steady_clock::time_point now);

	std::mutex mutex_;
	std::map<std::string, Task> tasks_;
	std::chrono::steady_clock::time_point start_, drawn_;
	bool terminal_;
	bool dirty_ = false;
};

/// "12 s", "3 min 05 s"
std::string duration_text(double seconds);

} // namespace pageout::bench
