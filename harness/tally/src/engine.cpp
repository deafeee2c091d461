// SPDX-License-Identifier: GPL-2.0-only
#include "engine.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace pageout::tally {

namespace {

// More than any machine has; beyond, the number is damage and must not cost memory.
constexpr std::size_t most_devices = 4096;
constexpr std::size_t most_slots = 65536;
constexpr std::size_t most_comms = 1u << 20;
constexpr std::size_t most_messages = 64;
// Empty rows between two events, so that a wild time stamp does not fill the disk with zeros.
constexpr std::uint64_t most_empty_intervals = 10000;

Count count_of(const Cell& c) { return {c.count, c.bytes}; }

Flow flow_of(const Cells& cells, std::initializer_list<int> of)
{
    Flow f;
    for (const int kind : of) {
        if (!(cells.used >> kind & 1))
            continue;
        const auto& row = cells.cell[static_cast<std::size_t>(kind)];
        f.queued += count_of(row[act_queue]);
        f.split += count_of(row[act_split]);
        f.bounced += count_of(row[act_bounce]);
        f.remapped += count_of(row[act_remap]);
        f.allocated += count_of(row[act_getrq]);
        f.slept += count_of(row[act_sleeprq]);
        f.merged_back += count_of(row[act_backmerge]);
        f.merged_front += count_of(row[act_frontmerge]);
        f.merged_request += count_of(row[c_request_merge]);
        f.inserted += count_of(row[act_insert]);
        f.dispatched += count_of(row[act_issue]);
        f.requeued += count_of(row[act_requeue]);
        f.completed += count_of(row[act_complete]);
        f.failed += count_of(row[c_failed]);
    }
    return f;
}

DeviceId id_of(std::uint32_t number) { return {major_of(number), minor_of(number)}; }

}  // namespace

void Cells::operator+=(const Cells& o)
{
    for (std::size_t k = 0; k < kinds; ++k)
        if (o.used >> k & 1)
            for (std::size_t c = 0; c < columns; ++c)
                cell[k][c] += o.cell[k][c];
    used |= o.used;
    notes += o.notes;
}

void Cells::operator-=(const Cells& o)
{
    for (std::size_t k = 0; k < kinds; ++k)
        if (o.used >> k & 1)
            for (std::size_t c = 0; c < columns; ++c)
                cell[k][c] -= o.cell[k][c];
    used |= o.used;
    notes -= o.notes;
}

FlowCounts flow_counts(const Cells& cells)
{
    FlowCounts n;
    n.read = flow_of(cells, {k_normal});
    n.write = flow_of(cells, {k_normal + 1});
    n.flush = flow_of(cells, {k_flush, k_flush + 1});
    n.discard = flow_of(cells, {k_discard, k_discard + 1});
    n.packet_read = flow_of(cells, {k_packet});
    n.packet_write = flow_of(cells, {k_packet + 1});
    for (std::size_t k = 0; k < kinds; ++k) {
        if (!(cells.used >> k & 1))
            continue;
        const auto& row = cells.cell[k];
        n.plugs += row[act_plug].count;
        n.unplugs += row[act_unplug_io].count;
        n.timer_unplugs += row[act_unplug_timer].count;
        n.driver_data += row[act_drv_data].count;
        n.aborted += row[act_abort].count;
        for (std::size_t c = 0; c <= c_request_merge; ++c)
            n.events += row[c].count;
    }
    n.notes = cells.notes;
    return n;
}

// blkparse knows reads and writes only: flushes and discards are what their WRITE bit makes them.
BlkparseStats blkparse_stats(const Cells& cells)
{
    BlkparseStats s;
    const auto item = [&](std::size_t kind, std::size_t column) {
        const Cell& c = cells.cell[kind][column];
        return BlkparseStats::Item{c.count, (c.bytes - c.odd) >> 10, c.odd};
    };
    const auto add = [](BlkparseStats::Item& to, const BlkparseStats::Item& o) {
        to.count += o.count;
        to.kb += o.kb;
        to.b += o.b;
    };
    const auto take_size = [](BlkparseStats::Item& from, const BlkparseStats::Item& o) {
        from.kb -= o.kb;
        from.b -= o.b;
    };
    for (std::size_t rw = 0; rw < 2; ++rw) {
        for (const std::size_t kind : {k_normal + rw, k_flush + rw, k_discard + rw}) {
            add(s.queued[rw], item(kind, act_queue));
            add(s.dispatched[rw], item(kind, act_issue));
            take_size(s.dispatched[rw], item(kind, act_requeue));
            add(s.requeued[rw], item(kind, act_requeue));
            add(s.completed[rw], item(kind, act_complete));
            // It adds a completion's bytes as a signed number: 2 GiB and more count as less than nothing.
            s.completed[rw].kb -= cells.cell[kind][c_huge_complete].count << 22;
            for (const std::size_t column : {std::size_t{act_backmerge}, std::size_t{act_frontmerge}, std::size_t{c_request_merge}})
                add(s.merged[rw], item(kind, column));
        }
        const std::size_t pc = k_packet + rw;
        add(s.pc_queued[rw], item(pc, act_queue));
        add(s.pc_dispatched[rw], item(pc, act_issue));
        take_size(s.pc_dispatched[rw], item(pc, act_requeue));
        add(s.pc_requeued[rw], item(pc, act_requeue));
        add(s.pc_completed[rw], item(pc, act_complete));
    }
    // Its known slip: the KiB of queued packet reads go to the ordinary reads, the bytes beyond them do not.
    s.queued[0].kb += s.pc_queued[0].kb;
    s.pc_queued[0].kb = 0;
    for (std::size_t kind = 0; kind < k_packet; ++kind) {
        s.io_unplugs += cells.cell[kind][act_unplug_io].count;
        s.timer_unplugs += cells.cell[kind][act_unplug_timer].count;
    }
    return s;
}

Engine::Engine(const Options& options, Diagnostics& diagnostics)
    : options_(options), diagnostics_(diagnostics), pool_(options.sample_bytes)
{
    if (options_.interval_ns || options_.lives)
        options_.order = true;
    has_extras_ = options_.interval_ns || options_.processes || options_.partitions;
}

std::uint32_t Engine::add_group(std::string name, bool per_cpu_files)
{
    groups_.push_back({std::move(name), per_cpu_files});
    const auto group = static_cast<std::uint32_t>(groups_.size() - 1);
    if (per_cpu_files) {
        blkparse_.push_back(std::make_unique<BlkparseAccount>());
        blkparse_.back()->group = group;
        groups_.back().blkparse = blkparse_.back().get();
    }
    return group;
}

Slot* Engine::find_slot(std::uint32_t group, std::uint32_t device, std::uint32_t cpu) const
{
    const auto it = slot_index_.find({group, device, cpu});
    return it == slot_index_.end() ? nullptr : it->second;
}

Slot* Engine::slot(std::uint32_t group, std::uint32_t device, std::uint32_t cpu)
{
    if (Slot* known = find_slot(group, device, cpu))
        return known;
    auto dev = device_index_.find({group, device});
    if (slots_.size() >= most_slots || (dev == device_index_.end() && devices_.size() >= most_devices)) {
        if (!too_many_told_)
            diagnostics_.add(Severity::damage, groups_[group].name, std::nullopt, std::nullopt, "too-many-devices",
                             fmt::format("more than {} devices or {} pairs of device and CPU: these numbers are damaged; the events "
                                         "of further ones are not counted", most_devices, most_slots));
        too_many_told_ = true;
        return nullptr;
    }
    if (dev == device_index_.end()) {
        dev = device_index_.emplace(std::pair{group, device}, static_cast<std::uint32_t>(devices_.size())).first;
        devices_.push_back(std::make_unique<DeviceAccount>());
        devices_.back()->number = device;
        devices_.back()->group = group;
        if (groups_[group].per_cpu_files) {
            devices_.back()->blkparse = groups_[group].blkparse;
        } else {
            blkparse_.push_back(std::make_unique<BlkparseAccount>());
            blkparse_.back()->group = group;
            blkparse_.back()->device = device;
            devices_.back()->blkparse = blkparse_.back().get();
        }
    }
    slots_.push_back(std::make_unique<Slot>());
    Slot& s = *slots_.back();
    s.device = devices_[dev->second].get();
    s.blkparse = s.device->blkparse;
    s.cpu = cpu;
    s.number = static_cast<std::uint32_t>(slots_.size() - 1);
    slot_index_.emplace(std::tuple{group, device, cpu}, &s);
    s.device->slots.push_back(&s);
    return &s;
}

void Engine::process_note(Slot& slot, std::uint32_t pid, std::string_view comm)
{
    ++slot.cells.notes;
    // A number that is used again gets a note of its own: the last name is the one of the process that is known best.
    if (options_.processes && (comms_.size() < most_comms || comms_.contains(pid)))
        comms_[pid] = comm;
}

void Engine::timestamp_note(Slot& slot, std::uint64_t time, std::uint32_t seconds, std::uint32_t nanoseconds)
{
    ++slot.cells.notes;
    if (wall_offset_)
        return;
    wall_offset_ = static_cast<std::int64_t>(std::uint64_t{seconds} * 1000000000 + nanoseconds - time);
    wall_time_ = time;
}

void Engine::message_note(Slot& slot, std::string_view text)
{
    ++slot.cells.notes;
    if (messages_.size() < most_messages)
        messages_.emplace_back(text);
}

void Engine::remap(DeviceAccount& d, const Event& e)
{
    const auto from = static_cast<std::uint32_t>(e.a >> 32);
    const auto to = static_cast<std::uint32_t>(e.a);
    Remap* r = nullptr;
    for (const auto& known : d.remaps)
        if (known->from == from)
            r = known.get();
    const std::uint64_t start = e.sector - e.b;
    if (!r) {
        if (d.remaps.size() >= most_devices)
            return;
        d.remaps.push_back(std::make_unique<Remap>());
        r = d.remaps.back().get();
        r->from = from;
        r->start = start;
    } else if (r->start != start) {
        r->fixed = false;
    }
    // Before 5.12 a partition's bio names the disk as its new device, since then the partition itself. A bio that device mapper
    // sends to a partition names the partition, too, but comes from a device of another number.
    r->fixed &= to == d.number || to == from;
    if (!options_.partitions)
        return;
    const auto it = std::find(d.partitions.begin(), d.partitions.end(), r);
    if (r->fixed && from != d.number && it == d.partitions.end()) {
        const auto at = std::upper_bound(d.partitions.begin(), d.partitions.end(), r,
                                         [](const Remap* a, const Remap* b) { return a->start < b->start; });
        d.partitions.insert(at, r);
    } else if (!r->fixed && it != d.partitions.end()) {
        d.partitions.erase(it);
    }
}

void Engine::extras(DeviceAccount& d, Slot& s, const Event& e, Kind kind, unsigned column)
{
    const bool failed = column == act_complete && e.error;
    if (options_.interval_ns) {
        // The event was counted already; its interval must be open before it is.
        if (!interval_started_) {
            interval_started_ = true;
            origin_ = e.time;
            interval_end_ = options_.interval_ns;
        } else if (e.time > origin_ && e.time - origin_ >= interval_end_) {
            s.cells.cell[kind][column].count -= 1;
            s.cells.cell[kind][column].bytes -= e.bytes;
            close_intervals(e.time);
            s.cells.cell[kind][column].count += 1;
            s.cells.cell[kind][column].bytes += e.bytes;
        }
    }
    if (options_.processes) {
        if (s.last_process == UINT32_MAX || s.last_pid != e.pid) {
            const auto [it, fresh] = process_index_.try_emplace(e.pid, static_cast<std::uint32_t>(processes_.size()));
            if (fresh)
                processes_.push_back({e.pid, {}});
            s.last_pid = e.pid;
            s.last_process = it->second;
        }
        auto& row = processes_[s.last_process].cell[kind];
        if (!row)
            row = std::make_unique<std::array<Cell, columns>>();
        (*row)[column].add(e.bytes);
        if (failed)
            (*row)[c_failed].add(e.bytes);
    }
    if (options_.partitions) {
        // By address; a bio's remap event comes before its first event on the disk.
        if ((e.action & 0xff) == act_remap)
            remap(d, e);
        const auto after = std::upper_bound(d.partitions.begin(), d.partitions.end(), e.sector,
                                            [](std::uint64_t sector, const Remap* r) { return sector < r->start; });
        if (after != d.partitions.begin() && e.bytes) {
            Remap& r = **std::prev(after);
            r.cells.cell[kind][column].add(e.bytes);
            r.cells.used |= 1u << kind;
            if (failed)
                r.cells.cell[kind][c_failed].add(e.bytes);
        }
    }
}

Cells Engine::device_cells(std::size_t device) const
{
    Cells sum;
    for (const Slot* slot : devices_[device]->slots)
        sum += slot->cells;
    return sum;
}

void Engine::close_intervals(std::uint64_t time)
{
    const std::uint64_t wanted = (time - origin_) / options_.interval_ns;
    emit_interval(interval_end_);
    ++interval_index_;
    if (wanted - interval_index_ > most_empty_intervals) {
        diagnostics_.add(Severity::note, "", std::nullopt, std::nullopt, "empty-intervals",
                         fmt::format("nothing happened for {} intervals: their rows are left out", wanted - interval_index_));
        interval_index_ = wanted;
        for (const auto& d : devices_)
            for (Depth& depth : d->depth) {
                depth.advance(origin_ + wanted * options_.interval_ns);
                depth.interval_area = 0;
            }
    }
    for (; interval_index_ < wanted; ++interval_index_)
        emit_interval((interval_index_ + 1) * options_.interval_ns);
    interval_end_ = interval_index_ > UINT64_MAX / options_.interval_ns - 1 ? UINT64_MAX
                                                                             : (interval_index_ + 1) * options_.interval_ns;
}

void Engine::emit_interval(std::uint64_t end)
{
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        DeviceAccount& d = *devices_[i];
        Cells now = device_cells(i);
        Cells step = now;
        step -= d.interval_before;
        d.interval_before = now;
        Interval row;
        row.input = groups_[d.group].name;
        row.device = id_of(d.number);
        row.index = interval_index_;
        row.start_ns = interval_index_ * options_.interval_ns;
        row.counts = flow_counts(step);
        const auto depth = [&](Depth& of, double& mean, std::uint64_t& max) {
            of.advance(origin_ + end);
            mean = static_cast<double>(of.interval_area) / static_cast<double>(options_.interval_ns);
            max = of.interval_max;
            of.interval_area = 0;
            of.interval_max = of.now;
        };
        depth(d.depth[k_normal], row.read_depth_mean, row.read_depth_max);
        depth(d.depth[k_normal + 1], row.write_depth_mean, row.write_depth_max);
        if (options_.on_interval)
            options_.on_interval(std::move(row));
        else
            intervals_.push_back(std::move(row));
    }
}

void Engine::finish_device(std::size_t index, tally::Device& out)
{
    DeviceAccount& d = *devices_[index];
    out.id = id_of(d.number);
    out.input = groups_[d.group].name;
    if (d.seen) {
        out.first_ns = d.first;
        out.last_ns = d.last;
    }
    for (const auto& r : d.remaps)
        if (r->from != d.number)
            out.carries.push_back(id_of(r->from));
    std::sort(out.carries.begin(), out.carries.end());

    const FlowCounts sum = flow_counts(device_cells(index));
    Counts& c = out.counts;
    static_cast<Flow&>(c.read) = sum.read;
    static_cast<Flow&>(c.write) = sum.write;
    static_cast<Flow&>(c.flush) = sum.flush;
    static_cast<Flow&>(c.discard) = sum.discard;
    static_cast<Flow&>(c.packet_read) = sum.packet_read;
    static_cast<Flow&>(c.packet_write) = sum.packet_write;
    c.plugs = sum.plugs;
    c.unplugs = sum.unplugs;
    c.timer_unplugs = sum.timer_unplugs;
    c.driver_data = sum.driver_data;
    c.aborted = sum.aborted;
    c.events = sum.events;
    c.notes = sum.notes;
    c.unplug_depth = d.unplug_depth;

    const std::uint64_t span = d.seen && d.last > d.first ? d.last - d.first : 0;
    const auto shape = [&](Direction& to, std::size_t kind, std::size_t other) {
        to.dispatched_bytes = d.sizes[kind];
        if (other != kind)
            to.dispatched_bytes += d.sizes[other];
        d.depth[kind].advance(d.last);
        to.depth_max = d.depth[kind].max;
        to.depth_mean = span ? static_cast<double>(d.depth[kind].area) / static_cast<double>(span) : 0.0;
    };
    shape(c.read, k_normal, k_normal);
    shape(c.write, k_normal + 1, k_normal + 1);
    shape(c.flush, k_flush, k_flush + 1);
    shape(c.discard, k_discard, k_discard + 1);
    shape(c.packet_read, k_packet, k_packet);
    shape(c.packet_write, k_packet + 1, k_packet + 1);
    for (std::size_t rw = 0; rw < 2; ++rw) {
        Direction& to = rw ? c.write : c.read;
        if (d.run[rw].bytes)
            ++d.runs[rw].bucket[static_cast<std::size_t>(std::bit_width(d.run[rw].bytes))];
        d.run[rw] = {};
        to.run_bytes = d.runs[rw];
        to.seek_sectors = d.seeks[rw];
        to.sequential = d.sequential[rw];
    }
    out.bio_based = d.bio_completions && !(c.read.dispatched.count + c.write.dispatched.count + c.flush.dispatched.count +
                                           c.discard.dispatched.count);

    const auto latency = [&](const Series& s) {
        const Series* one[] = {&s};
        return Series::latency(one, pool_);
    };
    if (d.lives) {
        const auto left = d.lives->unfinished();
        const auto waiting = d.lives->waiting();
        const auto stage = [&](Direction& to, LifeKind k) {
            to.q2g = latency(d.lives->series(k, q2g));
            to.q2m = latency(d.lives->series(k, q2m));
            to.g2i = latency(d.lives->series(k, g2i));
            to.i2d = latency(d.lives->series(k, i2d));
            to.d2c = latency(d.lives->series(k, d2c));
            to.q2c = latency(d.lives->series(k, q2c));
            to.orphans = d.lives->orphans(k);
            to.unfinished = left[k];
            to.waiting = waiting[k];
            to.ended_early = d.lives->ended_early(k);
            to.started_before = d.lives->started_before(k);
        };
        stage(c.read, life_read);
        stage(c.write, life_write);
        stage(c.discard, life_discard);
        if (d.lives->forgotten())
            diagnostics_.add(Severity::note, out.input, std::nullopt, std::nullopt, "forgotten",
                             fmt::format("device {},{}: {} requests or bios were given up because too many never completed; the capture "
                                         "lacks their completions", out.id.major, out.id.minor, d.lives->forgotten()));
        if (d.lives->backwards())
            diagnostics_.add(Severity::note, out.input, std::nullopt, std::nullopt, "negative-latency",
                             fmt::format("device {},{}: {} stages of requests would have ended before they began, because time goes "
                                         "backwards; they are in no latency", out.id.major, out.id.minor, d.lives->backwards()));
    }
    c.flush.d2c = latency(d.flush_d2c);
    c.flush.orphans = d.flush_orphans;
    c.flush.unfinished = d.flushes.size();

    for (const Slot* s : d.slots)
        if (s->elements || s->cells.notes)
            out.cpus.push_back({s->cpu, flow_counts(s->cells)});
    std::sort(out.cpus.begin(), out.cpus.end(), [](const CpuCounts& a, const CpuCounts& b) { return a.cpu < b.cpu; });
    for (const Remap* r : d.partitions)
        out.partitions.push_back({id_of(r->from), r->start, flow_counts(r->cells)});
}

// One capture's devices together: percentiles come from all samples, not from percentiles.
void Engine::total_latencies(Summary& s, const std::vector<std::size_t>& counted)
{
    const auto all = [&](auto&& of) {
        std::vector<const Series*> list;
        for (const std::size_t i : counted)
            if (const Series* one = of(*devices_[i]))
                list.push_back(one);
        return Series::latency(list, pool_);
    };
    const auto stage = [&](LifeKind k, Stage st) {
        return all([&](const DeviceAccount& d) { return d.lives ? &d.lives->series(k, st) : nullptr; });
    };
    const auto direction = [&](Direction& to, LifeKind k) {
        to.q2g = stage(k, q2g);
        to.q2m = stage(k, q2m);
        to.g2i = stage(k, g2i);
        to.i2d = stage(k, i2d);
        to.d2c = stage(k, d2c);
        to.q2c = stage(k, q2c);
    };
    direction(s.total.read, life_read);
    direction(s.total.write, life_write);
    direction(s.total.discard, life_discard);
    s.total.flush.d2c = all([](const DeviceAccount& d) { return &d.flush_d2c; });
}

Summary Engine::finish()
{
    Summary s;
    if (options_.interval_ns && interval_started_) {
        // Depths are known up to the last event only.
        std::uint64_t last = origin_;
        for (const auto& d : devices_)
            last = std::max(last, d->last);
        emit_interval(std::min(interval_end_, last - origin_));
    }
    std::stable_sort(devices_.begin(), devices_.end(), [](const auto& a, const auto& b) { return a->number < b->number; });
    s.devices.resize(devices_.size());
    for (std::size_t i = 0; i < devices_.size(); ++i)
        finish_device(i, s.devices[i]);

    // A device whose bios arrive again at another device of the capture is above that one: adding it would count them twice.
    std::multimap<DeviceId, std::size_t> traced;
    for (std::size_t i = 0; i < devices_.size(); ++i)
        traced.emplace(s.devices[i].id, i);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        if (!devices_[i]->seen)
            continue;
        for (const DeviceId& upper : s.devices[i].carries)
            for (auto [it, end] = traced.equal_range(upper); it != end; ++it)
                s.devices[it->second].above_another = true;
    }
    std::vector<std::size_t> counted;
    bool any_event = false;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const DeviceAccount& d = *devices_[i];
        if (d.seen) {
            s.first_ns = any_event ? std::min(s.first_ns, d.first) : d.first;
            s.last_ns = any_event ? std::max(s.last_ns, d.last) : d.last;
            any_event = true;
        }
        if (!s.devices[i].above_another)
            counted.push_back(i);
    }
    // Two devices that each claim to be above the other: then none is, and all are counted.
    if (counted.empty())
        for (std::size_t i = 0; i < devices_.size(); ++i) {
            s.devices[i].above_another = false;
            counted.push_back(i);
        }
    if (counted.size() == 1) {
        s.total = s.devices[counted.front()].counts;
    } else {
        for (const std::size_t i : counted)
            s.total += s.devices[i].counts;
        if (options_.lives)
            total_latencies(s, counted);
    }

    for (const Process& p : processes_) {
        Cells cells;
        for (std::size_t k = 0; k < kinds; ++k)
            if (p.cell[k]) {
                cells.cell[k] = *p.cell[k];
                cells.used |= 1u << k;
            }
        const auto comm = comms_.find(p.pid);
        s.processes.push_back({p.pid, comm == comms_.end() ? std::string() : comm->second, flow_counts(cells)});
    }
    std::sort(s.processes.begin(), s.processes.end(), [](const ProcessCounts& a, const ProcessCounts& b) { return a.pid < b.pid; });

    struct Sum {
        std::map<std::uint32_t, BlkparseStats> cpus;
        std::uint64_t elements = 0;
    };
    std::unordered_map<const BlkparseAccount*, Sum> sums;
    for (const auto& slot : slots_)
        if (slot->elements) {
            Sum& sum = sums[slot->blkparse];
            sum.cpus[slot->cpu] += blkparse_stats(slot->cells);
            sum.elements += slot->elements;
        }
    for (const auto& b : blkparse_) {
        const Sum& sum = sums[b.get()];
        if (b->device && sum.cpus.empty())
            continue;
        BlkparseDevice out;
        out.name = b->device ? fmt::format("{},{}", major_of(*b->device), minor_of(*b->device)) : groups_[b->group].name;
        out.cpus.assign(sum.cpus.begin(), sum.cpus.end());
        out.events = sum.elements;
        out.depth_max = b->depth_max;
        out.first_ns = b->first;
        out.last_ns = b->last;
        out.skips = b->skips;
        out.skipped_events = b->skipped;
        s.blkparse.push_back(std::move(out));
    }
    // Tracing starts with that note. Events before it have times of another kind.
    if (wall_offset_ && any_event && s.first_ns < wall_time_) {
        wall_offset_.reset();
        diagnostics_.add(Severity::note, "", std::nullopt, std::nullopt, "relative-times",
                         "events are earlier than the note of the time of day, as in what `blkparse -d` writes: when they happened is not known");
    }
    s.intervals = std::move(intervals_);
    s.interval_ns = options_.interval_ns;
    s.records = records;
    s.input_bytes = input_bytes;
    s.unknown_events = unknown_events;
    s.cgroup_events = cgroup_events;
    s.unsorted_events = unsorted_events;
    s.dropped = options_.dropped;
    s.wall_offset_ns = wall_offset_;
    s.byte_swapped = byte_swapped;
    s.messages = std::move(messages_);
    return s;
}

}  // namespace pageout::tally
