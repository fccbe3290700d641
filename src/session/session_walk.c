/* SPDX-License-Identifier: MIT */
/*
 * A walk of a session's folder. Each folder is listed whole before anything else is asked for it:
 * the list arrives on the connection's thread, which must not wait for what is done with it. Code
 * in the sandbox may change the tree meanwhile; the counts keep any tree finite, and the memory
 * that its names take here.
 */
#include "session/transfer-internal.h"

#include "wire/record.h"

#include <errno.h>
#include <string.h>

#define HELD_MAX (64 * MIB) /* of names and targets at once */

/* One folder's entries, and the folders that are still to be listed: paths below the top. */
struct entries {
    struct listed {
        char *name;
        char *target;
        struct session_file_info info;
    } *items;
    size_t count, cap;
    size_t max, room; /* entries; bytes of text */
    bool failed, full;
};

struct walk {
    struct session_manager *manager;
    const struct session_path *top;
    char **folders;
    size_t count, cap;
    size_t held; /* bytes of their names */
    size_t seen; /* entries so far */
};

static void entries_done(struct entries *e)
{
    for (size_t i = 0; i < e->count; i++) {
        free(e->items[i].name);
        free(e->items[i].target);
    }
    free(e->items);
}

static int entries_grow(struct entries *e)
{
    size_t cap = e->cap ? e->cap * 2 : 64;
    struct listed *grown = e->count < e->cap ? e->items : realloc(e->items, cap * sizeof(*grown));

    if (!grown)
        return -1;
    e->cap = e->count < e->cap ? e->cap : cap;
    e->items = grown;
    return 0;
}

static void entry_note(void *user, const char *name, const struct session_file_info *info)
{
    struct entries *e = user;
    struct listed item = {.info = *info};
    size_t len = strlen(name) + (info->target ? strlen(info->target) : 0);

    e->full |= e->count >= e->max || len > e->room;
    if (e->full || e->failed)
        return;
    e->room -= len;
    item.name = strdup(name);
    item.target = info->target ? strdup(info->target) : NULL;
    item.info.target = item.target;
    e->failed = !item.name || (info->target && !item.target) || entries_grow(e) < 0;
    if (e->failed) {
        free(item.name);
        free(item.target);
    } else {
        e->items[e->count++] = item;
    }
}

static int too_much(const struct walk *w, struct error *reterr)
{
    return error_set(reterr, ERR_LIMIT, "'%.200s' holds more than %d entries, or %llu MiB of names",
                     w->top->path, TREE_ENTRIES_MAX, HELD_MAX / MIB);
}

/* A folder that is gone since it was listed is an empty one. */
static int folder_list(struct walk *w, const char *rel, struct entries *ret, struct error *reterr)
{
    char path[TREE_PATH_MAX];
    struct error why;
    int r = place_join(w->top->path, rel, path, &why);

    if (r == 0)
        r = session_file_list(w->manager, &(struct session_path){w->top->id, w->top->owner, path},
                              entry_note, ret, &why);
    if (r < 0 && rel[0] && why.sys == ENOENT)
        return 0;
    if (r < 0 && reterr)
        *reterr = why;
    if (r < 0)
        return r;
    if (ret->full)
        return too_much(w, reterr);
    return ret->failed ? error_no_memory(reterr) : 0;
}

static int folder_push(struct walk *w, const char *rel, struct error *reterr)
{
    auto_free char *copy = strdup(rel);
    size_t len = strlen(rel);

    if (len > HELD_MAX - w->held)
        return too_much(w, reterr);
    if (w->count == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 64;
        char **grown = realloc(w->folders, cap * sizeof(*grown));

        if (!grown)
            return error_no_memory(reterr);
        w->folders = grown;
        w->cap = cap;
    }
    if (!copy)
        return error_no_memory(reterr);
    w->held += len;
    w->folders[w->count++] = TAKE_PTR(copy);
    return 0;
}

/* "a/b" below the top is two deep. */
static int depth_check(const char *rel, struct error *reterr)
{
    char shown[160];
    size_t depth = 1;

    for (const char *p = rel; *p; p++)
        depth += *p == '/';
    if (depth < TREE_DEPTH_MAX)
        return 0;
    record_show(shown, sizeof(shown), rel, strlen(rel));
    return error_set(reterr, ERR_LIMIT, "what is in '%s' has more than %d components of path",
                     shown, TREE_DEPTH_MAX);
}

static int entry_visit(struct walk *w, const char *rel, const struct listed *item,
                       session_walk_fn *visit, void *user, struct error *reterr)
{
    char path[TREE_PATH_MAX];
    const char *below = item->name;
    int r = 0;

    if (rel[0]) {
        r = place_join(rel, item->name, path, reterr);
        below = path;
    }
    if (r == 0)
        r = visit(user, below, &item->info, reterr);
    if (r < 0 || r == SESSION_WALK_SKIP || item->info.type != 'd')
        return MIN(r, 0);
    r = depth_check(below, reterr);
    return r < 0 ? r : folder_push(w, below, reterr);
}

static int folder_walk(struct walk *w, const char *rel, session_walk_fn *visit, void *user,
                       struct error *reterr)
{
    auto_cleanup(entries_done) struct entries e = {.max = TREE_ENTRIES_MAX - w->seen,
                                                   .room = HELD_MAX};
    int r = folder_list(w, rel, &e, reterr);

    w->seen += e.count;
    for (size_t i = 0; i < e.count && r == 0; i++)
        r = entry_visit(w, rel, &e.items[i], visit, user, reterr);
    return r;
}

int session_walk(struct session_manager *m, const struct session_path *at, session_walk_fn *visit,
                 void *user, struct error *reterr)
{
    struct walk w = {.manager = m, .top = at};
    int r = folder_push(&w, "", reterr);

    while (r == 0 && w.count) {
        auto_free char *rel = w.folders[--w.count];

        w.held -= strlen(rel);
        r = folder_walk(&w, rel, visit, user, reterr);
    }
    while (w.count)
        free(w.folders[--w.count]);
    free(w.folders);
    return r;
}

static int size_add(void *user, const char *rel, const struct session_file_info *info,
                    struct error *reterr)
{
    if (info->type == 'f')
        *(uint64_t *)user += MIN(info->size, (uint64_t)INT64_MAX / TREE_ENTRIES_MAX);
    return 0;
}

int session_walk_size(struct session_manager *m, const struct session_path *at, uint64_t *ret,
                      struct error *reterr)
{
    *ret = 0;
    return session_walk(m, at, size_add, ret, reterr);
}

/* ---- into a sink ---- */

struct pusher {
    struct session_manager *manager;
    const struct session_path *top;
    struct tree_sink *sink;
};

static int data_put(void *user, const void *data, size_t len, struct error *reterr)
{
    struct tree_sink *sink = user;

    return sink->data(sink, data, len, reterr);
}

int session_reader_push(struct session_reader *r, const struct session_file_info *info,
                        const char *path, struct tree_sink *sink, struct error *reterr)
{
    const struct tree_entry e = {.type = TREE_FILE,
                                 .path = path,
                                 .size = info->size,
                                 .executable = info->mode & 0111,
                                 .mtime_ms = info->mtime_ms};
    int n = sink->entry(sink, &e, reterr);

    return n < 0 ? n : copy_from_reader(r, data_put, sink, reterr);
}

/* What is gone since it was listed is no entry any more. */
static int file_push(struct pusher *p, const char *rel, struct error *reterr)
{
    auto_session_reader struct session_reader *r = NULL;
    struct session_file_info info;
    char path[TREE_PATH_MAX];
    struct error why;
    int n = place_join(p->top->path, rel, path, reterr);

    if (n < 0)
        return n;
    n = session_reader_open(p->manager, &(struct session_path){p->top->id, p->top->owner, path},
                            &info, &r, &why);
    if (n < 0 && why.sys == ENOENT)
        return 0;
    if (n < 0) {
        if (reterr)
            *reterr = why;
        return n;
    }
    return session_reader_push(r, &info, rel, p->sink, reterr);
}

static int entry_push(void *user, const char *rel, const struct session_file_info *info,
                      struct error *reterr)
{
    struct pusher *p = user;
    const struct tree_entry e = {.type = info->type == 'd' ? TREE_DIR : TREE_LINK,
                                 .path = rel,
                                 .mtime_ms = info->mtime_ms,
                                 .target = info->target};
    char shown[160];

    if (info->type == 'f')
        return file_push(p, rel, reterr);
    if (info->type == 'd' || info->type == 'l')
        return p->sink->entry(p->sink, &e, reterr);
    record_show(shown, sizeof(shown), rel, strlen(rel));
    return error_set(reterr, ERR_INVALID, "'%s' is neither a file, a folder nor a link", shown);
}

/* The size is asked for first: gigabytes that are to be refused are not moved before. */
int session_walk_push(struct session_manager *m, const struct session_path *at,
                      struct tree_sink *sink, struct error *reterr)
{
    struct pusher p = {.manager = m, .top = at, .sink = sink};
    uint64_t size;
    int r = session_walk_size(m, at, &size, reterr);

    if (r == 0 && size > TREE_BYTES_MAX)
        r = error_set(reterr, ERR_LIMIT, "'%.200s' holds %llu bytes, the limit is %llu", at->path,
                      (unsigned long long)size, TREE_BYTES_MAX);
    return r < 0 ? r : session_walk(m, at, entry_push, &p, reterr);
}
