/* SPDX-License-Identifier: MIT */
/* A token from anywhere, and behind a first NUL byte a text of keys. */
#include "base/settings.h"
#include "store/sealed.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was opened is sealed and opened again; it must be the same. */
static void again(const struct sealed_keys *k, const struct buf *plain)
{
    auto_buf struct buf token, back;

    buf_init(&token, 4 * plain->len + 256);
    buf_init(&back, plain->len + 32);
    if (sealed_seal(k, plain->data, plain->len, &token, NULL) < 0 ||
        sealed_open(k, token.data, token.len, 60, &back, NULL) < 0)
        abort();
    if (back.len != plain->len || (back.len && memcmp(back.data, plain->data, back.len) != 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings settings = {.encryption_key = "cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4="};
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    auto_free char *text = NULL;
    auto_sealed_keys struct sealed_keys k = {0};
    auto_buf struct buf plain;

    buf_init(&plain, 1 << 20);
    if (nul) {
        text = strndup((const char *)nul + 1, size - (size_t)(nul + 1 - data));
        size = (size_t)(nul - data);
        if (text && *text)
            settings.encryption_key = text;
    }
    if (sealed_keys_load(&settings, &k, NULL) < 0)
        return 0;
    if (sealed_open(&k, (const char *)data, size, -1, &plain, NULL) == 0)
        again(&k, &plain);
    else if (plain.len)
        abort();
    return 0;
}
