/* SPDX-License-Identifier: MIT */
/*
 * Names are never removed while their sandbox lives: an address must not change its meaning. What
 * bounds the table is its size and the rate at which names come; at most NAMES_PER_SECOND in any
 * second, counted exactly.
 */
#include "egress/names.h"

#include <string.h>

#define FAKE_BASE 0xc6120000u /* 198.18.0.0 */

enum { NAMES_ROOM_FIRST = 16 };

/* The past second is empty, whatever the clock shows. */
void names_init(struct names *n, uint32_t seed, uint32_t start)
{
    *n = (struct names){.seed = seed, .start = start % NAMES_RANGE};
    for (size_t i = 0; i < NAMES_PER_SECOND; i++)
        n->recent[i] = INT64_MIN / 2;
}

void names_done(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->by_index[i]);
    free(n->by_index);
    free(n->slots);
    *n = (struct names){};
}

/* FNV-1a with a seed that the sandbox cannot know. */
static uint32_t text_hash(const struct names *n, const char *text)
{
    uint32_t hash = 2166136261u ^ n->seed;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash ^ hash >> 15;
}

/* The slot of a name, or the free one where it belongs. */
static uint16_t *slot_find(const struct names *n, const char *text)
{
    uint32_t at = text_hash(n, text) % NAMES_SLOTS;

    while (n->slots[at] && strcmp(n->by_index[n->slots[at] - 1]->text, text) != 0)
        at = (at + 1) % NAMES_SLOTS;
    return &n->slots[at];
}

struct name *names_find(const struct names *n, const char *text)
{
    uint16_t *slot;

    if (!n->slots)
        return NULL;
    slot = slot_find(n, text);
    return *slot ? n->by_index[*slot - 1] : NULL;
}

/* Nothing is allocated before the first name: most sandboxes that run code never ask for one. */
static int names_grow(struct names *n)
{
    size_t room = n->room ? n->room * 2 : NAMES_ROOM_FIRST;
    struct name **grown;

    if (!n->slots && !(n->slots = calloc(NAMES_SLOTS, sizeof(*n->slots))))
        return -1;
    if (n->count < n->room)
        return 0;
    grown = realloc(n->by_index, room * sizeof(struct name *));
    if (!grown)
        return -1;
    n->by_index = grown;
    n->room = room;
    return 0;
}

struct name *names_add(struct names *n, const char *text, int64_t now)
{
    size_t size = strlen(text) + 1;
    struct name *name;

    if (now - n->recent[n->recent_at] < 1000 || n->count >= NAMES_MAX ||
        n->text_bytes + size > NAMES_TEXT_MAX || names_grow(n) < 0)
        return NULL;
    name = malloc(sizeof(*name) + size);
    if (!name)
        return NULL;
    name->index = (uint32_t)n->count;
    memcpy(name->text, text, size);
    n->by_index[n->count] = name;
    *slot_find(n, text) = (uint16_t)(n->count + 1);
    n->count++;
    n->text_bytes += size;
    n->recent[n->recent_at] = now;
    n->recent_at = (n->recent_at + 1) % NAMES_PER_SECOND;
    return name;
}

struct name *names_by_addr(const struct names *n, const uint8_t a[4])
{
    uint32_t value = (uint32_t)a[0] << 24 | (uint32_t)a[1] << 16 | (uint32_t)a[2] << 8 | a[3];
    uint32_t offset = value - FAKE_BASE;

    if (offset >= NAMES_RANGE)
        return NULL;
    offset = (offset + NAMES_RANGE - n->start) % NAMES_RANGE;
    return offset < n->count ? n->by_index[offset] : NULL;
}

void names_addr(const struct names *n, const struct name *name, uint8_t ret[4])
{
    uint32_t value = FAKE_BASE + (n->start + name->index) % NAMES_RANGE;

    for (int i = 0; i < 4; i++)
        ret[i] = (uint8_t)(value >> (24 - 8 * i));
}
