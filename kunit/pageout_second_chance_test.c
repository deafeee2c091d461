// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of the second chance, in mm/pageout.h: which dirty folios are
 * spared, and that there is an end to it.
 *
 * Needs: mm/pageout.h pageout_spare
 */
#include <kunit/test.h>

#include "pageout.h"

/* Only kswapd spares, only where it could write, and not when in trouble. */
static void who_may_spare_test(struct kunit *test)
{
	int i;

	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, pageout_may_spare(i & 1, i & 2, i & 4),
				i == 7);
}

/* Trouble begins where a pass covers what is to be reclaimed. */
static void trouble_test(struct kunit *test)
{
	/* direct reclaim of 32 pages on a large node: every pass will do */
	KUNIT_EXPECT_EQ(test, pageout_trouble(12, 4UL << 20, 32), 0);
	KUNIT_EXPECT_EQ(test, pageout_trouble(9, 4UL << 20, 32), 3);
	/* ... on one of 40 MiB: 1/256 of it is the first that is enough */
	KUNIT_EXPECT_EQ(test, pageout_trouble(12, 10240, 32), -4);
	KUNIT_EXPECT_EQ(test, pageout_trouble(8, 10240, 32), 0);
	KUNIT_EXPECT_EQ(test, pageout_trouble(4, 10240, 32), 4);
	/* kswapd, which is to reclaim a high watermark */
	KUNIT_EXPECT_EQ(test, pageout_trouble(8, 4UL << 20, 20000), 0);
	/* nothing left, nothing wanted, everything wanted */
	KUNIT_EXPECT_EQ(test, pageout_trouble(6, 0, 32), 0);
	KUNIT_EXPECT_EQ(test, pageout_trouble(6, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, pageout_trouble(6, 1000, ULONG_MAX), 0);
	KUNIT_EXPECT_EQ(test, pageout_trouble(12, ULONG_MAX, 1), 0);
}

/*
 * Nothing is put off for more than three passes, nor in kswapd's last four, of
 * which the last is at priority 1.
 */
static void calm_test(struct kunit *test)
{
	int priority, trouble;

	for (priority = 0; priority <= DEF_PRIORITY; priority++)
		for (trouble = -DEF_PRIORITY; trouble <= DEF_PRIORITY; trouble++)
			KUNIT_EXPECT_EQ(test, pageout_calm(priority, trouble),
					trouble <= 2 && priority > 4);
}

/*
 * Whatever the size of a node and what is to be reclaimed: a scan that goes
 * through all priorities has passes at its end that spare nothing.
 */
static void scans_end_without_sparing_test(struct kunit *test)
{
	unsigned long reclaimable, to_reclaim;
	int priority, trouble;

	for (reclaimable = 1; reclaimable; reclaimable <<= 1) {
		for (to_reclaim = 1; to_reclaim; to_reclaim <<= 1) {
			for (priority = 0; priority <= 4; priority++) {
				trouble = pageout_trouble(priority, reclaimable,
							  to_reclaim);
				KUNIT_ASSERT_FALSE(test, pageout_calm(priority,
								      trouble));
			}
		}
	}
}

/* A short scan spares nothing: a run of taken pages comes first. */
static void taken_comes_first_test(struct kunit *test)
{
	struct pageout_chance chance = {};
	unsigned int i;

	for (i = 0; i < PAGEOUT_SPARE_GAP; i++)
		KUNIT_ASSERT_FALSE(test, pageout_spare(&chance, 1, false));
	KUNIT_EXPECT_TRUE(test, pageout_spare(&chance, 1, false));
}

/* Spared pages come in runs, one page in four, however long the scan. */
static void runs_and_share_test(struct kunit *test)
{
	unsigned int i, run = 0, gap = 0, spared = 0, runs = 0;
	const unsigned int pages = 100 * 4 * PAGEOUT_SPARE_RUN;
	struct pageout_chance chance = {};

	for (i = 0; i < pages; i++) {
		if (pageout_spare(&chance, 1, false)) {
			if (!run) {
				KUNIT_ASSERT_GE(test, gap, PAGEOUT_SPARE_GAP);
				runs++;
			}
			gap = 0;
			run++;
			spared++;
			KUNIT_ASSERT_LE(test, run, PAGEOUT_SPARE_RUN);
		} else {
			run = 0;
			gap++;
		}
	}
	KUNIT_EXPECT_EQ(test, spared, pages / 4);
	KUNIT_EXPECT_EQ(test, runs, 100U);
}

/*
 * Who has been spared once is taken: a list of folios that are all met for the
 * second time is written without exception. The objection of 2005 was that a
 * scan could find nothing to write for long.
 */
static void seen_is_taken_test(struct kunit *test)
{
	struct pageout_chance chance = {};
	unsigned int i;

	for (i = 0; i < 1000; i++)
		KUNIT_ASSERT_FALSE(test, pageout_spare(&chance, 1, true));
}

/* Those in between neither lengthen a run nor end it. */
static void seen_in_a_run_test(struct kunit *test)
{
	struct pageout_chance chance = { .taken = PAGEOUT_SPARE_GAP };
	unsigned int i, spared = 0;

	for (i = 0; i < PAGEOUT_SPARE_RUN; i++) {
		KUNIT_ASSERT_FALSE(test, pageout_spare(&chance, 1, true));
		spared += pageout_spare(&chance, 1, false);
	}
	KUNIT_EXPECT_EQ(test, spared, PAGEOUT_SPARE_RUN);
	KUNIT_EXPECT_FALSE(test, pageout_spare(&chance, 1, false));
}

/* Whatever the sizes and the past of the folios: never more than a quarter. */
static void any_mix_is_bounded_test(struct kunit *test)
{
	struct pageout_chance chance = {};
	unsigned long spared = 0, taken = 0;
	unsigned int i, run = 0;
	u32 x = 12345;

	for (i = 0; i < 100000; i++) {
		unsigned int nr_pages;

		x = x * 1664525 + 1013904223;
		nr_pages = 1U << ((x >> 16) % 10);
		if (pageout_spare(&chance, nr_pages, (x >> 28) < 4)) {
			spared += nr_pages;
			run += nr_pages;
			KUNIT_ASSERT_LE(test, run, PAGEOUT_SPARE_RUN);
		} else {
			taken += nr_pages;
			if (!chance.spared)
				run = 0;
		}
		KUNIT_ASSERT_LE(test, spared * 3, taken);
	}
	KUNIT_EXPECT_GT(test, spared, 0UL);
}

/* A folio larger than a run is never spared. */
static void large_folio_test(struct kunit *test)
{
	struct pageout_chance chance = { .taken = PAGEOUT_SPARE_GAP };

	KUNIT_EXPECT_FALSE(test,
			   pageout_spare(&chance, PAGEOUT_SPARE_RUN + 1, false));
	KUNIT_EXPECT_TRUE(test,
			  pageout_spare(&chance, PAGEOUT_SPARE_RUN, false));
	KUNIT_EXPECT_FALSE(test, pageout_spare(&chance, 1, false));
}

static struct kunit_case pageout_second_chance_cases[] = {
	KUNIT_CASE(who_may_spare_test),
	KUNIT_CASE(trouble_test),
	KUNIT_CASE(calm_test),
	KUNIT_CASE(scans_end_without_sparing_test),
	KUNIT_CASE(taken_comes_first_test),
	KUNIT_CASE(runs_and_share_test),
	KUNIT_CASE(seen_is_taken_test),
	KUNIT_CASE(seen_in_a_run_test),
	KUNIT_CASE(any_mix_is_bounded_test),
	KUNIT_CASE(large_folio_test),
	{}
};

static struct kunit_suite pageout_second_chance_suite = {
	.name = "pageout_second_chance",
	.test_cases = pageout_second_chance_cases,
};

kunit_test_suite(pageout_second_chance_suite);

MODULE_DESCRIPTION("KUnit suite of the second chance for dirty folios");
MODULE_LICENSE("GPL");
