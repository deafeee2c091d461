// SPDX-License-Identifier: GPL-2.0-only
//
// Where bytes come from: a descriptor or memory, plain, gzip or zstd.
#ifndef TALLY_SOURCE_H
#define TALLY_SOURCE_H

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace pageout::tally {

class Source {
public:
    virtual ~Source() = default;
    // Fills as much of `to` as it can; less than all of it only at the end or after an error. Returns the bytes written.
    virtual std::size_t read(std::span<std::byte> to) = 0;
    // Why reading ended before the end of the data; empty when it did not.
    const std::string& error() const { return error_; }

protected:
    std::string error_;
};

// A descriptor that is closed when it goes.
class Fd {
public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    Fd(Fd&& o) noexcept : fd_(o.fd_) { o.fd_ = -1; }
    Fd& operator=(Fd&& o) noexcept;
    ~Fd();
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_;
};

// Do data that begin like this need a decompressor?
bool is_packed(std::span<const std::byte> head);

std::unique_ptr<Source> source_from_fd(Fd fd);
std::unique_ptr<Source> source_from_memory(std::span<const std::byte> data);
// Looks at the first bytes and, when they are gzip's or zstd's, puts the decompressor before it.
std::unique_ptr<Source> decompressed(std::unique_ptr<Source> raw);

}  // namespace pageout::tally

#endif
