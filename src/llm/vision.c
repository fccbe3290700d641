/* SPDX-License-Identifier: MIT */
/*
 * Which models take images. Names tell of some; of others it is learnt from an answer, for exactly
 * that provider, model and base URL. A failure that passes (a limit, a time-out, a broken server)
 * says nothing about a model, and neither does one about the picture.
 */
#include "base/sha256.h"
#include "base/str.h"
#include "llm/llm-internal.h"

/* ---- names ---- */

/* Parts of a name, all in lower case; a leading '^': at its start, or behind a slash. */
static const char *const names[] = {
    "^gpt-4o",
    "^gpt-4.1",
    "^gpt-4-turbo",
    "^gpt-4.5",
    "^gpt-5",
    "^chatgpt-4o",
    "^o1",
    "^o3",
    "^o4-mini",
    "^claude-3",
    "^claude-4",
    "^claude-opus",
    "^claude-sonnet",
    "^claude-haiku-4",
    "^gemini-",
    "^grok-4",
    "^gemma3",
    "^gemma-3",
    "^gemma3n",
    "^llama-4",
    "^llama4",
    "^minicpm-v",
    "^moondream",
    "^pixtral",
    "^mistral-small3",
    "-vl",
    "vl:",
    "vision",
    "llava",
    "internvl",
};

/* Smaller ones of a family that only read. */
static const char *const blind[] = {"^o1-mini",     "^o1-preview",       "^o3-mini",   "^gemma3:1b",
                                    "^gemma3:270m", "^claude-3-5-haiku", "^gemma-3-1b"};

static bool name_has(const char *name, const char *part)
{
    size_t len;

    if (*part != '^')
        return strstr(name, part) != NULL;
    len = strlen(++part);
    for (const char *s = name; s; s = strchr(s, '/')) {
        s += *s == '/';
        if (strncmp(s, part, len) == 0)
            return true;
    }
    return false;
}

static bool name_is_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (name_has(name, list[i]))
            return true;
    }
    return false;
}

static void name_lower(char *ret, size_t size, const char *name)
{
    size_t i = 0;

    for (; name[i] && i + 1 < size; i++)
        ret[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
    ret[i] = 0;
}

enum llm_vision vision_of_name(const char *name)
{
    char lower[200];

    name_lower(lower, sizeof(lower), name ? name : "");
    if (name_is_of(lower, blind, ARRAY_LEN(blind)))
        return LLM_VISION_UNKNOWN;
    return name_is_of(lower, names, ARRAY_LEN(names)) ? LLM_VISION_YES : LLM_VISION_UNKNOWN;
}

/* ---- what is learnt ---- */

static void model_key(const struct llm_model *model, char ret[2 * SHA256_SIZE + 1])
{
    const char *const parts[] = {model->provider, model->name, model->base_url};
    struct sha256 h;

    sha256_init(&h);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        sha256_update(&h, parts[i] ? parts[i] : "", strlen(parts[i] ? parts[i] : "") + 1);
    sha256_finish_hex(&h, ret);
}

static enum llm_vision learnt_get(const struct vision_table *t, const char *key)
{
    for (size_t i = 0; i < VISION_LEARNT_MAX; i++) {
        if (str_eq(t->learnt[i].key, key))
            return t->learnt[i].vision;
    }
    return LLM_VISION_UNKNOWN;
}

enum llm_vision vision_get(const struct vision_table *t, const struct llm_model *model)
{
    char key[2 * SHA256_SIZE + 1];
    enum llm_vision learnt;

    model_key(model, key);
    learnt = learnt_get(t, key);
    return learnt != LLM_VISION_UNKNOWN ? learnt : vision_of_name(model->name);
}

void vision_learn(struct vision_table *t, const struct llm_model *model, enum llm_vision vision)
{
    struct vision_learnt fact = {.vision = vision};

    model_key(model, fact.key);
    if (learnt_get(t, fact.key) != LLM_VISION_UNKNOWN)
        return;
    t->learnt[t->next] = fact;
    t->next = (t->next + 1) % VISION_LEARNT_MAX;
}

/* ---- what a failure means ---- */

static bool says_any(const char *message, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasestr(message, words[i]))
            return true;
    }
    return false;
}

bool vision_is_refusal(unsigned status, const char *message)
{
    static const char *const words[] = {"image",       "vision",           "multimodal",
                                        "multi-modal", "must be a string", "mmproj"};
    static const unsigned statuses[] = {400, 404, 415, 422};

    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (statuses[i] == status)
            return says_any(message, words, ARRAY_LEN(words));
    }
    return false;
}

bool vision_is_about_picture(const char *message)
{
    static const char *const words[] = {
        "too large", "exceed",        "too small", "too many",   "dimension",
        "could not", "corrupt",       "format",    "media_type", "media type",
        "mime",      "invalid image", "base64",    "download",   "unable to process"};

    return says_any(message, words, ARRAY_LEN(words));
}
