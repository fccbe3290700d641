/* SPDX-License-Identifier: MIT */
/*
 * What a tree may hold. The guard keeps each name as a node below its folder's node, in one
 * red-black tree: no hash that names could be chosen to collide in, and work that is linear in the
 * length of a path even where every path has 64 components.
 */
#include "session/tree.h"

#include "base/str.h"
#include "session/transfer.h"
#include "wire/record.h"

#include <inttypes.h>
#include <search.h>

enum { NAME_LEN_MAX = 255, SHOWN = 160 };

/* ---- entries ---- */

static int refuse(const struct tree_entry *e, const char *why, struct error *reterr)
{
    char shown[SHOWN];

    record_show(shown, sizeof(shown), e->path, strlen(e->path));
    return error_set(reterr, ERR_INVALID, "entry '%s' %s", shown, why);
}

static int refuse_limit(const struct tree_entry *e, uint64_t limit, const char *what,
                        struct error *reterr)
{
    char shown[SHOWN];

    record_show(shown, sizeof(shown), e->path, strlen(e->path));
    return error_set(reterr, ERR_LIMIT, "entry '%s': more than %" PRIu64 " %s", shown, limit, what);
}

static bool is_dots(const char *part, size_t len)
{
    return len <= 2 && memcmp(part, "..", len) == 0;
}

/* Each component on its own; what is wrong with one, or NULL. Counts them. */
static const char *path_problem(const char *path, size_t *ret_depth)
{
    size_t depth = 0;

    if (!*path)
        return "has no name";
    if (*path == '/')
        return "has an absolute name";
    for (const char *p = path;; p++) {
        size_t len = strcspn(p, "/");

        if (len == 0)
            return "has an empty folder name in its path";
        if (is_dots(p, len))
            return "leaves its folder";
        if (len > NAME_LEN_MAX)
            return "has a name of more than 255 bytes";
        depth++;
        p += len;
        if (!*p)
            break;
    }
    *ret_depth = depth;
    return NULL;
}

/* `up` is how many folders the link is below the root. */
static const char *target_problem(const char *target, size_t up)
{
    bool named = false;

    if (!target || !*target)
        return "is a link without a target";
    if (*target == '/')
        return "is a link to an absolute path";
    if (strlen(target) >= TREE_PATH_MAX)
        return "is a link whose target is too long";
    for (const char *p = target; *p; p += *p == '/') {
        size_t len = strcspn(p, "/");
        bool dots = is_dots(p, len);

        p += len;
        named |= !dots;
        if (!dots || len < 2)
            continue;
        if (named)
            return "is a link with '..' behind a name";
        if (up-- == 0)
            return "is a link that leaves the tree";
    }
    return NULL;
}

int tree_check(struct tree_budget *budget, const struct tree_entry *e, struct error *reterr)
{
    size_t depth = 0;
    const char *why = path_problem(e->path, &depth);

    if (!why && e->type == TREE_LINK)
        why = target_problem(e->target, depth - 1);
    if (why)
        return refuse(e, why, reterr);
    if (strlen(e->path) >= TREE_PATH_MAX)
        return refuse_limit(e, TREE_PATH_MAX - 1, "bytes of path", reterr);
    if (depth > TREE_DEPTH_MAX)
        return refuse_limit(e, TREE_DEPTH_MAX, "components of path", reterr);
    if (++budget->entries > TREE_ENTRIES_MAX)
        return refuse_limit(e, TREE_ENTRIES_MAX, "entries in one tree", reterr);
    if (e->type != TREE_FILE)
        return 0;
    if (e->size > TREE_BYTES_MAX - budget->bytes)
        return refuse_limit(e, TREE_BYTES_MAX, "bytes in one tree", reterr);
    budget->bytes += e->size;
    return 0;
}

/* ---- the guard ---- */

struct node {
    struct node *older; /* for the end */
    const struct node *folder;
    enum tree_type type;
    size_t len;
    const char *name; /* behind the struct, or the caller's while it is looked for */
};

static int node_compare(const void *a, const void *b)
{
    const struct node *x = a, *y = b;

    if (x->folder != y->folder)
        return (uintptr_t)x->folder < (uintptr_t)y->folder ? -1 : 1;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return memcmp(x->name, y->name, x->len);
}

static struct node *node_find(struct tree_guard *g, const struct node *key)
{
    struct node **found = tfind(key, &g->names, node_compare);

    return found ? *found : NULL;
}

static struct node *node_add(struct tree_guard *g, const struct node *key)
{
    auto_free struct node *n = malloc(sizeof(*n) + key->len);

    if (!n)
        return NULL;
    *n = *key;
    n->name = memcpy(n + 1, key->name, key->len);
    n->older = g->garbage;
    if (!tsearch(n, &g->names, node_compare))
        return NULL;
    return g->garbage = TAKE_PTR(n);
}

/* A folder that no entry has named yet is passed on like one that was. */
static int folder_imply(struct tree_guard *g, const struct tree_entry *e, size_t len,
                        struct error *reterr)
{
    auto_free char *path = strndup(e->path, len);
    const struct tree_entry folder = {.type = TREE_DIR, .path = path, .mtime_ms = e->mtime_ms};
    int r;

    if (!path)
        return error_no_memory(reterr);
    r = tree_check(&g->budget, &folder, reterr);
    return r < 0 ? r : g->to->entry(g->to, &folder, reterr);
}

/* Walks to the entry's folder, which comes into being where it was not named. */
static int folder_enter(struct tree_guard *g, const struct tree_entry *e, struct node *ret_key,
                        struct error *reterr)
{
    struct node key = {.type = TREE_DIR, .name = e->path};

    for (const char *end; (end = strchr(key.name, '/')); key.name = end + 1) {
        struct node *folder;

        key.len = (size_t)(end - key.name);
        folder = node_find(g, &key);
        if (folder && folder->type != TREE_DIR)
            return refuse(e, folder->type == TREE_LINK ? "is below a link" : "is below a file",
                          reterr);
        if (!folder) {
            int r = folder_imply(g, e, (size_t)(end - e->path), reterr);

            if (r < 0)
                return r;
            folder = node_add(g, &key);
        }
        if (!folder)
            return error_no_memory(reterr);
        key.folder = folder;
    }
    key.len = strlen(key.name);
    *ret_key = key;
    return 0;
}

/*
 * On Linux these are plain names, but whoever wrote them meant a place outside, and so would
 * another system that the tree goes to later.
 */
static bool is_foreign_escape(const char *path)
{
    char drive = (char)(path[0] | 0x20);

    if (path[0] == '\\' ||
        (drive >= 'a' && drive <= 'z' && path[1] == ':' && (path[2] == '\\' || path[2] == '/')))
        return true;
    if (!strchr(path, '\\'))
        return false;
    for (const char *p = path; *p; p += *p != 0) {
        size_t len = strcspn(p, "/\\");

        if (len == 2 && is_dots(p, len))
            return true;
        p += len;
    }
    return false;
}

/* The last component: new, or a folder that is named again. 1 when there is nothing to pass on. */
static int name_take(struct tree_guard *g, const struct tree_entry *e, struct error *reterr)
{
    struct node key = {};
    struct node *old;
    int r = folder_enter(g, e, &key, reterr);

    if (r < 0)
        return r;
    old = node_find(g, &key);
    if (old && old->type == TREE_DIR && e->type == TREE_DIR)
        return 1;
    if (old)
        return refuse(e, old->type == e->type ? "is there twice" : "is there as two kinds", reterr);
    key.type = e->type;
    return node_add(g, &key) ? 0 : error_no_memory(reterr);
}

static int guard_entry(struct tree_sink *sink, const struct tree_entry *e, struct error *reterr)
{
    struct tree_guard *g = (struct tree_guard *)sink;
    int r = tree_guard_finish(g, reterr);

    if (r < 0 || (r = tree_check(&g->budget, e, reterr)) < 0)
        return r;
    if (is_foreign_escape(e->path))
        return refuse(e, "leaves its folder on another system", reterr);
    r = name_take(g, e, reterr);
    if (r != 0)
        return r < 0 ? r : 0;
    g->missing = e->type == TREE_FILE ? e->size : 0;
    return g->to->entry(g->to, e, reterr);
}

static int guard_data(struct tree_sink *sink, const void *data, size_t len, struct error *reterr)
{
    struct tree_guard *g = (struct tree_guard *)sink;

    if (len > g->missing)
        return error_set(reterr, ERR_PROTOCOL, "more data than the file's size");
    g->missing -= len;
    return g->to->data(g->to, data, len, reterr);
}

int tree_guard_finish(struct tree_guard *g, struct error *reterr)
{
    return g->missing ? error_set(reterr, ERR_PROTOCOL, "less data than the file's size") : 0;
}

void tree_guard_init(struct tree_guard *g, struct tree_sink *to)
{
    *g = (struct tree_guard){.sink = {.entry = guard_entry, .data = guard_data}, .to = to};
}

static void node_keep(void *n)
{
}

void tree_guard_done(struct tree_guard *g)
{
    tdestroy(g->names, node_keep);
    g->names = NULL;
    for (struct node *n = g->garbage, *older; n; n = older) {
        older = n->older;
        free(n);
    }
    g->garbage = NULL;
}
