/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Service-time models of disks: one struct of plain values, and functions of
 * plain values that say when a request would be done.
 *
 * The same two files compile in the kernel, in KUnit and in user space (C and
 * C++). Nothing here reads a clock, allocates memory or knows the block layer:
 * every time is an argument, so that the same calls give the same answers
 * everywhere. Times are in nanoseconds (_ns), sizes in bytes unless a name says
 * sectors (of 512 bytes), rates in bytes per second.
 *
 * Where the numbers of the named models come from: docs/disk-models.md.
 */
#ifndef SIMDISK_MODEL_H
#define SIMDISK_MODEL_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SIMDISK_SECTOR_BYTES	512ULL
/* "never", as a time, and "no such thing", as a sector */
#define SIMDISK_NEVER		(~0ULL)

enum simdisk_kind {
	/* one arm over turning platters */
	SIMDISK_ROTATIONAL,
	/* units that work in parallel behind one link; also a LUN far away */
	SIMDISK_PARALLEL,
	/* done when submitted, at the cost of the copy alone */
	SIMDISK_SYNC,
};

/*
 * All that is known of a disk. Each field but the first three can be set by
 * its name (simdisk_model_set()), is printed by its name (simdisk_field_at())
 * and has its range checked (simdisk_model_check()).
 */
struct simdisk_model {
	const char *name;
	const char *about;
	enum simdisk_kind kind;

	/* What the host sees. */
	u64 tags;			/* requests the driver accepts at once */
	u64 max_request_bytes;
	u64 max_segments;
	u64 max_segment_bytes;
	u64 logical_block_bytes;
	u64 physical_block_bytes;
	u64 report_write_cache;		/* 1: the host knows of it and flushes */
	u64 fua;			/* 1: writes can go past the cache */
	u64 discard;			/* 1: discard is supported */

	/* The device's own queue and its link to the host. */
	u64 depth;			/* commands it knows of at once */
	u64 reorder;			/* 1: shortest positioning first, 0: FIFO */
	u64 max_age_ns;			/* reordering passes none over for longer */
	u64 command_read_ns;		/* spent on each command, one at a time */
	u64 command_write_ns;
	u64 flush_ns;			/* a flush, beside writing the cache out */
	u64 discard_ns;
	u64 link_read_bytes_per_s;
	u64 link_write_bytes_per_s;
	u64 write_cache_bytes;		/* 0: a write is done when on the medium */

	/* SIMDISK_ROTATIONAL */
	u64 disk_bytes;			/* the whole disk, for seek distances */
	u64 origin_bytes;		/* where on it the region starts */
	u64 stretch;			/* radial distances count this often */
	u64 revolution_ns;
	u64 zones;
	u64 outer_bytes_per_s;		/* sustained, first zone */
	u64 inner_bytes_per_s;		/* sustained, last zone */
	u64 heads;			/* tracks a cylinder */
	u64 head_switch_ns;
	u64 seek_track_ns;		/* to the next cylinder */
	u64 seek_average_ns;		/* mean over random pairs */
	u64 seek_full_ns;		/* across the whole disk */
	u64 write_settle_ns;		/* what a seek to write takes longer */
	u64 cache_segments;		/* read cache: segments .. */
	u64 segment_bytes;		/* .. and how far each reads ahead */

	/* SIMDISK_PARALLEL */
	u64 channels;			/* units that work at once; 0: no limit */
	u64 stripe_bytes;		/* what one unit holds of a run of data */
	u64 read_ns;			/* one unit's time for one stripe */
	u64 write_ns;
};

/* ---- The named models ------------------------------------------------- */

/* Number of named models. */
size_t simdisk_model_count(void);
/* The i-th named model; NULL past the last. */
const struct simdisk_model *simdisk_model_at(size_t i);
/* The model of that name; NULL where there is none. */
const struct simdisk_model *simdisk_model_find(const char *name);

/*
 * The rate at which the medium can move data in one long sequential run, in
 * bytes per second; for a rotational disk where the region lies (its origin).
 * 0: the device itself sets no limit (SIMDISK_SYNC). The last one is the
 * larger of the two, so that bytes / rate is the least time of any mix.
 */
u64 simdisk_media_read_bytes_per_s(const struct simdisk_model *m);
u64 simdisk_media_write_bytes_per_s(const struct simdisk_model *m);
u64 simdisk_media_bytes_per_s(const struct simdisk_model *m);

/* ---- Fields by name --------------------------------------------------- */

struct simdisk_field {
	const char *name;
	size_t offset;			/* of a u64 in struct simdisk_model */
	u64 min, max;			/* both allowed */
};

/* The i-th settable field; NULL past the last. */
const struct simdisk_field *simdisk_field_at(size_t i);
/* The field's value in a model. */
u64 simdisk_field_get(const struct simdisk_model *m, const struct simdisk_field *f);
/* Set a field by name: 0, -1 no field of that name, -2 out of its range. */
int simdisk_model_set(struct simdisk_model *m, const char *name, u64 value);
/*
 * NULL when the model makes sense, else what is wrong with it, as a sentence.
 * region_bytes is the size of the region the disk is to have.
 */
const char *simdisk_model_check(const struct simdisk_model *m, u64 region_bytes);

#ifdef __cplusplus
}
#endif

#endif /* SIMDISK_MODEL_H */
