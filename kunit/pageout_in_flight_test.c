// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of page-out clusters, in mm/pageout.h: how much may be on its way
 * to swap, and which inactive folio counts as one in use.
 *
 * Needs: mm/pageout.h pageout_in_flight_limit
 * Needs: mm/pageout.h pageout_in_flight_here
 * Needs: mm/pageout.h pageout_in_use
 */
#include <kunit/test.h>

#include "pageout.h"

static void no_limit_unless_asked_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_in_flight_limit(0, 0), ULONG_MAX);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_limit(0, ULONG_MAX), ULONG_MAX);
}

/* What is asked for, and more where there is much memory; never less. */
static void limit_grows_with_memory_test(struct kunit *test)
{
	unsigned long anon, last = 0;

	KUNIT_EXPECT_EQ(test, pageout_in_flight_limit(1024, 0), 1024UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_limit(1024, 8 * 1024), 1024UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_limit(1024, 8 * 1025), 1025UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_limit(1, 7), 1UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_limit(UINT_MAX, 0),
			(unsigned long)UINT_MAX);
	for (anon = 0; anon < 1UL << 20; anon += 997) {
		unsigned long limit = pageout_in_flight_limit(64, anon);

		KUNIT_ASSERT_GE(test, limit, 64UL);
		KUNIT_ASSERT_GE(test, limit, last);
		last = limit;
	}
}

/* The writes of other nodes, and those to files, end no wait for swap here. */
static void only_the_node_counts_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_in_flight_here(0, 0), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_here(2000, 2000), 2000UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_here(2000, 0), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_here(2000, 500), 500UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_here(0, 5000), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_in_flight_here(10, 5000), 10UL);
}

/*
 * Every mapping starts out young: that alone says nothing, and neither does a
 * mark whose folio has not been touched since.
 */
static void in_use_needs_both_test(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, pageout_in_use(false, false));
	KUNIT_EXPECT_FALSE(test, pageout_in_use(true, false));
	KUNIT_EXPECT_FALSE(test, pageout_in_use(false, true));
	KUNIT_EXPECT_TRUE(test, pageout_in_use(true, true));
}

static struct kunit_case pageout_in_flight_cases[] = {
	KUNIT_CASE(no_limit_unless_asked_test),
	KUNIT_CASE(limit_grows_with_memory_test),
	KUNIT_CASE(only_the_node_counts_test),
	KUNIT_CASE(in_use_needs_both_test),
	{}
};

static struct kunit_suite pageout_in_flight_suite = {
	.name = "pageout_in_flight",
	.test_cases = pageout_in_flight_cases,
};
kunit_test_suite(pageout_in_flight_suite);

MODULE_DESCRIPTION("KUnit tests of the limit of writes in flight");
MODULE_LICENSE("GPL");
