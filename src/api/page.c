/* SPDX-License-Identifier: MIT */
/*
 * The page has one policy: it loads from this server only. A style element that a library adds at
 * run time needs the nonce, which is new in each answer, so the page itself has no entity tag. The
 * frame that shows HTML of sandboxes has a policy that takes everything from it but scripts: no
 * origin, no network, no forms.
 */
#include "api/page.h"

#include "api/api-internal.h"
#include "api/inflate.h"
#include "base/id.h"
#include "base/str.h"
#include "wire/negotiate.h"

#include <stdio.h>

enum { NAMES_MAX = 64, INDEX_MAX = 1 << 20, POLICY_MAX = 512, ARENA_MAX = 64 << 10 };

#define INDEX "/index.html"
#define NONCE_MARK "__CSP_NONCE__"

struct page {
    struct arena arena;
    struct page_source source;
    struct route_entry routes[NAMES_MAX + 1];
    size_t count;
};

/* ---- what a file is served with ---- */

/* %1$s is the nonce. */
static const char page_policy[] =
    "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; "
    "style-src 'self' 'nonce-%1$s'; connect-src 'self'; frame-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const struct {
    const char *path, *policy;
} policies[] = {
    {"/frame.html",
     "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob: "
     "data:; style-src 'unsafe-inline' blob: data:; img-src data: blob:; media-src data: blob:; "
     "font-src data: blob:; connect-src data: blob:; worker-src blob: data:; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'self'"},
    /* Nothing that is opened by itself runs or is shown inside of another page; a worker may load
     * its parts. */
    {NULL, "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
           "frame-ancestors 'none'"},
};

static const struct {
    const char *end, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".webmanifest", "application/manifest+json"},
    {".txt", "text/plain; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".webp", "image/webp"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".woff", "font/woff"},
    {".ttf", "font/ttf"},
    {".wasm", "application/wasm"},
    {"", "application/octet-stream"},
};

static const char *type_of(const char *path)
{
    size_t i = 0;

    while (!str_ends(path, types[i].end))
        i++;
    return types[i].type;
}

static const char *policy_of(const char *path)
{
    size_t i = 0;

    while (policies[i].path && !str_eq(path, policies[i].path))
        i++;
    return policies[i].policy;
}

/* ---- the page itself ---- */

bool page_is_wanted(struct http_request *req)
{
    const char *accept = http_header(req, "Accept");
    struct preference html = accept_type(accept ? accept : "", "text/html");
    struct preference json = accept_type(accept ? accept : "", "application/json");

    http_header_add(req, "Vary", "Accept");
    /* Programs that take anything are given JSON, as ever: HTML is for who names it. */
    if (html.match < 2 || !html.quality)
        return false;
    return html.quality > json.quality ||
           (html.quality == json.quality && html.match >= json.match);
}

static int nonce_write(const char *text, const char *nonce, struct buf *ret)
{
    const char *mark;
    int r = 0;

    for (; r == 0 && (mark = strstr(text, NONCE_MARK)); text = mark + strlen(NONCE_MARK)) {
        r = buf_append(ret, text, (size_t)(mark - text));
        if (r == 0)
            r = buf_append_str(ret, nonce);
    }
    return r < 0 ? r : buf_append_str(ret, text);
}

static const char missing_page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>sandbox-agent</title>"
    "<h1>sandbox-agent</h1><p>The server runs. This program was built without its page: "
    "<code>make ui all</code> in its source directory builds both, with Node 20.19, 22.12 or "
    "newer.</p><p><a href=\"/docs\">The API</a> is here. A chat in the terminal: "
    "<code>sandbox-agent</code>.</p></html>\n";

static int page_write(const struct page *p, const char *nonce, struct buf *ret,
                      struct error *reterr)
{
    struct page_content content;
    auto_buf struct buf text;
    int r = page_content_open(&p->source, INDEX, &content, reterr);

    if (r == -ERR_NOT_FOUND)
        return buf_append_str(ret, missing_page) < 0 ? error_no_memory(reterr) : 0;
    if (r < 0)
        return r;
    buf_init(&text, INDEX_MAX);
    r = page_content_text(&content, &text, reterr);
    page_content_done(&content);
    if (r == 0 && nonce_write(buf_str(&text), nonce, ret) < 0)
        r = error_no_memory(reterr);
    return r;
}

static void headers_add(struct http_request *req, const char *policy, const char *caching)
{
    http_header_add(req, "Content-Security-Policy", policy);
    http_header_add(req, "Cache-Control", caching);
    http_header_add(req, "Referrer-Policy", "no-referrer");
}

void page_respond(const struct page *p, struct http_request *req)
{
    char nonce[ID_LEN + 1], policy[POLICY_MAX];
    auto_buf struct buf text;
    struct error error;

    buf_init(&text, INDEX_MAX);
    if (id_new(nonce, &error) < 0 || page_write(p, nonce, &text, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    snprintf(policy, sizeof(policy), page_policy, nonce);
    headers_add(req, policy, "no-cache");
    http_header_add(req, "Cross-Origin-Opener-Policy", "same-origin");
    http_respond(req, 200, type_of(INDEX), buf_str(&text), text.len);
}

/* ---- its files ---- */

/* A body on its way to a client. */
struct delivery {
    struct page_content content;
    struct inflate *unpacked; /* NULL: as it is */
    size_t sent;
};

static ssize_t delivery_read(void *user, char *ret, size_t len)
{
    struct delivery *d = user;
    size_t n = MIN(len, d->content.len - d->sent);

    if (d->unpacked)
        return inflate_read(d->unpacked, ret, len);
    memcpy(ret, (const char *)d->content.bytes + d->sent, n);
    d->sent += n;
    return (ssize_t)n;
}

static void delivery_free(void *user)
{
    struct delivery *d = user;

    if (d->unpacked)
        inflate_free(d->unpacked);
    page_content_done(&d->content);
    free(d);
}

/* Takes the content over. To a client that has it the status says so, and no body is sent. */
static void deliver(struct http_request *req, unsigned status, struct page_content *content,
                    bool packed)
{
    struct delivery *d = calloc(1, sizeof(*d));
    struct error error;
    int r = d ? 0 : error_no_memory(&error);

    if (r == 0 && content->gzip && !packed)
        r = inflate_new(content->bytes, content->len, &d->unpacked, &error);
    if (r < 0) {
        free(d);
        page_content_done(content);
        api_fail(req, &error);
        return;
    }
    d->content = *content;
    if (packed)
        http_header_add(req, "Content-Encoding", "gzip");
    http_respond_reader(req, status, type_of(http_path(req)),
                        (int64_t)(packed ? content->len : content->size),
                        &(struct http_reader){delivery_read, delivery_free, d});
}

static void on_file(struct http_request *req)
{
    const struct page *p = api_of(req)->page;
    const char *known = http_header(req, "If-None-Match");
    const char *codings = http_header(req, "Accept-Encoding"), *path = http_path(req);
    struct page_content content;
    char etag[PAGE_ETAG_LEN + 8];
    struct error error;
    bool packed;

    if (page_content_open(&p->source, path, &content, &error) < 0) {
        api_fail(req, &error);
        return;
    }
    packed = content.gzip && codings && accept_coding(codings, "gzip").quality > 0;
    snprintf(etag, sizeof(etag), "\"%s%s\"", content.etag, packed ? "-gz" : "");
    headers_add(req, policy_of(path),
                str_starts(path, "/assets/") && !p->source.dir
                    ? "public, max-age=31536000, immutable"
                    : "no-cache");
    http_header_add(req, "ETag", etag);
    if (content.gzip)
        http_header_add(req, "Vary", "Accept-Encoding");
    deliver(req, known && etag_is_known(known, etag) ? 304 : 200, &content, packed);
}

/* ---- the routes ---- */

static int route_add(void *user, const char *name, size_t len, bool is_dir, struct error *reterr)
{
    struct page *p = user;
    const char *path =
        arena_printf(&p->arena, is_dir ? "/%.*s/{file...}" : "/%.*s", (int)len, name);

    if (!path)
        return error_no_memory(reterr);
    for (size_t i = 0; i < p->count; i++) {
        if (str_eq(p->routes[i].path, path))
            return 0;
    }
    if (str_eq(path, INDEX))
        return 0;
    if (p->count == NAMES_MAX)
        return error_set(reterr, ERR_LIMIT, "the page has more than %d names at its top",
                         NAMES_MAX);
    p->routes[p->count++] = (struct route_entry){
        .method = "GET", .path = path, .summary = "A file of the page", .handler = on_file};
    return 0;
}

int page_new(const struct page_file *files, const char *dir, struct page **ret,
             struct error *reterr)
{
    struct page *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return error_no_memory(reterr);
    arena_init(&p->arena, ARENA_MAX);
    p->source = (struct page_source){.files = files, .dir = dir};
    r = page_source_names(&p->source, route_add, p, reterr);
    if (r < 0)
        page_free(p);
    else
        *ret = p;
    return r;
}

void page_free(struct page *p)
{
    if (!p)
        return;
    arena_done(&p->arena);
    free(p);
}

const struct route_entry *page_routes(const struct page *p)
{
    return p->routes;
}

bool page_is_route(const struct route_entry *route)
{
    return route && route->handler == on_file;
}
