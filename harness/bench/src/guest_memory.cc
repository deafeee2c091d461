// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/guest_memory.h"

#include "pageout/bench/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace pageout::bench {

namespace fs = std::filesystem;

Fd& Fd::operator=(Fd&& other) noexcept
{
	if (this != &other) {
		reset();
		fd_ = other.release();
	}
	return *this;
}

int Fd::release() noexcept
{
	return std::exchange(fd_, -1);
}

void Fd::reset() noexcept
{
	if (fd_ >= 0)
		::close(std::exchange(fd_, -1));
}

namespace {

std::uint64_t free_bytes(const fs::path& folder)
{
	struct statvfs info;
	if (::statvfs(folder.c_str(), &info) != 0)
		return 0;
	return std::uint64_t{info.f_bavail} * info.f_frsize;
}

/// A file without a name. The fallback has one for an instant: not every file system knows O_TMPFILE.
Fd open_nameless(const fs::path& folder)
{
	Fd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	if (fd || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd;
	std::string name = (folder / "pageout-memory-XXXXXX").string();
	Fd named(::mkostemp(name.data(), O_CLOEXEC));
	if (named)
		::unlink(name.c_str());
	return named;
}

} // namespace

GuestMemory::GuestMemory(std::uint64_t total_bytes, std::uint64_t needed_bytes) : total_bytes_(total_bytes)
{
	const char* tmpdir = std::getenv("TMPDIR");
	std::string tried;

	for (const fs::path& folder : {fs::path("/dev/shm"), fs::path(tmpdir && *tmpdir ? tmpdir : "/tmp")}) {
		const std::uint64_t free = free_bytes(folder);
		if (free < needed_bytes) {
			tried += fmt::format("\n  {} has {} MiB free", folder.string(), free >> 20);
			continue;
		}
		fd_ = open_nameless(folder);
		if (!fd_) {
			tried += fmt::format("\n  {}: {}", folder.string(), std::strerror(errno));
			continue;
		}
		folder_ = folder;
		break;
	}
	if (!fd_)
		throw Error(fmt::format("no place for {} MiB of guest memory:{}\n  remedy: free some space, or set TMPDIR to a folder that has it",
					needed_bytes >> 20, tried));
	if (::ftruncate(fd_.get(), static_cast<off_t>(total_bytes)) != 0)
		throw Error(fmt::format("{}: cannot make a file of {} bytes: {}", folder_.string(), total_bytes, std::strerror(errno)));
	void* map = ::mmap(nullptr, total_bytes, PROT_READ, MAP_SHARED, fd_.get(), 0);
	if (map == MAP_FAILED)
		throw Error(fmt::format("cannot map {} bytes of guest memory: {}", total_bytes, std::strerror(errno)));
	map_ = static_cast<std::byte*>(map);
}

GuestMemory::~GuestMemory()
{
	if (map_)
		::munmap(map_, total_bytes_);
}

std::span<const std::byte> GuestMemory::bytes(std::uint64_t offset, std::uint64_t length) const
{
	if (offset > total_bytes_ || length > total_bytes_ - offset)
		throw Error(fmt::format("guest memory ends at {:#x}: there are no {} bytes at {:#x}", total_bytes_, length, offset));
	return {map_ + offset, length};
}

void GuestMemory::write(std::uint64_t offset, std::span<const std::byte> data)
{
	(void)bytes(offset, data.size());
	while (!data.empty()) {
		const ssize_t n = ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			throw Error(fmt::format("cannot write guest memory in {}: {}", folder_.string(), std::strerror(errno)));
		data = data.subspan(static_cast<std::size_t>(n));
		offset += static_cast<std::uint64_t>(n);
	}
}

void GuestMemory::write_file(std::uint64_t offset, const fs::path& file, std::uint64_t limit_bytes)
{
	Fd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
	struct stat info;
	if (!in || ::fstat(in.get(), &info) != 0)
		throw Error(fmt::format("{}: cannot read: {}", file.string(), std::strerror(errno)));
	if (static_cast<std::uint64_t>(info.st_size) > limit_bytes)
		throw Error(fmt::format("{}: {} bytes and room for {}: it changed while it was used; run again", file.string(), info.st_size,
					limit_bytes));

	std::vector<std::byte> buffer(1 << 20);
	for (off_t at = 0; at < info.st_size;) {
		const off_t data = ::lseek(in.get(), at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			return;
		off_t hole = data < 0 ? info.st_size : ::lseek(in.get(), data, SEEK_HOLE);
		if (hole < 0)
			hole = info.st_size;
		for (at = std::max<off_t>(data, at); at < hole;) {
			const auto want = std::min<std::uint64_t>(buffer.size(), static_cast<std::uint64_t>(hole - at));
			const ssize_t n = ::pread(in.get(), buffer.data(), want, at);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				throw Error(fmt::format("{}: cannot read at byte {}: {}", file.string(), at,
							n ? std::strerror(errno) : "the file became shorter"));
			write(offset + static_cast<std::uint64_t>(at), std::span(buffer).first(static_cast<std::size_t>(n)));
			at += n;
		}
	}
}

} // namespace pageout::bench
