/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Log-linear histogram buckets, as functions of plain values.
 *
 * Values below 32 have a bucket each; above, every power of two is divided into
 * 16 buckets of the same width, so a bucket is never wider than 1/16 of its
 * lower bound. Powers of two are always lower bounds.
 */
#ifndef PAGEOUT_PROBE_HIST_H
#define PAGEOUT_PROBE_HIST_H

#include <linux/bitops.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define PROBE_HIST_SUB_BITS	4	/* log2 of PROBE_HIST_SUBS */
#define PROBE_HIST_SUBS		16U

/* Buckets that hold values below 1 << bits apart; the last one holds the rest */
#define PROBE_HIST_BUCKETS(bits) \
	(((bits) - PROBE_HIST_SUB_BITS + 1) << PROBE_HIST_SUB_BITS)

/* The bucket of @value in a histogram of @buckets buckets. */
static inline unsigned int probe_hist_bucket(u64 value, unsigned int buckets)
{
	unsigned int shift = 0;

	if (value >= PROBE_HIST_SUBS)
		shift = fls64(value) - 1 - PROBE_HIST_SUB_BITS;

	return min((shift << PROBE_HIST_SUB_BITS) +
		   (unsigned int)(value >> shift), buckets - 1);
}

/* The smallest value in @bucket. */
static inline u64 probe_hist_floor(unsigned int bucket)
{
	unsigned int shift;

	if (bucket < 2 * PROBE_HIST_SUBS)
		return bucket;

	shift = (bucket >> PROBE_HIST_SUB_BITS) - 1;
	return (u64)(PROBE_HIST_SUBS + bucket % PROBE_HIST_SUBS) << shift;
}

/*
 * The largest value that the @permille-th part of all values can be, as far as
 * buckets tell; never more than @max, the largest value that was seen.
 * 0 where nothing was counted.
 */
static inline u64 probe_hist_quantile(const u64 *counts, unsigned int buckets,
				      unsigned int permille, u64 max)
{
	u64 total = 0, rank, seen = 0;
	unsigned int i;
	u32 rest;

	for (i = 0; i < buckets; i++)
		total += counts[i];
	if (!total)
		return 0;

	/* ceil(total * permille / 1000), and the first value for permille 0 */
	rank = div_u64_rem(total, 1000, &rest) * permille;
	rank += DIV_ROUND_UP(rest * permille, 1000);
	rank = max(rank, 1ULL);

	for (i = 0; i < buckets - 1; i++) {
		seen += counts[i];
		if (seen >= rank)
			return min(probe_hist_floor(i + 1) - 1, max);
	}
	return max;
}

#endif /* PAGEOUT_PROBE_HIST_H */
