/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Enough of the kernel and of KUnit to compile the suites of mm/pageout.h for
 * the host, where scripts/mutations tries faults of policy in a second each.
 * The verdict that counts is that of the kernel's KUnit (scripts/kunit.py).
 */
#ifndef PAGEOUT_KUNIT_HOST_SHIM_H
#define PAGEOUT_KUNIT_HOST_SHIM_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define BITS_PER_LONG		64
#define HZ			1000
#define SWAP_CLUSTER_MAX	32UL
#define DEF_PRIORITY		12
#define GFP_KERNEL		0
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define fallthrough		__attribute__((__fallthrough__))
#define min(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b)		({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define min3(a, b, c)		min(min(a, b), c)
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define is_power_of_2(n)	((n) && !((n) & ((n) - 1)))

static inline int fls_long(unsigned long n)
{
	return n ? 64 - __builtin_clzl(n) : 0;
}

static inline void *memchr_inv(const void *start, int c, size_t bytes)
{
	const unsigned char *p = start;

	for (; bytes; p++, bytes--)
		if (*p != (unsigned char)c)
			return (void *)p;
	return NULL;
}

struct bio_vec;
struct page;

struct kunit {
	const char *suite, *name;
	bool failed;
};

struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define KUNIT_CASE(f)		{ .run = f, .name = #f }
#define KUNIT_HOST(test, ok, stop) \
	do { if (!(ok)) { (test)->failed = true; if (stop) return; } } while (0)
#define KUNIT_EXPECT_TRUE(t, c)		KUNIT_HOST(t, (c), false)
#define KUNIT_EXPECT_FALSE(t, c)	KUNIT_HOST(t, !(c), false)
#define KUNIT_EXPECT_EQ(t, a, b)	KUNIT_HOST(t, (a) == (b), false)
#define KUNIT_EXPECT_NE(t, a, b)	KUNIT_HOST(t, (a) != (b), false)
#define KUNIT_EXPECT_LT(t, a, b)	KUNIT_HOST(t, (a) < (b), false)
#define KUNIT_EXPECT_LE(t, a, b)	KUNIT_HOST(t, (a) <= (b), false)
#define KUNIT_EXPECT_GT(t, a, b)	KUNIT_HOST(t, (a) > (b), false)
#define KUNIT_EXPECT_GE(t, a, b)	KUNIT_HOST(t, (a) >= (b), false)
#define KUNIT_ASSERT_TRUE(t, c)		KUNIT_HOST(t, (c), true)
#define KUNIT_ASSERT_FALSE(t, c)	KUNIT_HOST(t, !(c), true)
#define KUNIT_ASSERT_EQ(t, a, b)	KUNIT_HOST(t, (a) == (b), true)
#define KUNIT_ASSERT_NE(t, a, b)	KUNIT_HOST(t, (a) != (b), true)
#define KUNIT_ASSERT_LT(t, a, b)	KUNIT_HOST(t, (a) < (b), true)
#define KUNIT_ASSERT_LE(t, a, b)	KUNIT_HOST(t, (a) <= (b), true)
#define KUNIT_ASSERT_GT(t, a, b)	KUNIT_HOST(t, (a) > (b), true)
#define KUNIT_ASSERT_GE(t, a, b)	KUNIT_HOST(t, (a) >= (b), true)
#define KUNIT_ASSERT_NOT_NULL(t, p)	KUNIT_HOST(t, (p) != NULL, true)
#define KUNIT_FAIL(t, ...)		KUNIT_HOST(t, false, false)
#define KUNIT_EXPECT_TRUE_MSG(t, c, ...)	KUNIT_EXPECT_TRUE(t, c)
#define KUNIT_EXPECT_FALSE_MSG(t, c, ...)	KUNIT_EXPECT_FALSE(t, c)
#define KUNIT_EXPECT_EQ_MSG(t, a, b, ...)	KUNIT_EXPECT_EQ(t, a, b)
#define KUNIT_ASSERT_EQ_MSG(t, a, b, ...)	KUNIT_ASSERT_EQ(t, a, b)
#define KUNIT_ASSERT_LE_MSG(t, a, b, ...)	KUNIT_ASSERT_LE(t, a, b)
#define kunit_kcalloc(t, n, size, gfp)	calloc(n, size)
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text)

#define kunit_test_suite(s)						\
int main(void)								\
{									\
	struct kunit_case *c;						\
	int failed = 0, n = 0;						\
									\
	for (c = (s).test_cases; c->run; c++, n++) {			\
		struct kunit test = { .suite = (s).name, .name = c->name }; \
									\
		c->run(&test);						\
		if (test.failed) {					\
			printf("not ok: %s/%s\n", (s).name, c->name);	\
			failed++;					\
		}							\
	}								\
	printf("%d passed, %d failed\n", n - failed, failed);		\
	return failed != 0;						\
}									\
extern int pageout_kunit_host

#endif
