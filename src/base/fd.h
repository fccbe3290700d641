/* SPDX-License-Identifier: MIT */
/* Reading, writing and passing descriptors whole. EINTR is retried everywhere. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { FD_PASS_MAX = 128 }; /* descriptors in one message */

/* Up to `len` bytes, short only at the end of file. Returns the count. */
ssize_t fd_read_full(int fd, void *data, size_t len, struct error *reterr) must_check;
int fd_write_full(int fd, const void *data, size_t len, struct error *reterr) must_check;

/* Reads a whole small file into memory, at most `max` bytes; NUL-terminated; free it. */
int fd_read_file(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len,
                 struct error *reterr) must_check;

/* Writes a file so that a reader or a crash sees the old or the new content: stage, fsync, rename.
 */
int fd_write_file_atomic(int dirfd, const char *path, const void *data, size_t len,
                         struct error *reterr) must_check;

int fd_set_nonblock(int fd, bool on);

/* One message with descriptors over a unix socket. */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t fd_count) must_check;

/*
 * Receives one message. Descriptors arrive close-on-exec; on entry *fd_count is the room in `fds`,
 * on return the number received. A truncated message or too many descriptors fail with EMSGSIZE and
 * leak nothing. Returns the length, 0 at the end, -1 with errno set.
 */
ssize_t fd_recv(int sock, void *data, size_t len, int *fds, size_t *fd_count) must_check;

/* A sealed memfd that holds a copy of `data`. */
int fd_memfd_sealed(const char *name, const void *data, size_t len) must_check;

void fd_close_all(int *fds, size_t count);

/* poll() for one descriptor until a deadline; 1 ready, 0 time-out, -1 errno. */
int fd_wait(int fd, short events, int64_t deadline) must_check;
