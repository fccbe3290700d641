/* SPDX-License-Identifier: MIT */
/* API-37: which model a run gets, and that a key goes only where its owner has it for. */
#include "api/api-internal.h"
#include "api/run_params.h"
#include "tests/lib/storetest.h"

#include <stdio.h>

struct modelstest {
    struct storetest base;
    struct api api;
    struct arena arena;
};

static void modelstest_close(struct modelstest *t)
{
    sealed_keys_clear(&t->api.keys);
    arena_done(&t->arena);
    storetest_close(&t->base);
}
#define auto_modelstest __attribute__((cleanup(modelstest_close)))

static void modelstest_open(struct modelstest *t)
{
    struct error err = {0};

    arena_init(&t->arena, MIB);
    storetest_open(&t->base);
    t->api.settings = &t->base.settings;
    t->api.store = t->base.store;
    t->base.settings.chat_model_provider = "openai";
    t->base.settings.chat_model = "server-model";
    t->base.settings.chat_model_api_key = "server-key";
    t->base.settings.chat_model_base_url = "https://server.example/v1";
    t->base.settings.private_model_hosts = "10.0.0.5, Models.lan";
    assert_ok(sealed_keys_load(&t->base.settings, &t->api.keys, &err), err);
}

static void sealed_text(struct modelstest *t, const char *text, struct buf *ret)
{
    struct error err = {0};

    buf_init(ret, MIB);
    assert_ok(sealed_seal(&t->api.keys, text, strlen(text), ret, &err), err);
}

/* As PUT /settings stores them. */
static void owner_set(struct modelstest *t, const char *owner, const char *json)
{
    auto_buf struct buf sealed;
    struct error err = {0};

    sealed_text(t, json, &sealed);
    assert_ok(store_settings_put(t->api.store, owner, buf_str(&sealed), &err), err);
}

#define OWN_OPENAI \
    "{\"chatModelProvider\":\"openai\",\"chatModelBaseUrl\":\"https://own.example/v1\"," \
    "\"chatModelApiKey\":\"own-key\",\"keyOrigin\":\"https://own.example:443\"}"
#define OWN_ANTHROPIC \
    "{\"chatModelProvider\":\"anthropic\",\"chatModel\":\"claude\",\"chatModelApiKey\":\"own-" \
    "key\"," \
    "\"keyOrigin\":\"https://api.anthropic.com:443\"}"

static const struct model_case {
    const char *own;          /* the owner's settings, NULL: none */
    const char *configurable; /* of the run; @ stands for its sealed key */
    const char *base_url, *key;
    bool public_only;
    int code; /* of the refusal; 0: none */
} model_cases[] = {
    {NULL, "{}", "https://server.example/v1", "server-key", false, 0},
    {NULL, "{\"chat_model_base_url\":\"\"}", "https://server.example/v1", "server-key", false, 0},
    /* The server's key stays at its host, whatever way another one is written. */
    {NULL, "{\"chat_model_base_url\":\"https://evil.example/v1\"}", "https://evil.example/v1", NULL,
     true, 0},
    {NULL, "{\"chat_model_base_url\":\"https://server.example.evil.example/v1\"}",
     "https://server.example.evil.example/v1", NULL, true, 0},
    {NULL, "{\"chat_model_base_url\":\"http://server.example/v1\"}", "http://server.example/v1",
     NULL, true, 0},
    {NULL, "{\"chat_model_base_url\":\"https://server.example:8443/v1\"}",
     "https://server.example:8443/v1", NULL, true, 0},
    {NULL, "{\"chat_model_base_url\":\"https://SERVER.example/other\"}",
     "https://SERVER.example/other", "server-key", true, 0},
    {NULL, "{\"chat_model_provider\":\"anthropic\",\"chat_model\":\"claude\"}", NULL, NULL, false,
     ERR_DENIED},
    {NULL,
     "{\"chat_model_provider\":\"anthropic\",\"chat_model\":\"claude\","
     "\"chat_model_base_url\":\"https://server.example/v1\"}",
     "https://server.example/v1", NULL, true, 0},
    /* A run's own key goes where the run says. */
    {NULL, "{\"chat_model_base_url\":\"https://evil.example/v1\",\"chat_model_api_key\":\"@\"}",
     "https://evil.example/v1", "run-key", true, 0},
    {NULL, "{\"chat_model_base_url\":\"https://evil.example/v1\",\"chat_model_api_key\":\"plain\"}",
     "https://evil.example/v1", NULL, true, 0},
    /* An owner's key stays at the host that the owner gave it for. */
    {OWN_OPENAI, "{}", "https://own.example/v1", "own-key", true, 0},
    {OWN_OPENAI, "{\"chat_model_base_url\":\"https://evil.example/v1\"}", "https://evil.example/v1",
     NULL, true, 0},
    {OWN_OPENAI, "{\"chat_model_base_url\":\"https://server.example/v1\"}",
     "https://server.example/v1", "server-key", true, 0},
    {OWN_ANTHROPIC, "{}", NULL, "own-key", false, 0},
    {OWN_ANTHROPIC, "{\"chat_model_provider\":\"openai\"}", "https://server.example/v1",
     "server-key", false, 0},
    /* Private addresses are the operator's to allow. */
    {NULL, "{\"chat_model_base_url\":\"http://127.0.0.1:11434\"}", NULL, NULL, false, ERR_DENIED},
    {NULL, "{\"chat_model_base_url\":\"http://169.254.169.254/latest\"}", NULL, NULL, false,
     ERR_DENIED},
    {NULL, "{\"chat_model_base_url\":\"http://[::1]/\"}", NULL, NULL, false, ERR_DENIED},
    {NULL, "{\"chat_model_base_url\":\"http://10.0.0.6/\"}", NULL, NULL, false, ERR_DENIED},
    {NULL, "{\"chat_model_base_url\":\"http://10.0.0.5/\"}", "http://10.0.0.5/", NULL, false, 0},
    {NULL, "{\"chat_model_base_url\":\"http://models.LAN/v1\"}", "http://models.LAN/v1", NULL,
     false, 0},
    {NULL, "{\"chat_model_base_url\":\"ftp://evil.example/\"}", NULL, NULL, false, ERR_INVALID},
    {NULL, "{\"chat_model_provider\":\"none\"}", NULL, NULL, false, ERR_INVALID},
};

/* The case's text with the sealed key in it. */
static void configurable_make(struct modelstest *t, const char *text, struct buf *ret)
{
    const char *at = strchr(text, '@');
    auto_buf struct buf sealed;

    sealed_text(t, "run-key", &sealed);
    buf_init(ret, MIB);
    if (!at)
        assert_int_eq(buf_append_str(ret, text), 0);
    else
        assert_int_eq(buf_printf(ret, "%.*s" RUN_SEALED "%s%s", (int)(at - text), text,
                                 buf_str(&sealed), at + 1),
                      0);
}

static void text_expect(const char *got, const char *want)
{
    assert_str_eq(got ? got : "(none)", want ? want : "(none)");
}

TEST(api_37_keys_go_where_they_were_given_for)
{
    auto_modelstest struct modelstest t = {};

    modelstest_open(&t);
    for (size_t i = 0; i < ARRAY_LEN(model_cases); i++) {
        const struct model_case *c = &model_cases[i];
        auto_buf struct buf text;
        auto_json yyjson_doc *doc = NULL;
        struct agent_model model = {};
        struct error err = {0};
        int r;

        test_note("%s", c->configurable);
        owner_set(&t, "ann", c->own ? c->own : "{}");
        configurable_make(&t, c->configurable, &text);
        assert_ok(json_parse(buf_str(&text), text.len, &doc, &err), err);
        r = api_model_resolve(&t.api, "ann", yyjson_doc_get_root(doc), &t.arena, &model, &err);
        assert_int_eq(r, -c->code);
        assert_null(strstr(err.text, "-key"));
        if (r < 0)
            continue;
        text_expect(model.model.base_url, c->base_url);
        text_expect(model.model.api_key, c->key);
        assert_int_eq(model.model.public_only, c->public_only);
    }
}

TEST(api_37_owners_do_not_share)
{
    auto_modelstest struct modelstest t = {};
    struct agent_model model = {};
    struct error err = {0};

    modelstest_open(&t);
    owner_set(&t, "ann", OWN_OPENAI);
    assert_ok(api_model_resolve(&t.api, "bob", NULL, &t.arena, &model, &err), err);
    text_expect(model.model.api_key, "server-key");
    text_expect(model.model.base_url, "https://server.example/v1");
}

TEST(api_36_settings_of_another_key_are_an_error)
{
    auto_modelstest struct modelstest t = {};
    struct agent_model model = {};
    struct error err = {0};

    modelstest_open(&t);
    assert_ok(store_settings_put(t.api.store, "ann", "gAAAAABnot-a-token", &err), err);
    assert_true(api_model_resolve(&t.api, "ann", NULL, &t.arena, &model, &err) < 0);
    if (!test_is_torture())
        assert_int_eq(err.code, ERR_DENIED);
}
