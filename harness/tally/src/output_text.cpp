// SPDX-License-Identifier: GPL-2.0-only
#include "output.h"

#include <cmath>
#include <ctime>
#include <vector>

#include <fmt/format.h>

namespace pageout::tally {

std::string_view verdict_name(Verdict v)
{
    switch (v) {
    case Verdict::ok: return "ok";
    case Verdict::damage: return "damage";
    case Verdict::refused: break;
    }
    return "refused";
}

std::string_view severity_name(Severity s)
{
    switch (s) {
    case Severity::note: return "note";
    case Severity::damage: return "damage";
    case Severity::refused: break;
    }
    return "refused";
}

std::string wall_start(const Summary& s)
{
    // A damaged time may be any number: the sum needs more bits than either part.
    const __int128 ns = static_cast<__int128>(s.first_ns) + *s.wall_offset_ns;
    const auto rest = static_cast<std::int64_t>((ns % 1000000000 + 1000000000) % 1000000000);
    const auto seconds = static_cast<std::time_t>((ns - rest) / 1000000000);
    std::tm tm{};
    if (!::gmtime_r(&seconds, &tm))
        return "out of range";
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                       tm.tm_min, tm.tm_sec, rest);
}

std::string commas(std::uint64_t n)
{
    std::string s = fmt::format("{}", n);
    for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(s.size()) - 3; at > 0; at -= 3)
        s.insert(static_cast<std::size_t>(at), 1, ',');
    return s;
}

namespace {

// Binary units, and that is what they are called: 1,048,576 bytes are 1.00 MiB. Exact where a unit fits.
std::string size_text(std::uint64_t bytes)
{
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024)
        return fmt::format("{} B", bytes);
    double v = static_cast<double>(bytes);
    std::size_t u = 0;
    while (v >= 1024 && u + 1 < std::size(units)) {
        v /= 1024;
        ++u;
    }
    if (v == std::floor(v) && v < 10000)
        return fmt::format("{} {}", static_cast<std::uint64_t>(v), units[u]);
    return fmt::format("{:.2f} {}", v, units[u]);
}

std::string time_text(double ns)
{
    if (ns < 1000)
        return fmt::format("{:.0f} ns", ns);
    if (ns < 1e6)
        return fmt::format("{:.3f} us", ns / 1e3);
    if (ns < 1e9)
        return fmt::format("{:.3f} ms", ns / 1e6);
    return fmt::format("{:.3f} s", ns / 1e9);
}

std::string pid_name(const ProcessCounts& p)
{
    // A name is whatever its process made it: nothing in it may reach the terminal.
    std::string comm;
    for (const char c : p.comm)
        comm += c < 32 || c == 127 ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
    return fmt::format("{} ({})", comm.empty() ? "?" : comm, p.pid);
}

template <class D>
struct Column {
    const char* title;
    const D* d;
};

template <class C>
auto columns_of(const C& c)
{
    std::vector<Column<std::remove_cvref_t<decltype(c.read)>>> v{{"reads", &c.read}, {"writes", &c.write}};
    if (c.discard.any())
        v.push_back({"discards", &c.discard});
    if (c.flush.any())
        v.push_back({"flushes", &c.flush});
    if (c.packet_read.any())
        v.push_back({"packet reads", &c.packet_read});
    if (c.packet_write.any())
        v.push_back({"packet writes", &c.packet_write});
    return v;
}

struct Row {
    const char* label;
    Count Flow::*value;
    bool always;
};

constexpr Row rows[] = {
    {"queued (Q)", &Flow::queued, true},
    {"split (X)", &Flow::split, false},
    {"bounced (B)", &Flow::bounced, false},
    {"remapped to here (A)", &Flow::remapped, false},
    {"waited for a request (S)", &Flow::slept, false},
    {"got a request (G)", &Flow::allocated, true},
    {"merged, back (M)", &Flow::merged_back, true},
    {"merged, front (F)", &Flow::merged_front, true},
    {"merged, requests (M)", &Flow::merged_request, true},
    {"inserted (I)", &Flow::inserted, false},
    {"dispatched (D)", &Flow::dispatched, true},
    {"requeued (R)", &Flow::requeued, false},
    {"completed (C)", &Flow::completed, true},
    {"  of them failed", &Flow::failed, false},
};

template <class C>
std::string table(const C& c)
{
    const auto columns = columns_of(c);
    std::string out = fmt::format("  {:<26}", "");
    for (const auto& col : columns)
        out += fmt::format("{:>14}{:>13}", col.title, "");
    out += "\n";
    for (const Row& row : rows) {
        bool any = row.always;
        for (const auto& col : columns)
            any |= (col.d->*row.value).count != 0;
        if (!any)
            continue;
        out += fmt::format("  {:<26}", row.label);
        for (const auto& col : columns) {
            const Count& n = col.d->*row.value;
            out += fmt::format("{:>14}{:>13}", commas(n.count), n.count ? size_text(n.bytes) : "");
        }
        out += "\n";
    }
    out += fmt::format("  {:<26}", "mean size of a request");
    for (const auto& col : columns) {
        const Count& n = col.d->dispatched;
        out += fmt::format("{:>14}{:>13}", "", n.count && n.bytes ? fmt::format("{:.2f} KiB", static_cast<double>(n.bytes) / 1024 /
                                                                                        static_cast<double>(n.count)) : "");
    }
    out += "\n";
    out += fmt::format("  plugs {}, unplugs {}, by timer {}", commas(c.plugs), commas(c.unplugs), commas(c.timer_unplugs));
    if (c.driver_data)
        out += fmt::format(", driver data {}", commas(c.driver_data));
    if (c.aborted)
        out += fmt::format(", aborted {}", commas(c.aborted));
    out += "\n";
    return out;
}

// No blanks at the ends of lines.
std::string trimmed(std::string text)
{
    std::string out;
    for (const char c : text) {
        if (c == '\n')
            while (!out.empty() && out.back() == ' ')
                out.pop_back();
        out += c;
    }
    return out;
}

std::string histogram(const char* title, const Histogram& h, const char* unit)
{
    const std::uint64_t total = h.total();
    if (!total)
        return {};
    std::string out = fmt::format("  {}\n", title);
    const bool bytes = unit[0] == 'B';
    for (std::size_t i = 0; i < h.bucket.size(); ++i) {
        if (!h.bucket[i])
            continue;
        const auto edge = [&](std::uint64_t v) { return bytes ? size_text(v) : fmt::format("{} {}", commas(v), unit); };
        const std::string range = i == 0 ? edge(0) : fmt::format("{} up", edge(lowest_in_bucket(i)));
        out += fmt::format("    {:>22} {:>14} {:>6.2f} %\n", range, commas(h.bucket[i]),
                           100.0 * static_cast<double>(h.bucket[i]) / static_cast<double>(total));
    }
    return out;
}

std::string latencies(const char* title, const Direction& d)
{
    struct Line {
        const char* name;
        const Latency& l;
    };
    const Line lines[] = {{"Q2C", d.q2c}, {"Q2G", d.q2g}, {"Q2M", d.q2m}, {"G2I", d.g2i}, {"I2D", d.i2d}, {"D2C", d.d2c}};
    std::string out;
    for (const Line& line : lines) {
        const Latency& l = line.l;
        if (!l.samples)
            continue;
        if (out.empty())
            out = fmt::format("  latencies of {}{:<{}}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}\n", title, "",
                              static_cast<int>(10 - std::min<std::size_t>(10, std::string_view(title).size())), "samples", "mean", "p50", "p90",
                              "p99", "p99.9", "max");
        const auto t = [](std::uint64_t ns) { return time_text(static_cast<double>(ns)); };
        out += fmt::format("    {:<21}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{}\n", line.name, commas(l.samples), time_text(l.mean_ns()),
                           t(l.p50_ns), t(l.p90_ns), t(l.p99_ns), t(l.p999_ns), t(l.max_ns), l.exact ? "" : "  (to 1/1024)");
    }
    if (d.orphans || (d.unfinished && !out.empty()))
        out += fmt::format("    not in them: {} {}without a beginning, {} unfinished at the end\n", commas(d.orphans), "events ",
                           commas(d.unfinished));
    return out;
}

std::string identity(const char* title, const Direction& d, bool bio_based, bool lives)
{
    const std::int64_t residue = d.identity_residue();
    std::string out = fmt::format("  Q + X = D - R + M of {}: ", title);
    if (bio_based)
        return out + "does not apply, the device has no requests\n";
    const std::int64_t left = static_cast<std::int64_t>(d.queued.count + d.split.count);
    const std::int64_t right = static_cast<std::int64_t>(d.dispatched.count - d.requeued.count + d.merged().count);
    out += fmt::format("{} against {}", left, right);
    if (!residue)
        return out + ", holds\n";
    out += fmt::format(", differs by {}", residue);
    if (!d.queued.count && !d.allocated.count)
        return out + ": the capture has no queue events, they were masked out\n";
    if (!lives)
        return out + "\n";
    const std::int64_t unexplained = residue - (d.waiting + d.ended_early - d.started_before);
    std::vector<std::string> why;
    if (d.waiting)
        why.push_back(fmt::format("{} bios or requests were not dispatched when the capture ends", d.waiting));
    if (d.ended_early)
        why.push_back(fmt::format("{} ended without having been dispatched", d.ended_early));
    if (d.started_before)
        why.push_back(fmt::format("{} had been queued before the capture begins", d.started_before));
    if (unexplained)
        why.push_back(fmt::format("{} are not explained (a kernel before 5.9 does not report merges of whole requests; a filter may have been set)",
                                  unexplained));
    for (std::size_t i = 0; i < why.size(); ++i)
        out += (i ? ", " : ": ") + why[i];
    return out + "\n";
}

std::string details(const Counts& c, bool bio_based, bool histograms)
{
    bool lives = false;
    for (const Direction* d : {&c.read, &c.write, &c.discard})
        lives |= d->q2c.samples || d->d2c.samples || d->q2g.samples || d->orphans || d->unfinished;
    std::string out = identity("reads", c.read, bio_based, lives);
    out += identity("writes", c.write, bio_based, lives);
    if (c.read.depth_max || c.write.depth_max)
        out += fmt::format("  requests at the driver: reads {:.2f} on average, {} at most; writes {:.2f}, {}\n", c.read.depth_mean, c.read.depth_max,
                           c.write.depth_mean, c.write.depth_max);
    struct Named {
        const char* title;
        const Direction& d;
    };
    const std::initializer_list<Named> directions{{"reads", c.read}, {"writes", c.write}, {"discards", c.discard}};
    for (const Named& n : directions)
        if (const std::uint64_t runs = n.d.run_bytes.total())
            out += fmt::format("  runs of {} that continue one another: {}, {} on average; {:.1f} % of the dispatches continue one\n", n.title,
                               commas(runs), size_text(n.d.dispatched.bytes / runs),
                               100.0 * static_cast<double>(n.d.sequential) / static_cast<double>(n.d.dispatched.count));
    if (histograms) {
        out += histogram("requests in a plug when it was flushed", c.unplug_depth, "requests");
        for (const Named& n : directions) {
            const std::string t = n.title;
            out += histogram(("sizes of dispatched " + t).c_str(), n.d.dispatched_bytes, "B");
            out += histogram(("runs of " + t + " that continue one another").c_str(), n.d.run_bytes, "B");
            out += histogram(("seeks to " + t + " from the dispatch before").c_str(), n.d.seek_sectors, "sectors");
        }
    }
    for (const Named& n : {Named{"reads", c.read}, Named{"writes", c.write}, Named{"discards", c.discard}, Named{"flushes", c.flush}})
        out += latencies(n.title, n.d);
    return out;
}

std::string report(const Summary& s)
{
    std::string out;
    for (const Diagnostic& d : s.diagnostics)
        out += fmt::format("{}: {}\n", severity_name(d.severity), d.to_string());
    return out;
}

std::string device_name(const DeviceId& id) { return fmt::format("{},{}", id.major, id.minor); }

std::string span_line(const Summary& s)
{
    std::string out = fmt::format("{} events over {}", commas(s.total.events), time_text(static_cast<double>(s.last_ns - s.first_ns)));
    if (s.wall_offset_ns && s.total.events)
        out += fmt::format(" from {}", wall_start(s));
    if (s.byte_swapped)
        out += ", of the other byte order";
    out += s.dropped ? fmt::format(", {} dropped by the kernel", commas(*s.dropped)) : "";
    return out + "\n";
}

std::string verdict_line(const Summary& s)
{
    switch (s.verdict) {
    case Verdict::ok: return "verdict: everything was read\n";
    case Verdict::damage: return "verdict: PARTIAL, the capture is damaged; these are the totals of what could be read\n";
    case Verdict::refused: break;
    }
    return "verdict: REFUSED, at least one input was not read\n";
}

}  // namespace

std::string to_text(const Summary& s, const TextOptions& options)
{
    std::string out = span_line(s) + verdict_line(s);
    for (const Device& d : s.devices) {
        out += fmt::format("\nDevice {} ({})", device_name(d.id), d.input);
        if (!d.carries.empty()) {
            out += ", carries";
            for (const DeviceId& c : d.carries)
                out += " " + device_name(c);
        }
        out += d.above_another ? ", above another: not in the total\n" : "\n";
        out += table(d.counts);
        out += details(d.counts, d.bio_based, options.histograms);
        for (const PartitionCounts& p : d.partitions)
            out += fmt::format("\nPartition {} of {}, from sector {}\n", device_name(p.id), device_name(d.id), commas(p.start_sector)) +
                   table(p.counts);
        if (options.cpus)
            for (const CpuCounts& c : d.cpus)
                out += (c.cpu == UINT32_MAX ? fmt::format("\nUnknown CPU of {}\n", device_name(d.id))
                                            : fmt::format("\nCPU {} of {}\n", c.cpu, device_name(d.id))) + table(c.counts);
    }
    for (const ProcessCounts& p : s.processes)
        out += fmt::format("\nProcess {}\n", pid_name(p)) + table(p.counts);
    if (s.devices.size() > 1) {
        out += "\nTotal\n" + table(s.total);
        out += details(s.total, false, options.histograms);
    }
    return trimmed(std::move(out));
}

std::string to_check(const Summary& s, bool strict)
{
    std::string verdict = verdict_line(s);
    if (strict && s.verdict == Verdict::ok && !s.diagnostics.empty())
        verdict = "verdict: everything was read, but not without notes, which are failures here\n";
    return span_line(s) + fmt::format("{} records in {} bytes\n", commas(s.records), commas(s.input_bytes)) + report(s) + verdict;
}

namespace {

struct CsvColumn {
    const char* name;
    Count Flow::*value;
};
constexpr CsvColumn csv_columns[] = {
    {"queued", &Flow::queued},         {"merged_back", &Flow::merged_back}, {"merged_front", &Flow::merged_front},
    {"merged_request", &Flow::merged_request}, {"dispatched", &Flow::dispatched},
    {"requeued", &Flow::requeued},     {"completed", &Flow::completed},
};

}  // namespace

std::string csv_header()
{
    std::string out = "start_s,end_s,device,input";
    for (const char* direction : {"read", "write", "discard", "flush", "packet_read", "packet_write"})
        for (const CsvColumn& c : csv_columns)
            out += fmt::format(",{0}_{1},{0}_{1}_bytes", direction, c.name);
    return out + ",read_depth_mean,read_depth_max,write_depth_mean,write_depth_max,plugs,unplugs,timer_unplugs,events\n";
}

std::string csv_row(const Interval& i, std::uint64_t interval_ns)
{
    const auto seconds = [](std::uint64_t ns) { return fmt::format("{}.{:09}", ns / 1000000000, ns % 1000000000); };
    std::string input = i.input;
    if (input.find_first_of(",\"\n\r") != std::string::npos) {
        std::string quoted = "\"";
        for (const char c : input)
            quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
        input = quoted + "\"";
    }
    std::string out = fmt::format("{},{},{}:{},{}", seconds(i.start_ns), seconds(i.start_ns + interval_ns), i.device.major, i.device.minor, input);
    const FlowCounts& n = i.counts;
    for (const Flow* f : {&n.read, &n.write, &n.discard, &n.flush, &n.packet_read, &n.packet_write})
        for (const CsvColumn& c : csv_columns)
            out += fmt::format(",{},{}", (f->*c.value).count, (f->*c.value).bytes);
    return out + fmt::format(",{:.6f},{},{:.6f},{},{},{},{},{}\n", i.read_depth_mean, i.read_depth_max, i.write_depth_mean, i.write_depth_max,
                             i.counts.plugs, i.counts.unplugs, i.counts.timer_unplugs, i.counts.events);
}

}  // namespace pageout::tally
