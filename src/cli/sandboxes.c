/* SPDX-License-Identifier: MIT */
/* Asks each live keeper of the state directory. A keeper answers whoever may open its directory,
 * that is its own user. */
#include "cli/sandboxes.h"

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "engine/native/instance.h"
#include "engine/native/keeper.h"

#include <fcntl.h>

enum { CALL_MS = 30000, ROWS_MAX = 100000 };

struct reader {
    struct sandbox_table *table;
    const char *instance;
};

static void event_ignore(void *user, const struct keeper_event *event)
{
}

static void lost_ignore(void *user)
{
}

static const struct keeper_handlers no_handlers = {.on_event = event_ignore,
                                                   .on_lost = lost_ignore};

static struct sandbox_row *row_add(struct sandbox_table *t)
{
    if (t->count == ROWS_MAX)
        return NULL;
    if (t->count == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 16;
        struct sandbox_row *grown = realloc(t->rows, cap * sizeof(*grown));

        if (!grown)
            return NULL;
        t->rows = grown;
        t->cap = cap;
    }
    return &t->rows[t->count++];
}

static void on_sandbox(void *user, const struct keeper_event *event, int job_fd)
{
    struct reader *reader = user;
    auto_fd int fd = job_fd;
    struct sandbox_row *row = row_add(reader->table);

    if (!row)
        return;
    row->event = *event;
    if (str_copy(row->instance, sizeof(row->instance), reader->instance) < 0 || fd < 0 ||
        pread(fd, &row->job, sizeof(row->job), 0) != (ssize_t)sizeof(row->job) ||
        launch_job_check(&row->job, NULL) < 0)
        reader->table->count--;
}

static int instance_read(void *user, const char *name, int dir)
{
    struct reader reader = {.table = user, .instance = name};
    struct keeper *k = NULL;
    int r = keeper_connect(dir, &no_handlers, &k, NULL);

    if (r <= 0)
        return 0;
    r = keeper_call(k,
                    &(struct keeper_call){.op = KEEPER_LIST,
                                          .fd = -1,
                                          .deadline = clock_deadline(CALL_MS),
                                          .on_sandbox = on_sandbox,
                                          .user = &reader},
                    NULL, NULL);
    keeper_free(k);
    return 0;
}

int sandbox_table_read(const struct settings *settings, struct sandbox_table *ret,
                       struct error *reterr)
{
    int r;

    *ret = (struct sandbox_table){};
    r = instance_each(settings->state_dir, instance_read, ret, reterr);
    if (r < 0)
        sandbox_table_done(ret);
    return r;
}

void sandbox_table_done(struct sandbox_table *t)
{
    free(t->rows);
    *t = (struct sandbox_table){};
}

int sandbox_row_stop(const struct settings *settings, const struct sandbox_row *row,
                     struct error *reterr)
{
    char path[PATH_LEN], run[PATH_LEN];
    struct keeper *k = NULL;
    auto_fd int dir = -1;
    int r;

    if ((r = path_join(run, sizeof(run), settings->state_dir, "run", reterr)) < 0 ||
        (r = path_join(path, sizeof(path), run, row->instance, reterr)) < 0)
        return r;
    dir = path_open_dir(AT_FDCWD, path, reterr);
    if (dir < 0)
        return dir;
    r = keeper_connect(dir, &no_handlers, &k, reterr);
    if (r <= 0)
        return r < 0 ? r : error_set(reterr, ERR_NOT_FOUND, "sandbox %s has ended", row->job.id);
    r = keeper_call(
        k,
        &(struct keeper_call){
            .op = KEEPER_CLOSE, .id = row->job.id, .fd = -1, .deadline = clock_deadline(CALL_MS)},
        NULL, reterr);
    keeper_free(k);
    return r;
}
