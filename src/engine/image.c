/* SPDX-License-Identifier: MIT */
/*
 * The store of images: digests, finding, listing and removing; building is in image-build.c. A
 * directory counts as an image once image.json is in it, because a build renames it into place
 * whole and last.
 */
#include "engine/image.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "engine/image-internal.h"
#include "engine/native/libexec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define RUNTIME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"

enum { DEFINITION_MAX = 1 << 20, JSON_MAX = 1 << 18, MOUNTINFO_MAX = 1 << 20 };

/* scandir()'s result, which owns its entries. */
struct names {
    struct dirent **entry;
    int count;
};

static void names_done(struct names *n)
{
    for (int i = 0; i < n->count; i++)
        free(n->entry[i]);
    free(n->entry);
}

static int entry_is_plain(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static int entry_by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* The names in a directory below `dir`, sorted by their bytes, without hidden ones. */
static int names_read(struct names *ret, int dir, const char *path, struct error *reterr)
{
    ret->count = scandirat(dir, path, &ret->entry, entry_is_plain, entry_by_bytes);
    if (ret->count < 0) {
        ret->count = 0;
        return error_sys(reterr, errno, "cannot read directory '%s'", path);
    }
    return 0;
}

int image_store_init(struct image_store *ret, const char *dir, struct error *reterr)
{
    if (str_copy(ret->dir, sizeof(ret->dir), dir) < 0)
        return error_set(reterr, ERR_INVALID, "the image directory '%s' has too long a path", dir);
    return libexec_find("images", ret->definitions, sizeof(ret->definitions), reterr);
}

static bool runtime_is_defined(int definitions, const char *name)
{
    char path[IMAGE_RUNTIME + 16];

    if (!str_check_chars(name, RUNTIME_CHARS, IMAGE_RUNTIME - 1) || str_eq(name, "common"))
        return false;
    snprintf(path, sizeof(path), "%.*s/packages", IMAGE_RUNTIME - 1, name);
    return faccessat(definitions, path, R_OK, 0) == 0;
}

int image_runtimes(const struct image_store *store, char ***ret, struct error *reterr)
{
    auto_cleanup(names_done) struct names names = {0};
    auto_fd int dir = path_open_dir(AT_FDCWD, store->definitions, reterr);
    size_t table, count = 0;
    char **list, *text;
    int r;

    if (dir < 0)
        return dir;
    if ((r = names_read(&names, dir, ".", reterr)) < 0)
        return r;
    /* One block: the pointers, then the texts they point at. */
    table = ((size_t)names.count + 1) * sizeof(*list);
    list = calloc(1, table + (size_t)names.count * IMAGE_RUNTIME);
    if (!list)
        return error_no_memory(reterr);
    text = (char *)list + table;
    for (int i = 0; i < names.count; i++) {
        if (!runtime_is_defined(dir, names.entry[i]->d_name))
            continue;
        list[count] = text + count * IMAGE_RUNTIME;
        snprintf(list[count++], IMAGE_RUNTIME, "%.31s", names.entry[i]->d_name);
    }
    *ret = list;
    return 0;
}

/* One part of a digest: what the file is called, whether it is a program, and its bytes. */
static int digest_add_file(struct sha256 *s, int dir, const char *path, struct error *reterr)
{
    auto_free char *data = NULL;
    char head[PATH_LEN];
    struct stat st;
    size_t len;
    int r;

    if (fstatat(dir, path, &st, 0) < 0)
        return error_sys(reterr, errno, "cannot read '%s'", path);
    if ((r = fd_read_file(dir, path, DEFINITION_MAX, &data, &len, reterr)) < 0)
        return r;
    snprintf(head, sizeof(head), "%s %d %zu\n", path, (st.st_mode & S_IXUSR) != 0, len);
    sha256_update(s, head, strlen(head));
    sha256_update(s, data, len);
    return 0;
}

static int digest_add_dir(struct sha256 *s, int dir, const char *name, struct error *reterr)
{
    auto_cleanup(names_done) struct names names = {0};
    int r = names_read(&names, dir, name, reterr);

    for (int i = 0; r == 0 && i < names.count; i++) {
        char path[PATH_LEN];

        r = path_join(path, sizeof(path), name, names.entry[i]->d_name, reterr);
        if (r == 0)
            r = digest_add_file(s, dir, path, reterr);
    }
    return r;
}

static int runtime_unknown(const struct image_store *store, const char *runtime,
                           struct error *reterr)
{
    auto_free char **known = NULL;
    char text[200] = "";
    size_t len = 0;

    if (image_runtimes(store, &known, reterr) < 0)
        return -ERR_INVALID;
    for (size_t i = 0; known[i] && len < sizeof(text); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ", " : "", known[i]);
    return error_set(reterr, ERR_INVALID, "unknown runtime '%.40s'; known are: %s", runtime, text);
}

int image_digest(const struct image_store *store, const char *runtime, char ret[IMAGE_DIGEST + 1],
                 struct error *reterr)
{
    auto_fd int dir = path_open_dir(AT_FDCWD, store->definitions, reterr);
    char hex[2 * SHA256_SIZE + 1];
    struct utsname host;
    struct sha256 s;
    int r;

    if (dir < 0)
        return dir;
    if (!runtime_is_defined(dir, runtime))
        return runtime_unknown(store, runtime, reterr);
    uname(&host);
    sha256_init(&s);
    sha256_update(&s, host.machine, strlen(host.machine) + 1);
    if ((r = digest_add_file(&s, dir, "build", reterr)) < 0 ||
        (r = digest_add_dir(&s, dir, "common", reterr)) < 0 ||
        (r = digest_add_dir(&s, dir, runtime, reterr)) < 0)
        return r;
    sha256_finish_hex(&s, hex);
    memcpy(ret, hex, IMAGE_DIGEST);
    ret[IMAGE_DIGEST] = 0;
    return 0;
}

int image_dir_open(const struct image_store *store, const char *runtime, bool make,
                   struct error *reterr)
{
    char path[PATH_LEN];
    int fd, r;

    if ((r = path_join(path, sizeof(path), store->dir, runtime, reterr)) < 0)
        return r;
    /* Others than the owner may pass: inside a sandbox nobody is the owner. */
    if (make && (r = path_make_dirs(path, 0755, reterr)) < 0)
        return r;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(reterr, ERR_NOT_FOUND, "there is no %s image", runtime);
    return fd < 0 ? error_sys(reterr, errno, "cannot open '%s'", path) : fd;
}

bool image_is_complete(int dir, const char *name)
{
    char path[IMAGE_NAME + 16];

    snprintf(path, sizeof(path), "%s/" IMAGE_JSON, name);
    return faccessat(dir, path, F_OK, 0) == 0;
}

int image_find(const struct image_store *store, const char *runtime, char *ret_rootfs, size_t size,
               struct error *reterr)
{
    char digest[IMAGE_DIGEST + 1];
    auto_fd int dir = -1;
    int len, r = image_digest(store, runtime, digest, reterr);

    if (r < 0)
        return r;
    dir = image_dir_open(store, runtime, /* make= */ false, reterr);
    if (dir < 0 && dir != -ERR_NOT_FOUND)
        return dir;
    if (dir < 0 || !image_is_complete(dir, digest))
        return error_set(reterr, ERR_NOT_FOUND,
                         "the %s image is not built; run: sandbox-agent image build %s", runtime,
                         runtime);
    len = snprintf(ret_rootfs, size, "%s/%s/%s/rootfs", store->dir, runtime, digest);
    if (len < 0 || (size_t)len >= size)
        return error_set(reterr, ERR_INVALID, "the image directory '%s' has too long a path",
                         store->dir);
    return 0;
}

/* Fills the fields that image.json holds. */
static int info_read(struct image_info *info, int dir, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    char path[IMAGE_NAME + 16];
    yyjson_val *root;
    size_t len;
    int r;

    snprintf(path, sizeof(path), "%s/" IMAGE_JSON, info->name);
    if ((r = fd_read_file(dir, path, JSON_MAX, &info->json, &len, reterr)) < 0)
        return r;
    if ((r = json_parse(info->json, len, &doc, reterr)) < 0)
        return error_wrap(reterr, "'%s/%s/%s'", info->runtime, info->name, IMAGE_JSON);
    root = yyjson_doc_get_root(doc);
    snprintf(info->created, sizeof(info->created), "%s", json_get_str(root, "created", ""));
    snprintf(info->version, sizeof(info->version), "%s",
             json_get_str(yyjson_obj_get(root, "versions"), info->runtime, ""));
    info->bytes = yyjson_get_uint(yyjson_obj_get(root, "bytes"));
    info->packages = yyjson_get_sint(yyjson_obj_get(root, "packages"));
    return 0;
}

static int list_grow(struct image_info **list, size_t count, struct error *reterr)
{
    void *bigger = reallocarray(*list, count + 1, sizeof(**list));

    if (!bigger)
        return error_no_memory(reterr);
    *list = bigger;
    memset(*list + count, 0, sizeof(**list));
    return 0;
}

static int list_add_runtime(const struct image_store *store, const char *runtime,
                            struct image_info **list, size_t *count, struct error *reterr)
{
    auto_cleanup(names_done) struct names names = {0};
    char digest[IMAGE_DIGEST + 1];
    auto_fd int dir = image_dir_open(store, runtime, /* make= */ false, reterr);
    int r;

    if (dir < 0)
        return dir == -ERR_NOT_FOUND ? 0 : dir;
    if ((r = image_digest(store, runtime, digest, reterr)) < 0 ||
        (r = names_read(&names, dir, ".", reterr)) < 0)
        return r;
    for (int i = 0; i < names.count; i++) {
        const char *name = names.entry[i]->d_name;
        struct image_info *info;

        if (strlen(name) >= IMAGE_NAME || !image_is_complete(dir, name))
            continue;
        if ((r = list_grow(list, *count, reterr)) < 0)
            return r;
        info = &(*list)[(*count)++];
        snprintf(info->runtime, sizeof(info->runtime), "%s", runtime);
        snprintf(info->name, sizeof(info->name), "%.63s", name);
        info->current = str_eq(name, digest);
        if ((r = info_read(info, dir, reterr)) < 0)
            return r;
    }
    return 0;
}

static int info_by_age(const void *a, const void *b)
{
    const struct image_info *x = a, *y = b;
    int r = strcmp(x->runtime, y->runtime);

    return r ? r : strcmp(y->created, x->created);
}

int image_list(const struct image_store *store, struct image_info **ret, size_t *ret_count,
               struct error *reterr)
{
    auto_free char **runtimes = NULL;
    struct image_info *list = NULL;
    size_t count = 0;
    int r = image_runtimes(store, &runtimes, reterr);

    for (size_t i = 0; r == 0 && runtimes[i]; i++)
        r = list_add_runtime(store, runtimes[i], &list, &count, reterr);
    if (r < 0) {
        image_list_free(list, count);
        return r;
    }
    if (count)
        qsort(list, count, sizeof(*list), info_by_age);
    *ret = list;
    *ret_count = count;
    return 0;
}

void image_list_free(struct image_info *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].json);
    free(list);
}

/* Whether a process has this directory as its root, directly or below an overlay. */
static bool process_uses(int proc, const char *pid, const struct stat *rootfs, const char *name)
{
    auto_free char *mounts = NULL;
    char path[64];
    struct stat st;
    size_t len;

    snprintf(path, sizeof(path), "%.20s/root", pid);
    if (fstatat(proc, path, &st, 0) == 0 && st.st_dev == rootfs->st_dev &&
        st.st_ino == rootfs->st_ino)
        return true;
    snprintf(path, sizeof(path), "%.20s/mountinfo", pid);
    return fd_read_file(proc, path, MOUNTINFO_MAX, &mounts, &len, NULL) == 0 &&
           strstr(mounts, name);
}

/* The id of a process that has the image as its root, 0 for none. */
static int image_user(int dir, const char *name)
{
    auto_cleanup(names_done) struct names pids = {0};
    auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char path[IMAGE_NAME + 32];
    struct stat rootfs;

    snprintf(path, sizeof(path), "%s/rootfs", name);
    if (proc < 0 || fstatat(dir, path, &rootfs, 0) < 0 || names_read(&pids, proc, ".", NULL) < 0)
        return 0;
    for (int i = 0; i < pids.count; i++) {
        const char *pid = pids.entry[i]->d_name;
        int64_t number;

        if (str_parse_int(pid, 1, INT32_MAX, &number) == 0 &&
            process_uses(proc, pid, &rootfs, name))
            return (int)number;
    }
    return 0;
}

int image_remove(const struct image_store *store, const char *runtime, const char *name,
                 struct error *reterr)
{
    auto_fd int dir = -1;
    char aside[IMAGE_NAME + 16];
    int pid, r;

    if (!path_is_name(runtime) || !path_is_name(name) || strlen(name) >= IMAGE_NAME)
        return error_set(reterr, ERR_NOT_FOUND, "there is no image '%s/%s'", runtime, name);
    dir = image_dir_open(store, runtime, /* make= */ false, reterr);
    if (dir < 0)
        return dir;
    if (!image_is_complete(dir, name))
        return error_set(reterr, ERR_NOT_FOUND, "there is no image '%s/%s'", runtime, name);
    /* First out of everybody's sight, so that no new user comes while we look for one. */
    snprintf(aside, sizeof(aside), IMAGE_REMOVED "%s", name);
    if (renameat(dir, name, dir, aside) < 0)
        return error_sys(reterr, errno, "cannot remove image '%s/%s'", runtime, name);
    pid = image_user(dir, aside);
    if (pid) {
        if (renameat(dir, aside, dir, name) < 0)
            return error_sys(reterr, errno, "cannot put image '%s/%s' back", runtime, name);
        return error_set(reterr, ERR_BUSY,
                         "image '%s/%s' is in use by process %d; end its sandbox first: "
                         "sandbox-agent stop",
                         runtime, name, pid);
    }
    r = path_remove_tree(dir, aside, reterr);
    return r < 0 ? error_wrap(reterr, "cannot remove image '%s/%s'", runtime, name) : 0;
}
