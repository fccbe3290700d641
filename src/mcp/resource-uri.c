/* SPDX-License-Identifier: MIT */
/*
 * Parsing is strict: a path has one spelling up to which bytes are encoded, it is decoded once, and
 * what could be read as another path (empty components, "." and "..") names nothing. Any other
 * byte may be in a name, also one that is no UTF-8.
 */
#include "mcp/resource-uri.h"

#include "base/buf.h"
#include "base/str.h"
#include "wire/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#define SCHEME "sandbox://"

/* ---- URIs ---- */

int resource_uri_format(struct buf *ret, const char *id, const char *path)
{
    int r = buf_printf(ret, SCHEME "%s/files/", id);

    for (path += strspn(path, "/"); *path && r == 0; path++) {
        unsigned char c = (unsigned char)*path;

        r = isalnum(c) || strchr("/-._~", c) ? buf_append_byte(ret, c)
                                             : buf_printf(ret, "%%%02X", c);
    }
    return r;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One byte of the path, decoded; -1 for none. An encoded slash is none: it would be a second
 * spelling. */
static int byte_parse(const char **text)
{
    const char *s = *text;
    int high, low, byte;

    if (*s != '%') {
        *text = s + 1;
        return (unsigned char)*s > ' ' && *s != 0x7f && !strchr("?#\\\"<>", *s) ? (unsigned char)*s
                                                                                : -1;
    }
    high = hex_digit(s[1]);
    low = high < 0 ? -1 : hex_digit(s[2]);
    if (low < 0)
        return -1;
    *text = s + 3;
    byte = high << 4 | low;
    return byte && byte != '/' ? byte : -1;
}

static bool component_check(const char *start, size_t len)
{
    return len && !(len == 1 && start[0] == '.') && !(len == 2 && memcmp(start, "..", 2) == 0);
}

static bool path_check(const char *path)
{
    const char *end;
    bool ok = *path == '/';

    for (; ok && *path; path = end) {
        path++;
        end = path + strcspn(path, "/");
        ok = component_check(path, (size_t)(end - path));
    }
    return ok;
}

static int path_parse(const char *text, char ret[TREE_PATH_MAX])
{
    size_t n = 0;
    int byte;

    ret[n++] = '/';
    while (*text) {
        byte = byte_parse(&text);
        if (byte < 0 || n + 1 >= TREE_PATH_MAX)
            return -1;
        ret[n++] = (char)byte;
    }
    ret[n] = 0;
    return path_check(ret) ? 0 : -1;
}

int resource_uri_parse(const char *uri, struct resource_place *ret)
{
    size_t len = strlen(SCHEME);

    if (!str_starts(uri, SCHEME) || strlen(uri) < len + ID_LEN + 1)
        return -1;
    uri += len;
    snprintf(ret->id, sizeof(ret->id), "%.*s", ID_LEN, uri);
    uri += ID_LEN;
    if (!id_check(ret->id))
        return -1;
    ret->is_display = str_starts(uri, "/displays/");
    ret->path[0] = 0;
    if (ret->is_display)
        return 0;
    return str_starts(uri, "/files/") ? path_parse(uri + strlen("/files/"), ret->path) : -1;
}

/* ---- kinds ---- */

static const struct {
    const char *suffix, *mime;
} kinds[] = {
    {"txt", "text/plain"},
    {"log", "text/plain"},
    {"md", "text/markdown"},
    {"csv", "text/csv"},
    {"tsv", "text/tab-separated-values"},
    {"html", "text/html"},
    {"htm", "text/html"},
    {"css", "text/css"},
    {"py", "text/x-python"},
    {"r", "text/x-r"},
    {"js", "text/javascript"},
    {"mjs", "text/javascript"},
    {"ts", "text/x-typescript"},
    {"sh", "text/x-shellscript"},
    {"sql", "application/sql"},
    {"tex", "text/x-tex"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"ipynb", "application/x-ipynb+json"},
    {"geojson", "application/geo+json"},
    {"xml", "application/xml"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"toml", "application/toml"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"pdf", "application/pdf"},
    {"wav", "audio/wav"},
    {"mp3", "audio/mpeg"},
    {"ogg", "audio/ogg"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"zip", "application/zip"},
    {"gz", "application/gzip"},
    {"tgz", "application/gzip"},
    {"tar", "application/x-tar"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"parquet", "application/vnd.apache.parquet"},
    {"npy", "application/octet-stream"},
    {"npz", "application/octet-stream"},
    {"pkl", "application/octet-stream"},
    {"rds", "application/octet-stream"},
    {"bin", "application/octet-stream"},
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

const char *resource_mime(const char *path)
{
    const char *dot = strrchr(base_name(path), '.');

    for (size_t i = 0; dot && i < ARRAY_LEN(kinds); i++) {
        if (strcasecmp(dot + 1, kinds[i].suffix) == 0)
            return kinds[i].mime;
    }
    return NULL;
}

bool resource_mime_is_text(const char *mime)
{
    static const char *const texts[] = {
        "application/json", "application/jsonl", "application/xml",        "application/yaml",
        "application/toml", "application/sql",   "application/javascript", "image/svg+xml"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (str_eq(mime, texts[i]))
            return true;
    }
    return str_starts(mime, "text/") || str_ends(mime, "+json");
}

int resource_name_format(struct buf *ret, const char *path)
{
    struct utf8_repair repair = {};
    const char *name = base_name(path);

    return utf8_repair_feed(&repair, name, strlen(name), ret) < 0 ||
                   utf8_repair_finish(&repair, ret) < 0
               ? -1
               : 0;
}
