// SPDX-License-Identifier: GPL-2.0-only
//
// Preloaded into QEMU (-icount ..,sleep=off) where the guest's time must be
// exactly repeatable. QEMU runs the guest's processor in one thread and the
// timers of its devices in another, and lets both run at once. When the processor
// halts, it says so first and adds up the time of its last instructions
// afterwards; if the other thread looks in between, it moves the clock on from a
// time that is out of date, and the next timer is late by what was not added up
// yet. A few nanoseconds, in a few of the some 100,000 halts of a run, and more of
// them on a busy host; enough that two runs are not the same.
//
// Here the two take turns: the thread of the timers goes on from its poll only
// while the processor's thread waits and nobody has called it.
//
// Needs the names of QEMU's threads (-name guest=..,debug-threads=on) to know them
// apart; says so on standard error at exit where it found none. A line of counts
// goes to the file that PAGEOUT_TURNS names. QEMU answers no signal that can be
// caught while the guest computes: end it with SIGKILL.
//
// PAGEOUT_TURNS_JITTER_US=N is for tests: both threads dawdle for up to N
// microseconds wherever they could meet.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int (*next_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*next_signal)(pthread_cond_t *);
static int (*next_broadcast)(pthread_cond_t *);
static int (*next_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

// 1 while the processor's thread waits and nobody has called it.
static atomic_int processor_waits = 1;
static pthread_cond_t *_Atomic processor_condition;
// QEMU's big lock.
static pthread_mutex_t *_Atomic processor_mutex;
static __thread int is_processor = -1;

static unsigned int jitter_us;
static atomic_ulong waits, polls, held;

static void find(void *function, const char *name)
{
	void *address = dlsym(RTLD_NEXT, name);

	if (!address) {
		dprintf(STDERR_FILENO, "pageout-turns: there is no %s to stand in for\n", name);
		_exit(125);
	}
	memcpy(function, &address, sizeof(address));
}

__attribute__((constructor)) static void begin(void)
{
	const char *jitter = getenv("PAGEOUT_TURNS_JITTER_US");

	find(&next_wait, "pthread_cond_wait");
	find(&next_signal, "pthread_cond_signal");
	find(&next_broadcast, "pthread_cond_broadcast");
	find(&next_ppoll, "ppoll");
	if (jitter)
		jitter_us = (unsigned int)strtoul(jitter, NULL, 10);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("PAGEOUT_TURNS");
	FILE *file = path ? fopen(path, "we") : NULL;

	if (!waits)
		dprintf(STDERR_FILENO, "pageout-turns: found no thread of the guest's processor (is there -name guest=..,debug-threads=on?): the run is not exactly repeatable\n");
	if (!file)
		return;
	fprintf(file, "waits %lu polls %lu held %lu\n", waits, polls, held);
	fclose(file);
}

static void dawdle(void)
{
	static atomic_uint number;
	struct timespec time = {0, 0};

	if (!jitter_us)
		return;
	// Any spread will do.
	time.tv_nsec = (long)((atomic_fetch_add(&number, 1) * 2654435761u >> 8) % (jitter_us * 1000));
	nanosleep(&time, NULL);
}

static bool in_processor(void)
{
	if (is_processor < 0) {
		char name[16] = "";

		pthread_getname_np(pthread_self(), name, sizeof(name));
		is_processor = strstr(name, "TCG") != NULL;
	}
	return is_processor;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int result;

	if (!in_processor())
		return next_wait(condition, mutex);
	// The mutex is held, by all who call as well: between this and the wait
	// nobody can.
	dawdle();
	atomic_fetch_add(&waits, 1);
	atomic_store(&processor_mutex, mutex);
	atomic_store(&processor_condition, condition);
	atomic_store(&processor_waits, 1);
	syscall(SYS_futex, &processor_waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	result = next_wait(condition, mutex);
	atomic_store(&processor_waits, 0);
	dawdle();
	return result;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
	if (condition == atomic_load(&processor_condition))
		atomic_store(&processor_waits, 0);
	return next_signal(condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
	if (condition == atomic_load(&processor_condition))
		atomic_store(&processor_waits, 0);
	return next_broadcast(condition);
}

static void await_turn(void)
{
	const pthread_mutex_t *mutex = atomic_load(&processor_mutex);

	if (gettid() != getpid())
		return;
	// With the big lock in hand the processor cannot run as it is, and would
	// never come to wait if it was called: on its way out QEMU polls like that.
	if (mutex && mutex->__data.__owner == getpid())
		return;
	atomic_fetch_add(&polls, 1);
	dawdle();
	while (!atomic_load(&processor_waits)) {
		atomic_fetch_add(&held, 1);
		syscall(SYS_futex, &processor_waits, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	}
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	const int result = next_ppoll(fds, count, timeout, mask);
	const int error = errno;

	await_turn();
	errno = error;
	return result;
}

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

	return ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);
}
