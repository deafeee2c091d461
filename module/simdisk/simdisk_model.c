// SPDX-License-Identifier: GPL-2.0-only
/*
 * Service-time models of disks. See simdisk_model.h for the interface and
 * docs/disk-models.md for the sources of the numbers.
 *
 * Integers only, the same results everywhere: in the kernel, under UML and in
 * user space.
 */
#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#else
#include <string.h>
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

#include "simdisk_model.h"

#ifdef __KERNEL__
#define sd_div(a, b)	div64_u64(a, b)
static inline u64 sd_mod(u64 a, u64 b)
{
	u64 rest;

	div64_u64_rem(a, b, &rest);
	return rest;
}
#else
#define sd_div(a, b)	((a) / (b))
#define sd_mod(a, b)	((a) % (b))
#endif

#define NS_PER_S	1000000000ULL
#define MS(x)		((x) * 1000000ULL)
#define US(x)		((x) * 1000ULL)
#define MB(x)		((x) * 1000000ULL)
#define GB(x)		((x) * 1000000000ULL)
#define KIB(x)		((x) * 1024ULL)
#define MIB(x)		((x) * 1048576ULL)

static u64 sd_min(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 sd_max(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Integer square root, rounded down. */
static u64 sd_sqrt(u64 x)
{
	u64 root = 0;
	u64 bit = 1ULL << 62;

	while (bit > x)
		bit >>= 2;
	while (bit) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
		bit >>= 2;
	}
	return root;
}

/* Time to move bytes at a rate, rounded up: nothing arrives early. */
static u64 sd_move_ns(u64 bytes, u64 bytes_per_s)
{
	return sd_div(bytes * NS_PER_S + bytes_per_s - 1, bytes_per_s);
}

/* ---- The named models ------------------------------------------------- */

/*
 * The disk of the 2005 series: 80 GB, 7200 rpm, parallel ATA. One command at
 * a time, but a block layer that queues 128 requests in front of it.
 */
#define ATA_2005_MECHANICS						\
	.kind = SIMDISK_ROTATIONAL,					\
	.max_segment_bytes = KIB(64),					\
	.logical_block_bytes = 512,					\
	.physical_block_bytes = 512,					\
	.depth = 1,							\
	.max_age_ns = MS(100),						\
	.flush_ns = 0,							\
	.disk_bytes = GB(80),						\
	.stretch = 1,							\
	.revolution_ns = 8333333,					\
	.zones = 16,							\
	.outer_bytes_per_s = MB(55),					\
	.inner_bytes_per_s = MB(31),					\
	.heads = 2,							\
	.head_switch_ns = US(900),					\
	.seek_track_ns = MS(1),						\
	.seek_average_ns = US(8500),					\
	.seek_full_ns = MS(17),						\
	.write_settle_ns = MS(1),					\
	.cache_segments = 16,						\
	.segment_bytes = KIB(256),					\
	.write_cache_bytes = MIB(4),					\
	.destage_idle_ns = MS(10)

static const struct simdisk_model models[] = {
	{
		.name = "ata-2005",
		.about = "7200 rpm parallel ATA disk of 2005: one command at a time, 128 tags",
		ATA_2005_MECHANICS,
		.tags = 128,
		.max_request_bytes = KIB(512),
		.max_segments = 128,
		.report_write_cache = 1,
		.command_read_ns = US(100),
		.command_write_ns = US(100),
		.link_read_bytes_per_s = MB(90),
		.link_write_bytes_per_s = MB(90),
	}, {
		.name = "usb-bot",
		.about = "the same disk behind USB 2.0 bulk-only transport, one tag",
		ATA_2005_MECHANICS,
		.tags = 1,
		.max_request_bytes = KIB(120),
		.max_segments = 128,
		.report_write_cache = 0,
		.command_read_ns = US(375),
		.command_write_ns = US(375),
		.link_read_bytes_per_s = MB(33),
		.link_write_bytes_per_s = MB(30),
	}, {
		.name = "wd3000hlfs",
		.about = "10,000 rpm SATA disk of 2008, NCQ 32",
		.kind = SIMDISK_ROTATIONAL,
		.tags = 32,
		.max_request_bytes = MIB(16),
		.max_segments = 168,
		.max_segment_bytes = KIB(64),
		.logical_block_bytes = 512,
		.physical_block_bytes = 512,
		.report_write_cache = 1,
		.depth = 32,
		.reorder = 1,
		.max_age_ns = MS(400),
		.command_read_ns = US(50),
		.command_write_ns = US(50),
		.link_read_bytes_per_s = MB(270),
		.link_write_bytes_per_s = MB(270),
		.disk_bytes = GB(300),
		.stretch = 1,
		.revolution_ns = MS(6),
		.zones = 16,
		.outer_bytes_per_s = MB(120),
		.inner_bytes_per_s = MB(75),
		.heads = 4,
		.head_switch_ns = US(600),
		.seek_track_ns = US(750),
		.seek_average_ns = US(4200),
		.seek_full_ns = US(9500),
		.write_settle_ns = US(500),
		.cache_segments = 16,
		.segment_bytes = KIB(512),
		.write_cache_bytes = MIB(8),
		.destage_idle_ns = MS(10),
	}, {
		.name = "wd5000hhtz",
		.about = "10,000 rpm SATA disk of 2012, NCQ 32",
		.kind = SIMDISK_ROTATIONAL,
		.tags = 32,
		.max_request_bytes = MIB(16),
		.max_segments = 168,
		.max_segment_bytes = KIB(64),
		.logical_block_bytes = 512,
		.physical_block_bytes = 4096,
		.report_write_cache = 1,
		.depth = 32,
		.reorder = 1,
		.max_age_ns = MS(400),
		.command_read_ns = US(50),
		.command_write_ns = US(50),
		.link_read_bytes_per_s = MB(540),
		.link_write_bytes_per_s = MB(540),
		.disk_bytes = GB(500),
		.stretch = 1,
		.revolution_ns = MS(6),
		.zones = 16,
		.outer_bytes_per_s = MB(200),
		.inner_bytes_per_s = MB(118),
		.heads = 3,
		.head_switch_ns = US(500),
		.seek_track_ns = US(400),
		.seek_average_ns = US(3600),
		.seek_full_ns = US(8200),
		.write_settle_ns = US(600),
		.cache_segments = 32,
		.segment_bytes = MIB(1),
		.write_cache_bytes = MIB(32),
		.destage_idle_ns = MS(10),
	}, {
		.name = "ssd-850pro",
		.about = "SATA SSD of 2014, 256 GB",
		.kind = SIMDISK_PARALLEL,
		.tags = 32,
		.max_request_bytes = MIB(16),
		.max_segments = 168,
		.max_segment_bytes = KIB(64),
		.logical_block_bytes = 512,
		.physical_block_bytes = 512,
		.report_write_cache = 1,
		.discard = 1,
		.depth = 32,
		.command_read_ns = 10000,
		.command_write_ns = 11111,
		.flush_ns = US(500),
		.discard_ns = US(100),
		.link_read_bytes_per_s = MB(550),
		.link_write_bytes_per_s = MB(520),
		.channels = 32,
		.stripe_bytes = 4096,
		.read_ns = 82552,
		.write_ns = 8790,
	}, {
		.name = "san-lun",
		.about = "shared storage: a round trip a request, a share of bandwidth",
		.kind = SIMDISK_PARALLEL,
		.tags = 64,
		.max_request_bytes = KIB(512),
		.max_segments = 128,
		.max_segment_bytes = KIB(64),
		.logical_block_bytes = 512,
		.physical_block_bytes = 512,
		.depth = 64,
		.link_read_bytes_per_s = MB(100),
		.link_write_bytes_per_s = MB(100),
		.channels = 0,
		.stripe_bytes = 4096,
		.read_ns = US(500),
		.write_ns = US(500),
	}, {
		.name = "nvme",
		.about = "NVMe SSD of 2018, 512 GB",
		.kind = SIMDISK_PARALLEL,
		.tags = 1023,
		.max_request_bytes = MIB(2),
		.max_segments = 128,
		.max_segment_bytes = MIB(2),
		.logical_block_bytes = 512,
		.physical_block_bytes = 512,
		.report_write_cache = 1,
		.fua = 1,
		.discard = 1,
		.depth = 1023,
		.command_read_ns = 2702,
		.command_write_ns = 2000,
		.flush_ns = US(100),
		.discard_ns = US(50),
		.link_read_bytes_per_s = MB(3500),
		.link_write_bytes_per_s = MB(2300),
		.link_duplex = 1,
		.channels = 64,
		.stripe_bytes = 4096,
		.read_ns = 62794,
		.write_ns = 14401,
	}, {
		.name = "ram-sync",
		.about = "done when submitted, as zram and pmem are: the copy is the cost",
		.kind = SIMDISK_SYNC,
		.tags = 1,
		.max_request_bytes = MIB(1),
		.max_segments = 256,
		.max_segment_bytes = MIB(1),
		.logical_block_bytes = 4096,
		.physical_block_bytes = 4096,
		.discard = 1,
		.depth = 1,
	},
};

size_t simdisk_model_count(void)
{
	return ARRAY_SIZE(models);
}

const struct simdisk_model *simdisk_model_at(size_t i)
{
	return i < simdisk_model_count() ? &models[i] : NULL;
}

const struct simdisk_model *simdisk_model_find(const char *name)
{
	size_t i;

	for (i = 0; i < simdisk_model_count(); i++)
		if (!strcmp(models[i].name, name))
			return &models[i];
	return NULL;
}

/* Rate of the zone in which the region starts, as laid out in whole sectors. */
static u64 media_rate(const struct simdisk_model *m)
{
	struct simdisk_geometry g;

	simdisk_geometry_init(&g, m);
	return sd_div(simdisk_track_sectors(m, &g, 0) * SIMDISK_SECTOR_BYTES * NS_PER_S,
		      m->revolution_ns);
}

/* What the units of a parallel device can move together; 0: no limit. */
static u64 channels_rate(const struct simdisk_model *m, u64 unit_ns)
{
	if (!m->channels || !unit_ns)
		return 0;
	return sd_div(m->channels * m->stripe_bytes * NS_PER_S, unit_ns);
}

static u64 device_rate(const struct simdisk_model *m, u64 link, u64 unit_ns)
{
	u64 inner;

	switch (m->kind) {
	case SIMDISK_ROTATIONAL:
		return sd_min(link, media_rate(m));
	case SIMDISK_PARALLEL:
		inner = channels_rate(m, unit_ns);
		return inner ? sd_min(link, inner) : link;
	default:
		return 0;
	}
}

u64 simdisk_media_read_bytes_per_s(const struct simdisk_model *m)
{
	return device_rate(m, m->link_read_bytes_per_s, m->read_ns);
}

u64 simdisk_media_write_bytes_per_s(const struct simdisk_model *m)
{
	return device_rate(m, m->link_write_bytes_per_s, m->write_ns);
}

u64 simdisk_media_bytes_per_s(const struct simdisk_model *m)
{
	return sd_max(simdisk_media_read_bytes_per_s(m), simdisk_media_write_bytes_per_s(m));
}

/* ---- Fields by name --------------------------------------------------- */

/*
 * The upper bounds keep all products in 64 bits: bytes of one request times
 * 10^9, sectors a track times a revolution, rate times a revolution, tracks
 * times a revolution.
 */
#define FIELD(f, lo, hi) { #f, offsetof(struct simdisk_model, f), lo, hi }
static const struct simdisk_field fields[] = {
	FIELD(tags, 1, 10240),
	FIELD(max_request_bytes, 4096, MIB(32)),
	FIELD(max_segments, 1, 65535),
	FIELD(max_segment_bytes, 4096, MIB(32)),
	FIELD(logical_block_bytes, 512, 4096),
	FIELD(physical_block_bytes, 512, 65536),
	FIELD(report_write_cache, 0, 1),
	FIELD(fua, 0, 1),
	FIELD(discard, 0, 1),
	FIELD(depth, 1, 10240),
	FIELD(reorder, 0, 1),
	FIELD(max_age_ns, 0, 60 * NS_PER_S),
	FIELD(command_read_ns, 0, NS_PER_S),
	FIELD(command_write_ns, 0, NS_PER_S),
	FIELD(flush_ns, 0, 10 * NS_PER_S),
	FIELD(discard_ns, 0, 10 * NS_PER_S),
	FIELD(link_read_bytes_per_s, 100000, GB(1000)),
	FIELD(link_write_bytes_per_s, 100000, GB(1000)),
	FIELD(link_duplex, 0, 1),
	FIELD(disk_bytes, MIB(1), GB(100000)),
	FIELD(origin_bytes, 0, GB(100000)),
	FIELD(stretch, 1, 1000000),
	FIELD(revolution_ns, MS(1), MS(100)),
	FIELD(zones, 1, SIMDISK_ZONES_MAX),
	FIELD(outer_bytes_per_s, MB(1), GB(10)),
	FIELD(inner_bytes_per_s, MB(1), GB(10)),
	FIELD(heads, 1, 64),
	FIELD(head_switch_ns, 0, NS_PER_S),
	FIELD(seek_track_ns, 0, NS_PER_S),
	FIELD(seek_average_ns, 0, NS_PER_S),
	FIELD(seek_full_ns, 0, NS_PER_S),
	FIELD(write_settle_ns, 0, NS_PER_S),
	FIELD(cache_segments, 0, SIMDISK_SEGMENTS_MAX),
	FIELD(segment_bytes, 0, MIB(256)),
	FIELD(write_cache_bytes, 0, MIB(1024)),
	FIELD(destage_idle_ns, 0, 10 * NS_PER_S),
	FIELD(channels, 0, SIMDISK_CHANNELS_MAX),
	FIELD(stripe_bytes, 512, MIB(32)),
	FIELD(read_ns, 0, 10 * NS_PER_S),
	FIELD(write_ns, 0, 10 * NS_PER_S),
};

const struct simdisk_field *simdisk_field_at(size_t i)
{
	return i < ARRAY_SIZE(fields) ? &fields[i] : NULL;
}

u64 simdisk_field_get(const struct simdisk_model *m, const struct simdisk_field *f)
{
	return *(const u64 *)((const char *)m + f->offset);
}

int simdisk_model_set(struct simdisk_model *m, const char *name, u64 value)
{
	const struct simdisk_field *f;
	size_t i;

	for (i = 0; (f = simdisk_field_at(i)); i++) {
		if (strcmp(f->name, name))
			continue;
		if (value < f->min || value > f->max)
			return -2;
		*(u64 *)((char *)m + f->offset) = value;
		return 0;
	}
	return -1;
}

static bool power_of_2(u64 x)
{
	return x && !(x & (x - 1));
}

/* Does the field mean anything for this kind of device? */
static bool field_matters(const struct simdisk_model *m, const struct simdisk_field *f)
{
	if (f->offset >= offsetof(struct simdisk_model, channels))
		return m->kind == SIMDISK_PARALLEL;
	if (f->offset >= offsetof(struct simdisk_model, disk_bytes))
		return m->kind == SIMDISK_ROTATIONAL;
	if (f->offset >= offsetof(struct simdisk_model, link_read_bytes_per_s))
		return m->kind != SIMDISK_SYNC;
	return true;
}

const char *simdisk_model_check(const struct simdisk_model *m, u64 region_bytes)
{
	const struct simdisk_field *f;
	u64 average, full, value;
	size_t i;

	for (i = 0; (f = simdisk_field_at(i)); i++) {
		value = simdisk_field_get(m, f);
		if (field_matters(m, f) && (value < f->min || value > f->max))
			return f->name;
	}
	if (!power_of_2(m->logical_block_bytes) || !power_of_2(m->physical_block_bytes))
		return "logical_block_bytes and physical_block_bytes must be powers of two";
	if (m->physical_block_bytes < m->logical_block_bytes)
		return "physical_block_bytes must not be below logical_block_bytes";
	if (!region_bytes || (region_bytes & (m->logical_block_bytes - 1)))
		return "bytes must be a multiple of logical_block_bytes, and not zero";
	if (m->kind != SIMDISK_ROTATIONAL)
		return NULL;
	if (region_bytes > m->disk_bytes || m->origin_bytes > m->disk_bytes - region_bytes)
		return "origin_bytes + bytes must not exceed disk_bytes";
	if (m->inner_bytes_per_s > m->outer_bytes_per_s)
		return "inner_bytes_per_s must not exceed outer_bytes_per_s";
	if (m->seek_average_ns < m->seek_track_ns || m->seek_full_ns < m->seek_average_ns)
		return "seek_track_ns, seek_average_ns, seek_full_ns must not fall";
	/* so that neither part of the curve is negative: see simdisk_geometry_init() */
	average = m->seek_average_ns - m->seek_track_ns;
	full = m->seek_full_ns - m->seek_track_ns;
	if (full > 3 * average)
		return "seek_full_ns is too far above seek_average_ns for a seek curve";
	if (8 * full < 15 * average)
		return "seek_full_ns is too close to seek_average_ns for a seek curve";
	return NULL;
}

/* ---- A rotational disk's geometry -------------------------------------- */

/*
 * The curve passes through the three figures that data sheets publish. With x
 * the distance as a share of the full stroke, the mean over random pairs of
 * sqrt(x) is 8/15 and that of x is 1/3; so with
 *
 *	seek(x) = track + S sqrt(x) + L x
 *	average - track = 8/15 S + 1/3 L
 *	full - track = S + L
 *
 * S = 5 (average - track) - 5/3 (full - track) and L = full - track - S.
 */
static void seek_curve_init(struct simdisk_geometry *g, const struct simdisk_model *m)
{
	u64 average = m->seek_average_ns - m->seek_track_ns;
	u64 full = m->seek_full_ns - m->seek_track_ns;

	g->seek_sqrt_ns = sd_div(15 * average - 5 * full, 3);
	g->seek_linear_ns = full - g->seek_sqrt_ns;
}

void simdisk_geometry_init(struct simdisk_geometry *g, const struct simdisk_model *m)
{
	u64 fall = m->outer_bytes_per_s - m->inner_bytes_per_s;
	u64 sectors = sd_div(m->disk_bytes, SIMDISK_SECTOR_BYTES);
	u64 per_round = 0, tracks, sector = 0;
	u64 i;

	memset(g, 0, sizeof(*g));
	g->nr_zones = m->zones;
	for (i = 0; i < g->nr_zones; i++) {
		u64 rate = m->outer_bytes_per_s;
		u64 bytes;

		if (g->nr_zones > 1)
			rate -= sd_div(fall * i, g->nr_zones - 1);
		bytes = sd_div(rate * m->revolution_ns, NS_PER_S);
		g->zone[i].sectors_per_track =
			sd_max(sd_div(bytes, SIMDISK_SECTOR_BYTES), 1);
		per_round += g->zone[i].sectors_per_track;
	}
	/* All zones are equally wide; each holds as much as its rate lets it. */
	tracks = sd_div(sectors + per_round - 1, per_round);
	for (i = 0; i < g->nr_zones; i++) {
		g->zone[i].first_sector = sector;
		g->zone[i].first_track = i * tracks;
		sector += tracks * g->zone[i].sectors_per_track;
	}
	g->tracks = tracks * g->nr_zones;
	g->cylinders = sd_max(sd_div(g->tracks, m->heads), 2);
	seek_curve_init(g, m);
}

u64 simdisk_seek_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
		    u64 cylinders)
{
	u64 last = g->cylinders - 1;
	u64 x;

	if (!cylinders)
		return 0;
	if (cylinders >= last)
		return m->seek_full_ns;
	/* x = (cylinders - 1) / (last - 1) in units of 2^-32; the root in 2^-31 */
	x = sd_div((cylinders - 1) << 32, last - 1);
	return m->seek_track_ns + ((g->seek_sqrt_ns * sd_sqrt(x << 30)) >> 31) +
	       ((g->seek_linear_ns * x) >> 32);
}

static const struct simdisk_zone *zone_of(const struct simdisk_geometry *g, u64 sector)
{
	u64 i = 0;

	while (i + 1 < g->nr_zones && sector >= g->zone[i + 1].first_sector)
		i++;
	return &g->zone[i];
}

static u64 on_disk(const struct simdisk_model *m, u64 sector)
{
	return sector + sd_div(m->origin_bytes, SIMDISK_SECTOR_BYTES);
}

u64 simdisk_track(const struct simdisk_model *m, const struct simdisk_geometry *g,
		  u64 sector)
{
	const struct simdisk_zone *z;

	sector = on_disk(m, sector);
	z = zone_of(g, sector);
	return z->first_track + sd_div(sector - z->first_sector, z->sectors_per_track);
}

u64 simdisk_track_sectors(const struct simdisk_model *m,
			  const struct simdisk_geometry *g, u64 sector)
{
	return zone_of(g, on_disk(m, sector))->sectors_per_track;
}

/* When a run from the zone's first sector on reaches this sector. */
static u64 pass_ns(const struct simdisk_model *m, const struct simdisk_zone *z, u64 sector)
{
	u64 index = sector - z->first_sector;
	u64 turns = sd_div(index, z->sectors_per_track);
	u64 rest = index - turns * z->sectors_per_track;

	return turns * m->revolution_ns +
	       sd_div(rest * m->revolution_ns, z->sectors_per_track);
}

u64 simdisk_angle_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
		     u64 sector)
{
	sector = on_disk(m, sector);
	return sd_mod(pass_ns(m, zone_of(g, sector), sector), m->revolution_ns);
}

u64 simdisk_transfer_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
			u64 sector, u64 sectors)
{
	const struct simdisk_zone *z;

	sector = on_disk(m, sector);
	z = zone_of(g, sector);
	return pass_ns(m, z, sector + sectors) - pass_ns(m, z, sector);
}

u64 simdisk_travel_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
		      u64 from, u64 to, bool write)
{
	u64 here, there, distance, seek;

	/*
	 * What lies ahead within one revolution of the run the head is on needs
	 * no seek of its own: the skew between tracks pays for the step.
	 */
	if (to >= from && to - from < simdisk_track_sectors(m, g, from))
		return 0;
	here = simdisk_track(m, g, from);
	there = simdisk_track(m, g, to);
	if (here == there)
		return 0;
	here = sd_div(here, m->heads);
	there = sd_div(there, m->heads);
	distance = here < there ? there - here : here - there;
	if (distance)
		seek = simdisk_seek_ns(m, g, sd_min(distance * m->stretch, g->cylinders));
	else
		seek = m->head_switch_ns;
	return seek + (write ? m->write_settle_ns : 0);
}

u64 simdisk_position_ns(const struct simdisk_model *m, const struct simdisk_geometry *g,
			u64 from, u64 to, bool write, u64 now_ns)
{
	u64 travel = simdisk_travel_ns(m, g, from, to, write);
	u64 under_head = sd_mod(now_ns + travel, m->revolution_ns);
	u64 angle = simdisk_angle_ns(m, g, to);

	if (angle < under_head)
		angle += m->revolution_ns;
	return travel + angle - under_head;
}

/* ---- Lists ---------------------------------------------------------------- */

static void list_append(struct simdisk_list *l, struct simdisk_io *io)
{
	io->next = NULL;
	io->prev = l->last;
	if (l->last)
		l->last->next = io;
	else
		l->first = io;
	l->last = io;
}

static void list_remove(struct simdisk_list *l, struct simdisk_io *io)
{
	if (io->prev)
		io->prev->next = io->next;
	else
		l->first = io->next;
	if (io->next)
		io->next->prev = io->prev;
	else
		l->last = io->prev;
	io->next = NULL;
	io->prev = NULL;
}

static struct simdisk_io *list_pop(struct simdisk_list *l)
{
	struct simdisk_io *io = l->first;

	if (io)
		list_remove(l, io);
	return io;
}

/* ---- A disk at work ------------------------------------------------------- */

/* What happens to a request at its next event. */
enum stage {
	STAGE_COMMAND,		/* the device has understood the command */
	STAGE_LINK,		/* its data can go over the link */
	STAGE_CHANNELS,		/* its data is in the device, units can write it */
	STAGE_CACHED,		/* its data is in the write cache */
	STAGE_ARM,		/* the arm has done it */
	STAGE_DONE,
};

/* Queue the request's next event; rest_ns is the least time left after it. */
static void schedule(struct simdisk_engine *e, struct simdisk_io *io, enum stage stage,
		     u64 when_ns, u64 rest_ns)
{
	struct simdisk_io *after = e->events.last;

	io->stage = stage;
	io->when_ns = when_ns;
	io->rest_ns = rest_ns;
	while (after && (after->when_ns > when_ns ||
			 (after->when_ns == when_ns && after->seq > io->seq)))
		after = after->prev;
	io->prev = after;
	io->next = after ? after->next : e->events.first;
	if (io->next)
		io->next->prev = io;
	else
		e->events.last = io;
	if (after)
		after->next = io;
	else
		e->events.first = io;
}

static bool is_write(const struct simdisk_io *io)
{
	return io->op == SIMDISK_WRITE;
}

static bool is_internal(const struct simdisk_engine *e, const struct simdisk_io *io)
{
	return io == &e->destage;
}

static u64 io_end(const struct simdisk_io *io)
{
	return io->sector + io->sectors;
}

static u64 io_bytes(const struct simdisk_io *io)
{
	return io->sectors * SIMDISK_SECTOR_BYTES;
}

static u64 link_ns(const struct simdisk_engine *e, const struct simdisk_io *io)
{
	return sd_move_ns(io_bytes(io), is_write(io) ? e->m.link_write_bytes_per_s :
						       e->m.link_read_bytes_per_s);
}

/* Take the link for the request's data from now_ns on; when it is through. */
static u64 take_link(struct simdisk_engine *e, const struct simdisk_io *io, u64 now_ns)
{
	u64 *free_ns = &e->link_free_ns[e->m.link_duplex && is_write(io)];

	*free_ns = sd_max(*free_ns, now_ns) + link_ns(e, io);
	return *free_ns;
}

/* Take commands from the driver's queue while the device has room for them. */
static void admit(struct simdisk_engine *e, u64 now_ns)
{
	while (e->in_device < e->m.depth && e->wait.first) {
		struct simdisk_io *io = list_pop(&e->wait);
		u64 cost = is_write(io) ? e->m.command_write_ns : e->m.command_read_ns;
		u64 rest = 0;

		if (!e->in_device++)
			e->busy_since_ns = now_ns;
		e->command_free_ns = sd_max(e->command_free_ns, now_ns) + cost;
		if (e->m.kind == SIMDISK_PARALLEL && io->op == SIMDISK_READ)
			rest = e->m.read_ns + link_ns(e, io);
		else if (e->m.kind == SIMDISK_PARALLEL && io->op == SIMDISK_WRITE)
			rest = e->m.write_ns + link_ns(e, io);
		e->in_command++;
		schedule(e, io, STAGE_COMMAND, e->command_free_ns, rest);
	}
}

/* -- read cache -- */

/* The sector that the read-ahead has reached. */
static u64 stream_position(const struct simdisk_engine *e, u64 now_ns)
{
	u64 turns, spt, passed, passed_ns;

	if (now_ns <= e->stream_since_ns)
		return e->stream_from;
	spt = simdisk_track_sectors(&e->m, &e->g, e->stream_from);
	passed_ns = now_ns - e->stream_since_ns;
	turns = sd_div(passed_ns, e->m.revolution_ns);
	/* far enough to be stopped by the limit, and small enough to multiply */
	if (turns > sd_div(e->stream_limit - e->stream_from, spt))
		return e->stream_limit;
	passed = turns * spt + sd_div((passed_ns - turns * e->m.revolution_ns) * spt,
				      e->m.revolution_ns);
	/* the exact inverse of simdisk_transfer_ns(), which rounds */
	if (simdisk_transfer_ns(&e->m, &e->g, e->stream_from, passed + 1) <= passed_ns)
		passed++;
	else if (passed &&
		 simdisk_transfer_ns(&e->m, &e->g, e->stream_from, passed) > passed_ns)
		passed--;
	return sd_min(e->stream_from + passed, e->stream_limit);
}

/* When the read-ahead, if it goes on, has read up to that sector. */
static u64 stream_reaches_ns(const struct simdisk_engine *e, u64 sector)
{
	return e->stream_since_ns +
	       simdisk_transfer_ns(&e->m, &e->g, e->stream_from, sector - e->stream_from);
}

/* Note in the active segment how far the read-ahead has come. */
static void stream_update(struct simdisk_engine *e, u64 now_ns)
{
	struct simdisk_segment *s = &e->segment[e->active];
	u64 room = sd_div(e->m.segment_bytes, SIMDISK_SECTOR_BYTES);

	if (!e->streaming)
		return;
	s->end = stream_position(e, now_ns);
	if (s->end - s->start > room)
		s->start = s->end - room;
	e->head = s->end;
}

/* The arm is wanted elsewhere. */
static void stream_stop(struct simdisk_engine *e, u64 now_ns)
{
	stream_update(e, now_ns);
	e->streaming = false;
}

/* After a read that ended at sector end at now_ns: read on. */
static void stream_start(struct simdisk_engine *e, u64 start, u64 end, u64 now_ns)
{
	u64 oldest = 0, i;

	e->head = end;
	if (!e->m.cache_segments || e->m.segment_bytes < SIMDISK_SECTOR_BYTES)
		return;
	for (i = 1; i < e->m.cache_segments; i++)
		if (e->segment[i].used < e->segment[oldest].used)
			oldest = i;
	e->active = oldest;
	e->segment[e->active].start = start;
	e->segment[e->active].used = ++e->segment_clock;
	e->segment[e->active].end = end;
	e->streaming = true;
	e->stream_from = end;
	e->stream_since_ns = now_ns;
	e->stream_limit = end + sd_div(e->m.segment_bytes, SIMDISK_SECTOR_BYTES);
}

/*
 * The host has read up to sector end from the segment that is being filled: the
 * read-ahead may go that much further. Where it had come to its limit it waits
 * for the platter to bring the next sector round.
 */
static void stream_extend(struct simdisk_engine *e, u64 end, u64 now_ns)
{
	u64 limit = end + sd_div(e->m.segment_bytes, SIMDISK_SECTOR_BYTES);
	u64 reached, turns;

	if (limit <= e->stream_limit)
		return;
	if (stream_position(e, now_ns) == e->stream_limit) {
		reached = stream_reaches_ns(e, e->stream_limit);
		turns = sd_div(now_ns - sd_min(now_ns, reached) + e->m.revolution_ns - 1,
			       e->m.revolution_ns);
		e->stream_from = e->stream_limit;
		e->stream_since_ns = reached + turns * e->m.revolution_ns;
	}
	e->stream_limit = limit;
}

/* Is the range in the read cache, or in the write cache? */
static bool cached(struct simdisk_engine *e, u64 start, u64 end, u64 now_ns)
{
	u64 i;

	stream_update(e, now_ns);
	for (i = 0; i < e->m.cache_segments; i++) {
		struct simdisk_segment *s = &e->segment[i];

		if (start < s->start || end > s->end)
			continue;
		s->used = ++e->segment_clock;
		if (e->streaming && i == e->active)
			stream_extend(e, end, now_ns);
		return true;
	}
	for (i = 0; i < e->nr_extents; i++)
		if (start >= e->extent[i].start && end <= e->extent[i].end)
			return true;
	return start >= e->going.start && end <= e->going.end;
}

/* Will the read-ahead reach the range soon enough that a seek is no better? */
static bool stream_meets(const struct simdisk_engine *e, u64 start, u64 now_ns)
{
	const struct simdisk_segment *s = &e->segment[e->active];
	u64 position;

	if (!e->streaming)
		return false;
	position = stream_position(e, now_ns);
	return start >= s->start && position < e->stream_limit &&
	       (start <= position ||
		start - position < simdisk_track_sectors(&e->m, &e->g, position));
}

/* What is about to be overwritten must not be read from the cache. */
static void forget(struct simdisk_engine *e, u64 start, u64 end, u64 now_ns)
{
	u64 i;

	stream_update(e, now_ns);
	for (i = 0; i < e->m.cache_segments; i++) {
		struct simdisk_segment *s = &e->segment[i];

		if (start >= s->end || end <= s->start)
			continue;
		s->start = 0;
		s->end = 0;
		if (i == e->active)
			e->streaming = false;
	}
	/* nor what the read-ahead would pick up before the write is out */
	if (e->streaming && start < e->stream_limit && end > e->segment[e->active].start)
		e->stream_limit = sd_max(start, e->stream_from);
}

/* -- write cache -- */

static u64 dirty_limit(const struct simdisk_engine *e)
{
	return sd_div(e->m.write_cache_bytes, SIMDISK_SECTOR_BYTES);
}

static bool cacheable(const struct simdisk_engine *e, const struct simdisk_io *io)
{
	return !io->fua && io->sectors <= dirty_limit(e);
}

static bool has_room(const struct simdisk_engine *e, const struct simdisk_io *io)
{
	return e->dirty_sectors + e->reserved_sectors + io->sectors <= dirty_limit(e) &&
	       e->nr_extents + e->nr_reserved < SIMDISK_EXTENTS_MAX;
}

static void extent_remove(struct simdisk_engine *e, u64 i)
{
	e->dirty_sectors -= e->extent[i].end - e->extent[i].start;
	e->extent[i] = e->extent[--e->nr_extents];
}

/* Add a range to the write cache, joined with all that it touches. */
static void extent_add(struct simdisk_engine *e, u64 start, u64 end, u64 seq)
{
	u64 i = 0;

	while (i < e->nr_extents) {
		struct simdisk_extent *x = &e->extent[i];

		if (start > x->end || end < x->start) {
			i++;
			continue;
		}
		start = sd_min(start, x->start);
		end = sd_max(end, x->end);
		seq = sd_min(seq, x->seq);
		extent_remove(e, i);
		i = 0;
	}
	e->extent[e->nr_extents].start = start;
	e->extent[e->nr_extents].end = end;
	e->extent[e->nr_extents].seq = seq;
	e->nr_extents++;
	e->dirty_sectors += end - start;
}

/* Send data over the link into the cache; there is room. */
static void write_to_cache(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns)
{
	e->reserved_sectors += io->sectors;
	e->nr_reserved++;
	schedule(e, io, STAGE_CACHED, take_link(e, io, now_ns), 0);
}

/* Flushes end when all that was cached before them is on the platter. */
static void flushes_go_on(struct simdisk_engine *e, u64 now_ns)
{
	struct simdisk_io *io = e->flush_queue.first, *next;
	u64 oldest = SIMDISK_NEVER;
	u64 i;

	for (i = 0; i < e->nr_extents; i++)
		oldest = sd_min(oldest, e->extent[i].seq);
	if (e->going.end > e->going.start)
		oldest = sd_min(oldest, e->going.seq);
	for (; io; io = next) {
		next = io->next;
		if (oldest < io->seq)
			continue;
		list_remove(&e->flush_queue, io);
		schedule(e, io, STAGE_DONE, now_ns + e->m.flush_ns, 0);
	}
}

/* -- the arm -- */

static void arm_serve(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns)
{
	u64 travel, position, transfer, end_ns;

	e->arm_busy = true;
	e->idle_ns = SIMDISK_NEVER;
	e->arm_destaged = is_internal(e, io);
	if (!is_write(io) && stream_meets(e, io->sector, now_ns)) {
		stream_extend(e, io_end(io), now_ns);
		/* at the latest when all has passed; at the earliest when sent */
		end_ns = sd_max(stream_reaches_ns(e, sd_max(io_end(io), e->stream_from)),
				now_ns + link_ns(e, io));
		e->n.stream_hits++;
		schedule(e, io, STAGE_ARM, end_ns, 0);
		return;
	}
	stream_stop(e, now_ns);
	if (is_write(io))
		forget(e, io->sector, io_end(io), now_ns);
	travel = simdisk_travel_ns(&e->m, &e->g, e->head, io->sector, is_write(io));
	position = simdisk_position_ns(&e->m, &e->g, e->head, io->sector, is_write(io),
				       now_ns);
	transfer = simdisk_transfer_ns(&e->m, &e->g, io->sector, io->sectors);
	if (travel) {
		e->n.seeks++;
		e->n.seek_ns += travel;
	}
	e->n.rotation_ns += position - travel;
	e->n.media_ns += transfer;
	end_ns = now_ns + position + transfer;
	/* A link slower than the platter holds the end of the data back. */
	if (!is_internal(e, io))
		end_ns = sd_max(end_ns, now_ns + link_ns(e, io));
	schedule(e, io, STAGE_ARM, end_ns, 0);
}

/* Bring a track's worth of the nearest cached write to the platter. */
static void arm_destage(struct simdisk_engine *e, u64 now_ns)
{
	u64 best = 0, best_ns = SIMDISK_NEVER, sectors, i, ns;
	struct simdisk_extent *x;

	stream_update(e, now_ns);
	for (i = 0; i < e->nr_extents; i++) {
		ns = simdisk_position_ns(&e->m, &e->g, e->head, e->extent[i].start, true,
					 now_ns);
		if (ns < best_ns) {
			best_ns = ns;
			best = i;
		}
	}
	x = &e->extent[best];
	sectors = sd_min(x->end - x->start,
			 simdisk_track_sectors(&e->m, &e->g, x->start));
	e->going.start = x->start;
	e->going.end = x->start + sectors;
	e->going.seq = x->seq;
	x->start += sectors;
	/* what is on its way is counted as dirty until it is out */
	if (x->start == x->end)
		extent_remove(e, best);

	memset(&e->destage, 0, sizeof(e->destage));
	e->destage.op = SIMDISK_WRITE;
	e->destage.sector = e->going.start;
	e->destage.sectors = sectors;
	e->destage.seq = e->seq++;
	e->n.destages++;
	arm_serve(e, &e->destage, now_ns);
}

/*
 * The request to serve next: the oldest, or with reordering the one that the
 * head reaches first, unless the oldest has waited too long.
 */
static struct simdisk_io *arm_choose(struct simdisk_engine *e, u64 now_ns)
{
	struct simdisk_io *oldest = e->arm_queue.first, *best = oldest, *io;
	u64 best_ns = SIMDISK_NEVER, ns;

	if (!oldest || !e->m.reorder || !oldest->next)
		return oldest;
	if (now_ns - oldest->arrive_ns > e->m.max_age_ns) {
		e->n.aged++;
		return oldest;
	}
	stream_update(e, now_ns);
	for (io = oldest; io; io = io->next) {
		if (!is_write(io) && stream_meets(e, io->sector, now_ns))
			ns = stream_reaches_ns(e, sd_max(io->sector, e->stream_from)) -
			     sd_min(now_ns, stream_reaches_ns(e, sd_max(io->sector,
									e->stream_from)));
		else
			ns = simdisk_position_ns(&e->m, &e->g, e->head, io->sector,
						 is_write(io), now_ns);
		if (ns < best_ns) {
			best_ns = ns;
			best = io;
		}
	}
	if (best != oldest)
		e->n.reordered++;
	return best;
}

/*
 * There may be work for the arm from now_ns on. It is chosen once all else of
 * that time has happened: a request that is done then need not wait until the
 * next is found.
 */
static void arm_go_on(struct simdisk_engine *e, u64 now_ns)
{
	if (!e->arm_busy)
		e->choose_ns = sd_min(e->choose_ns, now_ns);
}

/* Give the arm its next work, if it is free and there is some. */
static void arm_choose_work(struct simdisk_engine *e, u64 now_ns)
{
	struct simdisk_io *io;

	while (!e->arm_busy) {
		if (e->dirty_sectors * 2 > dirty_limit(e) ||
		    e->nr_extents + e->nr_reserved >= SIMDISK_EXTENTS_MAX ||
		    e->room_queue.first || e->flush_queue.first)
			e->draining = true;
		else if (e->dirty_sectors * 4 <= dirty_limit(e))
			e->draining = false;

		io = arm_choose(e, now_ns);
		if (e->nr_extents && e->draining && (!io || !e->arm_destaged)) {
			arm_destage(e, now_ns);
			return;
		}
		if (!io)
			break;
		list_remove(&e->arm_queue, io);
		if (!is_write(io) && cached(e, io->sector, io_end(io), now_ns)) {
			e->n.cache_hits++;
			schedule(e, io, STAGE_DONE, take_link(e, io, now_ns), 0);
			continue;
		}
		arm_serve(e, io, now_ns);
		return;
	}
	/* Reads come first; cached writes leave when there are none for a while. */
	if (!e->arm_busy && e->nr_extents && e->idle_ns == SIMDISK_NEVER)
		e->idle_ns = now_ns + e->m.destage_idle_ns;
}

static void arm_done(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns)
{
	struct simdisk_io *waiter;

	e->arm_busy = false;
	if (is_internal(e, io)) {
		e->head = e->going.end;
		e->dirty_sectors -= e->going.end - e->going.start;
		e->going.start = 0;
		e->going.end = 0;
		flushes_go_on(e, now_ns);
		while (e->room_queue.first && has_room(e, e->room_queue.first)) {
			waiter = list_pop(&e->room_queue);
			write_to_cache(e, waiter, now_ns);
		}
	} else if (is_write(io)) {
		e->head = io_end(io);
		schedule(e, io, STAGE_DONE, now_ns, 0);
	} else {
		if (e->streaming)
			stream_update(e, now_ns);
		else
			stream_start(e, io->sector, io_end(io), now_ns);
		schedule(e, io, STAGE_DONE, now_ns, 0);
	}
	arm_go_on(e, now_ns);
}

/* -- parallel units -- */

/* Every stripe of the request goes to its unit; when the last one is done. */
static u64 take_channels(struct simdisk_engine *e, const struct simdisk_io *io, u64 unit_ns,
			 u64 now_ns)
{
	u64 stripe, last, channel, end_ns = now_ns + unit_ns;

	if (!e->m.channels || !io->sectors)
		return end_ns;
	stripe = sd_div(io->sector * SIMDISK_SECTOR_BYTES, e->m.stripe_bytes);
	last = sd_div(io_end(io) * SIMDISK_SECTOR_BYTES - 1, e->m.stripe_bytes);
	channel = sd_mod(stripe, e->m.channels);
	for (; stripe <= last; stripe++) {
		u64 *free_ns = &e->channel_free_ns[channel];

		*free_ns = sd_max(*free_ns, now_ns) + unit_ns;
		end_ns = sd_max(end_ns, *free_ns);
		if (++channel == e->m.channels)
			channel = 0;
	}
	return end_ns;
}

/* -- events -- */

static void command_rotational(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns)
{
	switch (io->op) {
	case SIMDISK_FLUSH:
		list_append(&e->flush_queue, io);
		flushes_go_on(e, now_ns);
		break;
	case SIMDISK_DISCARD:
		schedule(e, io, STAGE_DONE, now_ns + e->m.discard_ns, 0);
		return;
	case SIMDISK_READ:
		if (cached(e, io->sector, io_end(io), now_ns)) {
			e->n.cache_hits++;
			schedule(e, io, STAGE_DONE, take_link(e, io, now_ns), 0);
			return;
		}
		list_append(&e->arm_queue, io);
		break;
	case SIMDISK_WRITE:
		if (!cacheable(e, io)) {
			list_append(&e->arm_queue, io);
			break;
		}
		if (!e->room_queue.first && has_room(e, io)) {
			write_to_cache(e, io, now_ns);
			return;
		}
		list_append(&e->room_queue, io);
		break;
	}
	arm_go_on(e, now_ns);
}

static void command_parallel(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns)
{
	switch (io->op) {
	case SIMDISK_READ:
		schedule(e, io, STAGE_LINK, take_channels(e, io, e->m.read_ns, now_ns),
			 link_ns(e, io));
		break;
	case SIMDISK_WRITE:
		schedule(e, io, STAGE_CHANNELS, take_link(e, io, now_ns), e->m.write_ns);
		break;
	case SIMDISK_FLUSH:
		schedule(e, io, STAGE_DONE, now_ns + e->m.flush_ns, 0);
		break;
	case SIMDISK_DISCARD:
		schedule(e, io, STAGE_DONE, now_ns + e->m.discard_ns, 0);
		break;
	}
}

static void finish(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns)
{
	u64 service = now_ns - io->arrive_ns;

	io->done_ns = now_ns;
	list_append(&e->done, io);
	e->n.service_ns += service;
	e->n.max_service_ns = sd_max(e->n.max_service_ns, service);
	if (!--e->in_device)
		e->n.busy_ns += now_ns - e->busy_since_ns;
	admit(e, now_ns);
}

static void handle(struct simdisk_engine *e, struct simdisk_io *io)
{
	u64 now_ns = io->when_ns;

	list_remove(&e->events, io);
	switch ((enum stage)io->stage) {
	case STAGE_COMMAND:
		e->in_command--;
		if (e->m.kind == SIMDISK_ROTATIONAL)
			command_rotational(e, io, now_ns);
		else
			command_parallel(e, io, now_ns);
		break;
	case STAGE_LINK:
		schedule(e, io, STAGE_DONE, take_link(e, io, now_ns), 0);
		break;
	case STAGE_CHANNELS:
		schedule(e, io, STAGE_DONE, take_channels(e, io, e->m.write_ns, now_ns), 0);
		break;
	case STAGE_CACHED:
		e->reserved_sectors -= io->sectors;
		e->nr_reserved--;
		forget(e, io->sector, io_end(io), now_ns);
		extent_add(e, io->sector, io_end(io), io->seq);
		schedule(e, io, STAGE_DONE, now_ns, 0);
		arm_go_on(e, now_ns);
		break;
	case STAGE_ARM:
		arm_done(e, io, now_ns);
		break;
	case STAGE_DONE:
		finish(e, io, now_ns);
		break;
	}
}

/* When the next thing happens, whatever it is. */
static u64 next_step_ns(const struct simdisk_engine *e)
{
	u64 when_ns = sd_min(e->choose_ns, e->idle_ns);

	return e->events.first ? sd_min(when_ns, e->events.first->when_ns) : when_ns;
}

/* Is the next thing the end of a request? */
static bool next_is_done(const struct simdisk_engine *e)
{
	return e->events.first && e->events.first->stage == STAGE_DONE &&
	       e->events.first->when_ns == next_step_ns(e);
}

/* Make the next thing happen: at the same time, events before the arm's choice. */
static void step(struct simdisk_engine *e)
{
	u64 when_ns = next_step_ns(e);

	if (e->events.first && e->events.first->when_ns == when_ns) {
		handle(e, e->events.first);
	} else if (e->choose_ns == when_ns) {
		e->choose_ns = SIMDISK_NEVER;
		arm_choose_work(e, when_ns);
	} else {
		e->idle_ns = SIMDISK_NEVER;
		if (!e->arm_busy && e->nr_extents)
			arm_destage(e, when_ns);
	}
}

/* Is there a step by now_ns? SIMDISK_NEVER is no time for one. */
static bool steps_by(const struct simdisk_engine *e, u64 now_ns)
{
	u64 when_ns = next_step_ns(e);

	return when_ns != SIMDISK_NEVER && when_ns <= now_ns;
}

void simdisk_advance(struct simdisk_engine *e, u64 now_ns)
{
	while (steps_by(e, now_ns))
		step(e);
}

struct simdisk_io *simdisk_next_done(struct simdisk_engine *e, u64 now_ns)
{
	while (!e->done.first && steps_by(e, now_ns))
		step(e);
	return list_pop(&e->done);
}

void simdisk_engine_init(struct simdisk_engine *e, const struct simdisk_model *m)
{
	memset(e, 0, sizeof(*e));
	e->m = *m;
	e->idle_ns = SIMDISK_NEVER;
	e->choose_ns = SIMDISK_NEVER;
	e->seq = 1;
	if (m->kind == SIMDISK_ROTATIONAL)
		simdisk_geometry_init(&e->g, m);
}

void simdisk_submit(struct simdisk_engine *e, struct simdisk_io *io, u64 now_ns)
{
	simdisk_advance(e, now_ns);
	io->arrive_ns = now_ns;
	io->seq = e->seq++;
	e->n.requests++;
	switch (io->op) {
	case SIMDISK_READ:
		e->n.reads++;
		e->n.bytes_read += io_bytes(io);
		break;
	case SIMDISK_WRITE:
		e->n.writes++;
		e->n.bytes_written += io_bytes(io);
		break;
	case SIMDISK_FLUSH:
		e->n.flushes++;
		break;
	case SIMDISK_DISCARD:
		e->n.discards++;
		break;
	}
	list_append(&e->wait, io);
	admit(e, now_ns);
}

u64 simdisk_next_ns(struct simdisk_engine *e)
{
	struct simdisk_io *io;
	u64 bound = SIMDISK_NEVER;

	if (e->done.first)
		return e->done.first->done_ns;
	/* What the disk does for itself waits until somebody asks. */
	if (!e->in_device)
		return SIMDISK_NEVER;
	/*
	 * With one command in the device at a time, what is submitted before it
	 * is done can only queue behind it: its end can be known now.
	 */
	if (e->m.depth == 1) {
		while (!next_is_done(e))
			step(e);
		return next_step_ns(e);
	}
	/*
	 * Where there may be more, the arm's choice for the only one there is can
	 * be known: the command of another would end after it is made.
	 */
	while (e->m.kind == SIMDISK_ROTATIONAL && e->in_device == 1 &&
	       (e->in_command || e->choose_ns != SIMDISK_NEVER) &&
	       !next_is_done(e))
		step(e);
	for (io = e->events.first; io && io->when_ns < bound; io = io->next)
		bound = sd_min(bound, io->when_ns + io->rest_ns);
	return sd_min(bound, sd_min(e->choose_ns, e->idle_ns));
}

struct simdisk_io *simdisk_pop_done(struct simdisk_engine *e)
{
	return list_pop(&e->done);
}
