/* SPDX-License-Identifier: MIT */
/*
 * Paths as text. What may be imported, exported and downloaded is decided on normal paths, and the
 * same normal path is what is opened then, so no second reading of it can differ.
 */
#include "session/transfer-internal.h"

#include "base/str.h"

#include <stdio.h>

static int component_add(char *ret, size_t *len, const char *name, size_t n)
{
    if (n == 0 || (n == 1 && name[0] == '.'))
        return 0;
    if (n == 2 && name[0] == '.' && name[1] == '.') {
        if (*len == 0)
            return -1;
        while (ret[*len - 1] != '/')
            *len -= 1;
        *len -= 1;
        return 0;
    }
    if (*len + 1 + n >= TREE_PATH_MAX)
        return -1;
    ret[(*len)++] = '/';
    memcpy(ret + *len, name, n);
    *len += n;
    return 0;
}

static int path_add(char *ret, size_t *len, const char *path)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");

        if (component_add(ret, len, p, n) < 0)
            return -1;
        p += n + (p[n] == '/');
    }
    return 0;
}

int place_normalize(const char *base, const char *path, char ret[TREE_PATH_MAX],
                    struct error *reterr)
{
    size_t len = 0;

    if (!path[0])
        return error_set(reterr, ERR_INVALID, "the path is empty");
    if ((path[0] != '/' && path_add(ret, &len, base) < 0) || path_add(ret, &len, path) < 0)
        return error_set(reterr, ERR_INVALID, "the path '%.200s' leaves '/' or is too long", path);
    if (len == 0)
        ret[len++] = '/';
    ret[len] = 0;
    return 0;
}

bool place_is_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);

    if (len == 1)
        return true; /* "/" */
    return strncmp(path, dir, len) == 0 && (path[len] == 0 || path[len] == '/');
}

const char *place_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

bool place_is_folder(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    return !name[0] || str_eq(name, ".") || str_eq(name, "..");
}

int place_join(const char *dir, const char *name, char ret[TREE_PATH_MAX], struct error *reterr)
{
    const char *slash = str_ends(dir, "/") || !name[0] ? "" : "/";
    int len = snprintf(ret, TREE_PATH_MAX, "%s%s%s", dir, slash, name);

    if (len < 0 || len >= TREE_PATH_MAX)
        return error_set(reterr, ERR_INVALID, "the path '%.200s' is too long", name);
    return 0;
}
