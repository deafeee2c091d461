// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

namespace pageout::load {

// What is asked for cannot be done here; what() says what, where and the remedy.
class WorkloadError : public std::runtime_error {
	using std::runtime_error::runtime_error;
};

// A wrong byte that another process of the workload has printed already.
class ReportedCorruption : public std::exception {
public:
	const char *what() const noexcept override { return "a page holds a wrong byte"; }
};

// One of the workload's processes goes on no more; what is known of it is printed.
class WorkerHung : public std::exception {
public:
	const char *what() const noexcept override { return "a worker hangs"; }
};

// Faults made on purpose, for those who test what watches a workload.
enum class Provoke { nothing, corrupt_page, fail, hang, panic, oom };

struct Options {
	std::uint64_t bytes = 0;  // all memory of the workload; one unit's for mmap-*; one process's for interleave
	std::uint64_t passes = 2;
	std::uint64_t seed = 1;
	std::uint64_t wait_us = 0; // before anything else
	bool whole_pages = true;  // fill and verify all of each page, not its first word alone
	bool huge_pages = false;  // madvise(MADV_HUGEPAGE) instead of MADV_NOHUGEPAGE
	std::string directory;    // mmap-*
	std::uint64_t units = 8;  // mmap-*
	bool keep_file = false;   // mmap-*
	std::uint64_t processes = 8; // interleave
	std::uint64_t batch_pages = 8; // interleave
	bool free_turns = false;       // interleave: yield after a batch instead of handing the turn on
	double theta = 0.99;              // zipf
	std::uint64_t operations = 100'000; // zipf: a pass
	std::uint64_t write_percent = 50; // zipf
	std::uint64_t chunk_bytes = 64 << 10; // alloc-steady
	std::uint64_t allocations = 4096;     // alloc-steady: a pass
	std::uint64_t interval_us = 1000;     // alloc-steady: between the beginnings of two allocations
	std::uint64_t pressure_bytes = 60 << 20; // free-shared: a pass
	Provoke provoke = Provoke::nothing;
	std::uint64_t provoke_page = 0;
};

// Each prints its events and returns when all passes are done. They throw
// WorkloadError, Corruption, ReportedCorruption or OutputError.
void run_mapped_file(const Options &options, bool tmpfs);
void run_cycle(const Options &options, const char *name); // anon-cycle and touch-fit
void run_random_dirty(const Options &options);
void run_interleave(const Options &options);
void run_zipf(const Options &options);
void run_alloc_steady(const Options &options);
void run_free_shared(const Options &options);

// Pages verified so far, by all processes that have ended.
std::uint64_t verified_pages();

} // namespace pageout::load
