// SPDX-License-Identifier: GPL-2.0-only
//
// Published summaries, made again from their counters.
#include <gtest/gtest.h>

#include "pageout/tally.h"

namespace pageout::tally {
namespace {

BlkparseStats::Item pages(std::uint64_t count) { return {count, count * 4, 0}; }

// All reads are accounted for; the writes lack what a kernel before 5.9 did not report.
void expect_identity(const BlkparseStats& s, std::uint64_t unreported_writes)
{
    EXPECT_EQ(s.queued[0].count, s.dispatched[0].count + s.merged[0].count);
    EXPECT_EQ(s.queued[1].count - s.dispatched[1].count - s.merged[1].count, unreported_writes);
}

// Commit 3fb5c298b04e "swap: allow swap readahead to be merged" (Linux 3.6), one of 16 swap disks. What was printed in M is known to
// the thousand only; the bytes here are the ones that the counts imply.
TEST(Published, SwapReadaheadBefore)
{
    BlkparseStats s;
    s.queued = {pages(560888), pages(226242)};
    s.dispatched = {{{544701, 2243552, 0}, {159318, 904968, 0}}};
    s.completed = {{{544716, 2243612, 0}, {159321, 904980, 0}}};
    s.merged = {pages(16187), pages(61744)};
    s.io_unplugs = 149614;
    s.timer_unplugs = 2940;
    EXPECT_EQ(blkparse_block("Total (sdc):", s, nullptr, true),
              "Total (sdc):\n"
              " Reads Queued:     560,888,    2,243MiB\t Writes Queued:     226,242,  904,968KiB\n"
              " Read Dispatches:  544,701,    2,243MiB\t Write Dispatches:  159,318,  904,968KiB\n"
              " Reads Requeued:         0\t\t Writes Requeued:         0\n"
              " Reads Completed:  544,716,    2,243MiB\t Writes Completed:  159,321,  904,980KiB\n"
              " Read Merges:       16,187,   64,748KiB\t Write Merges:       61,744,  246,976KiB\n"
              " IO unplugs:       149,614        \t Timer unplugs:       2,940\n");
    expect_identity(s, 5180);
}

TEST(Published, SwapReadaheadAfter)
{
    BlkparseStats s;
    s.queued = {pages(734315), pages(300188)};
    s.dispatched = {{{214972, 2937260, 0}, {215176, 1200752, 0}}};
    s.completed = {{{214971, 2937240, 0}, {215177, 1200756, 0}}};
    s.merged = {pages(519343), pages(73325)};
    s.io_unplugs = 337130;
    s.timer_unplugs = 11184;
    EXPECT_EQ(blkparse_block("Total (sdc):", s, nullptr, true),
              "Total (sdc):\n"
              " Reads Queued:     734,315,    2,937MiB\t Writes Queued:     300,188,    1,200MiB\n"
              " Read Dispatches:  214,972,    2,937MiB\t Write Dispatches:  215,176,    1,200MiB\n"
              " Reads Requeued:         0\t\t Writes Requeued:         0\n"
              " Reads Completed:  214,971,    2,937MiB\t Writes Completed:  215,177,    1,200MiB\n"
              " Read Merges:      519,343,    2,077MiB\t Write Merges:       73,325,  293,300KiB\n"
              " IO unplugs:       337,130        \t Timer unplugs:      11,184\n");
    expect_identity(s, 11687);
}

// The report of 2011 that led to "blkparse: fix up incorrect pc write completion count", as it reads with the fix: no packet writes.
TEST(Published, PacketWriteCompletions)
{
    BlkparseStats s;
    s.queued = {{{76, 304, 0}, {16384, 1048576, 0}}};
    s.dispatched = {{{76, 304, 0}, {2210, 1048576, 0}}};
    s.completed = {{{76, 304, 0}, {2210, 1048576, 0}}};
    s.merged = {{{0, 0, 0}, {14174, 907136, 0}}};
    s.pc_dispatched[0] = {4, 0, 0};
    s.pc_completed[0] = {4, 0, 0};
    s.io_unplugs = 2124;
    EXPECT_EQ(blkparse_block("Total (sde):", s, nullptr, true),
              "Total (sde):\n"
              " Reads Queued:          76,      304KiB\t Writes Queued:      16,384,    1,048MiB\n"
              " Read Dispatches:       76,      304KiB\t Write Dispatches:    2,210,    1,048MiB\n"
              " Reads Requeued:         0\t\t Writes Requeued:         0\n"
              " Reads Completed:       76,      304KiB\t Writes Completed:    2,210,    1,048MiB\n"
              " Read Merges:            0,        0KiB\t Write Merges:       14,174,  907,136KiB\n"
              " PC Reads Queued:        0,        0KiB\t PC Writes Queued:        0,        0KiB\n"
              " PC Read Disp.:          4,        0KiB\t PC Write Disp.:          0,        0KiB\n"
              " PC Reads Req.:          0\t\t PC Writes Req.:          0\n"
              " PC Reads Compl.:        4\t\t PC Writes Compl.:        0\n"
              " IO unplugs:         2,124        \t Timer unplugs:           0\n");
    EXPECT_EQ(s.queued[1].count, s.dispatched[1].count + s.merged[1].count);
}

// The unit moves on above a million, in thousands, and T is missing.
TEST(Numbers, Units)
{
    const auto line = [](std::uint64_t count, std::uint64_t kb, bool commas) {
        BlkparseStats s;
        s.queued[0] = {count, kb, 0};
        const std::string block = blkparse_block("", s, nullptr, commas);
        return block.substr(1, block.find('\t') - 1);
    };
    EXPECT_EQ(line(1000000, 1000000, false), " Reads Queued:     1000000,  1000000KiB");
    EXPECT_EQ(line(1000001, 1000001, false), " Reads Queued:        1000K,     1000MiB");
    EXPECT_EQ(line(1000000, 1000000, true), " Reads Queued:    1,000,000, 1,000,000KiB");
    EXPECT_EQ(line(0, 1000000999, true), " Reads Queued:           0, 1,000,000MiB");
    EXPECT_EQ(line(0, 1000001000, true), " Reads Queued:           0,    1,000GiB");
    EXPECT_EQ(line(0, 1000000000001, true), " Reads Queued:           0, 1,000,000GiB");
    EXPECT_EQ(line(0, 1000001000000, true), " Reads Queued:           0,    1,000PiB");
    EXPECT_EQ(line(0, UINT64_MAX, true), " Reads Queued:           0, 18,446,744,073PiB");
}

}  // namespace
}  // namespace pageout::tally
