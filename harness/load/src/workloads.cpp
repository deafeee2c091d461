// SPDX-License-Identifier: GPL-2.0-only
#include "workloads.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "pageout/histogram.h"
#include "pageout/pattern.h"
#include "pageout/random.h"
#include "report.h"

namespace pageout::load {
namespace {

std::uint64_t now_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

std::size_t page_bytes()
{
	static const auto bytes = std::size_t(sysconf(_SC_PAGESIZE));
	return bytes;
}

[[noreturn]] void fail(const std::string &what)
{
	throw WorkloadError(fmt::format("{}: {}", what, std::strerror(errno)));
}

class Descriptor {
public:
	explicit Descriptor(int fd = -1) : fd_(fd) {}
	Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
	Descriptor &operator=(Descriptor &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~Descriptor() { reset(); }
	void reset()
	{
		if (fd_ >= 0)
			close(fd_);
		fd_ = -1;
	}
	int get() const { return fd_; }

private:
	int fd_;
};

class Mapping {
public:
	Mapping(std::size_t bytes, int flags, int fd, off_t offset) : bytes_(bytes)
	{
		address_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
		if (address_ == MAP_FAILED)
			fail(fmt::format("mmap of {} bytes", bytes));
	}
	Mapping(Mapping &&other) noexcept : address_(std::exchange(other.address_, MAP_FAILED)), bytes_(other.bytes_) {}
	Mapping &operator=(Mapping &&other) noexcept
	{
		std::swap(address_, other.address_);
		std::swap(bytes_, other.bytes_);
		return *this;
	}
	~Mapping()
	{
		if (address_ != MAP_FAILED)
			munmap(address_, bytes_);
	}
	void *address() const { return address_; }

	static Mapping anonymous(std::size_t bytes, const Options &options)
	{
		Mapping mapping(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (options.huge_pages) {
			if (madvise(mapping.address_, bytes, MADV_HUGEPAGE) != 0)
				fail("--thp: madvise(MADV_HUGEPAGE)");
		} else if (madvise(mapping.address_, bytes, MADV_NOHUGEPAGE) != 0 && errno != EINVAL) {
			// EINVAL: a kernel that has no huge pages to begin with.
			fail("madvise(MADV_NOHUGEPAGE)");
		}
		return mapping;
	}

private:
	void *address_;
	std::size_t bytes_;
};

// Takes the fault that a store takes, and changes nothing. Reading a page
// before writing it would cost a second fault.
inline void touch_for_write(Word *word)
{
#ifdef __x86_64__
	asm volatile("lock orq $0, %0" : "+m"(*word)::"cc");
#else
	__atomic_fetch_or(word, 0, __ATOMIC_RELAXED);
#endif
}

// Memory whose pages are filled and verified. Pages are named by their index in
// it; `first` is the number of page 0 in the whole workload.
class Pages {
public:
	Pages(const Options &options, void *address, std::uint64_t count, std::uint64_t first, std::uint64_t total)
	    : options_(options), address_(static_cast<Word *>(address)), count_(count), first_(first), total_(total),
	      words_(page_bytes() / sizeof(Word))
	{
	}

	std::uint64_t count() const { return count_; }

	// Writes the content of `pass`.
	void dirty(std::uint64_t index, std::uint64_t pass)
	{
		const Page page = at(index);
		const Tag tag = this->tag(index, pass);
		if (options_.whole_pages)
			fill_page(page, tag);
		else
			fill_word(page, tag);
		if (options_.provoke == Provoke::corrupt_page && tag.page == options_.provoke_page && pass == 0)
			page[options_.whole_pages ? words_ / 2 + 1 : 0] ^= 0x0100;
	}

	// Verifies the content of `previous`, then writes that of `pass`.
	void dirty_again(std::uint64_t index, std::uint64_t previous, std::uint64_t pass)
	{
		touch_for_write(at(index).data());
		verify(index, previous);
		dirty(index, pass);
	}

	void verify(std::uint64_t index, std::uint64_t pass)
	{
		const ConstPage page = at(index);
		const Tag tag = this->tag(index, pass);
		if (!(options_.whole_pages ? page_matches(page, tag) : word_matches(page, tag))) [[unlikely]]
			report(page, tag);
		++verified;
	}

	static inline std::uint64_t verified = 0;

private:
	Page at(std::uint64_t index) const { return {address_ + index * words_, words_}; }
	Tag tag(std::uint64_t index, std::uint64_t pass) const { return {options_.seed, first_ + index, pass}; }

	[[noreturn]] void report(ConstPage page, const Tag &tag) const
	{
		const auto mismatch =
			examine(page, tag, options_.whole_pages ? words_ : 1, total_, std::max(options_.passes, tag.pass + 1));
		// Wrong when it was verified and right now: say so, with what is there.
		throw Corruption(tag, mismatch.value_or(Mismatch{}));
	}

	const Options &options_;
	Word *address_;
	std::uint64_t count_;
	std::uint64_t first_;
	std::uint64_t total_;
	std::size_t words_;
};

std::uint64_t pages_in(std::uint64_t bytes, const char *what)
{
	const std::uint64_t page = page_bytes();
	if (bytes == 0 || bytes % page != 0)
		throw WorkloadError(fmt::format("{} is {} bytes; it must be a multiple of the page size, {}", what, bytes, page));
	return bytes / page;
}

void check_provoked_page(const Options &options, std::uint64_t pages)
{
	if (options.provoke == Provoke::corrupt_page && options.provoke_page >= pages)
		throw WorkloadError(fmt::format("--provoke corrupt-page={}: the workload has pages 0 to {}",
						options.provoke_page, pages - 1));
}

[[noreturn]] void eat_all_memory()
{
	for (;;) {
		const std::size_t bytes = 1 << 20;
		void *piece = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (piece == MAP_FAILED || mlock(piece, bytes) != 0)
			fail("--provoke oom: locking memory");
	}
}

// The faults on purpose that are not in a page, after the first pass.
void provoke(const Options &options, std::uint64_t pass)
{
	if (pass != 0)
		return;
	switch (options.provoke) {
	case Provoke::nothing:
	case Provoke::corrupt_page:
		return;
	case Provoke::fail:
		throw WorkloadError("provoked failure (--provoke fail)");
	case Provoke::hang:
		for (;;)
			pause();
	case Provoke::panic: {
		const Descriptor trigger(open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC));
		if (trigger.get() < 0 || write(trigger.get(), "c", 1) != 1)
			fail("--provoke panic: /proc/sysrq-trigger");
		return;
	}
	case Provoke::oom:
		eat_all_memory();
	}
}

} // namespace

void run_mapped_file(const Options &options, bool tmpfs)
{
	const std::uint64_t unit_pages = pages_in(options.bytes, "a unit");
	if (options.units == 0)
		throw WorkloadError("--units 0: at least one unit");
	const std::uint64_t pages = unit_pages * options.units;
	check_provoked_page(options, pages);

	if (tmpfs) {
		struct statfs fs;
		if (statfs(options.directory.c_str(), &fs) != 0)
			fail("--dir " + options.directory);
		if (fs.f_type != TMPFS_MAGIC)
			throw WorkloadError("--dir " + options.directory + ": is not on a tmpfs; mount one there, or use mmap-file");
	}
	const std::string path = options.directory + "/pageout-load.mmap";
	const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	if (file.get() < 0)
		fail(path);
	struct Remover {
		const std::string *path;
		~Remover()
		{
			if (path)
				unlink(path->c_str());
		}
	} remover{options.keep_file ? nullptr : &path};
	const std::uint64_t bytes = options.bytes * options.units;
	if (ftruncate(file.get(), off_t(bytes)) != 0)
		fail(fmt::format("{}: ftruncate to {} bytes", path, bytes));

	report_start(tmpfs ? "mmap-tmpfs" : "mmap-file", bytes, options.passes, options.seed,
		     fmt::format(R"(, "unit_bytes": {}, "units": {})", options.bytes, options.units));
	std::vector<Span> spans(options.units);
	for (std::uint64_t pass = 0; pass < options.passes; ++pass) {
		const auto begin = now_ns();
		auto before = begin;
		for (std::uint64_t unit = 0; unit < options.units; ++unit) {
			{
				const Mapping mapping(options.bytes, MAP_SHARED, file.get(), off_t(unit * options.bytes));
				Pages memory(options, mapping.address(), unit_pages, unit * unit_pages, pages);
				for (std::uint64_t i = 0; i < unit_pages; ++i) {
					if (pass == 0)
						memory.dirty(i, pass);
					else
						memory.dirty_again(i, pass - 1, pass);
				}
			}
			spans[unit] = {before, now_ns()};
			before = spans[unit].end_ns;
		}
		for (std::uint64_t unit = 0; unit < options.units; ++unit)
			report_unit(pass, unit, spans[unit], unit_pages);
		report_pass(pass, {begin, before}, pages);
		provoke(options, pass);
	}
}

void run_cycle(const Options &options, const char *name)
{
	const std::uint64_t pages = pages_in(options.bytes, "--bytes");
	check_provoked_page(options, pages);
	const auto mapping = Mapping::anonymous(options.bytes, options);
	Pages memory(options, mapping.address(), pages, 0, pages);

	report_start(name, options.bytes, options.passes, options.seed, "");
	for (std::uint64_t pass = 0; pass < options.passes; ++pass) {
		const auto begin = now_ns();
		for (std::uint64_t i = 0; i < pages; ++i) {
			if (pass == 0)
				memory.dirty(i, pass);
			else
				memory.dirty_again(i, pass - 1, pass);
		}
		report_pass(pass, {begin, now_ns()}, pages);
		provoke(options, pass);
	}
}

void run_random_dirty(const Options &options)
{
	const std::uint64_t pages = pages_in(options.bytes, "--bytes");
	check_provoked_page(options, pages);
	const auto mapping = Mapping::anonymous(options.bytes, options);
	Pages memory(options, mapping.address(), pages, 0, pages);

	report_start("random-dirty", options.bytes, options.passes, options.seed, "");
	for (std::uint64_t pass = 0; pass < options.passes; ++pass) {
		const Permutation order(pages, mix64(options.seed) + pass);
		const auto begin = now_ns();
		for (std::uint64_t i = 0; i < pages; ++i) {
			if (pass == 0)
				memory.dirty(order(i), pass);
			else
				memory.dirty_again(order(i), pass - 1, pass);
		}
		const auto middle = now_ns();
		for (std::uint64_t i = 0; i < pages; ++i)
			memory.verify(i, pass);
		const auto end = now_ns();
		report_phase(pass, "dirty", {begin, middle}, pages);
		report_phase(pass, "read", {middle, end}, pages);
		report_pass(pass, {begin, end}, 2 * pages);
		provoke(options, pass);
	}
}

namespace {

// What a forked process does, and the end of it: its pages are counted, and what went wrong is its status.
// 3: a corruption, which has been reported.
template <typename Work> [[noreturn]] void be_a_child(const std::string &who, std::uint64_t *verified, Work work)
{
	int status = 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	try {
		work();
		status = 0;
	} catch (const Corruption &corruption) {
		report_corruption(corruption);
		status = 3;
	} catch (const std::exception &error) {
		fmt::print(stderr, "pageout-load: {}: {}\n", who, error.what());
	}
	__atomic_fetch_add(verified, Pages::verified, __ATOMIC_RELAXED);
	_exit(status);
}

int wait_for(pid_t child)
{
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

// A pipe whose tokens say whose turn it is.
struct Turn {
	Descriptor take, give;
	Turn()
	{
		int ends[2];
		if (pipe2(ends, O_CLOEXEC) != 0)
			fail("pipe");
		take = Descriptor(ends[0]);
		give = Descriptor(ends[1]);
	}
};

// False when the others are gone.
bool take_turn(const Descriptor &from)
{
	char token;
	ssize_t n;
	do
		n = read(from.get(), &token, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

bool give_turn(const Descriptor &to)
{
	ssize_t n;
	do
		n = write(to.get(), "t", 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

// One process of interleave: pass after pass, a batch whenever its turn comes. Strict
// turns: one process at a time, always in the same order. Free turns: whoever waits
// for the disk is overtaken, as programs that know nothing of each other are.
// `last` gives the end of a pass to `parent` instead of its next neighbour.
void interleave_child(const Options &options, std::uint64_t process, std::uint64_t pages, const Descriptor &take,
		      Descriptor &give, const Descriptor *parent)
{
	const auto mapping = Mapping::anonymous(options.bytes, options);
	Pages memory(options, mapping.address(), pages, process * pages, options.processes * pages);
	for (std::uint64_t pass = 0; pass < options.passes; ++pass) {
		// Free turns: the token goes round once to start the pass and once to end it.
		if (options.free_turns && (!take_turn(take) || (!parent && !give_turn(give))))
			return;
		for (std::uint64_t i = 0; i < pages;) {
			if (options.free_turns)
				sched_yield();
			else if (!take_turn(take))
				return;
			const std::uint64_t end = std::min(pages, i + options.batch_pages);
			for (; i < end; ++i) {
				if (pass == 0)
					memory.dirty(i, pass);
				else
					memory.dirty_again(i, pass - 1, pass);
			}
			if (!options.free_turns && !give_turn(parent && i == pages ? *parent : give))
				return;
		}
		if (options.free_turns && ((process > 0 && !take_turn(take)) || !give_turn(parent ? *parent : give)))
			return;
	}
	// Wait for the parent to hang up, so that no process frees its memory
	// while another still works. Process 0 notices first, the others one
	// after the other: the ring must be open for that.
	if (parent)
		give.reset();
	take_turn(take);
}

} // namespace

void run_interleave(const Options &options)
{
	const std::uint64_t pages = pages_in(options.bytes, "--bytes-each");
	if (options.processes == 0 || options.processes > 1000 || options.batch_pages == 0)
		throw WorkloadError("interleave needs 1 to 1000 --processes and a --batch of at least 1 page");
	check_provoked_page(options, pages * options.processes);

	// Turn n is what process n waits for; the last one is the parent's.
	std::vector<Turn> turns(options.processes + 1);
	const Mapping shared(page_bytes(), MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	auto *verified = static_cast<std::uint64_t *>(shared.address());

	report_start("interleave", options.bytes * options.processes, options.passes, options.seed,
		     fmt::format(R"(, "processes": {}, "bytes_each": {}, "batch_pages": {})", options.processes, options.bytes,
				 options.batch_pages));
	std::vector<pid_t> children;
	for (std::uint64_t n = 0; n < options.processes; ++n) {
		const pid_t child = fork();
		if (child < 0)
			fail(fmt::format("fork of process {}", n));
		if (child > 0) {
			children.push_back(child);
			continue;
		}
		// A process that goes must be noticed by the next one, and a
		// parent that goes by all: keep only one's own ends.
		be_a_child(fmt::format("interleave: process {}", n), verified, [&] {
			const bool is_last = n + 1 == options.processes;
			Descriptor take = std::move(turns[n].take);
			Descriptor give = std::move(turns[is_last ? 0 : n + 1].give);
			Descriptor parent = std::move(turns[options.processes].give);
			if (!is_last)
				parent.reset();
			turns.clear();
			interleave_child(options, n, pages, take, give, is_last ? &parent : nullptr);
		});
	}

	Descriptor first = std::move(turns[0].give);
	const Descriptor done = std::move(turns[options.processes].take);
	turns.clear();
	bool lost = false;
	try {
		for (std::uint64_t pass = 0; pass < options.passes && !lost; ++pass) {
			const auto begin = now_ns();
			lost = !give_turn(first) || !take_turn(done);
			if (!lost) {
				report_pass(pass, {begin, now_ns()}, pages * options.processes);
				provoke(options, pass);
			}
		}
	} catch (...) {
		for (const auto child : children)
			kill(child, SIGKILL);
		while (wait(nullptr) > 0)
			;
		throw;
	}
	first.reset(); // hang up

	// Who went first is the one to believe; the others only followed.
	int worst = 0;
	std::string why;
	for (std::size_t n = 0; n < children.size(); ++n) {
		const int status = wait_for(children[n]);
		if (WIFSIGNALED(status)) {
			worst = std::max(worst, 1);
			why += fmt::format("process {} was killed by signal {}; ", n, WTERMSIG(status));
		} else if (WEXITSTATUS(status) != 0) {
			worst = std::max(worst, WEXITSTATUS(status));
		}
	}
	Pages::verified += *verified;
	if (worst == 3)
		throw ReportedCorruption();
	if (worst != 0 || lost)
		throw WorkloadError("interleave: " + (why.empty() ? "a process ended early; " : why) + "the others were stopped");
}

void run_zipf(const Options &options)
{
	const std::uint64_t pages = pages_in(options.bytes, "--bytes");
	check_provoked_page(options, pages);
	if (options.write_percent > 100)
		throw WorkloadError("--write-percent is more than 100");
	const auto mapping = Mapping::anonymous(options.bytes, options);
	Pages memory(options, mapping.address(), pages, 0, pages);
	const Zipf zipf(pages, options.theta);
	// Which pages are hot has nothing to do with where they are.
	const Permutation place(pages, mix64(options.seed) + 1);
	Random random(mix64(options.seed) + 2);
	// How often each page was written: its content's pass. Locked, since it
	// is the ruler and not what is measured.
	std::vector<std::uint32_t> writes(pages);
	mlock(writes.data(), writes.size() * sizeof writes[0]);

	report_start("zipf", options.bytes, options.passes, options.seed,
		     fmt::format(R"(, "theta": {}, "operations": {}, "write_percent": {})", options.theta, options.operations,
				 options.write_percent));
	const auto begin = now_ns();
	for (std::uint64_t i = 0; i < pages; ++i)
		memory.dirty(i, 0);
	report_phase(0, "fill", {begin, now_ns()}, pages);
	for (std::uint64_t pass = 0; pass < options.passes; ++pass) {
		const auto pass_begin = now_ns();
		for (std::uint64_t n = 0; n < options.operations; ++n) {
			const std::uint64_t page = place(zipf(random));
			if (random.below(100) < options.write_percent) {
				memory.dirty_again(page, writes[page], writes[page] + 1);
				++writes[page];
			} else {
				memory.verify(page, writes[page]);
			}
		}
		report_pass(pass, {pass_begin, now_ns()}, options.operations);
		provoke(options, pass);
	}
}

// Memory that a child shares after a fork is the child's as well, whatever the parent says it does not need
// of its own. Read from swap before, so that neither page table nor folio knows it as dirty.
void run_free_shared(const Options &options)
{
	const std::uint64_t pages = pages_in(options.bytes, "--bytes");
	const std::uint64_t pressure_pages = pages_in(options.pressure_bytes, "--pressure");
	check_provoked_page(options, pages);
	const Mapping memory = Mapping::anonymous(options.bytes, options);
	Pages shared(options, memory.address(), pages, 0, pages);
	report_start("free-shared", options.bytes, options.passes, options.seed,
		     fmt::format(R"(, "pressure_bytes": {})", options.pressure_bytes));
	const auto begin = now_ns();
	for (std::uint64_t i = 0; i < pages; ++i)
		shared.dirty(i, 0);
	if (madvise(memory.address(), options.bytes, MADV_PAGEOUT) != 0)
		fail("MADV_PAGEOUT");
	for (std::uint64_t i = 0; i < pages; ++i)
		shared.verify(i, 0);

	Turn turn;
	const Mapping counts(page_bytes(), MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	auto *verified = static_cast<std::uint64_t *>(counts.address());
	const pid_t child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0)
		be_a_child("free-shared: the child", verified, [&] {
			Pages::verified = 0; // the parent counts its own
			turn.give.reset();
			if (!take_turn(turn.take))
				throw WorkloadError("the parent is gone");
			for (std::uint64_t i = 0; i < pages; ++i)
				shared.verify(i, 0);
		});
	if (madvise(memory.address(), options.bytes, MADV_FREE) != 0)
		fail("MADV_FREE");
	for (std::uint64_t pass = 0; pass < options.passes; ++pass) {
		const Mapping other = Mapping::anonymous(options.pressure_bytes, options);
		Pages filled(options, other.address(), pressure_pages, pages, pages + pressure_pages);
		for (std::uint64_t i = 0; i < pressure_pages; ++i)
			filled.dirty(i, pass);
	}
	give_turn(turn.give);
	const int status = wait_for(child);
	Pages::verified += *verified;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		throw ReportedCorruption();
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		throw WorkloadError("free-shared: the child did not get to its end");
	report_pass(0, {begin, now_ns()}, pages);
	provoke(options, 0);
}

void run_alloc_steady(const Options &options)
{
	const std::uint64_t chunk_pages = pages_in(options.chunk_bytes, "--chunk");
	if (options.bytes % options.chunk_bytes != 0 || options.bytes == 0)
		throw WorkloadError("--bytes must be a multiple of --chunk");
	if (options.allocations == 0)
		throw WorkloadError("--allocations 0: at least one");
	const std::uint64_t slots = options.bytes / options.chunk_bytes;
	const std::uint64_t pages = slots * chunk_pages;
	check_provoked_page(options, pages);

	struct Chunk {
		std::optional<Mapping> mapping;
		std::uint64_t round = 0; // how often this slot was filled before
	};
	std::vector<Chunk> chunks(slots);
	const auto stalls = std::make_unique<Histogram[]>(options.passes);
	mlock(stalls.get(), options.passes * sizeof(Histogram));

	report_start("alloc-steady", options.bytes, options.passes, options.seed,
		     fmt::format(R"(, "chunk_bytes": {}, "allocations": {}, "interval_us": {})", options.chunk_bytes,
				 options.allocations, options.interval_us));
	std::uint64_t slot = 0;
	for (std::uint64_t pass = 0; pass < options.passes; ++pass) {
		const auto begin = now_ns();
		auto due = begin;
		for (std::uint64_t n = 0; n < options.allocations; ++n) {
			auto &chunk = chunks[slot];
			if (chunk.mapping) {
				Pages old(options, chunk.mapping->address(), chunk_pages, slot * chunk_pages, pages);
				for (std::uint64_t i = 0; i < chunk_pages; ++i)
					old.verify(i, chunk.round);
				chunk.mapping.reset();
				++chunk.round;
			}
			due += options.interval_us * 1000;
			const timespec until = {time_t(due / 1'000'000'000), long(due % 1'000'000'000)};
			while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR)
				;
			const auto start = now_ns();
			chunk.mapping.emplace(Mapping::anonymous(options.chunk_bytes, options));
			Pages fresh(options, chunk.mapping->address(), chunk_pages, slot * chunk_pages, pages);
			for (std::uint64_t i = 0; i < chunk_pages; ++i)
				fresh.dirty(i, chunk.round);
			const auto end = now_ns();
			stalls[pass].add(end - start);
			// Late is late: do not make up for it by a burst.
			due = std::max(due, end);
			slot = (slot + 1) % slots;
		}
		const Span span = {begin, now_ns()};
		report_stalls(pass, stalls[pass]);
		report_pass(pass, span, options.allocations * chunk_pages);
		provoke(options, pass);
	}
}

std::uint64_t verified_pages()
{
	return Pages::verified;
}

} // namespace pageout::load
