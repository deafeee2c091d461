// SPDX-License-Identifier: GPL-2.0-only
/*
 * What swap-in tells, in mm/pageout.h: how much to read around a slot, whether
 * clusters pay, and how full they are.
 *
 * Needs: mm/pageout.h pageout_swapin_window
 * Needs: mm/pageout.h pageout_swapin_widest
 * Needs: mm/pageout.h pageout_local_mean
 * Needs: mm/pageout.h pageout_fill_mean
 */
#include <kunit/test.h>

#include "pageout.h"

static void window_grows_with_hits_test(struct kunit *test)
{
	/* a quarter used is enough, whether the address is adjacent or not */
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(8, 2, false, 32), 16U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(8, 2, true, 32), 16U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(8, 8, false, 32), 16U);
	/* less than that leaves it as it is */
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(8, 1, false, 32), 8U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(8, 1, true, 32), 8U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(16, 3, true, 32), 16U);
}

static void window_without_hits_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(8, 0, true, 32), 16U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(8, 0, false, 32), 4U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(1, 0, false, 32), 1U);
	/* the first fault of a VMA */
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(0, 0, false, 32), 1U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(0, 0, true, 32), 2U);
}

static void window_is_bounded_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(32, 32, true, 32), 32U);
	/* vm.page-cluster has been made smaller */
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(32, 32, true, 8), 8U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(32, 0, false, 8), 8U);
	KUNIT_EXPECT_EQ(test, pageout_swapin_window(32, 9, true, 1), 1U);
}

/* vm.page-cluster may be set to 31; a cluster's reach is all that is of use. */
static void widest_window_test(struct kunit *test)
{
	int order;

	KUNIT_EXPECT_EQ(test, pageout_swapin_widest(0), 1UL);
	KUNIT_EXPECT_EQ(test, pageout_swapin_widest(3), 8UL);
	KUNIT_EXPECT_EQ(test, pageout_swapin_widest(8), 256UL);
	for (order = 9; order <= 31; order++)
		KUNIT_EXPECT_EQ(test, pageout_swapin_widest(order), 256UL);
}

/* Always a power of two within the limits, and never two steps at once. */
static void window_properties_test(struct kunit *test)
{
	unsigned int max, prev, hits, adjacent;

	for (max = 1; max <= 64; max *= 2)
		for (prev = 1; prev <= 64; prev *= 2)
			for (hits = 0; hits <= 64; hits++)
				for (adjacent = 0; adjacent < 2; adjacent++) {
					unsigned int win;

					win = pageout_swapin_window(prev, hits,
								    adjacent,
								    max);
					KUNIT_ASSERT_TRUE(test,
							  is_power_of_2(win));
					KUNIT_ASSERT_LE(test, win, max);
					KUNIT_ASSERT_LE(test, win, 2 * prev);
					KUNIT_ASSERT_GE(test, 2 * win,
							min(prev, max));
				}
}

/* From one page to the widest and back, in as many steps as there are. */
static void window_finds_its_way_test(struct kunit *test)
{
	unsigned int win = 1, n;

	for (n = 0; win < 32; n++)
		win = pageout_swapin_window(win, win, false, 32);
	KUNIT_EXPECT_EQ(test, n, 5U);
	for (n = 0; win > 1; n++)
		win = pageout_swapin_window(win, 0, false, 32);
	KUNIT_EXPECT_EQ(test, n, 5U);
}

static unsigned int swapins(unsigned int local, unsigned int n,
			    unsigned int ahead_every)
{
	unsigned int i;

	for (i = 1; i <= n; i++)
		local = pageout_local_mean(local, ahead_every &&
					   !(i % ahead_every));
	return local;
}

/* Clusters stop to pay where every page is needed by itself, and start again. */
static void clusters_pay_test(struct kunit *test)
{
	unsigned int local;

	KUNIT_EXPECT_TRUE(test, pageout_cluster_pays(PAGEOUT_LOCAL_ALL));
	KUNIT_EXPECT_EQ(test, swapins(PAGEOUT_LOCAL_ALL, 1000, 1),
			PAGEOUT_LOCAL_ALL);

	local = swapins(PAGEOUT_LOCAL_ALL, 100, 0);
	KUNIT_EXPECT_TRUE(test, pageout_cluster_pays(local));
	local = swapins(local, 100, 0);
	KUNIT_EXPECT_FALSE(test, pageout_cluster_pays(local));
	local = swapins(local, 100000, 0);
	KUNIT_EXPECT_FALSE(test, pageout_cluster_pays(local));

	/* some swap-ins of which all are local are enough */
	KUNIT_EXPECT_TRUE(test, pageout_cluster_pays(swapins(local, 16, 1)));
	/* one in eight is local, one in a hundred is not enough */
	KUNIT_EXPECT_TRUE(test, pageout_cluster_pays(swapins(local, 4000, 8)));
	KUNIT_EXPECT_FALSE(test,
			   pageout_cluster_pays(swapins(local, 4000, 100)));
}

static void local_mean_is_bounded_test(struct kunit *test)
{
	unsigned int local;

	for (local = 0; local <= PAGEOUT_LOCAL_ALL; local += 64) {
		KUNIT_ASSERT_LE(test, pageout_local_mean(local, true),
				PAGEOUT_LOCAL_ALL);
		KUNIT_ASSERT_GE(test, pageout_local_mean(local, true), local);
		KUNIT_ASSERT_LE(test, pageout_local_mean(local, false), local);
	}
}

static unsigned int filled(unsigned int fill, unsigned int n,
			   unsigned int pages, unsigned int size)
{
	while (n--)
		fill = pageout_fill_mean(fill, pages, size);
	return fill;
}

/* Whatever the size of clusters: what counts is the part that is there. */
static void sparse_clusters_test(struct kunit *test)
{
	unsigned int size;

	KUNIT_EXPECT_FALSE(test, pageout_sparse(PAGEOUT_FILL_FULL));
	for (size = PAGEOUT_CLUSTER_MIN; size <= PAGEOUT_CLUSTER_MAX;
	     size *= 2) {
		unsigned int fill = PAGEOUT_FILL_FULL;

		KUNIT_EXPECT_EQ(test, filled(fill, 100, size, size),
				PAGEOUT_FILL_FULL);
		/* more than a window has, as batches may bring */
		KUNIT_EXPECT_EQ(test, filled(fill, 100, 2 * size, size),
				PAGEOUT_FILL_FULL);
		fill = filled(fill, 64, size / 2, size);
		KUNIT_EXPECT_TRUE(test, pageout_sparse(fill));
		fill = filled(fill, 64, size, size);
		KUNIT_EXPECT_FALSE(test, pageout_sparse(fill));
		/* one of its kind says little */
		KUNIT_EXPECT_FALSE(test,
				   pageout_sparse(filled(fill, 1, 1, size)));
	}
}

static struct kunit_case pageout_swapin_cases[] = {
	KUNIT_CASE(window_grows_with_hits_test),
	KUNIT_CASE(window_without_hits_test),
	KUNIT_CASE(window_is_bounded_test),
	KUNIT_CASE(widest_window_test),
	KUNIT_CASE(window_properties_test),
	KUNIT_CASE(window_finds_its_way_test),
	KUNIT_CASE(clusters_pay_test),
	KUNIT_CASE(local_mean_is_bounded_test),
	KUNIT_CASE(sparse_clusters_test),
	{}
};

static struct kunit_suite pageout_swapin_suite = {
	.name = "pageout_swapin",
	.test_cases = pageout_swapin_cases,
};
kunit_test_suite(pageout_swapin_suite);

MODULE_DESCRIPTION("KUnit tests of what swap-in tells page-out");
MODULE_LICENSE("GPL");
