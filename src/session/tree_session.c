/* SPDX-License-Identifier: MIT */
/*
 * A tree that becomes a folder of a session. It is staged whole: beside a folder that is not there
 * yet, to become it by one rename, or inside of one that is there, to be merged into it file by
 * file at the end. An error before the merge leaves that folder as it was; one in the merge (a
 * folder in the place of a file) leaves each file as it was or as it will be, never in between.
 * Links are made last, so that nothing of the tree is ever written through one.
 */
#include "session/transfer-internal.h"

#include "base/id.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>

#define LINKS_MAX (64 * MIB) /* of text */

static struct session_path path_in(const struct session_sink *s, const char *path)
{
    return (struct session_path){s->id, s->owner, path};
}

/* ---- entries ---- */

static int file_begin(struct session_sink *s, const char *path, const struct tree_entry *e,
                      struct error *reterr)
{
    struct session_path place = path_in(s, path);
    int r = session_writer_open(s->manager, &place, (int64_t)e->size, e->executable ? 0755 : 0644,
                                &s->writer, reterr);

    s->left = e->size;
    s->files++;
    s->bytes += e->size;
    return r;
}

static int file_end(struct session_sink *s, struct error *reterr)
{
    auto_session_writer struct session_writer *w = TAKE_PTR(s->writer);

    return session_writer_commit(w, reterr);
}

static int link_note(struct session_sink *s, const struct tree_entry *e, struct error *reterr)
{
    if (buf_append(&s->links, e->path, strlen(e->path) + 1) < 0 ||
        buf_append(&s->links, e->target, strlen(e->target) + 1) < 0)
        return error_set(reterr, ERR_LIMIT, "the names of the links need too much memory");
    return 0;
}

static int entry_take(struct session_sink *s, const struct tree_entry *e, struct error *reterr)
{
    char path[TREE_PATH_MAX];
    struct session_path place = path_in(s, path);
    int r = place_join(s->stage, e->path, path, reterr);

    if (r < 0)
        return r;
    if (s->writer)
        return error_set(reterr, ERR_INTERNAL, "a file of the tree is not whole");
    if (e->type == TREE_LINK)
        return link_note(s, e, reterr);
    if (e->type == TREE_DIR)
        return session_file_mkdir(s->manager, &place, reterr);
    r = file_begin(s, path, e, reterr);
    return r == 0 && s->left == 0 ? file_end(s, reterr) : r;
}

/* What a tree may not hold is the source's fault. */
static int sink_entry(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr)
{
    struct session_sink *s = (struct session_sink *)sink;
    int r = tree_check(&s->budget, e, reterr);

    if (r < 0)
        return r;
    r = entry_take(s, e, reterr);
    s->failed = r < 0;
    return r;
}

static int data_take(struct session_sink *s, const void *data, size_t len, struct error *reterr)
{
    int r;

    if (!s->writer || len > s->left)
        return error_set(reterr, ERR_INTERNAL, "a file of the tree is longer than it was to be");
    r = session_writer_write(s->writer, data, len, reterr);
    s->left -= len;
    return r == 0 && s->left == 0 ? file_end(s, reterr) : r;
}

static int sink_data(struct tree_sink *sink, const void *data, size_t len, struct error *reterr)
{
    struct session_sink *s = (struct session_sink *)sink;
    int r = len ? data_take(s, data, len, reterr) : 0;

    s->failed = r < 0;
    return r;
}

/* ---- begin ---- */

/* Where the tree is to be: a folder to merge into, or nothing. */
static int destination_look(struct session_sink *s, const struct session_path *to,
                            struct error *reterr)
{
    struct session_file_info info;
    struct error why;
    int r = session_file_look(s->manager, to, &info, &why);

    s->merges = r == 0 && info.type == 'd';
    if (s->merges || why.sys == ENOENT)
        return 0;
    if (r == 0)
        return error_set(reterr, ERR_EXISTS, "'%.200s' is there and is no folder", to->path);
    if (reterr)
        *reterr = why;
    return r;
}

static int stage_name(struct session_sink *s, struct error *reterr)
{
    char beside[TREE_PATH_MAX], name[16 + ID_LEN], id[ID_LEN + 1];
    int r = id_new(id, reterr);

    if (r < 0)
        return r;
    memcpy(beside, s->destination, sizeof(beside));
    if (!s->merges)
        beside[MAX(place_name(beside) - beside - 1, 1)] = 0;
    snprintf(name, sizeof(name), ".stage-%s", id);
    return place_join(beside, name, s->stage, reterr);
}

int session_sink_open(struct session_sink *s, struct session_manager *m,
                      const struct session_path *to, struct error *reterr)
{
    struct session_path stage;
    int r;

    *s = (struct session_sink){.sink = {.entry = sink_entry, .data = sink_data},
                               .manager = m,
                               .id = to->id,
                               .owner = to->owner};
    buf_init(&s->links, LINKS_MAX);
    if (str_copy(s->destination, sizeof(s->destination), to->path) < 0)
        return error_set(reterr, ERR_INVALID, "the path is too long");
    r = destination_look(s, to, reterr);
    if (r == 0)
        r = stage_name(s, reterr);
    if (r < 0)
        return r;
    stage = path_in(s, s->stage);
    r = session_file_mkdir(m, &stage, reterr);
    s->staged = r == 0;
    return r;
}

/* ---- end ---- */

static int link_make(struct session_sink *s, const char *name, const char *target,
                     struct error *reterr)
{
    char path[TREE_PATH_MAX], folder[TREE_PATH_MAX];
    struct session_path place = path_in(s, path), parent = path_in(s, folder);
    struct error why;
    int r = place_join(s->stage, name, path, reterr);

    if (r < 0)
        return r;
    r = session_file_link(s->manager, &place, target, &why);
    if (r < 0 && why.sys == ENOENT) {
        memcpy(folder, path, sizeof(folder));
        folder[place_name(folder) - folder - 1] = 0;
        r = session_file_mkdir(s->manager, &parent, &why);
        if (r == 0)
            r = session_file_link(s->manager, &place, target, &why);
    }
    if (r < 0 && reterr)
        *reterr = why;
    return r;
}

static int links_make(struct session_sink *s, struct error *reterr)
{
    const char *p = s->links.data, *end = p + s->links.len;
    int r = 0;

    while (p < end && r == 0) {
        const char *target = p + strlen(p) + 1;

        r = link_make(s, p, target, reterr);
        p = target + strlen(target) + 1;
    }
    return r;
}

/* A folder that is not there yet, or empty, moves with all in it. */
static int entry_merge(void *user, const char *rel, const struct session_file_info *info,
                       struct error *reterr)
{
    struct session_sink *s = user;
    char from[TREE_PATH_MAX], to[TREE_PATH_MAX];
    struct session_path place = path_in(s, from);
    struct error why;
    int r;

    if (place_join(s->stage, rel, from, reterr) < 0 ||
        place_join(s->destination, rel, to, reterr) < 0)
        return -ERR_INVALID;
    r = session_file_rename(s->manager, &place, to, &why);
    if (r == 0)
        return SESSION_WALK_SKIP;
    if (info->type == 'd' && (why.sys == ENOTEMPTY || why.sys == EEXIST))
        return 0;
    if (why.sys == ENOTDIR || why.sys == EISDIR || why.sys == ENOTEMPTY || why.sys == EEXIST)
        return error_set(reterr, ERR_EXISTS, "'%.200s' is there and is %s folder", to,
                         info->type == 'd' ? "no" : "a");
    if (reterr)
        *reterr = why;
    return r;
}

int session_sink_finish(struct session_sink *s, struct error *reterr)
{
    struct session_path stage = path_in(s, s->stage);
    struct error why;
    int r;

    if (s->writer)
        return error_set(reterr, ERR_INTERNAL, "a file of the tree is not whole");
    r = links_make(s, reterr);
    if (r < 0)
        return r;
    if (!s->merges) {
        r = session_file_rename(s->manager, &stage, s->destination, &why);
        s->staged = r < 0;
        /* Somebody has made the folder meanwhile. */
        s->merges = r < 0 && (why.sys == ENOTEMPTY || why.sys == EEXIST);
        if (r < 0 && !s->merges && reterr)
            *reterr = why;
    }
    return s->merges ? session_walk(s->manager, &stage, entry_merge, s, reterr) : r;
}

void session_sink_close(struct session_sink *s)
{
    struct session_path stage = path_in(s, s->stage);

    session_writer_close(TAKE_PTR(s->writer));
    buf_done(&s->links);
    /* It fails only with the sandbox, where nothing stays anyway. */
    if (s->staged && session_file_remove(s->manager, &stage, true, NULL) < 0)
        s->staged = false;
}
