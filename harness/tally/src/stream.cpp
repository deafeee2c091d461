// SPDX-License-Identifier: GPL-2.0-only
#include "stream.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/format.h>

namespace pageout::tally {

namespace {

constexpr std::size_t head_bytes = sizeof(Record);

// No machine has more CPUs than this; a larger number is a damaged field.
constexpr std::uint32_t most_cpus = 65536;

std::uint32_t raw_u32(const std::byte* p)
{
    std::uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

std::string hex(std::uint32_t v) { return fmt::format("0x{:08x}", v); }

bool is_text(std::string_view s)
{
    return !s.empty() && std::all_of(s.begin(), s.end(), [](unsigned char c) { return c >= 32 || c == '\n' || c == '\t' || c == '\r'; });
}

// "  8,0    1        1     0.000000000  4711  Q   R 2048 + 8 [cat]"
bool is_blkparse_line(std::string_view s)
{
    std::size_t i = 0;
    const auto spaces = [&] {
        while (i < s.size() && s[i] == ' ')
            ++i;
    };
    const auto digits = [&] {
        const std::size_t from = i;
        while (i < s.size() && std::isdigit(static_cast<unsigned char>(s[i])))
            ++i;
        return i > from;
    };
    spaces();
    if (!digits() || i >= s.size() || s[i++] != ',' || !digits())
        return false;
    spaces();
    if (!digits())
        return false;
    spaces();
    if (!digits())
        return false;
    spaces();
    return digits() && i < s.size() && s[i] == '.';
}

// What a file is that is not a capture; empty: nothing known.
std::string foreign(std::string_view s)
{
    const auto starts = [&](std::string_view with) { return s.substr(0, with.size()) == with; };
    if (starts("fio version "))
        return "a fio iolog, not a blktrace capture; fio made it from a capture, so read that one";
    if (starts("PERFILE2") || starts("2ELIFREP"))
        return "a perf.data file; blktally reads blktrace's own binary captures";
    if (starts(std::string_view("\x17\x08\x44tracing", 10)))
        return "a trace-cmd file (trace.dat); blktally reads blktrace's own binary captures";
    if (starts("\xfd" "7zXZ"))
        return "xz data; decompress it first (xz -dc FILE | blktally -)";
    if (starts("BZh"))
        return "bzip2 data; decompress it first (bzip2 -dc FILE | blktally -)";
    if (starts("\x04\x22\x4d\x18"))
        return "lz4 data; decompress it first (lz4 -dc FILE | blktally -)";
    if (starts("\x1f\x8b") || starts("\x28\xb5\x2f\xfd"))
        return "compressed twice; decompress it once first";
    if (starts("PK\x03\x04"))
        return "a zip archive; unpack it first";
    if (s.size() >= 262 && s.substr(257, 5) == "ustar")
        return "a tar archive; unpack it first";
    if (starts("\x7f" "ELF"))
        return "an ELF binary, not a blktrace capture";
    if (starts("SQLite format 3"))
        return "an SQLite database, not a blktrace capture";
    if (starts("# tracer:"))
        return "ftrace's text output; blktally reads blktrace's own binary captures";
    const std::string_view first_lines = s.substr(0, 4096);
    if (is_text(first_lines)) {
        if (is_blkparse_line(first_lines))
            return "blkparse's text output; blktally reads the binary capture that blkparse read (NAME.blktrace.N)";
        if (starts("Input file ") || first_lines.find("Reads Queued:") != std::string_view::npos)
            return "blkparse's text output; blktally reads the binary capture that blkparse read (NAME.blktrace.N)";
        if (starts("==") && first_lines.find("All Devices") != std::string_view::npos)
            return "btt's text output; blktally reads the binary capture";
        if (starts("{") || starts("["))
            return "JSON text, not a blktrace capture";
        return "text, not a blktrace capture";
    }
    return {};
}

}  // namespace

Stream::Stream(Engine& engine, Diagnostics& diagnostics, std::unique_ptr<Source> source, StreamSetup setup)
    : engine_(engine), diagnostics_(diagnostics), source_(std::move(source)), setup_(std::move(setup)),
      capacity_(std::max(setup_.buffer_bytes, least_buffer))
{
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
    data_ = buffer_.get();
}

Stream::Stream(Engine& engine, Diagnostics& diagnostics, std::span<const std::byte> memory, StreamSetup setup)
    : engine_(engine), diagnostics_(diagnostics), setup_(std::move(setup)), data_(memory.data()), end_(memory.size()), eof_(true)
{
    engine_.input_bytes += memory.size();
}

void Stream::damage(std::string_view code, std::string text, std::optional<std::uint64_t> at, std::optional<std::uint64_t> record)
{
    diagnostics_.add(Severity::damage, setup_.name, at ? at : offset(), record ? record : records_ + 1, code, std::move(text));
}

// Makes n bytes available from pos_, as far as there are any.
bool Stream::ensure(std::size_t n)
{
    if (available() >= n)
        return true;
    if (eof_)
        return false;
    if (pos_) {
        std::memmove(buffer_.get(), buffer_.get() + pos_, available());
        base_ += pos_;
        end_ -= pos_;
        pos_ = 0;
    }
    const std::size_t wanted = std::min(capacity_ - end_, std::max(n - available(), read_bytes));
    const std::size_t got = source_->read(std::span(buffer_.get() + end_, wanted));
    eof_ = got < wanted;
    end_ += got;
    engine_.input_bytes += got;
    if (setup_.progress && *setup_.progress)
        (*setup_.progress)(engine_.input_bytes);
    return available() >= n;
}

// Is there a whole record here, followed by another or by the end?
bool Stream::record_at(std::size_t pos, bool swapped, bool& needs_more) const
{
    needs_more = false;
    const std::size_t left = end_ - pos;
    if (left < head_bytes) {
        needs_more = !eof_;
        return false;
    }
    Record r = load(data_ + pos);
    if (swapped)
        swap_bytes(r);
    if (r.magic != magic || !known_action(r.action) || r.cpu >= most_cpus)
        return false;
    if (setup_.cpu && r.cpu != *setup_.cpu)
        return false;
    const std::size_t total = head_bytes + r.pdu_len;
    if (left < total + 4) {
        if (!eof_) {
            needs_more = true;
            return false;
        }
        return left == total;
    }
    const std::uint32_t m = raw_u32(data_ + pos + total);
    return (swapped ? __builtin_bswap32(m) : m) == magic;
}

// Finds the next record at or after pos_ + from, says what was skipped, and stands there.
bool Stream::resync(std::size_t from, std::string why)
{
    const std::uint64_t bad_at = offset();
    const std::uint64_t bad_record = records_ + 1;
    std::uint64_t skipped = from;
    std::size_t i = pos_ + from;
    for (;;) {
        if (i + 4 > end_) {
            pos_ = std::min(i, end_);
            if (!ensure(head_bytes)) {
                // Nothing more to be found.
                skipped = base_ + end_ - bad_at;
                pos_ = end_;
                if (!started_)
                    return false;
                damage("bad-magic", fmt::format("{}; no record follows in the {} bytes up to the end", why, skipped), bad_at, bad_record);
                return true;
            }
            i = pos_;
        }
        // The first byte of the magic in either byte order.
        const auto* p = reinterpret_cast<const unsigned char*>(data_);
        const unsigned char first = static_cast<unsigned char>(raw_magic_ & 0xff);
        bool hit = false;
        for (; i + 4 <= end_; ++i) {
            if (started_ ? p[i] != first : (p[i] != (magic & 0xff) && p[i] != (magic >> 24)))
                continue;
            const std::uint32_t m = raw_u32(data_ + i);
            if (started_ ? m == raw_magic_ : (m == magic || m == __builtin_bswap32(magic))) {
                hit = true;
                break;
            }
        }
        if (!hit)
            continue;
        const bool swapped = started_ ? swapped_ : raw_u32(data_ + i) != magic;
        bool needs_more;
        if (record_at(i, swapped, needs_more)) {
            pos_ = i;
            skipped = offset() - bad_at;
            if (!started_) {
                swapped_ = swapped;
                raw_magic_ = swapped ? __builtin_bswap32(magic) : magic;
            }
            damage("bad-magic", fmt::format("{}; {} bytes are no record and were skipped, reading goes on at byte {}", why, skipped,
                                            offset()), bad_at, bad_record);
            return true;
        }
        if (needs_more) {
            pos_ = i;
            (void)ensure(head_bytes + UINT16_MAX + 4);
            i = pos_;
            if (record_at(i, swapped, needs_more))
                continue;  // and be found again
        }
        ++i;
    }
}

// Looks at the first bytes: byte order, version, or what the file is instead.
bool Stream::begin()
{
    if (!ensure(4)) {
        if (available())
            damage("cut", fmt::format("the file ends after {} bytes; a record has {}", available(), head_bytes));
        finished_ = true;
        return false;
    }
    const std::uint32_t first = raw_u32(data_);
    const std::uint32_t other = __builtin_bswap32(first);
    if (first == magic || other == magic) {
        swapped_ = first != magic;
        raw_magic_ = first;
        started_ = true;
        engine_.byte_swapped |= swapped_;
        return true;
    }
    (void)ensure(4096);
    const std::string what =
        foreign({reinterpret_cast<const char*>(data_ + pos_), std::min<std::size_t>(available(), 4096)});
    if (!what.empty()) {
        diagnostics_.add(Severity::refused, setup_.name, std::nullopt, std::nullopt, "foreign", "this is " + what);
        finished_ = true;
        return false;
    }
    if (!resync(0, fmt::format("bad magic {}: the file does not begin with a record", hex(first)))) {
        for (const std::uint32_t m : {first, other})
            if ((m & magic_mask) == magic_base) {
                const std::uint32_t v = m & 0xff;
                damage("version",
                       fmt::format("this is version {} of the blktrace format, which is not supported{}; blktally reads version {}", v,
                                   v == 8 ? " (BLKTRACESETUP2's struct blk_io_trace2; a blktrace without it writes version 7)" : "", version), 0, 1);
                finished_ = true;
                return false;
            }
        damage("no-records", fmt::format("bad magic {}, and no record of version {} anywhere: this is no blktrace capture, or all of it is "
                                         "damaged", hex(first), version), 0, 1);
        finished_ = true;
        return false;
    }
    started_ = true;
    engine_.byte_swapped |= swapped_;
    return true;
}

// May this record be believed although no record follows where it ends?
bool Stream::plausible(const Record& r) const
{
    if (!known_action(r.action) || r.cpu >= most_cpus || (setup_.cpu && r.cpu != *setup_.cpu))
        return false;
    const Slot* known = engine_.find_slot(setup_.group, r.device, r.cpu);
    if (!known)
        return records_ == 0;
    const Slot& s = *known;
    if (r.action & cat_notify)
        return true;
    return r.time >= s.last_time && (!s.sequence_known || s.next_sequence == r.sequence);
}

void Stream::finish()
{
    finished_ = true;
    // Told now, when the records before it have been counted.
    if (source_ && !source_->error().empty())
        damage("unreadable", fmt::format("reading ended here: {}", source_->error()), base_ + end_);
    buffer_.reset();
    data_ = nullptr;
    pos_ = end_ = 0;
    source_.reset();
}

inline Slot* Stream::slot_of(const Record& r)
{
    const Cached& c = cache_[(r.device * 31 + r.cpu) & 255];
    if (c.slot && c.device == r.device && c.cpu == r.cpu) [[likely]]
        return c.slot;
    return new_slot(r);
}

// Only numbers without a fault get into the cache.
Slot* Stream::new_slot(const Record& r)
{
    if (setup_.cpu && r.cpu != *setup_.cpu)
        damage("cpu-mismatch", fmt::format("the record says CPU {} but stands in the file of CPU {}; it is counted for CPU {}", r.cpu,
                                           *setup_.cpu, r.cpu));
    if (r.cpu >= most_cpus) {
        damage("bad-cpu", fmt::format("CPU number {} is impossible; the event is counted for an unknown CPU", r.cpu));
        return engine_.slot(setup_.group, r.device, Engine::unknown_cpu);
    }
    Slot* slot = engine_.slot(setup_.group, r.device, r.cpu);
    if (!setup_.cpu || r.cpu == *setup_.cpu)
        cache_[(r.device * 31 + r.cpu) & 255] = {r.device, r.cpu, slot};
    return slot;
}

// The kernel numbers each device's events on each CPU from 1, without a gap: what it could not store has no number.
void Stream::number(Slot& s, const Record& r)
{
    if (!s.sequence_known) {
        s.sequence_known = true;
        if (r.sequence != 1)
            diagnostics_.add(Severity::note, setup_.name, offset(), records_ + 1, "late-start",
                             fmt::format("device {},{} CPU {} begins with event number {}, not 1: the capture is a part of a longer one",
                                         major_of(r.device), minor_of(r.device), r.cpu, r.sequence));
    } else {
        const std::uint32_t ahead = r.sequence - s.next_sequence;
        if (ahead < 0x80000000u) {
            const std::string which = ahead == 1 ? fmt::format("event {} of", s.next_sequence)
                                                 : fmt::format("{} events, {} to {}, of", ahead, s.next_sequence, r.sequence - 1);
            damage("sequence-gap", fmt::format("{} device {},{} CPU {} {} missing: the capture was cut or overwritten after the kernel wrote it",
                                               which, major_of(r.device), minor_of(r.device), r.cpu, ahead == 1 ? "is" : "are"));
            engine_.skipped(s, ahead);
        } else {
            damage("sequence-back", fmt::format("event {} of device {},{} CPU {} comes after event {}: records are repeated or out of order",
                                                r.sequence, major_of(r.device), minor_of(r.device), r.cpu, s.next_sequence - 1));
        }
    }
}

void Stream::note(const Record& r, Slot& slot, const std::byte* payload, std::size_t n)
{
    const auto text = [&](std::size_t most) {
        const char* from = reinterpret_cast<const char*>(payload);
        return std::string_view(from, strnlen(from, std::min(n, most)));
    };
    switch (r.action & 0xff) {
    case note_process:
        engine_.process_note(slot, r.pid, text(16));
        break;
    case note_timestamp:
        if (n >= 8)
            engine_.timestamp_note(slot, r.time, load_u32(payload, swapped_), load_u32(payload + 4, swapped_));
        else
            engine_.odd_note(slot);
        break;
    default:
        engine_.message_note(slot, text(n));
        break;
    }
}

// Turns a record into an event; false when there is nothing to account (a note, something unknown). Only the payload bytes that are
// there are looked at.
inline bool Stream::take(const Record& r, const std::byte* payload, std::size_t n, Event& e)
{
    const bool io = !(r.action & cat_notify);
    Slot* slot = slot_of(r);
    if (!slot) [[unlikely]] {
        ++engine_.unknown_events;
        return false;
    }
    Slot& s = *slot;
    // Notes are left out: `blkparse -d` writes events with the time since the first of them, and notes as they were.
    if (io) {
        if (r.time < s.last_time) [[unlikely]]
            damage("time-back", fmt::format("time goes back by {} ns on device {},{} CPU {}", s.last_time - r.time, major_of(r.device),
                                            minor_of(r.device), r.cpu));
        s.last_time = r.time;
        if (!s.sequence_known || r.sequence != s.next_sequence) [[unlikely]]
            number(s, r);
        s.next_sequence = r.sequence + 1;
    }
    if (!known_action(r.action)) [[unlikely]] {
        damage("bad-action", fmt::format("action {} is none of version {}; the event is not counted", hex(r.action), version));
        ++engine_.unknown_events;
        return false;
    }
    if (r.action & act_cgroup) {
        // The cgroup's number stands before the payload proper.
        engine_.cgroup_events += io;
        if (n < 8) [[unlikely]] {
            if (r.pdu_len < 8)
                damage("bad-cgroup", fmt::format("the record is marked as a cgroup's but its payload of {} bytes has no room for the cgroup's "
                                                 "number", r.pdu_len));
            n = 0;
        } else {
            payload += 8;
            n -= 8;
        }
    }
    e.time = r.time;
    e.sector = r.sector;
    e.bytes = r.bytes;
    e.action = r.action;
    e.pid = r.pid;
    e.slot = slot;
    e.sequence = r.sequence;
    e.error = r.error;
    e.a = e.b = 0;
    if (!io) [[unlikely]] {
        note(r, s, payload, n);
        // blkparse counts a message as an event, unless it has a cgroup; the other notes it takes when it reads.
        return (r.action & 0xffff) == note_message && (r.action >> cat_shift) == (cat_notify >> cat_shift);
    }
    if (n >= 8) {
        switch (r.action & 0xff) {
        case act_unplug_io:
        case act_unplug_timer:
        case act_split:
            e.a = load_be64(payload);
            break;
        case act_remap:
            if (n >= 16) {
                e.a = load_be64(payload);
                e.b = load_be64(payload + 8);
            }
            break;
        default:
            break;
        }
    }
    return true;
}

bool Stream::next(Event& e)
{
    if (finished_)
        return false;
    if (!started_ && !begin()) {
        finish();
        return false;
    }
    for (;;) {
        if (!ensure(head_bytes + 4) && available() < head_bytes) [[unlikely]] {
            if (available())
                damage("cut", fmt::format("the last record is cut: {} of at least {} bytes are there", available(), head_bytes));
            finish();
            return false;
        }
        Record r = load(data_ + pos_);
        if (r.magic != raw_magic_) [[unlikely]] {
            const std::uint32_t m = swapped_ ? __builtin_bswap32(r.magic) : r.magic;
            std::string why = (m & magic_mask) == magic_base
                                  ? fmt::format("a record of version {}, which is not supported, among records of version {}", m & 0xff, version)
                                  : fmt::format("bad magic {}", hex(m));
            (void)resync(1, std::move(why));
            continue;
        }
        if (swapped_)
            swap_bytes(r);
        std::size_t total = head_bytes + r.pdu_len;
        if (available() < total + 4)
            (void)ensure(total + 4);
        std::size_t there = std::min(available(), total);
        const bool followed = available() < total + 4 ? there == total : raw_u32(data_ + pos_ + total) == raw_magic_;
        if (!followed || r.pdu_len >= head_bytes) [[unlikely]] {
            if (!check_extent(r, total))
                continue;
            there = std::min(there, total);
        }
        const bool event = take(r, data_ + pos_ + head_bytes, there - head_bytes, e);
        ++records_;
        ++engine_.records;
        pos_ += there;
        if (event)
            return true;
    }
}

// Where in the payload of the record here another record begins; 0: nowhere. A length that is damaged is mostly far too large, and what
// a payload really holds is short.
std::size_t Stream::record_inside(std::size_t total) const
{
    bool needs_more;
    const std::size_t end = pos_ + std::min({total, available(), head_bytes + 4096});
    for (std::size_t i = pos_ + head_bytes; i + head_bytes <= end; ++i)
        if (raw_u32(data_ + i) == raw_magic_ && record_at(i, swapped_, needs_more))
            return i - pos_;
    return 0;
}

// A record whose end is no other record's beginning, or that is long enough to hide one. Either it is sound and what follows is damaged;
// or only its length is wrong; or damage lies in it, which what its fields say decides. False: it is not to be counted, and the stream
// stands at the next record. Otherwise total is what there is of it.
bool Stream::check_extent(const Record& r, std::size_t& total)
{
    const std::size_t inside = record_inside(total);
    const bool followed = available() >= total + 4 && raw_u32(data_ + pos_ + total) == raw_magic_;
    if (followed && !inside)
        return true;
    if (!plausible(r)) {
        if (available() < total && !inside) {
            damage("cut", fmt::format("the last record is cut: {} of {} bytes are there", available(), total));
            pos_ = end_;
            return false;
        }
        (void)resync(4, "no record follows where this one ends, and what it says cannot be right: it is not counted");
        return false;
    }
    if (inside) {
        damage("bad-length", fmt::format("its payload of {} bytes would hide the record at byte {}: the length is damaged; the event is counted",
                                         r.pdu_len, offset() + inside));
        total = inside;
    } else if (available() < total) {
        damage("cut", fmt::format("the last record's payload is cut: {} of {} bytes are there; the event is counted",
                                  available() - head_bytes, r.pdu_len));
    }
    return true;
}

std::size_t Stream::next(std::span<Event> events)
{
    std::size_t n = 0;
    while (n < events.size() && next(events[n]))
        ++n;
    return n;
}

// ---- Reorder ----

Reorder::Reorder(Engine& engine, Stream& stream, Diagnostics& diagnostics, std::string name, std::size_t window_bytes)
    : engine_(engine), stream_(stream), diagnostics_(diagnostics), name_(std::move(name)),
      most_(std::max<std::size_t>(1, window_bytes / sizeof(Event)))
{
}

void Reorder::push(const Event& e)
{
    const std::uint32_t slot = e.slot->number;
    if (slot >= queues_.size())
        queues_.resize(slot + 1);
    Queue& q = queues_[slot];
    const bool was_empty = q.first == none;
    if (was_empty || q.tail == block_events) {
        std::uint32_t b = free_;
        if (b != none) {
            free_ = blocks_[b].next;
        } else {
            b = static_cast<std::uint32_t>(blocks_.size());
            blocks_.emplace_back();
        }
        blocks_[b].next = none;
        if (was_empty)
            q.first = b;
        else
            blocks_[q.last].next = b;
        q.last = b;
        q.tail = 0;
        if (was_empty)
            q.head = 0;
    }
    Event& kept = blocks_[q.last].event[q.tail++];
    kept = e;
    if (arrivals_ % blkparse_batch == 0)
        batches_last_ = arrived_last_;
    arrived_last_ = std::max(arrived_last_, e.time);
    if (e.time < batches_last_)
        ++unsorted_;
    kept.arrival = arrivals_++;
    ++held_;
    if (!was_empty)
        return;
    heap_.push_back(head_of(slot));
    for (std::size_t i = heap_.size() - 1; i > 0 && heap_[(i - 1) / 2].after(heap_[i]); i = (i - 1) / 2)
        std::swap(heap_[i], heap_[(i - 1) / 2]);
}

Reorder::Head Reorder::head_of(std::uint32_t slot) const
{
    const Queue& q = queues_[slot];
    const Event& e = blocks_[q.first].event[q.head];
    // A message has no number, only what was in the buffer before.
    return {e.time, e.slot->device->number, e.action & cat_notify ? 0 : e.sequence, e.arrival, slot};
}

void Reorder::sift_down(std::size_t i)
{
    const std::size_t n = heap_.size();
    const Head moving = heap_[i];
    for (;;) {
        std::size_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && heap_[child].after(heap_[child + 1]))
            ++child;
        if (!moving.after(heap_[child]))
            break;
        heap_[i] = heap_[child];
        i = child;
    }
    heap_[i] = moving;
}

bool Reorder::next(Event& e)
{
    while (!input_done_ && held_ < most_) {
        Event more;
        if (stream_.next(more))
            push(more);
        else
            input_done_ = true;
    }
    if (heap_.empty()) {
        if (!done_)
            engine_.unsorted_events += unsorted_;
        if (late_ && !done_)
            diagnostics_.add(Severity::note, name_, std::nullopt, std::nullopt, "late-events",
                             fmt::format("{} events came so late that the window did not put them in order: counts are right, but depths, "
                                         "runs and latencies around them may not be; a larger --window helps", late_));
        done_ = true;
        return false;
    }
    const std::uint32_t slot = heap_.front().slot;
    Queue& q = queues_[slot];
    e = blocks_[q.first].event[q.head++];
    --held_;
    if (e.time < last_time_)
        ++late_;
    else
        last_time_ = e.time;
    if (q.head == (q.first == q.last ? q.tail : block_events)) {
        const std::uint32_t spent = q.first;
        q.first = q.first == q.last ? none : blocks_[spent].next;
        q.head = 0;
        blocks_[spent].next = free_;
        free_ = spent;
    }
    if (q.first == none) {
        heap_.front() = heap_.back();
        heap_.pop_back();
        if (!heap_.empty())
            sift_down(0);
    } else {
        heap_.front() = head_of(slot);
        sift_down(0);
    }
    return true;
}

}  // namespace pageout::tally
