/* SPDX-License-Identifier: MIT */
/* The files of a message, as clients write them at its end: a line of JSON for each, between two
 * marks. A note that is not exactly so is a part of the text, which may well be code. */
#include "llm/direct-internal.h"

#include <string.h>
#include <sys/types.h>

#include "base/str.h"

static const char mark_open[] = "<attached-files>\n", mark_close[] = "</attached-files>";

/* Without the white space at the end. */
static size_t trimmed(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    return len;
}

static bool starts_with(const char *text, size_t len, const char *mark)
{
    return len >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0;
}

/* The last line that is the opening mark; -1 when there is none. */
static ssize_t note_find(const char *text, size_t len)
{
    ssize_t found = -1;

    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);

        if (starts_with(text + at, len - at, mark_open))
            found = (ssize_t)at;
        at = end ? (size_t)(end - text) + 1 : len;
    }
    return found;
}

/* One line. 0: it is none of a file. */
static int file_take(const char *line, size_t len, struct arena *arena, struct direct_files *ret)
{
    auto_json yyjson_doc *doc = NULL;
    const char *path;

    if (json_parse(line, len, &doc, NULL) < 0)
        return 0;
    path = json_get_str(yyjson_doc_get_root(doc), "path", "");
    if (!*path)
        return 0;
    if (ret->count == DIRECT_FILES_MAX)
        return 1;
    ret->paths[ret->count] = arena_strdup(arena, path);
    return ret->paths[ret->count++] ? 1 : -1;
}

static int lines_take(const char *text, size_t len, struct arena *arena, struct direct_files *ret)
{
    size_t before = ret->count;
    int r;

    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t next = end ? (size_t)(end - text) : len;

        if ((r = file_take(text + at, next - at, arena, ret)) <= 0) {
            ret->count = before;
            return r;
        }
        at = next + 1;
    }
    return 1;
}

int direct_files_find(const char *text, struct arena *arena, struct direct_files *ret,
                      size_t *ret_len)
{
    size_t len = trimmed(text, strlen(text)), close = strlen(mark_close);
    ssize_t open;
    size_t first;
    int r;

    *ret_len = strlen(text);
    if (len < close || memcmp(text + len - close, mark_close, close) != 0)
        return 0;
    len -= close;
    open = note_find(text, len);
    if (open < 0 || text[len - 1] != '\n')
        return 0;
    first = (size_t)open + strlen(mark_open);
    r = lines_take(text + first, len - first, arena, ret);
    if (r > 0)
        *ret_len = trimmed(text, (size_t)open);
    return MIN(r, 0);
}
