// SPDX-License-Identifier: GPL-2.0-only
//
// The summary blocks as blkparse 1.2.0 prints them, its arithmetic included: docs/blktally.md says what is odd about it.
#include <fmt/format.h>

#include "output.h"
#include "pageout/tally.h"

namespace pageout::tally {

namespace {

std::string grouped(std::uint64_t n, bool with_commas) { return with_commas ? commas(n) : fmt::format("{}", n); }

std::string wide(std::uint64_t n, bool commas) { return fmt::format("{:>8}", grouped(n, commas)); }

// Above a million, thousands (not 1024s) are cut off, and the letter moves on; there is no T.
std::string scaled(std::uint64_t n, unsigned letter, bool commas)
{
    static constexpr std::string_view letters[] = {"", "K", "M", "G", "P"};
    while (n > 1000000 && letter < 4) {
        ++letter;
        n /= 1000;
    }
    return wide(n, commas) + std::string(letters[letter]);
}

std::string size_of(const BlkparseStats::Item& i, bool commas) { return scaled(i.kb + (i.b >> 10), 1, commas) + "iB"; }

}  // namespace

std::string blkparse_block(std::string_view title, const BlkparseStats& s, const std::array<std::uint32_t, 2>* depth_max, bool commas)
{
    std::string out = fmt::format("{}\n", title);
    const auto n = [&](const BlkparseStats::Item& i) { return scaled(i.count, 0, commas); };
    const auto both = [&](std::string_view read, std::string_view write, const std::array<BlkparseStats::Item, 2>& i) {
        out += fmt::format(" {:<17}{}, {}\t {:<18}{}, {}\n", read, n(i[0]), size_of(i[0], commas), write, n(i[1]), size_of(i[1], commas));
    };
    const auto counts = [&](std::string_view read, std::string_view write, const std::array<BlkparseStats::Item, 2>& i) {
        out += fmt::format(" {:<17}{}\t\t {:<18}{}\n", read, n(i[0]), write, n(i[1]));
    };
    const auto plain = [&](std::string_view left, std::uint64_t a, std::string_view right, std::uint64_t b) {
        out += fmt::format(" {:<17}{}        \t {:<18}{}\n", left, wide(a, commas), right, wide(b, commas));
    };
    both("Reads Queued:", "Writes Queued:", s.queued);
    both("Read Dispatches:", "Write Dispatches:", s.dispatched);
    counts("Reads Requeued:", "Writes Requeued:", s.requeued);
    both("Reads Completed:", "Writes Completed:", s.completed);
    both("Read Merges:", "Write Merges:", s.merged);
    if (depth_max)
        plain("Read depth:", (*depth_max)[0], "Write depth:", (*depth_max)[1]);
    bool packets = false;
    for (const auto* items : {&s.pc_queued, &s.pc_dispatched, &s.pc_requeued, &s.pc_completed})
        packets |= (*items)[0].count || (*items)[1].count;
    if (packets) {
        both("PC Reads Queued:", "PC Writes Queued:", s.pc_queued);
        both("PC Read Disp.:", "PC Write Disp.:", s.pc_dispatched);
        counts("PC Reads Req.:", "PC Writes Req.:", s.pc_requeued);
        counts("PC Reads Compl.:", "PC Writes Compl.:", s.pc_completed);
    }
    plain("IO unplugs:", s.io_unplugs, "Timer unplugs:", s.timer_unplugs);
    return out;
}

std::vector<std::string> blkparse_differences(const Summary& summary)
{
    std::vector<std::string> list;
    if (summary.cgroup_events)
        list.push_back(fmt::format("blkparse 1.2.0 does not count the {} events that have a cgroup's number; they are counted here", summary.cgroup_events));
    if (summary.unsorted_events)
        list.push_back(fmt::format("{} events come after later ones of other CPUs, further than blkparse sorts a stream: its depths are of another "
                                   "order", summary.unsorted_events));
    std::string said;  // of one file it is enough once
    for (const Diagnostic& d : summary.diagnostics) {
        if (d.code == "hole")
            list.push_back(fmt::format("blkparse reads {} up to the first CPU without a file only", d.file));
        else if (d.code == "cpu-mismatch" && said != d.file)
            list.push_back(fmt::format("blkparse drops the events of other CPUs in {}", d.file));
        else if ((d.code == "bad-magic" || d.code == "bad-length") && said != d.file)
            list.push_back(fmt::format("blkparse stops where {} is damaged, mostly in silence", d.file));
        else
            continue;
        said = d.file;
    }
    return list;
}

std::string to_blkparse(const Summary& summary, bool commas)
{
    std::string out;
    bool first = true;
    for (const BlkparseDevice& d : summary.blkparse) {
        if (!first)
            out += "\n";
        first = false;
        // Its buffers: 31 characters of a name within 46 of a title, 47 in the line on events.
        const std::string name = d.name.substr(0, 31);
        BlkparseStats total;
        for (const auto& [cpu, stats] : d.cpus) {
            total += stats;
            out += blkparse_block(fmt::format("CPU{} ({}):", static_cast<std::int32_t>(cpu), name).substr(0, 46), stats, &d.depth_max, commas);
        }
        if (d.cpus.size() > 1)
            out += "\n" + blkparse_block(fmt::format("Total ({}):", name).substr(0, 46), total, nullptr, commas);
        // The bytes are added to KiB as if they were thousandths of them.
        const std::uint64_t msec = (d.last_ns - d.first_ns) / 1000000;
        const auto rate = [&](const BlkparseStats::Item& i) { return msec ? (1000 * i.kb + i.b) / msec : 0; };
        out += fmt::format("\nThroughput (R/W): {}KiB/s / {}KiB/s\n", grouped(rate(total.completed[0]), commas),
                           grouped(rate(total.completed[1]), commas));
        out += fmt::format("Events ({}): {} entries\n", d.name.substr(0, 47), grouped(d.events, commas));
        const double share = d.skips || d.events ? 100.0 * (static_cast<double>(d.skipped_events) /
                                                           static_cast<double>(d.events + d.skipped_events)) : 0.0;
        out += fmt::format("Skips: {} forward ({} - {:5.1f}%)\n", grouped(d.skips, commas), grouped(d.skipped_events, commas), share);
    }
    return out;
}

}  // namespace pageout::tally
