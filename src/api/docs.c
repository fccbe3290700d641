/* SPDX-License-Identifier: MIT */
/* The API's description as a page for people: nothing is loaded from anywhere, and no script runs.
 */
#include "api/describe.h"

#include "base/id.h"
#include "base/str.h"

#include <stdio.h>

enum { PAGE_MAX = 2 * MIB };

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1c2430;background:#fff}h1{margin-bottom:0}h2{margin-top:2.2rem;text-transform:"
    "capitalize;border-bottom:1px solid #d8dee6}details{border:1px solid #d8dee6;border-radius:6px;"
    "margin:.4rem 0;padding:.35rem .7rem}summary{cursor:pointer}code,pre{font:13px/1.45 "
    "ui-monospace,monospace}pre{background:#f4f6f9;padding:.7rem;overflow:auto;border-radius:4px}"
    "b{display:inline-block;min-width:4.2rem;font:600 12px ui-monospace,monospace;color:#fff;"
    "background:#57606a;border-radius:4px;text-align:center;margin-right:.5rem}.get{background:"
    "#1f6feb}.post{background:#1a7f37}.put,.patch{background:#9a6700}.delete{background:#cf222e}"
    "i{color:#57606a;font-style:normal;margin-left:.6rem}table{border-collapse:collapse;width:100%}"
    "td{border-top:1px solid #e6eaef;padding:.2rem .6rem .2rem 0;vertical-align:top}@media(prefers-"
    "color-scheme:dark){body{color:#e6edf3;background:#0d1117}h2,details,td{border-color:#30363d}"
    "pre{background:#161b22}i{color:#9198a1}a{color:#4493f8}}";

static int text_add(struct buf *b, const char *text)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    int r = 0;

    for (; *text && r == 0; text++) {
        const char *entity = NULL;

        for (size_t i = 0; i < ARRAY_LEN(entities); i++)
            entity = entities[i].c == *text ? entities[i].entity : entity;
        r = entity ? buf_append_str(b, entity) : buf_append_byte(b, (unsigned char)*text);
    }
    return r;
}

static int parameter_add(struct buf *b, const struct api_parameter *p, const char *in)
{
    int r = buf_printf(b, "<tr><td><code>%s</code><td>%s<td><code>", p->name, in);

    if (r == 0)
        r = text_add(b, p->text);
    if (r == 0)
        r = buf_append_str(b, "</code><td>");
    return r < 0 ? r : text_add(b, p->about);
}

static int parameters_add(struct buf *b, const struct api_operation *o)
{
    const char *names = o->query, *name;
    int r = buf_append_str(b, "<table>");
    size_t len;

    for (const char *at = strchr(o->path, '{'); at && r == 0; at = strchr(at + 1, '{')) {
        const struct api_parameter *p =
            api_parameter_find(api_path_parameters, at + 1, strcspn(at + 1, "}."));

        r = p ? parameter_add(b, p, "path") : 0;
    }
    while (r == 0 && (name = api_name_next(&names, &len))) {
        const struct api_parameter *p = api_parameter_find(api_query_parameters, name, len);

        r = p ? parameter_add(b, p, "query") : 0;
    }
    return r < 0 ? r : buf_append_str(b, "</table>");
}

static const char *reply_text(const struct api_operation *o)
{
    static const char *const texts[] = {
        [REPLY_EMPTY] = "nothing", [REPLY_STREAM] = "a stream of events",
        [REPLY_BYTES] = "bytes",   [REPLY_TEXT] = "text",
        [REPLY_HTML] = "a page",
    };

    return texts[o->kind] ? texts[o->kind] : "";
}

static int schema_link(struct buf *b, const char *word, const char *name)
{
    return name ? buf_printf(b, "<p>%s <a href=\"#%s\">%s</a></p>", word, name, name) : 0;
}

static int operation_write(struct buf *b, const struct api_operation *o, const char *summary)
{
    char class[8] = "";
    int r;

    for (size_t i = 0; o->method[i] && i + 1 < sizeof(class); i++)
        class[i] = (char)(o->method[i] | 0x20);
    r = buf_printf(b, "<details><summary><b class=\"%s\">%s</b><code>%s</code><i>", class,
                   o->method, o->path);
    if (r == 0)
        r = text_add(b, summary);
    if (r == 0)
        r = buf_append_str(b, "</i></summary>");
    if (r == 0)
        r = parameters_add(b, o);
    if (r == 0)
        r = schema_link(b, o->flags & OPERATION_ARRAY ? "Body: an array of" : "Body:", o->body);
    if (r == 0)
        r = schema_link(b, o->kind == REPLY_LIST ? "Answer: an array of" : "Answer:", o->reply);
    if (r == 0 && !o->reply)
        r = buf_printf(b, "<p>Answer: %s</p>", reply_text(o));
    if (r == 0 && (o->flags & OPERATION_HTML))
        r = buf_append_str(b, "<p>Or a page, for who asks for text/html</p>");
    return r < 0 ? r : buf_append_str(b, "</details>");
}

static bool tag_is(const struct api_operation *o, const char *tag, size_t len)
{
    size_t own_len;
    const char *own = api_operation_tag(o, &own_len);

    return own_len == len && memcmp(own, tag, len) == 0;
}

static bool tag_is_first(const struct api_operation *o, const char *tag, size_t len)
{
    const struct api_operation *first = api_operations;

    while (!tag_is(first, tag, len))
        first++;
    return first == o;
}

static int tag_write(const struct api *api, struct buf *b, const char *tag, size_t len)
{
    int r = buf_printf(b, "<h2>%.*s</h2>", (int)len, tag);

    for (const struct api_operation *o = api_operations; o->path && r == 0; o++) {
        const struct route_entry *route = api_operation_route(api, o);

        if (route && tag_is(o, tag, len))
            r = operation_write(b, o, route->summary);
    }
    return r;
}

static int operations_write(const struct api *api, struct buf *b)
{
    int r = 0;

    for (const struct api_operation *o = api_operations; o->path && r == 0; o++) {
        size_t len;
        const char *tag = api_operation_tag(o, &len);

        if (tag_is_first(o, tag, len))
            r = tag_write(api, b, tag, len);
    }
    return r;
}

static int schema_write(struct buf *b, const char *name, yyjson_val *schema)
{
    auto_free char *text = yyjson_val_write(schema, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
    int r = text ? buf_printf(b, "<details id=\"%s\"><summary><code>%s</code></summary><pre>", name,
                              name)
                 : -1;

    if (r == 0)
        r = text_add(b, text);
    return r < 0 ? r : buf_append_str(b, "</pre></details>");
}

static int page_write(const struct api *api, const char *nonce, struct buf *b)
{
    int r =
        buf_printf(b,
                   "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name="
                   "\"viewport\" content=\"width=device-width\"><title>sandbox-agent</title>"
                   "<style nonce=\"%s\">%s</style><h1>sandbox-agent</h1><p>Version " PACKAGE_VERSION
                   ". For programs: <a href=\"/openapi.json\">openapi.json"
                   "</a>.</p>",
                   nonce, style);

    if (r == 0 && api_has_keys(api))
        r = buf_append_str(b, "<p>A key goes into the header <code>x-api-key</code>, or is a "
                              "bearer token.</p>");
    if (r == 0)
        r = operations_write(api, b);
    if (r == 0)
        r = buf_append_str(b, "<h2>Schemas</h2>");
    for (const struct api_schema *s = api_schemas; r == 0 && s->name; s++)
        r = schema_write(b, s->name, shapes_find(api->shapes, s->name));
    return r;
}

void api_docs(struct http_request *req)
{
    char nonce[ID_LEN + 1], policy[160];
    auto_buf struct buf page;
    struct error error;

    buf_init(&page, PAGE_MAX);
    if (id_new(nonce, &error) < 0 || page_write(api_of(req), nonce, &page) < 0) {
        error_no_memory(&error);
        api_fail(req, &error);
        return;
    }
    snprintf(policy, sizeof(policy),
             "default-src 'self'; style-src 'nonce-%s'; base-uri 'none'; form-action 'none'; "
             "frame-ancestors 'none'",
             nonce);
    http_header_add(req, "Content-Security-Policy", policy);
    http_respond(req, 200, "text/html; charset=utf-8", buf_str(&page), page.len);
}
