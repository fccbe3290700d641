/* SPDX-License-Identifier: MIT */
/*
 * State that a client carries for us, and may have changed. Text: base64 of nonce and ciphertext;
 * inside: the purpose, the end of its life in wall-clock milliseconds, and the bytes.
 */
#include "mcp/ask-internal.h"
#include "mcp/mcp-internal.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"

#include <sodium.h>
#include <stdio.h>

enum {
    KEY = crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
    NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    TEXT_MAX = 64 * 1024,
    LIFE_MS = 600000,
};

struct mcp_state_key {
    unsigned char bytes[KEY];
};

struct mcp_state_key *mcp_state_key_new(void)
{
    struct mcp_state_key *key = sodium_init() < 0 ? NULL : calloc(1, sizeof(*key));

    if (key)
        crypto_aead_xchacha20poly1305_ietf_keygen(key->bytes);
    return key;
}

void mcp_state_key_free(struct mcp_state_key *key)
{
    if (key)
        sodium_memzero(key->bytes, sizeof(key->bytes));
    free(key);
}

int mcp_state_seal(const struct mcp_state_key *key, const char *purpose, const char *text,
                   struct buf *ret)
{
    auto_buf struct buf plain, sealed;
    unsigned char nonce[NONCE];
    unsigned long long len = 0;

    buf_init(&plain, TEXT_MAX);
    buf_init(&sealed, 2 * TEXT_MAX);
    randombytes_buf(nonce, sizeof(nonce));
    if (buf_printf(&plain, "%lld:%s", (long long)(clock_wall_ms() + LIFE_MS), text) < 0 ||
        buf_append(&sealed, nonce, NONCE) < 0 || buf_reserve(&sealed, plain.len + TAG) < 0)
        return -1;
    crypto_aead_xchacha20poly1305_ietf_encrypt(
        (unsigned char *)sealed.data + NONCE, &len, (const unsigned char *)plain.data, plain.len,
        (const unsigned char *)purpose, strlen(purpose), NULL, nonce, key->bytes);
    sealed.len += len;
    return base64_encode(ret, sealed.data, sealed.len);
}

static int state_refuse(struct error *reterr)
{
    return error_set(
        reterr, ERR_INVALID,
        "requestState is not what this server gave for this request, or it is too old");
}

int mcp_state_open(const struct mcp_state_key *key, const char *purpose, const char *text,
                   struct buf *ret, struct error *reterr)
{
    auto_buf struct buf sealed, plain;
    unsigned long long len = 0;
    int64_t until;
    char *colon;

    buf_init(&sealed, 2 * TEXT_MAX);
    buf_init(&plain, TEXT_MAX + 1);
    if (base64_decode(&sealed, text, strlen(text)) < 0 || sealed.len < NONCE + TAG ||
        buf_reserve(&plain, sealed.len) < 0 ||
        crypto_aead_xchacha20poly1305_ietf_decrypt(
            (unsigned char *)plain.data, &len, NULL, (const unsigned char *)sealed.data + NONCE,
            sealed.len - NONCE, (const unsigned char *)purpose, strlen(purpose),
            (const unsigned char *)sealed.data, key->bytes) < 0)
        return state_refuse(reterr);
    plain.data[len] = 0;
    colon = strchr(plain.data, ':');
    if (!colon)
        return state_refuse(reterr);
    *colon = 0;
    if (str_parse_int(plain.data, 0, INT64_MAX, &until) < 0 || until < clock_wall_ms())
        return state_refuse(reterr);
    return buf_append_str(ret, colon + 1) < 0 ? error_no_memory(reterr) : 0;
}
