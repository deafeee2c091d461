// SPDX-License-Identifier: GPL-2.0-only
//
// Exact percentiles of any number of samples in bounded memory.
//
// A series keeps its samples in chunks. All series of one reading share a budget of memory; past it, full chunks go to a
// temporary file that has no name, each with the place of the series' chunk before it, so that memory does not grow with the
// number of samples. Percentiles are found by radix selection: a scan over the chunks for every 16 bits of a sample. Should the
// file fail (no space, no directory), the series falls back to buckets a 1/1024th of their value wide and says so.
#ifndef TALLY_SAMPLES_H
#define TALLY_SAMPLES_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pageout/tally.h"
#include "source.h"

namespace pageout::tally {

class SamplePool {
public:
    explicit SamplePool(std::size_t budget_bytes) : budget_(budget_bytes) {}

    // Room for that much more in memory?
    bool take(std::size_t bytes)
    {
        if (used_ + bytes > budget_)
            return false;
        used_ += bytes;
        return true;
    }
    // Writes a chunk to the temporary file and sets its place; false when that failed, now or before.
    bool spill(std::uint64_t previous, std::span<const std::byte> values, std::uint64_t& place);
    // Reads a chunk back, with the place of the one before it.
    bool fetch(std::uint64_t place, std::span<std::byte> values, std::uint64_t& previous) const;
    std::uint64_t spilled_bytes() const { return end_; }
    bool failed() const { return failed_; }

private:
    bool open();

    std::size_t budget_;
    std::size_t used_ = 0;
    Fd file_;
    std::uint64_t end_ = 0;
    bool failed_ = false;
};

template <class T>
class Chunks {
public:
    static constexpr std::size_t chunk_values = 1024;

    // False when the value could not be kept.
    bool add(SamplePool& pool, T value)
    {
        if (fill_ == room_) [[unlikely]] {
            if (!next(pool))
                return false;
        }
        current_[fill_++] = value;
        return true;
    }

    std::uint64_t size() const { return (full_.size() + spilled_) * chunk_values + fill_; }

    // Calls f with every span of values; false when some could not be read back.
    template <class F>
    bool for_each(const SamplePool& pool, F&& f) const
    {
        if (fill_)
            f(std::span<const T>(current_.get(), fill_));
        for (const auto& c : full_)
            f(std::span<const T>(c.get(), chunk_values));
        if (last_ == nowhere)
            return true;
        std::vector<T> buffer(chunk_values);
        for (std::uint64_t place = last_; place != nowhere;) {
            std::uint64_t previous;
            if (!pool.fetch(place, std::as_writable_bytes(std::span<T>(buffer)), previous))
                return false;
            f(std::span<const T>(buffer));
            place = previous;
        }
        return true;
    }

private:
    static constexpr std::uint64_t nowhere = UINT64_MAX;

    bool next(SamplePool& pool)
    {
        constexpr std::size_t bytes = chunk_values * sizeof(T);
        if (room_ < chunk_values) {
            // The first chunk of a series grows as it must, and is outside the budget: there are few series.
            const std::size_t larger = room_ ? std::min(room_ * 4, chunk_values) : 16;
            auto grown = std::make_unique_for_overwrite<T[]>(larger);
            std::copy_n(current_.get(), fill_, grown.get());
            current_ = std::move(grown);
            room_ = larger;
            return true;
        }
        if (last_ == nowhere && pool.take(bytes)) {
            full_.push_back(std::move(current_));
            current_ = std::make_unique_for_overwrite<T[]>(chunk_values);
        } else {
            std::uint64_t place;
            if (!pool.spill(last_, std::as_bytes(std::span<const T>(current_.get(), chunk_values)), place))
                return false;
            last_ = place;
            ++spilled_;
        }
        fill_ = 0;
        return true;
    }

    std::vector<std::unique_ptr<T[]>> full_;
    std::unique_ptr<T[]> current_;
    std::size_t fill_ = 0, room_ = 0;
    std::uint64_t last_ = nowhere;  // place of the chunk spilled last
    std::uint64_t spilled_ = 0;
};

// Buckets of a 1/1024th of their value: exact below 2048.
namespace buckets {
inline constexpr std::size_t count = 2048 + 53 * 1024;
std::size_t of(std::uint64_t value);
std::uint64_t largest_in(std::size_t bucket);
}  // namespace buckets

class Series {
public:
    void add(SamplePool& pool, std::uint64_t value)
    {
        const bool kept = value <= UINT32_MAX ? small_.add(pool, static_cast<std::uint32_t>(value)) : large_.add(pool, value);
        if (!kept) [[unlikely]]
            add_to_bucket(value);
    }

    // The percentiles of several series of one pool together.
    static Latency latency(std::span<const Series* const> series, const SamplePool& pool);

private:
    void add_to_bucket(std::uint64_t value);

    Chunks<std::uint32_t> small_;  // below 2^32 ns, 4.3 s
    Chunks<std::uint64_t> large_;
    std::unique_ptr<std::vector<std::uint64_t>> buckets_;  // what could not be kept
};

}  // namespace pageout::tally

#endif
