// SPDX-License-Identifier: GPL-2.0-only
//
// What the parts of fire share: a worker's place on the board that the parent
// watches, its random numbers, and how it says what it has found.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "fire.h"
#include "pageout/random.h"

namespace pageout::load {

// One thread of one worker, in memory that all processes share. The watchdog
// reads it without a lock.
struct Slot {
	std::atomic<std::uint64_t> steps;
	std::atomic<std::uint64_t> verified_pages;
	std::atomic<const char *> doing; // a literal: the same address in every process
	std::atomic<std::int32_t> pid;
	std::atomic<bool> used;
};

struct Board {
	static constexpr unsigned slots = 64;
	std::atomic<bool> stop;      // no further steps
	std::atomic<bool> calm;      // the machine's roles have ended and put things right
	std::atomic<std::uint64_t> group_kills; // children killed in groups that are there to be killed
	std::atomic<std::uint64_t> write_errors; // stretches of failing writes
	std::atomic<std::uint64_t> read_errors;  // stretches of failing reads
	std::atomic<std::uint64_t> bus_errors;   // processes that died of what could not be read
	std::atomic<std::uint64_t> stuck;        // stretches of stuck requests
	std::atomic<std::uint64_t> switched;     // switches of the series
	std::atomic<std::uint64_t> swapoffs;
	std::atomic<std::uint64_t> unplugged;    // CPUs taken down
	std::atomic<std::uint64_t> moved_pages;  // by move_pages(), to the other node
	std::atomic<int> migrating;  // the thread that migrates its pages, 0: none; see MigrationTurn
	Slot slot[slots];
};

// One thread at a time migrates pages of its own: two that migrate in opposite directions can wait for
// each other for good in vanilla. Each has isolated what it migrates, of its node; an allocation on the
// other node then finds too much isolated there, and isolate_migratepages_block() waits until it is less.
class MigrationTurn {
public:
	explicit MigrationTurn(Board &board);
	~MigrationTurn();
	MigrationTurn(const MigrationTurn &) = delete;
	MigrationTurn &operator=(const MigrationTurn &) = delete;
	explicit operator bool() const { return mine_; }

private:
	Board &board_;
	int thread_;
	bool mine_;
};

struct Context {
	const FireOptions &options;
	Board &board;
	Slot &slot;
	unsigned worker;      // its number: part of the content of its pages
	std::string role;
	std::uint64_t bytes;  // of its memory
	Random random;

	bool stop() const { return board.stop.load(std::memory_order_relaxed); }
	void doing(const char *what) { slot.doing.store(what, std::memory_order_relaxed); }
	void step() { slot.steps.fetch_add(1, std::memory_order_relaxed); }
	// One in `n`.
	bool chance(std::uint64_t n) { return random.below(n) == 0; }
	template <typename T, std::size_t n> const T &choose(const T (&of)[n]) { return of[random.below(n)]; }
	// Sleeps, but not past the end.
	void rest(std::uint64_t milliseconds);
};

// The stream of one thread of one worker.
Random fire_stream(std::uint64_t seed, unsigned worker, unsigned thread);

// What a switch of /sys/kernel/mm/pageout is given: its values by name, 0 and 1
// for one that is not known here.
struct SwitchValues {
	std::vector<std::string> good;
	std::vector<std::string> refused; // the kernel must not take these
	bool known;
};
SwitchValues switch_values(std::string_view name);

// The last page of a swap area and its header, for mkswap's work.
void fill_swap_header(unsigned char (&page)[4096], std::uint64_t bytes);

// {"event": EVENT, "role": ..., "what": TEXT}
void fire_say(const char *event, std::string_view role, std::string_view what);

// 0, or the errno. The whole text goes in one write.
int write_text(const std::string &path, std::string_view text);
// False when it cannot be read.
bool read_text(const std::string &path, std::string &text);

std::uint64_t fire_now_ns();

// Did a process that ended with `status` die of what could not be read, where that is
// meant to be? Counts it.
bool died_of_read_error(const FireOptions &options, Board &board, int status);

// Its memory nodes, 1 where the kernel knows of none.
unsigned memory_nodes();

// The bodies of the roles. Each returns when the board says stop.
void work_on_memory(Context &context);    // anon, thp, shmem, file, file-private, uffd
void flip_switches(Context &context);     // switches
void turn_vm(Context &context);           // vm
void turn_swap(Context &context);         // swap
void break_disks(Context &context);       // disk
void run_groups(Context &context);        // groups
void plug_cpus(Context &context);         // cpus
void fail_allocations(Context &context);  // faults

// The cgroup of a worker that lives on, and of groups made to be killed.
inline constexpr const char *cgroup_root = "/tmp/fire-cgroup";

} // namespace pageout::load
