// SPDX-License-Identifier: GPL-2.0-only
//
// Memory of one kind whose every page's content is known: chunks that are mapped,
// moved, shared, advised away and verified.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pthread.h>

#include "fire_worker.h"
#include "pageout/pattern.h"

namespace pageout::load {

enum class Kind { anon, thp, shmem, file, file_private, uffd };

// What a page holds: `now`, or where `maybe` is set (after MADV_FREE, or a call
// that failed half way) what is underneath. Pass 0 is a page of zeros. Written
// under the chunk's lock by the thread whose page it is.
struct PageState {
	std::uint32_t now;
	std::uint32_t last; // the newest pass that was ever written
	bool maybe;
};

struct Chunk {
	Word *address = nullptr;
	std::uint64_t pages = 0;       // mapped now
	std::uint64_t most = 0;        // as many as it has when it is whole
	std::uint64_t first = 0;       // number of its page 0 in the arena
	std::uint64_t offset = 0;      // in the file, bytes
	std::unique_ptr<PageState[]> state;
	unsigned children = 0;         // forked and not yet reaped, which share its pages; atomic
	pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP; // or whoever moves memory waits for ever
};

class Arena {
public:
	Arena(Context &context, Kind kind, std::uint64_t bytes, unsigned threads, const std::string &directory);
	~Arena();
	Arena(const Arena &) = delete;
	Arena &operator=(const Arena &) = delete;

	// One random action. Throws ReportedCorruption, WorkloadError.
	void act(Context &context, unsigned thread);
	void verify_all(Context &context);
	void spoil(Context &context); // a wrong byte on purpose
	void answer_faults();         // the loop of uffd's handler
	void reap(Context &context, unsigned thread, unsigned leave);

private:
	struct Range {
		std::uint64_t first;
		std::uint64_t count;
	};
	Range range(Context &context, const Chunk &chunk, std::uint64_t most) const;
	char *at(const Chunk &chunk, std::uint64_t index) const;
	Page page(const Chunk &chunk, std::uint64_t index) const;
	Tag tag(const Chunk &chunk, std::uint64_t index, std::uint32_t pass) const;
	std::uint32_t underneath() const { return kind_ == Kind::file_private || kind_ == Kind::uffd ? 1 : 0; }
	bool holds(const Chunk &chunk, std::uint64_t index, std::uint32_t pass) const;
	bool is_shared() const { return kind_ == Kind::shmem || kind_ == Kind::file; }

	void map(Chunk &chunk, std::uint64_t pages);
	void verify(Context &context, Chunk &chunk, std::uint64_t index);
	void dirty(Context &context, Chunk &chunk, std::uint64_t index);
	[[noreturn]] void corrupt(Context &context, const Chunk &chunk, std::uint64_t index);

	// Under the shared lock, for the pages of the thread.
	void use(Context &context, Chunk &chunk, unsigned thread);
	void advise(Context &context, Chunk &chunk);
	void migrate(Context &context, Chunk &chunk);
	// Under the exclusive lock.
	void drop(Context &context, Chunk &chunk);
	void protect(Context &context, Chunk &chunk);
	void lock_memory(Context &context, Chunk &chunk);
	void move(Context &context, Chunk &chunk);
	void resize(Context &context, Chunk &chunk);
	void fork_child(Context &context, Chunk &chunk, unsigned thread);
	void sync_file(Context &context, Chunk &chunk);
	void write_protect(Context &context, Chunk &chunk);
	void register_faults(Chunk &chunk);

	Kind kind_;
	unsigned threads_;
	std::uint64_t seed_;
	unsigned worker_;
	int file_ = -1;
	int uffd_ = -1;
	unsigned nodes_;
	std::vector<Chunk> chunks_;
	std::mutex layout_; // whoever maps, or leaves a hole where it will map again
	struct Child {
		int pid;
		Chunk *chunk; // that it looks at
	};
	std::array<std::vector<Child>, 4> children_; // of each thread
};

} // namespace pageout::load
