// SPDX-License-Identifier: GPL-2.0-only
#include <nlohmann/json.hpp>

#include <ctime>

#include <fmt/format.h>

#include "output.h"
#include "pageout/tally.h"

namespace pageout::tally {

namespace {

using Json = nlohmann::ordered_json;

Json count_json(const Count& c) { return {{"count", c.count}, {"bytes", c.bytes}}; }

void put_flow(Json& j, const Flow& f)
{
    j["queued"] = count_json(f.queued);
    j["split"] = count_json(f.split);
    j["allocated"] = count_json(f.allocated);
    j["merged_bio"] = count_json(f.merged_bio());
    j["merged_back"] = count_json(f.merged_back);
    j["merged_front"] = count_json(f.merged_front);
    j["merged_request"] = count_json(f.merged_request);
    j["inserted"] = count_json(f.inserted);
    j["dispatched"] = count_json(f.dispatched);
    j["requeued"] = count_json(f.requeued);
    j["completed"] = count_json(f.completed);
    j["failed"] = count_json(f.failed);
    j["remapped"] = count_json(f.remapped);
    j["bounced"] = count_json(f.bounced);
    j["slept"] = count_json(f.slept);
}

// Nonempty buckets: [smallest value, largest value, count].
Json histogram_json(const Histogram& h)
{
    Json list = Json::array();
    for (std::size_t i = 0; i < h.bucket.size(); ++i)
        if (h.bucket[i])
            list.push_back({lowest_in_bucket(i), highest_in_bucket(i), h.bucket[i]});
    return list;
}

Json latency_json(const Latency& l)
{
    if (!l.samples)
        return nullptr;
    return {{"samples", l.samples}, {"sum_ns", l.sum_ns}, {"min_ns", l.min_ns}, {"p50_ns", l.p50_ns}, {"p90_ns", l.p90_ns},
            {"p99_ns", l.p99_ns}, {"p99_9_ns", l.p999_ns}, {"max_ns", l.max_ns}, {"exact", l.exact}};
}

Json flow_json(const Flow& f)
{
    Json j;
    put_flow(j, f);
    return j;
}

Json direction_json(const Direction& d)
{
    Json j;
    put_flow(j, d);
    j["dispatched_bytes_histogram"] = histogram_json(d.dispatched_bytes);
    j["run_bytes_histogram"] = histogram_json(d.run_bytes);
    j["seek_sectors_histogram"] = histogram_json(d.seek_sectors);
    j["sequential"] = d.sequential;
    j["depth_max"] = d.depth_max;
    j["depth_mean"] = d.depth_mean;
    j["latency"] = {{"q2c", latency_json(d.q2c)}, {"q2g", latency_json(d.q2g)}, {"q2m", latency_json(d.q2m)},
                    {"g2i", latency_json(d.g2i)}, {"i2d", latency_json(d.i2d)}, {"d2c", latency_json(d.d2c)}};
    j["orphans"] = d.orphans;
    j["unfinished"] = d.unfinished;
    return j;
}

Json identity_json(const Direction& d)
{
    return {{"residue", d.identity_residue()}, {"waiting", d.waiting}, {"ended_early", d.ended_early},
            {"started_before", d.started_before}};
}

template <class C>
void put_rest(Json& j, const C& c)
{
    j["plugs"] = c.plugs;
    j["unplugs"] = c.unplugs;
    j["timer_unplugs"] = c.timer_unplugs;
    j["driver_data"] = c.driver_data;
    j["aborted"] = c.aborted;
    j["events"] = c.events;
    j["notes"] = c.notes;
    j["identity_residue"] = {{"read", c.read.identity_residue()}, {"write", c.write.identity_residue()}};
}

template <class C>
Json kinds_json(const C& c, auto&& one)
{
    Json j;
    j["read"] = one(c.read);
    j["write"] = one(c.write);
    j["flush"] = one(c.flush);
    j["discard"] = one(c.discard);
    j["packet_read"] = one(c.packet_read);
    j["packet_write"] = one(c.packet_write);
    put_rest(j, c);
    return j;
}

Json counts_json(const FlowCounts& c) { return kinds_json(c, flow_json); }

Json counts_json(const Counts& c)
{
    Json j = kinds_json(c, direction_json);
    j["identity"] = {{"read", identity_json(c.read)}, {"write", identity_json(c.write)}};
    j["unplug_depth_histogram"] = histogram_json(c.unplug_depth);
    return j;
}

template <class T>
Json or_null(const std::optional<T>& v)
{
    return v ? Json(*v) : Json(nullptr);
}

std::string name_of(const DeviceId& id) { return fmt::format("{}:{}", id.major, id.minor); }

}  // namespace

std::string to_json(const Summary& s)
{
    Json j;
    j["schema"] = "blktally/1";
    j["verdict"] = verdict_name(s.verdict);
    j["partial"] = s.partial();
    Json diagnostics = Json::array();
    for (const Diagnostic& d : s.diagnostics)
        diagnostics.push_back({{"severity", severity_name(d.severity)}, {"file", d.file}, {"offset_bytes", or_null(d.offset)},
                               {"record", or_null(d.record)}, {"code", d.code}, {"text", d.text}, {"times", d.times}});
    j["diagnostics"] = diagnostics;
    j["records"] = s.records;
    j["input_bytes"] = s.input_bytes;
    j["unknown_events"] = s.unknown_events;
    j["dropped"] = or_null(s.dropped);
    j["byte_swapped"] = s.byte_swapped;
    j["first_ns"] = s.first_ns;
    j["last_ns"] = s.last_ns;
    j["duration_ns"] = s.last_ns - s.first_ns;
    j["wall_offset_ns"] = or_null(s.wall_offset_ns);
    j["wall_start"] = s.wall_offset_ns && s.total.events ? Json(wall_start(s)) : Json(nullptr);
    j["total"] = counts_json(s.total);
    Json devices = Json::array();
    for (const Device& d : s.devices) {
        Json e;
        e["device"] = name_of(d.id);
        e["input"] = d.input;
        e["first_ns"] = or_null(d.first_ns);
        e["last_ns"] = or_null(d.last_ns);
        e["bio_based"] = d.bio_based;
        e["above_another"] = d.above_another;
        Json carries = Json::array();
        for (const DeviceId& c : d.carries)
            carries.push_back(name_of(c));
        e["carries"] = carries;
        e["counts"] = counts_json(d.counts);
        Json cpus = Json::array();
        for (const CpuCounts& c : d.cpus) {
            Json one;
            one["cpu"] = c.cpu == UINT32_MAX ? Json(nullptr) : Json(c.cpu);
            one["counts"] = counts_json(c.counts);
            cpus.push_back(one);
        }
        e["cpus"] = cpus;
        Json partitions = Json::array();
        for (const PartitionCounts& p : d.partitions)
            partitions.push_back({{"device", name_of(p.id)}, {"start_sector", p.start_sector}, {"counts", counts_json(p.counts)}});
        e["partitions"] = partitions;
        devices.push_back(e);
    }
    j["devices"] = devices;
    Json processes = Json::array();
    for (const ProcessCounts& p : s.processes)
        processes.push_back({{"pid", p.pid}, {"comm", p.comm.empty() ? Json(nullptr) : Json(p.comm)}, {"counts", counts_json(p.counts)}});
    j["processes"] = processes;
    j["messages"] = s.messages;
    // Names and messages come from the capture: what is not UTF-8 in them becomes U+FFFD.
    return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pageout::tally
