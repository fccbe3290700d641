/* SPDX-License-Identifier: MIT */
/* Small parts of init: the lease, the ladder, options, the process table, sending, the request. */
#include "base/str.h"
#include "init/config.h"
#include "init/lease.h"
#include "init/outq.h"
#include "init/process.h"
#include "init/proctab.h"
#include "init/run.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

TEST(lease_counts_only_without_a_client)
{
    struct lease l;

    lease_init(&l, 3000, 1000);
    lease_tick(&l, 2000, true);
    assert_int_eq(l.used_ms, 0);
    lease_tick(&l, 2900, false);
    lease_tick(&l, 3800, false);
    assert_int_eq(l.used_ms, 1800);
    lease_tick(&l, 3900, true);
    assert_int_eq(l.used_ms, 0);
    for (int i = 1; i <= 3; i++)
        lease_tick(&l, 3900 + i * 1000, false);
    assert_true(lease_is_over(&l));
}

TEST(lease_counts_a_freeze_as_one_tick)
{
    struct lease l;

    lease_init(&l, 3000, 0);
    lease_tick(&l, 3600 * 1000, false);
    assert_int_eq(l.used_ms, LEASE_TICK_MS);
    lease_tick(&l, 3600 * 1000 - 5000, false);
    assert_int_eq(l.used_ms, LEASE_TICK_MS);
}

TEST(lease_asks_to_be_ticked)
{
    struct lease l;

    lease_init(&l, 1500, 100);
    assert_int_eq(lease_next(&l, false), 1100);
    lease_tick(&l, 1100, false);
    assert_int_eq(lease_next(&l, false), 1600);
    assert_true(lease_next(&l, true) == CLOCK_FOREVER);
}

TEST(ladder_interrupts_and_kills)
{
    struct ladder l = {};
    int interrupts = 0;
    int64_t now;

    assert_int_eq(ladder_step(&l, 0), LADDER_WAIT);
    ladder_begin(&l, 1000, 0);
    ladder_begin(&l, 1500, 0); /* a second wish changes nothing */
    for (now = 1000; now < 10000; now += 10) {
        enum ladder_act act = ladder_step(&l, now);

        interrupts += act == LADDER_INTERRUPT;
        if (act == LADDER_KILL)
            break;
    }
    assert_int_eq(now, 3000);
    assert_int_eq(interrupts, 10);
    assert_true(ladder_next(&l) == CLOCK_FOREVER);
}

TEST(ladder_waits_for_its_delay)
{
    struct ladder l = {};

    ladder_begin(&l, 1000, 400);
    assert_int_eq(ladder_next(&l), 1400);
    assert_int_eq(ladder_step(&l, 1399), LADDER_WAIT);
    assert_int_eq(ladder_step(&l, 1400), LADDER_INTERRUPT);
    assert_int_eq(ladder_step(&l, 3400), LADDER_KILL);
}

TEST(config_takes_what_the_launcher_gives)
{
    const char *argv[] = {"--lease-ms", "5000",      "--uid",      "1",          "--gid",
                          "2",          "--as-root", "--root-uid", "0",          "--landlock",
                          "off",        "--seccomp", "off",        "--writable", "/workspace",
                          "--writable", "/tmp",      NULL};
    struct config c = {.landlock = true, .seccomp = true, .root_uid = -1};
    struct error err = {};

    assert_ok(config_parse(&c, argv, &err), err);
    assert_int_eq(c.lease_ms, 5000);
    assert_int_eq(c.uid + c.gid + c.root_uid, 3);
    assert_true(c.as_root && !c.landlock && !c.seccomp && !c.one_uid);
    assert_uint_eq(c.writable_count, 2);
    assert_str_eq(c.writable[1], "/tmp");
}

static void config_refuses(const char *first, const char *second)
{
    const char *argv[] = {first, second, NULL};
    struct config c = {.root_uid = -1};
    struct error err = {};

    assert_int_eq(config_parse(&c, argv, &err), -ERR_INVALID);
}

TEST(config_refuses_what_is_wrong)
{
    config_refuses("--unknown", NULL);
    config_refuses("", NULL);
    config_refuses("--uid", NULL);
    config_refuses("--uid", "-1");
    config_refuses("--uid", "4294967295");
    config_refuses("--lease-ms", "1h");
    config_refuses("--seccomp", "maybe");
    config_refuses("--writable", "tmp");
    config_refuses("--as-root", NULL);
    config_refuses("--root-uid", "0");
}

TEST(proctab_reads_any_name)
{
    struct proc p;

    assert_int_eq(proctab_parse("42 (a) b) (c) S 7 8 9 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 "
                                "123456 1 2 3",
                                &p),
                  0);
    assert_int_eq(p.pid, 42);
    assert_int_eq(p.ppid, 7);
    assert_int_eq(p.pgrp, 8);
    assert_int_eq(p.sid, 9);
    assert_uint_eq(p.start, 123456);
    assert_int_eq(p.state, 'S');
    assert_int_eq(proctab_parse("42 (a", &p), -1);
    assert_int_eq(proctab_parse("42 (a) S 1", &p), -1);
    assert_int_eq(proctab_parse("42 (a) S 1 2 3 4 5", &p), -1);
    assert_int_eq(proctab_parse("", &p), -1);
}

/* pid, parent, group, session, start */
static struct proc table[] = {
    {.pid = 2, .ppid = 1, .pgrp = 2, .sid = 2, .start = 10},      /* the kernel */
    {.pid = 3, .ppid = 2, .pgrp = 2, .sid = 2, .start = 200},     /* its child */
    {.pid = 4, .ppid = 1, .pgrp = 4, .sid = 2, .start = 210},     /* its orphan, in its session */
    {.pid = 5, .ppid = 1, .pgrp = 5, .sid = 5, .start = 100},     /* the run */
    {.pid = 6, .ppid = 5, .pgrp = 5, .sid = 5, .start = 110},     /* its child */
    {.pid = 7, .ppid = 6, .pgrp = 7, .sid = 7, .start = 120},     /* a grandchild on its own */
    {.pid = 8, .ppid = 1, .pgrp = 8, .sid = 5, .start = 130},     /* an orphan in its session */
    {.pid = 9, .ppid = 1, .pgrp = 9, .sid = 9, .start = 140},     /* a daemon of the run */
    {.pid = 10, .ppid = 1, .pgrp = 10, .sid = 10, .start = 50},   /* a daemon of before */
    {.pid = 11, .ppid = 1, .pgrp = 11, .sid = 11, .start = 150},  /* another run */
    {.pid = 12, .ppid = 11, .pgrp = 12, .sid = 12, .start = 160}, /* and a child of it */
};

static void marks_are(const struct proc_scope *scope, const char *wanted)
{
    struct proctab t = {.list = table, .count = ARRAY_LEN(table)};
    char got[ARRAY_LEN(table) + 1] = "";

    proctab_mark(&t, scope, 1);
    for (size_t i = 0; i < t.count; i++)
        got[i] = t.list[i].marked ? 'x' : '.';
    assert_str_eq(got, wanted);
}

TEST(proctab_marks_what_belongs_to_a_run)
{
    struct proc_scope scope = {.leader = 5, .start = 100, .spared = {2, 11}, .spared_count = 2};

    marks_are(&scope, "...xxxxx...");
    scope.start = 0;
    marks_are(&scope, "...xxxx....");
}

TEST(proctab_marks_all_but_the_kernel)
{
    struct proc_scope scope = {.spared = {2}, .spared_count = 1};

    config.pid1 = true;
    marks_are(&scope, ".xxxxxxxxxx");
    config.pid1 = false;
}

TEST(proctab_sees_this_process_from_outside)
{
    struct proctab t = {};

    assert_true(proctab_start_time(getpid()) > 0);
    assert_uint_eq(proctab_start_time(0), 0);
    if (proctab_read(&t) == 0)
        assert_true(t.count > 0);
    proctab_done(&t);
}

TEST(outq_writes_in_pieces)
{
    static char data[300000], got[65536];
    auto_cleanup(outq_done) struct outq q;
    auto_fd int from = -1, to = -1;
    size_t left = sizeof(data);
    struct buf *b;
    int fds[2], r = 0;

    outq_init(&q, sizeof(data));
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    from = fds[0];
    to = fds[1];
    b = outq_room(&q, sizeof(data));
    if (!b || buf_append(b, data, sizeof(data)) < 0 || test_is_torture())
        return;
    assert_null(outq_room(&q, 1));
    while ((r = outq_flush(&q, to)) == 0)
        left -= (size_t)read(from, got, sizeof(got));
    assert_int_eq(r, 1);
    while (left > 0)
        left -= (size_t)read(from, got, sizeof(got));
    assert_uint_eq(outq_len(&q), 0);
}

TEST(process_request_is_parsed)
{
    struct process_spec spec;
    struct error err = {};
    auto_buf struct buf b;
    struct fields f;

    buf_init(&b, 4096);
    if (fields_add_str(&b, "argv", "a") < 0 || fields_add_str(&b, "argv", "b c") < 0 ||
        fields_add_str(&b, "env", "X=1") < 0 || fields_add_str(&b, "cwd", "/tmp") < 0 ||
        fields_add_str(&b, "user", "sandbox") < 0)
        return;
    f = (struct fields){.data = b.data, .len = b.len};
    if (process_spec_parse(&spec, &f, &err) == 0) {
        assert_str_eq(spec.argv[1], "b c");
        assert_null(spec.argv[2]);
        assert_str_eq(spec.env[0], "X=1");
        assert_str_eq(spec.cwd, "/tmp");
        assert_int_eq(spec.user, IDS_SANDBOX);
    } else {
        assert_true(test_is_torture());
    }
    process_spec_done(&spec);
}

static int user_refused(const char *user)
{
    struct process_spec spec;
    struct error err = {};
    auto_buf struct buf b;
    struct fields f;
    int r;

    buf_init(&b, 4096);
    if (fields_add_str(&b, "argv", "a") < 0 || fields_add_str(&b, "user", user) < 0)
        return -(int)ERR_NO_MEMORY;
    f = (struct fields){.data = b.data, .len = b.len};
    r = process_spec_parse(&spec, &f, &err);
    process_spec_done(&spec);
    return r;
}

TEST(process_request_for_root_needs_leave)
{
    if (test_is_torture())
        return;
    assert_int_eq(user_refused("root"), -ERR_DENIED);
    assert_int_eq(user_refused("0"), -ERR_INVALID);
    config.as_root = true;
    assert_int_eq(user_refused("root"), 0);
    config.as_root = false;
}
