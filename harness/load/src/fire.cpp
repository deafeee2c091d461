// SPDX-License-Identifier: GPL-2.0-only
//
// The parent of fire: starts the workers, watches that each goes on, and says what
// came of them.
#include "fire.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fire_arena.h"
#include "fire_worker.h"
#include "report.h"
#include "workloads.h"

namespace pageout::load {
namespace {

struct Role {
	const char *name;
	void (*body)(Context &);
	bool machine;     // changes the machine
	unsigned workers; // processes of it
	unsigned threads; // of each
	Kind kind;
};

// In this order they get their random numbers: new ones go to the end.
constexpr Role roles[] = {
	{"anon", work_on_memory, false, 2, 2, Kind::anon},
	{"thp", work_on_memory, false, 1, 2, Kind::thp},
	{"shmem", work_on_memory, false, 1, 2, Kind::shmem},
	{"file", work_on_memory, false, 1, 1, Kind::file},
	{"file-private", work_on_memory, false, 1, 1, Kind::file_private},
	{"uffd", work_on_memory, false, 1, 1, Kind::uffd},
	{"switches", flip_switches, true, 1, 1, Kind::anon},
	{"vm", turn_vm, true, 1, 1, Kind::anon},
	{"swap", turn_swap, true, 1, 1, Kind::anon},
	{"disk", break_disks, true, 1, 1, Kind::anon},
	{"groups", run_groups, true, 1, 1, Kind::anon},
	{"cpus", plug_cpus, true, 1, 1, Kind::anon},
	{"faults", fail_allocations, true, 1, 1, Kind::anon},
};

const Role *role_of(std::string_view name)
{
	for (const auto &role : roles)
		if (name == role.name)
			return &role;
	return nullptr;
}

bool has_memory(const Role &role)
{
	return role.body == work_on_memory;
}

std::string escaped(std::string_view text)
{
	std::string out;
	for (const char c : text) {
		if (c == '"' || c == '\\')
			out += '\\';
		if (static_cast<unsigned char>(c) >= 0x20)
			out += c;
		else if (c == '\n')
			out += "\\n";
		else
			out += ' ';
	}
	return out;
}

void put_line(const char *text, std::size_t length)
{
	for (std::size_t done = 0; done < length;) {
		const ssize_t n = write(STDOUT_FILENO, text + done, length - done);
		if (n > 0)
			done += std::size_t(n);
		else if (errno != EINTR)
			throw OutputError();
	}
}

// What a worker's process ends with, after it has said why.
int status_of(const std::exception_ptr &failure, std::string_view role)
{
	try {
		std::rethrow_exception(failure);
	} catch (const ReportedCorruption &) {
		return 3;
	} catch (const std::exception &error) {
		fire_say("failure", role, error.what());
		return 1;
	}
}

struct Worker {
	const Role *role = nullptr;
	unsigned number = 0;
	unsigned first_slot = 0;
	std::uint64_t bytes = 0;
	pid_t pid = 0;
	bool ended = false;
};

struct Watched {
	std::uint64_t steps = 0;
	std::uint64_t since_ns = 0;
};

// Where a thread's stack is known to the kernel; "" where it does not say.
std::string stacks_of(pid_t pid)
{
	std::string all;
	const auto tasks = fmt::format("/proc/{}/task", pid);
	if (DIR *directory = opendir(tasks.c_str())) {
		while (const dirent *entry = readdir(directory)) {
			if (entry->d_name[0] == '.')
				continue;
			std::string stack, state;
			read_text(fmt::format("{}/{}/stack", tasks, entry->d_name), stack);
			if (read_text(fmt::format("{}/{}/stat", tasks, entry->d_name), state))
				state = state.substr(0, state.find(')') + 3);
			all += fmt::format("{}\n{}", state, stack);
		}
		closedir(directory);
	}
	return all;
}

class Fire {
public:
	explicit Fire(const FireOptions &options);
	~Fire();
	std::uint64_t run();

private:
	void choose();
	void set_up_machine();
	void start(Worker &worker);
	[[noreturn]] void be(Worker &worker);
	void watch(std::uint64_t until_ns, bool machine_only);
	void reap();
	bool survives(Worker &worker, int status);
	bool any_left(bool machine_only) const;
	void look_for_stalls();
	void report_progress();
	std::uint64_t verified() const;

	const FireOptions &options_;
	Board *board_ = nullptr;
	std::vector<Worker> workers_;
	std::map<unsigned, Watched> watched_;
	std::uint64_t start_ns_ = fire_now_ns(), next_report_ns_ = 0;
};

Fire::Fire(const FireOptions &options) : options_(options)
{
	void *memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		throw WorkloadError(fmt::format("memory for the board: {}", std::strerror(errno)));
	board_ = new (memory) Board{};
	mlock(memory, sizeof(Board));
	choose();
}

Fire::~Fire()
{
	for (const auto &worker : workers_)
		if (worker.pid > 0 && !worker.ended)
			kill(-worker.pid, SIGKILL);
	for (const auto &worker : workers_)
		if (worker.pid > 0 && !worker.ended)
			for (int i = 0; i < 500 && waitpid(worker.pid, nullptr, WNOHANG) == 0; ++i)
				poll(nullptr, 0, 10);
	munmap(board_, sizeof(Board));
}

void Fire::choose()
{
	const auto listed = [](const std::vector<std::string> &list, const char *name) {
		return std::find(list.begin(), list.end(), name) != list.end();
	};
	for (const auto *list : {&options_.roles, &options_.without})
		for (const auto &name : *list)
			if (!role_of(name))
				throw WorkloadError(fmt::format("there is no role {}; there are: {}", name, fmt::join(fire_roles(), ", ")));
	unsigned number = 0, slot = 0, with_memory = 0;
	for (const auto &role : roles) {
		for (unsigned i = 0; i < role.workers; ++i, ++number, slot += role.threads) {
			if ((!options_.roles.empty() && !listed(options_.roles, role.name)) || listed(options_.without, role.name))
				continue;
			if (role.machine && !options_.machine)
				continue;
			if ((role.kind == Kind::file || role.kind == Kind::file_private) && options_.directories.empty()) {
				fire_say("missing", role.name, "no --dir for its files");
				continue;
			}
			workers_.push_back({&role, number, slot, 0, 0, false});
			with_memory += has_memory(role);
		}
	}
	if (workers_.empty())
		throw WorkloadError("no role is left; those that change the machine need --machine");
	for (auto &worker : workers_)
		if (has_memory(*worker.role))
			worker.bytes = options_.bytes / with_memory;
}

void Fire::set_up_machine()
{
	if (!options_.machine)
		return;
	mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	write_text("/proc/self/oom_score_adj", "-1000");
	if (mkdir(cgroup_root, 0755) != 0 && errno != EEXIST)
		throw WorkloadError(fmt::format("{}: {}", cgroup_root, std::strerror(errno)));
	if (mount("cgroup2", cgroup_root, "cgroup2", 0, "") != 0 ||
	    write_text(fmt::format("{}/cgroup.subtree_control", cgroup_root), "+memory") != 0)
		fire_say("missing", "fire", "memory cgroups");
}

void Fire::start(Worker &worker)
{
	for (unsigned thread = 0; thread < worker.role->threads; ++thread)
		board_->slot[worker.first_slot + thread].used = true;
	const pid_t pid = fork();
	if (pid < 0)
		throw WorkloadError(fmt::format("fork: {}", std::strerror(errno)));
	if (pid == 0)
		be(worker);
	worker.pid = pid;
	for (unsigned thread = 0; thread < worker.role->threads; ++thread)
		board_->slot[worker.first_slot + thread].pid = pid;
}

void Fire::be(Worker &worker)
{
	const auto &role = *worker.role;
	try {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		prctl(PR_SET_NAME, fmt::format("fire-{}", role.name).c_str());
		Context context{options_, *board_, board_->slot[worker.first_slot], worker.number, role.name, worker.bytes,
				fire_stream(options_.seed, worker.number, 0)};
		if (has_memory(role)) {
			munlockall();
			if (options_.machine) {
				write_text("/proc/self/oom_score_adj", "0");
				const auto group = fmt::format("{}/worker-{}", cgroup_root, worker.number);
				if (mkdir(group.c_str(), 0755) == 0)
					write_text(group + "/cgroup.procs", "0");
			}
		} else {
			// What is swapped out already comes back now, before reads fail.
			if (options_.read_errors)
				mlockall(MCL_CURRENT);
			mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
		}
		role.body(context);
	} catch (...) {
		_exit(status_of(std::current_exception(), role.name));
	}
	_exit(0);
}

std::uint64_t Fire::verified() const
{
	std::uint64_t pages = 0;
	for (const auto &slot : board_->slot)
		pages += slot.verified_pages.load();
	return pages;
}

void Fire::report_progress()
{
	std::string steps, vmstat, out;
	for (const auto &worker : workers_) {
		std::uint64_t sum = 0;
		for (unsigned thread = 0; thread < worker.role->threads; ++thread)
			sum += board_->slot[worker.first_slot + thread].steps.load();
		steps += fmt::format("{}\"{}-{}\": {}", steps.empty() ? "" : ", ", worker.role->name, worker.number, sum);
	}
	read_text("/proc/vmstat", vmstat);
	for (const std::string_view name : {"pswpin ", "pswpout ", "zswpout ", "oom_kill ", "compact_success ", "pgmigrate_success "}) {
		const auto at = vmstat.find(fmt::format("\n{}", name));
		if (at == std::string::npos)
			continue;
		const auto begin = at + 1 + name.size();
		out += fmt::format(", \"{}\": {}", name.substr(0, name.size() - 1), vmstat.substr(begin, vmstat.find('\n', begin) - begin));
	}
	const auto line = fmt::format("{{\"event\": \"progress\", \"s\": {}, \"verified_pages\": {}, \"steps\": {{{}}}, \"group_kills\": {}, "
				      "\"failing_writes\": {}, \"failing_reads\": {}, \"bus_errors\": {}, \"stuck\": {}, \"switched\": {}, "
				      "\"swapoffs\": {}, \"unplugged\": {}, \"moved_pages\": {}{}}}\n",
				      (fire_now_ns() - start_ns_) / 1'000'000'000, verified(), steps, board_->group_kills.load(),
				      board_->write_errors.load(), board_->read_errors.load(), board_->bus_errors.load(), board_->stuck.load(),
				      board_->switched.load(), board_->swapoffs.load(), board_->unplugged.load(), board_->moved_pages.load(), out);
	put_line(line.data(), line.size());
}

void Fire::look_for_stalls()
{
	const auto now = fire_now_ns();
	// To empty a swap area page by page while everything else wants memory is one step, and
	// who wants to change a process's mappings waits for it: swapoff holds each mmap lock in turn.
	const bool emptying = std::any_of(workers_.begin(), workers_.end(), [&](const Worker &w) {
		const char *doing = board_->slot[w.first_slot].doing.load();
		return !w.ended && w.role->body == turn_swap && doing && std::string_view(doing) == "swapoff";
	});
	for (const auto &worker : workers_) {
		if (worker.ended)
			continue;
		for (unsigned thread = 0; thread < worker.role->threads; ++thread) {
			const auto index = worker.first_slot + thread;
			const auto &slot = board_->slot[index];
			if (!slot.used)
				continue;
			auto &seen = watched_[index];
			const auto steps = slot.steps.load();
			if (steps != seen.steps || seen.since_ns == 0) {
				seen = {steps, now};
				continue;
			}
			const auto patience = options_.stall_seconds * (emptying ? 3 : 1);
			if (now - seen.since_ns < patience * 1'000'000'000)
				continue;
			const char *doing = slot.doing.load();
			fire_say("hang", worker.role->name,
				 fmt::format("worker {} thread {} (pid {}) made no step in {} s; it was doing: {}\n{}", worker.number, thread,
					     worker.pid, (now - seen.since_ns) / 1'000'000'000, doing ? doing : "nothing yet",
					     stacks_of(worker.pid)));
			write_text("/proc/sysrq-trigger", "w");
			write_text("/proc/sysrq-trigger", "m");
			throw WorkerHung();
		}
	}
}

bool Fire::any_left(bool machine_only) const
{
	return std::any_of(workers_.begin(), workers_.end(),
			   [&](const Worker &w) { return !w.ended && (!machine_only || w.role->machine); });
}

// Where reads fail, that is the end of whoever needs what was to be read. Another one
// takes its place, with the same choices to make and fresh memory.
bool Fire::survives(Worker &worker, int status)
{
	if (!has_memory(*worker.role) || !died_of_read_error(options_, *board_, status))
		return false;
	// Its children go with it (PR_SET_PDEATHSIG), its threads have.
	if (!board_->stop) {
		worker.ended = false;
		start(worker);
	}
	return true;
}

void Fire::reap()
{
	for (auto &worker : workers_) {
		int status;
		if (worker.ended || waitpid(worker.pid, &status, WNOHANG) != worker.pid)
			continue;
		worker.ended = true;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			continue;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
			throw ReportedCorruption();
		if (survives(worker, status))
			continue;
		throw WorkloadError(fmt::format("{} (worker {}) ended with {} {}; it was doing: {}", worker.role->name, worker.number,
						WIFSIGNALED(status) ? "signal" : "status",
						WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
						board_->slot[worker.first_slot].doing.load() ? board_->slot[worker.first_slot].doing.load()
											     : "nothing yet"));
	}
}

void Fire::watch(std::uint64_t until_ns, bool machine_only)
{
	while (any_left(machine_only) && (until_ns == 0 || fire_now_ns() < until_ns)) {
		reap();
		look_for_stalls();
		if (fire_now_ns() >= next_report_ns_) {
			report_progress();
			next_report_ns_ = fire_now_ns() + 10'000'000'000;
		}
		poll(nullptr, 0, 200);
	}
}

std::uint64_t Fire::run()
{
	std::string names;
	for (const auto &worker : workers_)
		names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", worker.role->name);
	report_start("fire", options_.bytes, 1, options_.seed, fmt::format(", \"seconds\": {}, \"roles\": [{}]", options_.seconds, names));
	set_up_machine();
	for (auto &worker : workers_)
		start(worker);
	watch(fire_now_ns() + options_.seconds * 1'000'000'000, false);
	board_->stop = true;
	// The machine is put right before everything is read for the last time.
	watch(0, true);
	board_->calm = true;
	watch(0, false);
	reap();
	report_progress();
	report_pass(0, {start_ns_, fire_now_ns()}, verified());
	return verified();
}

} // namespace

std::vector<std::string> fire_roles()
{
	std::vector<std::string> names;
	for (const auto &role : roles)
		names.emplace_back(role.name);
	return names;
}

Random fire_stream(std::uint64_t seed, unsigned worker, unsigned thread)
{
	return Random(mix64(seed + mix64((std::uint64_t(worker) << 8) + thread + 1)));
}

void Context::rest(std::uint64_t milliseconds)
{
	const auto end = fire_now_ns() + milliseconds * 1'000'000;
	while (!stop()) {
		const auto now = fire_now_ns();
		if (now >= end)
			return;
		poll(nullptr, 0, int(std::min<std::uint64_t>((end - now) / 1'000'000 + 1, 250)));
	}
}

void fire_say(const char *event, std::string_view role, std::string_view what)
{
	const auto line = fmt::format("{{\"event\": \"{}\", \"role\": \"{}\", \"what\": \"{}\"}}\n", event, role, escaped(what));
	put_line(line.data(), line.size());
}

int write_text(const std::string &path, std::string_view text)
{
	const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	const ssize_t n = write(fd, text.data(), text.size());
	const int error = n < 0 ? errno : std::size_t(n) == text.size() ? 0 : EIO;
	close(fd);
	return error;
}

bool read_text(const std::string &path, std::string &text)
{
	const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	text.clear();
	char buffer[4096];
	ssize_t n;
	while ((n = read(fd, buffer, sizeof buffer)) > 0)
		text.append(buffer, std::size_t(n));
	close(fd);
	return n == 0;
}

std::uint64_t fire_now_ns()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

void work_on_memory(Context &context)
{
	const Role &role = *role_of(context.role);
	const auto &options = context.options;
	if (role.kind == Kind::uffd && access("/proc/sys/vm/unprivileged_userfaultfd", F_OK) != 0) {
		fire_say("missing", context.role, "userfaultfd");
		return;
	}
	const std::string directory = options.directories.empty() ? "" : options.directories.front();
	Arena arena(context, role.kind, context.bytes, role.threads, directory);
	if (role.kind == Kind::uffd)
		std::thread([&arena] { arena.answer_faults(); }).detach();
	// Those that can live with failing system calls; the files' writers must not,
	// as what fails there is the file system's to tell.
	const bool may_fail = options.machine && role.kind != Kind::file && role.kind != Kind::file_private && role.kind != Kind::uffd;

	const bool first = context.worker == 0;
	const auto body = [&](unsigned thread) {
		Context mine{options, context.board, (&context.slot)[thread], context.worker, context.role, context.bytes,
			     fire_stream(options.seed, context.worker, thread)};
		// Not before, or a second thread may never come to be.
		if (may_fail)
			write_text("/proc/thread-self/make-it-fail", "1");
		try {
			for (std::uint64_t round = 0; !mine.stop(); ++round) {
				arena.act(mine, thread);
				if (first && thread == 0 && options.corrupt_after && round == options.corrupt_after)
					arena.spoil(mine);
				while (first && thread == 0 && options.hang_after && round >= options.hang_after)
					poll(nullptr, 0, 1000);
			}
			arena.reap(mine, thread, 0);
			write_text("/proc/thread-self/make-it-fail", "0");
			mine.doing("waiting for the machine to be put right");
			while (!mine.board.calm) {
				mine.step();
				poll(nullptr, 0, 100);
			}
			if (thread == 0)
				arena.verify_all(mine);
			mine.slot.used = false; // nobody waits for its steps
		} catch (...) {
			_exit(status_of(std::current_exception(), context.role));
		}
	};
	std::vector<std::thread> threads;
	for (unsigned thread = 1; thread < role.threads; ++thread)
		threads.emplace_back(body, thread);
	body(0);
	_exit(0); // uffd's handler still waits
}

bool died_of_read_error(const FireOptions &options, Board &board, int status)
{
	if (!options.read_errors || !WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
		return false;
	board.bus_errors.fetch_add(1);
	return true;
}

unsigned memory_nodes()
{
	unsigned nodes = 1;
	while (access(fmt::format("/sys/devices/system/node/node{}", nodes).c_str(), F_OK) == 0)
		++nodes;
	return nodes;
}

std::uint64_t run_fire(const FireOptions &options)
{
	return Fire(options).run();
}

} // namespace pageout::load
