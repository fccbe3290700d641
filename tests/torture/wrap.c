/* SPDX-License-Identifier: MIT */
/*
 * Makes chosen calls of a unit test fail. SBX_TORTURE=N[:from] fails the N-th wrapped call of the
 * process (or all from the N-th on); SBX_TORTURE=0 fails none and reports how many there were.
 *
 * The calls are caught by the linker's --wrap, not by preloading: libc's own calls, and those of
 * third-party libraries, are left alone, so whatever breaks is our code.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_ulong calls;

static bool is_failing(const char *name)
{
    const char *wanted = getenv("SBX_TORTURE");
    unsigned long call = atomic_fetch_add(&calls, 1) + 1;
    unsigned long first;
    char *end;

    if (wanted == NULL)
        return false;
    first = strtoul(wanted, &end, 10);
    if (first == 0 || call < first || (call > first && strcmp(end, ":from") != 0))
        return false;
    if (call == first)
        dprintf(STDERR_FILENO, "# torture: call %lu, %s, fails\n", call, name);
    return true;
}

static void __attribute__((destructor)) calls_report(void)
{
    const char *wanted = getenv("SBX_TORTURE");

    if (wanted != NULL && strcmp(wanted, "0") == 0)
        dprintf(STDERR_FILENO, "# torture: %lu calls\n", atomic_load(&calls));
}

/* One wrapped function: what a failure returns and which errno it leaves. */
#define WRAP(type, name, parameters, arguments, failure, number) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters \
    { \
        if (is_failing(#name)) { \
            errno = (number); \
            return (failure); \
        } \
        return __real_##name arguments; \
    }

WRAP(void *, malloc, (size_t size), (size), NULL, ENOMEM)
WRAP(void *, calloc, (size_t count, size_t size), (count, size), NULL, ENOMEM)
WRAP(void *, realloc, (void *old, size_t size), (old, size), NULL, ENOMEM)
WRAP(char *, strdup, (const char *text), (text), NULL, ENOMEM)
WRAP(char *, strndup, (const char *text, size_t size), (text, size), NULL, ENOMEM)
WRAP(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size), -1, EIO)
WRAP(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), -1, ENOSPC)
WRAP(int, fsync, (int fd), (fd), -1, EIO)
WRAP(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), -1,
     ENOSPC)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
WRAP(int, socketpair, (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds), -1, EMFILE)
WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags),
     (fd, address, size, flags), -1, EMFILE)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1,
     ENOMEM)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1,
     ENOMEM)
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags), -1, ENFILE)
WRAP(int, eventfd, (unsigned count, int flags), (count, flags), -1, EMFILE)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, ENFILE)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), -1, ENOSPC)
WRAP(int, posix_spawn,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]),
     (pid, path, actions, attributes, argv, envp), EAGAIN, EAGAIN)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument),
     (thread, attributes, start, argument), EAGAIN, EAGAIN)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);

/* The mode exists only with O_CREAT or O_TMPFILE, but reading an absent one is harmless here. */
int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (is_failing("open")) {
        errno = EMFILE;
        return -1;
    }
    return __real_open(path, flags, mode);
}

int __wrap_openat(int directory, const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (is_failing("openat")) {
        errno = EMFILE;
        return -1;
    }
    return __real_openat(directory, path, flags, mode);
}
