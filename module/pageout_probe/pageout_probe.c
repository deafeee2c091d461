// SPDX-License-Identifier: GPL-2.0-only
/*
 * pageout_probe - measures page-out and swap-in by the kernel's tracepoints
 *
 * It needs nothing of the kernel but tracepoints that vanilla Linux 6.12 has,
 * so that kernels with and without the page-out series are measured with the
 * same ruler. Tracepoints are found by name when the module is loaded; one that
 * a kernel lacks is named in the log and in the statistics, and the rest works.
 *
 * debugfs pageout_probe/stats holds lines of "name value":
 *
 *   swpin_bio, swpout_run_8, pswpout_direct and so on mean what the counters of
 *   these names in /proc/vmstat mean where the series is applied;
 *   swap_write_bio_queued and so on count the block layer's events, apart for
 *   swap and for everything else, and for reads and writes;
 *   NAME_pages_from_N is the number of those from N pages on, below the next
 *   N of that name; NAME_ns_from_N the same for times; only buckets that
 *   are not empty have a line;
 *   NAME_p99_ns is an upper bound of that percentile, at most 1/16 above it;
 *   NAME_max_ns and NAME_max_pages are exact;
 *   missing is the number of tracepoints not found (or left alone, with the
 *   parameter skip), missing_NAME names them.
 *
 * Writing anything to pageout_probe/reset sets all of it to 0.
 *
 * Counters are per CPU. A probe takes no lock and allocates nothing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/swap.h>
#include <linux/tracepoint.h>
#include <linux/vmstat.h>

#include <trace/events/block.h>
#include <trace/events/filemap.h>
#include <trace/events/tlb.h>
#include <trace/events/vmscan.h>

#include "probe_hist.h"

static char *skip;
module_param(skip, charp, 0444);
MODULE_PARM_DESC(skip, "tracepoints to leave alone (a,b,..)");

/* Plain counters. */
enum probe_counter {
	PROBE_PSWPIN,
	PROBE_PSWPOUT,
	PROBE_PSWPOUT_KSWAPD,
	PROBE_PSWPOUT_DIRECT,
	PROBE_SWPIN_BIO,
	PROBE_SWPOUT_BIO,
	PROBE_WRITE_FOLIO_KSWAPD,
	PROBE_WRITE_FOLIO_DIRECT,
	PROBE_WRITE_FOLIO_OTHER,
	PROBE_WRITE_PAGES_ANON,
	PROBE_WRITE_PAGES_SHMEM,
	PROBE_WRITE_PAGES_FILE,
	PROBE_SCAN_KSWAPD,
	PROBE_SCAN_DIRECT,
	PROBE_SCAN_OTHER,
	PROBE_STEAL_KSWAPD,
	PROBE_STEAL_DIRECT,
	PROBE_STEAL_OTHER,
	PROBE_FOUND_DIRTY,
	PROBE_FOUND_WRITEBACK,
	PROBE_FOUND_IMMEDIATE,
	PROBE_FOUND_REFERENCED,
	PROBE_FOUND_ACTIVATE,
	PROBE_UNMAP_FAIL,
	PROBE_DIRECT_PAGES,
	PROBE_MEMCG_PAGES,
	PROBE_NODE_PAGES,
	PROBE_RECLAIM_UNTRACKED,
	PROBE_RECLAIM_UNMATCHED,
	PROBE_KSWAPD_WAKE,
	PROBE_KSWAPD_SLEEP,
	PROBE_KSWAPD_WAKEUP,
	PROBE_THROTTLED_WRITEBACK,
	PROBE_THROTTLED_ISOLATED,
	PROBE_THROTTLED_NOPROGRESS,
	PROBE_THROTTLED_CONGESTED,
	PROBE_THROTTLED_OTHER,
	PROBE_THROTTLED_US,
	PROBE_TLB_TASK_SWITCH,
	PROBE_TLB_REMOTE,
	PROBE_TLB_LOCAL,
	PROBE_TLB_LOCAL_MM,
	PROBE_TLB_SEND_IPI,
	PROBE_TLB_OTHER,
	PROBE_TLB_BY_RECLAIM,
	PROBE_FILEMAP_ADD,
	PROBE_FILEMAP_DELETE,
	PROBE_PLUG,
	PROBE_UNPLUG_EXPLICIT,
	PROBE_UNPLUG_SCHEDULE,
	PROBE_UNPLUG_REQUESTS,
	NR_PROBE_COUNTERS
};

static const char * const counter_names[] = {
	[PROBE_PSWPIN] = "pswpin",
	[PROBE_PSWPOUT] = "pswpout",
	[PROBE_PSWPOUT_KSWAPD] = "pswpout_kswapd",
	[PROBE_PSWPOUT_DIRECT] = "pswpout_direct",
	[PROBE_SWPIN_BIO] = "swpin_bio",
	[PROBE_SWPOUT_BIO] = "swpout_bio",
	[PROBE_WRITE_FOLIO_KSWAPD] = "reclaim_write_folio_kswapd",
	[PROBE_WRITE_FOLIO_DIRECT] = "reclaim_write_folio_direct",
	[PROBE_WRITE_FOLIO_OTHER] = "reclaim_write_folio_other",
	[PROBE_WRITE_PAGES_ANON] = "reclaim_write_pages_anon",
	[PROBE_WRITE_PAGES_SHMEM] = "reclaim_write_pages_shmem",
	[PROBE_WRITE_PAGES_FILE] = "reclaim_write_pages_file",
	[PROBE_SCAN_KSWAPD] = "reclaim_scan_kswapd",
	[PROBE_SCAN_DIRECT] = "reclaim_scan_direct",
	[PROBE_SCAN_OTHER] = "reclaim_scan_other",
	[PROBE_STEAL_KSWAPD] = "reclaim_steal_kswapd",
	[PROBE_STEAL_DIRECT] = "reclaim_steal_direct",
	[PROBE_STEAL_OTHER] = "reclaim_steal_other",
	[PROBE_FOUND_DIRTY] = "reclaim_found_dirty",
	[PROBE_FOUND_WRITEBACK] = "reclaim_found_writeback",
	[PROBE_FOUND_IMMEDIATE] = "reclaim_found_immediate",
	[PROBE_FOUND_REFERENCED] = "reclaim_found_referenced",
	[PROBE_FOUND_ACTIVATE] = "reclaim_activated",
	[PROBE_UNMAP_FAIL] = "reclaim_unmap_failed",
	[PROBE_DIRECT_PAGES] = "direct_reclaim_pages",
	[PROBE_MEMCG_PAGES] = "memcg_reclaim_pages",
	[PROBE_NODE_PAGES] = "node_reclaim_pages",
	[PROBE_RECLAIM_UNTRACKED] = "reclaim_untracked",
	[PROBE_RECLAIM_UNMATCHED] = "reclaim_unmatched",
	[PROBE_KSWAPD_WAKE] = "kswapd_wake",
	[PROBE_KSWAPD_SLEEP] = "kswapd_sleep",
	[PROBE_KSWAPD_WAKEUP] = "kswapd_wakeup_calls",
	[PROBE_THROTTLED_WRITEBACK] = "throttled_writeback",
	[PROBE_THROTTLED_ISOLATED] = "throttled_isolated",
	[PROBE_THROTTLED_NOPROGRESS] = "throttled_noprogress",
	[PROBE_THROTTLED_CONGESTED] = "throttled_congested",
	[PROBE_THROTTLED_OTHER] = "throttled_other",
	[PROBE_THROTTLED_US] = "throttled_us",
	[PROBE_TLB_TASK_SWITCH] = "tlb_flush_task_switch",
	[PROBE_TLB_REMOTE] = "tlb_flush_remote",
	[PROBE_TLB_LOCAL] = "tlb_flush_local",
	[PROBE_TLB_LOCAL_MM] = "tlb_flush_local_mm",
	[PROBE_TLB_SEND_IPI] = "tlb_flush_send_ipi",
	[PROBE_TLB_OTHER] = "tlb_flush_other",
	[PROBE_TLB_BY_RECLAIM] = "tlb_flush_by_reclaim",
	[PROBE_FILEMAP_ADD] = "page_cache_add",
	[PROBE_FILEMAP_DELETE] = "page_cache_delete",
	[PROBE_PLUG] = "block_plug",
	[PROBE_UNPLUG_EXPLICIT] = "block_unplug_explicit",
	[PROBE_UNPLUG_SCHEDULE] = "block_unplug_schedule",
	[PROBE_UNPLUG_REQUESTS] = "block_unplug_requests",
};

/* What is counted of block I/O, by class (swap or other) and by direction. */
enum block_event {
	BLOCK_BIO_QUEUED,
	BLOCK_BIO_QUEUED_BYTES,
	BLOCK_BIO_SPLIT,
	BLOCK_BIO_BACKMERGED,
	BLOCK_BIO_FRONTMERGED,
	BLOCK_RQ_INSERTED,
	BLOCK_RQ_MERGED,
	BLOCK_RQ_ISSUED,
	BLOCK_RQ_ISSUED_BYTES,
	BLOCK_RQ_REQUEUED,
	BLOCK_RQ_COMPLETED,
	BLOCK_RQ_COMPLETED_BYTES,
	BLOCK_RQ_FAILED,
	NR_BLOCK_EVENTS
};

static const char * const block_names[] = {
	[BLOCK_BIO_QUEUED] = "bio_queued",
	[BLOCK_BIO_QUEUED_BYTES] = "bio_queued_bytes",
	[BLOCK_BIO_SPLIT] = "bio_split",
	[BLOCK_BIO_BACKMERGED] = "bio_backmerged",
	[BLOCK_BIO_FRONTMERGED] = "bio_frontmerged",
	[BLOCK_RQ_INSERTED] = "rq_inserted",
	[BLOCK_RQ_MERGED] = "rq_merged",
	[BLOCK_RQ_ISSUED] = "rq_issued",
	[BLOCK_RQ_ISSUED_BYTES] = "rq_issued_bytes",
	[BLOCK_RQ_REQUEUED] = "rq_requeued",
	[BLOCK_RQ_COMPLETED] = "rq_completed",
	[BLOCK_RQ_COMPLETED_BYTES] = "rq_completed_bytes",
	[BLOCK_RQ_FAILED] = "rq_failed",
};

enum block_class { CLASS_SWAP, CLASS_OTHER, NR_CLASSES };
static const char * const class_names[] = { "swap", "other" };
static const char * const dir_names[] = { "read", "write" };

/* Histograms of pages. READ and WRITE are 0 and 1. */
enum size_hist {
	SIZE_BIO,					/* + READ or WRITE */
	SIZE_RQ = SIZE_BIO + 2,				/* + READ or WRITE */
	SIZE_RUN = SIZE_RQ + 2,				/* + READ or WRITE */
	SIZE_RECLAIM_RUN = SIZE_RUN + 2,
	NR_SIZE_HISTS
};

static const char * const size_names[] = {
	"swap_read_bio", "swap_write_bio", "swap_read_rq", "swap_write_rq",
	"swap_read_run", "swap_write_run", "reclaim_write_run",
};

#define SIZE_BUCKETS	PROBE_HIST_BUCKETS(16)

/* Histograms of times, which are also the kinds of reclaim. */
enum time_hist {
	TIME_DIRECT, TIME_MEMCG, TIME_NODE, TIME_KSWAPD, NR_TIME_HISTS
};

static const char * const time_names[] = {
	"direct_reclaim", "memcg_reclaim", "node_reclaim", "kswapd_awake",
};

#define TIME_BUCKETS	PROBE_HIST_BUCKETS(40)

/*
 * Pages that one task submits on one CPU to consecutive places, in ascending
 * order, without sleeping between them.
 */
struct probe_run {
	const struct task_struct *task;	/* only to compare with current */
	unsigned long nvcsw;
	u64 space;			/* a device or a swap area */
	u64 next;
	u32 pages;			/* 0: there is none */
};

enum run_kind { RUN_SWAP_READ, RUN_SWAP_WRITE, RUN_RECLAIM, NR_RUNS };

struct probe_cpu {
	u64 count[NR_PROBE_COUNTERS];
	u64 block[NR_CLASSES][2][NR_BLOCK_EVENTS];
	u64 size_sum[NR_SIZE_HISTS];
	u64 time_sum[NR_TIME_HISTS];
	u64 time_max[NR_TIME_HISTS];
	u32 size_max[NR_SIZE_HISTS];
	u32 size[NR_SIZE_HISTS][SIZE_BUCKETS];
	u32 time[NR_TIME_HISTS][TIME_BUCKETS];
	struct probe_run run[NR_RUNS];
};

static struct probe_cpu __percpu *probe;
static struct dentry *probe_dir;

/*
 * Tasks that are in reclaim now. A task finds its slot by its address; begin and
 * end of a reclaim need no lock, as only the task itself takes and leaves it.
 */
#define RECLAIM_BITS	8
#define RECLAIM_TRIES	16

static struct reclaim_slot {
	const struct task_struct *task;
	u64 start_ns;
} reclaim_slots[1 << RECLAIM_BITS];

static void count(enum probe_counter counter, u64 delta)
{
	this_cpu_add(probe->count[counter], delta);
}

static void count_size(enum size_hist hist, u32 pages)
{
	this_cpu_inc(probe->size[hist][probe_hist_bucket(pages, SIZE_BUCKETS)]);
	this_cpu_add(probe->size_sum[hist], pages);
	if (pages > this_cpu_read(probe->size_max[hist]))
		this_cpu_write(probe->size_max[hist], pages);
}

static void count_time(enum time_hist hist, u64 ns)
{
	this_cpu_inc(probe->time[hist][probe_hist_bucket(ns, TIME_BUCKETS)]);
	this_cpu_add(probe->time_sum[hist], ns);
	if (ns > this_cpu_read(probe->time_max[hist]))
		this_cpu_write(probe->time_max[hist], ns);
}

/* A run that is open stays in probe_run; probe_show() adds it to the others. */
static void count_run(enum run_kind kind, enum size_hist hist, u64 space,
		      u64 at, u32 length, u32 pages)
{
	struct probe_run *run = this_cpu_ptr(&probe->run[kind]);

	if (run->pages && run->next == at && run->space == space &&
	    run->task == current && run->nvcsw == current->nvcsw) {
		run->pages += pages;
		run->next = at + length;
		return;
	}

	if (run->pages)
		count_size(hist, run->pages);
	*run = (struct probe_run) {
		.task = current,
		.nvcsw = current->nvcsw,
		.space = space,
		.next = at + length,
		.pages = pages,
	};
}

enum reclaimer { BY_KSWAPD, BY_DIRECT, BY_OTHER };

/* As the kernel's own pgsteal counters divide them. */
static enum reclaimer reclaimer(void)
{
	if (current_is_kswapd())
		return BY_KSWAPD;
	if (!current->reclaim_state)
		return BY_OTHER;
	if ((current->flags & PF_KTHREAD) && !strcmp(current->comm, "khugepaged"))
		return BY_OTHER;
	return BY_DIRECT;
}

static struct reclaim_slot *reclaim_slot(unsigned int try)
{
	u32 home = hash_ptr(current, RECLAIM_BITS);

	return &reclaim_slots[(home + try) % ARRAY_SIZE(reclaim_slots)];
}

static struct reclaim_slot *reclaim_find(void)
{
	unsigned int try;

	for (try = 0; try < RECLAIM_TRIES; try++) {
		struct reclaim_slot *slot = reclaim_slot(try);

		if (READ_ONCE(slot->task) == current)
			return slot;
	}
	return NULL;
}

static void reclaim_begin(void)
{
	unsigned int try;

	for (try = 0; try < RECLAIM_TRIES; try++) {
		struct reclaim_slot *slot = reclaim_slot(try);

		if (!READ_ONCE(slot->task) &&
		    !cmpxchg(&slot->task, NULL, current)) {
			slot->start_ns = ktime_get_ns();
			return;
		}
	}
	count(PROBE_RECLAIM_UNTRACKED, 1);
}

static void reclaim_end(enum time_hist kind)
{
	struct reclaim_slot *slot = reclaim_find();

	/* It began before the module was there, or found no slot. */
	if (!slot) {
		count(PROBE_RECLAIM_UNMATCHED, 1);
		return;
	}

	count_time(kind, ktime_get_ns() - slot->start_ns);
	WRITE_ONCE(slot->task, NULL);
}

static void on_mm_vmscan_direct_reclaim_begin(void *data, int order, gfp_t gfp)
{
	reclaim_begin();
}

static void on_mm_vmscan_direct_reclaim_end(void *data, unsigned long reclaimed)
{
	reclaim_end(TIME_DIRECT);
	count(PROBE_DIRECT_PAGES, reclaimed);
}

#ifdef CONFIG_MEMCG
static void on_mm_vmscan_memcg_reclaim_begin(void *data, int order, gfp_t gfp)
{
	reclaim_begin();
}

static void on_mm_vmscan_memcg_reclaim_end(void *data, unsigned long reclaimed)
{
	reclaim_end(TIME_MEMCG);
	count(PROBE_MEMCG_PAGES, reclaimed);
}
#endif

static void on_mm_vmscan_node_reclaim_begin(void *data, int nid, int order,
					    gfp_t gfp)
{
	reclaim_begin();
}

static void on_mm_vmscan_node_reclaim_end(void *data, unsigned long reclaimed)
{
	reclaim_end(TIME_NODE);
	count(PROBE_NODE_PAGES, reclaimed);
}

/* kswapd says that it is awake at each turn of its loop, not only the first. */
static void on_mm_vmscan_kswapd_wake(void *data, int nid, int zid, int order)
{
	count(PROBE_KSWAPD_WAKE, 1);
	if (!reclaim_find())
		reclaim_begin();
}

static void on_mm_vmscan_kswapd_sleep(void *data, int nid)
{
	count(PROBE_KSWAPD_SLEEP, 1);
	if (reclaim_find())
		reclaim_end(TIME_KSWAPD);
}

static void on_mm_vmscan_wakeup_kswapd(void *data, int nid, int zid, int order,
				       gfp_t gfp)
{
	count(PROBE_KSWAPD_WAKEUP, 1);
}

static void on_mm_vmscan_write_folio(void *data, struct folio *folio)
{
	u32 pages = folio_nr_pages(folio);

	count(PROBE_WRITE_FOLIO_KSWAPD + reclaimer(), 1);

	/*
	 * The write can have ended, and the folio can have left the swap cache,
	 * as reclaim holds a reference and no lock. Then it is in no run.
	 */
	if (folio_test_swapcache(folio)) {
		swp_entry_t entry = folio->swap;

		count_run(RUN_RECLAIM, SIZE_RECLAIM_RUN, 0, entry.val, pages,
			  pages);
	}

	if (!folio_test_swapbacked(folio))
		count(PROBE_WRITE_PAGES_FILE, pages);
	else if (folio_test_anon(folio))
		count(PROBE_WRITE_PAGES_ANON, pages);
	else
		count(PROBE_WRITE_PAGES_SHMEM, pages);
}

static void on_mm_vmscan_lru_shrink_inactive(void *data, int nid,
					     unsigned long scanned,
					     unsigned long reclaimed,
					     struct reclaim_stat *stat,
					     int priority, int file)
{
	enum reclaimer who = reclaimer();

	count(PROBE_SCAN_KSWAPD + who, scanned);
	count(PROBE_STEAL_KSWAPD + who, reclaimed);
	count(PROBE_FOUND_DIRTY, stat->nr_dirty);
	count(PROBE_FOUND_WRITEBACK, stat->nr_writeback);
	count(PROBE_FOUND_IMMEDIATE, stat->nr_immediate);
	count(PROBE_FOUND_REFERENCED, stat->nr_ref_keep);
	count(PROBE_FOUND_ACTIVATE, stat->nr_activate[0] + stat->nr_activate[1]);
	count(PROBE_UNMAP_FAIL, stat->nr_unmap_fail);
}

static void on_mm_vmscan_throttled(void *data, int nid, int usec_timeout,
				   int usec_delayed, int reason)
{
	enum probe_counter counter = PROBE_THROTTLED_OTHER;

	switch (reason) {
	case VMSCAN_THROTTLE_WRITEBACK:
		counter = PROBE_THROTTLED_WRITEBACK;
		break;
	case VMSCAN_THROTTLE_ISOLATED:
		counter = PROBE_THROTTLED_ISOLATED;
		break;
	case VMSCAN_THROTTLE_NOPROGRESS:
		counter = PROBE_THROTTLED_NOPROGRESS;
		break;
	case VMSCAN_THROTTLE_CONGESTED:
		counter = PROBE_THROTTLED_CONGESTED;
		break;
	}
	count(counter, 1);
	count(PROBE_THROTTLED_US, max(usec_delayed, 0));
}

static void on_tlb_flush(void *data, int reason, unsigned long pages)
{
	enum probe_counter counter = PROBE_TLB_OTHER;

	switch (reason) {
	case TLB_FLUSH_ON_TASK_SWITCH:
		counter = PROBE_TLB_TASK_SWITCH;
		break;
	case TLB_REMOTE_SHOOTDOWN:
		counter = PROBE_TLB_REMOTE;
		break;
	case TLB_LOCAL_SHOOTDOWN:
		counter = PROBE_TLB_LOCAL;
		break;
	case TLB_LOCAL_MM_SHOOTDOWN:
		counter = PROBE_TLB_LOCAL_MM;
		break;
	case TLB_REMOTE_SEND_IPI:
		counter = PROBE_TLB_SEND_IPI;
		break;
	}
	count(counter, 1);
	if (counter != PROBE_TLB_TASK_SWITCH && counter != PROBE_TLB_REMOTE &&
	    in_task() && (current->flags & PF_MEMALLOC))
		count(PROBE_TLB_BY_RECLAIM, 1);
}

static void on_mm_filemap_add_to_page_cache(void *data, struct folio *folio)
{
	count(PROBE_FILEMAP_ADD, folio_nr_pages(folio));
}

static void on_mm_filemap_delete_from_page_cache(void *data,
						 struct folio *folio)
{
	count(PROBE_FILEMAP_DELETE, folio_nr_pages(folio));
}

/*
 * Only reads and writes of data are counted: a flush has no pages, and what is
 * discarded is not moved.
 */
static bool is_data(const struct bio *bio)
{
	return bio && bio->bi_iter.bi_size &&
	       (bio_op(bio) == REQ_OP_READ || bio_op(bio) == REQ_OP_WRITE);
}

static int bio_dir(const struct bio *bio)
{
	return op_is_write(bio_op(bio)) ? WRITE : READ;
}

/*
 * A page in the swap cache can be on its way only to or from swap. So can one
 * that is swapped in past the swap cache, which is locked and not mapped yet.
 */
static enum block_class bio_class(const struct bio *bio)
{
	struct folio *folio;

	if (!bio->bi_io_vec)
		return CLASS_OTHER;

	folio = page_folio(bio_page(bio));
	if (folio_test_swapcache(folio))
		return CLASS_SWAP;
	if (!folio_test_slab(folio) && folio_test_swapbacked(folio) &&
	    folio_test_locked(folio) && !folio->mapping)
		return CLASS_SWAP;
	return CLASS_OTHER;
}

static void count_bio(const struct bio *bio, enum block_event event)
{
	if (is_data(bio))
		this_cpu_inc(probe->block[bio_class(bio)][bio_dir(bio)][event]);
}

static void count_rq(const struct request *rq, enum block_event event)
{
	count_bio(rq->bio, event);
}

static void on_block_bio_queue(void *data, struct bio *bio)
{
	static const enum probe_counter pages_of[] = {
		PROBE_PSWPIN, PROBE_PSWPOUT
	};
	static const enum probe_counter bios_of[] = {
		PROBE_SWPIN_BIO, PROBE_SWPOUT_BIO
	};
	enum block_class class;
	u32 pages;
	int dir;

	if (!is_data(bio))
		return;

	class = bio_class(bio);
	dir = bio_dir(bio);
	this_cpu_inc(probe->block[class][dir][BLOCK_BIO_QUEUED]);
	this_cpu_add(probe->block[class][dir][BLOCK_BIO_QUEUED_BYTES],
		     bio->bi_iter.bi_size);
	if (class != CLASS_SWAP)
		return;

	pages = bio->bi_iter.bi_size >> PAGE_SHIFT;
	count(pages_of[dir], pages);
	count(bios_of[dir], 1);
	if (dir == WRITE) {
		enum reclaimer who = reclaimer();

		if (who == BY_KSWAPD)
			count(PROBE_PSWPOUT_KSWAPD, pages);
		else if (who == BY_DIRECT)
			count(PROBE_PSWPOUT_DIRECT, pages);
	}
	count_size(SIZE_BIO + dir, pages);
	count_run(RUN_SWAP_READ + dir, SIZE_RUN + dir, bio_dev(bio),
		  bio->bi_iter.bi_sector, bio_sectors(bio), pages);
}

static void on_block_split(void *data, struct bio *bio, unsigned int new_sector)
{
	count_bio(bio, BLOCK_BIO_SPLIT);
}

static void on_block_bio_backmerge(void *data, struct bio *bio)
{
	count_bio(bio, BLOCK_BIO_BACKMERGED);
}

static void on_block_bio_frontmerge(void *data, struct bio *bio)
{
	count_bio(bio, BLOCK_BIO_FRONTMERGED);
}

static void on_block_rq_insert(void *data, struct request *rq)
{
	count_rq(rq, BLOCK_RQ_INSERTED);
}

static void on_block_rq_merge(void *data, struct request *rq)
{
	count_rq(rq, BLOCK_RQ_MERGED);
}

static void on_block_rq_issue(void *data, struct request *rq)
{
	struct bio *bio = rq->bio;
	enum block_class class;
	int dir;

	if (!is_data(bio))
		return;

	class = bio_class(bio);
	dir = bio_dir(bio);
	this_cpu_inc(probe->block[class][dir][BLOCK_RQ_ISSUED]);
	this_cpu_add(probe->block[class][dir][BLOCK_RQ_ISSUED_BYTES],
		     blk_rq_bytes(rq));
	if (class == CLASS_SWAP)
		count_size(SIZE_RQ + dir, blk_rq_bytes(rq) >> PAGE_SHIFT);
}

static void on_block_rq_requeue(void *data, struct request *rq)
{
	count_rq(rq, BLOCK_RQ_REQUEUED);
}

static void on_block_rq_complete(void *data, struct request *rq,
				 blk_status_t error, unsigned int bytes)
{
	struct bio *bio = rq->bio;
	enum block_class class;
	int dir;

	if (!is_data(bio))
		return;

	class = bio_class(bio);
	dir = bio_dir(bio);
	this_cpu_add(probe->block[class][dir][BLOCK_RQ_COMPLETED_BYTES], bytes);
	/* A request that is completed in parts is complete with its last part. */
	if (bytes >= blk_rq_bytes(rq))
		this_cpu_inc(probe->block[class][dir][BLOCK_RQ_COMPLETED]);
	if (error)
		this_cpu_inc(probe->block[class][dir][BLOCK_RQ_FAILED]);
}

static void on_block_plug(void *data, struct request_queue *q)
{
	count(PROBE_PLUG, 1);
}

static void on_block_unplug(void *data, struct request_queue *q,
			    unsigned int depth, bool explicit)
{
	count(explicit ? PROBE_UNPLUG_EXPLICIT : PROBE_UNPLUG_SCHEDULE, 1);
	count(PROBE_UNPLUG_REQUESTS, depth);
}

#define PROBE_POINT(event)	{ .name = #event, .func = on_##event }

static struct probe_point {
	const char *name;
	void *func;
	struct tracepoint *tp;
	bool on;
} points[] = {
	PROBE_POINT(block_bio_backmerge),
	PROBE_POINT(block_bio_frontmerge),
	PROBE_POINT(block_bio_queue),
	PROBE_POINT(block_plug),
	PROBE_POINT(block_rq_complete),
	PROBE_POINT(block_rq_insert),
	PROBE_POINT(block_rq_issue),
	PROBE_POINT(block_rq_merge),
	PROBE_POINT(block_rq_requeue),
	PROBE_POINT(block_split),
	PROBE_POINT(block_unplug),
	PROBE_POINT(mm_filemap_add_to_page_cache),
	PROBE_POINT(mm_filemap_delete_from_page_cache),
	PROBE_POINT(mm_vmscan_direct_reclaim_begin),
	PROBE_POINT(mm_vmscan_direct_reclaim_end),
	PROBE_POINT(mm_vmscan_kswapd_sleep),
	PROBE_POINT(mm_vmscan_kswapd_wake),
	PROBE_POINT(mm_vmscan_lru_shrink_inactive),
	PROBE_POINT(mm_vmscan_node_reclaim_begin),
	PROBE_POINT(mm_vmscan_node_reclaim_end),
	PROBE_POINT(mm_vmscan_throttled),
	PROBE_POINT(mm_vmscan_wakeup_kswapd),
	PROBE_POINT(mm_vmscan_write_folio),
	PROBE_POINT(tlb_flush),
#ifdef CONFIG_MEMCG
	PROBE_POINT(mm_vmscan_memcg_reclaim_begin),
	PROBE_POINT(mm_vmscan_memcg_reclaim_end),
#endif
};

/* Let the compiler compare each probe with its tracepoint's prototype. */
#define CHECK_POINT(event)	check_trace_callback_type_##event(on_##event)

static void check_prototypes(void)
{
	CHECK_POINT(block_bio_backmerge);
	CHECK_POINT(block_bio_frontmerge);
	CHECK_POINT(block_bio_queue);
	CHECK_POINT(block_plug);
	CHECK_POINT(block_rq_complete);
	CHECK_POINT(block_rq_insert);
	CHECK_POINT(block_rq_issue);
	CHECK_POINT(block_rq_merge);
	CHECK_POINT(block_rq_requeue);
	CHECK_POINT(block_split);
	CHECK_POINT(block_unplug);
	CHECK_POINT(mm_filemap_add_to_page_cache);
	CHECK_POINT(mm_filemap_delete_from_page_cache);
	CHECK_POINT(mm_vmscan_direct_reclaim_begin);
	CHECK_POINT(mm_vmscan_direct_reclaim_end);
	CHECK_POINT(mm_vmscan_kswapd_sleep);
	CHECK_POINT(mm_vmscan_kswapd_wake);
	CHECK_POINT(mm_vmscan_lru_shrink_inactive);
	CHECK_POINT(mm_vmscan_node_reclaim_begin);
	CHECK_POINT(mm_vmscan_node_reclaim_end);
	CHECK_POINT(mm_vmscan_throttled);
	CHECK_POINT(mm_vmscan_wakeup_kswapd);
	CHECK_POINT(mm_vmscan_write_folio);
	CHECK_POINT(tlb_flush);
#ifdef CONFIG_MEMCG
	CHECK_POINT(mm_vmscan_memcg_reclaim_begin);
	CHECK_POINT(mm_vmscan_memcg_reclaim_end);
#endif
}

static bool is_skipped(const char *name)
{
	size_t length = strlen(name);
	const char *p = skip;

	while (p && *p) {
		size_t word = strcspn(p, ",");

		if (word == length && !strncmp(p, name, length))
			return true;
		p += word;
		p += *p == ',';
	}
	return false;
}

static void find_point(struct tracepoint *tp, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(points); i++) {
		if (!strcmp(points[i].name, tp->name))
			points[i].tp = tp;
	}
}

static void attach(void)
{
	int i, err;

	for_each_kernel_tracepoint(find_point, NULL);

	for (i = 0; i < ARRAY_SIZE(points); i++) {
		struct probe_point *point = &points[i];

		if (is_skipped(point->name)) {
			pr_info("tracepoint %s left alone, as asked: what it would count stays 0\n",
				point->name);
			continue;
		}
		if (!point->tp) {
			pr_warn("no tracepoint %s in this kernel: what it would count stays 0\n",
				point->name);
			continue;
		}
		err = tracepoint_probe_register(point->tp, point->func, NULL);
		if (err)
			pr_warn("tracepoint %s: error %d: what it would count stays 0\n",
				point->name, err);
		else
			point->on = true;
	}
}

static void detach(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(points); i++) {
		if (points[i].on)
			tracepoint_probe_unregister(points[i].tp,
						    points[i].func, NULL);
	}
	/* No probe runs any more once this returns. */
	tracepoint_synchronize_unregister();
}

/* The sum over all CPUs, and the runs that are open at the moment. */
struct probe_sums {
	u64 count[NR_PROBE_COUNTERS];
	u64 block[NR_CLASSES][2][NR_BLOCK_EVENTS];
	u64 size_sum[NR_SIZE_HISTS];
	u64 size_max[NR_SIZE_HISTS];
	u64 time_sum[NR_TIME_HISTS];
	u64 time_max[NR_TIME_HISTS];
	u64 size[NR_SIZE_HISTS][SIZE_BUCKETS];
	u64 time[NR_TIME_HISTS][TIME_BUCKETS];
};

static void sum_open_run(struct probe_sums *sums, enum size_hist hist,
			 const struct probe_run *run)
{
	u32 pages = READ_ONCE(run->pages);

	if (!pages)
		return;
	sums->size[hist][probe_hist_bucket(pages, SIZE_BUCKETS)]++;
	sums->size_sum[hist] += pages;
	sums->size_max[hist] = max_t(u64, sums->size_max[hist], pages);
}

static void sum_cpu(struct probe_sums *sums, const struct probe_cpu *cpu)
{
	int i, j, k;

	for (i = 0; i < NR_PROBE_COUNTERS; i++)
		sums->count[i] += cpu->count[i];
	for (i = 0; i < NR_CLASSES; i++)
		for (j = 0; j < 2; j++)
			for (k = 0; k < NR_BLOCK_EVENTS; k++)
				sums->block[i][j][k] += cpu->block[i][j][k];
	for (i = 0; i < NR_SIZE_HISTS; i++) {
		sums->size_sum[i] += cpu->size_sum[i];
		sums->size_max[i] = max_t(u64, sums->size_max[i],
					  cpu->size_max[i]);
		for (j = 0; j < SIZE_BUCKETS; j++)
			sums->size[i][j] += cpu->size[i][j];
	}
	for (i = 0; i < NR_TIME_HISTS; i++) {
		sums->time_sum[i] += cpu->time_sum[i];
		sums->time_max[i] = max(sums->time_max[i], cpu->time_max[i]);
		for (j = 0; j < TIME_BUCKETS; j++)
			sums->time[i][j] += cpu->time[i][j];
	}
	sum_open_run(sums, SIZE_RUN + READ, &cpu->run[RUN_SWAP_READ]);
	sum_open_run(sums, SIZE_RUN + WRITE, &cpu->run[RUN_SWAP_WRITE]);
	sum_open_run(sums, SIZE_RECLAIM_RUN, &cpu->run[RUN_RECLAIM]);
}

static u64 hist_total(const u64 *buckets, unsigned int nr, u64 from)
{
	u64 total = 0;
	unsigned int i;

	for (i = probe_hist_bucket(from, nr); i < nr; i++)
		total += buckets[i];
	return total;
}

static void show_buckets(struct seq_file *m, const char *name, const char *unit,
			 const u64 *buckets, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (buckets[i])
			seq_printf(m, "%s_%s_from_%llu %llu\n", name, unit,
				   probe_hist_floor(i), buckets[i]);
	}
}

/* Runs that reached 1, 2, 4, .. 256 pages, as in /proc/vmstat. */
static void show_runs(struct seq_file *m, const char *name, const u64 *buckets)
{
	unsigned int pages;

	for (pages = 1; pages <= 256; pages *= 2)
		seq_printf(m, "%s_run_%u %llu\n", name, pages,
			   hist_total(buckets, SIZE_BUCKETS, pages));
}

static void show_time(struct seq_file *m, const struct probe_sums *sums,
		      enum time_hist hist)
{
	static const unsigned int permilles[] = { 500, 900, 990, 999 };
	static const char * const percentiles[] = { "50", "90", "99", "99_9" };
	const char *name = time_names[hist];
	int i;

	seq_printf(m, "%s_count %llu\n", name,
		   hist_total(sums->time[hist], TIME_BUCKETS, 0));
	seq_printf(m, "%s_sum_ns %llu\n", name, sums->time_sum[hist]);
	for (i = 0; i < ARRAY_SIZE(permilles); i++)
		seq_printf(m, "%s_p%s_ns %llu\n", name, percentiles[i],
			   probe_hist_quantile(sums->time[hist], TIME_BUCKETS,
					       permilles[i],
					       sums->time_max[hist]));
	seq_printf(m, "%s_max_ns %llu\n", name, sums->time_max[hist]);
	show_buckets(m, name, "ns", sums->time[hist], TIME_BUCKETS);
}

static void show_missing(struct seq_file *m)
{
	int i, missing = 0;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		missing += !points[i].on;
	seq_printf(m, "missing %d\n", missing);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		if (!points[i].on)
			seq_printf(m, "missing_%s 1\n", points[i].name);
	}
}

static int stats_show(struct seq_file *m, void *unused)
{
	struct probe_sums *sums;
	int cpu, i, j, k;

	sums = kvzalloc(sizeof(*sums), GFP_KERNEL);
	if (!sums)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		sum_cpu(sums, per_cpu_ptr(probe, cpu));

	show_missing(m);
	for (i = 0; i < NR_PROBE_COUNTERS; i++)
		seq_printf(m, "%s %llu\n", counter_names[i], sums->count[i]);
	show_runs(m, "swpin", sums->size[SIZE_RUN + READ]);
	show_runs(m, "swpout", sums->size[SIZE_RUN + WRITE]);
	for (i = 0; i < NR_CLASSES; i++)
		for (j = 0; j < 2; j++)
			for (k = 0; k < NR_BLOCK_EVENTS; k++)
				seq_printf(m, "%s_%s_%s %llu\n", class_names[i],
					   dir_names[j], block_names[k],
					   sums->block[i][j][k]);
	for (i = 0; i < NR_SIZE_HISTS; i++) {
		seq_printf(m, "%s_count %llu\n", size_names[i],
			   hist_total(sums->size[i], SIZE_BUCKETS, 0));
		seq_printf(m, "%s_sum_pages %llu\n", size_names[i],
			   sums->size_sum[i]);
		seq_printf(m, "%s_max_pages %llu\n", size_names[i],
			   sums->size_max[i]);
		show_buckets(m, size_names[i], "pages", sums->size[i],
			     SIZE_BUCKETS);
	}
	for (i = 0; i < NR_TIME_HISTS; i++)
		show_time(m, sums, i);

	kvfree(sums);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* Interrupts count too, so each CPU clears what is its own with them off. */
static void reset_cpu(void *unused)
{
	memset(this_cpu_ptr(probe), 0, sizeof(*probe));
}

static ssize_t reset_write(struct file *file, const char __user *buffer,
			   size_t length, loff_t *pos)
{
	int cpu;

	cpus_read_lock();
	on_each_cpu(reset_cpu, NULL, true);
	/* No probe runs on a CPU that is not online. */
	for_each_possible_cpu(cpu) {
		if (!cpu_online(cpu))
			memset(per_cpu_ptr(probe, cpu), 0, sizeof(*probe));
	}
	cpus_read_unlock();

	return length;
}

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = reset_write,
};

static int __init pageout_probe_init(void)
{
	BUILD_BUG_ON(ARRAY_SIZE(size_names) != NR_SIZE_HISTS);
	BUILD_BUG_ON(ARRAY_SIZE(time_names) != NR_TIME_HISTS);
	check_prototypes();

	probe = alloc_percpu(struct probe_cpu);
	if (!probe)
		return -ENOMEM;

	attach();

	probe_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("stats", 0444, probe_dir, NULL, &stats_fops);
	debugfs_create_file("reset", 0200, probe_dir, NULL, &reset_fops);
	if (IS_ERR(probe_dir))
		pr_warn("no debugfs: it counts, and nobody can read it\n");
	return 0;
}

static void __exit pageout_probe_exit(void)
{
	debugfs_remove(probe_dir);
	detach();
	free_percpu(probe);
}

module_init(pageout_probe_init);
module_exit(pageout_probe_exit);
MODULE_DESCRIPTION("Counts reclaim and block I/O by tracepoints");
MODULE_LICENSE("GPL");
