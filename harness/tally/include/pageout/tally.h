// SPDX-License-Identifier: GPL-2.0-only
//
// tally: reads blktrace captures and accounts for every request in them.
//
// One call reads everything: tally() for files, tally_bytes() for a capture that is in memory already. Neither throws for
// what an input holds or lacks: a Summary always comes back, with what could be read, a verdict, and a diagnostic for
// everything that was wrong. They throw std::bad_alloc only.
//
//     const auto summary = pageout::tally::tally({"/tmp/run/sda"});
//     if (summary.verdict == pageout::tally::Verdict::ok)
//         use(summary.total.read.dispatched.count, summary.total.read.dispatched.bytes);
//
// Units are in the names: _bytes, _sectors (512 bytes), _ns. Counts of events have none. docs/blktally.md says what each count
// means and how it differs from blkparse's line of the same name.
#ifndef PAGEOUT_TALLY_H
#define PAGEOUT_TALLY_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pageout::tally {

// Events of one kind, and the bytes they carried.
struct Count {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    Count& operator+=(const Count& o)
    {
        count += o.count;
        bytes += o.bytes;
        return *this;
    }
    bool operator==(const Count&) const = default;
};

// Powers of two: bucket[0] counts the value 0, bucket[k] counts values in [2^(k-1), 2^k).
struct Histogram {
    std::array<std::uint64_t, 65> bucket{};
    std::uint64_t total() const;
    void operator+=(const Histogram& o);
};

// One stage of the life of requests, in nanoseconds. The percentiles are exact (nearest rank) unless exact is false, which
// happens only when samples had to be spilled to a temporary file and that failed; then they are at most 1/1024 too large.
struct Latency {
    std::uint64_t samples = 0;
    std::uint64_t sum_ns = 0;
    std::uint64_t min_ns = 0, p50_ns = 0, p90_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
    bool exact = true;
    double mean_ns() const { return samples ? static_cast<double>(sum_ns) / static_cast<double>(samples) : 0.0; }
};

// What became of the requests of one direction (or of all flushes, or of all discards).
struct Flow {
    Count queued;          // Q: bios that arrived
    Count split;           // X: extra bios made by splitting
    Count bounced;         // B
    Count remapped;        // A: arrived here from a partition or a device above
    Count allocated;       // G: bios that got a request of their own
    Count slept;           // S: had to wait for a request
    Count merged_back;     // M of a bio: appended to a request
    Count merged_front;    // F: put before a request
    Count merged_request;  // M of a whole request into another; its bytes were counted before, bio by bio
    Count inserted;        // I: handed to the scheduler
    Count dispatched;      // D: sent to the driver; a requeued request counts again each time
    Count requeued;        // R: given back by the driver
    Count completed;       // C: a request completed in parts counts once for each part
    Count failed;          // those of completed whose error was not 0

    Count merged_bio() const;  // back and front
    Count merged() const;      // and whole requests: blkparse's "Merges"
    // (Q + X) - (D - R + M): 0 when every bio is accounted for, up to those in flight at either end of the capture.
    std::int64_t identity_residue() const;
    void operator+=(const Flow& o);
    bool any() const;
};

// The same with what only makes sense for a device or for all devices.
struct Direction : Flow {
    Histogram dispatched_bytes;  // sizes of the dispatched requests
    // Filled when Options::order is set, for reads and writes: the lengths of runs of dispatches of this direction in which each
    // starts where the one before ended; how many continued such a run; and how far each dispatch started from the end of the
    // device's dispatch before it, whichever direction that was.
    Histogram run_bytes;
    std::uint64_t sequential = 0;
    Histogram seek_sectors;
    // Requests at the driver, D to C or R, where Options::order is set; of devices, and of the total where that is one device's.
    std::uint64_t depth_max = 0;
    double depth_mean = 0;  // over time, from the device's first event to its last

    // Filled when Options::lives is set.
    Latency q2g, q2m, g2i, i2d, d2c, q2c;
    std::uint64_t orphans = 0;     // events whose earlier half was not in the capture; in no latency
    std::uint64_t unfinished = 0;  // bios that never completed in the capture (and requests whose bios it does not hold)
    // What identity_residue() consists of: waiting + ended_early - started_before, unless something is unexplained.
    std::int64_t waiting = 0;         // bios without a request and requests not at the driver when the capture ends
    std::int64_t ended_early = 0;     // bios and requests completed without having been dispatched
    std::int64_t started_before = 0;  // bios and requests that appear without having been queued

    // Adds counts and histograms, orphans and unfinished; percentiles and depths cannot be added and are left alone.
    void operator+=(const Direction& o);
};

template <class D>
struct BasicCounts {
    D read, write;  // ordinary requests; write zeroes and zone appends are writes
    D flush;        // empty flushes: written by Q, read by D and C in blkparse's eyes
    D discard;      // discards and secure erases
    D packet_read, packet_write;  // passthrough commands
    std::uint64_t plugs = 0;
    std::uint64_t unplugs = 0;        // by the submitter
    std::uint64_t timer_unplugs = 0;  // by the timer
    std::uint64_t driver_data = 0;
    std::uint64_t aborted = 0;
    std::uint64_t events = 0;  // all of the above; notes are not events
    std::uint64_t notes = 0;

    template <class E>
    void operator+=(const BasicCounts<E>& o)
    {
        read += o.read;
        write += o.write;
        flush += o.flush;
        discard += o.discard;
        packet_read += o.packet_read;
        packet_write += o.packet_write;
        plugs += o.plugs;
        unplugs += o.unplugs;
        timer_unplugs += o.timer_unplugs;
        driver_data += o.driver_data;
        aborted += o.aborted;
        events += o.events;
        notes += o.notes;
    }
};

// The counts of one CPU, process, partition or interval.
using FlowCounts = BasicCounts<Flow>;

// The counts of one device, or of all of them.
struct Counts : BasicCounts<Direction> {
    Histogram unplug_depth;  // requests in the plug when it was flushed
    void operator+=(const Counts& o)
    {
        BasicCounts::operator+=(o);
        unplug_depth += o.unplug_depth;
    }
};

struct DeviceId {
    std::uint32_t major = 0, minor = 0;
    auto operator<=>(const DeviceId&) const = default;
};

struct CpuCounts {
    std::uint32_t cpu = 0;
    FlowCounts counts;
};

struct ProcessCounts {
    std::uint32_t pid = 0;
    std::string comm;  // empty: no process note told its name
    FlowCounts counts;
};

struct PartitionCounts {
    DeviceId id;
    std::uint64_t start_sector = 0;
    FlowCounts counts;
};

struct Device {
    DeviceId id;
    std::string input;  // the basename, file or stream it came from
    Counts counts;
    std::vector<CpuCounts> cpus;              // in order of number
    std::vector<PartitionCounts> partitions;  // Options::partitions; in order of start
    std::vector<DeviceId> carries;            // devices whose bios arrive here by remapping (partitions, device mapper)
    bool above_another = false;               // its bios are bios of another device of the capture again; not in the total
    bool bio_based = false;                   // bios were completed and nothing was ever dispatched
    std::optional<std::uint64_t> first_ns, last_ns;  // of its events, on the traced machine's monotonic clock
};

// How bad a diagnostic is.
enum class Severity {
    note,    // valid, but worth knowing; counts are right
    damage,  // the capture is not what the kernel wrote: the counts are of what could be read
    refused  // the input could not be opened or is something else
};

struct Diagnostic {
    Severity severity = Severity::note;
    std::string file;                     // "<stdin>" for standard input
    std::optional<std::uint64_t> offset;  // byte in the (decompressed) file
    std::optional<std::uint64_t> record;  // number of the record in the file, from 1
    std::string code;                     // stable short name, as "bad-magic"
    std::string text;                     // what is wrong, and what to do if anything can be done
    std::uint64_t times = 1;              // how often; the place is the first one's
    std::string to_string() const;        // "FILE: record 9, byte 416: ..."
};

enum class Verdict {
    ok,      // everything was read
    damage,  // totals are partial
    refused  // at least one input could not be opened or is no capture
};

// Requests of one interval, for the CSV.
struct Interval {
    std::string input;
    DeviceId device;
    std::uint64_t index = 0;     // number of the interval, from the capture's first event
    std::uint64_t start_ns = 0;  // since the capture's first event
    FlowCounts counts;
    double read_depth_mean = 0, write_depth_mean = 0;  // requests at the driver, over the interval
    std::uint64_t read_depth_max = 0, write_depth_max = 0;
};

struct Options {
    bool order = true;        // merge the CPUs' events in time: depth, seeks, runs
    bool lives = true;        // follow each request (implies order): latencies, orphans
    bool processes = false;   // count by process too
    bool partitions = false;  // count by partition too
    std::uint64_t interval_ns = 0;  // nonzero: fill Summary::intervals (implies order)
    std::size_t window_bytes = 24u << 20;  // how far a merged stream's events are put in order again
    std::size_t sample_bytes = 16u << 20;  // latency samples kept in memory before they go to a temporary file in $TMPDIR
    std::optional<std::uint64_t> dropped;  // the kernel's dropped count, where the caller knows it
    std::function<void(Interval&&)> on_interval;       // takes each interval instead of Summary::intervals
    std::function<void(std::uint64_t)> on_progress;  // called now and then with the bytes read so far
};

// What blkparse counts, in its own arithmetic: KiB and the bytes that are left over, apart. [0] is reads, [1] writes.
struct BlkparseStats {
    struct Item {
        std::uint64_t count = 0;
        std::uint64_t kb = 0;
        std::uint64_t b = 0;
    };
    std::array<Item, 2> queued, dispatched, requeued, completed, merged;
    std::array<Item, 2> pc_queued, pc_dispatched, pc_requeued, pc_completed;
    std::uint64_t io_unplugs = 0, timer_unplugs = 0;
    void operator+=(const BlkparseStats& o);
};

// One of blkparse's devices: all files of a basename, or one device of a merged stream.
struct BlkparseDevice {
    std::string name;
    std::vector<std::pair<std::uint32_t, BlkparseStats>> cpus;  // those with events, in order of number
    std::array<std::uint32_t, 2> depth_max{};
    std::uint64_t events = 0;
    std::uint64_t first_ns = 0, last_ns = 0;
    std::uint64_t skips = 0, skipped_events = 0;
};

struct Summary {
    Verdict verdict = Verdict::ok;
    bool partial() const { return verdict != Verdict::ok; }
    std::vector<Diagnostic> diagnostics;

    // All devices of the capture, except those whose bios another device of the capture carries (see above_another).
    Counts total;
    std::vector<Device> devices;  // in order of number
    std::vector<ProcessCounts> processes;
    std::vector<Interval> intervals;
    std::uint64_t interval_ns = 0;

    std::uint64_t records = 0;  // events and notes
    std::uint64_t input_bytes = 0;  // after decompression
    std::uint64_t unknown_events = 0;
    std::optional<std::uint64_t> dropped;
    std::uint64_t first_ns = 0, last_ns = 0;      // monotonic, of events
    std::optional<std::int64_t> wall_offset_ns;  // wall clock = monotonic + this; from the capture's timestamp note
    bool byte_swapped = false;                    // the traced machine's byte order is not this one's
    std::vector<BlkparseDevice> blkparse;         // for to_blkparse(); depth is filled when Options::order is set
    std::uint64_t cgroup_events = 0;    // events with a cgroup's number
    std::uint64_t unsorted_events = 0;  // of streams, where Options::order is set: too late for blkparse to sort, which has 512 at a time
    std::vector<std::string> messages;            // the first 64 messages
};

// Reads the inputs as one capture. Each is a basename of NAME.blktrace.N (all that exist are read), a file, or "-" for standard
// input; plain, gzip or zstd.
Summary tally(std::span<const std::string> inputs, const Options& options = {});
inline Summary tally(std::initializer_list<std::string> inputs, const Options& options = {})
{
    return tally(std::span(inputs.begin(), inputs.size()), options);
}
// Reads a merged stream (as `blktrace -o -` writes it) that is in memory; name appears in diagnostics.
Summary tally_bytes(std::span<const std::byte> stream, std::string_view name, const Options& options = {});

std::string to_json(const Summary& summary);  // schema "blktally/1": docs/blktally.md
struct TextOptions {
    bool cpus = false;        // a table for each CPU, too
    bool histograms = false;  // sizes, runs, seeks, plugs
};
std::string to_text(const Summary& summary, const TextOptions& options = {});
std::string to_check(const Summary& summary, bool strict = false);  // the damage and order report alone
// The blocks that `blkparse -f '' -i NAME` ends with, byte for byte; with commas as blkparse prints them where the locale en_US
// is installed, without as it does elsewhere.
std::string to_blkparse(const Summary& summary, bool commas = false);
// In what blkparse 1.2.0 itself would print something else for this capture, a sentence each.
std::vector<std::string> blkparse_differences(const Summary& summary);
// One of those blocks, from its counters.
std::string blkparse_block(std::string_view title, const BlkparseStats& stats,
                           const std::array<std::uint32_t, 2>* depth_max, bool commas = false);
std::string csv_header();
std::string csv_row(const Interval& interval, std::uint64_t interval_ns);
// 0: everything read; 1: an input refused; 3: damage, or with strict any note.
int exit_status(const Summary& summary, bool strict = false);

}  // namespace pageout::tally

#endif
