// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace pageout::bench {

/// An owned file descriptor.
class Fd {
public:
	Fd() = default;
	explicit Fd(int fd) noexcept : fd_(fd) {}
	Fd(Fd&& other) noexcept : fd_(other.release()) {}
	Fd& operator=(Fd&& other) noexcept;
	~Fd() { reset(); }
	int get() const noexcept { return fd_; }
	int release() noexcept;
	void reset() noexcept;
	explicit operator bool() const noexcept { return fd_ >= 0; }

private:
	int fd_ = -1;
};

/// The guest's memory as a file of the host: file offset = guest-physical address. The file has no name from its first
/// moment on, so that however we end, even by SIGKILL, nothing of it stays. It is sparse: what nobody touches costs nothing.
class GuestMemory {
public:
	/// In /dev/shm where that has room for `needed_bytes` (what is likely to be touched), else in TMPDIR.
	/// Throws Error naming both where neither has.
	GuestMemory(std::uint64_t total_bytes, std::uint64_t needed_bytes);
	~GuestMemory();
	GuestMemory(const GuestMemory&) = delete;
	GuestMemory& operator=(const GuestMemory&) = delete;

	int fd() const noexcept { return fd_.get(); }
	const std::filesystem::path& folder() const noexcept { return folder_; }
	std::span<const std::byte> bytes(std::uint64_t offset, std::uint64_t length) const;
	void write(std::uint64_t offset, std::span<const std::byte> data);
	/// Copies a file in, its holes left holes.
	void write_file(std::uint64_t offset, const std::filesystem::path& file, std::uint64_t limit_bytes);

private:
	Fd fd_;
	std::filesystem::path folder_;
	std::byte* map_ = nullptr;
	std::uint64_t total_bytes_;
};

} // namespace pageout::bench
