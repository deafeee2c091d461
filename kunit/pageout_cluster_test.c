// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of page-out clusters, in mm/pageout.h: which neighbours are looked
 * at, in which order, and which may be taken.
 *
 * Needs: mm/pageout.h pageout_walk_start
 * Needs: mm/pageout.h pageout_find_run
 */
#include <kunit/test.h>

#include "pageout.h"

/* Walk to the end, taking every index that @mask (if any) allows. */
static unsigned int walk_all(struct pageout_walk *walk, unsigned long *visited,
			     unsigned int max, const bool *refuse)
{
	unsigned long index;
	unsigned int n = 0;

	while (pageout_walk_next(walk, &index)) {
		if (n < max)
			visited[n] = index;
		if (!refuse || !refuse[n])
			walk->room--;
		n++;
		if (n > 4 * PAGEOUT_CLUSTER_MAX)
			break;
	}
	return n;
}

/* Backward to the boundary, forward, backward again: FreeBSD's order. */
static void walk_order_test(struct kunit *test)
{
	static const unsigned long want[] = { 34, 33, 32, 36, 37, 38, 39 };
	unsigned long seen[16];
	struct pageout_walk walk;
	unsigned int n, i;

	pageout_walk_start(&walk, 35, 8, 7, 0, 1000);
	n = walk_all(&walk, seen, 16, NULL);
	KUNIT_ASSERT_EQ(test, n, 7U);
	for (i = 0; i < 7; i++)
		KUNIT_EXPECT_EQ(test, seen[i], want[i]);
}

/*
 * The version of 2005 looked at one page only on its way back, as its loop
 * ended with an unconditional break. Every page up to the boundary counts.
 */
static void walk_goes_back_to_the_boundary_test(struct kunit *test)
{
	unsigned long seen[32];
	struct pageout_walk walk;
	unsigned int n, i;

	pageout_walk_start(&walk, 63, 32, 31, 0, 1000);
	n = walk_all(&walk, seen, 32, NULL);
	KUNIT_ASSERT_EQ(test, n, 31U);
	for (i = 0; i < 31; i++)
		KUNIT_EXPECT_EQ(test, seen[i], 62UL - i);
}

/* Beyond the boundary only when forward has left room. */
static void walk_beyond_test(struct kunit *test)
{
	static const unsigned long want[] = { 33, 32, 35, 36, 31, 30, 29 };
	unsigned long seen[16];
	struct pageout_walk walk;
	unsigned int n, i;

	pageout_walk_start(&walk, 34, 8, 7, 0, 36);
	n = walk_all(&walk, seen, 16, NULL);
	KUNIT_ASSERT_EQ(test, n, 7U);
	for (i = 0; i < 7; i++)
		KUNIT_EXPECT_EQ(test, seen[i], want[i]);
}

/* A neighbour that cannot be taken does not end the walk. */
static void walk_skips_holes_test(struct kunit *test)
{
	bool refuse[64] = {};
	unsigned long seen[64];
	struct pageout_walk walk;
	unsigned int n, i;

	for (i = 0; i < 64; i += 2)
		refuse[i] = true;
	pageout_walk_start(&walk, 16, 16, 15, 0, 1000);
	n = walk_all(&walk, seen, 64, refuse);
	KUNIT_EXPECT_EQ(test, walk.room, 0U);
	KUNIT_EXPECT_EQ(test, n, 30U);
	/* forward first, as the pivot is on the boundary, then beyond it */
	KUNIT_EXPECT_EQ(test, seen[0], 17UL);
	KUNIT_EXPECT_EQ(test, seen[14], 31UL);
	KUNIT_EXPECT_EQ(test, seen[15], 15UL);
}

static void walk_no_room_test(struct kunit *test)
{
	struct pageout_walk walk;
	unsigned long index;

	pageout_walk_start(&walk, 5, 32, 0, 0, 100);
	KUNIT_EXPECT_FALSE(test, pageout_walk_next(&walk, &index));
}

/* The lowest and the highest indices there are. */
static void walk_ends_of_the_world_test(struct kunit *test)
{
	unsigned long seen[64];
	struct pageout_walk walk;
	unsigned int n, i;

	pageout_walk_start(&walk, 0, 32, 31, 0, ULONG_MAX);
	n = walk_all(&walk, seen, 64, NULL);
	KUNIT_ASSERT_EQ(test, n, 31U);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, seen[i], i + 1UL);

	pageout_walk_start(&walk, ULONG_MAX, 32, 31, 0, ULONG_MAX);
	n = walk_all(&walk, seen, 64, NULL);
	KUNIT_ASSERT_EQ(test, n, 31U);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, seen[i], ULONG_MAX - 1 - i);

	/* an object of one page */
	pageout_walk_start(&walk, 7, 32, 31, 7, 7);
	KUNIT_EXPECT_EQ(test, walk_all(&walk, seen, 64, NULL), 0U);
}

/*
 * Whatever the pivot, the size, the limits and what can be taken: no index
 * twice, none outside the limits, none further than a cluster's size, never the
 * pivot, and never more taken than there is room for.
 */
static void walk_properties_test(struct kunit *test)
{
	const unsigned int max = 2 * PAGEOUT_CLUSTER_MAX;
	unsigned long *seen; /* 4 KB: too much for the stack */
	u32 seed = 12345;
	int round;

	seen = kunit_kcalloc(test, max, sizeof(*seen), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (round = 0; round < 2000; round++) {
		unsigned int size, room, n = 0, taken = 0, i;
		unsigned long pivot, first, last, index;
		struct pageout_walk walk;

		seed = seed * 1664525 + 1013904223;
		size = 2U << (seed >> 8) % 6;
		room = (seed >> 16) % size;
		pivot = (seed >> 4) % 5000;
		first = pivot - min(pivot, (unsigned long)(seed % 97));
		last = pivot + (seed >> 12) % 97;
		pageout_walk_start(&walk, pivot, size, room, first, last);
		while (pageout_walk_next(&walk, &index)) {
			KUNIT_ASSERT_LT(test, n, max);
			KUNIT_ASSERT_NE(test, index, pivot);
			KUNIT_ASSERT_GE(test, index, first);
			KUNIT_ASSERT_LE(test, index, last);
			KUNIT_ASSERT_LT(test, index > pivot ? index - pivot :
					pivot - index, (unsigned long)size);
			for (i = 0; i < n; i++)
				KUNIT_ASSERT_NE(test, seen[i], index);
			seen[n++] = index;
			if (index % 3) {
				walk.room--;
				taken++;
			}
		}
		KUNIT_ASSERT_LE(test, taken, room);
	}
}

static void cluster_valid_test(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, pageout_cluster_valid(0));
	KUNIT_EXPECT_FALSE(test, pageout_cluster_valid(1));
	KUNIT_EXPECT_TRUE(test, pageout_cluster_valid(2));
	KUNIT_EXPECT_FALSE(test, pageout_cluster_valid(3));
	KUNIT_EXPECT_TRUE(test, pageout_cluster_valid(32));
	KUNIT_EXPECT_FALSE(test, pageout_cluster_valid(33));
	KUNIT_EXPECT_TRUE(test, pageout_cluster_valid(256));
	KUNIT_EXPECT_FALSE(test, pageout_cluster_valid(512));
	KUNIT_EXPECT_FALSE(test, pageout_cluster_valid(ULONG_MAX));
	KUNIT_EXPECT_FALSE(test, pageout_cluster_valid(1UL << (BITS_PER_LONG - 1)));
}

/* By halves, and it ends. */
static void shorter_run_test(struct kunit *test)
{
	int run, n = 0;

	KUNIT_EXPECT_EQ(test, pageout_shorter_run(32), 16);
	KUNIT_EXPECT_EQ(test, pageout_shorter_run(13), 6);
	for (run = PAGEOUT_CLUSTER_MAX; run >= PAGEOUT_RUN_MIN;
	     run = pageout_shorter_run(run))
		n++;
	KUNIT_EXPECT_EQ(test, n, 7);
	for (run = 1; run <= (int)PAGEOUT_CLUSTER_MAX; run++)
		KUNIT_EXPECT_LT(test, pageout_shorter_run(run), run);
}

/* What find_run() is to find, slot by slot. */
static unsigned int find_run_slowly(const unsigned char *map,
				    unsigned long start, unsigned long end,
				    unsigned int nr, unsigned long *found,
				    unsigned int longest)
{
	unsigned int len = 0;

	for (; start < end && longest < nr; start++) {
		len = map[start] ? 0 : len + 1;
		if (len > longest) {
			longest = len;
			*found = start + 1 - len;
		}
	}
	return longest;
}

static void find_run_test(struct kunit *test)
{
	/* free: 1-2, 4-7, 9, 11-15 */
	static const unsigned char map[] = {
		0x3f, 0, 0, 1, 0, 0, 0, 0, 0x40, 0, 0x41, 0, 0, 0, 0, 0,
	};
	unsigned long found = 99;

	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 0, 16, 2, &found, 0), 2U);
	KUNIT_EXPECT_EQ(test, found, 1UL);
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 0, 16, 4, &found, 0), 4U);
	KUNIT_EXPECT_EQ(test, found, 4UL);
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 0, 16, 5, &found, 4), 5U);
	KUNIT_EXPECT_EQ(test, found, 11UL);
	/* from the middle of a run; up to the end and no further */
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 5, 9, 4, &found, 0), 3U);
	KUNIT_EXPECT_EQ(test, found, 5UL);
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 11, 14, 8, &found, 0), 3U);
	KUNIT_EXPECT_EQ(test, found, 11UL);
	/* not so many in a row: the longest */
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 0, 16, 32, &found, 3), 5U);
	KUNIT_EXPECT_EQ(test, found, 11UL);
	/* no longer one than what there is already: nothing is touched */
	found = 99;
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 0, 16, 32, &found, 5), 5U);
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 0, 11, 8, &found, 4), 4U);
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 3, 4, 4, &found, 0), 0U);
	KUNIT_EXPECT_EQ(test, pageout_find_run(map, 7, 7, 4, &found, 0), 0U);
	KUNIT_EXPECT_EQ(test, found, 99UL);
}

/* Every map of 12 slots, in which a byte may be what is not free in many ways. */
static void find_run_properties_test(struct kunit *test)
{
	unsigned int bits, nr, longest, i;
	unsigned char map[12];

	for (bits = 0; bits < 1U << 12; bits++) {
		for (i = 0; i < 12; i++)
			map[i] = bits & (1U << i) ? 1 + i * 23 : 0;
		for (nr = 1; nr <= 13; nr += 2)
			for (longest = 0; longest < nr; longest++) {
				unsigned long want = 99, got = 99;
				unsigned int n;

				n = find_run_slowly(map, 1, 12, nr, &want, longest);
				KUNIT_ASSERT_EQ(test, n,
						pageout_find_run(map, 1, 12, nr,
								 &got, longest));
				KUNIT_ASSERT_EQ(test, got, want);
			}
	}
}

/* Half of the pages follow the one before: no less, whatever the batch. */
static void in_runs_test(struct kunit *test)
{
	unsigned int nr, runs;

	/* nothing without a slot says nothing */
	KUNIT_EXPECT_FALSE(test, pageout_in_runs(0, 0));
	KUNIT_EXPECT_FALSE(test, pageout_in_runs(1, 1));
	KUNIT_EXPECT_TRUE(test, pageout_in_runs(2, 1));
	KUNIT_EXPECT_FALSE(test, pageout_in_runs(3, 2));
	KUNIT_EXPECT_TRUE(test, pageout_in_runs(32, 4));
	KUNIT_EXPECT_TRUE(test, pageout_in_runs(32, 16));
	KUNIT_EXPECT_FALSE(test, pageout_in_runs(32, 17));
	/* no order at all never passes for one, and one run always does */
	for (nr = 2; nr <= 2 * PAGEOUT_CLUSTER_MAX; nr++) {
		KUNIT_EXPECT_FALSE(test, pageout_in_runs(nr, nr));
		KUNIT_EXPECT_TRUE(test, pageout_in_runs(nr, 1));
		for (runs = 2; runs <= nr; runs++)
			if (pageout_in_runs(nr, runs))
				KUNIT_EXPECT_TRUE(test, pageout_in_runs(nr, runs - 1));
	}
}

static void cluster_size_test(struct kunit *test)
{
	unsigned int wanted, window;

	KUNIT_EXPECT_EQ(test, pageout_cluster_size(32, 8, false), 32U);
	KUNIT_EXPECT_EQ(test, pageout_cluster_size(32, 8, true), 8U);
	KUNIT_EXPECT_EQ(test, pageout_cluster_size(32, 32, true), 32U);
	KUNIT_EXPECT_EQ(test, pageout_cluster_size(8, 256, true), 8U);
	/* without readahead there is no window to complete */
	KUNIT_EXPECT_EQ(test, pageout_cluster_size(32, 1, true), 32U);
	KUNIT_EXPECT_EQ(test, pageout_cluster_size(32, 2, true), 2U);
	for (wanted = PAGEOUT_CLUSTER_MIN; wanted <= PAGEOUT_CLUSTER_MAX; wanted *= 2)
		for (window = 1; window <= PAGEOUT_CLUSTER_MAX; window *= 2) {
			KUNIT_EXPECT_EQ(test, pageout_cluster_size(wanted, window, false), wanted);
			KUNIT_EXPECT_TRUE(test, pageout_cluster_valid(pageout_cluster_size(wanted, window, true)));
		}
}

static void neighbour_limit_test(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(0, 8000, 0), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(7, 8000, 0), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8, 8000, 0), 1UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 8000, 0), 1000UL);
	/* where slots run out few pages may hold both a slot and memory */
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 0, 0), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 7, 0), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 800, 0), 100UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 800, 400), 50UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 800, 800), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 800, 801), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, 0, 9000), 0UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(8000, ULONG_MAX, 9000), 1000UL);
	/* what is in use keeps its slot and is not waited for */
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(800, 2000, 9000), 100UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(800, 1200, 9000), 50UL);
	KUNIT_EXPECT_EQ(test, pageout_neighbour_limit(800, 800, 9000), 0UL);
}

static void worth_a_look_test(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, pageout_worth_a_look(0, 0));
	KUNIT_EXPECT_FALSE(test, pageout_worth_a_look(64, 64));
	KUNIT_EXPECT_TRUE(test, pageout_worth_a_look(65, 65));
	/* 64 are looked at for one at the most */
	KUNIT_EXPECT_TRUE(test, pageout_worth_a_look(65, 64 * 65 - 1));
	KUNIT_EXPECT_FALSE(test, pageout_worth_a_look(65, 64 * 65));
	KUNIT_EXPECT_TRUE(test, pageout_worth_a_look(1001, 64000));
	KUNIT_EXPECT_FALSE(test, pageout_worth_a_look(1000, 64000));
	KUNIT_EXPECT_FALSE(test, pageout_worth_a_look(64, ULONG_MAX));
}

static void take_neighbour_test(struct kunit *test)
{
	/* FreeBSD's rule: inactive, whatever the reference bits say */
	KUNIT_EXPECT_TRUE(test, pageout_take_neighbour(false, false, true));
	KUNIT_EXPECT_TRUE(test, pageout_take_neighbour(false, true, true));
	KUNIT_EXPECT_FALSE(test, pageout_take_neighbour(true, false, true));
	KUNIT_EXPECT_FALSE(test, pageout_take_neighbour(true, true, true));
	/* the stricter one: unreferenced as well */
	KUNIT_EXPECT_TRUE(test, pageout_take_neighbour(false, false, false));
	KUNIT_EXPECT_FALSE(test, pageout_take_neighbour(false, true, false));
	KUNIT_EXPECT_FALSE(test, pageout_take_neighbour(true, false, false));
	KUNIT_EXPECT_FALSE(test, pageout_take_neighbour(true, true, false));
}

static struct kunit_case pageout_cluster_cases[] = {
	KUNIT_CASE(walk_order_test),
	KUNIT_CASE(walk_goes_back_to_the_boundary_test),
	KUNIT_CASE(walk_beyond_test),
	KUNIT_CASE(walk_skips_holes_test),
	KUNIT_CASE(walk_no_room_test),
	KUNIT_CASE(walk_ends_of_the_world_test),
	KUNIT_CASE(walk_properties_test),
	KUNIT_CASE(cluster_valid_test),
	KUNIT_CASE(shorter_run_test),
	KUNIT_CASE(find_run_test),
	KUNIT_CASE(find_run_properties_test),
	KUNIT_CASE(in_runs_test),
	KUNIT_CASE(cluster_size_test),
	KUNIT_CASE(neighbour_limit_test),
	KUNIT_CASE(worth_a_look_test),
	KUNIT_CASE(take_neighbour_test),
	{}
};

static struct kunit_suite pageout_cluster_suite = {
	.name = "pageout_cluster",
	.test_cases = pageout_cluster_cases,
};
kunit_test_suite(pageout_cluster_suite);

MODULE_DESCRIPTION("KUnit tests of the policy of page-out clusters");
MODULE_LICENSE("GPL");
