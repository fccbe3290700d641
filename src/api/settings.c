/* SPDX-License-Identifier: MIT */
/*
 * What an owner has set: one JSON object, sealed as a whole. A key is kept with the host that it
 * was given for, and goes when the model is moved to another host without a new one.
 */
#include "api/api-internal.h"

#include "base/str.h"
#include "wire/url.h"

#include <stdio.h>

enum { TEXT_MAX = 2048, HINT_HEAD = 3, HINT_TAIL = 4, HINT_WHOLE = 8, ORIGIN_MAX = 320 };

/* How a member is called outside and in the sealed text. */
static const struct field {
    const char *name;
    bool text; /* else a bool */
} fields[] = {
    {"chatModel", true},        {"chatModelProvider", true}, {"chatModelApiKey", true},
    {"chatModelBaseUrl", true}, {"supportsVision", false},   {"networkEnabled", false},
    {"imagesToModel", false},
};

/* Whether the model sees images, as a word; the first one is "as it is known of the model". */
static const char *const vision_words[] = {"auto", "no", "yes"};

#define KEY_ORIGIN "keyOrigin" /* in the sealed text only */

/* The opened text as a document; NULL when there is none. */
static int stored_load(struct api *api, const char *owner, struct arena *arena, yyjson_doc **ret,
                       struct error *reterr)
{
    const char *sealed = NULL;
    auto_buf struct buf open;
    int r = store_settings_get(api->store, owner, arena, &sealed, reterr);

    *ret = NULL;
    if (r < 0 || !sealed)
        return r;
    buf_init(&open, MIB);
    r = sealed_open(&api->keys, sealed, strlen(sealed), -1, &open, reterr);
    if (r < 0)
        return error_set(reterr, ERR_DENIED,
                         "the stored settings cannot be opened with this ENCRYPTION_KEY; bring the "
                         "key back, or store them anew by PUT /settings with \"reset\": true");
    return json_parse(buf_str(&open), open.len, ret, reterr);
}

static int bool_of(yyjson_val *v)
{
    return yyjson_is_bool(v) ? yyjson_get_bool(v) : -1;
}

static const char *text_of(yyjson_val *root, const char *name, struct arena *arena)
{
    const char *s = json_get_str(root, name, "");

    return *s ? arena_strdup(arena, s) : NULL;
}

int api_owner_settings(struct api *api, const char *owner, struct arena *arena,
                       struct owner_settings *ret, struct error *reterr)
{
    auto_json yyjson_doc *doc = NULL;
    yyjson_val *root;
    int r = stored_load(api, owner, arena, &doc, reterr);

    if (r < 0)
        return r;
    root = yyjson_doc_get_root(doc);
    *ret = (struct owner_settings){
        .model = text_of(root, "chatModel", arena),
        .provider = text_of(root, "chatModelProvider", arena),
        .api_key = text_of(root, "chatModelApiKey", arena),
        .base_url = text_of(root, "chatModelBaseUrl", arena),
        .key_origin = text_of(root, KEY_ORIGIN, arena),
        .vision = bool_of(yyjson_obj_get(root, "supportsVision")),
        .network = bool_of(yyjson_obj_get(root, "networkEnabled")),
        .images_to_model = bool_of(yyjson_obj_get(root, "imagesToModel")),
    };
    return 0;
}

int api_network_is_off(struct api *api, const char *owner, bool *ret, struct error *reterr)
{
    struct owner_settings own = {.network = -1};
    auto_arena struct arena arena;
    int r;

    arena_init(&arena, MIB);
    r = api_owner_settings(api, owner, &arena, &own, reterr);
    *ret = own.network == 0;
    return r;
}

/* ---- what is shown ---- */

/* "" for none; all bullets up to eight characters; else three, bullets, and four. */
static const char *hint_make(struct http_request *req, const char *key)
{
    size_t len = strlen(key);
    auto_buf struct buf b;

    buf_init(&b, 3 * TEXT_MAX + 16);
    for (size_t i = 0; i < len; i++) {
        bool shown = len > HINT_WHOLE && (i < HINT_HEAD || i >= len - HINT_TAIL);

        if ((shown && (unsigned char)key[i] < 0x80 ? buf_append_byte(&b, (unsigned char)key[i])
                                                   : buf_append_str(&b, "\xe2\x80\xa2")) < 0)
            return "";
    }
    return arena_memdup(http_arena(req), buf_str(&b), b.len);
}

/* Whether a run can begin, and whose key it would send. */
static void readiness_add(struct http_request *req, const struct owner_settings *own,
                          yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    struct agent_model model = {};
    struct error error = {};
    bool ready = api_model_resolve(api_of(req), http_principal(req), NULL, http_arena(req), &model,
                                   &error) == 0;
    const char *key = own->api_key ? own->api_key : ready ? model.model.api_key : NULL;

    api_add_str(doc, root, "chatModelApiKeyHint", hint_make(req, key ? key : ""));
    yyjson_mut_obj_add_bool(doc, root, "ready", ready);
    yyjson_mut_obj_add_strcpy(doc, root, "reason", ready ? "" : error.text);
}

static void settings_reply(struct http_request *req)
{
    struct api *api = api_of(req);
    const struct settings *s = api->settings;
    struct owner_settings own = {.vision = -1, .network = -1, .images_to_model = -1};
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    struct error error;
    bool vision = true;

    if (api_owner_settings(api, http_principal(req), http_arena(req), &own, &error) < 0) {
        http_fail(req, error.code == ERR_DENIED ? 500 : 0, &error);
        return;
    }
    if (own.vision >= 0)
        vision = own.vision;
    else if (str_parse_bool(s->chat_model_supports_vision, &vision) < 0)
        vision = true;
    yyjson_mut_doc_set_root(doc, root);
    api_add_str(doc, root, "chatModel", own.model ? own.model : s->chat_model);
    api_add_str(doc, root, "chatModelProvider",
                own.provider ? own.provider : s->chat_model_provider);
    api_add_str(doc, root, "chatModelApiKey", "");
    api_add_str(doc, root, "chatModelBaseUrl",
                own.base_url ? own.base_url : s->chat_model_base_url);
    yyjson_mut_obj_add_bool(doc, root, "supportsVision", vision);
    api_add_str(doc, root, "vision", vision_words[own.vision + 1]);
    yyjson_mut_obj_add_bool(doc, root, "networkEnabled",
                            own.network >= 0 ? own.network && s->network_enabled
                                             : s->network_enabled);
    yyjson_mut_obj_add_bool(doc, root, "networkAllowed", s->network_enabled);
    yyjson_mut_obj_add_bool(doc, root, "imagesToModel", own.images_to_model != 0);
    readiness_add(req, &own, doc, root);
    api_reply_doc(req, 200, owned);
}

static void on_get(struct http_request *req)
{
    settings_reply(req);
}

/* ---- what is set ---- */

/* The place of the word in the table; -1: none is given. */
static int vision_parse(struct http_request *req, yyjson_val *body, int *ret)
{
    yyjson_val *v = yyjson_obj_get(body, "vision");

    *ret = -1;
    if (!v || yyjson_is_null(v))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(vision_words); i++) {
        if (yyjson_equals_str(v, vision_words[i])) {
            *ret = (int)i;
            return 0;
        }
    }
    return api_unprocessable(req, "'vision' has to be auto, no or yes");
}

static int fields_check(struct http_request *req, yyjson_val *body)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        yyjson_val *v = yyjson_obj_get(body, fields[i].name);

        if (!v || yyjson_is_null(v))
            continue;
        if (fields[i].text ? !yyjson_is_str(v) : !yyjson_is_bool(v))
            return api_unprocessable(req, "'%s' has to be %s", fields[i].name,
                                     fields[i].text ? "a string" : "true or false");
        if (fields[i].text && yyjson_get_len(v) > TEXT_MAX)
            return api_unprocessable(req, "'%s' is longer than %d bytes", fields[i].name, TEXT_MAX);
    }
    return 0;
}

/* The host that these settings send a key to; "" when they ask no model. */
static int origin_make(struct http_request *req, yyjson_mut_val *root, char *ret)
{
    const struct settings *s = api_of(req)->settings;
    const char *name = yyjson_mut_get_str(yyjson_mut_obj_get(root, "chatModelProvider"));
    const char *base = yyjson_mut_get_str(yyjson_mut_obj_get(root, "chatModelBaseUrl"));
    const struct provider_entry *p;
    struct error error;
    struct url url;

    p = provider_find(name && *name ? name : s->chat_model_provider);
    if (!p)
        return api_unprocessable(req, "there is no model provider '%.40s'", name ? name : "");
    if (p->answer)
        return 0;
    if ((!base || !*base) && provider_find(s->chat_model_provider) == p &&
        s->chat_model_base_url[0])
        base = s->chat_model_base_url;
    if (!base || !*base)
        base = p->base_url && *p->base_url ? p->base_url : "http://127.0.0.1";
    if (url_parse(base, &url, &error) < 0 || url_origin_format(&url, ret, ORIGIN_MAX) < 0)
        return api_unprocessable(req, "'chatModelBaseUrl' is no http or https URL");
    return 0;
}

/* The body over what is stored; an empty key is the stored one. */
static int settings_merge(struct http_request *req, yyjson_val *body, yyjson_mut_doc *doc)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    const char *old = yyjson_mut_get_str(yyjson_mut_obj_get(root, KEY_ORIGIN));
    const char *key = json_get_str(body, "chatModelApiKey", "");
    char origin[ORIGIN_MAX] = "";
    int vision;

    if (vision_parse(req, body, &vision) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        yyjson_val *v = yyjson_obj_get(body, fields[i].name);

        if (!v || yyjson_is_null(v) || (str_eq(fields[i].name, "chatModelApiKey") && !*key))
            continue;
        yyjson_mut_obj_put(root, yyjson_mut_str(doc, fields[i].name), yyjson_val_mut_copy(doc, v));
    }
    if (vision >= 0)
        yyjson_mut_obj_remove_key(root, "supportsVision");
    if (vision > 0)
        yyjson_mut_obj_add_bool(doc, root, "supportsVision", vision > 1);
    if (origin_make(req, root, origin) < 0)
        return -1;
    if (!*key && old && *origin && !str_eq(old, origin)) {
        yyjson_mut_obj_remove_key(root, "chatModelApiKey");
        yyjson_mut_obj_remove_key(root, KEY_ORIGIN);
        return 0;
    }
    if (*key)
        yyjson_mut_obj_put(root, yyjson_mut_str(doc, KEY_ORIGIN), yyjson_mut_strcpy(doc, origin));
    return 0;
}

static int settings_store(struct http_request *req, const yyjson_mut_doc *doc)
{
    struct api *api = api_of(req);
    auto_buf struct buf text;
    auto_buf struct buf sealed;
    struct error error;

    buf_init(&text, MIB);
    buf_init(&sealed, 2 * MIB);
    if (json_mut_write(doc, &text, &error) < 0 ||
        sealed_seal(&api->keys, buf_str(&text), text.len, &sealed, &error) < 0 ||
        store_settings_put(api->store, http_principal(req), buf_str(&sealed), &error) < 0)
        return api_fail(req, &error);
    return 0;
}

static void on_put(struct http_request *req)
{
    auto_json yyjson_doc *stored = NULL;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json_mut yyjson_mut_doc *owned = doc;
    struct error error;
    yyjson_val *body;

    if (api_body(req, &body) < 0 || fields_check(req, body) < 0)
        return;
    /* What cannot be opened is not overwritten by accident. */
    if (!json_get_bool(body, "reset", false) &&
        stored_load(api_of(req), http_principal(req), http_arena(req), &stored, &error) < 0) {
        http_fail(req, error.code == ERR_DENIED ? 500 : 0, &error);
        return;
    }
    yyjson_mut_doc_set_root(doc, stored ? yyjson_val_mut_copy(doc, yyjson_doc_get_root(stored))
                                        : yyjson_mut_obj(doc));
    if (settings_merge(req, body, doc) == 0 && settings_store(req, owned) == 0)
        settings_reply(req);
}

const struct route_entry api_settings_routes[] = {
    {"GET", "/settings", "The owner's model and preferences; keys only as a hint", on_get},
    {"PUT", "/settings", "Change some of them", on_put},
    {},
};
