// SPDX-License-Identifier: GPL-2.0-only
//
// Captures in memory: accounting, order, damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>

#include <zlib.h>
#include <zstd.h>

#include "capture.h"
#include "generate.h"
#include "pageout/tally.h"

namespace pageout::tally {
namespace {

using test::Capture;
using test::disk;
using test::varied;

bool has(const Summary& s, std::string_view code)
{
    return std::any_of(s.diagnostics.begin(), s.diagnostics.end(), [&](const Diagnostic& d) { return d.code == code; });
}

const Diagnostic& find(const Summary& s, std::string_view code)
{
    const auto it = std::find_if(s.diagnostics.begin(), s.diagnostics.end(), [&](const Diagnostic& d) { return d.code == code; });
    if (it == s.diagnostics.end())
        throw std::runtime_error("no diagnostic " + std::string(code));
    return *it;
}

TEST(Bytes, Everything)
{
    const Capture t = varied();
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_EQ(s.verdict, Verdict::ok);
    EXPECT_TRUE(s.diagnostics.empty());
    EXPECT_EQ(s.records, 14u);
    EXPECT_EQ(s.total.events, 13u);
    EXPECT_EQ(s.total.notes, 1u);
    EXPECT_EQ(s.total.read.queued, (Count{2, 8192}));
    EXPECT_EQ(s.total.read.merged_back, (Count{1, 4096}));
    EXPECT_EQ(s.total.read.dispatched, (Count{1, 8192}));
    EXPECT_EQ(s.total.read.completed, (Count{1, 8192}));
    EXPECT_EQ(s.total.write.queued, (Count{1, 4096}));
    EXPECT_EQ(s.total.write.failed, (Count{1, 4096}));
    EXPECT_EQ(s.total.plugs, 1u);
    EXPECT_EQ(s.total.unplugs, 1u);
    EXPECT_EQ(s.total.unplug_depth.bucket[2], 1u);  // 2 requests
    EXPECT_EQ(s.total.read.identity_residue(), 0);
    EXPECT_EQ(s.total.write.identity_residue(), 0);
    EXPECT_EQ(s.total.read.q2c.samples, 2u);
    EXPECT_EQ(s.total.read.q2c.max_ns, 19u);
    EXPECT_EQ(s.total.read.d2c.max_ns, 10u);
    EXPECT_EQ(s.total.read.depth_max, 1u);
    EXPECT_EQ(exit_status(s), 0);
    EXPECT_EQ(exit_status(s, true), 0);
}

TEST(Bytes, TheOtherByteOrder)
{
    Capture native = varied(), other;
    other.swapped = true;
    for (std::size_t at = 0; at < native.bytes.size();) {
        const Record r = load(native.bytes.data() + at);
        other.raw(r, std::span(native.bytes).subspan(at + sizeof r, r.pdu_len));
        at += sizeof r + r.pdu_len;
    }
    const Summary a = tally_bytes(native.bytes, "t"), b = tally_bytes(other.bytes, "t");
    EXPECT_TRUE(b.byte_swapped);
    EXPECT_EQ(to_text(a).substr(to_text(a).find('\n')), to_text(b).substr(to_text(b).find('\n')));
    EXPECT_EQ(to_blkparse(a), to_blkparse(b));
}

TEST(Bytes, Nothing)
{
    const Summary s = tally_bytes({}, "t");
    EXPECT_EQ(s.verdict, Verdict::ok);
    EXPECT_TRUE(has(s, "no-events"));
    EXPECT_EQ(exit_status(s, true), 3);
}

// An event is in one list of counts only, and the lists add up, however the events are read.
TEST(Bytes, ModesAgree)
{
    std::vector<std::byte> stream;
    Generator g(3, 4, [&](std::uint32_t, std::span<const std::byte> r) { stream.insert(stream.end(), r.begin(), r.end()); });
    g.run(20000);
    Options plain, ordered, all;
    plain.lives = plain.order = false;
    ordered.lives = false;
    all.processes = all.partitions = true;
    all.interval_ns = 1000000;
    const Summary a = tally_bytes(stream, "t", plain), b = tally_bytes(stream, "t", ordered), c = tally_bytes(stream, "t", all);
    for (const Summary* s : {&b, &c}) {
        EXPECT_EQ(a.total.events, s->total.events);
        EXPECT_EQ(a.total.read.queued, s->total.read.queued);
        EXPECT_EQ(a.total.write.dispatched, s->total.write.dispatched);
        EXPECT_EQ(a.total.discard.completed, s->total.discard.completed);
        EXPECT_EQ(a.total.flush.queued, s->total.flush.queued);
    }
    FlowCounts by_cpu, by_process, by_interval;
    for (const CpuCounts& x : c.devices.at(0).cpus)
        by_cpu += x.counts;
    for (const ProcessCounts& x : c.processes)
        by_process += x.counts;
    for (const Interval& x : c.intervals)
        by_interval += x.counts;
    for (const FlowCounts* f : {&by_cpu, &by_process, &by_interval}) {
        EXPECT_EQ(f->events, c.total.events);
        EXPECT_EQ(f->read.queued, c.total.read.queued);
        EXPECT_EQ(f->write.completed, c.total.write.completed);
        EXPECT_EQ(f->discard.dispatched, c.total.discard.dispatched);
    }
    for (const Direction* d : {&c.total.read, &c.total.write}) {
        EXPECT_EQ(d->identity_residue(), d->waiting + d->ended_early - d->started_before);
        EXPECT_EQ(d->orphans, 0u);
    }
}

// Chunks of one CPU after another, as the kernel's buffers are read: order is restored within the window.
TEST(Bytes, ChunksArePutInOrder)
{
    constexpr std::uint32_t cpus = 4;
    std::vector<std::vector<std::vector<std::byte>>> records(cpus);
    std::vector<std::byte> sorted;
    Generator g(5, cpus, [&](std::uint32_t cpu, std::span<const std::byte> r) {
        records[cpu].emplace_back(r.begin(), r.end());
        sorted.insert(sorted.end(), r.begin(), r.end());
    });
    g.run(30000);
    std::vector<std::byte> chunked;
    for (std::size_t from = 0; from < records[0].size() + 10000; from += 1000)
        for (const auto& of : records)
            for (std::size_t i = from; i < from + 1000 && i < of.size(); ++i)
                chunked.insert(chunked.end(), of[i].begin(), of[i].end());
    const Summary a = tally_bytes(sorted, "t"), b = tally_bytes(chunked, "t");
    EXPECT_EQ(to_text(a), to_text(b));
    EXPECT_EQ(b.verdict, Verdict::ok);
    EXPECT_FALSE(has(b, "late-events"));
    // Too small a window is told, and counts do not suffer.
    Options small;
    small.window_bytes = 4096;
    const Summary c = tally_bytes(chunked, "t", small);
    EXPECT_TRUE(has(c, "late-events"));
    EXPECT_EQ(c.total.events, a.total.events);
    EXPECT_EQ(c.total.read.dispatched, a.total.read.dispatched);
}

TEST(Bytes, DevicesAreKeptApart)
{
    constexpr std::uint32_t lower = 8u << 20, upper = 253u << 20;
    Capture t;
    for (std::uint64_t i = 0; i < 10; ++i) {
        const std::uint64_t at = i * 1000;
        t.event(at + 1, Capture::q | cat_write, i * 8, 8, 0, 1, {}, 0, upper);
        std::byte pdu[16]{};
        const std::uint32_t from = __builtin_bswap32(upper), to = __builtin_bswap32(lower);
        const std::uint64_t sector = __builtin_bswap64(i * 8);
        std::memcpy(pdu, &from, 4);
        std::memcpy(pdu + 4, &to, 4);
        std::memcpy(pdu + 8, &sector, 8);
        t.event(at + 2, act_remap | cat_queue | cat_write, 2048 + i * 8, 8, 0, 1, pdu, 0, lower);
        t.event(at + 3, Capture::q | cat_write, 2048 + i * 8, 8, 0, 1, {}, 0, lower);
        t.event(at + 4, Capture::g | cat_write, 2048 + i * 8, 8, 0, 1, {}, 0, lower);
        t.event(at + 5, Capture::d | cat_write, 2048 + i * 8, 8, 0, 1, {}, 0, lower);
        t.event(at + 6, Capture::c | cat_write, 2048 + i * 8, 8, 0, 1, {}, 0, lower);
        t.event(at + 7, Capture::bc | cat_write, i * 8, 8, 0, 1, {}, 0, upper);
    }
    const Summary s = tally_bytes(t.bytes, "t");
    ASSERT_EQ(s.devices.size(), 2u);
    EXPECT_EQ(s.devices[0].id, (DeviceId{8, 0}));
    EXPECT_FALSE(s.devices[0].above_another);
    EXPECT_TRUE(s.devices[1].above_another);
    EXPECT_TRUE(s.devices[1].bio_based);
    EXPECT_EQ(s.devices[1].counts.write.queued.count, 10u);
    EXPECT_EQ(s.devices[1].counts.write.q2c.max_ns, 6u);
    EXPECT_EQ(s.total.write.queued.count, 10u) << "the same bios are not counted twice";
    EXPECT_TRUE(has(s, "bio-based"));
    EXPECT_TRUE(has(s, "above-another"));
}

TEST(Bytes, Partitions)
{
    Capture t;
    const auto io = [&](std::uint32_t minor, std::uint64_t start, std::uint64_t sector) {
        std::byte pdu[16]{};
        const std::uint32_t from = __builtin_bswap32(8u << 20 | minor);
        const std::uint64_t before = __builtin_bswap64(sector);
        std::memcpy(pdu, &from, 4);
        std::memcpy(pdu + 4, &from, 4);
        std::memcpy(pdu + 8, &before, 8);
        const std::uint64_t at = t.bytes.size();
        t.event(at, act_remap | cat_queue | cat_read, start + sector, 8, 0, 1, pdu);
        t.event(at + 1, Capture::q | cat_read, start + sector, 8);
        t.event(at + 2, Capture::g | cat_read, start + sector, 8);
        t.event(at + 3, Capture::d | cat_read, start + sector, 8);
        t.event(at + 4, Capture::c | cat_read, start + sector, 8);
    };
    io(2, 1000000, 0);
    io(1, 2048, 50);
    io(2, 1000000, 80);
    io(1, 2048, 997900);
    Options o;
    o.partitions = true;
    const Summary s = tally_bytes(t.bytes, "t", o);
    const auto& p = s.devices.at(0).partitions;
    ASSERT_EQ(p.size(), 2u);
    EXPECT_EQ(p[0].id.minor, 1u);
    EXPECT_EQ(p[0].start_sector, 2048u);
    EXPECT_EQ(p[0].counts.read.queued.count, 2u);
    EXPECT_EQ(p[1].counts.read.completed.count, 2u);
    EXPECT_FALSE(s.devices[0].above_another);
}

// The example of the public header, to the letter.
TEST(Files, ExampleOfTheHeader)
{
    const Capture t = varied();
    const std::string base = testing::TempDir() + "example-of-the-header";
    std::ofstream(base + ".blktrace.0", std::ios::binary).write(reinterpret_cast<const char*>(t.bytes.data()),
                                                                static_cast<std::streamsize>(t.bytes.size()));
    const auto summary = pageout::tally::tally({base});
    std::remove((base + ".blktrace.0").c_str());
    EXPECT_EQ(summary.verdict, Verdict::ok);
    EXPECT_EQ(summary.total.read.dispatched, (Count{1, 8192}));
}

// What is under way while nothing happens counts in the mean depth, also where empty intervals are left out.
TEST(Bytes, DepthOverALongGap)
{
    Capture t;
    t.event(0, Capture::d | cat_read, 0, 8);
    t.event(1000000000, Capture::c | cat_read, 0, 8);
    Options o;
    o.interval_ns = 1000;
    const Summary s = tally_bytes(t.bytes, "t", o);
    EXPECT_TRUE(has(s, "empty-intervals"));
    EXPECT_DOUBLE_EQ(s.total.read.depth_mean, 1.0);
    EXPECT_EQ(s.intervals.size(), 2u);
    EXPECT_DOUBLE_EQ(s.intervals.front().read_depth_mean, 1.0);
}

TEST(Bytes, SequenceNumbersWrap)
{
    Capture t;
    t.sequence[{disk, 0}] = 0xfffffffd;
    for (std::uint64_t i = 0; i < 6; ++i)
        t.event(i, Capture::q | cat_read, i * 8, 8);
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_EQ(s.verdict, Verdict::ok);
    EXPECT_TRUE(has(s, "late-start"));
    EXPECT_FALSE(has(s, "sequence-gap"));
}

TEST(Damage, GapInTheNumbers)
{
    Capture t;
    t.event(1, Capture::q | cat_read, 0, 8);
    t.sequence[{disk, 0}] += 3;
    t.event(2, Capture::q | cat_read, 8, 8);
    t.sequence[{disk, 0}] -= 2;
    t.event(3, Capture::q | cat_read, 16, 8);
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_EQ(s.verdict, Verdict::damage);
    EXPECT_EQ(find(s, "sequence-gap").record, 2u);
    EXPECT_EQ(find(s, "sequence-gap").offset, 48u);
    EXPECT_NE(find(s, "sequence-gap").text.find("3 events, 2 to 4, of"), std::string::npos);
    EXPECT_TRUE(has(s, "sequence-back"));
    EXPECT_EQ(s.total.read.queued.count, 3u);
    EXPECT_EQ(exit_status(s), 3);
}

TEST(Damage, BadMagicInTheMiddle)
{
    Capture t = varied();
    // The magic of the record after the ninth.
    std::size_t at = 0;
    for (int i = 0; i < 8; ++i)
        at += sizeof(Record) + load(t.bytes.data() + at).pdu_len;
    for (std::size_t i = 0; i < 4; ++i)
        t.bytes[at + i] = std::byte{0xde};
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_EQ(s.verdict, Verdict::damage);
    EXPECT_EQ(find(s, "bad-magic").offset, at);
    EXPECT_EQ(find(s, "bad-magic").record, 9u);
    EXPECT_EQ(s.total.events, 12u) << "one event is lost, not all that follow";
    EXPECT_TRUE(has(s, "sequence-gap"));
}

TEST(Damage, JunkInsideARecord)
{
    const Capture t = varied();
    std::size_t at = 0;
    for (int i = 0; i < 5; ++i)
        at += sizeof(Record) + load(t.bytes.data() + at).pdu_len;
    for (std::size_t inside = 1; inside < sizeof(Record); ++inside) {
        std::vector<std::byte> b = t.bytes;
        b.insert(b.begin() + static_cast<std::ptrdiff_t>(at + inside), 17, std::byte{0x5a});
        const Summary s = tally_bytes(b, "t");
        EXPECT_EQ(s.verdict, Verdict::damage) << inside;
        EXPECT_GE(s.total.events, 12u) << inside;
        EXPECT_LE(s.total.events, 13u) << inside;
        EXPECT_EQ(s.total.write.completed.count, 1u) << inside;
    }
}

TEST(Damage, ALengthThatIsNotTrue)
{
    const Capture t = varied();
    for (const std::uint16_t length : {std::uint16_t{1}, std::uint16_t{7}, std::uint16_t{100}, std::uint16_t{65535}}) {
        std::vector<std::byte> b = t.bytes;
        const std::size_t at = sizeof(Record) + 16 + 2 * sizeof(Record);  // the fourth record
        std::memcpy(b.data() + at + 46, &length, 2);
        const Summary s = tally_bytes(b, "t");
        EXPECT_EQ(s.verdict, Verdict::damage) << length;
        EXPECT_GE(s.total.events, 12u) << length;
    }
}

TEST(Damage, LongPayloadsAreNoDamage)
{
    Capture t;
    const std::vector<std::byte> pdu(65535, std::byte{7});
    for (std::uint64_t i = 0; i < 20; ++i)
        t.event(i, act_drv_data | cat_drv_data | cat_read, 0, 0, 0, 1, pdu);
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_EQ(s.verdict, Verdict::ok);
    EXPECT_EQ(s.total.driver_data, 20u);
}

TEST(Damage, OtherVersions)
{
    for (const std::uint32_t v : {0u, 6u, 8u, 255u}) {
        Capture t;
        t.raw({magic_base | v, 1, 0, 0, 4096, Capture::q | cat_read, 1, disk, 0, 0, 0});
        const Summary s = tally_bytes(t.bytes, "t");
        EXPECT_EQ(s.verdict, Verdict::damage);
        EXPECT_NE(find(s, "version").text.find("version " + std::to_string(v)), std::string::npos);
        EXPECT_EQ(find(s, "version").offset, 0u);
        EXPECT_EQ(find(s, "version").record, 1u);
        EXPECT_EQ(s.records, 0u);
    }
}

TEST(Damage, TimeGoesBack)
{
    Capture t;
    t.event(1000, Capture::d | cat_read, 0, 8);
    t.event(500, Capture::c | cat_read, 0, 8);
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_EQ(s.verdict, Verdict::damage);
    EXPECT_TRUE(has(s, "time-back"));
    EXPECT_EQ(s.total.read.d2c.samples, 0u);
}

TEST(Damage, FloodsAreCounted)
{
    Capture t;
    for (std::uint32_t i = 0; i < 1000; ++i)
        t.event(i, 0x7f | cat_queue, 0, 0);
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_LE(s.diagnostics.size(), 10u);
    EXPECT_EQ(s.unknown_events, 1000u);
    EXPECT_EQ(s.total.events, 0u);
}

TEST(Damage, ImpossibleCpusAndDevicesCostNothing)
{
    Capture t;
    for (std::uint32_t i = 0; i < 20000; ++i)
        t.raw({magic, 1, i, 0, 4096, Capture::q | cat_read, 1, i * 0x10001, i * 7919, 0, 0});
    const Summary s = tally_bytes(t.bytes, "t");
    EXPECT_EQ(s.verdict, Verdict::damage);
    EXPECT_TRUE(has(s, "bad-cpu"));
    EXPECT_TRUE(has(s, "too-many-devices"));
    EXPECT_LE(s.devices.size(), 4096u);
}

TEST(Foreign, IsNamed)
{
    const auto refused = [](std::string_view text) {
        const Summary s = tally_bytes(std::as_bytes(std::span(text.data(), text.size())), "t");
        EXPECT_EQ(s.verdict, Verdict::refused);
        EXPECT_EQ(exit_status(s), 1);
        return s.diagnostics.empty() ? std::string() : s.diagnostics[0].text;
    };
    EXPECT_NE(refused("fio version 2 iolog\n/dev/sda add\n").find("fio iolog"), std::string::npos);
    EXPECT_NE(refused("  8,0    1        1     0.000000000  4711  Q   R 2048 + 8 [cat]\n").find("blkparse's text"), std::string::npos);
    EXPECT_NE(refused("259,0    3        1     0.000000000     0  C  WS 2048 + 8 [0]\n").find("blkparse's text"), std::string::npos);
    EXPECT_NE(refused("PERFILE2........................").find("perf.data"), std::string::npos);
    EXPECT_NE(refused("hello, world\n").find("text"), std::string::npos);
    EXPECT_NE(refused("BZh91AY&SY").find("bzip2"), std::string::npos);
    EXPECT_NE(refused("\x7f" "ELF\x02\x01\x01").find("ELF"), std::string::npos);
}

std::vector<std::byte> gzipped(std::span<const std::byte> data)
{
    z_stream z{};
    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::bad_alloc();
    std::vector<std::byte> out(deflateBound(&z, data.size()) + 64);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
    z.avail_in = static_cast<uInt>(data.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
}

std::vector<std::byte> zstd(std::span<const std::byte> data)
{
    std::vector<std::byte> out(ZSTD_compressBound(data.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), data.data(), data.size(), 3));
    return out;
}

TEST(Packed, GzipAndZstd)
{
    std::vector<std::byte> stream;
    Generator g(9, 2, [&](std::uint32_t, std::span<const std::byte> r) { stream.insert(stream.end(), r.begin(), r.end()); });
    g.run(20000);
    const std::string plain = to_text(tally_bytes(stream, "t"));
    // Whole, and as two members one after the other.
    const auto half = static_cast<std::ptrdiff_t>(stream.size() / 2);
    const std::vector<std::byte> first(stream.begin(), stream.begin() + half), second(stream.begin() + half, stream.end());
    for (const auto& pack : {gzipped, zstd}) {
        EXPECT_EQ(to_text(tally_bytes(pack(stream), "t")), plain);
        std::vector<std::byte> two = pack(first);
        const std::vector<std::byte> rest = pack(second);
        two.insert(two.end(), rest.begin(), rest.end());
        EXPECT_EQ(to_text(tally_bytes(two, "t")), plain);
        // Cut: what could be unpacked is counted, and the cut is told.
        std::vector<std::byte> cut = pack(stream);
        cut.resize(cut.size() / 2);
        const Summary s = tally_bytes(cut, "t");
        EXPECT_EQ(s.verdict, Verdict::damage);
        EXPECT_NE(find(s, "unreadable").text.find("ends too early"), std::string::npos);
        EXPECT_GT(s.total.events, 1000u);
        // Corrupted inside.
        std::vector<std::byte> bad = pack(stream);
        for (std::size_t i = bad.size() / 2; i < bad.size() / 2 + 64; ++i)
            bad[i] ^= std::byte{0xff};
        EXPECT_NE(tally_bytes(bad, "t").verdict, Verdict::ok);
    }
}

// ---- sweeps, meant for a build with the sanitizers ----

void read_all_ways(std::span<const std::byte> bytes)
{
    static unsigned calls = 0;
    Options o;
    o.processes = o.partitions = true;
    o.interval_ns = 3;
    o.window_bytes = 256;
    const Summary s = tally_bytes(bytes, "t", o);
    if (++calls % 16)  // what is printed is known to be sound long before
        return;
    (void)to_json(s);
    (void)to_text(s, {true, true});
    (void)to_blkparse(s);
    (void)to_check(s);
}

TEST(Sweep, EveryPrefix)
{
    for (const bool swapped : {false, true}) {
        Capture t = varied();
        if (swapped) {
            Capture u;
            u.swapped = true;
            for (std::size_t at = 0; at < t.bytes.size();) {
                const Record r = load(t.bytes.data() + at);
                u.raw(r, std::span(t.bytes).subspan(at + sizeof r, r.pdu_len));
                at += sizeof r + r.pdu_len;
            }
            t = u;
        }
        std::vector<std::size_t> ends{0};
        for (std::size_t at = 0; at < t.bytes.size();) {
            Record r = load(t.bytes.data() + at);
            if (swapped)
                swap_bytes(r);
            at += sizeof r + r.pdu_len;
            ends.push_back(at);
        }
        for (std::size_t n = 0; n <= t.bytes.size(); ++n) {
            // Exactly as large as it claims to be, so that a byte read too far is noticed.
            const std::vector<std::byte> prefix(t.bytes.begin(), t.bytes.begin() + static_cast<std::ptrdiff_t>(n));
            read_all_ways(prefix);
            const Summary s = tally_bytes(prefix, "t");
            const bool at_end = std::find(ends.begin(), ends.end(), n) != ends.end();
            EXPECT_EQ(s.verdict, at_end ? Verdict::ok : Verdict::damage) << n;
            const auto whole = static_cast<std::uint64_t>(std::upper_bound(ends.begin(), ends.end(), n) - ends.begin() - 1);
            EXPECT_GE(s.records, whole) << n;
            EXPECT_LE(s.records, whole + 1) << n;
        }
    }
}

TEST(Sweep, EverySingleByteOfEveryHeader)
{
    const Capture t = varied();
    for (std::size_t at = 0; at < t.bytes.size();) {
        const Record r = load(t.bytes.data() + at);
        for (std::size_t i = 0; i < sizeof r; ++i)
            for (const unsigned value : {0x00u, 0x01u, 0x7fu, 0x80u, 0xffu, 0x100u}) {
                std::vector<std::byte> b = t.bytes;
                b[at + i] = value == 0x100 ? b[at + i] ^ std::byte{0x55} : static_cast<std::byte>(value);
                read_all_ways(b);
                // One damaged header costs that record, and at most the one whose end it hides.
                const Summary s = tally_bytes(b, "t");
                EXPECT_GE(s.total.events + s.total.notes, 12u) << "byte " << i << " of the record at " << at << " set to " << value;
                EXPECT_LE(s.total.events + s.total.notes, 14u);
            }
        at += sizeof r + r.pdu_len;
    }
}

TEST(Sweep, NoiseAfterNoise)
{
    std::mt19937_64 rng(11);
    const Capture t = varied();
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::byte> b = t.bytes;
        for (std::uint64_t n = rng() % 8; n > 0; --n)
            switch (rng() % 4) {
            case 0: b[rng() % b.size()] = static_cast<std::byte>(rng()); break;
            case 1: b.insert(b.begin() + static_cast<std::ptrdiff_t>(rng() % b.size()), rng() % 70, static_cast<std::byte>(rng())); break;
            case 2: {
                const auto from = static_cast<std::ptrdiff_t>(rng() % b.size());
                const auto n_gone = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(rng() % 70), static_cast<std::ptrdiff_t>(b.size()) - from);
                b.erase(b.begin() + from, b.begin() + from + n_gone);
                if (b.empty())
                    b.push_back(std::byte{7});
                break;
            }
            default: b.insert(b.end(), t.bytes.begin(), t.bytes.begin() + static_cast<std::ptrdiff_t>(rng() % t.bytes.size())); break;
            }
        read_all_ways(b);
    }
}

}  // namespace
}  // namespace pageout::tally
