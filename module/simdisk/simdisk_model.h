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
/* the same type as uint64_t */
typedef __UINT64_TYPE__ u64;
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
	u64 link_duplex;		/* 1: both directions at once */

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
	u64 write_cache_bytes;		/* 0: a write is done when on the medium */
	u64 destage_idle_ns;		/* cached writes go out when idle so long */

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

/* ---- A rotational disk's geometry -------------------------------------- */

#define SIMDISK_ZONES_MAX	32

/*
 * Within a zone all tracks hold the same number of sectors. Track and cylinder
 * skew are spread over the track: the angle of a sector is where the head
 * finds it in one long sequential run at the sustained rate, so that such a run
 * never waits, and everything else waits exactly as long as the platter turns.
 */
struct simdisk_zone {
	u64 first_sector;
	u64 first_track;
	u64 sectors_per_track;
};

struct simdisk_geometry {
	u64 nr_zones;
	u64 tracks;
	u64 cylinders;
	/* seek(d) = track + sqrt_ns * sqrt(x) + linear_ns * x, x = d / full */
	u64 seek_sqrt_ns;
	u64 seek_linear_ns;
	struct simdisk_zone zone[SIMDISK_ZONES_MAX];
};

/* Lay out the disk of a model that passed simdisk_model_check(). */
void simdisk_geometry_init(struct simdisk_geometry *g, const struct simdisk_model *m);
/* Seek over that many cylinders; 0 for 0, the full stroke for all and more. */
u64 simdisk_seek_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
		    u64 cylinders);
/* Track of a sector of the region (the model's origin is added). */
u64 simdisk_track(const struct simdisk_model *m, const struct simdisk_geometry *g,
		  u64 sector);
/* Sectors of the track that holds a sector of the region. */
u64 simdisk_track_sectors(const struct simdisk_model *m,
			  const struct simdisk_geometry *g, u64 sector);
/* When in a revolution the sector comes under the head: 0 .. revolution_ns - 1. */
u64 simdisk_angle_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
		     u64 sector);
/* Time for the medium to pass that many sectors from sector on. */
u64 simdisk_transfer_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
			u64 sector, u64 sectors);
/* The seek alone, from where the head is (sector from) to sector to. */
u64 simdisk_travel_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
		      u64 from, u64 to, bool write);
/* Seek and rotation from the head's place at now_ns until sector to is under it. */
u64 simdisk_position_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
			u64 from, u64 to, bool write, u64 now_ns);

/* ---- A disk at work ----------------------------------------------------- */

/*
 * A discrete-event simulation: requests go in with the time of their arrival,
 * and come out with the time they are done. It holds no time of its own:
 * the result is a function of the sequence of calls alone.
 *
 *	simdisk_submit(e, io, now)	the request is in the driver's queue
 *	simdisk_next_ns(e)		when to look next (SIMDISK_NEVER: no need)
 *	simdisk_advance(e, now)		let time pass until now
 *	simdisk_pop_done(e)		next request done, in order of io->done_ns
 *
 * now must not run backwards. The caller locks.
 */
enum simdisk_op {
	SIMDISK_READ,
	SIMDISK_WRITE,
	SIMDISK_FLUSH,
	SIMDISK_DISCARD,
};

struct simdisk_io {
	/* filled in by the caller before simdisk_submit() */
	enum simdisk_op op;
	bool fua;
	u64 sector;			/* within the region */
	u64 sectors;

	/* results */
	u64 arrive_ns;
	u64 done_ns;

	/* the simulation's own */
	struct simdisk_io *prev, *next;
	u64 when_ns;			/* of its next event */
	u64 rest_ns;			/* least time from that event to the end */
	u64 seq;
	unsigned int stage;
};

struct simdisk_list {
	struct simdisk_io *first, *last;
};

#define SIMDISK_CHANNELS_MAX	256
#define SIMDISK_SEGMENTS_MAX	32
/* Runs of sectors the write cache keeps apart; one that touches another joins it. */
#define SIMDISK_EXTENTS_MAX	32

struct simdisk_segment {
	u64 start, end;			/* sectors; empty when equal */
	u64 used;			/* for the choice of the oldest */
};

struct simdisk_extent {
	u64 start, end;			/* sectors */
	u64 seq;			/* of its oldest write */
};

struct simdisk_counters {
	u64 requests, reads, writes, flushes, discards;
	u64 bytes_read, bytes_written;
	u64 busy_ns;			/* with at least one command in the device */
	u64 service_ns;			/* sum over requests, arrival to done */
	u64 max_service_ns;
	u64 seeks, seek_ns;		/* that moved the arm */
	u64 rotation_ns;		/* waits for the platter */
	u64 media_ns;			/* transfer to or from the platter */
	u64 cache_hits;			/* reads from the disk's memory */
	u64 stream_hits;		/* reads that the read-ahead was about to reach */
	u64 destages;			/* cached writes brought to the platter */
	u64 reordered;			/* served before an older request */
	u64 aged;			/* served first for their age */
};

struct simdisk_engine {
	struct simdisk_model m;
	struct simdisk_geometry g;
	struct simdisk_counters n;

	struct simdisk_list wait;	/* in the driver, not yet in the device */
	struct simdisk_list events;	/* in order of when_ns, then seq */
	struct simdisk_list arm_queue;	/* wait for the arm, oldest first */
	struct simdisk_list room_queue;	/* writes that wait for cache room */
	struct simdisk_list flush_queue; /* flushes that wait for the cache */
	struct simdisk_list done;
	u64 seq;
	u64 in_device;
	u64 in_command;			/* of those: not yet understood */
	u64 busy_since_ns;
	u64 command_free_ns;
	u64 link_free_ns[2];		/* reads, writes */

	/* SIMDISK_ROTATIONAL */
	u64 head;			/* the sector that the head is about to pass .. */
	bool arm_busy;
	bool arm_destaged;		/* last service was a destage */
	bool streaming;			/* reading ahead into segment[active] .. */
	u64 active;
	u64 stream_from;		/* .. from this sector at stream_since_ns .. */
	u64 stream_since_ns;
	u64 stream_limit;		/* .. up to this one */
	struct simdisk_segment segment[SIMDISK_SEGMENTS_MAX];
	u64 segment_clock;
	struct simdisk_extent extent[SIMDISK_EXTENTS_MAX];
	u64 nr_extents;
	u64 dirty_sectors;		/* in extents and on their way out */
	u64 reserved_sectors;		/* promised to writes in transfer */
	u64 nr_reserved;
	bool draining;
	u64 idle_ns;			/* when the idle arm begins to destage */
	u64 choose_ns;			/* when the free arm looks for work */
	struct simdisk_extent going;	/* on its way to the platter */
	struct simdisk_io destage;

	/* SIMDISK_PARALLEL */
	u64 channel_free_ns[SIMDISK_CHANNELS_MAX];
};

/* Start with an idle disk of a model that passed simdisk_model_check(). */
void simdisk_engine_init(struct simdisk_engine *e, const struct simdisk_model *m);
void simdisk_submit(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns);
/*
 * The earliest time at which a request may be done, given what was submitted;
 * SIMDISK_NEVER when there is none. May be too early under contention, never
 * too late.
 */
u64 simdisk_next_ns(struct simdisk_engine *e);
/* Everything up to now_ns happens. */
void simdisk_advance(struct simdisk_engine *e, u64 now_ns);
/* The next request that is done, if any, of those simdisk_advance() found. */
struct simdisk_io *simdisk_pop_done(struct simdisk_engine *e);
/*
 * Both at once: the next request that is done by now_ns, or NULL. What happens
 * after it is left for the next call, so that it can be handed over at once.
 */
struct simdisk_io *simdisk_next_done(struct simdisk_engine *e, u64 now_ns);

#ifdef __cplusplus
}
#endif

#endif /* SIMDISK_MODEL_H */
