// SPDX-License-Identifier: GPL-2.0-only
//
// The accounts: what one event adds to them, and the summary that comes of it.
#ifndef TALLY_ENGINE_H
#define TALLY_ENGINE_H

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "diagnostics.h"
#include "format.h"
#include "lives.h"
#include "pageout/tally.h"
#include "samples.h"

namespace pageout::tally {

struct Slot;

// An event as the accounts need it: host byte order, payload taken apart, device and CPU replaced by their slot.
struct Event {
    std::uint64_t time;
    std::uint64_t sector;
    std::uint64_t a;  // unplug: depth; remap: device from (high half) and to (low half)
    std::uint64_t b;  // remap: sector from
    Slot* slot;
    std::uint32_t bytes;
    std::uint32_t action;
    std::uint32_t pid;
    std::uint32_t sequence;
    std::uint32_t arrival;  // number in a merged stream
    std::uint16_t error;
};

// What an event is about, in pairs: reads (or what blkparse takes for reads) and writes.
enum Kind : std::uint8_t { k_normal = 0, k_flush = 2, k_discard = 4, k_packet = 6, kinds = 8 };
// Columns of a slot: the actions 1 to 17, then what they do not tell apart by themselves.
enum Column : std::uint8_t { c_request_merge = 18, c_failed = 19, c_huge_complete = 20, columns = 21 };

struct Cell {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t odd = 0;  // sum of bytes & 1023, which blkparse keeps apart
    void add(std::uint32_t n)
    {
        ++count;
        bytes += n;
        odd += n & 1023;
    }
    void operator+=(const Cell& o)
    {
        count += o.count;
        bytes += o.bytes;
        odd += o.odd;
    }
    void operator-=(const Cell& o)
    {
        count -= o.count;
        bytes -= o.bytes;
        odd -= o.odd;
    }
};

struct Cells {
    std::array<std::array<Cell, columns>, kinds> cell{};
    std::uint64_t notes = 0;
    std::uint32_t used = 0;  // a bit for each kind that has events
    void operator+=(const Cells& o);
    void operator-=(const Cells& o);
};

inline Kind kind_of(std::uint32_t action, std::uint32_t bytes)
{
    const unsigned write = (action & cat_write) != 0;
    unsigned kind = k_normal;
    if ((action & cat_flush) && bytes == 0)
        kind = k_flush;
    if (action & cat_discard)
        kind = k_discard;
    if (action & cat_pc)
        kind = k_packet;
    return static_cast<Kind>(kind | write);
}

inline unsigned column_of(std::uint32_t action)
{
    const unsigned low = action & 0xff;
    return low == act_backmerge && (action & (cat_fs | cat_pc)) ? unsigned{c_request_merge} : low;
}

struct Depth {
    std::uint32_t now = 0, max = 0, interval_max = 0;
    std::uint64_t since = 0;
    unsigned __int128 area = 0, interval_area = 0;
    void advance(std::uint64_t time)
    {
        if (time <= since)
            return;
        const auto more = static_cast<unsigned __int128>(time - since) * now;
        area += more;
        interval_area += more;
        since = time;
    }
    void up(std::uint64_t time)
    {
        advance(time);
        ++now;
        max = std::max(max, now);
        interval_max = std::max(interval_max, now);
    }
    void down(std::uint64_t time)
    {
        advance(time);
        if (now)
            --now;
    }
};
struct Run {
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;
};
struct Remap {
    std::uint32_t from;
    std::uint64_t start;
    bool fixed = true;  // always the same distance, and to this device: a partition
    Cells cells;
};
struct BlkparseAccount {
    std::uint32_t group;
    std::optional<std::uint32_t> device;  // none: a basename
    std::array<std::uint32_t, 2> depth{}, depth_max{};
    bool any = false;
    std::uint64_t first = 0, last = 0;
    std::uint64_t skips = 0, skipped = 0;
};
struct DeviceAccount {
    std::uint32_t number;
    std::uint32_t group;
    BlkparseAccount* blkparse;
    std::vector<Slot*> slots;
    bool seen = false;
    std::uint64_t first = UINT64_MAX, last = 0;
    std::array<Depth, kinds> depth;  // by kind; flushes and discards by their even number
    std::array<Histogram, kinds> sizes;
    Histogram unplug_depth;
    std::array<Run, 2> run;
    std::array<Histogram, 2> runs;
    std::array<Histogram, 2> seeks;
    std::array<std::uint64_t, 2> sequential{};
    std::uint64_t head = 0;  // sector after the last dispatch
    bool head_known = false;
    std::uint64_t bio_completions = 0;
    std::vector<std::unique_ptr<Remap>> remaps;
    std::vector<Remap*> partitions;  // in order of start
    std::unique_ptr<Lives> lives;
    std::vector<std::uint64_t> flushes;  // times of flushes at the driver, oldest first
    Series flush_d2c;
    std::uint64_t flush_orphans = 0;
    Cells interval_before;
};

// The account of one device on one CPU.
struct Slot {
    Cells cells;
    DeviceAccount* device;
    BlkparseAccount* blkparse;
    std::uint32_t cpu;
    std::uint32_t number;  // in order of appearance
    std::uint32_t next_sequence = 0;
    bool sequence_known = false;
    std::uint64_t last_time = 0;
    std::uint64_t elements = 0;  // what blkparse calls nelems: events, and messages as they are
    std::uint64_t odd_events = 0;  // messages blkparse counts as events
    // The process whose events came last, so that most lookups are none.
    std::uint32_t last_pid = 0;
    std::uint32_t last_process = UINT32_MAX;
};

FlowCounts flow_counts(const Cells& cells);
BlkparseStats blkparse_stats(const Cells& cells);

class Engine {
public:
    Engine(const Options& options, Diagnostics& diagnostics);

    // An input group: a basename with its per-CPU files, or one stream in which devices are told apart by their numbers only.
    std::uint32_t add_group(std::string name, bool per_cpu_files);
    const std::string& group_name(std::uint32_t group) const { return groups_[group].name; }

    static constexpr std::uint32_t unknown_cpu = UINT32_MAX;

    Slot* find_slot(std::uint32_t group, std::uint32_t device, std::uint32_t cpu) const;
    // Makes the slot where there is none; null when there are too many devices or CPUs to be true.
    Slot* slot(std::uint32_t group, std::uint32_t device, std::uint32_t cpu);

    // Notes are taken as they are read; they have no place in the order.
    void process_note(Slot& slot, std::uint32_t pid, std::string_view comm);
    void timestamp_note(Slot& slot, std::uint64_t time, std::uint32_t seconds, std::uint32_t nanoseconds);
    void message_note(Slot& slot, std::string_view text);
    void odd_note(Slot& slot) { ++slot.cells.notes; }

    void account(const Event& e)
    {
        if (options_.lives)
            account_as<true, true>(e);
        else if (options_.order)
            account_as<true, false>(e);
        else
            account_as<false, false>(e);
    }
    template <bool ordered, bool lives>
    void account_as(const Event& e);

    std::uint64_t unknown_events = 0;
    std::uint64_t cgroup_events = 0;
    std::uint64_t unsorted_events = 0;
    std::uint64_t records = 0;
    std::uint64_t input_bytes = 0;
    bool byte_swapped = false;

    Summary finish();

private:
    struct Process {
        std::uint32_t pid;
        std::array<std::unique_ptr<std::array<Cell, columns>>, kinds> cell;
    };
    struct Group {
        std::string name;
        bool per_cpu_files;
        BlkparseAccount* blkparse = nullptr;
    };

public:
    // A gap in a CPU's numbering, as blkparse's pipe mode counts it.
    void skipped(Slot& slot, std::uint64_t events)
    {
        BlkparseAccount& b = *slot.blkparse;
        if (groups_[b.group].per_cpu_files)
            return;
        ++b.skips;
        b.skipped += events;
    }

private:
    void lives_event(DeviceAccount& d, const Event& e, Kind kind);
    void remap(DeviceAccount& d, const Event& e);
    void extras(DeviceAccount& d, Slot& s, const Event& e, Kind kind, unsigned column);
    void close_intervals(std::uint64_t time);
    void emit_interval(std::uint64_t end);
    Cells device_cells(std::size_t device) const;
    void finish_device(std::size_t index, tally::Device& out);
    void total_latencies(Summary& s, const std::vector<std::size_t>& counted);

    Options options_;
    Diagnostics& diagnostics_;
    SamplePool pool_;
    std::vector<Group> groups_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Slot*> slot_index_;
    std::vector<std::unique_ptr<DeviceAccount>> devices_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> device_index_;
    std::vector<std::unique_ptr<BlkparseAccount>> blkparse_;
    std::vector<Process> processes_;
    std::unordered_map<std::uint32_t, std::uint32_t> process_index_;
    std::unordered_map<std::uint32_t, std::string> comms_;
    std::vector<std::string> messages_;
    std::optional<std::int64_t> wall_offset_;
    std::uint64_t wall_time_ = 0;  // when that was, on the monotonic clock
    bool has_extras_ = false;
    bool too_many_told_ = false;

    bool interval_started_ = false;
    std::uint64_t origin_ = 0;
    std::uint64_t interval_index_ = 0;
    std::uint64_t interval_end_ = 0;
    std::vector<Interval> intervals_;
};

// ---- the hot path ----

template <bool ordered, bool lives>
inline void Engine::account_as(const Event& e)
{
    Slot& s = *e.slot;
    DeviceAccount& d = *s.device;
    BlkparseAccount& b = *s.blkparse;
    if (e.action & cat_notify) [[unlikely]] {
        // A message, kept in the order for what blkparse makes of it.
        if (!b.any)
            b.first = e.time;
        b.any = true;
        b.last = e.time;
        ++s.elements;
        ++s.odd_events;
        return;
    }
    const Kind kind = kind_of(e.action, e.bytes);
    const unsigned column = column_of(e.action);
    auto& row = s.cells.cell[kind];
    row[column].add(e.bytes);
    s.cells.used |= 1u << kind;
    ++s.elements;
    d.seen = true;
    d.first = std::min(d.first, e.time);
    d.last = std::max(d.last, e.time);
    if (!b.any) [[unlikely]] {
        b.any = true;
        b.first = e.time;
    }
    b.last = e.time;
    if (has_extras_) [[unlikely]]
        extras(d, s, e, kind, column);

    const unsigned write = kind & 1;
    // Flushes turn from writes into reads on their way down: one depth for both.
    const unsigned depth = kind < k_flush || kind >= k_packet ? unsigned{kind} : kind & ~1u;
    switch (e.action & 0xff) {
    case act_issue:
        ++d.sizes[kind].bucket[static_cast<std::size_t>(std::bit_width(e.bytes))];
        if constexpr (ordered) {
            d.depth[depth].up(e.time);
            if (++b.depth[write] > b.depth_max[write])
                b.depth_max[write] = b.depth[write];
            if (kind < k_flush && e.bytes) {
                Run& r = d.run[write];
                if (r.bytes && e.sector == r.end) {
                    r.bytes += e.bytes;
                    ++d.sequential[write];
                } else {
                    if (r.bytes)
                        ++d.runs[write].bucket[static_cast<std::size_t>(std::bit_width(r.bytes))];
                    r.bytes = e.bytes;
                }
                r.end = e.sector + (e.bytes >> 9);
                if (d.head_known) {
                    const std::uint64_t away = e.sector > d.head ? e.sector - d.head : d.head - e.sector;
                    ++d.seeks[write].bucket[static_cast<std::size_t>(std::bit_width(away))];
                }
                d.head = r.end;
                d.head_known = true;
            }
        }
        break;
    case act_complete:
        if (e.error)
            row[c_failed].add(e.bytes);
        if (e.bytes >> 31) [[unlikely]]
            row[c_huge_complete].add(e.bytes);
        d.bio_completions += !(e.action & (cat_fs | cat_pc));
        [[fallthrough]];
    case act_requeue:
        if constexpr (ordered) {
            d.depth[depth].down(e.time);
            if (b.depth[write])
                --b.depth[write];
        }
        break;
    case act_unplug_io:
    case act_unplug_timer:
        ++d.unplug_depth.bucket[static_cast<std::size_t>(std::bit_width(e.a))];
        break;
    case act_remap:
        remap(d, e);
        break;
    default:
        break;
    }
    if constexpr (lives)
        lives_event(d, e, kind);
}

inline void Engine::lives_event(DeviceAccount& d, const Event& e, Kind kind)
{
    if (kind >= k_flush) [[unlikely]] {
        if ((kind & ~1u) == k_flush && e.action & cat_fs) {
            // One flush of the machinery is under way at a time; should it be more, the oldest ends first.
            const unsigned low = e.action & 0xff;
            if (low == act_issue) {
                if (d.flushes.size() < 1024)
                    d.flushes.push_back(e.time);
            } else if (low == act_complete || low == act_requeue) {
                if (d.flushes.empty()) {
                    ++d.flush_orphans;
                } else {
                    if (low == act_complete && e.time >= d.flushes.front())
                        d.flush_d2c.add(pool_, e.time - d.flushes.front());
                    d.flushes.erase(d.flushes.begin());
                }
            }
            return;
        }
        if (kind >= k_packet)
            return;
    }
    const std::uint32_t n = e.bytes >> 9;
    if (!n)
        return;
    const LifeKind k = kind >= k_discard ? life_discard : static_cast<LifeKind>(kind & 1);
    if (!d.lives) [[unlikely]]
        d.lives = std::make_unique<Lives>(pool_);
    Lives& l = *d.lives;
    switch (e.action & 0xff) {
    case act_queue: l.queue(k, e.sector, n, e.time); break;
    case act_backmerge:
        if (e.action & cat_fs)
            l.request_merge(k, e.sector, n);
        else
            l.back_merge(k, e.sector, n, e.time);
        break;
    case act_frontmerge: l.front_merge(k, e.sector, n, e.time); break;
    case act_getrq: l.getrq(k, e.sector, n, e.time); break;
    case act_requeue: l.requeue(k, e.sector, n); break;
    case act_issue: l.dispatch(k, e.sector, n, e.time); break;
    case act_complete:
        if (e.action & cat_fs)
            l.complete_request(k, e.sector, n, e.time);
        else
            l.complete_bio(k, e.sector, n, e.time);
        break;
    case act_insert: l.insert(k, e.sector, n, e.time); break;
    case act_split: l.split(k, e.sector, n); break;
    default: break;
    }
}

}  // namespace pageout::tally

#endif
