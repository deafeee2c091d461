// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/progress.h"

#include <fmt/format.h>

#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

namespace pageout::bench {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

double seconds(Clock::duration d)
{
	return std::chrono::duration<double>(d).count();
}

std::size_t terminal_columns()
{
	winsize size = {};
	return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

} // namespace

std::string duration_text(double seconds)
{
	const auto whole = static_cast<long>(seconds + 0.5);
	if (whole < 10)
		return fmt::format("{:.1f} s", seconds);
	return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

Progress::Progress() : start_(Clock::now()), drawn_(start_), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress()
{
	clear();
}

void Progress::clear()
{
	if (dirty_)
		fmt::print(stderr, "\r\x1b[K");
	dirty_ = false;
}

void Progress::say(const std::string& line)
{
	const std::lock_guard lock(mutex_);
	clear();
	fmt::print(stderr, "{}\n", line);
	std::fflush(stderr);
}

void Progress::update(const std::string& name, const std::string& state)
{
	const std::lock_guard lock(mutex_);
	const auto now = Clock::now();
	auto [entry, fresh] = tasks_.try_emplace(name, Task{now, now, state});
	Task& task = entry->second;
	task.state = state;
	if (terminal_) {
		if (now - drawn_ >= 200ms)
			draw(now);
	} else if (fresh || now - task.told >= 30s) {
		task.told = now;
		if (fresh)
			fmt::print(stderr, "{}: {}\n", name, state);
		else
			fmt::print(stderr, "{}: {}, {}\n", name, state, duration_text(seconds(now - task.start)));
		std::fflush(stderr);
	}
}

void Progress::draw(Clock::time_point now)
{
	drawn_ = now;
	std::string line = fmt::format("[{}]", duration_text(seconds(now - start_)));
	for (const auto& [name, task] : tasks_)
		line += fmt::format("  {}: {}, {}", name, task.state, duration_text(seconds(now - task.start)));
	const std::size_t columns = terminal_columns();
	if (line.size() >= columns)
		line.resize(columns - 1);
	fmt::print(stderr, "\r{}\x1b[K", line);
	std::fflush(stderr);
	dirty_ = true;
}

void Progress::finish(const std::string& name, const std::string& line)
{
	const std::lock_guard lock(mutex_);
	tasks_.erase(name);
	clear();
	fmt::print(stderr, "{}: {}\n", name, line);
	std::fflush(stderr);
}

} // namespace pageout::bench
