// SPDX-License-Identifier: GPL-2.0-only
//
// One file or stream of records, turned into events. Everything that the format can tell about damage is found here; after damage
// the stream goes on with the next thing that is certainly a record.
#ifndef TALLY_STREAM_H
#define TALLY_STREAM_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnostics.h"
#include "engine.h"
#include "format.h"
#include "source.h"

namespace pageout::tally {

struct StreamSetup {
    std::string name;                  // for diagnostics
    std::uint32_t group = 0;
    std::optional<std::uint32_t> cpu;  // a per-CPU file's number
    std::size_t buffer_bytes = 256 * 1024;
    const std::function<void(std::uint64_t)>* progress = nullptr;
};

class Stream {
public:
    Stream(Engine& engine, Diagnostics& diagnostics, std::unique_ptr<Source> source, StreamSetup setup);
    // Reads memory in place.
    Stream(Engine& engine, Diagnostics& diagnostics, std::span<const std::byte> memory, StreamSetup setup);

    // The next event (or message); false at the end.
    bool next(Event& e);
    // The next ones, as many as there is room for; fewer only at the end.
    std::size_t next(std::span<Event> events);

    static constexpr std::size_t least_buffer = 96 * 1024;  // a record of the largest payload, and the next record's magic
    // Read that much at once, so that what all streams have read and not yet looked at fits the second-level cache.
    static constexpr std::size_t read_bytes = 32 * 1024;

private:
    std::size_t available() const { return end_ - pos_; }
    std::uint64_t offset() const { return base_ + pos_; }
    bool ensure(std::size_t n);
    bool begin();
    bool resync(std::size_t from, std::string why);
    bool record_at(std::size_t pos, bool swapped, bool& needs_more) const;
    bool check_extent(const Record& r, std::size_t& total);
    std::size_t record_inside(std::size_t total) const;
    bool plausible(const Record& r) const;
    void finish();
    bool take(const Record& r, const std::byte* payload, std::size_t payload_bytes, Event& e);
    Slot* slot_of(const Record& r);
    Slot* new_slot(const Record& r);
    void note(const Record& r, Slot& slot, const std::byte* payload, std::size_t n);
    void number(Slot& s, const Record& r);
    void damage(std::string_view code, std::string text, std::optional<std::uint64_t> at = std::nullopt,
                std::optional<std::uint64_t> record = std::nullopt);

    Engine& engine_;
    Diagnostics& diagnostics_;
    std::unique_ptr<Source> source_;
    StreamSetup setup_;
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t capacity_ = 0;
    const std::byte* data_ = nullptr;  // the buffer, or the memory
    std::size_t pos_ = 0, end_ = 0;
    std::uint64_t base_ = 0;  // offset in the file of the buffer's first byte
    bool eof_ = false;
    bool started_ = false;
    bool finished_ = false;
    bool swapped_ = false;
    std::uint32_t raw_magic_ = magic;  // as it stands in the file
    std::uint64_t records_ = 0;

    struct Cached {
        std::uint32_t device = 0, cpu = 0;
        Slot* slot = nullptr;
    };
    std::array<Cached, 256> cache_{};
};

// Puts a stream's events in order: each CPU's come in order, but those of different CPUs in whatever chunks they were read from
// the kernel in. Events wait until the window is full; then the earliest goes.
class Reorder {
public:
    Reorder(Engine& engine, Stream& stream, Diagnostics& diagnostics, std::string name, std::size_t window_bytes);
    bool next(Event& e);

private:
    static constexpr std::size_t block_events = 32;
    static constexpr std::uint32_t blkparse_batch = 512;
    static constexpr std::uint32_t none = UINT32_MAX;
    struct Block {
        std::array<Event, block_events> event;
        std::uint32_t next;
    };
    struct Queue {
        std::uint32_t first = none, last = none;  // blocks
        std::uint32_t head = 0, tail = 0;         // in the first and in the last
    };
    struct Head {
        std::uint64_t time;
        std::uint32_t device, sequence, arrival, slot;
        // As blkparse has it, which reads and sorts 512 events at once: of the same time those of an earlier batch come first, and what
        // is the same in everything comes in the opposite order of its arrival.
        bool after(const Head& o) const
        {
            if (time != o.time)
                return time > o.time;
            if (arrival / blkparse_batch != o.arrival / blkparse_batch)
                return static_cast<std::int32_t>(arrival - o.arrival) > 0;
            if (device != o.device)
                return device > o.device;
            if (sequence != o.sequence)
                return sequence > o.sequence;
            return static_cast<std::int32_t>(arrival - o.arrival) < 0;
        }
    };
    void push(const Event& e);
    Head head_of(std::uint32_t slot) const;
    void sift_down(std::size_t i);

    Engine& engine_;
    Stream& stream_;
    Diagnostics& diagnostics_;
    std::string name_;
    std::size_t most_;
    std::size_t held_ = 0;
    std::uint32_t arrivals_ = 0;
    bool input_done_ = false;
    bool done_ = false;
    std::vector<Block> blocks_;
    std::uint32_t free_ = none;
    std::vector<Queue> queues_;  // by slot
    std::vector<Head> heap_;
    std::uint64_t last_time_ = 0;
    std::uint64_t late_ = 0;
    std::uint64_t arrived_last_ = 0, batches_last_ = 0;  // the latest times so far, and up to the end of the batch before
    std::uint64_t unsorted_ = 0;
};

}  // namespace pageout::tally

#endif
