/* SPDX-License-Identifier: MIT */
/* The providers, and the other names that people call them by. */
#include "base/str.h"
#include "llm/llm-internal.h"

#include <strings.h>

const struct provider_entry *const provider_table[] = {
    &provider_openai, &provider_anthropic, &provider_google,
    &provider_ollama, &provider_direct,    NULL,
};

static const struct {
    const char *alias, *name;
} aliases[] = {
    {"openai-compatible", "openai"}, {"openai_compatible", "openai"},  {"claude", "anthropic"},
    {"google", "google_genai"},      {"google-genai", "google_genai"}, {"gemini", "google_genai"},
};

static const struct provider_entry *entry_find(const char *name)
{
    for (size_t i = 0; provider_table[i]; i++) {
        if (strcasecmp(provider_table[i]->name, name) == 0)
            return provider_table[i];
    }
    return NULL;
}

const struct provider_entry *provider_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        if (strcasecmp(aliases[i].alias, name) == 0)
            return entry_find(aliases[i].name);
    }
    return entry_find(name);
}
