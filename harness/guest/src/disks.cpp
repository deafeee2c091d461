// SPDX-License-Identifier: GPL-2.0-only
#include "disks.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include "child.h"
#include "system.h"

namespace pageout::guest {
namespace {

void make_swap(const std::string &device, const job::Disk &disk, std::uint64_t index)
{
	alignas(4096) const auto header = swap_header(disk.bytes, index);
	{
		// Past the page cache, which would keep the page.
		const auto fd = open_file(device, O_WRONLY | O_DIRECT);
		if (pwrite(fd.get(), header.data(), header.size(), 0) != ssize_t(header.size()))
			fail_errno("cannot write the swap header of " + device);
	}
	int flags = 0;
	if (disk.priority >= 0)
		flags = SWAP_FLAG_PREFER | ((disk.priority << SWAP_FLAG_PRIO_SHIFT) & SWAP_FLAG_PRIO_MASK);
	if (swapon(device.c_str(), flags) != 0)
		fail_errno("cannot swap on " + device);
}

void make_ext4(const std::string &device, const job::Disk &disk, std::uint64_t index)
{
	char uuid[40];
	snprintf(uuid, sizeof uuid, "70616765-6f75-4074-8000-%012llx", static_cast<unsigned long long>(index));
	Child mke2fs({{"mke2fs", "-q", "-F", "-t", "ext4", "-U", uuid, "-E",
		       "lazy_itable_init=0,lazy_journal_init=0,nodiscard,hash_seed=" + std::string(uuid), device},
		      {{"MKE2FS_SYNC", "0"}},
		      0,
		      -1000});
	std::string said;
	for (bool out = true, err = true; out || err;) {
		pollfd fds[] = {{mke2fs.out(), POLLIN, 0}, {mke2fs.err(), POLLIN, 0}};
		poll(fds, 2, -1);
		for (auto &fd : fds) {
			char buffer[512];
			if (!fd.revents)
				continue;
			const ssize_t n = read(fd.fd, buffer, sizeof buffer);
			if (n > 0) {
				said.append(buffer, std::size_t(n));
			} else if (fd.fd == mke2fs.out()) {
				mke2fs.close_out();
				out = false;
			} else {
				mke2fs.close_err();
				err = false;
			}
		}
	}
	while (!mke2fs.try_reap())
		poll(nullptr, 0, 1);
	if (mke2fs.exit_code() != 0 || mke2fs.term_signal() != 0)
		fail("mke2fs " + device + " failed: " + said);
	const std::string target = "/mnt/" + disk.name;
	if (mkdir(target.c_str(), 0755) != 0)
		fail_errno("cannot make " + target);
	mount_on(device, target, "ext4", 0, "");
}

} // namespace

std::array<std::byte, 4096> swap_header(std::uint64_t bytes, std::uint64_t uuid_low)
{
	// union swap_header of include/linux/swap.h: 1024 bytes for a boot
	// block, then version, last page, bad pages, UUID, label.
	std::array<std::byte, 4096> page{};
	const std::uint32_t version = 1;
	const auto last_page = std::uint32_t(bytes / page.size() - 1);
	constexpr char label[] = "pageout";
	std::memcpy(page.data() + 1024, &version, sizeof version);
	std::memcpy(page.data() + 1028, &last_page, sizeof last_page);
	std::memcpy(page.data() + 1036, "pageout", 7);
	std::memcpy(page.data() + 1036 + 8, &uuid_low, sizeof uuid_low);
	std::memcpy(page.data() + 1052, label, sizeof label - 1);
	std::memcpy(page.data() + page.size() - 10, "SWAPSPACE2", 10);
	return page;
}

void bring_up(const job::Disk &disk, std::uint64_t index)
{
	const std::string device = "/dev/sim" + disk.name;
	write_file("/sys/module/simdisk/parameters/add", disk.add_line(), "disk " + disk.name);
	struct stat status;
	if (stat(device.c_str(), &status) != 0)
		fail_errno("disk " + disk.name + " was added, but there is no " + device);
	if (!disk.scheduler.empty())
		write_file("/sys/block/sim" + disk.name + "/queue/scheduler", disk.scheduler, "scheduler of disk " + disk.name);
	switch (disk.role) {
	case job::Role::swap:
		make_swap(device, disk, index);
		break;
	case job::Role::ext4:
		make_ext4(device, disk, index);
		break;
	case job::Role::raw:
		break;
	}
}

std::uint64_t in_flight(const std::string &disk)
{
	const auto text = read_file("/sys/block/sim" + disk + "/inflight");
	char *rest = nullptr;
	const auto reads = std::strtoull(text.c_str(), &rest, 10);
	return reads + std::strtoull(rest, nullptr, 10);
}

} // namespace pageout::guest
