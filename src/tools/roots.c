/* SPDX-License-Identifier: MIT */
/*
 * Which folders of the host an owner's tools may read: its own one in STORAGE_DIR, never another's,
 * and those that the operator names.
 */
#include "base/path.h"
#include "base/str.h"
#include "tools/tool.h"

enum { ROOTS_MAX = 64 };

/* One item of the list, without blanks and slashes at its end; NULL with an error. */
static char *dir_parse(const char *item, size_t len, struct arena *arena, struct error *reterr)
{
    char *dir;

    while (len && item[0] == ' ')
        item++, len--;
    while (len && (item[len - 1] == ' ' || (len > 1 && item[len - 1] == '/')))
        len--;
    if (len && item[0] != '/') {
        error_set(reterr, ERR_INVALID, "IMPORT_ALLOWED_DIRS: '%.*s' is not absolute",
                  (int)MIN(len, (size_t)200), item);
        return NULL;
    }
    dir = arena_memdup(arena, item, len);
    if (!dir)
        error_no_memory(reterr);
    return dir;
}

static int allowed_add(const char *list, struct arena *arena, const char **dirs, size_t *count,
                       struct error *reterr)
{
    while (*list) {
        size_t len = strcspn(list, ",");
        char *dir = dir_parse(list, len, arena, reterr);

        if (!dir)
            return reterr ? -(int)reterr->code : -ERR_INVALID;
        if (*dir && *count == ROOTS_MAX)
            return error_set(reterr, ERR_INVALID, "IMPORT_ALLOWED_DIRS: more than %d folders",
                             ROOTS_MAX - 1);
        if (*dir)
            dirs[(*count)++] = dir;
        list += len + (list[len] == ',');
    }
    return 0;
}

int tool_roots(const struct settings *settings, const char *owner, struct arena *arena,
               struct import_roots *ret, struct error *reterr)
{
    const char **dirs = arena_alloc(arena, ROOTS_MAX * sizeof(*dirs));
    size_t count = 0;
    int r;

    if (!dirs)
        return error_no_memory(reterr);
    /* Without a folder of its own an owner would reach those of all others. */
    if (owner && path_is_name(owner)) {
        dirs[0] = arena_printf(arena, "%s/%s", settings->storage_dir, owner);
        if (!dirs[count++])
            return error_no_memory(reterr);
    }
    r = allowed_add(settings->import_allowed_dirs, arena, dirs, &count, reterr);
    if (r == 0)
        *ret = (struct import_roots){.dirs = dirs, .count = count};
    return r;
}
