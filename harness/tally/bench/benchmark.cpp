// SPDX-License-Identifier: GPL-2.0-only
//
// How fast captures are read from memory: bytes a second on one core, for what a reader may ask for.
#include <benchmark/benchmark.h>

#include <vector>

#include "generate.h"
#include "pageout/tally.h"

namespace {

using namespace pageout::tally;

const std::vector<std::byte>& capture(std::uint32_t cpus)
{
    static std::vector<std::byte> made[2];
    std::vector<std::byte>& c = made[cpus > 1];
    if (c.empty()) {
        Generator g(1, cpus, [&](std::uint32_t, std::span<const std::byte> r) { c.insert(c.end(), r.begin(), r.end()); });
        g.run(1000000);
    }
    return c;
}

void read(benchmark::State& state, const Options& options, std::uint32_t cpus)
{
    const std::vector<std::byte>& c = capture(cpus);
    std::uint64_t events = 0;
    for (auto _ : state) {
        const Summary s = tally_bytes(c, "benchmark", options);
        events += s.total.events;
        benchmark::DoNotOptimize(events);
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(c.size()));
    state.SetItemsProcessed(static_cast<std::int64_t>(events));
}

Options with(bool order, bool lives, bool processes = false)
{
    Options o;
    o.order = order;
    o.lives = lives;
    o.processes = processes;
    return o;
}

BENCHMARK_CAPTURE(read, counts_only, with(false, false), 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, in_order, with(true, false), 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, latencies, with(true, true), 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, latencies_one_cpu, with(true, true), 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, latencies_and_processes, with(true, true, true), 8)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
