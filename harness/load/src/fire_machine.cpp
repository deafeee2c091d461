// SPDX-License-Identifier: GPL-2.0-only
//
// The roles of fire that turn the machine over: the series' switches, the kernel's
// own ones, swap areas, disks, memory cgroups, CPUs, failing allocations.
#include "fire_worker.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "fire_arena.h"
#include "workloads.h"

namespace pageout::load {
namespace {

constexpr const char *switch_folder = "/sys/kernel/mm/pageout/";

std::vector<std::string> files_of(const std::string &folder)
{
	std::vector<std::string> names;
	if (DIR *directory = opendir(folder.c_str())) {
		while (const dirent *entry = readdir(directory)) {
			struct stat status;
			if (stat((folder + entry->d_name).c_str(), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & S_IWUSR))
				names.push_back(entry->d_name);
		}
		closedir(directory);
	}
	std::sort(names.begin(), names.end());
	return names;
}

std::vector<std::string> folders_of(const std::string &folder)
{
	std::vector<std::string> names;
	if (DIR *directory = opendir(folder.c_str())) {
		while (const dirent *entry = readdir(directory))
			if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
				names.push_back(entry->d_name);
		closedir(directory);
	}
	std::sort(names.begin(), names.end());
	return names;
}

bool short_of_memory(int error)
{
	return error == ENOMEM || error == EAGAIN || error == EINTR || error == EBUSY;
}

// ---- swap areas --------------------------------------------------------------

struct SwapArea {
	std::string path;
	std::uint64_t bytes = 0;
	bool file = false, zram = false, on = false;
};

std::uint64_t device_bytes(const std::string &path)
{
	const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	const off_t end = lseek(fd, 0, SEEK_END);
	close(fd);
	return end > 0 ? std::uint64_t(end) : 0;
}

bool write_header(const SwapArea &area, std::uint64_t bytes)
{
	alignas(4096) unsigned char page[4096];
	fill_swap_header(page, bytes);
	const int fd = open(area.path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
	if (fd < 0)
		return false;
	// EIO where the disk's writes fail just now
	const bool done = pwrite(fd, page, sizeof page, 0) == ssize_t(sizeof page);
	close(fd);
	return done;
}

bool set_up_zram(Context &context, SwapArea &area)
{
	static constexpr const char *algorithms[] = {"lzo-rle", "lzo", "lz4"};
	const std::string sys = "/sys/block/zram0/";
	if (write_text(sys + "reset", "1") != 0)
		return false;
	write_text(sys + "comp_algorithm", context.choose(algorithms)); // not each is in each kernel
	if (write_text(sys + "disksize", std::to_string(area.bytes)) != 0)
		return false;
	// Beyond this its writes fail, as a disk's may.
	write_text(sys + "mem_limit", context.chance(2) ? "0" : "4M");
	return true;
}

void toggle(Context &context, SwapArea &area)
{
	if (area.on) {
		context.doing("swapoff");
		if (swapoff(area.path.c_str()) == 0) {
			area.on = false;
			context.board.swapoffs.fetch_add(1);
		} else if (!short_of_memory(errno)) {
			throw WorkloadError(fmt::format("swapoff {}: {}", area.path, std::strerror(errno)));
		}
		return;
	}
	context.doing("swapon");
	if (area.zram && !set_up_zram(context, area))
		return;
	// Not always all of it.
	const std::uint64_t bytes = area.bytes - (context.chance(3) ? context.random.below(area.bytes / 2) : 0);
	if (!write_header(area, bytes & ~std::uint64_t{4095}))
		return;
	static constexpr int priorities[] = {-1, 0, 1, 5, 5, 100, 32767};
	const int priority = context.choose(priorities);
	int flags = priority < 0 ? 0 : SWAP_FLAG_PREFER | (priority << SWAP_FLAG_PRIO_SHIFT & SWAP_FLAG_PRIO_MASK);
	if (context.chance(3))
		flags |= SWAP_FLAG_DISCARD;
	if (swapon(area.path.c_str(), flags) == 0)
		area.on = true;
	else if (!short_of_memory(errno) && errno != EIO && errno != EINVAL) // EINVAL: its header could not be read
		throw WorkloadError(fmt::format("swapon {}: {}", area.path, std::strerror(errno)));
}

// ---- groups ------------------------------------------------------------------

std::string group_path(unsigned number)
{
	return fmt::format("{}/made-{}", cgroup_root, number);
}

// A child that lives in a group that may be killed at any moment.
pid_t start_expendable(Context &context, const std::string &group, std::uint64_t bytes, Kind kind)
{
	const std::uint64_t stream = context.random.next();
	const pid_t pid = fork();
	if (pid != 0)
		return pid;
	int status = 0;
	try {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "fire-victim");
		munlockall();
		write_text("/proc/self/oom_score_adj", "1000");
		if (const int error = write_text(group + "/cgroup.procs", "0"); error != 0)
			_exit(short_of_memory(error) || error == ENOENT || error == ENODEV ? 0 : 1);
		context.random = Random(stream);
		context.role = "victim";
		Arena arena(context, kind, bytes, 1, "");
		const std::uint64_t rounds = 20 + context.random.below(200);
		for (std::uint64_t i = 0; i < rounds && !context.stop(); ++i)
			arena.act(context, 0);
		arena.reap(context, 0, 0);
		arena.verify_all(context);
	} catch (const ReportedCorruption &) {
		status = 3;
	} catch (const WorkloadError &error) {
		// Its own children may be killed with it.
		if (std::strstr(error.what(), "died of signal 9")) {
			status = 0;
		} else {
			fire_say("failure", "victim", error.what());
			status = 1;
		}
	}
	_exit(status);
}

struct Group {
	std::string path;
	std::vector<pid_t> members;
};

void reap_members(Context &context, Group &group, bool wait)
{
	std::erase_if(group.members, [&](pid_t pid) {
		int status;
		if (waitpid(pid, &status, wait ? 0 : WNOHANG) != pid)
			return false;
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
			context.board.group_kills.fetch_add(1);
			return true;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return true;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
			throw ReportedCorruption();
		if (died_of_read_error(context.options, context.board, status))
			return true;
		throw WorkloadError(fmt::format("a process of a group ended with {} {}", WIFSIGNALED(status) ? "signal" : "status",
						WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
	});
}

void end_group(Context &context, Group &group)
{
	context.doing("ending a group");
	if (write_text(group.path + "/cgroup.kill", "1") != 0)
		for (const pid_t pid : group.members)
			kill(pid, SIGKILL);
	reap_members(context, group, true);
	// Grandchildren of the killed go when process 1 has seen them.
	for (int i = 0; rmdir(group.path.c_str()) != 0; ++i) {
		if (errno != EBUSY || i == 3000)
			throw WorkloadError(fmt::format("rmdir {}: {}", group.path, std::strerror(errno)));
		write_text(group.path + "/cgroup.kill", "1");
		context.step();
		usleep(10'000);
	}
}

void squeeze(Context &context, const std::string &path, std::uint64_t about)
{
	const auto size = [&] { return std::to_string((about / 4 + context.random.below(about)) & ~std::uint64_t{4095}); };
	switch (context.random.below(5)) {
	case 0:
	case 1:
		context.doing("memory.reclaim");
		// EAGAIN: less than that was reclaimed
		write_text(path + "/memory.reclaim", std::to_string(4096 * (1 + context.random.below(about / 4096 / 2))));
		break;
	case 2:
		context.doing("memory.high");
		write_text(path + "/memory.high", context.chance(2) ? "max" : size());
		break;
	case 3:
		context.doing("memory.zswap.max");
		write_text(path + "/memory.zswap.max", context.chance(2) ? "max" : "0");
		break;
	default:
		context.doing("memory.zswap.writeback");
		write_text(path + "/memory.zswap.writeback", context.chance(2) ? "1" : "0");
	}
}

} // namespace

SwitchValues switch_values(std::string_view name)
{
	if (name == "cluster_pages")
		return {{"2", "4", "8", "16", "32", "64", "128", "256"}, {"0", "1", "3", "512", "-1", "x"}, true};
	if (name == "async_queue")
		return {{"0", "1", "31", "32", "256", "1024", "4096"}, {"4097", "-1", "x"}, true};
	if (name == "in_flight_pages")
		return {{"0", "0", "1", "32", "256", "1024", "100000", "4294967295"}, {"-1", "x"}, true};
	for (const std::string_view known : {"async", "batch", "cluster", "cluster_referenced", "keep_neighbours", "keep_order", "second_chance"})
		if (name == known)
			return {{"0", "1"}, {"2", "x"}, true};
	return {{"0", "1"}, {}, false};
}

void fill_swap_header(unsigned char (&page)[4096], std::uint64_t bytes)
{
	// union swap_header of include/linux/swap.h
	std::memset(page, 0, sizeof page);
	const std::uint32_t version = 1;
	const auto last_page = std::uint32_t(bytes / sizeof page - 1);
	std::memcpy(page + 1024, &version, sizeof version);
	std::memcpy(page + 1028, &last_page, sizeof last_page);
	std::memcpy(page + sizeof page - 10, "SWAPSPACE2", 10);
}

void flip_switches(Context &context)
{
	const auto names = files_of(switch_folder);
	if (names.empty()) {
		fire_say("missing", context.role, "/sys/kernel/mm/pageout has no switches: a kernel without the series");
		return;
	}
	for (const auto &name : names)
		if (!switch_values(name).known)
			fire_say("unknown switch", context.role, name + " is set to 0 and 1 only");
	while (!context.stop()) {
		const auto &name = names[context.random.below(names.size())];
		const auto values = switch_values(name);
		const std::string path = switch_folder + name;
		context.doing("flipping a switch");
		const auto &value = values.good[context.random.below(values.good.size())];
		if (const int error = write_text(path, value); error != 0 && !short_of_memory(error) && values.known)
			throw WorkloadError(fmt::format("writing \"{}\" to {}: {}", value, path, std::strerror(error)));
		context.board.switched.fetch_add(1);
		if (!values.refused.empty() && context.chance(8)) {
			const auto &bad = values.refused[context.random.below(values.refused.size())];
			if (write_text(path, bad) == 0)
				throw WorkloadError(fmt::format("the kernel takes \"{}\" for {}", bad, path));
		}
		if (context.chance(4)) { // all the counters, which walk over CPUs that come and go
			std::string text;
			for (const auto &stat : {"clusters", "async_queued", "written_freed", "batches"})
				read_text(fmt::format("{}stats/{}", switch_folder, stat), text);
		}
		context.step();
		// In bursts, and then long enough to work in one state.
		context.rest(context.chance(3) ? context.random.below(2000) : context.random.below(60));
	}
}

void turn_vm(Context &context)
{
	struct Knob {
		std::string path;
		std::vector<std::string> values;
		unsigned rarity;
		std::string first = {}; // as it was
	};
	std::vector<Knob> knobs = {
		{"/sys/kernel/mm/lru_gen/enabled", {"0", "1", "3", "7"}, 4},
		{"/proc/sys/vm/page-cluster", {"0", "1", "3", "5", "8"}, 1},
		{"/proc/sys/vm/swappiness", {"1", "60", "100", "200"}, 1},
		{"/proc/sys/vm/compact_memory", {"1"}, 4},
		{"/proc/sys/vm/compaction_proactiveness", {"0", "20", "100"}, 4},
		{"/proc/sys/vm/drop_caches", {"1", "2", "3"}, 6},
		{"/proc/sys/vm/watermark_scale_factor", {"10", "100", "500"}, 3},
		{"/proc/sys/vm/vfs_cache_pressure", {"50", "100", "500"}, 6},
		{"/sys/module/zswap/parameters/enabled", {"0", "1"}, 3},
		{"/sys/module/zswap/parameters/max_pool_percent", {"1", "5", "20"}, 3},
		{"/sys/module/zswap/parameters/shrinker_enabled", {"0", "1"}, 4},
		{"/sys/module/zswap/parameters/compressor", {"lzo", "lz4"}, 8},
		{"/sys/kernel/mm/transparent_hugepage/enabled", {"always", "madvise", "never"}, 3},
		{"/sys/kernel/mm/transparent_hugepage/shmem_enabled", {"always", "advise", "never", "within_size"}, 3},
		{"/sys/kernel/mm/transparent_hugepage/defrag", {"always", "defer", "defer+madvise", "madvise", "never"}, 4},
		{"/sys/kernel/mm/transparent_hugepage/khugepaged/defrag", {"0", "1"}, 6},
		{"/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", {"10", "1000"}, 6},
		{"/sys/kernel/mm/swap/vma_ra_enabled", {"true", "false"}, 2},
		{"/sys/kernel/mm/ksm/run", {"0", "1", "2"}, 6},
	};
	// With more than one node an allocation may reclaim from its own first.
	if (memory_nodes() > 1)
		knobs.push_back({"/proc/sys/vm/zone_reclaim_mode", {"0", "0", "1", "7"}, 3});
	for (const auto &size : folders_of("/sys/kernel/mm/transparent_hugepage"))
		if (size.starts_with("hugepages-"))
			knobs.push_back({fmt::format("/sys/kernel/mm/transparent_hugepage/{}/enabled", size),
					 {"never", "never", "madvise", "inherit", "always"}, 3});
	std::string absent;
	std::erase_if(knobs, [&](const Knob &knob) {
		if (access(knob.path.c_str(), W_OK) == 0)
			return false;
		absent += (absent.empty() ? "" : ", ") + knob.path;
		return true;
	});
	if (!absent.empty())
		fire_say("missing", context.role, absent);
	for (auto &knob : knobs)
		if (read_text(knob.path, knob.first)) { // "always [madvise] never"
			if (const auto open = knob.first.find('['); open != std::string::npos)
				knob.first = knob.first.substr(open + 1, knob.first.find(']') - open - 1);
			while (!knob.first.empty() && knob.first.back() == '\n')
				knob.first.pop_back();
		}
	if (memory_nodes() == 1)
		fire_say("missing", context.role, "migration between nodes (move_pages): one node; compaction migrates instead");
	while (!context.stop()) {
		const auto &knob = knobs[context.random.below(knobs.size())];
		if (context.chance(knob.rarity)) {
			context.doing("turning a knob of the kernel's own");
			// A value that a kernel does not have (a compressor, a size) is refused, which is all right.
			write_text(knob.path, knob.values[context.random.below(knob.values.size())]);
		}
		context.step();
		context.rest(context.random.below(150));
	}
	// Some values make it slow to read everything back; what compacts or drops has nothing to read.
	for (const auto &knob : knobs)
		if (!knob.first.empty() && knob.path.find("drop_caches") == std::string::npos)
			write_text(knob.path, knob.first);
}

void turn_swap(Context &context)
{
	std::vector<SwapArea> areas;
	for (const auto &path : context.options.swaps)
		areas.push_back({path, device_bytes(path), false, false, false});
	for (const auto &directory : context.options.directories)
		for (int i = 0; i < 2; ++i) {
			SwapArea area{fmt::format("{}/fire-swap-{}", directory, i), std::uint64_t(12 + 8 * i) << 20, true, false, false};
			const int fd = open(area.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
			const bool made = fd >= 0 && fallocate(fd, 0, 0, off_t(area.bytes)) == 0 && fsync(fd) == 0;
			if (fd >= 0)
				close(fd);
			if (!made)
				throw WorkloadError(fmt::format("{}: {}", area.path, std::strerror(errno)));
			areas.push_back(area);
		}
	if (access("/sys/block/zram0", F_OK) == 0)
		areas.push_back({"/dev/zram0", 24 << 20, false, true, false});
	else
		fire_say("missing", context.role, "zram");
	if (access("/sys/module/zswap/parameters/enabled", F_OK) != 0)
		fire_say("missing", context.role, "zswap");
	std::erase_if(areas, [&](const SwapArea &area) {
		if (area.bytes >= 1 << 20)
			return false;
		throw WorkloadError(fmt::format("{} is no device of at least 1 MiB", area.path));
	});
	while (!context.stop() && !areas.empty()) {
		toggle(context, areas[context.random.below(areas.size())]);
		context.step();
		context.rest(context.random.below(4000));
	}
}

void break_disks(Context &context)
{
	const std::string folder = "/sys/kernel/debug/simdisk/";
	auto all = folders_of(folder);
	std::erase(all, "prog"); // the programs of this machine are on it
	if (all.empty()) {
		fire_say("missing", context.role, "simdisk: no failing writes, no stuck requests");
		return;
	}
	const auto &lossy = context.options.lossy;
	while (!context.stop()) {
		if (!lossy.empty() && context.chance(2)) {
			const auto &name = lossy[context.random.below(lossy.size())];
			const auto sectors = device_bytes("/dev/sim" + name) / 512;
			const auto first = context.random.below(sectors);
			const auto count = 1 + context.random.below(sectors - first);
			context.doing("failing writes or reads");
			static constexpr const char *kinds[] = {"read", "both", "write"};
			const std::string kind = context.options.read_errors ? context.choose(kinds) : "write";
			const auto text = context.chance(2) ? fmt::format("0 {} {}", sectors, kind) : fmt::format("{} {} {}", first, count, kind);
			if (const int error = write_text(folder + name + "/fail", text); error != 0)
				throw WorkloadError(fmt::format("\"{}\" to {}{}/fail: {}", text, folder, name, std::strerror(error)));
			(kind == "read" ? context.board.read_errors : context.board.write_errors).fetch_add(1);
			if (kind == "both")
				context.board.read_errors.fetch_add(1);
			context.rest(100 + context.random.below(3000));
			write_text(folder + name + "/fail", "off");
		} else {
			const auto &name = all[context.random.below(all.size())];
			context.doing("sticking requests");
			// The disk ends it by itself: this process may come to wait for what it holds, for its own
			// pages migrate and are reclaimed as all others' are.
			const auto count = 1 + context.random.below(64);
			const auto ms = 200 + context.random.below(5000);
			const auto text = fmt::format("{} {}", count, ms);
			if (const int error = write_text(folder + name + "/stick", text); error != 0)
				throw WorkloadError(fmt::format("\"{}\" to {}{}/stick: {}", text, folder, name, std::strerror(error)));
			context.board.stuck.fetch_add(1);
			context.rest(ms);
			write_text(folder + name + "/stick", "0");
		}
		context.step();
		context.rest(context.random.below(3000));
	}
	for (const auto &name : all) {
		write_text(folder + name + "/fail", "off");
		write_text(folder + name + "/stick", "0");
	}
}

void run_groups(Context &context)
{
	std::string text;
	if (!read_text(fmt::format("{}/cgroup.controllers", cgroup_root), text) || text.find("memory") == std::string::npos) {
		fire_say("missing", context.role, "memory cgroups");
		return;
	}
	std::vector<Group> groups;
	unsigned number = 0;
	while (!context.stop()) {
		const auto what = context.random.below(10);
		if (groups.size() < 3 && what < 4) {
			context.doing("making a group");
			Group group{group_path(number++), {}};
			if (mkdir(group.path.c_str(), 0755) != 0) {
				if (!short_of_memory(errno))
					throw WorkloadError(fmt::format("mkdir {}: {}", group.path, std::strerror(errno)));
				continue;
			}
			const std::uint64_t bytes = (2 + context.random.below(10)) << 20;
			// From ample to less than its processes need: then one of them is killed.
			const std::uint64_t limit = bytes / 4 + context.random.below(2 * bytes);
			write_text(group.path + "/memory.max", std::to_string(limit & ~std::uint64_t{4095}));
			if (context.chance(3))
				write_text(group.path + "/memory.swap.max", std::to_string(context.random.below(bytes) & ~std::uint64_t{4095}));
			if (context.chance(3))
				write_text(group.path + "/memory.oom.group", "1");
			static constexpr Kind kinds[] = {Kind::anon, Kind::anon, Kind::thp, Kind::shmem};
			for (std::uint64_t i = 1 + context.random.below(2); i > 0; --i) {
				const pid_t pid = start_expendable(context, group.path, bytes, context.choose(kinds));
				if (pid > 0)
					group.members.push_back(pid);
				else if (!short_of_memory(errno))
					throw WorkloadError(fmt::format("fork: {}", std::strerror(errno)));
			}
			groups.push_back(std::move(group));
		} else if (!groups.empty() && what < 6) {
			const auto at = context.random.below(groups.size());
			end_group(context, groups[at]);
			groups.erase(groups.begin() + std::ptrdiff_t(at));
		} else if (!groups.empty() && what < 8) {
			squeeze(context, groups[context.random.below(groups.size())].path, 4 << 20);
		} else if (!groups.empty() && what < 9) {
			context.doing("memory.max");
			const auto &path = groups[context.random.below(groups.size())].path;
			// A limit below what is used reclaims, and kills where that does not help.
			write_text(path + "/memory.max", std::to_string((1 + context.random.below(12)) << 20));
		} else {
			const auto living = folders_of(std::string(cgroup_root) + "/");
			std::vector<std::string> workers;
			for (const auto &name : living)
				if (name.starts_with("worker-"))
					workers.push_back(name);
			if (!workers.empty())
				squeeze(context, fmt::format("{}/{}", cgroup_root, workers[context.random.below(workers.size())]), 24 << 20);
		}
		for (auto &group : groups)
			reap_members(context, group, false);
		context.step();
		context.rest(context.random.below(1500));
	}
	for (auto &group : groups)
		end_group(context, group);
	for (const auto &name : folders_of(std::string(cgroup_root) + "/"))
		if (name.starts_with("worker-"))
			for (const auto *file : {"memory.high", "memory.zswap.max"})
				write_text(fmt::format("{}/{}/{}", cgroup_root, name, file), "max");
}

namespace {

// The scheduler of 6.12.117 warns "Dying CPU not properly vacated!" (sched_cpu_dying()) of a CPU
// whose fair server runs as the CPU goes: the server, which is no task, is counted in
// nr_running (inc_dl_tasks()), and is stopped only after the check. It runs where fair
// tasks have starved for half a second, as they do on a busy host. A server without any
// runtime is never started (dl_server_start()), so the check means something again.
class FairServers {
public:
	explicit FairServers(std::uint64_t cpus) : cpus_(cpus)
	{
		cpu_set_t all;
		sched_getaffinity(0, sizeof all, &all);
		for (std::uint64_t cpu = 0; cpu < cpus_; ++cpu) {
			// On that CPU, whose server is started then, as a fair task runs there: to stop
			// one that had stopped already is warned of (task_non_contending()).
			cpu_set_t there;
			CPU_ZERO(&there);
			CPU_SET(cpu, &there);
			sched_setaffinity(0, sizeof there, &there);
			if (const int error = write_text(path(cpu), "0"); error != 0)
				throw WorkloadError(fmt::format("{}: {}", path(cpu), std::strerror(error)));
		}
		sched_setaffinity(0, sizeof all, &all);
	}
	// With all CPUs up again: the kernel's own 50 ms of each second. A server without runtime is not stopped again.
	~FairServers()
	{
		for (std::uint64_t cpu = 0; cpu < cpus_; ++cpu)
			write_text(path(cpu), "50000000");
	}
	FairServers(const FairServers &) = delete;
	FairServers &operator=(const FairServers &) = delete;

	static std::string path(std::uint64_t cpu) { return fmt::format("/sys/kernel/debug/sched/fair_server/cpu{}/runtime", cpu); }

private:
	std::uint64_t cpus_;
};

} // namespace

void plug_cpus(Context &context)
{
	const auto path = [](std::uint64_t cpu) { return fmt::format("/sys/devices/system/cpu/cpu{}/online", cpu); };
	std::uint64_t cpus = 1; // the first one stays
	while (access(path(cpus).c_str(), W_OK) == 0)
		++cpus;
	if (cpus == 1) {
		fire_say("missing", context.role, "a second CPU, or CONFIG_HOTPLUG_CPU");
		return;
	}
	if (access(FairServers::path(0).c_str(), W_OK) != 0) {
		fire_say("missing", context.role, fmt::format("{} (CONFIG_SCHED_DEBUG): the CPUs stay up", FairServers::path(0)));
		return;
	}
	const FairServers stopped(cpus);
	while (!context.stop()) {
		const auto cpu = 1 + context.random.below(cpus - 1);
		const bool on = context.chance(2);
		context.doing(on ? "bringing a CPU up" : "taking a CPU down");
		const int error = write_text(path(cpu), on ? "1" : "0");
		// EINVAL: it is so already
		if (error != 0 && !short_of_memory(error) && error != EINVAL)
			throw WorkloadError(fmt::format("writing {} to {}: {}", on, path(cpu), std::strerror(error)));
		if (!on && error == 0)
			context.board.unplugged.fetch_add(1);
		context.step();
		context.rest(200 + context.random.below(4000));
	}
	for (std::uint64_t cpu = 1; cpu < cpus; ++cpu)
		for (int i = 0; i < 100; ++i) {
			const int error = write_text(path(cpu), "1");
			if (error == 0 || error == EINVAL)
				break;
			usleep(50'000);
		}
}

void fail_allocations(Context &context)
{
	std::vector<std::string> folders;
	for (const auto *name : {"failslab", "fail_page_alloc"}) {
		const auto folder = fmt::format("/sys/kernel/debug/{}/", name);
		if (access((folder + "probability").c_str(), W_OK) == 0)
			folders.push_back(folder);
		else
			fire_say("missing", context.role, name);
	}
	// Not of vmap_area: a new chunk of per-CPU memory takes one that cannot wait (va_clip()), and
	// the kernel warns when it gets none. Each cache has to be named, then; those that
	// are merged with others cannot be (slab_nomerge).
	const std::string slab = "/sys/kernel/debug/failslab/", caches = "/sys/kernel/slab/";
	for (const auto &name : folders_of(caches))
		if (name != "vmap_area")
			write_text(caches + name + "/failslab", "1");
	write_text(slab + "cache-filter", "Y");
	const auto off = [&] {
		for (const auto &folder : folders)
			write_text(folder + "probability", "0");
	};
	while (!context.stop() && !folders.empty()) {
		context.doing("making allocations fail");
		const auto &folder = folders[context.random.below(folders.size())];
		const bool page = folder.find("page_alloc") != std::string::npos;
		// Of all tasks only those that cannot wait, which everything has to survive;
		// all of them for the workers that have said that they do.
		const bool aimed = context.chance(2);
		write_text(folder + "verbose", "0");
		write_text(folder + "interval", "1");
		write_text(folder + "space", "0");
		write_text(folder + "task-filter", aimed ? "Y" : "N");
		write_text(folder + "ignore-gfp-wait", aimed ? "N" : "Y");
		if (page)
			write_text(folder + "min-order", "0");
		write_text(folder + "times", std::to_string(50 + context.random.below(2000)));
		write_text(folder + "probability", std::to_string(1 + context.random.below(aimed ? 5 : 20)));
		context.step();
		context.rest(200 + context.random.below(3000));
		off();
		context.rest(context.random.below(3000));
	}
	off();
}

} // namespace pageout::load
