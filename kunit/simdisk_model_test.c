// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of the disk models: each named model against the figures its
 * maker published (docs/disk-models.md), and the mechanics behind them.
 *
 * Links with module/simdisk/simdisk_model.c into one module or object.
 */
#include <kunit/test.h>

#include "simdisk_model.h"

#define NS_PER_S	1000000000ULL
#define T_MS(x)		((x) * 1000000ULL)
#define T_US(x)		((x) * 1000ULL)
#define T_MB		1000000ULL

/* |value - want| <= want * permille / 1000 */
#define EXPECT_NEAR(test, value, want, permille) do {				\
	u64 v_ = (value), w_ = (want), d_ = v_ > w_ ? v_ - w_ : w_ - v_;	\
	u64 p_ = (permille);							\
										\
	KUNIT_EXPECT_LE_MSG(test, d_ * 1000, w_ * p_,				\
			    "%llu is not within %llu permille of %llu",		\
			    (unsigned long long)v_, (unsigned long long)p_,	\
			    (unsigned long long)w_);				\
} while (0)

/* ---- A closed loop: queue_depth requests outstanding, always ------------- */

#define LOOP_DEPTH_MAX	128

enum pattern { IN_ORDER, IN_DISORDER };

struct loop {
	struct simdisk_engine e;
	struct simdisk_io io[LOOP_DEPTH_MAX];
	u64 random;
	u64 next_sector;
	u64 now_ns;
};

static u64 next_random(u64 *state)
{
	/* Knuth's MMIX constants; the high half is the good half */
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static struct loop *new_loop(struct kunit *test, const struct simdisk_model *m)
{
	struct loop *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	KUNIT_ASSERT_NOT_NULL(test, m);
	simdisk_engine_init(&l->e, m);
	l->random = 2005;
	return l;
}

static struct simdisk_model named(struct kunit *test, const char *name)
{
	const struct simdisk_model *m = simdisk_model_find(name);

	KUNIT_ASSERT_NOT_NULL_MSG(test, m, "no model %s", name);
	return *m;
}

static void submit_next(struct loop *l, struct simdisk_io *io, enum simdisk_op op,
			enum pattern pattern, u64 sectors, u64 span)
{
	io->op = op;
	io->fua = false;
	io->sectors = sectors;
	if (pattern == IN_DISORDER)
		l->next_sector = (next_random(&l->random) % (span / sectors)) * sectors;
	io->sector = l->next_sector;
	l->next_sector += sectors;
	if (l->next_sector + sectors > span)
		l->next_sector = 0;
	simdisk_submit(&l->e, io, l->now_ns);
}

/* Run count requests; the time they took. */
static u64 run_loop(struct kunit *test, struct loop *l, enum simdisk_op op,
		    enum pattern pattern, u64 bytes, u64 span_bytes, u64 queue_depth,
		    u64 count)
{
	u64 sectors = bytes / SIMDISK_SECTOR_BYTES;
	u64 span = span_bytes / SIMDISK_SECTOR_BYTES;
	u64 started = 0, finished = 0, start_ns = l->now_ns;
	struct simdisk_io *io;

	KUNIT_ASSERT_LE(test, queue_depth, (u64)LOOP_DEPTH_MAX);
	for (; started < queue_depth && started < count; started++)
		submit_next(l, &l->io[started], op, pattern, sectors, span);
	while (finished < count) {
		u64 next = simdisk_next_ns(&l->e);

		KUNIT_ASSERT_NE(test, next, SIMDISK_NEVER);
		KUNIT_ASSERT_GE(test, next, l->now_ns);
		l->now_ns = next;
		simdisk_advance(&l->e, l->now_ns);
		while ((io = simdisk_pop_done(&l->e))) {
			finished++;
			if (started++ < count)
				submit_next(l, io, op, pattern, sectors, span);
		}
	}
	return l->now_ns - start_ns;
}

static u64 per_second(u64 amount, u64 ns)
{
	return amount * NS_PER_S / ns;
}

static u64 measure_rate(struct kunit *test, const struct simdisk_model *m,
			enum simdisk_op op, u64 bytes, u64 queue_depth, u64 count)
{
	struct loop *l = new_loop(test, m);
	u64 span = bytes * (count + queue_depth + 1);
	u64 ns = run_loop(test, l, op, IN_ORDER, bytes, span, queue_depth, count);

	/* what a write cache still holds has not been written */
	if (op == SIMDISK_WRITE && m->kind == SIMDISK_ROTATIONAL)
		ns += run_loop(test, l, SIMDISK_FLUSH, IN_ORDER, 0, 0, 1, 1);
	return per_second(bytes * count, ns);
}

static u64 measure_iops(struct kunit *test, const struct simdisk_model *m,
			enum simdisk_op op, u64 span, u64 queue_depth, u64 count)
{
	struct loop *l = new_loop(test, m);

	return per_second(count, run_loop(test, l, op, IN_DISORDER, 4096, span, queue_depth,
					  count));
}

/* One request by itself, submitted at l->now_ns; when it is done. */
static u64 one(struct kunit *test, struct loop *l, enum simdisk_op op, u64 sector,
	       u64 sectors)
{
	struct simdisk_io *io = &l->io[0];
	struct simdisk_io *done;
	u64 next;

	io->op = op;
	io->fua = false;
	io->sector = sector;
	io->sectors = sectors;
	simdisk_submit(&l->e, io, l->now_ns);
	do {
		next = simdisk_next_ns(&l->e);
		KUNIT_ASSERT_NE(test, next, SIMDISK_NEVER);
		simdisk_advance(&l->e, next);
		done = simdisk_pop_done(&l->e);
	} while (!done);
	KUNIT_EXPECT_PTR_EQ(test, done, io);
	KUNIT_EXPECT_EQ(test, done->done_ns, next);
	l->now_ns = next;
	return done->done_ns;
}

/* ---- Published figures ----------------------------------------------------- */

/* Disks: MB/s at both edges, ms of seeks, read IOPS over the whole disk. */
struct disk_figures {
	const char *name;
	u64 outer_mb, inner_mb;
	u64 track_us, average_us, full_us;
	u64 revolution_us;
	u64 link_mb;			/* where the link is the limit; else 0 */
};

static const struct disk_figures disk_figures[] = {
	{ "ata-2005", 55, 31, 1000, 8500, 17000, 8333, 0 },
	{ "usb-bot", 55, 31, 1000, 8500, 17000, 8333, 30 },
	{ "wd3000hlfs", 120, 75, 750, 4200, 9500, 6000, 0 },
	{ "wd5000hhtz", 200, 118, 400, 3600, 8200, 6000, 0 },
};

static void seek_figures(struct kunit *test)
{
	struct simdisk_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, g);
	for (i = 0; i < ARRAY_SIZE(disk_figures); i++) {
		const struct disk_figures *f = &disk_figures[i];
		struct simdisk_model m = named(test, f->name);
		u64 weight = 0, sum = 0, last = 0, step, d;

		simdisk_geometry_init(g, &m);
		KUNIT_EXPECT_EQ(test, simdisk_seek_ns(&m, g, 0), 0ULL);
		KUNIT_EXPECT_EQ(test, simdisk_seek_ns(&m, g, 1), T_US(f->track_us));
		KUNIT_EXPECT_EQ(test, simdisk_seek_ns(&m, g, g->cylinders - 1),
				T_US(f->full_us));
		KUNIT_EXPECT_EQ(test, simdisk_seek_ns(&m, g, ~0ULL), T_US(f->full_us));
		/* (cylinders - d) pairs are d apart */
		step = g->cylinders / 4096 + 1;
		for (d = 1; d < g->cylinders; d += step) {
			u64 ns = simdisk_seek_ns(&m, g, d);

			KUNIT_EXPECT_GE(test, ns, last);
			last = ns;
			weight += g->cylinders - d;
			sum += (g->cylinders - d) * (ns / 1000);
		}
		EXPECT_NEAR(test, sum / weight, f->average_us, 5);
	}
}

static void disk_sequential(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(disk_figures); i++) {
		const struct disk_figures *f = &disk_figures[i];
		struct simdisk_model m = named(test, f->name);
		u64 outer = f->link_mb ? f->link_mb : f->outer_mb;
		u64 inner = f->inner_mb;

		/* 120 KiB requests from a host that answers at once */
		if (f->link_mb) {
			/* the transport's own time is on top of the link's */
			u64 read_ns = m.command_read_ns +
				      122880 * NS_PER_S / m.link_read_bytes_per_s;

			EXPECT_NEAR(test, measure_rate(test, &m, SIMDISK_READ, 122880, 1, 2000),
				    per_second(122880, read_ns), 10);
			continue;
		}
		EXPECT_NEAR(test, measure_rate(test, &m, SIMDISK_READ, 262144, 1, 2000),
			    outer * T_MB, 10);
		EXPECT_NEAR(test, measure_rate(test, &m, SIMDISK_WRITE, 262144, 4, 2000),
			    outer * T_MB, 20);
		EXPECT_NEAR(test, simdisk_media_bytes_per_s(&m), outer * T_MB, 5);
		/* the last gigabyte of the disk */
		m.origin_bytes = (m.disk_bytes - 1024 * T_MB) & ~511ULL;
		EXPECT_NEAR(test, measure_rate(test, &m, SIMDISK_READ, 262144, 1, 2000),
			    inner * T_MB, 10);
	}
}

static void disk_random(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(disk_figures); i++) {
		const struct disk_figures *f = &disk_figures[i];
		struct simdisk_model m = named(test, f->name);
		u64 each_us = f->average_us + f->revolution_us / 2 + m.command_read_ns / 1000;
		u64 at_1, at_32;

		at_1 = measure_iops(test, &m, SIMDISK_READ, m.disk_bytes, 1, 4000);
		EXPECT_NEAR(test, at_1, 1000000 / each_us, 30);
		if (m.depth == 1)
			continue;
		/* queueing gives what reviews saw: about twice as much at 32 */
		at_32 = measure_iops(test, &m, SIMDISK_READ, m.disk_bytes, 32, 4000);
		KUNIT_EXPECT_GE(test, at_32 * 10, at_1 * 17);
		KUNIT_EXPECT_LE(test, at_32, at_1 * 4);
	}
}

/* Parallel devices: MB/s and thousands of IOPS. */
struct parallel_figures {
	const char *name;
	u64 read_mb, write_mb;
	u64 deep;			/* queue depth of the figures below */
	u64 read_iops_1, read_iops_deep;
	u64 write_iops_1, write_iops_deep;
};

static const struct parallel_figures parallel_figures[] = {
	{ "ssd-850pro", 550, 520, 32, 10000, 100000, 36000, 90000 },
	{ "nvme", 3500, 2300, 128, 15000, 370000, 55000, 500000 },
	/* a round trip of 500 us and 4 KiB at 100 MB/s; at depth the bandwidth */
	{ "san-lun", 100, 100, 64, 1848, 24414, 1848, 24414 },
};

static void parallel_devices(struct kunit *test)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parallel_figures); i++) {
		const struct parallel_figures *f = &parallel_figures[i];
		struct simdisk_model m = named(test, f->name);
		u64 span = 4096 * T_MB;

		EXPECT_NEAR(test, measure_rate(test, &m, SIMDISK_READ, 131072, 32, 20000),
			    f->read_mb * T_MB, 10);
		EXPECT_NEAR(test, measure_rate(test, &m, SIMDISK_WRITE, 131072, 32, 20000),
			    f->write_mb * T_MB, 10);
		EXPECT_NEAR(test, simdisk_media_read_bytes_per_s(&m), f->read_mb * T_MB, 1);
		EXPECT_NEAR(test, simdisk_media_write_bytes_per_s(&m), f->write_mb * T_MB, 1);
		EXPECT_NEAR(test, measure_iops(test, &m, SIMDISK_READ, span, 1, 2000),
			    f->read_iops_1, 10);
		EXPECT_NEAR(test, measure_iops(test, &m, SIMDISK_WRITE, span, 1, 2000),
			    f->write_iops_1, 10);
		EXPECT_NEAR(test, measure_iops(test, &m, SIMDISK_READ, span, f->deep, 40000),
			    f->read_iops_deep, 20);
		EXPECT_NEAR(test, measure_iops(test, &m, SIMDISK_WRITE, span, f->deep, 40000),
			    f->write_iops_deep, 20);
	}
}

/* ---- Names and fields ------------------------------------------------------- */

static void names_and_fields(struct kunit *test)
{
	static const char * const names[] = {
		"ata-2005", "usb-bot", "wd3000hlfs", "wd5000hhtz",
		"ssd-850pro", "san-lun", "nvme", "ram-sync",
	};
	const struct simdisk_field *f;
	struct simdisk_model m;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		m = named(test, names[i]);
		KUNIT_EXPECT_STREQ(test, m.name, names[i]);
		KUNIT_EXPECT_NULL(test, simdisk_model_check(&m, 256 * 1048576));
	}
	KUNIT_EXPECT_EQ(test, simdisk_model_count(), ARRAY_SIZE(names));
	KUNIT_EXPECT_NULL(test, simdisk_model_at(simdisk_model_count()));
	KUNIT_EXPECT_NULL(test, simdisk_model_find("ata-2006"));
	KUNIT_EXPECT_NULL(test, simdisk_model_find(""));

	m = named(test, "ata-2005");
	for (i = 0; (f = simdisk_field_at(i)); i++) {
		KUNIT_EXPECT_EQ(test, simdisk_model_set(&m, f->name, f->min), 0);
		KUNIT_EXPECT_EQ(test, simdisk_field_get(&m, f), f->min);
		KUNIT_EXPECT_EQ(test, simdisk_model_set(&m, f->name, f->max), 0);
		KUNIT_EXPECT_EQ(test, simdisk_field_get(&m, f), f->max);
		KUNIT_EXPECT_EQ(test, simdisk_model_set(&m, f->name, f->max + 1), -2);
		if (f->min)
			KUNIT_EXPECT_EQ(test, simdisk_model_set(&m, f->name, f->min - 1), -2);
		KUNIT_EXPECT_EQ(test, simdisk_field_get(&m, f), f->max);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, simdisk_field_at(j)->offset, f->offset);
	}
	KUNIT_EXPECT_EQ(test, simdisk_model_set(&m, "name", 1), -1);
	KUNIT_EXPECT_EQ(test, simdisk_model_set(&m, "", 1), -1);
}

static void checks_refuse(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");

	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 0));
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 513));
	KUNIT_EXPECT_NULL(test, simdisk_model_check(&m, m.disk_bytes));
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, m.disk_bytes + 512));
	m.origin_bytes = m.disk_bytes - 512;
	KUNIT_EXPECT_NULL(test, simdisk_model_check(&m, 512));
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 1024));

	m = named(test, "ata-2005");
	m.seek_full_ns = m.seek_average_ns;
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 1048576));
	m.seek_full_ns = m.seek_track_ns + 3 * (m.seek_average_ns - m.seek_track_ns);
	KUNIT_EXPECT_NULL(test, simdisk_model_check(&m, 1048576));
	m.seek_full_ns++;
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 1048576));

	m = named(test, "ata-2005");
	m.seek_track_ns = 0;
	m.seek_average_ns = 8000000;
	m.seek_full_ns = 15000000;
	KUNIT_EXPECT_NULL(test, simdisk_model_check(&m, 1048576));
	m.seek_full_ns--;
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 1048576));

	m = named(test, "ata-2005");
	m.inner_bytes_per_s = m.outer_bytes_per_s + 1;
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 1048576));

	m = named(test, "ata-2005");
	m.logical_block_bytes = 1536;
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 1048576));
	m = named(test, "ram-sync");
	KUNIT_EXPECT_NOT_NULL(test, simdisk_model_check(&m, 4096 + 512));
}

/* ---- Rotation and transfer ---------------------------------------------------- */

static void rotation_is_exact(struct kunit *test)
{
	struct simdisk_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	struct simdisk_model m = named(test, "ata-2005");
	u64 random = 7, spt, i;

	KUNIT_ASSERT_NOT_NULL(test, g);
	simdisk_geometry_init(g, &m);
	spt = simdisk_track_sectors(&m, g, 0);
	KUNIT_EXPECT_EQ(test, simdisk_transfer_ns(&m, g, 0, spt), m.revolution_ns);
	KUNIT_EXPECT_EQ(test, simdisk_angle_ns(&m, g, 0), 0ULL);
	KUNIT_EXPECT_EQ(test, simdisk_angle_ns(&m, g, spt), 0ULL);

	for (i = 0; i < 2000; i++) {
		u64 from = next_random(&random) % 100000000;
		u64 to = next_random(&random) % 100000000;
		u64 sectors = 1 + next_random(&random) % 2048;
		u64 now = next_random(&random) * 1000 + next_random(&random) % 1000;
		u64 travel = simdisk_travel_ns(&m, g, from, to, false);
		u64 position = simdisk_position_ns(&m, g, from, to, false, now);
		u64 ns = simdisk_transfer_ns(&m, g, to, sectors);

		/* never more than a revolution; and then the sector is there */
		KUNIT_EXPECT_GE(test, position, travel);
		KUNIT_EXPECT_LT(test, position, travel + m.revolution_ns);
		KUNIT_EXPECT_EQ(test, (now + position) % m.revolution_ns,
				simdisk_angle_ns(&m, g, to));
		/* a write needs a finer aim, but only after a seek */
		KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, from, to, true),
				travel ? travel + m.write_settle_ns : 0);
		/* transfer grows with the length, and adds up */
		KUNIT_EXPECT_GT(test, ns, simdisk_transfer_ns(&m, g, to, sectors - 1));
		KUNIT_EXPECT_EQ(test, ns, simdisk_transfer_ns(&m, g, to, sectors / 2) +
				simdisk_transfer_ns(&m, g, to + sectors / 2,
						    sectors - sectors / 2));
	}
}

/* The next sector costs no wait, the one before it nearly a revolution. */
static void skips_at_media_rate(struct kunit *test)
{
	struct simdisk_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	struct simdisk_model m = named(test, "ata-2005");
	u64 now, skip, spt;

	KUNIT_ASSERT_NOT_NULL(test, g);
	simdisk_geometry_init(g, &m);
	spt = simdisk_track_sectors(&m, g, 0);
	now = 5 * m.revolution_ns + simdisk_angle_ns(&m, g, 1000);
	for (skip = 0; skip < spt; skip++)
		KUNIT_EXPECT_EQ(test, simdisk_position_ns(&m, g, 1000, 1000 + skip, true, now),
				simdisk_transfer_ns(&m, g, 1000, skip));
	KUNIT_EXPECT_EQ(test, simdisk_position_ns(&m, g, 1000, 999, true, now),
			m.revolution_ns - simdisk_transfer_ns(&m, g, 999, 1));
}

static void heads_switch(struct kunit *test)
{
	struct simdisk_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	struct simdisk_model m = named(test, "ata-2005");
	u64 spt;

	KUNIT_ASSERT_NOT_NULL(test, g);
	simdisk_geometry_init(g, &m);
	spt = simdisk_track_sectors(&m, g, 0);
	/* the same track; the other of the cylinder; the next cylinder */
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, spt - 1, 0, false), 0ULL);
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, spt, 0, false), m.head_switch_ns);
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, 0, spt, false), m.head_switch_ns);
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, 0, spt - 1, false), 0ULL);
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, 0, 2 * spt, false), m.seek_track_ns);
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, 2 * spt, spt, false), m.seek_track_ns);
}

static void stretch_and_origin(struct kunit *test)
{
	struct simdisk_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	struct simdisk_model m = named(test, "ata-2005");
	u64 far = 500000, once, eight;

	KUNIT_ASSERT_NOT_NULL(test, g);
	simdisk_geometry_init(g, &m);
	once = simdisk_travel_ns(&m, g, 0, far, false);
	KUNIT_EXPECT_EQ(test, once,
			simdisk_seek_ns(&m, g, simdisk_track(&m, g, far) / m.heads));
	m.stretch = 8;
	eight = simdisk_travel_ns(&m, g, 0, far, false);
	KUNIT_EXPECT_EQ(test, eight,
			simdisk_seek_ns(&m, g, 8 * (simdisk_track(&m, g, far) / m.heads)));
	KUNIT_EXPECT_GT(test, eight, once);
	m.stretch = 1000000;
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, 0, far, false), m.seek_full_ns);

	/* an origin at the inner edge: tracks hold less */
	m = named(test, "ata-2005");
	m.origin_bytes = m.disk_bytes - 512 * 1000000;
	simdisk_geometry_init(g, &m);
	EXPECT_NEAR(test, simdisk_track_sectors(&m, g, 0),
		    31 * T_MB / 512 * m.revolution_ns / NS_PER_S, 5);
	KUNIT_EXPECT_LT(test, simdisk_track(&m, g, 999999), g->tracks);
}

/* ---- Caches ------------------------------------------------------------------- */

static u64 link_time(u64 bytes, u64 rate)
{
	return (bytes * NS_PER_S + rate - 1) / rate;
}

static void read_cache(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l = new_loop(test, &m);
	u64 hit = m.command_read_ns + link_time(4096, m.link_read_bytes_per_s);
	u64 t0, t1;

	one(test, l, SIMDISK_READ, 100, 8);
	/* again: from the disk's memory */
	t0 = l->now_ns;
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 100, 8), t0 + hit);
	/* what follows, after the platter has brought it */
	l->now_ns += T_MS(3);
	t0 = l->now_ns;
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 108, 8), t0 + hit);
	KUNIT_EXPECT_EQ(test, l->e.n.cache_hits, 2ULL);
	/* a skip that the read-ahead is about to make: at the media rate */
	t1 = l->e.stream_since_ns +
	     simdisk_transfer_ns(&m, &l->e.g, l->e.stream_from,
				 908 - l->e.stream_from);
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 900, 8), t1);
	KUNIT_EXPECT_EQ(test, l->e.n.stream_hits, 1ULL);
	KUNIT_EXPECT_EQ(test, l->e.n.seeks, 0ULL);
	/* in no segment */
	t0 = l->now_ns;
	KUNIT_EXPECT_GT(test, one(test, l, SIMDISK_READ, 400000, 8),
			t0 + m.command_read_ns + m.seek_track_ns);
	KUNIT_EXPECT_EQ(test, l->e.n.seeks, 1ULL);
	/* the first segment is still there, with the last it read */
	t0 = l->now_ns;
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 900, 8), t0 + hit);
}

/* The read-ahead stops where its segment is full, and goes on when read. */
static void read_ahead_limit(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l = new_loop(test, &m);
	u64 segment = m.segment_bytes / SIMDISK_SECTOR_BYTES;
	u64 t0, hit;

	one(test, l, SIMDISK_READ, 0, 8);
	l->now_ns += T_MS(1000);
	t0 = l->now_ns;
	hit = m.command_read_ns + link_time(segment * 512, m.link_read_bytes_per_s);
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 8, segment), t0 + hit);
	/* going on costs at most the wait for the platter to come round */
	t0 = l->now_ns;
	KUNIT_EXPECT_LE(test, one(test, l, SIMDISK_READ, 8 + segment, segment),
			t0 + m.command_read_ns + m.revolution_ns +
			simdisk_transfer_ns(&m, &l->e.g, 8 + segment, segment));
	KUNIT_EXPECT_EQ(test, l->e.n.seeks, 0ULL);
	/* and it ends when the platter has turned there, not a tick sooner */
	KUNIT_EXPECT_EQ(test, l->now_ns % m.revolution_ns,
			simdisk_angle_ns(&m, &l->e.g, 8 + 2 * segment));
	/* what a segment has no room for any more is gone */
	one(test, l, SIMDISK_READ, 8 + 2 * segment, segment);
	t0 = l->e.n.cache_hits;
	one(test, l, SIMDISK_READ, 0, 8);
	KUNIT_EXPECT_EQ(test, l->e.n.cache_hits, t0);
}

static void segments_are_replaced_oldest_first(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l = new_loop(test, &m);
	u64 i, hits;

	for (i = 0; i <= m.cache_segments; i++)
		one(test, l, SIMDISK_READ, i * 1000000, 8);
	hits = l->e.n.cache_hits;
	KUNIT_EXPECT_EQ(test, hits, 0ULL);
	one(test, l, SIMDISK_READ, m.cache_segments * 1000000, 8);
	one(test, l, SIMDISK_READ, 1000000, 8);
	KUNIT_EXPECT_EQ(test, l->e.n.cache_hits, hits + 2);
	one(test, l, SIMDISK_READ, 0, 8);
	KUNIT_EXPECT_EQ(test, l->e.n.cache_hits, hits + 2);
}

static void a_write_drops_what_was_read(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l;

	m.write_cache_bytes = 0;
	l = new_loop(test, &m);
	one(test, l, SIMDISK_READ, 1000, 64);
	one(test, l, SIMDISK_WRITE, 1008, 8);
	one(test, l, SIMDISK_READ, 1000, 64);
	KUNIT_EXPECT_EQ(test, l->e.n.cache_hits, 0ULL);
}

static void write_cache(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l = new_loop(test, &m);
	u64 buffered = m.command_write_ns + link_time(4096, m.link_write_bytes_per_s);
	u64 t0, i, done;

	/* done when buffered, wherever the arm is */
	for (i = 0; i < 8; i++) {
		t0 = l->now_ns;
		KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_WRITE, (8 - i) * 1000000, 8),
				t0 + buffered);
	}
	KUNIT_EXPECT_EQ(test, l->e.dirty_sectors, 64ULL);
	/* and read from there */
	t0 = l->now_ns;
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 3000000, 8), t0 +
			m.command_read_ns + link_time(4096, m.link_read_bytes_per_s));
	/* a flush waits for all eight to be on the platter */
	t0 = l->now_ns;
	done = one(test, l, SIMDISK_FLUSH, 0, 0);
	KUNIT_EXPECT_EQ(test, l->e.dirty_sectors, 0ULL);
	KUNIT_EXPECT_EQ(test, l->e.n.destages, 8ULL);
	KUNIT_EXPECT_GE(test, done - t0, 8 * m.seek_track_ns);
	/* with nothing to write it is the command alone */
	t0 = l->now_ns;
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_FLUSH, 0, 0),
			t0 + m.command_read_ns + m.flush_ns);
	/* an idle disk writes them out by itself */
	one(test, l, SIMDISK_WRITE, 0, 8);
	simdisk_advance(&l->e, l->now_ns + m.destage_idle_ns - 1);
	KUNIT_EXPECT_EQ(test, l->e.n.destages, 8ULL);
	simdisk_advance(&l->e, l->now_ns + m.destage_idle_ns + 2 * m.seek_full_ns +
			2 * m.revolution_ns);
	KUNIT_EXPECT_EQ(test, l->e.n.destages, 9ULL);
	KUNIT_EXPECT_EQ(test, l->e.dirty_sectors, 0ULL);
}

/* A full cache takes no more than the platter takes from it. */
static void write_cache_full(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l = new_loop(test, &m);
	u64 cached, through;

	/* 400 random writes fit neither the cache nor its table of extents */
	cached = run_loop(test, l, SIMDISK_WRITE, IN_DISORDER, 4096, 200 * T_MB, 4, 400);
	KUNIT_EXPECT_LE(test, l->e.nr_extents, (u64)SIMDISK_EXTENTS_MAX);
	KUNIT_EXPECT_GE(test, l->e.n.destages, 400ULL - SIMDISK_EXTENTS_MAX - 8);
	m.write_cache_bytes = 0;
	l = new_loop(test, &m);
	through = run_loop(test, l, SIMDISK_WRITE, IN_DISORDER, 4096, 200 * T_MB, 4, 400);
	KUNIT_EXPECT_EQ(test, l->e.n.destages, 0ULL);
	/* the cache sorts what it writes out: faster, but no miracle */
	KUNIT_EXPECT_LT(test, cached, through);
	KUNIT_EXPECT_GT(test, cached * 8, through);
}

/* Without a write cache, each sequential write misses its turn. */
static void no_write_cache_loses_a_revolution(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	u64 ns;
	struct loop *l;

	m.write_cache_bytes = 0;
	l = new_loop(test, &m);
	ns = run_loop(test, l, SIMDISK_WRITE, IN_ORDER, 65536, 100 * T_MB, 4, 200);
	EXPECT_NEAR(test, ns / 200, m.revolution_ns +
		    simdisk_transfer_ns(&m, &l->e.g, 0, 128), 10);
}

static void fua_goes_past_the_cache(struct kunit *test)
{
	struct simdisk_model m = named(test, "wd3000hlfs");
	struct loop *l = new_loop(test, &m);
	struct simdisk_io *io = &l->io[0];

	io->op = SIMDISK_WRITE;
	io->fua = true;
	io->sector = 2000000;
	io->sectors = 8;
	simdisk_submit(&l->e, io, 0);
	while (!l->e.done.first)
		simdisk_advance(&l->e, simdisk_next_ns(&l->e));
	KUNIT_EXPECT_PTR_EQ(test, simdisk_pop_done(&l->e), io);
	KUNIT_EXPECT_EQ(test, l->e.dirty_sectors, 0ULL);
	KUNIT_EXPECT_GE(test, io->done_ns, m.command_write_ns + m.seek_track_ns);
}

/* Writes that touch become one run; an overwrite takes no more room. */
static void extents_join(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l = new_loop(test, &m);

	one(test, l, SIMDISK_WRITE, 1000, 8);
	one(test, l, SIMDISK_WRITE, 1016, 8);
	KUNIT_EXPECT_EQ(test, l->e.nr_extents, 2ULL);
	one(test, l, SIMDISK_WRITE, 1008, 8);
	KUNIT_EXPECT_EQ(test, l->e.nr_extents, 1ULL);
	KUNIT_EXPECT_EQ(test, l->e.dirty_sectors, 24ULL);
	one(test, l, SIMDISK_WRITE, 1000, 8);
	one(test, l, SIMDISK_WRITE, 1012, 4);
	KUNIT_EXPECT_EQ(test, l->e.nr_extents, 1ULL);
	KUNIT_EXPECT_EQ(test, l->e.dirty_sectors, 24ULL);
}

/* Let time pass until then; requests that end are left in the list. */
static void pass(struct loop *l, u64 until_ns)
{
	simdisk_advance(&l->e, until_ns);
	l->now_ns = until_ns;
}

/* Submit without waiting, as the i-th of the loop's requests. */
static struct simdisk_io *start(struct loop *l, u64 i, enum simdisk_op op, u64 sector,
				u64 sectors)
{
	struct simdisk_io *io = &l->io[i];

	io->op = op;
	io->fua = false;
	io->sector = sector;
	io->sectors = sectors;
	simdisk_submit(&l->e, io, l->now_ns);
	return io;
}

/* The nearest goes out first, a track at a time; what is going can be read. */
static void destage_order(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l = new_loop(test, &m);
	struct simdisk_io *io;
	u64 spt, t0;

	spt = simdisk_track_sectors(&m, &l->e.g, 0);
	one(test, l, SIMDISK_WRITE, 100000000, 8);
	one(test, l, SIMDISK_WRITE, 5000, 500);
	one(test, l, SIMDISK_WRITE, 5500, 500);
	one(test, l, SIMDISK_WRITE, 50000000, 8);
	KUNIT_EXPECT_EQ(test, l->e.nr_extents, 3ULL);
	pass(l, l->e.idle_ns);
	KUNIT_EXPECT_EQ(test, l->e.going.start, 5000ULL);
	KUNIT_EXPECT_EQ(test, l->e.going.end, 5000 + spt);
	t0 = l->now_ns;
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 5100, 8), t0 + m.command_read_ns +
			link_time(4096, m.link_read_bytes_per_s));
	/* a flush waits for what is on its way, too */
	l = new_loop(test, &m);
	one(test, l, SIMDISK_WRITE, 5000, 8);
	pass(l, l->e.idle_ns);
	KUNIT_EXPECT_EQ(test, l->e.going.start, 5000ULL);
	KUNIT_EXPECT_EQ(test, l->e.nr_extents, 0ULL);
	io = start(l, 1, SIMDISK_FLUSH, 0, 0);
	t0 = l->e.events.last->when_ns;
	pass(l, NS_PER_S);
	KUNIT_EXPECT_GE(test, io->done_ns, t0);
	KUNIT_EXPECT_EQ(test, io->done_ns % m.revolution_ns,
			simdisk_angle_ns(&m, &l->e.g, 5008));
}

/* A flush covers a write that a later one has been joined to. */
static void flush_covers_what_was_joined(struct kunit *test)
{
	struct simdisk_model m = named(test, "wd3000hlfs");
	struct loop *l = new_loop(test, &m);
	struct simdisk_io *first, *flush, *second, *reader;

	/* keep the arm busy, so that nothing goes out meanwhile */
	reader = start(l, 0, SIMDISK_READ, 300000000, 2048);
	first = start(l, 1, SIMDISK_WRITE, 1000, 8);
	/* this one is nearer, and goes out first: no reason to end the flush */
	start(l, 4, SIMDISK_WRITE, 300003000, 8);
	pass(l, T_MS(1));
	flush = start(l, 2, SIMDISK_FLUSH, 0, 0);
	second = start(l, 3, SIMDISK_WRITE, 1008, 8);
	pass(l, NS_PER_S);
	KUNIT_EXPECT_LT(test, first->done_ns, T_MS(1));
	KUNIT_EXPECT_LT(test, second->done_ns, T_MS(2));
	KUNIT_EXPECT_GT(test, flush->done_ns, reader->done_ns);
	KUNIT_EXPECT_EQ(test, flush->done_ns % m.revolution_ns,
			simdisk_angle_ns(&m, &l->e.g, 1016));
}

/* Room in the cache is promised once. */
static void cache_room_is_reserved(struct kunit *test)
{
	struct simdisk_model m = named(test, "wd3000hlfs");
	u64 alone = m.command_write_ns + link_time(49152, m.link_write_bytes_per_s);
	struct simdisk_io *first, *second;
	struct loop *l;

	m.write_cache_bytes = 65536;
	l = new_loop(test, &m);
	first = start(l, 0, SIMDISK_WRITE, 1000000, 96);
	second = start(l, 1, SIMDISK_WRITE, 2000000, 96);
	pass(l, NS_PER_S);
	KUNIT_EXPECT_EQ(test, first->done_ns, alone);
	KUNIT_EXPECT_GT(test, second->done_ns, alone + m.seek_track_ns);
	KUNIT_EXPECT_LE(test, l->e.dirty_sectors, 128ULL);
}

/* A cache that must be emptied and reads take turns. */
static void reads_go_on_while_draining(struct kunit *test)
{
	struct simdisk_model m = named(test, "wd3000hlfs");
	struct simdisk_io *io;
	u64 i, done, destages;
	struct loop *l;

	/* 30 runs of 512 KiB: it goes on until less than 8 are left */
	m.write_cache_bytes = 16 * 1048576;
	l = new_loop(test, &m);
	for (i = 0; i < 30; i++)
		start(l, 16 + i, SIMDISK_WRITE, i * 1000000, 1024);
	pass(l, T_MS(80));
	KUNIT_EXPECT_TRUE(test, l->e.draining);
	KUNIT_EXPECT_GE(test, l->e.nr_extents, 20ULL);
	destages = l->e.n.destages;
	for (i = 0; i < 8; i++)
		start(l, i, SIMDISK_READ, 500000 + i * 1000000, 8);
	for (done = 0; done < 8; pass(l, l->now_ns + T_US(100)))
		while ((io = simdisk_pop_done(&l->e)))
			done += io->op == SIMDISK_READ;
	KUNIT_EXPECT_LE(test, l->e.n.destages, destages + 9);
	KUNIT_EXPECT_GE(test, l->e.n.destages, destages + 7);
}

static void fixed_costs(struct kunit *test)
{
	static const char * const names[] = { "ata-2005", "wd5000hhtz", "ssd-850pro", "nvme" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct simdisk_model m = named(test, names[i]);
		struct loop *l;
		u64 busy;

		m.flush_ns = 12345;
		m.discard_ns = 54321;
		l = new_loop(test, &m);
		l->now_ns = T_MS(1);
		KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_FLUSH, 0, 0),
				T_MS(1) + m.command_read_ns + 12345);
		busy = m.command_read_ns + 12345;
		KUNIT_EXPECT_EQ(test, l->e.n.busy_ns, busy);
		l->now_ns = T_MS(3);
		KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_DISCARD, 0, 4096),
				T_MS(3) + m.command_read_ns + 54321);
		busy += m.command_read_ns + 54321;
		KUNIT_EXPECT_EQ(test, l->e.n.busy_ns, busy);
		KUNIT_EXPECT_EQ(test, l->e.n.service_ns, busy);
	}
}

/* A link slower than the platter is what a transfer waits for. */
static void slow_link(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l;

	m.link_read_bytes_per_s = 1000000;
	l = new_loop(test, &m);
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 0, 256),
			m.command_read_ns + link_time(131072, 1000000));
}

/* After a write the head is where the write ended. */
static void head_stays_where_it_wrote(struct kunit *test)
{
	struct simdisk_model m = named(test, "ata-2005");
	struct loop *l;

	m.write_cache_bytes = 0;
	l = new_loop(test, &m);
	one(test, l, SIMDISK_WRITE, 5000000, 64);
	KUNIT_EXPECT_EQ(test, l->e.n.seeks, 1ULL);
	one(test, l, SIMDISK_WRITE, 5000064, 64);
	one(test, l, SIMDISK_READ, 5000200, 64);
	KUNIT_EXPECT_EQ(test, l->e.n.seeks, 1ULL);
	/* and after a destage, where that ended */
	m.write_cache_bytes = 1048576;
	l = new_loop(test, &m);
	one(test, l, SIMDISK_WRITE, 5000000, 64);
	one(test, l, SIMDISK_FLUSH, 0, 0);
	KUNIT_EXPECT_EQ(test, l->e.n.seeks, 1ULL);
	one(test, l, SIMDISK_READ, 5000200, 64);
	KUNIT_EXPECT_EQ(test, l->e.n.seeks, 1ULL);
}

/* ---- Service order -------------------------------------------------------------- */

/* Submit reads of 8 sectors at time 0, collect the order they are done in. */
static void order_of(struct kunit *test, struct loop *l, const u64 *sectors, size_t n,
		     size_t *order)
{
	struct simdisk_io *io;
	size_t i, found = 0;

	for (i = 0; i < n; i++) {
		l->io[i].op = SIMDISK_READ;
		l->io[i].sector = sectors[i];
		l->io[i].sectors = 8;
		simdisk_submit(&l->e, &l->io[i], 0);
	}
	while (found < n) {
		u64 next = simdisk_next_ns(&l->e);

		KUNIT_ASSERT_NE(test, next, SIMDISK_NEVER);
		simdisk_advance(&l->e, next);
		while ((io = simdisk_pop_done(&l->e)))
			order[found++] = io - l->io;
	}
}

static void ncq_serves_the_nearest(struct kunit *test)
{
	static const u64 sectors[] = { 300000000, 0, 200000000, 100000000 };
	static const size_t nearest[] = { 1, 3, 2, 0 };
	struct simdisk_model m = named(test, "wd3000hlfs");
	size_t order[4], i;
	struct loop *l;

	/* make the way the whole cost, and let all four arrive before it begins */
	m.command_read_ns = 0;
	m.revolution_ns = T_MS(1);
	m.outer_bytes_per_s = 600 * T_MB;
	m.inner_bytes_per_s = 600 * T_MB;
	order_of(test, new_loop(test, &m), sectors, 4, order);
	/* the idle arm takes the first to arrive at once; then the nearest */
	KUNIT_EXPECT_EQ(test, order[0], (size_t)0);

	m.command_read_ns = T_US(1);
	m.reorder = 0;
	l = new_loop(test, &m);
	order_of(test, l, sectors, 4, order);
	KUNIT_EXPECT_EQ(test, l->e.n.reordered, 0ULL);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, order[i], i);

	/* behind a read near sector 0 they are all there when the arm is free */
	m.reorder = 1;
	{
		static const u64 behind[] = { 64, 300000000, 1000, 200000000, 100000000 };
		size_t five[5];

		l = new_loop(test, &m);
		order_of(test, l, behind, 5, five);
		KUNIT_EXPECT_EQ(test, l->e.n.reordered, 3ULL);
		KUNIT_EXPECT_EQ(test, five[0], (size_t)0);
		for (i = 0; i < 4; i++)
			KUNIT_EXPECT_EQ(test, five[i + 1], nearest[i] + 1);
	}
	/* a depth of one sees no second command to prefer */
	m.depth = 1;
	order_of(test, new_loop(test, &m), sectors, 4, order);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, order[i], i);
}

/* A far request among a flood of near ones waits its age and little more. */
static void ncq_starves_nobody(struct kunit *test)
{
	struct simdisk_model m = named(test, "wd5000hhtz");
	struct loop *l = new_loop(test, &m);
	struct simdisk_io *far = &l->io[LOOP_DEPTH_MAX - 1], *io;
	u64 bound, i, t0 = 0;
	bool seen = false;

	m.cache_segments = 0;
	simdisk_engine_init(&l->e, &m);
	for (i = 0; i < 31; i++)
		submit_next(l, &l->io[i], SIMDISK_READ, IN_DISORDER, 8, 100000);
	far->op = SIMDISK_READ;
	far->sector = 900000000;
	far->sectors = 8;
	simdisk_submit(&l->e, far, 0);
	/* older ones may have aged too: those 31, and the one being served */
	bound = m.max_age_ns + 33 * (m.seek_full_ns + 2 * m.revolution_ns);
	while (!seen) {
		u64 next = simdisk_next_ns(&l->e);

		KUNIT_ASSERT_LE(test, next, t0 + bound);
		l->now_ns = next;
		simdisk_advance(&l->e, next);
		while ((io = simdisk_pop_done(&l->e))) {
			if (io == far)
				seen = true;
			else
				submit_next(l, io, SIMDISK_READ, IN_DISORDER, 8, 100000);
		}
	}
	KUNIT_EXPECT_GE(test, far->done_ns, m.max_age_ns);
	KUNIT_EXPECT_GE(test, l->e.n.aged, 1ULL);
}

/* ---- Parallel units --------------------------------------------------------------- */

static void channels_work_at_once(struct kunit *test)
{
	struct simdisk_model m = named(test, "ssd-850pro");
	u64 link = link_time(4096, m.link_read_bytes_per_s);
	struct loop *l = new_loop(test, &m);
	size_t order[2];

	/* two units: the second is behind by its command, for the link is free */
	order_of(test, l, (const u64[]){ 0, 8 }, 2, order);
	KUNIT_EXPECT_EQ(test, l->io[0].done_ns, m.command_read_ns + m.read_ns + link);
	KUNIT_EXPECT_EQ(test, l->io[1].done_ns, 2 * m.command_read_ns + m.read_ns + link);
	/* one unit: the second waits for the first */
	l = new_loop(test, &m);
	order_of(test, l, (const u64[]){ 0, 8 * m.channels }, 2, order);
	KUNIT_EXPECT_EQ(test, l->io[1].done_ns, m.command_read_ns + 2 * m.read_ns + link);
	/* a unit comes round again after the last: 33 stripes, and one of unit 1 */
	m.link_read_bytes_per_s = NS_PER_S * 100;
	link = link_time(4096, m.link_read_bytes_per_s);
	l = new_loop(test, &m);
	l->io[0].sectors = 8 * (m.channels + 1);
	l->io[1].sector = 8;
	l->io[1].sectors = 8;
	simdisk_submit(&l->e, &l->io[0], 0);
	simdisk_submit(&l->e, &l->io[1], 0);
	simdisk_advance(&l->e, NS_PER_S);
	KUNIT_EXPECT_EQ(test, l->io[0].done_ns, m.command_read_ns + 2 * m.read_ns +
			link_time(4096 * (m.channels + 1), m.link_read_bytes_per_s));
	KUNIT_EXPECT_EQ(test, l->io[1].done_ns, l->io[0].done_ns + link);
	/* no limit: the second waits for its command alone */
	m.channels = 0;
	l = new_loop(test, &m);
	order_of(test, l, (const u64[]){ 0, 0 }, 2, order);
	KUNIT_EXPECT_EQ(test, l->io[1].done_ns, 2 * m.command_read_ns + m.read_ns + link);
	/* no commands: the link is what they share */
	m.command_read_ns = 0;
	l = new_loop(test, &m);
	order_of(test, l, (const u64[]){ 0, 0 }, 2, order);
	KUNIT_EXPECT_EQ(test, l->io[0].done_ns, m.read_ns + link);
	KUNIT_EXPECT_EQ(test, l->io[1].done_ns, m.read_ns + 2 * link);
}

static void duplex_links(struct kunit *test)
{
	struct simdisk_model m = named(test, "san-lun");
	u64 link = link_time(524288, m.link_write_bytes_per_s), duplex;

	for (duplex = 0; duplex < 2; duplex++) {
		struct loop *l;

		m.link_duplex = duplex;
		m.read_ns = 0;
		m.write_ns = 0;
		l = new_loop(test, &m);
		l->io[0].op = SIMDISK_WRITE;
		l->io[0].sectors = 1024;
		l->io[1].op = SIMDISK_READ;
		l->io[1].sectors = 1024;
		simdisk_submit(&l->e, &l->io[0], 0);
		simdisk_submit(&l->e, &l->io[1], 0);
		simdisk_advance(&l->e, NS_PER_S);
		KUNIT_EXPECT_EQ(test, l->io[0].done_ns, link);
		KUNIT_EXPECT_EQ(test, l->io[1].done_ns, duplex ? link : 2 * link);
	}
}

static void san_round_trip(struct kunit *test)
{
	struct simdisk_model m = named(test, "san-lun");
	struct loop *l = new_loop(test, &m);

	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_READ, 0, 8), T_US(500) + 40960);
	KUNIT_EXPECT_EQ(test, one(test, l, SIMDISK_FLUSH, 0, 0), T_US(500) + 40960);
}

/* ---- Properties of all models ------------------------------------------------------ */

static void random_io(struct simdisk_io *io, u64 *random, u64 span, u64 max_sectors)
{
	u64 dice = next_random(random) % 100;

	io->fua = false;
	io->sectors = 8 * (1 + next_random(random) % (max_sectors / 8));
	io->sector = (next_random(random) % ((span - io->sectors) / 8)) * 8;
	if (dice < 45) {
		io->op = SIMDISK_READ;
	} else if (dice < 94) {
		io->op = SIMDISK_WRITE;
		io->fua = dice == 93;
	} else if (dice < 97) {
		io->op = SIMDISK_FLUSH;
		io->sectors = 0;
	} else {
		io->op = SIMDISK_DISCARD;
	}
}

/*
 * Any mix at any depth: every request is done once, not before the device could
 * have moved it, in order of time, and never before simdisk_next_ns() said.
 * Returns a digest of all times.
 */
static u64 any_mix(struct kunit *test, const struct simdisk_model *m, u64 queue_depth,
		   u64 count)
{
	struct loop *l = new_loop(test, m);
	u64 started = 0, finished = 0, digest = 0, random = 12 + queue_depth, last_ns = 0;
	u64 max_sectors = m->max_request_bytes / 512 < 1024 ? m->max_request_bytes / 512 : 1024;
	struct simdisk_io *io;
	u64 moved = 0, rate;

	for (; started < queue_depth; started++) {
		random_io(&l->io[started], &random, 524288, max_sectors);
		simdisk_submit(&l->e, &l->io[started], 0);
	}
	while (finished < count) {
		u64 next = simdisk_next_ns(&l->e);

		KUNIT_ASSERT_NE(test, next, SIMDISK_NEVER);
		KUNIT_ASSERT_GE(test, next, l->now_ns);
		if (next > l->now_ns) {
			simdisk_advance(&l->e, next - 1);
			KUNIT_ASSERT_NULL(test, l->e.done.first);
		}
		l->now_ns = next;
		simdisk_advance(&l->e, next);
		while ((io = simdisk_pop_done(&l->e))) {
			u64 cost = io->op == SIMDISK_WRITE ? m->command_write_ns :
							     m->command_read_ns;

			KUNIT_EXPECT_GE(test, io->done_ns, last_ns);
			KUNIT_EXPECT_EQ(test, io->done_ns, next);
			KUNIT_EXPECT_GE(test, io->done_ns, io->arrive_ns + cost);
			last_ns = io->done_ns;
			digest = digest * 31 + io->done_ns;
			if (io->op <= SIMDISK_WRITE)
				moved += io->sectors * 512;
			finished++;
			/* sometimes the host thinks */
			l->now_ns = next + (next_random(&random) % 4 ? 0 :
					    next_random(&random) % 20000);
			simdisk_advance(&l->e, l->now_ns);
			random_io(io, &random, 524288, max_sectors);
			simdisk_submit(&l->e, io, l->now_ns);
			next = l->now_ns;
			/* the rest of this batch was done by then, too */
			while ((io = simdisk_pop_done(&l->e))) {
				KUNIT_EXPECT_GE(test, io->done_ns, last_ns);
				last_ns = io->done_ns;
				digest = digest * 31 + io->done_ns;
				finished++;
				random_io(io, &random, 524288, max_sectors);
				simdisk_submit(&l->e, io, l->now_ns);
			}
		}
	}
	/* nothing moves faster than the link, in both directions together */
	rate = m->link_read_bytes_per_s + m->link_write_bytes_per_s;
	KUNIT_EXPECT_LE(test, moved / 1000, (l->now_ns / 1000 + 1) * (rate / 1000000) / 1000 +
			rate / 1000);
	KUNIT_EXPECT_EQ(test, l->e.n.requests, finished + queue_depth);
	return digest;
}

static void any_mix_on_any_model(struct kunit *test)
{
	size_t i;
	u64 depth;

	for (i = 0; i < simdisk_model_count(); i++) {
		struct simdisk_model m = *simdisk_model_at(i);

		if (m.kind == SIMDISK_SYNC)
			continue;
		for (depth = 1; depth <= 64; depth *= 4)
			KUNIT_EXPECT_EQ(test, any_mix(test, &m, depth, 1500),
					any_mix(test, &m, depth, 1500));
		/* and where the two caches and the reordering are left out */
		if (m.kind != SIMDISK_ROTATIONAL)
			continue;
		m.cache_segments = 0;
		any_mix(test, &m, 16, 1500);
		m.write_cache_bytes = 0;
		any_mix(test, &m, 16, 1500);
		m.depth = 8;
		m.reorder = 0;
		any_mix(test, &m, 16, 1500);
		m.write_cache_bytes = 65536;
		m.cache_segments = 1;
		m.segment_bytes = 512;
		any_mix(test, &m, 16, 1500);
	}
}

/* What is looked at late is the same as what is looked at in time. */
static void late_looks_change_nothing(struct kunit *test)
{
	size_t i;

	for (i = 0; i < simdisk_model_count(); i++) {
		const struct simdisk_model *m = simdisk_model_at(i);
		struct loop *often = new_loop(test, m), *once = new_loop(test, m);
		u64 random = 99, other = 99, j, next, at;

		if (m->kind == SIMDISK_SYNC)
			continue;
		for (j = 0; j < 64; j++) {
			random_io(&often->io[j], &random, 524288, 64);
			random_io(&once->io[j], &other, 524288, 64);
			/* alone at first, then in a heap */
			at = j < 16 ? j * T_MS(2) + j * j * 1000 : 16 * T_MS(2) + j * 1000;
			simdisk_submit(&often->e, &often->io[j], at);
			simdisk_submit(&once->e, &once->io[j], at);
			while ((next = simdisk_next_ns(&often->e)) < at + 1000) {
				simdisk_advance(&often->e, next);
				while (simdisk_pop_done(&often->e))
					;
			}
		}
		while ((next = simdisk_next_ns(&often->e)) != SIMDISK_NEVER) {
			simdisk_advance(&often->e, next);
			while (simdisk_pop_done(&often->e))
				;
		}
		simdisk_advance(&once->e, 1000 * NS_PER_S);
		for (j = 0; j < 64; j++)
			KUNIT_EXPECT_EQ(test, often->io[j].done_ns, once->io[j].done_ns);
	}
}

/* The widest values that the checks let through do not overflow. */
static void widest_values(struct kunit *test)
{
	struct simdisk_geometry *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	struct simdisk_model m = named(test, "wd5000hhtz");
	const struct simdisk_field *f;
	struct loop *l;
	u64 last, spt, now;
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, g);
	for (i = 0; (f = simdisk_field_at(i)); i++)
		KUNIT_ASSERT_EQ(test, simdisk_model_set(&m, f->name, f->max), 0);
	m.logical_block_bytes = 512;
	m.physical_block_bytes = 512;
	m.origin_bytes = 0;
	m.seek_track_ns = 0;
	m.seek_average_ns = 400 * 1000000;
	KUNIT_ASSERT_NULL(test, simdisk_model_check(&m, m.disk_bytes));
	simdisk_geometry_init(g, &m);
	last = m.disk_bytes / 512 - 65536;
	spt = simdisk_track_sectors(&m, g, last);
	EXPECT_NEAR(test, spt, m.inner_bytes_per_s / 512 * (m.revolution_ns / 1000) / 1000000, 1);
	KUNIT_EXPECT_LT(test, simdisk_track(&m, g, last), g->tracks);
	KUNIT_EXPECT_LT(test, simdisk_angle_ns(&m, g, last), m.revolution_ns);
	KUNIT_EXPECT_EQ(test, simdisk_transfer_ns(&m, g, 0, spt), m.revolution_ns);
	KUNIT_EXPECT_LE(test, simdisk_transfer_ns(&m, g, last, 65536),
			m.revolution_ns * (65536 / spt + 1));
	KUNIT_EXPECT_EQ(test, simdisk_travel_ns(&m, g, 0, last, false), m.seek_full_ns);
	/* a century of virtual time */
	now = 3200000000ULL * NS_PER_S;
	KUNIT_EXPECT_LT(test, simdisk_position_ns(&m, g, 0, last, true, now),
			m.seek_full_ns + m.write_settle_ns + m.revolution_ns);
	l = new_loop(test, &m);
	l->now_ns = now;
	KUNIT_EXPECT_GT(test, one(test, l, SIMDISK_READ, last, 65536), now);
	KUNIT_EXPECT_LT(test, l->now_ns, now + 100 * NS_PER_S);

	/* and the narrowest */
	m = named(test, "wd5000hhtz");
	for (i = 0; (f = simdisk_field_at(i)); i++)
		KUNIT_ASSERT_EQ(test, simdisk_model_set(&m, f->name, f->min), 0);
	KUNIT_ASSERT_NULL(test, simdisk_model_check(&m, m.disk_bytes));
	l = new_loop(test, &m);
	KUNIT_EXPECT_GT(test, one(test, l, SIMDISK_WRITE, 0, 8), 0ULL);
	KUNIT_EXPECT_GT(test, one(test, l, SIMDISK_READ, 2040, 8), 0ULL);
}

static void rates_for_the_harness(struct kunit *test)
{
	struct simdisk_model m = named(test, "ram-sync");

	KUNIT_EXPECT_EQ(test, simdisk_media_bytes_per_s(&m), 0ULL);
	m = named(test, "usb-bot");
	KUNIT_EXPECT_EQ(test, simdisk_media_write_bytes_per_s(&m), 30 * T_MB);
	KUNIT_EXPECT_EQ(test, simdisk_media_bytes_per_s(&m), 33 * T_MB);
	m = named(test, "nvme");
	m.channels = 1;
	EXPECT_NEAR(test, simdisk_media_read_bytes_per_s(&m), per_second(4096, m.read_ns), 1);
	KUNIT_EXPECT_EQ(test, simdisk_media_bytes_per_s(&m),
			simdisk_media_write_bytes_per_s(&m));
}

static struct kunit_case simdisk_model_cases[] = {
	KUNIT_CASE(names_and_fields),
	KUNIT_CASE(checks_refuse),
	KUNIT_CASE(rates_for_the_harness),
	KUNIT_CASE(seek_figures),
	KUNIT_CASE(disk_sequential),
	KUNIT_CASE(disk_random),
	KUNIT_CASE(parallel_devices),
	KUNIT_CASE(rotation_is_exact),
	KUNIT_CASE(skips_at_media_rate),
	KUNIT_CASE(heads_switch),
	KUNIT_CASE(stretch_and_origin),
	KUNIT_CASE(read_cache),
	KUNIT_CASE(read_ahead_limit),
	KUNIT_CASE(segments_are_replaced_oldest_first),
	KUNIT_CASE(a_write_drops_what_was_read),
	KUNIT_CASE(write_cache),
	KUNIT_CASE(write_cache_full),
	KUNIT_CASE(no_write_cache_loses_a_revolution),
	KUNIT_CASE(fua_goes_past_the_cache),
	KUNIT_CASE(extents_join),
	KUNIT_CASE(destage_order),
	KUNIT_CASE(flush_covers_what_was_joined),
	KUNIT_CASE(cache_room_is_reserved),
	KUNIT_CASE(reads_go_on_while_draining),
	KUNIT_CASE(fixed_costs),
	KUNIT_CASE(slow_link),
	KUNIT_CASE(head_stays_where_it_wrote),
	KUNIT_CASE(ncq_serves_the_nearest),
	KUNIT_CASE(ncq_starves_nobody),
	KUNIT_CASE(channels_work_at_once),
	KUNIT_CASE(duplex_links),
	KUNIT_CASE(san_round_trip),
	KUNIT_CASE(any_mix_on_any_model),
	KUNIT_CASE(late_looks_change_nothing),
	KUNIT_CASE(widest_values),
	{}
};

static struct kunit_suite simdisk_model_suite = {
	.name = "simdisk_model",
	.test_cases = simdisk_model_cases,
};

kunit_test_suite(simdisk_model_suite);

MODULE_DESCRIPTION("KUnit suite of the disk models");
MODULE_LICENSE("GPL");
