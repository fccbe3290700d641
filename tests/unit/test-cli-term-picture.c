/* SPDX-License-Identifier: MIT */
/* Decoders that do not come to an end, and how long they are waited for. */
#include "base/clock.h"
#include "base/fd.h"
#include "cli/term/picture_child.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

/* One that is given up has begun by then. */
enum { LONG_MS = 3600 * 1000, GIVEN_MS = 1500 };

/* A pipe by which the decoder tells its process id. */
static int decoder_write(const char *body)
{
    auto_fd int fd = -1;
    int told;
    char path[512];

    if (test_is_torture())
        test_skip("processes");
    snprintf(path, sizeof(path), "%s/pid", test_dir());
    assert_int_eq(mkfifo(path, 0600), 0);
    told = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(told >= 0);
    snprintf(path, sizeof(path), "%s/sandbox-picture", test_dir());
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    assert_true(fd >= 0 && dprintf(fd, "#!/bin/sh\necho $$ > %s/pid\n%s\n", test_dir(), body) > 0);
    assert_int_eq(setenv("SANDBOX_AGENT_LIBEXEC", test_dir(), 1), 0);
    return told;
}

static int decoded(int time_ms, int stop_fd, struct buf *ret, struct error *reterr)
{
    const struct picture_job job = {.mode = "png",
                                    .side = 10,
                                    .data = "picture",
                                    .len = 7,
                                    .time_ms = time_ms,
                                    .stop_fd = stop_fd};

    buf_init(ret, MIB);
    return picture_child_run(&job, ret, reterr);
}

static void assert_ended(int told)
{
    char text[32] = "";
    int pid;

    assert_true(read(told, text, sizeof(text) - 1) > 0);
    pid = (int)strtol(text, NULL, 10);
    assert_true(pid > 1);
    assert_true(kill(pid, 0) < 0 && errno == ESRCH);
}

TEST(a_stop_ends_the_wait)
{
    auto_fd int told = decoder_write("exec sleep 3600");
    auto_buf struct buf out = {};
    struct error err = {};

    assert_true(decoded(LONG_MS, told, &out, &err) < 0);
    assert_int_eq(err.code, ERR_CANCELLED);
    assert_ended(told);
}

TEST(a_decoder_that_says_nothing_is_given_up)
{
    auto_fd int told = decoder_write("exec sleep 3600");
    auto_buf struct buf out = {};
    struct error err = {};

    assert_true(decoded(GIVEN_MS, -1, &out, &err) < 0);
    assert_int_eq(err.code, ERR_TIMEOUT);
    assert_ended(told);
}

TEST(a_decoder_that_lingers_behind_its_output_is_given_up)
{
    auto_fd int told = decoder_write("echo all of it; exec sleep 3600 >&-");
    auto_buf struct buf out = {};
    struct error err = {};

    assert_true(decoded(GIVEN_MS, -1, &out, &err) < 0);
    assert_int_eq(err.code, ERR_TIMEOUT);
    assert_str_eq(buf_str(&out), "all of it\n");
    assert_ended(told);
}

TEST(a_decoder_that_says_a_word_now_and_then_is_given_up)
{
    auto_fd int told = decoder_write("while :; do echo x; sleep 0.01; done");
    auto_buf struct buf out = {};
    struct error err = {};

    assert_true(decoded(GIVEN_MS, -1, &out, &err) < 0);
    assert_int_eq(err.code, ERR_TIMEOUT);
    assert_ended(told);
}

TEST(what_it_has_made_is_there_when_it_ends_well)
{
    auto_fd int told = decoder_write("cat; test \"$1 $2\" = \"png 10\"");
    auto_buf struct buf out = {};
    struct error err = {};

    assert_ok(decoded(LONG_MS, -1, &out, &err), err);
    assert_str_eq(buf_str(&out), "picture");
    assert_ended(told);
}

TEST(what_fails_is_no_picture)
{
    auto_fd int told = decoder_write("echo half; exit 1");
    auto_buf struct buf out = {};
    struct error err = {};

    assert_true(decoded(LONG_MS, -1, &out, &err) < 0);
    assert_int_eq(err.code, ERR_INVALID);
    assert_ended(told);
}
