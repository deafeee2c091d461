// SPDX-License-Identifier: GPL-2.0-only
//
// /init of the initramfs. Brings up the disk that holds the programs' image,
// makes it the root, leaves nothing of the initramfs behind (it would be part
// of the memory under test) and becomes /bin/pageout-guest.
//
// It says what went wrong on the console and reboots, which ends the guest:
// nobody can do anything for a guest that did not come this far.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void die(const char *what, const char *detail)
{
	dprintf(STDERR_FILENO, "pageout-init: %s %s: %s\n", what, detail, strerror(errno));
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void mount_on(const char *source, const char *target, const char *type, unsigned long flags)
{
	if (mkdir(target, 0755) != 0 && errno != EEXIST && errno != EROFS)
		die("cannot make", target);
	if (mount(source, target, type, flags, NULL) != 0)
		die("cannot mount on", target);
}

// The two numbers of `name=ADDRESS,SIZE` on the kernel's command line.
static void region(const char *name, unsigned long long *address, unsigned long long *size)
{
	char line[4096];
	const int fd = open("/proc/cmdline", O_RDONLY);
	const ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (length < 0)
		die("cannot read", "/proc/cmdline");
	close(fd);
	line[length] = '\0';
	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
		const size_t n = strlen(name);
		char *end;

		if (strncmp(word, name, n) != 0 || word[n] != '=')
			continue;
		*address = strtoull(word + n + 1, &end, 0);
		if (*end == ',') {
			*size = strtoull(end + 1, &end, 0);
			if (*end == '\0' && *address && *size)
				return;
		}
		errno = EINVAL;
		die("command line: not ADDRESS,SIZE:", word);
	}
	errno = ENOENT;
	die("command line: nothing says", name);
}

static void load_module(const char *path, const char *parameters)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0) != 0)
		die("cannot load", path);
	close(fd);
}

// Modules that the agent may want later; it removes them before it measures.
static void keep_modules(void)
{
	DIR *modules = opendir("/modules");
	struct dirent *entry;

	if (!modules)
		die("cannot read", "/modules");
	mount_on("modules", "/root/modules", "tmpfs", 0);
	while ((entry = readdir(modules))) {
		char from[300], to[300];
		struct stat status;
		int in, out;

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "simdisk.ko") == 0)
			continue;
		snprintf(from, sizeof(from), "/modules/%s", entry->d_name);
		snprintf(to, sizeof(to), "/root/modules/%s", entry->d_name);
		in = open(from, O_RDONLY | O_CLOEXEC);
		if (in < 0 || fstat(in, &status) != 0)
			die("cannot read", from);
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		for (off_t left = status.st_size; left > 0;) {
			const ssize_t n = out < 0 ? -1 : sendfile(out, in, NULL, left);

			if (n <= 0)
				die("cannot write", to);
			left -= n;
		}
		close(in);
		close(out);
	}
	closedir(modules);
}

// Removes all of the first file system; other mounts are left alone.
static void empty(int directory, dev_t device)
{
	DIR *entries = fdopendir(directory);
	struct dirent *entry;

	if (!entries)
		die("cannot read", "the initramfs");
	while ((entry = readdir(entries))) {
		struct stat status;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_dev != device)
			continue;
		if (S_ISDIR(status.st_mode)) {
			const int child = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			if (child >= 0)
				empty(child, device);
			unlinkat(directory, entry->d_name, AT_REMOVEDIR);
		} else {
			unlinkat(directory, entry->d_name, 0);
		}
	}
	closedir(entries);
}

int main(void)
{
	static char agent[] = "/bin/pageout-guest";
	char *argv[] = {agent, NULL};
	char *envp[] = {"PATH=/bin", "HOME=/tmp", "TMPDIR=/tmp", NULL};
	unsigned long long address = 0, size = 0;
	char parameters[160];
	struct stat status;
	int initramfs;

	mount_on("devtmpfs", "/dev", "devtmpfs", 0);
	mount_on("proc", "/proc", "proc", 0);
	mount_on("sysfs", "/sys", "sysfs", 0);

	region("pageout.prog", &address, &size);
	snprintf(parameters, sizeof(parameters),
		 "add=\"name=prog model=ram-sync phys=0x%llx bytes=%llu readonly=1\"", address, size);
	load_module("/modules/simdisk.ko", parameters);
	mount_on("/dev/simprog", "/root", "ext4", MS_RDONLY);
	keep_modules();

	for (size_t i = 0; i < 3; i++) {
		static const char *const mounts[][2] = {{"/dev", "/root/dev"}, {"/proc", "/root/proc"}, {"/sys", "/root/sys"}};

		if (mount(mounts[i][0], mounts[i][1], NULL, MS_MOVE, NULL) != 0)
			die("cannot move to", mounts[i][1]);
	}
	initramfs = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (initramfs < 0 || fstat(initramfs, &status) != 0 || chdir("/root") != 0)
		die("cannot enter", "/root");
	empty(initramfs, status.st_dev);
	if (mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0)
		die("cannot make the root of", "/dev/simprog");

	execve(agent, argv, envp);
	die("cannot execute", agent);
	return 1;
}
