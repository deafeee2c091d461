// SPDX-License-Identifier: GPL-2.0-only
/*
 * simdisk: a disk over memory that the kernel was told not to use, which takes
 * as long over each request as the disk it models would.
 *
 *	echo name=swap model=ata-2005 phys=0x8000000 bytes=256M \
 *		> /sys/module/simdisk/parameters/add
 *	echo swap > /sys/module/simdisk/parameters/remove
 *
 * The data moves when a request is dispatched; its completion comes from a
 * high-resolution timer at the time the model says. The model is in
 * simdisk_model.c and knows nothing of the block layer; this file is the glue.
 * See docs/disk-models.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "simdisk_model.h"

#define SIMDISK_DISKS_MAX	16
#define SIMDISK_NAME_MAX	16
#define SIMDISK_LINE_MAX	1024

/* Commas too, for module loaders that do not quote. */
#define SEPARATORS		" ,\t\n"

/* What a discarded block reads as, when asked for with poison=1. */
#define SIMDISK_POISON		0xd5

#define FAIL_READ		1U
#define FAIL_WRITE		2U

#define STICK_MAX_MS		3600000U

/*
 * A timer acts some hundreds of instructions after the time it is set to. The
 * least that was ever seen is what the way to it always costs; the timer is set
 * ahead by that and a little more, so that the way's usual spread is waited out
 * rather than added to the request. Never by more than the maximum: a first
 * timer that was held off must not teach us to wait in its stead.
 */
#define LEAD_MAX_NS		2000ULL
#define LEAD_SPREAD_NS		400ULL

/* Upper bounds of the lateness histogram; the last bucket has none. */
static const u32 late_bounds_ns[] = { 100, 300, 1000, 3000, 10000, 100000, 1000000 };
#define LATE_BUCKETS		(ARRAY_SIZE(late_bounds_ns) + 1)

/* How well the completions kept the model's time, and what went wrong. */
struct simdisk_tally {
	u64 late_max_ns, late_sum_ns, late_over_1us;
	u64 late[LATE_BUCKETS];
	/* for how long the kernel held the interrupt off, apart from the above */
	u64 held_max_ns, held_sum_ns, held_over_1us;
	u64 early;
	u64 timer_fires;
	u64 errors, timeouts;
};

struct simdisk {
	struct list_head link;
	refcount_t refs;		/* the list's and the gendisk's */
	char name[SIMDISK_NAME_MAX + 1];
	phys_addr_t phys;
	u64 bytes;
	u8 *mem;
	bool readonly;
	bool poison;
	bool leaving;			/* under disk->open_mutex */
	struct gendisk *disk;
	struct blk_mq_tag_set tags;
	struct dentry *dir;

	spinlock_t lock;		/* all below */
	struct simdisk_engine engine;
	struct hrtimer timer;
	u64 model_ns;			/* how far the model's time has come */
	u64 armed_ns;			/* when the timer is to act; or SIMDISK_NEVER */
	u64 lead_ns;			/* by how much it is set ahead of that */
	u64 held_from_ns, held_to_ns;	/* the interrupt now served was held off */
	struct list_head done;		/* for end_work */
	struct work_struct end_work;

	/* faults asked for */
	u64 fail_first, fail_count;
	unsigned int fail_ops;
	u64 to_stick;
	u64 nr_stuck;
	bool never_stick;		/* on its way out */
	struct list_head stuck;		/* commands whose completion is held */
	struct bio_list stuck_bios;	/* the same for a synchronous disk */
	struct timer_list stick_end;	/* lets them go where a time was given */

	struct simdisk_tally tally;
};

/* One request: what blk-mq keeps beside struct request for us. */
struct simdisk_cmd {
	struct simdisk_io io;
	struct list_head link;
	blk_status_t status;
	/* the copy and the device: who is last ends the request */
	atomic_t holds;
};

static DEFINE_MUTEX(simdisk_mutex);	/* the list, adding and removing */
static LIST_HEAD(simdisks);
static unsigned int nr_simdisks;
static struct dentry *simdisk_root;

/* ---- Data ------------------------------------------------------------- */

static bool ranges_meet(u64 a, u64 a_count, u64 b, u64 b_count)
{
	return a < b + b_count && b < a + a_count;
}

/* Is the range one that was asked to fail? Caller holds the lock. */
static bool must_fail(struct simdisk *sd, bool write, u64 sector, u64 sectors)
{
	if (!(sd->fail_ops & (write ? FAIL_WRITE : FAIL_READ)))
		return false;
	if (!ranges_meet(sector, sectors, sd->fail_first, sd->fail_count))
		return false;
	sd->tally.errors++;
	return true;
}

static void copy_segment(struct bio_vec *bv, u8 *at, bool write)
{
	if (write)
		memcpy_from_bvec(at, bv);
	else
		memcpy_to_bvec(bv, at);
}

static void copy_request(struct simdisk *sd, struct request *rq)
{
	u8 *at = sd->mem + (blk_rq_pos(rq) << SECTOR_SHIFT);
	struct req_iterator iter;
	struct bio_vec bv;

	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		rq_for_each_segment(bv, rq, iter) {
			copy_segment(&bv, at, req_op(rq) == REQ_OP_WRITE);
			at += bv.bv_len;
		}
		break;
	case REQ_OP_DISCARD:
		if (sd->poison)
			memset(at, SIMDISK_POISON, blk_rq_bytes(rq));
		break;
	default:
		break;
	}
}

/* ---- Completion ------------------------------------------------------- */

static void cmd_put(struct simdisk_cmd *cmd)
{
	if (atomic_dec_and_test(&cmd->holds))
		blk_mq_complete_request(blk_mq_rq_from_pdu(cmd));
}

/* For how long was a command that is done at done_ns kept by interrupts off? */
static u64 held_ns(struct simdisk *sd, u64 done_ns)
{
	u64 from_ns = max(done_ns, sd->held_from_ns);

	return sd->held_to_ns > from_ns ? sd->held_to_ns - from_ns : 0;
}

static void note_lateness(struct simdisk *sd, u64 done_ns)
{
	struct simdisk_tally *t = &sd->tally;
	u64 held = held_ns(sd, done_ns);
	u64 now_ns = ktime_get_ns();
	u64 late_ns;
	size_t i = 0;

	if (now_ns < done_ns) {
		t->early++;
		return;
	}
	t->held_sum_ns += held;
	t->held_max_ns = max(t->held_max_ns, held);
	if (held > NSEC_PER_USEC)
		t->held_over_1us++;
	late_ns = now_ns - done_ns - held;
	while (i < ARRAY_SIZE(late_bounds_ns) && late_ns > late_bounds_ns[i])
		i++;
	t->late[i]++;
	t->late_sum_ns += late_ns;
	t->late_max_ns = max(t->late_max_ns, late_ns);
	if (late_ns > NSEC_PER_USEC)
		t->late_over_1us++;
}

/*
 * Wait until then, which is no more than the timer's lead away. Gives up on a
 * clock that stands still: a clock of ticks does, with interrupts off.
 */
static void wait_out(u64 until_ns)
{
	unsigned int patience = 4 * LEAD_MAX_NS;

	while (ktime_get_ns() < until_ns && patience--)
		cpu_relax();
}

/*
 * The next command that is done by now, taken from the model; NULL when there
 * is none, and then the timer is set. The model runs ahead by the timer's lead,
 * so that its own work is done when the command is due. Caller holds the lock.
 */
static struct simdisk_cmd *next_done(struct simdisk *sd)
{
	struct simdisk_cmd *cmd;
	struct simdisk_io *io;
	u64 next_ns;

	for (;;) {
		sd->model_ns = ktime_get_ns() + sd->lead_ns;
		io = simdisk_next_done(&sd->engine, sd->model_ns);
		if (!io)
			break;
		cmd = container_of(io, struct simdisk_cmd, io);
		wait_out(io->done_ns);
		if (sd->to_stick && !sd->never_stick) {
			sd->to_stick--;
			sd->nr_stuck++;
			list_add_tail(&cmd->link, &sd->stuck);
			continue;
		}
		note_lateness(sd, io->done_ns);
		return cmd;
	}
	next_ns = simdisk_next_ns(&sd->engine);
	if (next_ns != sd->armed_ns && next_ns != SIMDISK_NEVER)
		hrtimer_start(&sd->timer, ns_to_ktime(next_ns - sd->lead_ns),
			      HRTIMER_MODE_ABS_HARD);
	sd->armed_ns = next_ns;
	return NULL;
}

/*
 * End what the timer found done. On one CPU blk-mq ends a request where it is
 * told of it, and the end of a large write unlocks hundreds of folios: done in
 * the timer's interrupt that would hold off the next command's. Here, in a
 * softirq, the timer may interrupt.
 */
static void end_requests(struct work_struct *work)
{
	struct simdisk *sd = container_of(work, struct simdisk, end_work);
	struct simdisk_cmd *cmd, *next;
	unsigned long flags;
	LIST_HEAD(done);

	spin_lock_irqsave(&sd->lock, flags);
	list_splice_init(&sd->done, &done);
	spin_unlock_irqrestore(&sd->lock, flags);
	list_for_each_entry_safe(cmd, next, &done, link)
		cmd_put(cmd);
}

/* Complete all that is done by now. Caller holds the lock with irqs saved. */
static void complete_done(struct simdisk *sd, unsigned long *flags)
{
	struct simdisk_cmd *cmd;

	while ((cmd = next_done(sd))) {
		spin_unlock_irqrestore(&sd->lock, *flags);
		cmd_put(cmd);
		spin_lock_irqsave(&sd->lock, *flags);
	}
}

/* The timer has acted: learn what the way here costs. */
static void keep_time(struct simdisk *sd, u64 set_ns)
{
	u64 now_ns = ktime_get_ns();

	/* unless another CPU has set it anew meanwhile */
	if (set_ns <= now_ns)
		sd->lead_ns = min(sd->lead_ns, now_ns - set_ns + LEAD_SPREAD_NS);
	sd->held_from_ns = sd->armed_ns;
	sd->held_to_ns = now_ns;
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct simdisk *sd = container_of(timer, struct simdisk, timer);
	struct simdisk_cmd *cmd;
	unsigned long flags;

	spin_lock_irqsave(&sd->lock, flags);
	sd->tally.timer_fires++;
	if (sd->armed_ns != SIMDISK_NEVER)
		keep_time(sd, ktime_to_ns(hrtimer_get_expires(timer)));
	sd->armed_ns = SIMDISK_NEVER;
	while ((cmd = next_done(sd)))
		list_add_tail(&cmd->link, &sd->done);
	sd->held_to_ns = 0;
	if (!list_empty(&sd->done))
		queue_work(system_bh_highpri_wq, &sd->end_work);
	spin_unlock_irqrestore(&sd->lock, flags);
	return HRTIMER_NORESTART;
}

/* Let go of all requests that stick; status is what they end with. */
static void release_stuck(struct simdisk *sd, blk_status_t status)
{
	struct simdisk_cmd *cmd, *next;
	struct bio_list bios;
	unsigned long flags;
	struct bio *bio;
	LIST_HEAD(done);

	spin_lock_irqsave(&sd->lock, flags);
	sd->to_stick = 0;
	sd->nr_stuck = 0;
	list_splice_init(&sd->stuck, &done);
	bios = sd->stuck_bios;
	bio_list_init(&sd->stuck_bios);
	spin_unlock_irqrestore(&sd->lock, flags);

	list_for_each_entry_safe(cmd, next, &done, link) {
		if (status != BLK_STS_OK)
			cmd->status = status;
		cmd_put(cmd);
	}
	while ((bio = bio_list_pop(&bios))) {
		if (status != BLK_STS_OK)
			bio->bi_status = status;
		bio_endio(bio);
	}
}

static void stick_end(struct timer_list *timer)
{
	struct simdisk *sd = from_timer(sd, timer, stick_end);

	release_stuck(sd, BLK_STS_OK);
}

/* ---- A disk of requests ------------------------------------------------ */

static blk_status_t simdisk_queue_rq(struct blk_mq_hw_ctx *hctx,
				     const struct blk_mq_queue_data *bd)
{
	struct request *rq = bd->rq;
	struct simdisk *sd = rq->q->queuedata;
	struct simdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct simdisk_io *io = &cmd->io;
	u64 dispatch_ns = ktime_get_ns();
	unsigned long flags;

	switch (req_op(rq)) {
	case REQ_OP_READ:
		io->op = SIMDISK_READ;
		break;
	case REQ_OP_WRITE:
		io->op = SIMDISK_WRITE;
		break;
	case REQ_OP_FLUSH:
		io->op = SIMDISK_FLUSH;
		break;
	case REQ_OP_DISCARD:
		io->op = SIMDISK_DISCARD;
		break;
	default:
		return BLK_STS_NOTSUPP;
	}
	io->fua = rq->cmd_flags & REQ_FUA;
	io->sector = io->op == SIMDISK_FLUSH ? 0 : blk_rq_pos(rq);
	io->sectors = io->op == SIMDISK_FLUSH ? 0 : blk_rq_sectors(rq);
	cmd->status = BLK_STS_OK;
	atomic_set(&cmd->holds, 2);

	blk_mq_start_request(rq);
	spin_lock_irqsave(&sd->lock, flags);
	if (must_fail(sd, op_is_write(req_op(rq)), io->sector, io->sectors))
		cmd->status = BLK_STS_MEDIUM;
	/* a timer may have taken the model further in the meantime */
	simdisk_submit(&sd->engine, io, max(dispatch_ns, sd->model_ns));
	complete_done(sd, &flags);
	spin_unlock_irqrestore(&sd->lock, flags);

	/*
	 * As a controller's DMA would, but by this CPU, while the model's time
	 * already runs: a device faster than the CPU copies is as fast as that.
	 */
	if (cmd->status == BLK_STS_OK)
		copy_request(sd, rq);
	cmd_put(cmd);
	return BLK_STS_OK;
}

static void simdisk_complete_rq(struct request *rq)
{
	struct simdisk_cmd *cmd = blk_mq_rq_to_pdu(rq);

	blk_mq_end_request(rq, cmd->status);
}

/*
 * A request is never given up: what the model has in service ends in its time,
 * and what was made to stick is held until it is let go.
 */
static enum blk_eh_timer_return simdisk_timeout(struct request *rq)
{
	struct simdisk *sd = rq->q->queuedata;
	unsigned long flags;
	u64 held;

	spin_lock_irqsave(&sd->lock, flags);
	sd->tally.timeouts++;
	held = sd->nr_stuck;
	spin_unlock_irqrestore(&sd->lock, flags);
	pr_warn_ratelimited("%s: request at sector %llu has not been completed for %u s (%llu held by 'stick'); waiting on\n",
			    sd->name, (u64)blk_rq_pos(rq), rq->q->rq_timeout / HZ, held);
	return BLK_EH_RESET_TIMER;
}

static const struct blk_mq_ops simdisk_mq_ops = {
	.queue_rq	= simdisk_queue_rq,
	.complete	= simdisk_complete_rq,
	.timeout	= simdisk_timeout,
};

/* ---- A disk that is done when submitted ----------------------------------- */

/*
 * Taken bio by bio, as zram, brd and pmem do it: no request, no tag, no plug;
 * swap waits for it in the caller's context. The copy is all it costs.
 */
static void simdisk_submit_bio(struct bio *bio)
{
	struct simdisk *sd = bio->bi_bdev->bd_disk->private_data;
	bool write = op_is_write(bio_op(bio));
	u64 sector = bio->bi_iter.bi_sector;
	u8 *at = sd->mem + (sector << SECTOR_SHIFT);
	struct simdisk_counters *n = &sd->engine.n;
	u64 bytes = bio->bi_iter.bi_size;
	unsigned long flags, start;
	struct bvec_iter iter;
	bool fail, stick;
	struct bio_vec bv;

	start = bio_start_io_acct(bio);
	spin_lock_irqsave(&sd->lock, flags);
	n->requests++;
	fail = must_fail(sd, write, sector, bytes >> SECTOR_SHIFT);
	switch (bio_op(bio)) {
	case REQ_OP_READ:
		n->reads++;
		n->bytes_read += bytes;
		break;
	case REQ_OP_WRITE:
		n->writes++;
		n->bytes_written += bytes;
		break;
	case REQ_OP_DISCARD:
		n->discards++;
		break;
	default:
		break;
	}
	spin_unlock_irqrestore(&sd->lock, flags);

	if (fail) {
		bio->bi_status = BLK_STS_MEDIUM;
	} else if (bio_op(bio) == REQ_OP_DISCARD) {
		if (sd->poison)
			memset(at, SIMDISK_POISON, bytes);
	} else if (bio_op(bio) == REQ_OP_READ || bio_op(bio) == REQ_OP_WRITE) {
		bio_for_each_segment(bv, bio, iter) {
			copy_segment(&bv, at, write);
			at += bv.bv_len;
		}
	} else {
		bio->bi_status = BLK_STS_NOTSUPP;
	}

	spin_lock_irqsave(&sd->lock, flags);
	stick = sd->to_stick && !sd->never_stick;
	if (stick) {
		sd->to_stick--;
		sd->nr_stuck++;
		bio_list_add(&sd->stuck_bios, bio);
	}
	spin_unlock_irqrestore(&sd->lock, flags);
	bio_end_io_acct(bio, start);
	if (!stick)
		bio_endio(bio);
}

/* ---- Opening and freeing ---------------------------------------------------- */

static int simdisk_open(struct gendisk *disk, blk_mode_t mode)
{
	struct simdisk *sd = disk->private_data;

	lockdep_assert_held(&disk->open_mutex);
	return sd->leaving ? -ENXIO : 0;
}

static void simdisk_put(struct simdisk *sd)
{
	if (refcount_dec_and_test(&sd->refs))
		kvfree(sd);
}

/* The last one who had it open has closed it. */
static void simdisk_free_disk(struct gendisk *disk)
{
	simdisk_put(disk->private_data);
}

static const struct block_device_operations simdisk_rq_fops = {
	.owner		= THIS_MODULE,
	.open		= simdisk_open,
	.free_disk	= simdisk_free_disk,
};

static const struct block_device_operations simdisk_bio_fops = {
	.owner		= THIS_MODULE,
	.open		= simdisk_open,
	.submit_bio	= simdisk_submit_bio,
	.free_disk	= simdisk_free_disk,
};

/* ---- debugfs ------------------------------------------------------------------ */

static int stats_show(struct seq_file *s, void *unused)
{
	struct simdisk *sd = s->private;
	struct simdisk_counters n;
	struct simdisk_tally t;
	u64 in_device, dirty, stuck, lead_ns, now_ns;
	unsigned long flags;
	size_t i;

	spin_lock_irqsave(&sd->lock, flags);
	/* what the disk did by itself since somebody asked last */
	complete_done(sd, &flags);
	n = sd->engine.n;
	t = sd->tally;
	in_device = sd->engine.in_device;
	dirty = sd->engine.dirty_sectors;
	stuck = sd->nr_stuck;
	lead_ns = sd->lead_ns;
	now_ns = ktime_get_ns();
	if (in_device && now_ns > sd->engine.busy_since_ns)
		n.busy_ns += now_ns - sd->engine.busy_since_ns;
	spin_unlock_irqrestore(&sd->lock, flags);

#define SHOW(name, value) seq_printf(s, name " %llu\n", (u64)(value))
	SHOW("requests", n.requests);
	SHOW("reads", n.reads);
	SHOW("writes", n.writes);
	SHOW("flushes", n.flushes);
	SHOW("discards", n.discards);
	SHOW("bytes_read", n.bytes_read);
	SHOW("bytes_written", n.bytes_written);
	SHOW("in_device", in_device);
	SHOW("model_busy_ns", n.busy_ns);
	SHOW("service_ns", n.service_ns);
	SHOW("max_service_ns", n.max_service_ns);
	SHOW("seeks", n.seeks);
	SHOW("seek_ns", n.seek_ns);
	SHOW("rotation_ns", n.rotation_ns);
	SHOW("media_ns", n.media_ns);
	SHOW("cache_hits", n.cache_hits);
	SHOW("stream_hits", n.stream_hits);
	SHOW("destages", n.destages);
	SHOW("write_cache_dirty_bytes", dirty << SECTOR_SHIFT);
	SHOW("reordered", n.reordered);
	SHOW("aged", n.aged);
	SHOW("timer_fires", t.timer_fires);
	SHOW("lead_ns", lead_ns);
	SHOW("late_max_ns", t.late_max_ns);
	SHOW("late_sum_ns", t.late_sum_ns);
	SHOW("late_over_1us", t.late_over_1us);
	for (i = 0; i < ARRAY_SIZE(late_bounds_ns); i++)
		seq_printf(s, "late_up_to_%uns %llu\n", late_bounds_ns[i], t.late[i]);
	SHOW("late_more", t.late[i]);
	SHOW("held_max_ns", t.held_max_ns);
	SHOW("held_sum_ns", t.held_sum_ns);
	SHOW("held_over_1us", t.held_over_1us);
	SHOW("early", t.early);
	SHOW("errors_injected", t.errors);
	SHOW("timeouts", t.timeouts);
	SHOW("stuck", stuck);
	SHOW("media_bytes_per_s", simdisk_media_bytes_per_s(&sd->engine.m));
	SHOW("media_read_bytes_per_s", simdisk_media_read_bytes_per_s(&sd->engine.m));
	SHOW("media_write_bytes_per_s", simdisk_media_write_bytes_per_s(&sd->engine.m));
#undef SHOW
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static int model_show(struct seq_file *s, void *unused)
{
	static const char * const kinds[] = { "rotational", "parallel", "sync" };
	struct simdisk *sd = s->private;
	const struct simdisk_field *f;
	size_t i;

	seq_printf(s, "model %s\nkind %s\nphys %pa\nbytes %llu\nreadonly %d\npoison %d\n",
		   sd->engine.m.name, kinds[sd->engine.m.kind], &sd->phys, sd->bytes,
		   sd->readonly, sd->poison);
	for (i = 0; (f = simdisk_field_at(i)); i++)
		seq_printf(s, "%s %llu\n", f->name, simdisk_field_get(&sd->engine.m, f));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(model);

static char *copy_line(const char __user *from, size_t count, char *line, size_t size)
{
	if (count >= size)
		return ERR_PTR(-EINVAL);
	if (copy_from_user(line, from, count))
		return ERR_PTR(-EFAULT);
	line[count] = '\0';
	return strim(line);
}

static int fail_show(struct seq_file *s, void *unused)
{
	static const char * const ops[] = { "off", "read", "write", "both" };
	struct simdisk *sd = s->private;
	unsigned long flags;
	unsigned int which;
	u64 first, count;

	spin_lock_irqsave(&sd->lock, flags);
	first = sd->fail_first;
	count = sd->fail_count;
	which = sd->fail_ops;
	spin_unlock_irqrestore(&sd->lock, flags);
	if (which)
		seq_printf(s, "%llu %llu ", first, count);
	seq_printf(s, "%s\n", ops[which]);
	return 0;
}

static int fail_open(struct inode *inode, struct file *file)
{
	return single_open(file, fail_show, inode->i_private);
}

static ssize_t fail_write(struct file *file, const char __user *from, size_t count,
			  loff_t *pos)
{
	struct simdisk *sd = ((struct seq_file *)file->private_data)->private;
	unsigned long long first = 0, sectors = 0;
	char buf[64], op[8], rest, *line;
	unsigned int ops = 0;
	unsigned long flags;

	line = copy_line(from, count, buf, sizeof(buf));
	if (IS_ERR(line))
		return PTR_ERR(line);
	if (strcmp(line, "off")) {
		if (sscanf(line, "%llu %llu %7s %c", &first, &sectors, op, &rest) != 3)
			goto bad;
		if (!strcmp(op, "read"))
			ops = FAIL_READ;
		else if (!strcmp(op, "write"))
			ops = FAIL_WRITE;
		else if (!strcmp(op, "both"))
			ops = FAIL_READ | FAIL_WRITE;
		else
			goto bad;
		if (!sectors || sectors > sd->bytes >> SECTOR_SHIFT ||
		    first > (sd->bytes >> SECTOR_SHIFT) - sectors) {
			pr_err("%s: fail: sectors %llu to %llu are not on this disk of %llu sectors\n",
			       sd->name, first, first + sectors - 1,
			       sd->bytes >> SECTOR_SHIFT);
			return -EINVAL;
		}
	}
	spin_lock_irqsave(&sd->lock, flags);
	sd->fail_first = first;
	sd->fail_count = sectors;
	sd->fail_ops = ops;
	spin_unlock_irqrestore(&sd->lock, flags);
	return count;
bad:
	pr_err("%s: fail: '%s' is neither 'off' nor 'FIRST_SECTOR COUNT read|write|both'\n",
	       sd->name, line);
	return -EINVAL;
}

static const struct file_operations fail_fops = {
	.owner		= THIS_MODULE,
	.open		= fail_open,
	.read		= seq_read,
	.write		= fail_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

static int stick_show(struct seq_file *s, void *unused)
{
	struct simdisk *sd = s->private;
	unsigned long flags;
	u64 to_hold, held;

	spin_lock_irqsave(&sd->lock, flags);
	to_hold = sd->to_stick;
	held = sd->nr_stuck;
	spin_unlock_irqrestore(&sd->lock, flags);
	seq_printf(s, "to_hold %llu\nheld %llu\n", to_hold, held);
	return 0;
}

static int stick_open(struct inode *inode, struct file *file)
{
	return single_open(file, stick_show, inode->i_private);
}

static ssize_t stick_write(struct file *file, const char __user *from, size_t count,
			   loff_t *pos)
{
	struct simdisk *sd = ((struct seq_file *)file->private_data)->private;
	unsigned long flags;
	char buf[64], *line, *word;
	unsigned int ms = 0;
	u64 number;

	line = copy_line(from, count, buf, sizeof(buf));
	if (IS_ERR(line))
		return PTR_ERR(line);
	word = strsep(&line, " ");
	if (kstrtou64(word, 0, &number)) {
		pr_err("%s: stick: '%s' is not a number of requests to hold (0 lets all go)\n",
		       sd->name, word);
		return -EINVAL;
	}
	if (line && (kstrtouint(line, 0, &ms) || !ms || ms > STICK_MAX_MS)) {
		pr_err("%s: stick: '%s' is not a number of milliseconds to hold them, 1 to %u (without it they are held until 0 is written)\n",
		       sd->name, line, STICK_MAX_MS);
		return -EINVAL;
	}
	/* what an earlier line said of the end does not hold for this one */
	del_timer_sync(&sd->stick_end);
	if (!number) {
		release_stuck(sd, BLK_STS_OK);
		return count;
	}
	spin_lock_irqsave(&sd->lock, flags);
	sd->to_stick = number;
	/*
	 * The writer's own memory may wait for a request that is held, be it in
	 * swap or under migration, so that it never comes to let it go.
	 */
	if (ms && !sd->never_stick)
		mod_timer(&sd->stick_end, jiffies + msecs_to_jiffies(ms));
	spin_unlock_irqrestore(&sd->lock, flags);
	return count;
}

static const struct file_operations stick_fops = {
	.owner		= THIS_MODULE,
	.open		= stick_open,
	.read		= seq_read,
	.write		= stick_write,
	.llseek		= seq_lseek,
	.release	= single_release,
};

/* ---- Adding a disk ---------------------------------------------------------------- */

static struct simdisk *find_disk(const char *name)
{
	struct simdisk *sd;

	list_for_each_entry(sd, &simdisks, link)
		if (!strcmp(sd->name, name))
			return sd;
	return NULL;
}

static bool name_is_good(const char *name)
{
	size_t length = strlen(name);
	const char *c;

	if (!length || length > SIMDISK_NAME_MAX)
		return false;
	for (c = name; *c; c++)
		if (!islower(*c) && !isdigit(*c) && *c != '_' && *c != '-')
			return false;
	return true;
}

static void list_models(void)
{
	const struct simdisk_model *m;
	size_t i;

	for (i = 0; (m = simdisk_model_at(i)); i++)
		pr_err("  model=%s: %s\n", m->name, m->about);
}

static void list_words(void)
{
	const struct simdisk_field *f;
	size_t i;

	pr_err("  words: name= model= phys= bytes= readonly= poison=, and the model's fields:\n");
	for (i = 0; (f = simdisk_field_at(i)); i++)
		pr_err("  %s=%llu..%llu\n", f->name, f->min, f->max);
}

/* A number with an optional K, M, G; false when it is anything else. */
static bool parse_number(const char *value, u64 *number)
{
	char *end;

	if (!isdigit(*value))
		return false;
	*number = memparse(value, &end);
	return !*end;
}

struct add_line {
	const char *name;
	const char *model;
	u64 phys, bytes;
	bool have_phys, have_bytes;
};

/* One word of the line: key=value. */
static int parse_word(struct simdisk *sd, struct add_line *line, char *word)
{
	char *value = strchr(word, '=');
	u64 number;

	if (!value || value == word || !value[1]) {
		pr_err("add: '%s' is not of the form word=value\n", word);
		list_words();
		return -EINVAL;
	}
	*value++ = '\0';
	/* both have been seen to: they come first whatever their place */
	if (!strcmp(word, "name") || !strcmp(word, "model"))
		return 0;
	if (!parse_number(value, &number)) {
		pr_err("add: %s: '%s' is not a number (digits, 0x.., or with K, M, G)\n",
		       word, value);
		return -EINVAL;
	}
	if (!strcmp(word, "phys")) {
		line->phys = number;
		line->have_phys = true;
	} else if (!strcmp(word, "bytes")) {
		line->bytes = number;
		line->have_bytes = true;
	} else if (!strcmp(word, "readonly") || !strcmp(word, "poison")) {
		if (number > 1) {
			pr_err("add: %s: %llu is neither 0 nor 1\n", word, number);
			return -EINVAL;
		}
		if (word[0] == 'r')
			sd->readonly = number;
		else
			sd->poison = number;
	} else {
		switch (simdisk_model_set(&sd->engine.m, word, number)) {
		case -1:
			pr_err("add: unknown word '%s'\n", word);
			list_words();
			return -EINVAL;
		case -2:
			pr_err("add: %s=%llu is out of range\n", word, number);
			list_words();
			return -EINVAL;
		}
	}
	return 0;
}

/* The value of a word of the line, copied to where it stays; "" if not there. */
static void pick_word(const char *text, const char *key, char *value, size_t size)
{
	size_t length = strlen(key);
	const char *c = text;
	size_t n;

	*value = '\0';
	while (*c) {
		c += strspn(c, SEPARATORS);
		n = strcspn(c, SEPARATORS);
		if (n > length && !strncmp(c, key, length) && c[length] == '=')
			strscpy(value, c + length + 1, min(size, n - length));
		c += n;
	}
}

static int parse_line(struct simdisk *sd, struct add_line *line, char *text)
{
	const struct simdisk_model *m;
	char name[SIMDISK_NAME_MAX + 2], model[32];
	const char *wrong;
	char *word;
	int err;

	pick_word(text, "name", name, sizeof(name));
	pick_word(text, "model", model, sizeof(model));
	if (!name_is_good(name)) {
		pr_err("add: name='%s': name= is needed, 1 to %u of a-z, 0-9, - and _\n", name,
		       SIMDISK_NAME_MAX);
		return -EINVAL;
	}
	m = simdisk_model_find(model);
	if (!m) {
		pr_err("add: %s: model='%s': model= is needed, one of\n", name, model);
		list_models();
		return -EINVAL;
	}
	strscpy(sd->name, name, sizeof(sd->name));
	sd->engine.m = *m;
	while ((word = strsep(&text, SEPARATORS))) {
		if (!*word)
			continue;
		err = parse_word(sd, line, word);
		if (err)
			return err;
	}
	if (!line->have_phys || !line->have_bytes) {
		pr_err("add: %s: %s= is needed: the region that mem= keeps from the kernel\n",
		       sd->name, line->have_phys ? "bytes" : "phys");
		return -EINVAL;
	}
	wrong = simdisk_model_check(&sd->engine.m, line->bytes);
	if (wrong) {
		pr_err("add: %s: bytes=%llu: %s\n", sd->name, line->bytes, wrong);
		return -EINVAL;
	}
	return 0;
}

/* Is there memory at the end that keeps what is written? It is left as it was. */
static bool keeps_data(u8 *at)
{
	u64 *word = (u64 *)at;
	u64 was = READ_ONCE(*word);
	bool kept;

	WRITE_ONCE(*word, ~was);
	/* past any cache that would keep it for memory that is not there */
#ifdef CONFIG_X86
	clflush(at);
#endif
	mb();	/* order the flush before the read */
	kept = READ_ONCE(*word) == ~was;
	WRITE_ONCE(*word, was);
	return kept;
}

static int take_region(struct simdisk *sd, const struct add_line *line)
{
	u64 end = line->phys + line->bytes;

	if (!PAGE_ALIGNED(line->phys) || !PAGE_ALIGNED(line->bytes)) {
		pr_err("add: %s: phys=0x%llx bytes=%llu: both must be multiples of %lu\n",
		       sd->name, line->phys, line->bytes, PAGE_SIZE);
		return -EINVAL;
	}
	if (end < line->phys || (u64)(phys_addr_t)(end - 1) != end - 1) {
		pr_err("add: %s: phys=0x%llx bytes=%llu: beyond the address space\n",
		       sd->name, line->phys, line->bytes);
		return -EINVAL;
	}
	if (region_intersects(line->phys, line->bytes, IORESOURCE_SYSTEM_RAM,
			      IORES_DESC_NONE) != REGION_DISJOINT) {
		pr_err("add: %s: 0x%llx..0x%llx is memory that the kernel uses; keep it out with mem= and see 'System RAM' in /proc/iomem\n",
		       sd->name, line->phys, end - 1);
		return -EBUSY;
	}
	sd->phys = line->phys;
	sd->bytes = line->bytes;
	if (!request_mem_region(sd->phys, sd->bytes, sd->name)) {
		pr_err("add: %s: 0x%llx..0x%llx overlaps a region in use; see /proc/iomem\n",
		       sd->name, line->phys, end - 1);
		return -EBUSY;
	}
	sd->mem = memremap(sd->phys, sd->bytes, MEMREMAP_WB);
	if (!sd->mem) {
		pr_err("add: %s: cannot map 0x%llx..0x%llx\n", sd->name, line->phys, end - 1);
		release_mem_region(sd->phys, sd->bytes);
		return -ENOMEM;
	}
	if (!sd->readonly &&
	    (!keeps_data(sd->mem) || !keeps_data(sd->mem + sd->bytes - sizeof(u64)))) {
		pr_err("add: %s: no memory at 0x%llx..0x%llx: give the machine more, or a lower phys=\n",
		       sd->name, line->phys, end - 1);
		memunmap(sd->mem);
		release_mem_region(sd->phys, sd->bytes);
		return -ENXIO;
	}
	return 0;
}

static void give_region_back(struct simdisk *sd)
{
	memunmap(sd->mem);
	release_mem_region(sd->phys, sd->bytes);
}

static void set_limits(const struct simdisk_model *m, struct queue_limits *lim)
{
	lim->logical_block_size = m->logical_block_bytes;
	lim->physical_block_size = m->physical_block_bytes;
	lim->io_min = m->physical_block_bytes;
	lim->max_hw_sectors = m->max_request_bytes >> SECTOR_SHIFT;
	lim->max_segments = m->max_segments;
	lim->max_segment_size = m->max_segment_bytes;
	if (m->kind == SIMDISK_ROTATIONAL)
		lim->features |= BLK_FEAT_ROTATIONAL;
	if (m->kind == SIMDISK_SYNC)
		lim->features |= BLK_FEAT_SYNCHRONOUS;
	if (m->report_write_cache)
		lim->features |= BLK_FEAT_WRITE_CACHE;
	if (m->report_write_cache && m->fua)
		lim->features |= BLK_FEAT_FUA;
	if (m->discard) {
		lim->max_hw_discard_sectors = UINT_MAX >> SECTOR_SHIFT;
		lim->discard_granularity = max_t(u64, m->physical_block_bytes, SZ_4K);
	}
}

static int make_disk(struct simdisk *sd)
{
	const struct simdisk_model *m = &sd->engine.m;
	struct queue_limits lim = {};
	struct gendisk *disk;
	int err;

	set_limits(m, &lim);
	if (m->kind == SIMDISK_SYNC) {
		disk = blk_alloc_disk(&lim, NUMA_NO_NODE);
		if (IS_ERR(disk))
			return PTR_ERR(disk);
		disk->fops = &simdisk_bio_fops;
	} else {
		sd->tags.ops = &simdisk_mq_ops;
		sd->tags.nr_hw_queues = 1;
		sd->tags.queue_depth = m->tags;
		sd->tags.numa_node = NUMA_NO_NODE;
		sd->tags.cmd_size = sizeof(struct simdisk_cmd);
		sd->tags.flags = BLK_MQ_F_SHOULD_MERGE;
		err = blk_mq_alloc_tag_set(&sd->tags);
		if (err)
			return err;
		disk = blk_mq_alloc_disk(&sd->tags, &lim, sd);
		if (IS_ERR(disk)) {
			blk_mq_free_tag_set(&sd->tags);
			return PTR_ERR(disk);
		}
		disk->fops = &simdisk_rq_fops;
	}
	refcount_inc(&sd->refs);
	snprintf(disk->disk_name, sizeof(disk->disk_name), "sim%s", sd->name);
	disk->private_data = sd;
	set_capacity(disk, sd->bytes >> SECTOR_SHIFT);
	set_disk_ro(disk, sd->readonly);
	sd->disk = disk;
	return 0;
}

static void make_debugfs(struct simdisk *sd)
{
	sd->dir = debugfs_create_dir(sd->name, simdisk_root);
	debugfs_create_file("stats", 0444, sd->dir, sd, &stats_fops);
	debugfs_create_file("model", 0444, sd->dir, sd, &model_fops);
	debugfs_create_file("fail", 0644, sd->dir, sd, &fail_fops);
	debugfs_create_file("stick", 0644, sd->dir, sd, &stick_fops);
}

static int add_disk_from_line(char *text)
{
	struct add_line line = {};
	struct simdisk_model m;
	struct simdisk *sd;
	int err;

	lockdep_assert_held(&simdisk_mutex);
	sd = kvzalloc(sizeof(*sd), GFP_KERNEL);
	if (!sd)
		return -ENOMEM;
	refcount_set(&sd->refs, 1);
	err = parse_line(sd, &line, text);
	if (err)
		goto free;
	if (find_disk(sd->name)) {
		pr_err("add: there is a disk named '%s' already\n", sd->name);
		err = -EEXIST;
		goto free;
	}
	if (nr_simdisks == SIMDISK_DISKS_MAX) {
		pr_err("add: %s: there are %u disks already, which is the limit\n", sd->name,
		       SIMDISK_DISKS_MAX);
		err = -ENOSPC;
		goto free;
	}
	m = sd->engine.m;
	simdisk_engine_init(&sd->engine, &m);
	spin_lock_init(&sd->lock);
	INIT_LIST_HEAD(&sd->stuck);
	INIT_LIST_HEAD(&sd->done);
	INIT_WORK(&sd->end_work, end_requests);
	bio_list_init(&sd->stuck_bios);
	timer_setup(&sd->stick_end, stick_end, 0);
	hrtimer_init(&sd->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	sd->timer.function = timer_fired;
	sd->armed_ns = SIMDISK_NEVER;
	sd->lead_ns = LEAD_MAX_NS;

	err = take_region(sd, &line);
	if (err)
		goto free;
	err = make_disk(sd);
	if (err) {
		pr_err("add: %s: cannot make a disk of it: %d\n", sd->name, err);
		goto region;
	}
	list_add_tail(&sd->link, &simdisks);
	nr_simdisks++;
	make_debugfs(sd);
	err = add_disk(sd->disk);
	if (err) {
		pr_err("add: %s: cannot add the disk: %d\n", sd->name, err);
		goto disk;
	}
	pr_info("sim%s: %s, %llu bytes at %pa\n", sd->name, m.name, sd->bytes, &sd->phys);
	return 0;

disk:
	debugfs_remove_recursive(sd->dir);
	list_del(&sd->link);
	nr_simdisks--;
	put_disk(sd->disk);
	if (m.kind != SIMDISK_SYNC)
		blk_mq_free_tag_set(&sd->tags);
region:
	give_region_back(sd);
free:
	simdisk_put(sd);
	return err;
}

/* ---- Removing a disk ---------------------------------------------------------------- */

/*
 * force: as when a cable is pulled. What is in service ends in its time, what
 * sticks fails, and whoever has the disk open gets errors from now on.
 */
static int remove_disk(struct simdisk *sd, bool force)
{
	struct gendisk *disk = sd->disk;
	unsigned long flags;

	lockdep_assert_held(&simdisk_mutex);
	mutex_lock(&disk->open_mutex);
	if (!force && disk_openers(disk)) {
		mutex_unlock(&disk->open_mutex);
		pr_err("remove: sim%s is in use: swapoff or unmount it, or say '%s force'; %llu of its requests are held by 'stick'\n",
		       sd->name, sd->name, READ_ONCE(sd->nr_stuck));
		return -EBUSY;
	}
	sd->leaving = true;
	mutex_unlock(&disk->open_mutex);

	list_del(&sd->link);
	nr_simdisks--;
	debugfs_remove_recursive(sd->dir);
	/* before anything that may wait for a request */
	spin_lock_irqsave(&sd->lock, flags);
	sd->never_stick = true;
	spin_unlock_irqrestore(&sd->lock, flags);
	del_timer_sync(&sd->stick_end);
	release_stuck(sd, BLK_STS_IOERR);
	if (force)
		blk_mark_disk_dead(disk);
	del_gendisk(disk);
	hrtimer_cancel(&sd->timer);
	cancel_work_sync(&sd->end_work);
	if (sd->engine.m.kind != SIMDISK_SYNC)
		blk_mq_free_tag_set(&sd->tags);
	give_region_back(sd);
	pr_info("sim%s removed\n", sd->name);
	put_disk(disk);
	simdisk_put(sd);
	return 0;
}

/* ---- Module parameters ------------------------------------------------------------- */

/* Parameters at load come before the module's own start: they wait for it. */
static char early_lines[4 * SIMDISK_LINE_MAX];
static bool started;

static int add_set(const char *text, const struct kernel_param *kp)
{
	char *line;
	size_t used;
	int err;

	if (strlen(text) >= SIMDISK_LINE_MAX) {
		pr_err("add: the line is longer than %u\n", SIMDISK_LINE_MAX - 1);
		return -EINVAL;
	}
	line = kstrdup(text, GFP_KERNEL);
	if (!line)
		return -ENOMEM;
	mutex_lock(&simdisk_mutex);
	if (started) {
		err = add_disk_from_line(line);
	} else {
		used = strlen(early_lines);
		err = 0;
		if (used + strlen(line) + 2 > sizeof(early_lines)) {
			pr_err("add: too many disks at load; add the others later\n");
			err = -EINVAL;
		} else {
			sprintf(early_lines + used, "%s\n", strreplace(line, '\n', ' '));
		}
	}
	mutex_unlock(&simdisk_mutex);
	kfree(line);
	return err;
}

/* Reading it lists the disks there are. */
static int add_get(char *buffer, const struct kernel_param *kp)
{
	struct simdisk *sd;
	int n = 0;

	mutex_lock(&simdisk_mutex);
	list_for_each_entry(sd, &simdisks, link)
		n += scnprintf(buffer + n, PAGE_SIZE - n, "name=%s model=%s phys=%pa bytes=%llu\n",
			       sd->name, sd->engine.m.name, &sd->phys, sd->bytes);
	mutex_unlock(&simdisk_mutex);
	return n;
}

static int remove_set(const char *text, const struct kernel_param *kp)
{
	char buf[SIMDISK_NAME_MAX + 16], *line, *name;
	struct simdisk *sd;
	bool force = false;
	int err;

	if (strscpy(buf, text, sizeof(buf)) < 0) {
		pr_err("remove: '%.*s..' is longer than any disk's name\n", SIMDISK_NAME_MAX, text);
		return -EINVAL;
	}
	line = strim(buf);
	name = strsep(&line, " \t");
	if (line) {
		force = !strcmp(skip_spaces(line), "force");
		if (!force) {
			pr_err("remove: '%s' after the name is not 'force'\n", line);
			return -EINVAL;
		}
	}
	mutex_lock(&simdisk_mutex);
	sd = find_disk(name);
	if (sd) {
		err = remove_disk(sd, force);
	} else {
		pr_err("remove: there is no disk named '%s'\n", name);
		err = -ENODEV;
	}
	mutex_unlock(&simdisk_mutex);
	return err;
}

static const struct kernel_param_ops add_ops = { .set = add_set, .get = add_get };
static const struct kernel_param_ops remove_ops = { .set = remove_set };

module_param_cb(add, &add_ops, NULL, 0600);
MODULE_PARM_DESC(add, "name=NAME model=MODEL phys=ADDRESS bytes=SIZE [readonly=1] [poison=1] [model field=value]..");
module_param_cb(remove, &remove_ops, NULL, 0200);
MODULE_PARM_DESC(remove, "NAME [force]");

static void remove_all(void)
{
	struct simdisk *sd, *next;

	list_for_each_entry_safe(sd, next, &simdisks, link)
		remove_disk(sd, true);
}

static int __init simdisk_init(void)
{
	char *lines = early_lines, *line;
	int err = 0;

	simdisk_root = debugfs_create_dir("simdisk", NULL);
	mutex_lock(&simdisk_mutex);
	started = true;
	while (!err && (line = strsep(&lines, "\n")) && (*line || lines))
		err = add_disk_from_line(line);
	if (err)
		remove_all();
	mutex_unlock(&simdisk_mutex);
	if (err)
		debugfs_remove_recursive(simdisk_root);
	return err;
}

static void __exit simdisk_exit(void)
{
	mutex_lock(&simdisk_mutex);
	remove_all();
	mutex_unlock(&simdisk_mutex);
	debugfs_remove_recursive(simdisk_root);
}

module_init(simdisk_init);
module_exit(simdisk_exit);

MODULE_DESCRIPTION("A disk over reserved memory with a service-time model");
MODULE_LICENSE("GPL");
