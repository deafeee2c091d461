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
struct Direction {
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

    Histogram dispatched_bytes;  // sizes of the dispatched requests
    // Neighbouring dispatches: how many in a row, each starting where the one before ended, and how far the others jumped.
    // Filled when Options::order is set.
    Histogram run_bytes;
    Histogram seek_sectors;
    std::uint64_t sequential = 0;  // dispatches that continued the one before
    // Requests at the driver, D to C or R. Filled when Options::order is set.
    std::uint64_t depth_max = 0;
    double depth_mean = 0;  // over time, from the first event to the last

    Latency q2g, q2m, g2i, i2d, d2c, q2c;  // filled when Options::lives is set
    std::uint64_t orphans = 0;             // events whose earlier half was not in the capture; in no latency
    std::uint64_t unfinished = 0;          // bios queued or requests made that never completed in the capture

    Count merged_bio() const;
    Count merged() const;
    // (Q + X) - (D - R + M): 0 when every bio is accounted for, up to those in flight at either end of the capture.
    std::int64_t identity_residue() const;
    void operator+=(const Direction& o);  // adds counts and histograms; latencies and mean depths are left out
};

// The counts of one device, CPU or process, or of all of them.
struct Counts {
    Direction read, write;  // ordinary requests; write zeroes and zone appends are writes
    Direction flush;        // empty flushes: written by Q, read by D and C in blkparse's eyes
    Direction discard;      // discards and secure erases
    Direction packet_read, packet_write;  // passthrough commands
    std::uint64_t plugs = 0;
    std::uint64_t unplugs = 0;        // by the submitter
    std::uint64_t timer_unplugs = 0;  // by the timer
    Histogram unplug_depth;           // requests in the plug when it was flushed
    std::uint64_t driver_data = 0;
    std::uint64_t aborted = 0;
    std::uint64_t events = 0;  // all of the above and the events of kinds not counted apart; notes are not events
    std::uint64_t notes = 0;

    void operator+=(const Counts& o);
};

struct DeviceId {
    std::uint32_t major = 0, minor = 0;
    auto operator<=>(const DeviceId&) const = default;
};

struct CpuCounts {
    std::uint32_t cpu = 0;
    Counts counts;
};

struct ProcessCounts {
    std::uint32_t pid = 0;
    std::string comm;  // empty: no process note told its name
    Counts counts;
};

struct PartitionCounts {
    DeviceId id;
    std::uint64_t start_sector = 0;
    Counts counts;
};

struct Device {
    DeviceId id;
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
    refused  // at least one input was not read at all
};

// Requests of one interval, for the CSV.
struct Interval {
    DeviceId device;
    std::uint64_t index = 0;  // interval number from the capture's first event
    Counts counts;
};

struct Options {
    bool order = true;        // merge the CPUs' events in time: depth, seeks, runs
    bool lives = true;        // follow each request (implies order): latencies, orphans
    bool processes = false;   // count by process too
    bool partitions = false;  // count by partition too
    std::uint64_t interval_ns = 0;  // nonzero: fill Summary::intervals (implies order)
    std::size_t window_bytes = 24u << 20;  // how far a merged stream's events are put in order again
    std::optional<std::uint64_t> dropped;  // the kernel's dropped count, where the caller knows it
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
    std::vector<std::string> messages;            // the first 64 messages
};

// Reads the inputs as one capture. Each is a basename of NAME.blktrace.N (all that exist are read), a file, or "-" for standard
// input; plain, gzip or zstd.
Summary tally(std::span<const std::string> inputs, const Options& options = {});
// Reads a merged stream (as `blktrace -o -` writes it) that is in memory; name appears in diagnostics.
Summary tally_bytes(std::span<const std::byte> stream, std::string_view name, const Options& options = {});

std::string to_json(const Summary& summary);  // schema "blktally/1": docs/blktally.md
std::string to_text(const Summary& summary);
// 0: everything read; 1: an input refused; 3: damage, or with strict any note.
int exit_status(const Summary& summary, bool strict = false);

}  // namespace pageout::tally

#endif
