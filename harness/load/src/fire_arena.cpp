// SPDX-License-Identifier: GPL-2.0-only
#include "fire_arena.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "pageout/chunks.h"
#include "report.h"
#include "workloads.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace pageout::load {
namespace {

constexpr std::uint64_t page_size = 4096;
constexpr std::size_t words = page_size / sizeof(Word);
constexpr std::uint64_t huge_bytes = huge_pages * page_size;
// Workers and their pages, for naming whose content a wrong page holds.
constexpr unsigned worker_shift = 32;

// Short of memory, or a failure that was injected: the next attempt may succeed.
bool transient(int error)
{
	return error == ENOMEM || error == EAGAIN || error == EINTR || error == EBUSY || error == EFAULT;
}

class Guard {
public:
	Guard(pthread_rwlock_t &lock, bool exclusive) : lock_(lock)
	{
		exclusive ? pthread_rwlock_wrlock(&lock_) : pthread_rwlock_rdlock(&lock_);
	}
	~Guard() { pthread_rwlock_unlock(&lock_); }
	Guard(const Guard &) = delete;
	Guard &operator=(const Guard &) = delete;

private:
	pthread_rwlock_t &lock_;
};

[[noreturn]] void fail(const std::string &what, int error = errno)
{
	throw WorkloadError(fmt::format("{}: {}", what, std::strerror(error)));
}

// Until it is done: what this undoes must not stay. 10 s of refusals are a failure.
template <typename Call> void insist(const char *what, Call call)
{
	for (int i = 0; i < 1000; ++i) {
		if (call() == 0)
			return;
		if (!transient(errno))
			fail(what);
		poll(nullptr, 0, 10);
	}
	fail(fmt::format("{}, a thousand times", what));
}

inline void touch_for_write(Word *word)
{
	__atomic_fetch_or(word, 0, __ATOMIC_RELAXED);
}

bool is_zero(ConstPage page)
{
	Word all = 0;
	for (const Word word : page)
		all |= word;
	return all == 0;
}

} // namespace

Arena::Arena(Context &context, Kind kind, std::uint64_t bytes, unsigned threads, const std::string &directory)
    : kind_(kind), threads_(threads), seed_(context.options.seed), worker_(context.worker), nodes_(memory_nodes())
{
	std::uint64_t first = 0;
	for (const auto size : chunk_sizes(context.random, std::max<std::uint64_t>(bytes / page_size, 64))) {
		Chunk chunk;
		chunk.most = size;
		chunk.first = first;
		chunk.offset = first * page_size;
		first += size;
		chunks_.push_back(std::move(chunk));
	}
	if (kind == Kind::shmem) {
		file_ = memfd_create("fire", MFD_CLOEXEC);
		if (file_ < 0)
			fail("memfd_create");
	} else if (kind == Kind::file || kind == Kind::file_private) {
		const auto path = fmt::format("{}/fire-{}", directory, worker_);
		file_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (file_ < 0)
			fail(path);
		unlink(path.c_str());
	}
	if (file_ >= 0 && ftruncate(file_, off_t(first * page_size)) != 0)
		fail("ftruncate");
	if (kind == Kind::uffd) {
		uffd_ = int(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
		if (uffd_ < 0)
			fail("userfaultfd");
		uffdio_api api = {UFFD_API, UFFD_FEATURE_PAGEFAULT_FLAG_WP, 0};
		if (ioctl(uffd_, UFFDIO_API, &api) != 0)
			fail("userfaultfd: UFFDIO_API with write protection");
	}
	for (auto &chunk : chunks_) {
		chunk.state = std::make_unique<PageState[]>(chunk.most);
		map(chunk, chunk.most);
		context.doing("making the memory");
		for (std::uint64_t i = 0; i < chunk.most; ++i) {
			if (i % 16 == 0)
				context.step();
			chunk.state[i] = {underneath(), underneath(), false};
			if (kind == Kind::file_private) {
				alignas(4096) Word content[words];
				fill_page(content, tag(chunk, i, 1));
				if (pwrite(file_, content, sizeof content, off_t(chunk.offset + i * page_size)) != ssize_t(page_size))
					fail("writing the file under private mappings");
			}
		}
	}
	if (kind == Kind::file_private && fsync(file_) != 0)
		fail("fsync");
}

Arena::~Arena()
{
	for (auto &chunk : chunks_) {
		munmap(chunk.address, chunk.pages * page_size);
		pthread_rwlock_destroy(&chunk.lock);
	}
	if (file_ >= 0)
		close(file_);
	if (uffd_ >= 0)
		close(uffd_);
}

char *Arena::at(const Chunk &chunk, std::uint64_t index) const
{
	return reinterpret_cast<char *>(chunk.address) + index * page_size;
}

Page Arena::page(const Chunk &chunk, std::uint64_t index) const
{
	return {chunk.address + index * words, words};
}

Tag Arena::tag(const Chunk &chunk, std::uint64_t index, std::uint32_t pass) const
{
	return {seed_, (std::uint64_t(worker_) << worker_shift) + chunk.first + index, pass};
}

Arena::Range Arena::range(Context &context, const Chunk &chunk, std::uint64_t most) const
{
	// Short ones are frequent, whole chunks are not rare.
	const std::uint64_t limit = std::min(most, std::uint64_t{1} << context.random.below(12));
	const std::uint64_t count = 1 + context.random.below(std::min(limit, chunk.pages));
	return {context.random.below(chunk.pages - count + 1), count};
}

void Arena::register_faults(Chunk &chunk)
{
	uffdio_register registration = {};
	registration.range = {reinterpret_cast<std::uint64_t>(chunk.address), chunk.pages * page_size};
	registration.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
	insist("UFFDIO_REGISTER", [&] { return ioctl(uffd_, UFFDIO_REGISTER, &registration); });
}

void Arena::map(Chunk &chunk, std::uint64_t pages)
{
	const int flags = kind_ == Kind::shmem || kind_ == Kind::file ? MAP_SHARED
			  : kind_ == Kind::file_private		      ? MAP_PRIVATE
								      : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *address = MAP_FAILED;
	insist("mmap", [&] {
		address = mmap(nullptr, chunk.most * page_size, PROT_READ | PROT_WRITE, flags, file_, file_ < 0 ? 0 : off_t(chunk.offset));
		return address == MAP_FAILED ? -1 : 0;
	});
	chunk.address = static_cast<Word *>(address);
	chunk.pages = chunk.most;
	if (kind_ == Kind::thp || kind_ == Kind::shmem)
		madvise(address, chunk.most * page_size, MADV_HUGEPAGE); // a kernel without them is good enough
	if (kind_ == Kind::uffd)
		register_faults(chunk);
	if (pages < chunk.most) {
		insist("munmap", [&] { return munmap(at(chunk, pages), (chunk.most - pages) * page_size); });
		chunk.pages = pages;
	}
}

bool Arena::holds(const Chunk &chunk, std::uint64_t index, std::uint32_t pass) const
{
	const Page content = page(chunk, index);
	return pass == 0 ? is_zero(content) : page_matches(content, tag(chunk, index, pass));
}

void Arena::corrupt(Context &context, const Chunk &chunk, std::uint64_t index)
{
	const auto &state = chunk.state[index];
	const bool again = holds(chunk, index, state.now);
	std::uint64_t entry = 0;
	if (const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); fd >= 0) {
		if (pread(fd, &entry, sizeof entry, off_t(reinterpret_cast<std::uint64_t>(at(chunk, index)) / page_size * 8)) < 0)
			entry = 0;
		close(fd);
	}
	char text[256];
	*fmt::format_to_n(text, sizeof text - 1,
			  "page {} of the chunk of {} at {}, worker {}, last pass {}, doing: {}; {}; pagemap {:#x}", index, chunk.pages,
			  static_cast<void *>(chunk.address), worker_, state.last, context.slot.doing.load(),
			  again ? "right when read again" : "wrong when read again", entry)
		 .out = '\0';
	fire_say("wrong page", context.role, text);

	const ConstPage content = page(chunk, index);
	const Tag expected = tag(chunk, index, state.now);
	// Of this worker's pages first, then of any worker's.
	Mismatch found = {};
	if (state.now == 0) {
		for (std::size_t i = 0; i < words; ++i)
			if (content[i] != 0) {
				found = {i * sizeof(Word), 0, std::uint8_t(content[i]), 0, 0, content[i], false, {}};
				break;
			}
		found.wrong_bytes = page_size;
	} else if (const auto mismatch = examine(content, expected, words, 0, 0)) {
		found = *mismatch;
	}
	const std::uint64_t pages = chunks_.back().first + chunks_.back().most;
	for (unsigned other = 0; other < 24 && !found.content_of && !found.all_zero; ++other) {
		const unsigned worker = other == 0 ? worker_ : other - 1;
		for (std::uint64_t p = 0; p < pages && !found.content_of; ++p, context.step())
			for (std::uint32_t pass = 1; pass <= std::min(state.last + 50, 2000u); ++pass) {
				const Tag candidate = {seed_, (std::uint64_t(worker) << worker_shift) + p, pass};
				if (word_at(candidate, 0) == content[0]) {
					found.content_of = candidate;
					break;
				}
			}
	}
	report_corruption(Corruption(expected, found));
	throw ReportedCorruption();
}

// The page may be dirtied by nobody else now, as the caller holds its lock or it is
// the thread's own.
void Arena::verify(Context &context, Chunk &chunk, std::uint64_t index)
{
	auto &state = chunk.state[index];
	if (state.maybe) {
		// A store makes the kernel keep it, whichever of the two it is.
		touch_for_write(page(chunk, index).data());
		if (!holds(chunk, index, state.now) && holds(chunk, index, underneath()))
			state.now = underneath();
		state.maybe = false;
	}
	if (!holds(chunk, index, state.now))
		corrupt(context, chunk, index);
	context.slot.verified_pages.fetch_add(1, std::memory_order_relaxed);
}

void Arena::dirty(Context &context, Chunk &chunk, std::uint64_t index)
{
	auto &state = chunk.state[index];
	// Its old content is worth a look each second time only: a store to a page
	// that is not there is a way of its own.
	if (context.chance(2) || state.maybe)
		verify(context, chunk, index);
	fill_page(page(chunk, index), tag(chunk, index, state.last + 1));
	state.now = ++state.last;
}

void Arena::use(Context &context, Chunk &chunk, unsigned thread)
{
	context.doing("reading and writing");
	// All of it now and then: short touches alone leave memory half empty.
	const Range r = context.chance(6) ? Range{0, chunk.pages} : range(context, chunk, 1024);
	const bool random_order = context.chance(2), all_dirty = context.chance(2), only_read = context.chance(3);
	for (std::uint64_t i = 0; i < r.count; ++i) {
		const auto index = r.first + (random_order ? context.random.below(r.count) : i);
		// Pages of two threads lie side by side.
		if (index % threads_ != thread)
			continue;
		if (!only_read && (all_dirty || context.chance(2)))
			dirty(context, chunk, index);
		else
			verify(context, chunk, index);
		if (i % 64 == 0)
			context.step();
	}
}

// What keeps the content.
void Arena::advise(Context &context, Chunk &chunk)
{
	static constexpr struct {
		int advice;
		const char *name;
	} all[] = {{MADV_PAGEOUT, "MADV_PAGEOUT"}, {MADV_PAGEOUT, "MADV_PAGEOUT"}, {MADV_COLD, "MADV_COLD"},
		   {MADV_WILLNEED, "MADV_WILLNEED"}, {MADV_WILLNEED, "MADV_WILLNEED"}, {MADV_RANDOM, "MADV_RANDOM"},
		   {MADV_SEQUENTIAL, "MADV_SEQUENTIAL"}, {MADV_NORMAL, "MADV_NORMAL"}, {MADV_HUGEPAGE, "MADV_HUGEPAGE"},
		   {MADV_NOHUGEPAGE, "MADV_NOHUGEPAGE"}, {MADV_COLLAPSE, "MADV_COLLAPSE"}, {MADV_MERGEABLE, "MADV_MERGEABLE"},
		   {MADV_UNMERGEABLE, "MADV_UNMERGEABLE"}, {MADV_POPULATE_READ, "MADV_POPULATE_READ"},
		   {MADV_POPULATE_WRITE, "MADV_POPULATE_WRITE"}};
	const auto &one = context.choose(all);
	const Range r = range(context, chunk, chunk.pages);
	// Small pages have neighbours; some memory has to be made of nothing else.
	if (kind_ == Kind::anon && (one.advice == MADV_HUGEPAGE || one.advice == MADV_COLLAPSE))
		return;
	// Faults by the kernel would ask uffd's handler, which is fine; private
	// pages of the file would be made where there are none, which is too.
	context.doing(one.name);
	if (madvise(at(chunk, r.first), r.count * page_size, one.advice) != 0 && !transient(errno) && errno != EINVAL && errno != EHWPOISON)
		fail(one.name);
}

MigrationTurn::MigrationTurn(Board &board) : board_(board), thread_(int(syscall(SYS_gettid)))
{
	int holder = 0;
	mine_ = board_.migrating.compare_exchange_strong(holder, thread_);
	// One that died meanwhile, of what it could not read, does not give its turn back.
	if (!mine_ && syscall(SYS_tkill, holder, 0) != 0 && errno == ESRCH)
		mine_ = board_.migrating.compare_exchange_strong(holder, thread_);
}

MigrationTurn::~MigrationTurn()
{
	if (mine_)
		board_.migrating.store(0);
}

// To another node and back: page by page, a range by its policy, or all of the process.
void Arena::migrate(Context &context, Chunk &chunk)
{
	const Range r = range(context, chunk, 512);
	const unsigned node = unsigned(context.random.below(nodes_));
	const unsigned long mask = 1ul << node, all = (1ul << nodes_) - 1;
	constexpr unsigned long bits = 8 * sizeof mask;
	const auto way = context.random.below(4);
	// After all choices, which are the seed's and not those of who comes first.
	const MigrationTurn turn(context.board);
	if (!turn)
		return;
	switch (way) {
	case 0:
	case 1: {
		context.doing("move_pages");
		std::vector<void *> pages(r.count);
		std::vector<int> nodes(r.count, int(node)), status(r.count, -1);
		for (std::uint64_t i = 0; i < r.count; ++i)
			pages[i] = at(chunk, r.first + i);
		if (syscall(SYS_move_pages, 0, r.count, pages.data(), nodes.data(), status.data(), MPOL_MF_MOVE) < 0 && !transient(errno))
			fail("move_pages");
		context.board.moved_pages.fetch_add(std::uint64_t(std::count(status.begin(), status.end(), int(node))));
		break;
	}
	case 2: {
		context.doing("mbind");
		char *const address = at(chunk, r.first);
		const std::size_t bytes = r.count * page_size;
		// Preferred: never short of memory where the other node has some.
		if (syscall(SYS_mbind, address, bytes, MPOL_PREFERRED, &mask, bits, MPOL_MF_MOVE) < 0 && !transient(errno))
			fail("mbind");
		// The mapping is one again.
		if (syscall(SYS_mbind, address, bytes, MPOL_DEFAULT, nullptr, 0, 0) < 0 && !transient(errno))
			fail("mbind back");
		break;
	}
	default:
		context.doing("migrate_pages");
		if (syscall(SYS_migrate_pages, 0, bits, &all, &mask) < 0 && !transient(errno))
			fail("migrate_pages");
	}
}

// What takes the content away.
void Arena::drop(Context &context, Chunk &chunk)
{
	const Range r = range(context, chunk, chunk.pages);
	// Not while a child has the same pages. What vanilla has read from a synchronous swap device is clean, in
	// the page table and in the folio; MADV_FREE does not ask who else maps it, and the child's is dropped too.
	const bool free = !is_shared() && kind_ != Kind::file_private && kind_ != Kind::uffd && context.chance(2) &&
			  __atomic_load_n(&chunk.children, __ATOMIC_RELAXED) == 0;
	const bool punch = is_shared() && context.chance(2);
	int result;
	if (punch) {
		context.doing("fallocate(PUNCH_HOLE)");
		result = fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(chunk.offset + r.first * page_size),
				   off_t(r.count * page_size));
		if (result != 0 && errno == ENOSPC) // of blocks for the tree's split
			return;
	} else {
		context.doing(free ? "MADV_FREE" : "MADV_DONTNEED");
		result = madvise(at(chunk, r.first), r.count * page_size, free ? MADV_FREE : MADV_DONTNEED);
	}
	const bool failed = result != 0;
	if (failed && !transient(errno))
		fail(punch ? "fallocate(PUNCH_HOLE)" : free ? "madvise(MADV_FREE)" : "madvise(MADV_DONTNEED)");
	if (is_shared() && !punch) // the pages are the file's
		return;
	for (std::uint64_t i = r.first; i < r.first + r.count; ++i) {
		auto &state = chunk.state[i];
		if (free || failed) {
			state.maybe = true;
		} else {
			state.now = underneath();
			state.maybe = false;
		}
	}
}

void Arena::protect(Context &context, Chunk &chunk)
{
	context.doing("mprotect");
	const Range r = range(context, chunk, chunk.pages);
	const bool readable = context.chance(2);
	char *const address = at(chunk, r.first);
	const std::size_t bytes = r.count * page_size;
	if (mprotect(address, bytes, readable ? PROT_READ : PROT_NONE) != 0 && !transient(errno))
		fail("mprotect");
	if (context.chance(2))
		madvise(address, bytes, MADV_PAGEOUT);
	if (readable)
		for (std::uint64_t i = r.first; i < r.first + r.count; ++i)
			if (!chunk.state[i].maybe && context.chance(4))
				verify(context, chunk, i);
	insist("mprotect back", [&] { return mprotect(address, bytes, PROT_READ | PROT_WRITE); });
}

void Arena::lock_memory(Context &context, Chunk &chunk)
{
	context.doing("mlock");
	const Range r = range(context, chunk, 128);
	char *const address = at(chunk, r.first);
	const std::size_t bytes = r.count * page_size;
	const bool on_fault = context.chance(2);
	if (mlock2(address, bytes, on_fault ? MLOCK_ONFAULT : 0) != 0 && !transient(errno))
		fail("mlock");
	for (std::uint64_t i = r.first; i < r.first + r.count; ++i)
		verify(context, chunk, i);
	if (context.chance(2))
		context.rest(context.random.below(20));
	insist("munlock", [&] { return munlock(address, bytes); });
}

void Arena::sync_file(Context &context, Chunk &chunk)
{
	context.doing("msync, fsync, fadvise");
	const Range r = range(context, chunk, chunk.pages);
	int error = 0;
	switch (context.random.below(3)) {
	case 0:
		error = msync(at(chunk, r.first), r.count * page_size, context.chance(2) ? MS_SYNC : MS_ASYNC) ? errno : 0;
		break;
	case 1:
		error = fsync(file_) ? errno : 0;
		break;
	default:
		error = posix_fadvise(file_, off_t(chunk.offset + r.first * page_size), off_t(r.count * page_size), POSIX_FADV_DONTNEED);
	}
	if (error && !transient(error))
		fail("writing the file back", error);
}

void Arena::write_protect(Context &context, Chunk &chunk)
{
	context.doing("UFFDIO_WRITEPROTECT");
	const Range r = range(context, chunk, chunk.pages);
	uffdio_writeprotect request = {};
	request.range = {reinterpret_cast<std::uint64_t>(at(chunk, r.first)), r.count * page_size};
	request.mode = UFFDIO_WRITEPROTECT_MODE_WP;
	if (ioctl(uffd_, UFFDIO_WRITEPROTECT, &request) != 0 && !transient(errno))
		fail("UFFDIO_WRITEPROTECT");
}

void Arena::answer_faults()
{
	alignas(4096) static Word content[words];
	mlock(content, sizeof content);
	for (;;) {
		pollfd ready = {uffd_, POLLIN, 0};
		poll(&ready, 1, -1);
		uffd_msg message;
		const ssize_t n = read(uffd_, &message, sizeof message);
		if (n != ssize_t(sizeof message) || message.event != UFFD_EVENT_PAGEFAULT)
			continue;
		const std::uint64_t address = message.arg.pagefault.address & ~(page_size - 1);
		if (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP) {
			uffdio_writeprotect request = {};
			request.range = {address, page_size};
			while (ioctl(uffd_, UFFDIO_WRITEPROTECT, &request) != 0 && transient(errno))
				;
			continue;
		}
		const auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk &c) {
			const auto begin = reinterpret_cast<std::uint64_t>(c.address);
			return address >= begin && address < begin + c.most * page_size;
		});
		if (chunk == chunks_.end())
			continue;
		const auto index = (address - reinterpret_cast<std::uint64_t>(chunk->address)) / page_size;
		fill_page(content, tag(*chunk, index, 1));
		uffdio_copy copy = {address, reinterpret_cast<std::uint64_t>(content), page_size, 0, 0};
		while (ioctl(uffd_, UFFDIO_COPY, &copy) != 0) {
			if (errno == EEXIST) {
				uffdio_range range = {address, page_size};
				ioctl(uffd_, UFFDIO_WAKE, &range);
				break;
			}
			if (!transient(errno))
				break; // the fault comes again, and the watchdog sees it if it does for ever
			copy.copy = 0;
		}
	}
}

void Arena::move(Context &context, Chunk &chunk)
{
	context.doing("mremap");
	const std::lock_guard layout(layout_);
	// A place for it, at any distance from a huge page's edge.
	const std::uint64_t bytes = chunk.most * page_size;
	char *const reserve = static_cast<char *>(mmap(nullptr, bytes + huge_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
	if (reserve == MAP_FAILED)
		return;
	const auto start = reinterpret_cast<std::uint64_t>(reserve);
	std::uint64_t place = start + context.random.below(huge_pages) * page_size;
	if (context.chance(2))
		place = (start + huge_bytes - 1) & ~(huge_bytes - 1);
	char *const target = reinterpret_cast<char *>(place);

	if (context.chance(2)) {
		// A part, there and back.
		const Range r = range(context, chunk, chunk.pages);
		char *const from = at(chunk, r.first);
		const std::size_t length = r.count * page_size;
		if (mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, target) == MAP_FAILED) {
			if (!transient(errno))
				fail("mremap of a part");
		} else {
			if (context.chance(2))
				madvise(target, length, MADV_PAGEOUT);
			insist("mremap back", [&] {
				return mremap(target, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, from) == MAP_FAILED ? -1 : 0;
			});
		}
		munmap(reserve, bytes + huge_bytes);
		return;
	}
	bool moved = false;
	if (chunk.pages == chunk.most) {
		moved = mremap(chunk.address, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, target) != MAP_FAILED;
		if (!moved && !transient(errno))
			fail("mremap");
	}
	if (!moved) {
		munmap(reserve, bytes + huge_bytes);
		return;
	}
	chunk.address = reinterpret_cast<Word *>(target);
	if (place > start)
		munmap(reserve, place - start);
	const auto end = start + bytes + huge_bytes;
	if (place + bytes < end)
		munmap(target + bytes, end - (place + bytes));
}

void Arena::resize(Context &context, Chunk &chunk)
{
	context.doing("munmap and mmap");
	const std::lock_guard layout(layout_);
	if (chunk.pages == chunk.most && context.chance(2)) {
		const std::uint64_t pages = 1 + context.random.below(chunk.most - 1);
		if (munmap(at(chunk, pages), (chunk.most - pages) * page_size) == 0)
			chunk.pages = pages;
		else if (!transient(errno))
			fail("munmap");
	} else {
		insist("munmap", [&] { return munmap(chunk.address, chunk.pages * page_size); });
		map(chunk, chunk.most);
		if (is_shared())
			return;
		for (std::uint64_t i = 0; i < chunk.most; ++i)
			chunk.state[i] = {underneath(), chunk.state[i].last, false};
		return;
	}
	if (!is_shared())
		for (std::uint64_t i = chunk.pages; i < chunk.most; ++i)
			chunk.state[i] = {underneath(), chunk.state[i].last, false};
}

void Arena::reap(Context &context, unsigned thread, unsigned leave)
{
	auto &children = children_[thread];
	while (children.size() > leave) {
		context.doing("waiting for a child");
		int status;
		if (waitpid(children.front().pid, &status, 0) != children.front().pid)
			fail("waitpid");
		__atomic_fetch_sub(&children.front().chunk->children, 1, __ATOMIC_RELAXED);
		children.erase(children.begin());
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
			throw ReportedCorruption();
		if (died_of_read_error(context.options, context.board, status))
			continue;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			throw WorkloadError(WIFSIGNALED(status)
						    ? fmt::format("a forked child of {} died of signal {}", context.role, WTERMSIG(status))
						    : fmt::format("a forked child of {} ended with status {}", context.role, WEXITSTATUS(status)));
	}
}

void Arena::fork_child(Context &context, Chunk &chunk, unsigned thread)
{
	reap(context, thread, 1);
	context.doing("fork");
	const Random stream(context.random.next());
	const pid_t pid = fork();
	if (pid < 0) {
		if (transient(errno))
			return;
		fail("fork");
	}
	if (pid == 0) {
		// Other threads held locks when they ceased to be: no allocations, no
		// locks, only this chunk.
		int status = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		context.random = stream;
		try {
			for (unsigned round = 0; round < 4 && !context.stop(); ++round) {
				const Range r = range(context, chunk, 512);
				for (std::uint64_t i = r.first; i < r.first + r.count; ++i) {
					if (is_shared() || context.chance(2))
						verify(context, chunk, i);
					else
						dirty(context, chunk, i);
					if (i % 64 == 0)
						context.step();
				}
				if (context.chance(2))
					madvise(at(chunk, r.first), r.count * page_size, context.chance(2) ? MADV_PAGEOUT : MADV_COLD);
			}
		} catch (const ReportedCorruption &) {
			status = 3;
		} catch (...) {
			status = 1;
		}
		_exit(status);
	}
	__atomic_fetch_add(&chunk.children, 1, __ATOMIC_RELAXED);
	children_[thread].push_back({pid, &chunk});
	if (is_shared()) // it must not see our stores half done
		reap(context, thread, 0);
}

void Arena::act(Context &context, unsigned thread)
{
	Chunk &chunk = chunks_[context.random.below(chunks_.size())];
	const auto what = context.random.below(100);
	if (what < 70) {
		const Guard guard(chunk.lock, false);
		if (what < 45)
			use(context, chunk, thread);
		else if (what >= 66 && nodes_ > 1)
			migrate(context, chunk);
		else
			advise(context, chunk);
	} else {
		const Guard guard(chunk.lock, true);
		if (what < 76)
			drop(context, chunk);
		else if (what < 81)
			protect(context, chunk);
		else if (what < 85)
			lock_memory(context, chunk);
		else if (kind_ == Kind::uffd) // what moves or copies a range would need the handler's help
			write_protect(context, chunk);
		else if (what < 90)
			move(context, chunk);
		else if (what < 92)
			resize(context, chunk);
		else if (what < 97)
			fork_child(context, chunk, thread);
		else if (file_ >= 0)
			sync_file(context, chunk);
		else
			use(context, chunk, thread);
	}
	context.step();
}

void Arena::verify_all(Context &context)
{
	context.doing("verifying everything");
	for (auto &chunk : chunks_) {
		const Guard guard(chunk.lock, true);
		// Many reads at once: one after the other, each waits for the host to wake the guest.
		madvise(chunk.address, chunk.pages * page_size, MADV_WILLNEED);
		for (std::uint64_t i = 0; i < chunk.pages; ++i) {
			verify(context, chunk, i);
			if (i % 64 == 0)
				context.step();
		}
	}
}

void Arena::spoil(Context &context)
{
	auto &chunk = chunks_.front();
	const Guard guard(chunk.lock, true);
	dirty(context, chunk, 0);
	reinterpret_cast<unsigned char *>(chunk.address)[100] ^= 1;
	verify(context, chunk, 0);
}

} // namespace pageout::load
