/* SPDX-License-Identifier: MIT */
/* The choices of a chat; see chat_config.h. */
#include "cli/chat_config.h"

#include "base/str.h"

static void member_free(char **member)
{
    if (*member)
        explicit_bzero(*member, strlen(*member));
    free(*member);
    *member = NULL;
}

void chat_config_done(struct chat_config *c)
{
    member_free(&c->model);
    member_free(&c->provider);
    member_free(&c->key);
    member_free(&c->base_url);
    chat_config_init(c);
}

int chat_config_set(char **member, const char *value)
{
    char *copy = value ? strdup(value) : NULL;

    if (value && !copy)
        return -1;
    member_free(member);
    *member = copy;
    return 0;
}

bool chat_config_is_empty(const struct chat_config *c)
{
    return !c->model && !c->provider && !c->key && !c->base_url && c->vision < 0;
}

yyjson_mut_val *chat_config_write(const struct chat_config *c, yyjson_mut_doc *doc)
{
    const struct {
        const char *name, *value;
    } members[] = {
        {"chat_model", c->model},
        {"chat_model_provider", c->provider},
        {"chat_model_api_key", c->key},
        {"chat_model_base_url", c->base_url},
    };
    yyjson_mut_val *config, *choices;

    if (chat_config_is_empty(c))
        return NULL;
    config = yyjson_mut_obj(doc);
    choices = yyjson_mut_obj_add_obj(doc, config, "configurable");
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (members[i].value)
            yyjson_mut_obj_add_val(doc, choices, members[i].name,
                                   json_mut_text(doc, members[i].value, strlen(members[i].value)));
    }
    if (c->vision >= 0)
        yyjson_mut_obj_add_bool(doc, choices, "chat_model_supports_vision", c->vision == 1);
    return config;
}
