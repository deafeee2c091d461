// SPDX-License-Identifier: GPL-2.0-only
#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "lives.h"

namespace pageout::tally {
namespace {

Latency of(const Lives& l, LifeKind k, Stage s, const SamplePool& pool)
{
    const Series* one[] = {&l.series(k, s)};
    return Series::latency(one, pool);
}

struct LivesTest : testing::Test {
    SamplePool pool{1 << 20};
    Lives l{pool};
    std::uint64_t samples(Stage s, LifeKind k = life_read) { return of(l, k, s, pool).samples; }
    std::uint64_t longest(Stage s, LifeKind k = life_read) { return of(l, k, s, pool).max_ns; }
    std::int64_t left(LifeKind k = life_read) { return l.waiting()[k]; }
};

TEST_F(LivesTest, OneRequest)
{
    l.queue(life_read, 100, 8, 1000);
    l.getrq(life_read, 100, 8, 1010);
    l.insert(life_read, 100, 8, 1030);
    l.dispatch(life_read, 100, 8, 1070);
    l.complete_request(life_read, 100, 8, 1150);
    EXPECT_EQ(longest(q2g), 10u);
    EXPECT_EQ(longest(g2i), 20u);
    EXPECT_EQ(longest(i2d), 40u);
    EXPECT_EQ(longest(d2c), 80u);
    EXPECT_EQ(longest(q2c), 150u);
    EXPECT_EQ(l.orphans(life_read), 0u);
    EXPECT_EQ(l.unfinished()[life_read], 0u);
    EXPECT_EQ(left(), 0);
}

TEST_F(LivesTest, MergesBringTheirBiosAlong)
{
    l.queue(life_write, 100, 8, 0);
    l.getrq(life_write, 100, 8, 1);
    l.queue(life_write, 108, 8, 10);
    l.back_merge(life_write, 108, 8, 12);
    l.queue(life_write, 92, 8, 20);
    l.front_merge(life_write, 92, 8, 25);
    // A second request that follows, with two bios of its own.
    l.queue(life_write, 116, 8, 30);
    l.getrq(life_write, 116, 8, 31);
    l.queue(life_write, 124, 8, 32);
    l.back_merge(life_write, 124, 8, 33);
    l.request_merge(life_write, 116, 16);
    l.dispatch(life_write, 92, 40, 50);
    l.complete_request(life_write, 92, 40, 100);
    EXPECT_EQ(samples(q2c, life_write), 5u);
    EXPECT_EQ(longest(q2c, life_write), 100u);
    EXPECT_EQ(samples(q2m, life_write), 3u);
    EXPECT_EQ(longest(q2m, life_write), 5u);
    EXPECT_EQ(samples(d2c, life_write), 1u);
    EXPECT_EQ(l.orphans(life_write), 0u);
    EXPECT_EQ(l.unfinished()[life_write], 0u);
}

TEST_F(LivesTest, ASplitBioEndsWithItsLastPart)
{
    l.queue(life_read, 0, 100, 5);
    l.split(life_read, 0, 40);
    l.getrq(life_read, 0, 40, 6);
    l.split(life_read, 40, 40);
    l.getrq(life_read, 40, 40, 7);
    l.getrq(life_read, 80, 20, 8);
    l.dispatch(life_read, 80, 20, 10);
    l.dispatch(life_read, 0, 40, 11);
    l.dispatch(life_read, 40, 40, 12);
    l.complete_request(life_read, 0, 40, 20);
    l.complete_request(life_read, 80, 20, 30);
    EXPECT_EQ(samples(q2c), 0u);
    l.complete_request(life_read, 40, 40, 45);
    EXPECT_EQ(samples(q2c), 1u);
    EXPECT_EQ(longest(q2c), 40u);
    EXPECT_EQ(samples(d2c), 3u);
    EXPECT_EQ(l.orphans(life_read), 0u);
}

TEST_F(LivesTest, CompletedInParts)
{
    l.queue(life_read, 0, 8, 0);
    l.getrq(life_read, 0, 8, 1);
    l.queue(life_read, 8, 8, 2);
    l.back_merge(life_read, 8, 8, 3);
    l.dispatch(life_read, 0, 16, 10);
    l.complete_request(life_read, 0, 12, 20);  // the first bio and half of the second
    EXPECT_EQ(samples(q2c), 1u);
    EXPECT_EQ(samples(d2c), 0u);
    l.complete_request(life_read, 12, 4, 30);
    EXPECT_EQ(samples(q2c), 2u);
    EXPECT_EQ(longest(d2c), 20u);
    EXPECT_EQ(l.orphans(life_read), 0u);
}

TEST_F(LivesTest, RequeueMeasuresTheLastDispatch)
{
    l.queue(life_read, 0, 8, 0);
    l.getrq(life_read, 0, 8, 1);
    l.insert(life_read, 0, 8, 2);
    l.dispatch(life_read, 0, 8, 10);
    l.requeue(life_read, 0, 8);
    // Back in the queue it may merge again.
    l.queue(life_read, 8, 8, 15);
    l.back_merge(life_read, 8, 8, 16);
    l.dispatch(life_read, 0, 16, 100);
    l.complete_request(life_read, 0, 16, 130);
    EXPECT_EQ(samples(d2c), 1u);
    EXPECT_EQ(longest(d2c), 30u);
    EXPECT_EQ(samples(i2d), 1u);
    EXPECT_EQ(samples(q2c), 2u);
    EXPECT_EQ(l.orphans(life_read), 0u);
}

TEST_F(LivesTest, SamePlaceTwice)
{
    // Two direct reads of one place at once, and a write there: each has its own life.
    l.queue(life_read, 0, 8, 0);
    l.queue(life_read, 0, 8, 1);
    l.queue(life_write, 0, 8, 2);
    l.getrq(life_read, 0, 8, 3);
    l.getrq(life_read, 0, 8, 5);
    l.getrq(life_write, 0, 8, 7);
    l.dispatch(life_read, 0, 8, 10);
    l.dispatch(life_write, 0, 8, 11);
    l.dispatch(life_read, 0, 8, 12);
    l.complete_request(life_write, 0, 8, 20);
    l.complete_request(life_read, 0, 8, 30);
    l.complete_request(life_read, 0, 8, 40);
    EXPECT_EQ(samples(q2c), 2u);
    EXPECT_EQ(samples(q2c, life_write), 1u);
    EXPECT_EQ(longest(q2c, life_write), 18u);
    EXPECT_EQ(longest(q2c), 39u);
    EXPECT_EQ(l.orphans(life_read) + l.orphans(life_write), 0u);
}

TEST_F(LivesTest, OrphansAreInNoLatency)
{
    l.complete_request(life_read, 0, 8, 10);  // dispatched before the capture
    l.dispatch(life_read, 8, 8, 20);          // queued before it
    l.complete_request(life_read, 8, 8, 25);  // but this half is whole
    l.getrq(life_read, 16, 8, 30);
    l.back_merge(life_read, 32, 8, 31);  // neither bio nor request known
    l.queue(life_read, 48, 8, 40);       // never completed
    EXPECT_EQ(l.orphans(life_read), 4u);
    EXPECT_EQ(samples(d2c), 1u);
    EXPECT_EQ(longest(d2c), 5u);
    EXPECT_EQ(samples(q2c), 0u);
    EXPECT_EQ(samples(q2m), 0u);
    EXPECT_EQ(l.unfinished()[life_read], 2u);
    EXPECT_EQ(l.started_before(life_read), 3);  // the D, the G and the M
    EXPECT_EQ(left(), 2);                       // the request of the G and the bio
}

TEST_F(LivesTest, BioBasedDevicesCompleteBios)
{
    l.queue(life_write, 0, 8, 100);
    l.complete_bio(life_write, 0, 8, 130);
    EXPECT_EQ(longest(q2c, life_write), 30u);
    EXPECT_EQ(l.ended_early(life_write), 1);
    EXPECT_EQ(l.orphans(life_write), 0u);
}

TEST_F(LivesTest, TimeThatGoesBackIsNoHugeLatency)
{
    l.dispatch(life_read, 0, 8, 100);
    l.complete_request(life_read, 0, 8, 50);
    EXPECT_EQ(samples(d2c), 0u);
    EXPECT_EQ(l.backwards(), 1u);
}

TEST_F(LivesTest, SectorsAtTheEndOfTheWorld)
{
    const std::uint64_t last = UINT64_MAX - 7;
    l.queue(life_read, last, 8, 0);
    l.getrq(life_read, last, 8, 1);  // ends at sector 0
    l.queue(life_read, 0, 8, 2);
    l.back_merge(life_read, 0, 8, 3);
    l.dispatch(life_read, last, 16, 4);
    l.complete_request(life_read, last, 12, 6);
    EXPECT_EQ(samples(q2c), 1u);
    l.complete_request(life_read, last + 12, 4, 7);
    EXPECT_EQ(samples(q2c), 2u);
    EXPECT_EQ(l.orphans(life_read), 0u);
}

TEST(Lives, WhatNeverEndsIsForgotten)
{
    SamplePool pool(1 << 20);
    Lives l(pool, 1000);
    for (std::uint64_t i = 0; i < 100000; ++i)
        l.queue(life_read, i * 8, 8, i);
    EXPECT_LE(l.unfinished()[life_read], 1000u);
    EXPECT_EQ(l.unfinished()[life_read] + l.forgotten(), 100000u);
    EXPECT_EQ(l.waiting()[life_read], 100000);
    // The latest are still known.
    l.complete_bio(life_read, 99999 * 8, 8, 100100);
    EXPECT_EQ(l.orphans(life_read), 0u);
    // Bios hidden in one request that never ends go, too, and so do splits.
    Lives m(pool, 1000);
    m.queue(life_read, 0, 8, 0);
    m.getrq(life_read, 0, 8, 0);
    for (std::uint64_t i = 1; i < 50000; ++i) {
        m.queue(life_read, i * 8, 8, i);
        m.back_merge(life_read, i * 8, 8, i);
    }
    EXPECT_LE(m.unfinished()[life_read], 1001u);
    Lives s(pool, 1000);
    s.queue(life_read, 0, 4000000, 0);
    for (std::uint64_t i = 0; i < 50000; ++i)
        s.split(life_read, i, 1);
    EXPECT_LE(s.unfinished()[life_read], 1001u);
}

TEST(PlaceTable, AgainstTheStandardLibrary)
{
    PlaceTable table;
    std::unordered_multimap<std::uint64_t, std::uint32_t> model;
    std::mt19937_64 rng(1);
    for (std::uint32_t step = 0; step < 200000; ++step) {
        const std::uint64_t place = rng() % 64 * 8;
        if (rng() % 5 < 2 || model.empty()) {
            table.insert(place, step);
            model.emplace(place, step);
        } else {
            const std::size_t at = table.find(place, [](std::uint32_t) { return true; });
            const auto [first, last] = model.equal_range(place);
            ASSERT_EQ(at == PlaceTable::missing, first == last);
            if (first == last)
                continue;
            // The first that came.
            auto oldest = first;
            for (auto it = first; it != last; ++it)
                if (it->second < oldest->second)
                    oldest = it;
            ASSERT_EQ(table.value(at), oldest->second);
            table.erase(at);
            model.erase(oldest);
        }
        ASSERT_EQ(table.size(), model.size());
    }
}

}  // namespace
}  // namespace pageout::tally
