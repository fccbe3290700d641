/* SPDX-License-Identifier: MIT */
/* Files of the chat; see chat_place.h. Names are ours: nothing of a guest gets into a path. */
#include "cli/chat_place.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { FILE_MAX = 4096, DISPLAYS_MAX = 100000 };

static const char thread_file[] = "cli-thread.json";

bool chat_thread_check(const char *id)
{
    return str_check_chars(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
                           CHAT_THREAD_SIZE - 1);
}

static int path_fill(char *ret, size_t size, struct error *reterr)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int len;

    if (xdg && xdg[0] == '/')
        len = snprintf(ret, size, "%s/sandbox-agent", xdg);
    else if (home && home[0] == '/')
        len = snprintf(ret, size, "%s/.local/state/sandbox-agent", home);
    else
        return error_set(reterr, ERR_INVALID, "neither XDG_STATE_HOME nor HOME is a path");
    return (size_t)len < size ? 0 : error_set(reterr, ERR_INVALID, "the state path is too long");
}

int chat_place_open(struct chat_place *p, struct error *reterr)
{
    int r;

    *p = (struct chat_place){.dir = -1};
    if ((r = path_fill(p->path, sizeof(p->path), reterr)) < 0 ||
        (r = path_make_dirs(p->path, 0700, reterr)) < 0)
        return r;
    p->dir = path_open_dir(AT_FDCWD, p->path, reterr);
    return MIN(p->dir, 0);
}

void chat_place_done(struct chat_place *p)
{
    if (p->dir >= 0)
        close(p->dir);
    p->dir = -1;
}

void chat_place_thread_load(const struct chat_place *p, char ret[CHAT_THREAD_SIZE])
{
    auto_free char *text = NULL;
    auto_json yyjson_doc *doc = NULL;
    const char *id;
    size_t len;

    ret[0] = 0;
    if (fd_read_file(p->dir, thread_file, FILE_MAX, &text, &len, NULL) < 0 ||
        json_parse(text, len, &doc, NULL) < 0)
        return;
    id = json_get_str(yyjson_doc_get_root(doc), "thread_id", "");
    if (chat_thread_check(id))
        (void)!str_copy(ret, CHAT_THREAD_SIZE, id);
}

int chat_place_thread_save(const struct chat_place *p, const char *thread_id, struct error *reterr)
{
    char text[CHAT_THREAD_SIZE + 32];
    int len = snprintf(text, sizeof(text), "{\"thread_id\":\"%s\"}\n", thread_id);

    return fd_write_file_atomic(p->dir, thread_file, text, (size_t)len, reterr);
}

/* ---- displays ---- */

static int displays_open(const struct chat_place *p, const char *thread_id, struct error *reterr)
{
    char path[PATH_LEN];
    int len = snprintf(path, sizeof(path), "%s/displays/%s", p->path, thread_id);
    int r;

    if (!chat_thread_check(thread_id) || (size_t)len >= sizeof(path))
        return error_set(reterr, ERR_INVALID, "a display cannot be saved for this conversation");
    r = path_make_dirs(path, 0700, reterr);
    return r < 0 ? r : path_open_dir(AT_FDCWD, path, reterr);
}

int chat_place_display_create(const struct chat_place *p, const char *thread_id, const char *suffix,
                              char ret[PATH_LEN], struct error *reterr)
{
    auto_fd int dir = displays_open(p, thread_id, reterr);
    char name[64];

    if (dir < 0)
        return dir;
    for (unsigned i = 1; i < DISPLAYS_MAX; i++) {
        int fd, len;

        snprintf(name, sizeof(name), "%03u.%s", i, suffix);
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            return error_sys(reterr, errno, "cannot write a display below '%s'", p->path);
        len = snprintf(ret, PATH_LEN, "%s/displays/%s/%s", p->path, thread_id, name);
        if (len < PATH_LEN)
            return fd;
        close(fd);
        return error_set(reterr, ERR_INVALID, "the path of a display is too long");
    }
    return error_set(reterr, ERR_LIMIT, "there are too many displays in '%s'", p->path);
}
