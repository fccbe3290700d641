/* SPDX-License-Identifier: MIT */
/*
 * Resources: the exported files of the owner's sessions, and displays that are kept. What is
 * unknown, of somebody else, or not exported is not found, and nothing tells which of these it was.
 */
#include "mcp/mcp-internal.h"

#include "base/base64.h"
#include "base/str.h"
#include "mcp/displays.h"
#include "mcp/fixture.h"
#include "mcp/meta.h"
#include "mcp/resource-uri.h"
#include "wire/utf8.h"

#include <stdio.h>

enum { PAGE_MAX = 200, CURSOR_MAX = 64, PIECE_BYTES = 64 * 1024 };

#define READ_MAX (16 * MIB)
#define CURSOR_PREFIX "from:"

/* ---- the list ---- */

/* One page of all there is: what comes before it is only counted. */
struct page {
    yyjson_mut_doc *doc;
    yyjson_mut_val *list;
    size_t from, count;
    struct session_info *sessions;
    size_t session_count;
    bool failed; /* out of memory */
};

/* The next entry, or NULL when it is not of this page. */
static yyjson_mut_val *page_add(struct page *p)
{
    size_t n = p->count++;

    return n >= p->from && n - p->from < PAGE_MAX ? yyjson_mut_arr_add_obj(p->doc, p->list) : NULL;
}

static void text_add(yyjson_mut_doc *doc, yyjson_mut_val *o, const char *key,
                     const struct buf *text)
{
    yyjson_mut_obj_add_val(doc, o, key, json_mut_text(doc, buf_str(text), text->len));
}

static void file_fill(struct page *p, yyjson_mut_val *o, const char *id,
                      const struct export_info *info)
{
    bool is_dir = info->type == 'd';
    const char *mime = is_dir ? "application/gzip" : resource_mime(info->path);
    auto_buf struct buf uri, name, about;

    buf_init(&uri, RESOURCE_URI_MAX);
    buf_init(&name, 4 * (size_t)TREE_PATH_MAX);
    buf_init(&about, 128);
    if (resource_uri_format(&uri, id, info->path) < 0 ||
        resource_name_format(&name, info->path) < 0 ||
        buf_printf(&about, "%s, exported by session %s",
                   is_dir ? "A folder, read as .tar.gz" : "A file", id) < 0)
        p->failed = true;
    text_add(p->doc, o, "uri", &uri);
    text_add(p->doc, o, "name", &name);
    text_add(p->doc, o, "description", &about);
    if (mime)
        yyjson_mut_obj_add_str(p->doc, o, "mimeType", mime);
    if (!is_dir)
        yyjson_mut_obj_add_uint(p->doc, o, "size", info->size);
}

static void on_export(void *user, const char *id, const struct export_info *info)
{
    struct page *p = user;
    yyjson_mut_val *o = page_add(p);

    if (o)
        file_fill(p, o, id, info);
}

static bool may_see(void *user, const char *session_id)
{
    const struct page *p = user;

    for (size_t i = 0; i < p->session_count; i++) {
        if (str_eq(p->sessions[i].id, session_id))
            return true;
    }
    return false;
}

static void on_display(void *user, const struct display *d)
{
    struct page *p = user;
    yyjson_mut_val *o = page_add(p);

    if (!o)
        return;
    yyjson_mut_obj_add_strcpy(p->doc, o, "uri", d->uri);
    yyjson_mut_obj_add_strcpy(p->doc, o, "name", d->name);
    yyjson_mut_obj_add_str(p->doc, o, "description", "An output that running code displayed");
    yyjson_mut_obj_add_strcpy(p->doc, o, "mimeType", d->mime);
    yyjson_mut_obj_add_uint(p->doc, o, "size", d->len);
}

/* A page is named by how many entries are before it. */
static int cursor_parse(const struct mcp_request *r, size_t *ret, struct error *reterr)
{
    yyjson_val *cursor = yyjson_obj_get(r->message.params, "cursor");
    auto_buf struct buf text;
    int64_t from = 0;

    *ret = 0;
    if (!cursor)
        return 0;
    buf_init(&text, CURSOR_MAX);
    if (!yyjson_is_str(cursor) ||
        base64_decode(&text, yyjson_get_str(cursor), yyjson_get_len(cursor)) < 0 ||
        !str_starts(buf_str(&text), CURSOR_PREFIX) || strlen(text.data) != text.len ||
        str_parse_int(text.data + strlen(CURSOR_PREFIX), 1, INT32_MAX, &from) < 0)
        return error_set(reterr, ERR_INVALID, "the cursor is none that this server gave");
    *ret = (size_t)from;
    return 0;
}

static int cursor_add(const struct page *p, yyjson_mut_val *result)
{
    auto_buf struct buf text, cursor;

    if (p->count <= p->from + PAGE_MAX)
        return 0;
    buf_init(&text, CURSOR_MAX);
    buf_init(&cursor, 2 * CURSOR_MAX);
    if (buf_printf(&text, CURSOR_PREFIX "%zu", p->from + PAGE_MAX) < 0 ||
        base64_encode(&cursor, text.data, text.len) < 0)
        return -1;
    text_add(p->doc, result, "nextCursor", &cursor);
    return 0;
}

static int page_fill(struct page *p, const struct mcp_server *s, struct error *reterr)
{
    int r = session_list(s->manager, s->owner, &p->sessions, &p->session_count, reterr);

    if (r == 0)
        r = session_export_list(s->manager, NULL, s->owner, on_export, p, reterr);
    return r < 0 ? r : displays_list(s->displays, may_see, on_display, p, reterr);
}

int mcp_resources_list(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                       struct error *reterr)
{
    struct page p = {.doc = doc, .list = yyjson_mut_obj_add_arr(doc, result, "resources")};
    int n = cursor_parse(r, &p.from, reterr);

    if (n < 0)
        return n;
    if (r->server->fixture && p.from == 0)
        mcp_fixture_resources_list(doc, p.list);
    n = page_fill(&p, r->server, reterr);
    free(p.sessions);
    if (n == 0 && (p.failed || cursor_add(&p, result) < 0))
        n = error_no_memory(reterr);
    return n;
}

static void template_add(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *const text[3])
{
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);

    yyjson_mut_obj_add_str(doc, o, "uriTemplate", text[0]);
    yyjson_mut_obj_add_str(doc, o, "name", text[1]);
    yyjson_mut_obj_add_str(doc, o, "description", text[2]);
}

int mcp_resources_templates(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                            struct error *reterr)
{
    static const char *const templates[][3] = {
        {"sandbox://{session_id}/files/{+path}", "exported file",
         "A file that export_files has offered, or a folder as .tar.gz; the path is absolute, "
         "without its first slash."},
        {"sandbox://{session_id}/displays/{name}", "display",
         "A plot or another output of execute_code, whole."},
    };
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, result, "resourceTemplates");

    if (yyjson_obj_get(r->message.params, "cursor"))
        return error_set(reterr, ERR_INVALID, "the cursor is none that this server gave");
    for (size_t i = 0; i < ARRAY_LEN(templates); i++)
        template_add(doc, list, templates[i]);
    if (r->server->fixture)
        mcp_fixture_templates_list(doc, list);
    return MCP_DONE;
}

/* ---- reading ---- */

static int not_found(struct mcp_request *r, const char *uri)
{
    enum { LEGACY_NOT_FOUND = -32002 };
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *data = yyjson_mut_obj(doc);

    yyjson_mut_obj_add_strcpy(doc, data, "uri", uri);
    mcp_request_fail(
        r, &(struct jsonrpc_fault){r->era == MCP_MODERN ? JSONRPC_INVALID_PARAMS : LEGACY_NOT_FOUND,
                                   "resource not found", data});
    return MCP_LATER;
}

/* Valid UTF-8 without NUL. */
static bool is_text(const char *data, size_t len)
{
    struct utf8_repair repair = {};
    auto_buf struct buf text;

    buf_init(&text, len + 4);
    return !memchr(data, 0, len) && utf8_repair_feed(&repair, data, len, &text) == 0 &&
           utf8_repair_finish(&repair, &text) == 0 && text.len == len &&
           memcmp(buf_str(&text), data, len) == 0;
}

/* What is read. `mime` NULL: what the content says. */
struct content {
    const char *uri, *mime;
    const char *data;
    size_t len;
};

static int content_add(const struct content *c, yyjson_mut_doc *doc, yyjson_mut_val *result,
                       struct error *reterr)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, result, "contents");
    yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, list);
    const char *mime = c->mime;
    bool text = (!mime || resource_mime_is_text(mime)) && is_text(c->data, c->len);
    auto_buf struct buf blob;

    yyjson_mut_obj_add_strcpy(doc, o, "uri", c->uri);
    if (!mime)
        mime = text ? "text/plain" : "application/octet-stream";
    yyjson_mut_obj_add_strcpy(doc, o, "mimeType", mime);
    if (text) {
        yyjson_mut_obj_add_val(doc, o, "text", json_mut_text(doc, c->data, c->len));
        return 0;
    }
    buf_init(&blob, 2 * DISPLAYS_BYTES);
    if (base64_encode(&blob, c->data, c->len) < 0)
        return error_no_memory(reterr);
    text_add(doc, o, "blob", &blob);
    return 0;
}

static int too_large(const struct download_info *info, struct error *reterr)
{
    if (info->size < 0)
        return error_set(
            reterr, ERR_LIMIT,
            "the folder is larger than %llu bytes as an archive, which is the limit of "
            "a resource; export fewer or single files of it",
            READ_MAX);
    return error_set(
        reterr, ERR_LIMIT,
        "the file has %lld bytes, and a resource at most %llu; export a part of it, or "
        "look into it with execute_code",
        (long long)info->size, READ_MAX);
}

static int download_pull(struct mcp_request *r, struct session_download *d,
                         const struct download_info *info, struct buf *ret, struct error *reterr)
{
    auto_free char *piece = malloc(PIECE_BYTES);
    ssize_t n = 1;

    if (!piece)
        return error_no_memory(reterr);
    if (info->size > (int64_t)READ_MAX)
        return too_large(info, reterr);
    while (n > 0) {
        if (mcp_request_is_over(r))
            return error_set(reterr, ERR_CANCELLED, "stopped on request");
        n = session_download_read(d, piece, PIECE_BYTES, reterr);
        if (n > 0 && ret->len + (size_t)n > READ_MAX)
            return too_large(info, reterr);
        if (n > 0 && buf_append(ret, piece, (size_t)n) < 0)
            return error_no_memory(reterr);
    }
    return (int)n;
}

/* Whether it looks like there was no such thing. */
static bool is_absent(int r)
{
    return r == -ERR_NOT_FOUND || r == -ERR_DENIED || r == -ERR_INVALID;
}

/* A resources/read. */
struct reading {
    struct mcp_request *request;
    const char *uri;
    struct resource_place place;
    yyjson_mut_doc *doc;
    yyjson_mut_val *result;
};

static int file_read(struct reading *g, struct error *reterr)
{
    struct mcp_server *s = g->request->server;
    const struct session_path at = {.id = g->place.id, .owner = s->owner, .path = g->place.path};
    auto_session_download struct session_download *d = NULL;
    struct download_info info;
    auto_buf struct buf data;
    int n = session_download_open(s->manager, &at, DOWNLOAD_AUTO, &info, &d, reterr);

    buf_init(&data, READ_MAX);
    if (is_absent(n))
        return not_found(g->request, g->uri);
    if (n < 0 || (n = download_pull(g->request, d, &info, &data, reterr)) < 0)
        return n;
    /* Running code may change it at any moment. */
    if (g->request->era == MCP_MODERN)
        yyjson_mut_obj_add_int(g->doc, g->result, "ttlMs", 0);
    return content_add(
        &(struct content){.uri = g->uri,
                          .mime = info.size < 0 ? info.mime : resource_mime(g->place.path),
                          .data = buf_str(&data),
                          .len = data.len},
        g->doc, g->result, reterr);
}

static int display_read(struct reading *g, struct error *reterr)
{
    struct mcp_server *s = g->request->server;
    auto_display struct display *d = displays_get(s->displays, g->uri);
    struct session_info info;

    if (!d || session_get_info(s->manager, g->place.id, s->owner, &info, NULL) < 0)
        return not_found(g->request, g->uri);
    return content_add(
        &(struct content){
            .uri = g->uri, .mime = d->mime, .data = d->len ? d->data : "", .len = d->len},
        g->doc, g->result, reterr);
}

int mcp_resources_read(struct mcp_request *r, yyjson_mut_doc *doc, yyjson_mut_val *result,
                       struct error *reterr)
{
    const char *uri = mcp_request_param(r, "uri", reterr);
    auto_free struct reading *g = malloc(sizeof(*g));

    if (!uri)
        return -ERR_INVALID;
    if (!g)
        return error_no_memory(reterr);
    *g = (struct reading){.request = r, .uri = uri, .doc = doc, .result = result};
    if (r->server->fixture && mcp_fixture_read(uri, doc, result))
        return MCP_DONE;
    if (resource_uri_parse(uri, &g->place) < 0)
        return not_found(r, uri);
    return g->place.is_display ? display_read(g, reterr) : file_read(g, reterr);
}
