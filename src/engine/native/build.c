/* SPDX-License-Identifier: MIT */
/*
 * The keeper's answer comes when the builder has ended, so it is waited for on a thread of its own,
 * while the caller reads what the builder prints.
 */
#include "engine/native/build.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

struct build_call {
    struct keeper *keeper;
    const char *runtime;
    int fd; /* the builder's end of the pipe */
    int result;
    struct error error;
};

static void *call_main(void *arg)
{
    struct build_call *call = arg;

    call->result = keeper_call(
        call->keeper,
        &(struct keeper_call){
            .op = KEEPER_BUILD, .arg = call->runtime, .fd = call->fd, .deadline = CLOCK_FOREVER},
        NULL, &call->error);
    /* The last copy of our own: now the reader meets the end of the pipe. */
    close(call->fd);
    return NULL;
}

struct build_lines {
    const char *runtime;
    image_progress_fn *progress;
    void *user;
    char last[400];
};

/* Progress starts with "RUNTIME: "; the rest is the verb's own result, or its error. */
static void line_take(struct build_lines *b, const char *line)
{
    size_t len = strlen(b->runtime);

    snprintf(b->last, sizeof(b->last), "%.*s", (int)sizeof(b->last) - 1, line);
    if (b->progress && strncmp(line, b->runtime, len) == 0 && line[len] == ':')
        b->progress(b->user, line);
}

/* Until the pipe ends. */
static void lines_read(int fd, struct build_lines *b)
{
    FILE *f = fdopen(fd, "re");
    char line[512];

    if (!f) {
        close(fd);
        return;
    }
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        line_take(b, line);
    }
    fclose(f);
}

int keeper_build(struct keeper *k, const char *runtime, image_progress_fn *progress, void *user,
                 struct error *reterr)
{
    static const char prefix[] = "sandbox-agent: ";
    struct build_call call = {.keeper = k, .runtime = runtime};
    struct build_lines lines = {.runtime = runtime, .progress = progress, .user = user};
    pthread_t thread;
    int ends[2], e;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(reterr, errno, "cannot make a pipe");
    call.fd = ends[1];
    e = pthread_create(&thread, NULL, call_main, &call);
    if (e) {
        close(ends[0]);
        close(ends[1]);
        return error_sys(reterr, e, "cannot start a thread");
    }
    lines_read(ends[0], &lines);
    pthread_join(thread, NULL);
    if (call.result == 0)
        return 0;
    if (str_starts(lines.last, prefix))
        return error_set(reterr, ERR_UNAVAILABLE, "%s", lines.last + strlen(prefix));
    if (reterr)
        *reterr = call.error;
    return call.result;
}
