// SPDX-License-Identifier: GPL-2.0-only
//
// The life of each request of one device: bios arrive (Q), are split (X), get a request (G) or join one (M, F), requests join
// requests (M), are inserted (I), dispatched (D), perhaps requeued (R), and completed (C), whole or in parts. The trace names
// a request only by where it starts and how long it is, so that is how it is found again here, and a merge moves that place.
//
// What is remembered is what is in flight: bios not yet in a request, and requests with the bios they carry.
#ifndef TALLY_LIVES_H
#define TALLY_LIVES_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "samples.h"

namespace pageout::tally {

// Open addressing, linear probing, several entries for one key in the order they came.
class PlaceTable {
public:
    static constexpr std::uint32_t none = UINT32_MAX;

    PlaceTable() : entries_(initial), shift_(64 - initial_bits) {}

    std::size_t size() const { return size_; }

    void insert(std::uint64_t place, std::uint32_t value)
    {
        if ((size_ + 1) * 2 > entries_.size())
            grow();
        put(place, value);
        ++size_;
    }

    // The position of the first entry of this place whose value fits, or none.
    template <class Fits>
    std::size_t find(std::uint64_t place, Fits&& fits) const
    {
        for (std::size_t i = home(place); entries_[i].value != none; i = next(i))
            if (entries_[i].place == place && fits(entries_[i].value))
                return i;
        return missing;
    }
    static constexpr std::size_t missing = SIZE_MAX;

    std::uint32_t value(std::size_t position) const { return entries_[position].value; }

    void erase(std::size_t position)
    {
        // Close the gap with whatever may move back, so that no probe sequence is broken.
        std::size_t gap = position;
        for (std::size_t i = next(gap); entries_[i].value != none; i = next(i)) {
            const std::size_t wanted = home(entries_[i].place);
            if (((i - wanted) & (entries_.size() - 1)) >= ((i - gap) & (entries_.size() - 1))) {
                entries_[gap] = entries_[i];
                gap = i;
            }
        }
        entries_[gap].value = none;
        --size_;
    }

    template <class F>
    void for_each(F&& f) const
    {
        for (const Entry& e : entries_)
            if (e.value != none)
                f(e.value);
    }

private:
    static constexpr unsigned initial_bits = 6;
    static constexpr std::size_t initial = std::size_t{1} << initial_bits;

    struct Entry {
        std::uint64_t place = 0;
        std::uint32_t value = none;
    };

    // Neighbouring sectors must not be neighbouring slots: they come in runs.
    std::size_t home(std::uint64_t place) const { return (place * 0x9e3779b97f4a7c15u) >> shift_; }
    std::size_t next(std::size_t i) const { return (i + 1) & (entries_.size() - 1); }

    void put(std::uint64_t place, std::uint32_t value)
    {
        std::size_t i = home(place);
        while (entries_[i].value != none)
            i = next(i);
        entries_[i] = {place, value};
    }

    void grow()
    {
        std::vector<Entry> old(entries_.size() * 2);
        old.swap(entries_);
        --shift_;
        // From an empty slot round to itself: entries of one place keep their order.
        std::size_t start = 0;
        while (old[start].value != none)
            ++start;
        for (std::size_t n = 0; n < old.size(); ++n) {
            const Entry& e = old[(start + n) & (old.size() - 1)];
            if (e.value != none)
                put(e.place, e.value);
        }
    }

    std::vector<Entry> entries_;
    unsigned shift_;
    std::size_t size_ = 0;
};

// Numbered places for nodes, used again when free.
template <class T>
class Nodes {
public:
    std::uint32_t take()
    {
        ++live_;
        if (free_ != none) {
            const std::uint32_t n = free_;
            free_ = nodes_[n].next;
            return n;
        }
        nodes_.emplace_back();
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    void give(std::uint32_t n)
    {
        --live_;
        nodes_[n].next = free_;
        free_ = n;
    }
    T& operator[](std::uint32_t n) { return nodes_[n]; }
    const T& operator[](std::uint32_t n) const { return nodes_[n]; }
    std::size_t live() const { return live_; }

private:
    static constexpr std::uint32_t none = UINT32_MAX;
    std::vector<T> nodes_;
    std::uint32_t free_ = none;
    std::size_t live_ = 0;
};

enum LifeKind : std::uint8_t { life_read, life_write, life_discard, life_kinds };
enum Stage : std::uint8_t { q2g, q2m, g2i, i2d, d2c, q2c, stages };

class Lives {
public:
    explicit Lives(SamplePool& pool, std::size_t most_in_flight = 1u << 18) : pool_(&pool), most_(most_in_flight) {}

    // Sizes are in sectors; an event without sectors (an empty flush, a plug) has no place here.
    void queue(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    void split(LifeKind kind, std::uint64_t sector, std::uint32_t n);
    void getrq(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    void back_merge(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    void front_merge(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    void request_merge(LifeKind kind, std::uint64_t sector, std::uint32_t n);
    void insert(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    void dispatch(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    void requeue(LifeKind kind, std::uint64_t sector, std::uint32_t n);
    void complete_request(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    void complete_bio(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);

    const Series& series(LifeKind kind, Stage stage) const { return series_[kind][stage]; }
    std::uint64_t orphans(LifeKind kind) const { return orphans_[kind]; }
    // Bios still in flight (and requests without known bios).
    std::array<std::uint64_t, life_kinds> unfinished() const;
    // The three parts of Q + X - (D - R + M): bios and requests not dispatched at the end, ended without dispatch, begun before.
    std::array<std::int64_t, life_kinds> waiting() const;
    std::int64_t ended_early(LifeKind kind) const { return ended_early_[kind]; }
    std::int64_t started_before(LifeKind kind) const { return started_before_[kind]; }
    std::uint64_t forgotten() const { return forgotten_; }  // given up because too many were in flight
    std::uint64_t backwards() const { return backwards_; }  // stages that would have ended before they began

private:
    static constexpr std::uint32_t none = UINT32_MAX;

    struct Bio {
        std::uint64_t sector;
        std::uint64_t queued;
        std::uint32_t sectors;
        std::uint32_t next;    // in its request
        std::uint32_t parent;  // what it was split from, or none
        LifeKind kind;
    };
    struct Parent {
        std::uint64_t queued;
        std::uint32_t parts;
        std::uint32_t next;
    };
    struct Request {
        std::uint64_t start, sectors;
        std::uint64_t got, inserted, dispatched;
        std::uint32_t first, last;  // bios in order of sector
        std::uint32_t next;         // free list
        LifeKind kind;
        bool has_got, has_inserted, at_driver;
    };

    void sample(LifeKind kind, Stage stage, std::uint64_t from, std::uint64_t to)
    {
        if (to < from) [[unlikely]] {
            ++backwards_;
            return;
        }
        series_[kind][stage].add(*pool_, to - from);
    }
    std::uint32_t take_bio(LifeKind kind, std::uint64_t sector, std::uint32_t n);
    std::uint32_t merged_bio(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time);
    bool joins(LifeKind kind, std::uint32_t bio, std::size_t request_at);
    void append(Request& to, std::uint32_t first, std::uint32_t last);
    std::uint32_t new_request(LifeKind kind, std::uint64_t sector, std::uint64_t n);
    std::uint32_t from_before(LifeKind kind, std::uint64_t sector, std::uint64_t n);
    std::size_t find_waiting(LifeKind kind, std::uint64_t sector, std::uint64_t n) const;
    std::size_t find_by_end(LifeKind kind, std::uint64_t end) const;
    void erase_end(std::uint32_t request);
    void end_bio(std::uint32_t bio, std::uint64_t time);
    void drop_bio(std::uint32_t bio);
    void drop_bios(std::uint32_t first);
    void limit();

    SamplePool* pool_;
    std::size_t most_;
    Nodes<Bio> bios_;
    Nodes<Parent> parents_;
    Nodes<Request> requests_;
    PlaceTable waiting_bios_;  // by first sector
    PlaceTable starts_;        // requests by first sector
    PlaceTable ends_;          // requests not at the driver, by the sector after the last
    std::array<std::array<Series, stages>, life_kinds> series_;
    std::array<std::uint64_t, life_kinds> orphans_{};
    std::array<std::int64_t, life_kinds> ended_early_{}, started_before_{}, forgotten_waiting_{};
    std::uint64_t forgotten_ = 0;
    std::uint64_t backwards_ = 0;
};

}  // namespace pageout::tally

#endif
