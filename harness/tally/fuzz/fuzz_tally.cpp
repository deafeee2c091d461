// SPDX-License-Identifier: GPL-2.0-only
//
// libFuzzer target. The first byte chooses how the rest is read; what must hold for any bytes is checked.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "pageout/tally.h"

namespace tally = pageout::tally;

namespace {

void require(bool holds, const char* what)
{
    if (holds)
        return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

bool same(const tally::Flow& a, const tally::Flow& b)
{
    return a.queued == b.queued && a.split == b.split && a.allocated == b.allocated && a.merged() == b.merged() && a.inserted == b.inserted &&
           a.dispatched == b.dispatched && a.requeued == b.requeued && a.completed == b.completed && a.failed == b.failed;
}

template <class A, class B>
bool same_counts(const A& a, const B& b)
{
    return a.events == b.events && a.plugs == b.plugs && same(a.read, b.read) && same(a.write, b.write) && same(a.flush, b.flush) &&
           same(a.discard, b.discard) && same(a.packet_read, b.packet_read) && same(a.packet_write, b.packet_write);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0)
        return 0;
    const unsigned how = data[0];
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    tally::Options o;
    o.order = how & 1;
    o.lives = how & 2;
    o.processes = how & 4;
    o.partitions = how & 8;
    o.window_bytes = how & 16 ? 200 : 1 << 20;
    o.sample_bytes = 0;
    // Wide enough that wild times do not make the fuzzer spend its time on empty rows.
    o.interval_ns = (how & 0xe0) == 0xe0 ? std::uint64_t{1} << 58 : 0;
    const tally::Summary s = tally::tally_bytes(bytes, "fuzz", o);

    require((s.verdict == tally::Verdict::ok) == (tally::exit_status(s) == 0), "a verdict has its exit status");
    std::uint64_t events = 0;
    for (const tally::Device& d : s.devices) {
        events += d.counts.events;
        tally::FlowCounts cpus;
        for (const tally::CpuCounts& c : d.cpus)
            cpus += c.counts;
        require(same_counts(d.counts, cpus), "the CPUs add up to the device");
        if (s.devices.size() == 1)
            require(same_counts(d.counts, s.total), "one device is the total");
        if (o.lives)
            for (const tally::Direction* dir : {&d.counts.read, &d.counts.write}) {
                require(dir->q2c.samples <= dir->queued.count, "no life without a queue event");
                require(dir->q2g.samples + dir->q2m.samples <= dir->queued.count + dir->split.count, "a bio gets one request");
                require(dir->d2c.samples <= dir->dispatched.count, "no D2C without D");
                require(dir->q2c.p50_ns <= dir->q2c.p99_ns && dir->q2c.p99_ns <= dir->q2c.max_ns, "percentiles rise");
            }
    }
    require(events + s.unknown_events <= s.records, "no event that was not read");
    tally::FlowCounts all;
    for (const tally::Device& d : s.devices)
        for (const tally::CpuCounts& c : d.cpus)
            all += c.counts;
    const auto adds_up = [&](const auto& parts, const char* what) {
        tally::FlowCounts sum;
        for (const auto& part : parts)
            sum += part.counts;
        require(same_counts(sum, all), what);
    };
    if (o.processes)
        adds_up(s.processes, "the processes add up");
    if (o.interval_ns)
        adds_up(s.intervals, "the intervals add up");

    // What is printed depends on little of that, and printing costs a thousand times as much as reading: a few inputs, chosen by all
    // their bytes, lest what is new in the printing fill the corpus with inputs that print.
    const std::size_t chance = std::hash<std::string_view>{}({reinterpret_cast<const char*>(data), size});
    if (chance % 2048 == 0) {
        (void)tally::to_json(s);
        (void)tally::to_text(s, {true, true});
        (void)tally::to_check(s);
        (void)tally::to_blkparse(s, how & 32);
        (void)tally::blkparse_differences(s);
    }

    // However the events are ordered, the counts are the same.
    if (chance % 4)
        return 0;
    tally::Options plain;
    plain.order = plain.lives = false;
    const tally::Summary again = tally::tally_bytes(bytes, "fuzz", plain);
    require(again.records == s.records && again.unknown_events == s.unknown_events && again.verdict == s.verdict, "one verdict");
    require(same_counts(s.total, again.total), "order does not change counts");

    return 0;
}
