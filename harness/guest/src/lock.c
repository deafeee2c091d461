// SPDX-License-Identifier: GPL-2.0-only
//
// Preloaded into blktrace in the guest. Its memory must not be paged out by the
// page-out that it watches: that would put its own page faults into the trace,
// and while it waits for them the kernel's buffers would fill. Only pages that
// are touched get locked, and the heap is never given back, so that a buffer
// that was used once costs no fault when it is used again.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((constructor)) static void lock(void)
{
	static const char failed[] = "pageout-lock: cannot lock the memory of the tracer\n";

	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
		if (write(STDERR_FILENO, failed, sizeof(failed) - 1) < 0)
			_exit(126);
		_exit(125);
	}
}
