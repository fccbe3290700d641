/* SPDX-License-Identifier: MIT */
/* Messages that cross the privilege border: one wrong byte of a good message must be noticed. */
#include "wire/job.h"

#include "base/str.h"
#include "tests/lib/test.h"

#define ID "0123456789abcdef0123456789abcdef"

static void text_set(char *field, size_t size, const char *text)
{
    assert_int_eq(str_copy(field, size, text), 0);
}

#define SET(message, field, text) text_set((message)->field, sizeof((message)->field), text)

static struct launch_job *job_make(void)
{
    static struct launch_job job;

    job = (struct launch_job){
        .magic = JOB_MAGIC,
        .version = JOB_VERSION,
        .memory_bytes = 64 * MIB,
        .tmpfs_bytes = 8 * MIB,
        .home_bytes = 8 * MIB,
        .pids = 64,
        .nofile = 1024,
    };
    SET(&job, id, ID);
    SET(&job, rootfs, "/images/python");
    return &job;
}

static void job_is_refused(const struct launch_job *job, int line)
{
    struct error err;

    if (launch_job_check(job, &err) == 0)
        test_fail(__FILE__, line, "the job was accepted");
}

/* Makes a good job, changes one thing, and expects that it is refused. */
#define REFUSED(change) \
    do { \
        struct launch_job *job = job_make(); \
        change; \
        job_is_refused(job, __LINE__); \
    } while (0)

TEST(a_good_job_passes)
{
    struct launch_job *job = job_make();
    struct error err;

    assert_ok(launch_job_check(job, &err), err);
    job->mount_count = 1;
    SET(&job->mounts[0], source, "/data");
    SET(&job->mounts[0], target, "/workspace/data");
    job->flags = JOB_OVERLAY_ROOT | JOB_ALLOW_DEGRADED;
    SET(job, hostname, "box-1");
    assert_ok(launch_job_check(job, &err), err);
}

TEST(identity_and_flags_of_a_job)
{
    REFUSED(job->magic++);
    REFUSED(job->version++);
    REFUSED(job->flags = 1u << 31);
    REFUSED(job->id[0] = 'G');
    REFUSED(job->id[31] = 0);
    REFUSED(SET(job, hostname, "Box"));
    REFUSED(SET(job, hostname, "a.b"));
}

TEST(texts_of_a_job_have_an_end)
{
    REFUSED(memset(job->id, 'a', sizeof(job->id)));
    REFUSED(memset(job->owner, 'a', sizeof(job->owner)));
    REFUSED(memset(job->hostname, 'a', sizeof(job->hostname)));
    REFUSED(memset(job->runtime, 'a', sizeof(job->runtime)));
    REFUSED(memset(job->rootfs, '/', sizeof(job->rootfs)));
    REFUSED(memset(job->meta, 'a', sizeof(job->meta)));
}

TEST(paths_of_a_job_are_plain)
{
    static const char *const bad[] = {"", "images", "/images/../etc", "/./x", "//x", "/x/", "/.."};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        REFUSED(SET(job, rootfs, bad[i]));
        REFUSED({
            job->mount_count = 1;
            SET(&job->mounts[0], source, bad[i]);
            SET(&job->mounts[0], target, "/x");
        });
    }
}

TEST(counts_and_limits_of_a_job)
{
    REFUSED(job->mount_count = JOB_MOUNTS + 1);
    REFUSED(job->port_count = JOB_PORTS + 1);
    REFUSED(job->network = JOB_NETWORK_ALLOWLIST + 1);
    REFUSED(job->memory_bytes = 0);
    REFUSED(job->pids = 0);
    REFUSED(job->tmpfs_bytes = 0);
    REFUSED(job->cpu_quota_us = 100000);
    REFUSED({
        job->mount_count = 1;
        SET(&job->mounts[0], source, "/x");
        SET(&job->mounts[0], target, "/y");
        job->mounts[0].writable = 2;
    });
}

TEST(keeper_requests)
{
    struct keeper_request good = {.magic = KEEPER_MAGIC, .op = KEEPER_INFO, .serial = 1}, bad;
    struct error err;

    assert_ok(keeper_request_check(&good, sizeof(good), &err), err);
    assert_int_eq(keeper_request_check(&good, sizeof(good) - 1, &err), -ERR_PROTOCOL);
    bad = good;
    bad.serial = 0;
    assert_int_eq(keeper_request_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
    bad = good;
    bad.op = 0;
    assert_int_eq(keeper_request_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
    bad = good;
    bad.op = KEEPER_CLOSE;
    assert_int_eq(keeper_request_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
    SET(&bad, id, ID);
    assert_ok(keeper_request_check(&bad, sizeof(bad), &err), err);
    memset(bad.arg, 'x', sizeof(bad.arg));
    assert_int_eq(keeper_request_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
}

TEST(keeper_events)
{
    struct keeper_event good = {.magic = KEEPER_MAGIC, .kind = KEEPER_OPENED}, bad;
    struct error err;

    assert_ok(keeper_event_check(&good, sizeof(good), &err), err);
    assert_int_eq(keeper_event_check(&good, 0, &err), -ERR_PROTOCOL);
    bad = good;
    bad.kind = 0xffff;
    assert_int_eq(keeper_event_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
    bad = good;
    memset(bad.text, 'x', sizeof(bad.text));
    assert_int_eq(keeper_event_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
}

TEST(egress_messages)
{
    struct egress_msg good = {.magic = EGRESS_MAGIC, .op = EGRESS_ADD}, bad;
    struct error err;

    SET(&good, id, ID);
    assert_ok(egress_msg_check(&good, sizeof(good), &err), err);
    bad = good;
    bad.port_count = JOB_PORTS + 1;
    assert_int_eq(egress_msg_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
    bad = good;
    bad.id[3] = '/';
    assert_int_eq(egress_msg_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
    bad = good;
    bad.op = EGRESS_GONE + 1;
    assert_int_eq(egress_msg_check(&bad, sizeof(bad), &err), -ERR_PROTOCOL);
}

TEST(egress_configuration)
{
    static struct egress_config config;
    struct error err;

    config = (struct egress_config){.magic = EGRESS_MAGIC, .version = JOB_VERSION};
    assert_ok(egress_config_check(&config, &err), err);
    config.allow_count = 1;
    assert_int_eq(egress_config_check(&config, &err), -ERR_PROTOCOL);
    SET(&config.allow[0], host, "a.example");
    assert_ok(egress_config_check(&config, &err), err);
    config.list_count = EGRESS_RULES + 1;
    assert_int_eq(egress_config_check(&config, &err), -ERR_PROTOCOL);
    config.list_count = 0;
    memset(config.proxy, 'x', sizeof(config.proxy));
    assert_int_eq(egress_config_check(&config, &err), -ERR_PROTOCOL);
}

TEST(every_degraded_bit_has_a_name)
{
    for (uint32_t bit = DEGRADED_ONE_UID; bit <= DEGRADED_NO_NETNS; bit <<= 1)
        assert_true(strcmp(degraded_name(bit), "unknown") != 0);
    assert_str_eq(degraded_name(1u << 31), "unknown");
}
