// SPDX-License-Identifier: GPL-2.0-only
#include "samples.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/uio.h>
#include <unistd.h>

namespace pageout::tally {

bool SamplePool::open()
{
    const char* dir = std::getenv("TMPDIR");
    const std::string where = dir && *dir ? dir : "/tmp";
    int fd = ::open(where.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        // A file system without O_TMPFILE: make a name and take it away.
        std::string name = where + "/blktally.XXXXXX";
        fd = ::mkostemp(name.data(), O_CLOEXEC);
        if (fd >= 0)
            ::unlink(name.c_str());
    }
    file_ = Fd(fd);
    return fd >= 0;
}

bool SamplePool::spill(std::uint64_t previous, std::span<const std::byte> values, std::uint64_t& place)
{
    if (failed_ || (!file_ && !open())) {
        failed_ = true;
        return false;
    }
    std::byte head[sizeof previous];
    std::memcpy(head, &previous, sizeof head);
    const iovec parts[2] = {{head, sizeof head}, {const_cast<std::byte*>(values.data()), values.size()}};
    const std::size_t total = sizeof head + values.size();
    ssize_t n;
    do
        n = ::pwritev(file_.get(), parts, 2, static_cast<off_t>(end_));
    while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(total)) {
        failed_ = true;
        return false;
    }
    place = end_;
    end_ += total;
    return true;
}

bool SamplePool::fetch(std::uint64_t place, std::span<std::byte> values, std::uint64_t& previous) const
{
    std::byte head[sizeof previous];
    const iovec parts[2] = {{head, sizeof head}, {values.data(), values.size()}};
    ssize_t n;
    do
        n = ::preadv(file_.get(), parts, 2, static_cast<off_t>(place));
    while (n < 0 && errno == EINTR);
    std::memcpy(&previous, head, sizeof previous);
    return n == static_cast<ssize_t>(sizeof head + values.size());
}

namespace buckets {

std::size_t of(std::uint64_t value)
{
    if (value < 2048)
        return static_cast<std::size_t>(value);
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - 11;  // 1 to 53
    return 2048 + (shift - 1) * 1024 + static_cast<std::size_t>((value >> shift) & 1023);
}

std::uint64_t largest_in(std::size_t bucket)
{
    if (bucket < 2048)
        return bucket;
    const unsigned shift = static_cast<unsigned>((bucket - 2048) / 1024) + 1;
    const std::uint64_t mantissa = 1024 + (bucket - 2048) % 1024;
    return (mantissa << shift) | ((std::uint64_t{1} << shift) - 1);
}

}  // namespace buckets

void Series::add_to_bucket(std::uint64_t value)
{
    if (!buckets_)
        buckets_ = std::make_unique<std::vector<std::uint64_t>>(buckets::count);
    ++(*buckets_)[buckets::of(value)];
}

namespace {

constexpr std::size_t wanted = 4;  // p50, p90, p99, p99.9

// Nearest rank, from 0: the smallest value that at least that share of the samples does not exceed.
std::array<std::uint64_t, wanted> ranks_of(std::uint64_t n)
{
    const auto rank = [n](std::uint64_t per_mille) {
        const auto r = (static_cast<unsigned __int128>(n) * per_mille + 999) / 1000;
        return static_cast<std::uint64_t>(r) - 1;
    };
    return {rank(500), rank(900), rank(990), rank(999)};
}

// Radix selection: values of the given ranks among those that scan() shows, a digit of 16 bits a scan.
template <class T, class Scan>
bool select(std::span<const std::uint64_t> ranks, std::span<std::uint64_t> values, Scan&& scan)
{
    struct Target {
        std::uint64_t prefix, rank;
        std::size_t counter;
    };
    std::vector<Target> targets;
    for (const std::uint64_t r : ranks)
        targets.push_back({0, r, 0});
    for (int shift = static_cast<int>(sizeof(T)) * 8 - 16; shift >= 0; shift -= 16) {
        std::vector<std::uint64_t> prefixes;
        for (Target& t : targets) {
            const auto it = std::find(prefixes.begin(), prefixes.end(), t.prefix);
            t.counter = static_cast<std::size_t>(it - prefixes.begin());
            if (it == prefixes.end())
                prefixes.push_back(t.prefix);
        }
        std::vector<std::vector<std::uint64_t>> counters(prefixes.size(), std::vector<std::uint64_t>(65536));
        const bool top = shift == static_cast<int>(sizeof(T)) * 8 - 16;
        const bool ok = scan([&](std::span<const T> chunk) {
            for (const std::uint64_t v : chunk) {
                const std::uint64_t p = top ? 0 : v >> (shift + 16);
                for (std::size_t i = 0; i < prefixes.size(); ++i)
                    if (p == prefixes[i])
                        ++counters[i][(v >> shift) & 0xffff];
            }
        });
        if (!ok)
            return false;
        for (Target& t : targets) {
            const auto& c = counters[t.counter];
            std::size_t digit = 0;
            while (digit < 65535 && t.rank >= c[digit])
                t.rank -= c[digit++];
            t.prefix = (t.prefix << 16) | digit;
        }
    }
    for (std::size_t i = 0; i < targets.size(); ++i)
        values[i] = targets[i].prefix;
    return true;
}

}  // namespace

Latency Series::latency(std::span<const Series* const> series, const SamplePool& pool)
{
    Latency l;
    unsigned __int128 sum = 0;
    std::uint64_t low = UINT64_MAX, high = 0, small = 0, large = 0;
    const auto measure = [&](auto chunk) {
        for (const std::uint64_t v : chunk) {
            sum += v;
            low = std::min(low, v);
            high = std::max(high, v);
        }
    };
    const auto scan_small = [&](auto&& f) {
        bool ok = true;
        for (const Series* s : series)
            ok &= s->small_.for_each(pool, f);
        return ok;
    };
    const auto scan_large = [&](auto&& f) {
        bool ok = true;
        for (const Series* s : series)
            ok &= s->large_.for_each(pool, f);
        return ok;
    };
    bool whole = scan_small(measure);
    whole &= scan_large(measure);
    std::vector<std::uint64_t> merged;
    for (const Series* s : series) {
        small += s->small_.size();
        large += s->large_.size();
        if (s->buckets_) {
            if (merged.empty())
                merged.resize(buckets::count);
            for (std::size_t i = 0; i < buckets::count; ++i)
                if (const std::uint64_t n = (*s->buckets_)[i]) {
                    merged[i] += n;
                    sum += static_cast<unsigned __int128>(n) * buckets::largest_in(i);
                    low = std::min(low, buckets::largest_in(i));
                    high = std::max(high, buckets::largest_in(i));
                }
        }
    }

    std::array<std::uint64_t, wanted> value{};
    if (merged.empty() && whole) {
        l.samples = small + large;
        if (!l.samples)
            return l;
        const auto ranks = ranks_of(l.samples);
        if (l.samples <= 8 * Chunks<std::uint32_t>::chunk_values) {
            std::vector<std::uint64_t> all;
            all.reserve(l.samples);
            const auto gather = [&](auto chunk) { all.insert(all.end(), chunk.begin(), chunk.end()); };
            whole = scan_small(gather) && scan_large(gather) && all.size() == l.samples;
            if (whole) {
                std::sort(all.begin(), all.end());
                for (std::size_t i = 0; i < wanted; ++i)
                    value[i] = all[ranks[i]];
            }
        } else {
        std::size_t in_small = 0;
        while (in_small < wanted && ranks[in_small] < small)
            ++in_small;
        std::array<std::uint64_t, wanted> large_ranks{};
        for (std::size_t i = in_small; i < wanted; ++i)
            large_ranks[i] = ranks[i] - small;
        if (in_small)
            whole = select<std::uint32_t>(std::span(ranks).first(in_small), std::span(value).first(in_small), scan_small);
        if (whole && in_small < wanted)
            whole = select<std::uint64_t>(std::span(large_ranks).subspan(in_small), std::span(value).subspan(in_small), scan_large);
        }
    }
    if (!merged.empty() || !whole) {
        l.exact = false;
        merged.resize(buckets::count);
        const auto add = [&](auto chunk) {
            for (const std::uint64_t v : chunk)
                ++merged[buckets::of(v)];
        };
        scan_small(add);
        scan_large(add);
        for (const std::uint64_t n : merged)
            l.samples += n;
        if (!l.samples)
            return l;
        const auto ranks = ranks_of(l.samples);
        for (std::size_t i = 0; i < wanted; ++i) {
            std::uint64_t rank = ranks[i];
            std::size_t b = 0;
            while (b < buckets::count - 1 && rank >= merged[b])
                rank -= merged[b++];
            value[i] = std::min(buckets::largest_in(b), high);
        }
    }
    l.sum_ns = sum > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(sum);
    l.min_ns = low;
    l.max_ns = high;
    l.p50_ns = value[0];
    l.p90_ns = value[1];
    l.p99_ns = value[2];
    l.p999_ns = value[3];
    return l;
}

}  // namespace pageout::tally
