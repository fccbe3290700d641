/* SPDX-License-Identifier: MIT */
/* For tests of providers: a request's body compared as JSON, and a stream decoded in every way in
 * which it can be cut into two pieces, told as one line. */
#pragma once

#include "llm/llm-internal.h"
#include "tests/lib/test.h"

#include <stdio.h>

struct llm_test {
    struct arena arena;
    struct llm_stream s;
    bool open;
};

static inline void llm_test_done(struct llm_test *t)
{
    if (t->open)
        stream_done(&t->s);
    arena_done(&t->arena);
}

#define auto_llm_test __attribute__((cleanup(llm_test_done)))

static inline void llm_test_open(struct llm_test *t, const struct provider_entry *provider,
                                 const struct llm_request *request)
{
    arena_init(&t->arena, 512 * MIB);
    stream_init(&t->s, request, provider, NULL, &t->arena);
    t->open = true;
}

/* ---- requests ---- */

static inline void llm_test_same_json(const char *got, size_t len, const char *want)
{
    auto_json yyjson_doc *a = NULL, *b = NULL;
    struct error err = {};

    assert_ok(json_parse(want, strlen(want), &b, &err), err);
    assert_ok(json_parse(got, len, &a, &err), err);
    if (!yyjson_equals(yyjson_doc_get_root(a), yyjson_doc_get_root(b)))
        test_fail(__FILE__, __LINE__, "%.*s\nis not\n%s", (int)len, got, want);
}

/* Builds, and compares the body; the path and headers are left in `t`. */
static inline void llm_test_build(struct llm_test *t, const struct provider_entry *provider,
                                  const struct llm_request *request, const char *want)
{
    struct error err = {};

    llm_test_open(t, provider, request);
    assert_ok(provider->build(request, &t->s, &err), err);
    llm_test_same_json(t->s.body.data, t->s.body.len, want);
}

/* ---- answers ---- */

static inline void llm_test_tell_parts(const struct llm_reply *reply, struct buf *ret)
{
    static const char *const kinds[] = {[LLM_TEXT] = "text",
                                        [LLM_IMAGE] = "image",
                                        [LLM_FILE] = "file",
                                        [LLM_REASONING] = "thought"};

    for (size_t i = 0; i < reply->part_count; i++) {
        const struct llm_part *p = &reply->parts[i];

        assert_int_eq(buf_printf(ret, "%s[%s]%s%s ", kinds[p->kind], p->text, p->raw ? "=" : "",
                                 p->raw ? p->raw : ""),
                      0);
    }
}

/* Ids that were made here are told as "made". */
static inline void llm_test_tell_calls(const struct llm_reply *reply, struct buf *ret)
{
    for (size_t i = 0; i < reply->call_count; i++) {
        const struct llm_tool_call *c = &reply->calls[i];
        bool made = strlen(c->id) == 29 && strncmp(c->id, "call_", 5) == 0;

        assert_int_eq(buf_printf(ret, "call[%s %s %s%s]%s%s ", made ? "made" : c->id, c->name,
                                 c->arguments, c->valid ? "" : " invalid", c->raw ? "=" : "",
                                 c->raw ? c->raw : ""),
                      0);
    }
}

static inline void llm_test_tell(const struct llm_reply *reply, struct buf *ret)
{
    const struct llm_usage *u = &reply->usage;

    llm_test_tell_parts(reply, ret);
    llm_test_tell_calls(reply, ret);
    assert_int_eq(buf_printf(ret, "%s %s %d/%d/%d/%d", reply->model_name, reply->finish_reason,
                             (int)u->input, (int)u->output, (int)u->cache_read, (int)u->reasoning),
                  0);
}

/* One way of cutting: pieces of `first` bytes, then of `piece`. Appends the reply, or the error. */
static inline void llm_test_decode(const struct provider_entry *provider,
                                   const struct llm_request *request, const char *text,
                                   size_t pieces[2], struct buf *ret)
{
    auto_llm_test struct llm_test t = {};
    size_t len = strlen(text), at = 0, n = MIN(pieces[0], len);
    struct llm_reply reply;
    struct error err = {};
    int r = 0;

    llm_test_open(&t, provider, request);
    while (r == 0 && at < len) {
        /* Of its own, so that a sanitizer sees a read behind the piece. */
        auto_free char *copy = malloc(n ? n : 1);

        assert_not_null(copy);
        memcpy(copy, text + at, n);
        r = stream_feed(&t.s, copy, n, &err);
        at += n;
        n = MIN(pieces[1], len - at);
    }
    if (r == 0)
        r = stream_feed(&t.s, NULL, 0, &err);
    if (r == 0)
        r = stream_reply(&t.s, &reply, &err);
    if (r == 0)
        llm_test_tell(&reply, ret);
    else
        assert_int_eq(buf_printf(ret, "%s%s: %s", error_entry(err.code)->name,
                                 t.s.again ? " again" : "", err.text),
                      0);
}

/* However the answer is cut, it says the same. */
static inline void llm_test_answer(const struct provider_entry *provider,
                                   const struct llm_request *request, const char *text,
                                   const char *want)
{
    size_t len = strlen(text);

    for (size_t i = 0; i <= (test_is_torture() ? 0 : len); i++) {
        /* At 0 byte by byte, else in two. */
        size_t pieces[2] = {i ? i : 1, i ? len : 1};
        auto_buf struct buf got = {.max = MIB};

        llm_test_decode(provider, request, text, pieces, &got);
        assert_str_eq(buf_str(&got), want);
    }
}
