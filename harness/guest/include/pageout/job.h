// SPDX-License-Identifier: GPL-2.0-only
//
// The job: what the host asks of the guest (docs/seams.md, "Job").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pageout::job {

inline constexpr std::size_t header_bytes = 16;
inline constexpr std::uint32_t version = 1;

// A job that cannot be read or asks for what does not exist. what() names the
// place (a byte offset or a JSON member) and what is wrong with it.
class JobError : public std::runtime_error {
	using std::runtime_error::runtime_error;
};

// Header and text as they lie in the job's region. The text is not looked at.
std::vector<std::byte> encode(std::string_view text);

// The text in a job's region. Throws JobError.
std::string_view decode(std::span<const std::byte> region);

enum class Mode { run, kunit };
enum class Lru { classic, mglru };
enum class Role { swap, ext4, raw };
enum class Clock { virtual_time, host };

struct Setting {
	std::string path;
	std::string value;
	bool optional = false;
};

struct Disk {
	std::string name; // the disk is /dev/sim<name>
	Role role = Role::raw;
	std::string model;
	std::uint64_t phys = 0;  // guest-physical address
	std::uint64_t bytes = 0; // size
	std::string scheduler;   // empty: leave the kernel's choice
	int priority = -1;       // of swap; -1: the kernel's choice
	std::vector<std::pair<std::string, std::string>> params; // further simdisk words

	// The line that simdisk's `add` takes.
	std::string add_line() const;
};

struct Job {
	Mode mode = Mode::run;
	Lru lru = Lru::classic;
	int page_cluster = 3;
	std::vector<Setting> settings;
	std::vector<Disk> disks;
	std::vector<std::string> trace; // names of disks
	unsigned trace_buffer_kib = 0;
	unsigned trace_buffer_count = 0;
	std::vector<std::string> argv;
	std::vector<std::pair<std::string, std::string>> env;
	std::string fio_job; // empty: run argv
	bool probe = false;
	Clock clock = Clock::virtual_time;
	std::uint64_t virtual_limit_s = 0;
};

// Reads and checks the text: types, ranges, names that must be known, disks that
// `trace` names. Unknown members are an error: a misspelt one must not be lost.
Job parse(std::string_view text);

} // namespace pageout::job
