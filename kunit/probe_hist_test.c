// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of pageout_probe's histogram buckets and percentiles.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "probe_hist.h"

#define BUCKETS		PROBE_HIST_BUCKETS(40)

/* Every bucket begins right after the one before, and holds its own floor. */
static void buckets_are_adjacent(struct kunit *test)
{
	unsigned int i;

	KUNIT_EXPECT_EQ(test, probe_hist_floor(0), 0ULL);
	for (i = 1; i < BUCKETS; i++) {
		u64 floor = probe_hist_floor(i);

		KUNIT_ASSERT_GT(test, floor, probe_hist_floor(i - 1));
		KUNIT_ASSERT_EQ(test, probe_hist_bucket(floor, BUCKETS), i);
		KUNIT_ASSERT_EQ(test, probe_hist_bucket(floor - 1, BUCKETS),
				i - 1);
	}
}

static void small_values_are_exact(struct kunit *test)
{
	u64 value;

	for (value = 0; value < 32; value++) {
		KUNIT_EXPECT_EQ(test, probe_hist_bucket(value, BUCKETS),
				(unsigned int)value);
		KUNIT_EXPECT_EQ(test, probe_hist_floor(value), value);
	}
	KUNIT_EXPECT_EQ(test, probe_hist_bucket(33, BUCKETS),
			probe_hist_bucket(32, BUCKETS));
}

/* A bucket is at most 1/16 of its floor wide. */
static void buckets_are_narrow(struct kunit *test)
{
	unsigned int i;

	for (i = 1; i < BUCKETS - 1; i++) {
		u64 floor = probe_hist_floor(i);
		u64 width = probe_hist_floor(i + 1) - floor;

		if (width > 1)
			KUNIT_ASSERT_LE(test, width * 16, floor);
	}
}

static void powers_of_two_are_floors(struct kunit *test)
{
	unsigned int bit;

	for (bit = 0; bit < 40; bit++) {
		u64 value = 1ULL << bit;

		KUNIT_EXPECT_EQ(test,
				probe_hist_floor(probe_hist_bucket(value, BUCKETS)),
				value);
	}
}

static void last_bucket_holds_the_rest(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, probe_hist_bucket((1ULL << 40) - 1, BUCKETS),
			BUCKETS - 1);
	KUNIT_EXPECT_EQ(test, probe_hist_bucket(1ULL << 40, BUCKETS),
			BUCKETS - 1);
	KUNIT_EXPECT_EQ(test, probe_hist_bucket(U64_MAX, BUCKETS), BUCKETS - 1);
}

static void quantiles(struct kunit *test)
{
	u64 *counts = kunit_kcalloc(test, BUCKETS, sizeof(*counts), GFP_KERNEL);
	unsigned int value;

	KUNIT_ASSERT_NOT_NULL(test, counts);
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 990, 0),
			0ULL);

	/* 1, 2, .. 100, once each: exact below 32, else 1/16 at most above */
	for (value = 1; value <= 100; value++)
		counts[probe_hist_bucket(value, BUCKETS)]++;
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 0, 100),
			1ULL);
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 10, 100),
			1ULL);
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 11, 100),
			2ULL);
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 250, 100),
			25ULL);
	/* 50 is in the bucket 50..51, 99 in 96..99 */
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 500, 100),
			51ULL);
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 990, 100),
			99ULL);
	KUNIT_EXPECT_EQ(test, probe_hist_quantile(counts, BUCKETS, 1000, 100),
			100ULL);
}

/* A percentile never exceeds the largest value, wherever its bucket ends. */
static void quantile_is_at_most_max(struct kunit *test)
{
	u64 *counts = kunit_kcalloc(test, BUCKETS, sizeof(*counts), GFP_KERNEL);
	unsigned int permille;
	u64 value = 1000003;

	KUNIT_ASSERT_NOT_NULL(test, counts);
	counts[probe_hist_bucket(value, BUCKETS)] = 7;
	for (permille = 0; permille <= 1000; permille++)
		KUNIT_ASSERT_EQ(test,
				probe_hist_quantile(counts, BUCKETS, permille,
						    value), value);
}

static struct kunit_case probe_hist_cases[] = {
	KUNIT_CASE(buckets_are_adjacent),
	KUNIT_CASE(small_values_are_exact),
	KUNIT_CASE(buckets_are_narrow),
	KUNIT_CASE(powers_of_two_are_floors),
	KUNIT_CASE(last_bucket_holds_the_rest),
	KUNIT_CASE(quantiles),
	KUNIT_CASE(quantile_is_at_most_max),
	{}
};

static struct kunit_suite probe_hist_suite = {
	.name = "probe_hist",
	.test_cases = probe_hist_cases,
};

kunit_test_suite(probe_hist_suite);

MODULE_DESCRIPTION("KUnit suite of pageout_probe's histograms");
MODULE_LICENSE("GPL");
