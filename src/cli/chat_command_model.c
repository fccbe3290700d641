/* SPDX-License-Identifier: MIT */
/*
 * /model: what this chat asks in place of the server's settings. A key is asked for without being
 * shown, and is only ever named as set or not.
 */
#include "cli/chat_command.h"

#include "base/str.h"
#include "cli/term/clean.h"
#include "cli/term/text.h"
#include "llm/llm.h"
#include "wire/url.h"

#include <stdio.h>

/* ---- what is in force ---- */

static int settings_get(struct chat *c, yyjson_doc **ret, struct error *reterr)
{
    return chat_api_json(&c->api, "GET", "/settings", NULL, ret, reterr);
}

int chat_model_describe(struct chat *c, struct buf *ret, bool *ret_usable)
{
    auto_json yyjson_doc *doc = NULL;
    const struct provider_entry *entry;
    const char *model, *provider, *hint;
    struct error error;
    yyjson_val *s;

    *ret_usable = true;
    if (settings_get(c, &doc, &error) < 0)
        return buf_append_str(ret, "?");
    s = yyjson_doc_get_root(doc);
    model = c->config.model ? c->config.model : json_get_str(s, "chatModel", "?");
    provider = c->config.provider ? c->config.provider : json_get_str(s, "chatModelProvider", "?");
    hint = json_get_str(s, "chatModelApiKeyHint", "");
    entry = provider_find(provider);
    *ret_usable = !entry || !entry->needs_key || hint[0] || c->config.key;
    if (str_eq(provider, "direct"))
        return buf_append_str(ret, "direct (no model: what you type is run)");
    return buf_printf(ret, "%s (%s)", model, provider);
}

static void setting_line(struct chat *c, const char *name, const char *value, bool own)
{
    enum term_color color = term_color(c->term);
    auto_buf struct buf line, clean;

    buf_init(&line, 8192);
    buf_init(&clean, 4096);
    if (clean_line(value, 200, &clean) == 0 &&
        style_text(&line, STYLE_FAINT, color, name, strlen(name)) == 0 &&
        text_repeat(&line, " ", 12 - MIN(strlen(name), (size_t)11)) == 0 &&
        buf_append_str(&line, buf_str(&clean)) == 0 &&
        (!own || style_text(&line, STYLE_OK, color, "  (this chat)", 13) == 0))
        term_print(c->term, line.data, line.len);
}

static void model_show(struct chat *c)
{
    const struct chat_config *own = &c->config;
    auto_json yyjson_doc *doc = NULL;
    struct error error;
    yyjson_val *s;
    bool vision;

    if (settings_get(c, &doc, &error) < 0) {
        chat_complain(c, "%s", error.text);
        return;
    }
    s = yyjson_doc_get_root(doc);
    vision = own->vision >= 0 ? own->vision : json_get_bool(s, "supportsVision", true);
    setting_line(c, "model", own->model ? own->model : json_get_str(s, "chatModel", ""),
                 own->model);
    setting_line(c, "provider",
                 own->provider ? own->provider : json_get_str(s, "chatModelProvider", ""),
                 own->provider);
    setting_line(c, "key", own->key ? "set" : json_get_str(s, "chatModelApiKeyHint", ""), own->key);
    setting_line(c, "url", own->base_url ? own->base_url : json_get_str(s, "chatModelBaseUrl", ""),
                 own->base_url);
    setting_line(c, "vision", vision ? "on" : "off", own->vision >= 0);
    chat_say(c, STYLE_FAINT, "/model NAME, /model provider|key|url|vision ..., /model reset");
}

/* ---- changing ---- */

/* A key is for the one that it was typed for. */
static void key_forget(struct chat *c)
{
    if (!c->config.key)
        return;
    (void)!chat_config_set(&c->config.key, NULL);
    chat_say(c, STYLE_WARNING, "the key of this chat is forgotten; /model key asks for another");
}

static int provider_set(struct chat *c, const char *value, struct error *reterr)
{
    const struct provider_entry *entry = provider_find(value);

    if (!entry)
        return error_set(reterr, ERR_INVALID,
                         "there is no provider '%.60s': openai, anthropic, google_genai, ollama or "
                         "direct",
                         value);
    key_forget(c);
    return chat_config_set(&c->config.provider, entry->name);
}

static int url_set(struct chat *c, const char *value, struct error *reterr)
{
    struct url url;
    int r = url_parse(value, &url, reterr);

    if (r < 0)
        return r;
    key_forget(c);
    return chat_config_set(&c->config.base_url, value);
}

static int vision_set(struct chat *c, const char *value, struct error *reterr)
{
    bool on;

    c->config.vision = -1;
    if (str_eq(value, "auto"))
        return 0;
    if (str_parse_bool(value, &on) < 0)
        return error_set(reterr, ERR_INVALID, "on, off or auto");
    c->config.vision = on;
    return 0;
}

static int name_set(struct chat *c, const char *value, struct error *reterr)
{
    return chat_config_set(&c->config.model, value);
}

static int key_set(struct chat *c, const char *value, struct error *reterr)
{
    auto_buf struct buf key;
    int r;

    if (value[0])
        return error_set(reterr, ERR_INVALID,
                         "a key is not typed where it can be seen; type /model key alone");
    buf_init(&key, 4096);
    r = chat_ask_line(c, "key (not shown): ", true, &key, reterr);
    if (r <= 0)
        return r;
    r = chat_config_set(&c->config.key, key.len ? buf_str(&key) : NULL);
    if (key.data)
        explicit_bzero(key.data, key.cap);
    return r;
}

static int all_reset(struct chat *c, const char *value, struct error *reterr)
{
    chat_config_done(&c->config);
    return 0;
}

static const struct {
    const char *name;
    bool needs_value;
    int (*set)(struct chat *c, const char *value, struct error *reterr);
    const char *choices[8];
} members[] = {
    {"provider", true, provider_set, {"openai", "anthropic", "google_genai", "ollama", "direct"}},
    {"key", false, key_set, {}},
    {"url", true, url_set, {}},
    {"vision", true, vision_set, {"on", "off", "auto"}},
    {"name", true, name_set, {}},
    {"reset", false, all_reset, {}},
};

void chat_model_command(struct chat *c, char **words, size_t count)
{
    int (*set)(struct chat *c, const char *value, struct error *reterr) = name_set;
    const char *value = count > 0 ? words[0] : NULL;
    struct error error = {.text = "out of memory"};

    for (size_t i = 0; count > 0 && i < ARRAY_LEN(members); i++) {
        if (!str_eq(members[i].name, words[0]))
            continue;
        if (members[i].needs_value && count < 2) {
            chat_complain(c, "/model %s needs a value", words[0]);
            return;
        }
        set = members[i].set;
        value = count > 1 ? words[1] : "";
    }
    if (value && set(c, value, &error) < 0)
        chat_complain(c, "%s", error.text);
    else
        model_show(c);
}

void chat_model_complete(struct chat *c, size_t at, const char *word, struct chat_choices *choices)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (at == 0)
            chat_choice(choices, members[i].name);
        for (size_t n = 0; at == 1 && members[i].choices[n]; n++)
            chat_choice(choices, members[i].choices[n]);
    }
}
