/* SPDX-License-Identifier: MIT */
/*
 * System calls that the C library has no function for, and the few helpers around them. Raw clone3
 * acts as fork here: one thread, own memory.
 */
#pragma once

#include "base/error.h"

#include <linux/openat2.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Flags of memfd_create(2) and friends that older headers lack. */
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u
#endif

/* The child's pid in the parent, 0 in the child, -1 with errno. */
pid_t sys_clone3(struct clone_args *args);

/* A path below `dirfd`; EAGAIN (a rename raced) is retried. */
int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve);

/* Below `dirfd` and without any symbolic link on the way. */
static inline int sys_open_beneath(int dirfd, const char *path, uint64_t flags)
{
    return sys_openat2(dirfd, path, flags,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

/* The three sets of this process, each a mask of 1 << CAP_x. */
int sys_capset(uint64_t effective, uint64_t permitted, uint64_t inheritable);

/* Landlock's ABI, 0 where the kernel has none. */
int sys_landlock_abi(void);

/* Moves a descriptor to the exact number `want` without close-on-exec. */
int sys_fd_place(int fd, int want);

/* Writes a whole short text to a file of /proc or a cgroup; errno on failure. */
int sys_write_text(int dirfd, const char *path, const char *text);

/* Reads a short text, at most size - 1 bytes; NUL-terminated. Returns the length or -1. */
ssize_t sys_read_text(int dirfd, const char *path, char *ret, size_t size);

/* When the process started, in ticks since boot (field 22 of /proc/PID/stat); 0 if there is none.
 */
uint64_t sys_start_time(pid_t pid);

/* Removes the files of a directory; ours have no directories below. */
int sys_remove_files(int dirfd);

/* The next line of a text, cut to the room there is; false at the end of the text. */
bool sys_line_next(const char **text, char *line, size_t size);
