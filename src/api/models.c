/* SPDX-License-Identifier: MIT */
/*
 * Which model a run thinks with, and with whose key. The one rule that matters: a key is sent only
 * where the one who gave it wanted it. So a key of the settings or of the server goes to the host
 * it was given for and to no other, whatever a run asks for.
 */
#include "api/run_params.h"

#include "base/str.h"
#include "wire/url.h"

#include <stdio.h>

enum { ORIGIN_MAX = 320 };

/* Where a provider's own service or the given URL is: "https://host:port". */
static int origin_of(const struct provider_entry *provider, const char *base_url, char *ret,
                     struct url *ret_url, struct error *reterr)
{
    int r = url_parse(base_url ? base_url : provider->base_url, ret_url, reterr);

    if (r < 0)
        return error_wrap(reterr, "the model's base URL");
    return url_origin_format(ret_url, ret, ORIGIN_MAX) < 0
               ? error_set(reterr, ERR_INVALID, "the model's base URL is too long")
               : 0;
}

/* Whether the operator lets clients send the server to this host, wherever it is. */
static bool host_is_trusted(const struct settings *s, const struct url *url)
{
    const char *list = s->private_model_hosts;

    for (size_t len; *list; list += len + (list[len] != 0)) {
        len = strcspn(list, ", ");
        if ((len == 1 && *list == '*') ||
            (len == strlen(url->host) && strncasecmp(list, url->host, len) == 0))
            return true;
    }
    return false;
}

struct model_choice {
    const struct provider_entry *provider;
    const char *name, *base_url;
    bool from_client; /* the base URL is not the operator's own */
};

/* A member that is a text and not empty, else NULL: an empty one means "as set". */
static const char *text_of(yyjson_val *object, const char *key)
{
    const char *s = json_get_str(object, key, "");

    return *s ? s : NULL;
}

static int choice_make(const struct settings *s, yyjson_val *configurable,
                       const struct owner_settings *owner, struct model_choice *ret,
                       struct error *reterr)
{
    const char *wanted = text_of(configurable, "chat_model_provider");
    const char *own = owner->provider ? owner->provider : s->chat_model_provider;
    const char *name = wanted ? wanted : own;
    bool owners, servers;

    ret->provider = provider_find(name);
    if (!ret->provider)
        return error_set(reterr, ERR_INVALID,
                         "there is no model provider '%.40s'; see `GET /settings`", name);
    owners = provider_find(own) == ret->provider;
    servers = provider_find(s->chat_model_provider) == ret->provider;
    ret->name = text_of(configurable, "chat_model");
    if (!ret->name && owners && owner->model)
        ret->name = owner->model;
    if (!ret->name)
        ret->name = servers ? s->chat_model : NULL;
    if (!ret->name && str_eq(ret->provider->name, "direct"))
        ret->name = "python";
    if (!ret->name)
        return error_set(reterr, ERR_INVALID, "no model of the provider '%s' is chosen",
                         ret->provider->name);
    ret->base_url = text_of(configurable, "chat_model_base_url");
    if (!ret->base_url && owners)
        ret->base_url = owner->base_url;
    ret->from_client = ret->base_url;
    if (!ret->base_url && servers && s->chat_model_base_url[0])
        ret->base_url = s->chat_model_base_url;
    return 0;
}

/* A key that came with the run, sealed in its row. */
static const char *run_key(struct api *api, yyjson_val *configurable, struct arena *arena)
{
    const char *key = json_get_str(configurable, RUN_SECRET, "");
    auto_buf struct buf open;

    buf_init(&open, 64 * KIB);
    if (!str_starts(key, RUN_SEALED))
        return NULL;
    key += strlen(RUN_SEALED);
    if (sealed_open(&api->keys, key, strlen(key), -1, &open, NULL) < 0)
        return NULL;
    return arena_memdup(arena, buf_str(&open), open.len);
}

/* The server's own key, when the model is at the place that the operator has it for. */
static const char *server_key(const struct settings *s, const struct model_choice *c,
                              const char *origin)
{
    char own[ORIGIN_MAX];
    struct url url;

    if (!s->chat_model_api_key[0] || provider_find(s->chat_model_provider) != c->provider ||
        origin_of(c->provider, s->chat_model_base_url[0] ? s->chat_model_base_url : NULL, own, &url,
                  NULL) < 0)
        return NULL;
    return str_eq(own, origin) ? s->chat_model_api_key : NULL;
}

/* A bool in any of its spellings, or a text as pages send it. */
static int vision_of(const struct settings *s, yyjson_val *configurable,
                     const struct owner_settings *owner)
{
    yyjson_val *v = yyjson_obj_get(configurable, "chat_model_supports_vision");
    bool vision;

    if (yyjson_is_bool(v))
        return yyjson_get_bool(v);
    if (yyjson_is_str(v) && str_parse_bool(yyjson_get_str(v), &vision) == 0)
        return vision;
    if (owner->images_to_model == 0)
        return 0;
    if (owner->vision >= 0)
        return owner->vision;
    return str_parse_bool(s->chat_model_supports_vision, &vision) == 0 ? vision : -1;
}

int api_model_resolve(struct api *api, const char *owner_name, yyjson_val *configurable,
                      struct arena *arena, struct agent_model *ret, struct error *reterr)
{
    struct owner_settings owner = {.vision = -1, .images_to_model = -1, .network = -1};
    struct model_choice choice = {};
    char origin[ORIGIN_MAX] = "";
    struct url url = {};
    const char *key;
    int r = api_owner_settings(api, owner_name, arena, &owner, reterr);

    if (r < 0 || (r = choice_make(api->settings, configurable, &owner, &choice, reterr)) < 0)
        return r;
    ret->model = (struct llm_model){.provider = choice.provider->name, .name = choice.name};
    ret->vision = vision_of(api->settings, configurable, &owner);
    if (choice.provider->answer)
        return 0;
    r = origin_of(choice.provider, choice.base_url, origin, &url, reterr);
    if (r < 0)
        return r;
    ret->model.public_only = choice.from_client && !host_is_trusted(api->settings, &url);
    if (ret->model.public_only && (url_is_loopback(&url) || url_is_private(&url)))
        return error_set(reterr, ERR_DENIED,
                         "the model's base URL leads to a private address; the operator can allow "
                         "its host by PRIVATE_MODEL_HOSTS");
    key = run_key(api, configurable, arena);
    if (!key && owner.api_key && owner.key_origin && str_eq(owner.key_origin, origin))
        key = owner.api_key;
    if (!key)
        key = server_key(api->settings, &choice, origin);
    if (!key && choice.provider->needs_key && !choice.base_url)
        return error_set(reterr, ERR_DENIED,
                         "there is no key for %s: set CHAT_MODEL_API_KEY, or give one in the "
                         "settings; `direct` needs none",
                         choice.provider->title);
    ret->model.base_url = choice.base_url;
    ret->model.api_key = key;
    return 0;
}
