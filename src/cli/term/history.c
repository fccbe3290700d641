/* SPDX-License-Identifier: MIT */
/* A message is appended by one write, so two programs cannot mix theirs. */
#include "cli/term/history.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* In its place: an unescaped text is never longer. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; from++) {
        if (*from == '\\' && from[1]) {
            from++;
            *to++ = *from == 'n' ? '\n' : *from;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
}

static unsigned lines_count(const char *text, size_t len)
{
    unsigned count = 0;

    for (size_t i = 0; i < len; i++)
        count += text[i] == '\n';
    return count;
}

/* Where the last `max` lines begin. */
static size_t lines_last(const char *text, size_t len, unsigned max)
{
    size_t at = len;

    while (at && (text[at - 1] != '\n' || max--))
        at--;
    return at;
}

int history_load(const char *path, unsigned max, history_entry_fn *entry, void *user,
                 struct error *reterr)
{
    auto_free char *text = NULL;
    char *at, *newline;
    size_t len, start;
    struct stat st;
    int r;

    if (stat(path, &st) < 0 && errno == ENOENT)
        return 0;
    if ((r = fd_read_file(AT_FDCWD, path, HISTORY_BYTES_MAX, &text, &len, reterr)) < 0)
        return r;
    start = lines_last(text, len, max);
    if (lines_count(text, len) > 2 * max &&
        (r = fd_write_file_atomic(AT_FDCWD, path, text + start, len - start, reterr)) < 0)
        return r;
    for (at = text + start; (newline = strchr(at, '\n')); at = newline + 1) {
        *newline = 0;
        unescape(at);
        entry(user, at);
    }
    return 0;
}

static int directory_make(const char *path, struct error *reterr)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_LEN];

    if (!slash || slash == path)
        return 0;
    if ((size_t)(slash - path) >= sizeof(directory))
        return error_set(reterr, ERR_INVALID, "the path of the history is too long");
    memcpy(directory, path, (size_t)(slash - path));
    directory[slash - path] = 0;
    return path_make_dirs(directory, 0700, reterr);
}

int history_append(const char *path, const char *text, struct error *reterr)
{
    auto_buf struct buf line;
    auto_fd int fd = -1;
    int r = directory_make(path, reterr);

    buf_init(&line, HISTORY_BYTES_MAX / 4);
    for (const char *s = text; r == 0 && *s; s++) {
        if (((*s == '\n' || *s == '\\') && buf_append_byte(&line, '\\') < 0) ||
            buf_append_byte(&line, *s == '\n' ? 'n' : (unsigned char)*s) < 0)
            return error_set(reterr, ERR_LIMIT, "the message is too long to be kept");
    }
    if (r < 0)
        return r;
    if (buf_append_byte(&line, '\n') < 0)
        return error_no_memory(reterr);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fchmod(fd, 0600) < 0)
        return error_sys(reterr, errno, "cannot write '%s'", path);
    return fd_write_full(fd, buf_str(&line), line.len, reterr);
}
