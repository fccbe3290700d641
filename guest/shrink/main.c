/* SPDX-License-Identifier: MIT */
/*
 * shrink SIDE BYTES: a picture from stdin, reduced, to stdout. A failure is one line on stderr and
 * exit status 1. Its own limits hold where the sandbox has none, so that a hostile picture ends
 * this process and not what runs beside it.
 */
#include "base/fd.h"
#include "base/str.h"
#include "shrink/shrink.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

enum { READ_CHUNK = 256 * 1024, CPU_SECONDS = 15, BYTES_MAX = 16 * 1024 * 1024 };

/* Sanitizers reserve terabytes of addresses. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_LIMIT RLIM_INFINITY
#else
#define MEMORY_LIMIT (384 * MIB)
#endif

/* When the sandbox has no memory left, this process goes and not the kernel with its variables. */
static void oom_volunteer(void)
{
    auto_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)!write(fd, "1000", 4);
}

static int limits_set(struct error *reterr)
{
    const struct rlimit memory = {MEMORY_LIMIT, MEMORY_LIMIT};
    const struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS};
    const struct rlimit core = {0, 0};

    if (setrlimit(RLIMIT_AS, &memory) < 0 || setrlimit(RLIMIT_CPU, &cpu) < 0 ||
        setrlimit(RLIMIT_CORE, &core) < 0)
        return error_set(reterr, ERR_SYSTEM, "cannot set its limits");
    return 0;
}

static int input_read(struct buf *ret, struct error *reterr)
{
    ssize_t n;

    do {
        size_t room = MIN((size_t)READ_CHUNK, ret->max - ret->len);

        if (room == 0)
            return error_set(reterr, ERR_LIMIT, "the picture is above %zu bytes", ret->max);
        if (buf_reserve(ret, room) < 0)
            return error_no_memory(reterr);
        n = fd_read_full(STDIN_FILENO, ret->data + ret->len, room, reterr);
        if (n < 0)
            return -ERR_SYSTEM;
        ret->len += (size_t)n;
    } while (n > 0);
    return 0;
}

static int arguments_parse(int argc, char **argv, int64_t *ret_side, int64_t *ret_bytes,
                           struct error *reterr)
{
    if (argc != 3 || str_parse_int(argv[1], SHRINK_SIDE_MIN, SHRINK_SIDE_MAX, ret_side) < 0 ||
        str_parse_int(argv[2], 1, BYTES_MAX, ret_bytes) < 0)
        return error_set(reterr, ERR_INVALID, "usage: shrink SIDE BYTES");
    return 0;
}

static int run(int argc, char **argv, struct error *reterr)
{
    auto_buf struct buf in, out;
    int64_t side, bytes;
    int r = arguments_parse(argc, argv, &side, &bytes, reterr);

    oom_volunteer();
    buf_init(&in, SHRINK_IN_MAX);
    buf_init(&out, r < 0 ? 0 : (size_t)bytes);
    if (r < 0 || (r = limits_set(reterr)) < 0 || (r = input_read(&in, reterr)) < 0)
        return r;
    r = shrink_picture(buf_str(&in), in.len, (uint32_t)side, &out, reterr);
    return r < 0 ? r : fd_write_full(STDOUT_FILENO, out.data, out.len, reterr);
}

int main(int argc, char **argv)
{
    struct error err = {};

    if (run(argc, argv, &err) == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "shrink: %s\n", err.text);
    return EXIT_FAILURE;
}
