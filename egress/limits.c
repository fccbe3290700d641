/* SPDX-License-Identifier: MIT */
/* The defaults of struct limits, and how a test changes them. */
#include "egress/limits.h"

#include "base/str.h"

static const struct limits defaults = {
    .resolve_ms = 10000,
    .connect_ms = 4000,
    .dial_ms = 30000,
    .idle_ms = 600000,
    .half_ms = 120000,
    .conns = 256,
    .conn_rate = 100,
    .conn_burst = 256,
    .dns_rate = 1000,
    .dns_burst = 1000,
};

#ifdef SBX_FAILPOINTS
static const struct limit_entry {
    const char *name;
    size_t offset;
} entries[] = {
    {"resolve_ms", offsetof(struct limits, resolve_ms)},
    {"connect_ms", offsetof(struct limits, connect_ms)},
    {"dial_ms", offsetof(struct limits, dial_ms)},
    {"idle_ms", offsetof(struct limits, idle_ms)},
    {"half_ms", offsetof(struct limits, half_ms)},
    {"conns", offsetof(struct limits, conns)},
    {"conn_rate", offsetof(struct limits, conn_rate)},
    {"conn_burst", offsetof(struct limits, conn_burst)},
    {"dns_rate", offsetof(struct limits, dns_rate)},
    {"dns_burst", offsetof(struct limits, dns_burst)},
};

static void limit_set(struct limits *l, const char *name, size_t len, const char *value)
{
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        int64_t *field = (int64_t *)(void *)((char *)l + entries[i].offset);

        if (strlen(entries[i].name) == len && memcmp(entries[i].name, name, len) == 0 &&
            str_parse_int(value, 1, INT32_MAX, field) < 0)
            *field = 1;
    }
}

/* "name=value,name=value" */
static void limits_override(struct limits *l, const char *text)
{
    while (text && *text) {
        size_t len = strcspn(text, ",");
        const char *equals = memchr(text, '=', len);
        char value[24];

        if (equals && (size_t)(text + len - equals) <= sizeof(value)) {
            size_t digits = (size_t)(text + len - equals) - 1;

            memcpy(value, equals + 1, digits);
            value[digits] = 0;
            limit_set(l, text, (size_t)(equals - text), value);
        }
        text += len + (text[len] == ',');
    }
}
#endif

void limits_init(struct limits *l)
{
    *l = defaults;
#ifdef SBX_FAILPOINTS
    limits_override(l, getenv("SBX_EGRESS_LIMITS"));
#endif
}
