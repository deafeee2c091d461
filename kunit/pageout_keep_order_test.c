// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of keeping the order, in mm/pageout.h: which kept folios go back
 * to where they were found.
 *
 * Needs: mm/pageout.h pageout_keep_place
 */
#include <kunit/test.h>

#include "pageout.h"

/* When reclaim has trouble everything is rotated, as it always was. */
static void only_when_calm_test(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, pageout_keep_place(true, false, 0, 1000, 1));
	KUNIT_EXPECT_TRUE(test, pageout_keep_place(true, true, 0, 1000, 1));
	KUNIT_EXPECT_FALSE(test, pageout_keep_place(false, false, 0, 1000, 1));
	KUNIT_EXPECT_FALSE(test, pageout_keep_place(false, true, 0, 1000, 1));
}

/* What is held back is isolated, so it is few. */
static void few_are_held_back_test(struct kunit *test)
{
	unsigned int parked = 0;

	while (pageout_keep_place(true, true, parked, 1000000, 1))
		KUNIT_ASSERT_LE(test, ++parked, PAGEOUT_PARK_MAX);
	KUNIT_EXPECT_EQ(test, parked, PAGEOUT_PARK_MAX);
	KUNIT_EXPECT_FALSE(test, pageout_keep_place(true, false, 0,
						    1000000,
						    PAGEOUT_PARK_MAX + 1));
}

/*
 * A list that is busy as a whole: pass after pass scans what the last has put
 * at its end first. At least three quarters of each pass must be others, so
 * that the list is gone through.
 */
static void no_starvation_test(struct kunit *test)
{
	unsigned int scanned, parked, pass, rotated = 0;

	for (pass = 0; pass < 100; pass++) {
		parked = 0;
		for (scanned = 1; scanned <= SWAP_CLUSTER_MAX; scanned++) {
			if (pageout_keep_place(true, false, parked,
					       scanned, 1))
				parked++;
			else
				rotated++;
		}
		KUNIT_ASSERT_LE(test, parked, SWAP_CLUSTER_MAX / 4);
	}
	KUNIT_EXPECT_GE(test, rotated, 100 * SWAP_CLUSTER_MAX * 3 / 4);
}

/* Folios that will be taken when met again need no such limit. */
static void spared_run_test(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, pageout_keep_place(true, true, 31,
						   32, 1));
	KUNIT_EXPECT_FALSE(test, pageout_keep_place(true, false, 31,
						    32, 1));
}

static struct kunit_case pageout_keep_order_cases[] = {
	KUNIT_CASE(only_when_calm_test),
	KUNIT_CASE(few_are_held_back_test),
	KUNIT_CASE(no_starvation_test),
	KUNIT_CASE(spared_run_test),
	{}
};

static struct kunit_suite pageout_keep_order_suite = {
	.name = "pageout_keep_order",
	.test_cases = pageout_keep_order_cases,
};

kunit_test_suite(pageout_keep_order_suite);

MODULE_DESCRIPTION("KUnit suite of keeping the order of an LRU list");
MODULE_LICENSE("GPL");
