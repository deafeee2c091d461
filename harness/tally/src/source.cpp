// SPDX-License-Identifier: GPL-2.0-only
#include "source.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <vector>
#include <zlib.h>
#include <zstd.h>

namespace pageout::tally {

Fd& Fd::operator=(Fd&& o) noexcept
{
    if (this != &o) {
        if (fd_ >= 0)
            ::close(fd_);
        fd_ = o.fd_;
        o.fd_ = -1;
    }
    return *this;
}

Fd::~Fd()
{
    if (fd_ >= 0)
        ::close(fd_);
}

namespace {

class FdSource final : public Source {
public:
    explicit FdSource(Fd fd) : fd_(std::move(fd)) { (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL); }

    std::size_t read(std::span<std::byte> to) override
    {
        std::size_t got = 0;
        while (got < to.size()) {
            const ssize_t n = ::read(fd_.get(), to.data() + got, to.size() - got);
            if (n > 0) {
                got += static_cast<std::size_t>(n);
            } else if (n == 0) {
                break;
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                // Somebody before us made the descriptor non-blocking: wait as if it were not.
                pollfd p{fd_.get(), POLLIN, 0};
                (void)::poll(&p, 1, -1);
            } else if (errno != EINTR) {
                error_ = std::strerror(errno);
                break;
            }
        }
        return got;
    }

private:
    Fd fd_;
};

class MemorySource final : public Source {
public:
    explicit MemorySource(std::span<const std::byte> data) : rest_(data) {}

    std::size_t read(std::span<std::byte> to) override
    {
        const std::size_t n = std::min(to.size(), rest_.size());
        if (n)
            std::memcpy(to.data(), rest_.data(), n);
        rest_ = rest_.subspan(n);
        return n;
    }

private:
    std::span<const std::byte> rest_;
};

constexpr std::size_t packed_chunk = 64 * 1024;

// Bytes that were looked at, then the rest.
class PrefixSource final : public Source {
public:
    PrefixSource(std::vector<std::byte> prefix, std::unique_ptr<Source> rest)
        : prefix_(std::move(prefix)), rest_(std::move(rest))
    {
    }

    std::size_t read(std::span<std::byte> to) override
    {
        const std::size_t n = std::min(to.size(), prefix_.size() - used_);
        if (n) {
            std::memcpy(to.data(), prefix_.data() + used_, n);
            used_ += n;
        }
        if (n == to.size())
            return n;
        const std::size_t more = rest_->read(to.subspan(n));
        error_ = rest_->error();
        return n + more;
    }

private:
    std::vector<std::byte> prefix_;
    std::size_t used_ = 0;
    std::unique_ptr<Source> rest_;
};

class GzipSource final : public Source {
public:
    explicit GzipSource(std::unique_ptr<Source> raw) : raw_(std::move(raw)), in_(packed_chunk)
    {
        if (inflateInit2(&z_, 15 + 16) != Z_OK) {
            error_ = "zlib could not be started";
            ended_ = true;
        } else {
            started_ = true;
        }
    }
    GzipSource(const GzipSource&) = delete;
    GzipSource& operator=(const GzipSource&) = delete;
    ~GzipSource() override
    {
        if (started_)
            inflateEnd(&z_);
    }

    std::size_t read(std::span<std::byte> to) override
    {
        std::size_t got = 0;
        while (got < to.size() && !ended_) {
            if (z_.avail_in == 0 && !refill())
                break;
            const std::size_t room = std::min<std::size_t>(to.size() - got, 1u << 30);
            z_.next_out = reinterpret_cast<Bytef*>(to.data() + got);
            z_.avail_out = static_cast<uInt>(room);
            const int rc = inflate(&z_, Z_NO_FLUSH);
            got += room - z_.avail_out;
            if (rc == Z_STREAM_END) {
                member_open_ = false;
                // gzip files may follow one another; anything else after the end is not ours.
                if (z_.avail_in == 0 && !refill())
                    break;
                inflateReset(&z_);
                member_open_ = true;
            } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
                error_ = std::string("the gzip data is damaged (") + (z_.msg ? z_.msg : "unknown reason") + ")";
                ended_ = true;
            }
        }
        return got;
    }

private:
    bool refill()
    {
        const std::size_t n = raw_->read(in_);
        z_.next_in = reinterpret_cast<Bytef*>(in_.data());
        z_.avail_in = static_cast<uInt>(n);
        if (n)
            return true;
        ended_ = true;
        if (!raw_->error().empty())
            error_ = raw_->error();
        else if (member_open_)
            error_ = "the gzip data ends too early";
        return false;
    }

    std::unique_ptr<Source> raw_;
    std::vector<std::byte> in_;
    z_stream z_{};
    bool started_ = false;
    bool member_open_ = true;
    bool ended_ = false;
};

class ZstdSource final : public Source {
public:
    explicit ZstdSource(std::unique_ptr<Source> raw) : raw_(std::move(raw)), in_(packed_chunk), z_(ZSTD_createDStream())
    {
        if (!z_ || ZSTD_isError(ZSTD_initDStream(z_.get()))) {
            error_ = "zstd could not be started";
            ended_ = true;
        }
    }

    std::size_t read(std::span<std::byte> to) override
    {
        std::size_t got = 0;
        while (got < to.size() && !ended_) {
            if (buffer_.pos == buffer_.size && !refill()) {
                // What the decompressor still holds back comes out without further input.
                if (!drain(to, got))
                    break;
                continue;
            }
            if (!step(to, got))
                break;
        }
        return got;
    }

private:
    struct Free {
        void operator()(ZSTD_DStream* z) const { ZSTD_freeDStream(z); }
    };

    bool step(std::span<std::byte> to, std::size_t& got)
    {
        ZSTD_outBuffer out{to.data(), to.size(), got};
        const std::size_t rc = ZSTD_decompressStream(z_.get(), &out, &buffer_);
        got = out.pos;
        if (ZSTD_isError(rc)) {
            error_ = std::string("the zstd data is damaged (") + ZSTD_getErrorName(rc) + ")";
            ended_ = true;
            return false;
        }
        frame_open_ = rc != 0;
        return true;
    }

    bool drain(std::span<std::byte> to, std::size_t& got)
    {
        const std::size_t before = got;
        if (frame_open_ && error_.empty() && step(to, got) && got > before)
            return true;
        ended_ = true;
        if (frame_open_ && error_.empty())
            error_ = "the zstd data ends too early";
        return false;
    }

    bool refill()
    {
        const std::size_t n = raw_->read(in_);
        buffer_ = {in_.data(), n, 0};
        if (!n && !raw_->error().empty())
            error_ = raw_->error();
        return n != 0;
    }

    std::unique_ptr<Source> raw_;
    std::vector<std::byte> in_;
    std::unique_ptr<ZSTD_DStream, Free> z_;
    ZSTD_inBuffer buffer_{nullptr, 0, 0};
    bool frame_open_ = true;
    bool ended_ = false;
};

enum class Packing { none, gzip, zstd };

Packing packing_of(std::span<const std::byte> head)
{
    const auto starts = [&](std::initializer_list<unsigned> bytes) {
        return head.size() >= bytes.size() &&
               std::equal(bytes.begin(), bytes.end(), head.begin(), [](unsigned a, std::byte b) { return a == std::to_integer<unsigned>(b); });
    };
    if (starts({0x1f, 0x8b}))
        return Packing::gzip;
    if (starts({0x28, 0xb5, 0x2f, 0xfd}))
        return Packing::zstd;
    return Packing::none;
}

}  // namespace

bool is_packed(std::span<const std::byte> head) { return packing_of(head) != Packing::none; }

std::unique_ptr<Source> source_from_fd(Fd fd) { return std::make_unique<FdSource>(std::move(fd)); }

std::unique_ptr<Source> source_from_memory(std::span<const std::byte> data) { return std::make_unique<MemorySource>(data); }

std::unique_ptr<Source> decompressed(std::unique_ptr<Source> raw)
{
    std::vector<std::byte> head(4);
    const std::size_t n = raw->read(head);
    head.resize(n);
    const Packing packing = packing_of(head);
    auto whole = std::make_unique<PrefixSource>(std::move(head), std::move(raw));
    switch (packing) {
    case Packing::gzip: return std::make_unique<GzipSource>(std::move(whole));
    case Packing::zstd: return std::make_unique<ZstdSource>(std::move(whole));
    case Packing::none: break;
    }
    return whole;
}

}  // namespace pageout::tally
