// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which folios are reclaimed when their write ends, in mm/pageout.h.
 *
 * Needs: mm/pageout.h pageout_reclaim_when_written
 */
#include <kunit/test.h>

#include "pageout.h"

/* Only what is old; a neighbour that was in use was written for its place. */
static void only_what_is_old_test(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, pageout_reclaim_when_written(false, false));
	KUNIT_EXPECT_FALSE(test, pageout_reclaim_when_written(true, false));
	KUNIT_EXPECT_FALSE(test, pageout_reclaim_when_written(false, true));
	KUNIT_EXPECT_FALSE(test, pageout_reclaim_when_written(true, true));
}

/*
 * Whatever is never freed after its write must not have been taken as old
 * either: with cluster_referenced at 0 all that is taken is reclaimed.
 */
static void agrees_with_what_is_taken_test(struct kunit *test)
{
	int active, referenced;

	for (active = 0; active < 2; active++)
		for (referenced = 0; referenced < 2; referenced++)
			KUNIT_EXPECT_EQ(test,
					pageout_take_neighbour(active,
							       referenced,
							       false),
					pageout_reclaim_when_written(active,
								     referenced));
}

static struct kunit_case pageout_written_cases[] = {
	KUNIT_CASE(only_what_is_old_test),
	KUNIT_CASE(agrees_with_what_is_taken_test),
	{}
};

static struct kunit_suite pageout_written_suite = {
	.name = "pageout_written",
	.test_cases = pageout_written_cases,
};
kunit_test_suite(pageout_written_suite);

MODULE_DESCRIPTION("KUnit tests of what becomes of written folios");
MODULE_LICENSE("GPL");
