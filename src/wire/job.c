/* SPDX-License-Identifier: MIT */
/* Checks of the fixed-size messages. A string is valid only with its NUL inside its array. */
#include "wire/job.h"

#include "base/str.h"

#define CHECK_TEXT(message, field) text_check((message)->field, sizeof((message)->field))

static bool text_check(const char *s, size_t size)
{
    return memchr(s, 0, size) != NULL;
}

static bool id_check(const char *id)
{
    return strlen(id) == JOB_ID && strspn(id, "0123456789abcdef") == JOB_ID;
}

/* Absolute, without empty, "." and ".." components, so that the text says where it leads. */
static bool absolute_path_check(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *p = path; *p;) {
        size_t len = strcspn(++p, "/");

        if (len == 0 || (len == 1 && p[0] == '.') || (len == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += len;
    }
    return true;
}

static int job_text_check(const struct launch_job *job, struct error *reterr)
{
    if (!CHECK_TEXT(job, id) || !CHECK_TEXT(job, owner) || !CHECK_TEXT(job, hostname) ||
        !CHECK_TEXT(job, runtime) || !CHECK_TEXT(job, rootfs) || !CHECK_TEXT(job, meta))
        return error_set(reterr, ERR_PROTOCOL, "launch job: a text has no end");
    if (!id_check(job->id))
        return error_set(reterr, ERR_PROTOCOL, "launch job: bad id");
    if (job->hostname[0] &&
        !str_check_chars(job->hostname, "abcdefghijklmnopqrstuvwxyz0123456789-", 64))
        return error_set(reterr, ERR_PROTOCOL, "launch job: bad host name");
    if (!absolute_path_check(job->rootfs))
        return error_set(reterr, ERR_PROTOCOL, "launch job: bad root path");
    return 0;
}

static int job_mounts_check(const struct launch_job *job, struct error *reterr)
{
    if (job->mount_count > JOB_MOUNTS)
        return error_set(reterr, ERR_PROTOCOL, "launch job: too many mounts");
    for (uint32_t i = 0; i < job->mount_count; i++) {
        const struct job_mount *m = &job->mounts[i];

        if (!CHECK_TEXT(m, source) || !CHECK_TEXT(m, target) || !absolute_path_check(m->source) ||
            !absolute_path_check(m->target) || m->writable > 1)
            return error_set(reterr, ERR_PROTOCOL, "launch job: bad mount");
    }
    return 0;
}

static int job_limits_check(const struct launch_job *job, struct error *reterr)
{
    if (job->memory_bytes < 16 * MIB || job->pids < 8 || job->nofile < 64)
        return error_set(reterr, ERR_INVALID, "limits are too small for any program to start");
    if (job->tmpfs_bytes < MIB || job->home_bytes < MIB)
        return error_set(reterr, ERR_INVALID, "a file system below 1 MiB is of no use");
    if (job->cpu_quota_us &&
        (job->cpu_period_us < 1000 || job->cpu_period_us > 1000000 || job->cpu_quota_us < 1000))
        return error_set(reterr, ERR_INVALID, "cpu quota and period are out of range");
    if (job->port_count > JOB_PORTS || job->network > JOB_NETWORK_ALLOWLIST)
        return error_set(reterr, ERR_PROTOCOL, "launch job: bad network");
    return 0;
}

int launch_job_check(const struct launch_job *job, struct error *reterr)
{
    const uint32_t known =
        JOB_OVERLAY_ROOT | JOB_AS_ROOT | JOB_INSTALL_NETWORK | JOB_ALLOW_DEGRADED;
    int r;

    if (job->magic != JOB_MAGIC || job->version != JOB_VERSION || (job->flags & ~known))
        return error_set(reterr, ERR_PROTOCOL, "launch job of another version");
    if ((r = job_text_check(job, reterr)) < 0 || (r = job_mounts_check(job, reterr)) < 0)
        return r;
    return job_limits_check(job, reterr);
}

int keeper_request_check(const struct keeper_request *req, size_t len, struct error *reterr)
{
    if (len != sizeof(*req) || req->magic != KEEPER_MAGIC || req->op < KEEPER_INFO ||
        req->op > KEEPER_UNBUILD || req->serial == 0)
        return error_set(reterr, ERR_PROTOCOL, "malformed keeper request");
    if (!CHECK_TEXT(req, id) || !CHECK_TEXT(req, arg) || (req->id[0] && !id_check(req->id)))
        return error_set(reterr, ERR_PROTOCOL, "malformed keeper request");
    if ((req->op == KEEPER_CLOSE || req->op == KEEPER_SEAL) && !req->id[0])
        return error_set(reterr, ERR_PROTOCOL, "keeper request without an id");
    return 0;
}

int keeper_event_check(const struct keeper_event *event, size_t len, struct error *reterr)
{
    if (len != sizeof(*event) || event->magic != KEEPER_MAGIC || event->kind < KEEPER_IS ||
        event->kind > KEEPER_OOM)
        return error_set(reterr, ERR_PROTOCOL, "malformed keeper event");
    if (!CHECK_TEXT(event, id) || !CHECK_TEXT(event, text) || !CHECK_TEXT(event, cause) ||
        !CHECK_TEXT(event, pids_events) || !CHECK_TEXT(event, pids_current) ||
        !CHECK_TEXT(event, memory_current) || !CHECK_TEXT(event, memory_events))
        return error_set(reterr, ERR_PROTOCOL, "malformed keeper event");
    return 0;
}

const char *degraded_name(uint32_t bit)
{
    static const char *const names[] = {
        "one uid",
        "no memory cgroup",
        "no pids cgroup",
        "no cpu cgroup",
        "no landlock",
        "no quota",
        "no seccomp",
        "no idmapped mounts",
        "egress runs with the caller's uid",
        "no network namespace",
        "no user namespace",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (bit == 1u << i)
            return names[i];
    }
    return "unknown";
}

int egress_msg_check(const struct egress_msg *msg, size_t len, struct error *reterr)
{
    if (len != sizeof(*msg) || msg->magic != EGRESS_MAGIC || msg->op < EGRESS_ADD ||
        msg->op > EGRESS_GONE || msg->network > JOB_NETWORK_ALLOWLIST ||
        msg->port_count > JOB_PORTS || !CHECK_TEXT(msg, id) || !id_check(msg->id))
        return error_set(reterr, ERR_PROTOCOL, "malformed egress message");
    return 0;
}

static bool rules_check(const struct egress_rule *rules, uint32_t count)
{
    if (count > EGRESS_RULES)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!text_check(rules[i].host, sizeof(rules[i].host)) || !rules[i].host[0])
            return false;
    }
    return true;
}

int egress_config_check(const struct egress_config *config, struct error *reterr)
{
    if (config->magic != EGRESS_MAGIC || config->version != JOB_VERSION ||
        !CHECK_TEXT(config, proxy) || !CHECK_TEXT(config, no_proxy) ||
        !rules_check(config->allow, config->allow_count) ||
        !rules_check(config->list, config->list_count))
        return error_set(reterr, ERR_PROTOCOL, "malformed egress configuration");
    return 0;
}
