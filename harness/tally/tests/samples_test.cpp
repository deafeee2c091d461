// SPDX-License-Identifier: GPL-2.0-only
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "samples.h"

namespace pageout::tally {
namespace {

std::uint64_t nearest_rank(const std::vector<std::uint64_t>& sorted, std::uint64_t per_mille)
{
    return sorted[(sorted.size() * per_mille + 999) / 1000 - 1];
}

void expect_exact(const Latency& l, std::vector<std::uint64_t> values)
{
    std::sort(values.begin(), values.end());
    ASSERT_EQ(l.samples, values.size());
    EXPECT_TRUE(l.exact);
    EXPECT_EQ(l.min_ns, values.front());
    EXPECT_EQ(l.p50_ns, nearest_rank(values, 500));
    EXPECT_EQ(l.p90_ns, nearest_rank(values, 900));
    EXPECT_EQ(l.p99_ns, nearest_rank(values, 990));
    EXPECT_EQ(l.p999_ns, nearest_rank(values, 999));
    EXPECT_EQ(l.max_ns, values.back());
    std::uint64_t sum = 0;
    for (const std::uint64_t v : values)
        sum += v;
    EXPECT_EQ(l.sum_ns, sum);
}

Latency latency(const Series& s, const SamplePool& pool)
{
    const Series* one[] = {&s};
    return Series::latency(one, pool);
}

TEST(Series, NothingAtAll)
{
    SamplePool pool(0);
    Series s;
    EXPECT_EQ(latency(s, pool).samples, 0u);
}

TEST(Series, PercentilesOfOneTwoAndThree)
{
    // Nearest rank: the median of 1, 2 and 100 is 2, of 1 and 2 it is 1.
    SamplePool pool(1 << 20);
    Series s;
    s.add(pool, 100);
    EXPECT_EQ(latency(s, pool).p50_ns, 100u);
    Series t;
    for (const std::uint64_t v : {2u, 100u, 1u})
        t.add(pool, v);
    EXPECT_EQ(latency(t, pool).p50_ns, 2u);
    EXPECT_EQ(latency(t, pool).p90_ns, 100u);
    Series u;
    u.add(pool, 2);
    u.add(pool, 1);
    EXPECT_EQ(latency(u, pool).p50_ns, 1u);
}

// Exact whatever the number and wherever the samples are: in memory or, with a small budget, in the temporary file.
class Exactness : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {};

TEST_P(Exactness, AgainstASortedList)
{
    const auto [count, budget] = GetParam();
    SamplePool pool(budget);
    Series s;
    std::vector<std::uint64_t> values;
    std::mt19937_64 rng(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t v = rng();
        switch (rng() % 4) {
        case 0: v %= 1000; break;
        case 1: v %= 100000000; break;
        case 2: v = 80000; break;
        default: v >>= rng() % 64; break;
        }
        v >>= 10;  // sums must fit
        values.push_back(v);
        s.add(pool, v);
    }
    expect_exact(latency(s, pool), values);
    EXPECT_EQ(pool.spilled_bytes() > 0, count > 3000 && budget < 10000);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Exactness,
                         testing::Combine(testing::Values(1, 2, 10, 999, 1000, 1001, 1024, 1025, 100000),
                                          testing::Values(std::size_t{0}, std::size_t{8192}, std::size_t{64} << 20)));

TEST(Series, SeveralTogether)
{
    SamplePool pool(8192);
    Series a, b;
    std::vector<std::uint64_t> values;
    for (std::uint64_t i = 0; i < 20000; ++i) {
        (i % 3 ? a : b).add(pool, i * i);
        values.push_back(i * i);
    }
    const Series* both[] = {&a, &b};
    expect_exact(Series::latency(both, pool), values);
}

TEST(Series, WithoutATemporaryFileItSaysSo)
{
    const char* before = std::getenv("TMPDIR");
    const std::string keep = before ? before : "";
    ::setenv("TMPDIR", "/proc/no/such/directory", 1);
    SamplePool pool(0);
    Series s;
    std::vector<std::uint64_t> values;
    std::mt19937_64 rng(7);
    for (std::size_t i = 0; i < 50000; ++i) {
        values.push_back(rng() >> (20 + rng() % 40));
        s.add(pool, values.back());
    }
    if (before)
        ::setenv("TMPDIR", keep.c_str(), 1);
    else
        ::unsetenv("TMPDIR");
    std::sort(values.begin(), values.end());
    const Latency l = latency(s, pool);
    EXPECT_TRUE(pool.failed());
    EXPECT_FALSE(l.exact);
    EXPECT_EQ(l.samples, values.size());
    for (const auto& [got, per_mille] : {std::pair{l.p50_ns, 500}, {l.p90_ns, 900}, {l.p99_ns, 990}, {l.p999_ns, 999}}) {
        const std::uint64_t truth = nearest_rank(values, static_cast<std::uint64_t>(per_mille));
        EXPECT_GE(got, truth);
        EXPECT_LE(got - truth, truth / 1024 + 1);
    }
}

TEST(Buckets, CoverEveryValueOnce)
{
    for (std::size_t b = 0; b + 1 < buckets::count; ++b) {
        EXPECT_EQ(buckets::of(buckets::largest_in(b)), b);
        EXPECT_EQ(buckets::of(buckets::largest_in(b) + 1), b + 1);
    }
    EXPECT_EQ(buckets::largest_in(buckets::count - 1), UINT64_MAX);
}

}  // namespace
}  // namespace pageout::tally
