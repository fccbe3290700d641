/* SPDX-License-Identifier: MIT */
/*
 * The list of sandboxes and their end. An end is a row of conditions that the loop comes back to:
 * processes dead, groups empty and removed, egress told, disk let go, directory removed. None of
 * them blocks; only when all hold is the slot given back and the end told.
 */
#include "launcher/sandbox.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/client.h"
#include "launcher/disk.h"
#include "launcher/egress-child.h"
#include "launcher/netlink.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* INIT_EXIT_MEMORY: how init ends when it finds the memory limit passed (guest/init/memory.h). */
enum { STEP_MS = 10, EGRESS_MS = 2000, INIT_EXIT_MEMORY = 117 };

/* The job as sent, when nobody can change it any more. */
static int job_read(int fd, struct launch_job *ret, struct error *reterr)
{
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (seals < 0 || (seals & wanted) != wanted)
        return error_set(reterr, ERR_PROTOCOL, "the launch job is not sealed");
    if (fstat(fd, &st) < 0 || st.st_size != (off_t)sizeof(*ret) ||
        pread(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret))
        return error_set(reterr, ERR_PROTOCOL, "the launch job has another size");
    return launch_job_check(ret, reterr);
}

static void fd_drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void sandbox_free(struct sandbox *s)
{
    int *const fds[] = {&s->job_fd,    &s->dir_fd,    &s->control_fd, &s->disk_fd, &s->pidfd,
                        &s->launch_fd, &s->userns_fd, &s->netns_fd,   &s->oom_fd};

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fd_drop(fds[i]);
    fd_close_all(s->listeners, s->listener_count);
    slot_close(&s->slot);
    free(s->job);
    free(s);
}

static struct sandbox *sandbox_new(void)
{
    struct sandbox *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->job_fd = s->dir_fd = s->control_fd = s->disk_fd = s->pidfd = -1;
    s->launch_fd = s->userns_fd = s->netns_fd = s->oom_fd = s->slot.fd = s->loop = -1;
    s->job = calloc(1, sizeof(*s->job));
    if (!s->job) {
        sandbox_free(s);
        return NULL;
    }
    return s;
}

struct sandbox *sandbox_find(const struct keeper *k, const char *id)
{
    struct sandbox *s = k->sandboxes;

    while (s && !str_eq(s->id, id))
        s = s->next;
    return s;
}

int sandbox_open(struct keeper *k, int job_fd, char *ret_id, struct error *reterr)
{
    struct sandbox *s = sandbox_new();
    struct error err;
    int r;

    if (!s)
        return error_no_memory(reterr);
    r = job_read(job_fd, s->job, reterr);
    if (r == 0 && sandbox_find(k, s->job->id))
        r = error_set(reterr, ERR_EXISTS, "there is a sandbox '%s' already", s->job->id);
    if (r == 0 && (s->job_fd = fcntl(job_fd, F_DUPFD_CLOEXEC, 0)) < 0)
        r = error_sys(reterr, errno, "cannot keep the launch job");
    if (r < 0) {
        sandbox_free(s);
        return r;
    }
    memcpy(s->id, s->job->id, sizeof(s->id));
    memcpy(ret_id, s->id, sizeof(s->id));
    s->next = k->sandboxes;
    k->sandboxes = s;
    /* From here on it ends by sandbox_step(), which undoes what was done and answers. */
    if (launch_start(k, s, &err) < 0)
        sandbox_fail(s, &err);
    return 0;
}

static void sandbox_end(struct sandbox *s)
{
    if (s->state < SANDBOX_ENDING)
        s->state = SANDBOX_ENDING;
}

void sandbox_fail(struct sandbox *s, const struct error *err)
{
    if (s->state == SANDBOX_STARTING && !s->failed) {
        s->failed = true;
        s->err = *err;
    }
    sandbox_end(s);
}

void sandbox_close(struct sandbox *s)
{
    struct error err;

    s->closing = true;
    error_set(&err, ERR_CANCELLED, "the sandbox was closed while it started");
    if (s->state == SANDBOX_STARTING)
        sandbox_fail(s, &err);
    sandbox_end(s);
}

bool sandbox_reaped(struct keeper *k, pid_t pid, const siginfo_t *info)
{
    for (struct sandbox *s = k->sandboxes; s; s = s->next) {
        if (s->attacher == pid) {
            launch_attached(s, info->si_code == CLD_EXITED && info->si_status == 0);
            return true;
        }
        if (s->pid == pid) {
            (void)failpoint("reap");
            s->pid = 0;
            s->exited = true;
            s->exit_code = info->si_code;
            s->exit_status = info->si_status;
            /* While it starts, its launch socket may still hold the better reason. */
            if (s->state != SANDBOX_STARTING)
                sandbox_end(s);
            return true;
        }
    }
    return false;
}

static void oom_ready(struct keeper *k, void *object, short revents)
{
    struct sandbox *s = object;
    struct keeper_event event;
    char drain[512];

    (void)revents;
    if (s->state != SANDBOX_RUNNING || s->oom)
        return;
    /* Version 2 wakes up for every kind of memory event; reading from the start arms it again. */
    (void)!pread(s->oom_fd, drain, sizeof(drain), 0);
    if (s->oom_events == POLLPRI && cgroup_oom_count(&s->groups) == 0)
        return;
    if (s->oom_events == POLLIN)
        (void)!read(s->oom_fd, drain, sizeof(uint64_t));
    s->oom = true;
    event = sandbox_event(s, KEEPER_OOM);
    clients_tell(k, &event);
    sandbox_end(s);
}

void sandboxes_watch(struct keeper *k)
{
    for (struct sandbox *s = k->sandboxes; s; s = s->next) {
        if (s->state == SANDBOX_STARTING)
            launch_watch(k, s);
        if (s->state == SANDBOX_RUNNING && s->oom_fd >= 0)
            keeper_watch(k, s->oom_fd, s->oom_events, oom_ready, s);
        if (s->state == SANDBOX_ENDING)
            keeper_wake_at(k, clock_ms() + STEP_MS);
    }
}

/* ---- the end ---- */

static bool end_processes(struct keeper *k, struct sandbox *s)
{
    (void)k;
    if (!s->killed && s->pidfd >= 0 && s->pid) {
        (void)pidfd_send_signal(s->pidfd, SIGKILL, NULL, 0);
        (void)failpoint("kill-sent");
    }
    s->killed = true;
    return !s->pid && !s->attacher;
}

static bool end_groups(struct keeper *k, struct sandbox *s)
{
    (void)k;
    if (!s->groups.count)
        return true;
    if (!cgroup_kill(&s->groups))
        return false;
    /* Asked before the group is gone: the event may not have been seen yet. */
    if (!s->failed && cgroup_oom_count(&s->groups) > 0)
        s->oom = true;
    fd_drop(&s->oom_fd);
    if (cgroup_remove(&s->groups) < 0)
        return false;
    s->groups.count = 0;
    return true;
}

static bool end_egress(struct keeper *k, struct sandbox *s)
{
    if (s->egress == EGRESS_ADDED) {
        egress_remove(k, s);
        s->egress_deadline_ms = clock_deadline(EGRESS_MS);
    }
    if (s->egress == EGRESS_REMOVING && clock_ms() < s->egress_deadline_ms)
        return false;
    fd_close_all(s->listeners, s->listener_count);
    s->listener_count = 0;
    fd_drop(&s->userns_fd);
    fd_drop(&s->netns_fd);
    return true;
}

static bool end_disk(struct keeper *k, struct sandbox *s)
{
    (void)k;
    fd_drop(&s->disk_fd);
    return s->dir_fd < 0 || disk_close(s->dir_fd, s->loop);
}

static bool end_directory(struct keeper *k, struct sandbox *s)
{
    if (s->dir_fd < 0)
        return true;
    (void)failpoint("rmdir");
    (void)sys_remove_files(s->dir_fd);
    fd_drop(&s->dir_fd);
    (void)unlinkat(k->sb_fd, s->id, AT_REMOVEDIR);
    return true;
}

static bool (*const end_steps[])(struct keeper *k, struct sandbox *s) = {
    end_processes, end_groups, end_egress, end_disk, end_directory,
};

static void cause_set(const struct sandbox *s, char *ret, size_t size)
{
    bool polled = s->exited && s->exit_code == CLD_EXITED && s->exit_status == INIT_EXIT_MEMORY;

    if (s->oom || polled)
        snprintf(ret, size, "oom");
    else if (s->closing)
        snprintf(ret, size, "closed");
    else if (s->exited && s->exit_code == CLD_EXITED)
        snprintf(ret, size, "exit:%d", s->exit_status);
    else if (s->exited)
        snprintf(ret, size, "signal:%d", s->exit_status);
    else
        snprintf(ret, size, "lost");
}

static void end_tell(struct keeper *k, struct sandbox *s)
{
    struct keeper_event failed = client_event(KEEPER_FAILED, s->id);
    struct keeper_event ended = client_event(KEEPER_ENDED, s->id);

    if (s->failed) {
        client_event_error(&failed, &s->err);
        clients_answer(k, KEEPER_OPEN, s->id, &failed);
    } else {
        error_set(&s->err, ERR_DIED, "the sandbox has ended");
        client_event_error(&failed, &s->err);
    }
    clients_answer(k, KEEPER_SEAL, s->id, &failed);
    cause_set(s, ended.cause, sizeof(ended.cause));
    if (!s->failed)
        clients_tell(k, &ended);
    clients_answer(k, KEEPER_CLOSE, s->id, &ended);
}

static void sandbox_step(struct keeper *k, struct sandbox *s)
{
    for (size_t i = 0; i < ARRAY_LEN(end_steps); i++) {
        if (!end_steps[i](k, s))
            return;
    }
    slot_close(&s->slot);
    end_tell(k, s);
    s->state = SANDBOX_GONE;
}

void sandboxes_step(struct keeper *k)
{
    for (struct sandbox **at = &k->sandboxes, *s; (s = *at);) {
        if (s->state == SANDBOX_ENDING)
            sandbox_step(k, s);
        if (s->state == SANDBOX_GONE) {
            *at = s->next;
            sandbox_free(s);
        } else {
            at = &s->next;
        }
    }
}

struct keeper_event sandbox_event(const struct sandbox *s, enum keeper_kind kind)
{
    struct keeper_event event = client_event(kind, s->id);

    event.degraded = s->degraded;
    event.pid = s->pid;
    event.slot = s->slot.number;
    event.uid = s->ids.host_user;
    cgroup_event_paths(&s->groups, &event);
    return event;
}

/* ---- the end of an install network ---- */

/* In a child, which enters the namespaces and ends; nothing of ours stays in them. */
static int routes_remove(const struct sandbox *s, struct error *reterr)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    pid_t pid = sys_clone3(&args);
    int status = 0;

    if (pid == 0)
        _exit((s->userns_fd >= 0 && setns(s->userns_fd, CLONE_NEWUSER) < 0) ||
              setns(s->netns_fd, CLONE_NEWNET) < 0 || netlink_any_ip_remove(NULL) < 0);
    if (pid < 0)
        return error_sys(reterr, errno, "cannot start a helper");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(reterr, ERR_SYSTEM, "cannot take the install network away");
    return 0;
}

int sandbox_seal(struct keeper *k, struct sandbox *s, struct error *reterr)
{
    if (s->state != SANDBOX_RUNNING)
        return error_set(reterr, ERR_DIED, "the sandbox is not running");
    s->sealing = true;
    if (s->egress == EGRESS_ADDED)
        egress_remove(k, s);
    if (s->egress == EGRESS_NONE)
        sandbox_sealed(k, s);
    return 0;
}

/* Fails closed: a sandbox whose network cannot be taken away is ended. */
void sandbox_sealed(struct keeper *k, struct sandbox *s)
{
    struct keeper_event event = client_event(KEEPER_DONE, s->id);
    struct error err;

    if (!s->sealing || s->state != SANDBOX_RUNNING)
        return;
    s->sealing = false;
    if (s->listener_count) {
        fd_close_all(s->listeners, s->listener_count);
        s->listener_count = 0;
        if (s->netns_fd >= 0 && routes_remove(s, &err) < 0) {
            event.kind = KEEPER_FAILED;
            client_event_error(&event, &err);
            sandbox_end(s);
        }
        fd_drop(&s->userns_fd);
        fd_drop(&s->netns_fd);
    }
    clients_answer(k, KEEPER_SEAL, s->id, &event);
}
