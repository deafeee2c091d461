// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of asynchronous page-out, in mm/pageout.h: who hands over what,
 * and when a direct reclaimer may stop.
 *
 * Needs: mm/pageout.h pageout_choose_way
 */
#include <kunit/test.h>

#include "pageout.h"

static void only_direct_reclaim_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 32, 0, 128),
			PAGEOUT_ASYNC);
	KUNIT_EXPECT_EQ(test, pageout_choose_way(false, false, 32, 0, 128),
			PAGEOUT_SYNC);
}

/* Under pressure writing is what throttles the scan. */
static void not_under_pressure_test(struct kunit *test)
{
	int priority, trouble;

	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, true, 32, 0, 128),
			PAGEOUT_SYNC_PRIORITY);
	for (priority = 0; priority <= DEF_PRIORITY; priority++)
		for (trouble = -DEF_PRIORITY; trouble <= DEF_PRIORITY; trouble++)
			KUNIT_EXPECT_EQ(test, pageout_pressed(priority, trouble),
					trouble > 4 || priority < 4);
}

static void not_for_one_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 0, 0, 128),
			PAGEOUT_SYNC_FEW);
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 1, 0, 128),
			PAGEOUT_SYNC_FEW);
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 2, 0, 128),
			PAGEOUT_ASYNC);
}

/* Exactly up to the limit, and no sum overflows. */
static void queue_is_bounded_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 32, 96, 128),
			PAGEOUT_ASYNC);
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 32, 97, 128),
			PAGEOUT_SYNC_FULL);
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 32, 0, 31),
			PAGEOUT_SYNC_FULL);
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 2, 0, 0),
			PAGEOUT_SYNC_FULL);
	KUNIT_EXPECT_EQ(test, pageout_choose_way(true, false, 32,
						 ULONG_MAX - 8, 128),
			PAGEOUT_SYNC_FULL);
}

/* What is queued is locked and isolated: a small part of what can be had. */
static void limit_follows_memory_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_queue_limit(128, 1000000), 128UL);
	KUNIT_EXPECT_EQ(test, pageout_queue_limit(128, 1600), 100UL);
	KUNIT_EXPECT_EQ(test, pageout_queue_limit(128, 15), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_queue_limit(0, 1000000), 0UL);
}

/* What a device has in hand counts while it does anything at all. */
static void slow_is_not_stuck_test(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, pageout_queue_moves(0));
	KUNIT_EXPECT_TRUE(test, pageout_queue_moves(9 * HZ));
	KUNIT_EXPECT_TRUE(test, pageout_queue_moves(10 * HZ - 1));
	KUNIT_EXPECT_FALSE(test, pageout_queue_moves(10 * HZ));
	KUNIT_EXPECT_FALSE(test, pageout_queue_moves(ULONG_MAX));
}

/*
 * Nobody goes away with nothing because something is queued: that could be
 * taken for progress for ever.
 */
static void enough_test(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, pageout_async_enough(0, 1000, 32));
	KUNIT_EXPECT_FALSE(test, pageout_async_enough(8, 23, 32));
	KUNIT_EXPECT_TRUE(test, pageout_async_enough(8, 24, 32));
	KUNIT_EXPECT_TRUE(test, pageout_async_enough(32, 0, 32));
}

/* A reclaimer that keeps its own part of a full batch may stop after it. */
static void own_part_is_enough_test(struct kunit *test)
{
	KUNIT_EXPECT_GT(test, PAGEOUT_ASYNC_OWN, 0UL);
	KUNIT_EXPECT_TRUE(test, pageout_async_enough(PAGEOUT_ASYNC_OWN,
						     SWAP_CLUSTER_MAX -
						     PAGEOUT_ASYNC_OWN,
						     SWAP_CLUSTER_MAX));
}

static struct kunit_case pageout_async_cases[] = {
	KUNIT_CASE(only_direct_reclaim_test),
	KUNIT_CASE(not_under_pressure_test),
	KUNIT_CASE(not_for_one_test),
	KUNIT_CASE(queue_is_bounded_test),
	KUNIT_CASE(limit_follows_memory_test),
	KUNIT_CASE(slow_is_not_stuck_test),
	KUNIT_CASE(enough_test),
	KUNIT_CASE(own_part_is_enough_test),
	{}
};

static struct kunit_suite pageout_async_suite = {
	.name = "pageout_async",
	.test_cases = pageout_async_cases,
};

kunit_test_suite(pageout_async_suite);

MODULE_DESCRIPTION("KUnit suite of asynchronous page-out");
MODULE_LICENSE("GPL");
