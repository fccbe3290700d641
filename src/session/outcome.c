/* SPDX-License-Identifier: MIT */
/* One sentence for each way a run can end badly: what happened, which limit it was, what to do
 * next. */
#include "session/session-internal.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>

typedef void message_fn(const struct session *s, const struct run *r, char *ret, size_t size);

/* A session may have asked for less than the operator allows, and the next one for more. */
static void message_oom(const struct session *s, const struct run *r, char *ret, size_t size)
{
    uint64_t most = session_settings(s)->memory_limit;
    char remedy[160] = "Only the operator can raise the limit: work on less data at once";

    if (s->memory_bytes < most)
        snprintf(remedy, sizeof(remedy),
                 "Create a session with a higher memory_limit, up to %llu MiB "
                 "(CONTAINER_MEMORY_LIMIT), or "
                 "work on less data at once",
                 (unsigned long long)(most / MIB));
    snprintf(ret, size,
             "the session used more than its memory limit of %llu MiB (%s) and was ended; its "
             "variables and files are lost. %s",
             (unsigned long long)(s->memory_bytes / MIB),
             s->memory_bytes < most ? "memory_limit" : "CONTAINER_MEMORY_LIMIT", remedy);
}

static void message_pids(const struct session *s, const struct run *r, char *ret, size_t size)
{
    snprintf(
        ret, size,
        "the limit of %u processes and threads (CONTAINER_PIDS_LIMIT) was met; start fewer at once",
        s->pids);
}

static void message_disk(const struct session *s, const struct run *r, char *ret, size_t size)
{
    if (s->disk_bytes) {
        snprintf(
            ret, size,
            "no space left in the sandbox: /workspace and /home/sandbox hold %llu MiB together "
            "(SANDBOX_DISK), /tmp %llu MiB (CONTAINER_TMPFS_SIZE); remove files and go on",
            (unsigned long long)(s->disk_bytes / MIB), (unsigned long long)(s->tmpfs_bytes / MIB));
        return;
    }
    snprintf(ret, size,
             "no space left in the sandbox: /workspace and /tmp hold %llu MiB each "
             "(CONTAINER_TMPFS_SIZE), /home/sandbox %llu MiB (SANDBOX_PACKAGES_SIZE); remove files "
             "and go on",
             (unsigned long long)(s->tmpfs_bytes / MIB), (unsigned long long)(s->home_bytes / MIB));
}

static void message_timeout(const struct session *s, const struct run *r, char *ret, size_t size)
{
    char after[40] = "";

    /* That of an adopted run is known to init only. */
    if (r->timeout_ms)
        snprintf(after, sizeof(after), " after %g s", (double)r->timeout_ms / 1000);
    snprintf(ret, size, "timed out%s%s", after,
             r->outcome.state_kept
                 ? ""
                 : "; the code could not be interrupted, so the kernel was started "
                   "afresh: variables are lost, files are kept");
}

static void message_user(const struct session *s, const struct run *r, char *ret, size_t size)
{
    snprintf(ret, size, "stopped on request%s",
             r->outcome.state_kept ? "" : "; the variables are lost");
}

static void message_signal(const struct session *s, const struct run *r, char *ret, size_t size)
{
    int64_t number = 0;
    const char *name;

    if (str_parse_int(r->cause + strlen("signal:"), 1, 64, &number) < 0)
        number = 0;
    name = sigabbrev_np((int)number);
    if (r->kind == RUN_COMMAND)
        snprintf(ret, size, "the command was ended by signal %d (SIG%s)", (int)number,
                 name ? name : "?");
    else
        snprintf(ret, size,
                 "the kernel was ended by signal %d (SIG%s): a crash in native code, or a kill; "
                 "variables are lost, files are kept, a fresh kernel is ready",
                 (int)number, name ? name : "?");
}

static void message_exit(const struct session *s, const struct run *r, char *ret, size_t size)
{
    const char *status = r->cause + strlen("exit:");

    if (r->kind == RUN_COMMAND)
        snprintf(ret, size, "the command ended with status %s", status);
    else
        snprintf(ret, size,
                 "the code ended its kernel with status %s; variables are lost, files are kept, a "
                 "fresh kernel is ready",
                 status);
}

static void message_protocol(const struct session *s, const struct run *r, char *ret, size_t size)
{
    snprintf(ret, size,
             "the code wrote to the kernel's own channel and the kernel was ended; variables are "
             "lost, a fresh kernel is ready");
}

static void message_expired(const struct session *s, const struct run *r, char *ret, size_t size)
{
    snprintf(ret, size, "the session's time was over; create a new one");
}

static void message_evicted(const struct session *s, const struct run *r, char *ret, size_t size)
{
    snprintf(ret, size,
             "the session was ended to make room for others (SESSION_MAX_ACTIVE_THREADS); create a "
             "new one");
}

static void message_lost(const struct session *s, const struct run *r, char *ret, size_t size)
{
    snprintf(ret, size, "the sandbox ended for an unknown reason; create a new session");
}

static const struct {
    const char *cause; /* whole, or a start that ends in ':' */
    message_fn *message;
} messages[] = {
    {"oom", message_oom},         {"pids", message_pids},         {"disk", message_disk},
    {"timeout", message_timeout}, {"user", message_user},         {"signal:", message_signal},
    {"exit:", message_exit},      {"protocol", message_protocol}, {"expired", message_expired},
    {"evicted", message_evicted}, {"lost", message_lost},
};

void outcome_message(const struct session *s, const struct run *r, char *ret, size_t size)
{
    *ret = 0;
    if (r->restarted[0])
        snprintf(
            ret, size,
            "the kernel had ended between the cells (%s), so this one ran in a fresh kernel: the "
            "variables of before are lost, files are kept",
            r->restarted);
    for (size_t i = 0; i < ARRAY_LEN(messages); i++) {
        const char *cause = messages[i].cause;

        if (str_eq(r->cause, cause) || (str_ends(cause, ":") && str_starts(r->cause, cause))) {
            messages[i].message(s, r, ret, size);
            return;
        }
    }
}
