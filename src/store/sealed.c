/* SPDX-License-Identifier: MIT */
/*
 * Fernet. Whatever is wrong with a token, the answer is one and the same, and the signature is
 * checked before anything behind it is believed. The key file is written whole under another name
 * and then linked, so of two servers that start at once one makes the key and both use it.
 */
#include "store/sealed.h"

#include "base/base64.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/settings.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum {
    VERSION = 0x80,
    BLOCK = 16,
    TIME_AT = 1,
    IV_AT = 9,
    TEXT_AT = 25,
    MAC = 32,
    HALF = 16, /* of a key: the first signs, the second encrypts */
    SKEW_S = 60,
    SEALED_MAX = 16 << 20,
    KEY_FILE_MAX = 1024,
    KEY_CHARS = 44,
};

static void wipe_buf(struct buf *b)
{
    if (b->data)
        OPENSSL_cleanse(b->data, b->cap);
    buf_done(b);
}
#define auto_secret_buf __attribute__((cleanup(wipe_buf)))

static void swap_chars(char *s, size_t len, const char *from, const char *to)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] == from[0])
            s[i] = to[0];
        else if (s[i] == from[1])
            s[i] = to[1];
    }
}

static int url_encode(const struct buf *bytes, struct buf *ret)
{
    size_t before = ret->len;

    if (base64_encode(ret, bytes->data, bytes->len) < 0)
        return -1;
    swap_chars(ret->data + before, ret->len - before, "+/", "-_");
    return 0;
}

/* 1 for text that is not base64, -1 without memory; `ret` is empty and has room enough. */
static int url_decode(const char *text, size_t len, struct buf *ret)
{
    auto_secret_buf struct buf standard;

    buf_init(&standard, len + 1);
    if (memchr(text, '+', len) || memchr(text, '/', len))
        return 1;
    if (buf_append(&standard, text, len) < 0 || buf_reserve(ret, len) < 0)
        return -1;
    swap_chars(standard.data, len, "-_", "+/");
    return base64_decode(ret, standard.data, len) < 0 ? 1 : 0;
}

/* ---- keys ---- */

/* `where` is what a bad key is told by; the key itself is in no text. */
static int add_key(struct sealed_keys *k, const char *text, size_t len, const char *where,
                   struct error *reterr)
{
    auto_secret_buf struct buf bytes;
    int r;

    buf_init(&bytes, KEY_CHARS + 1);
    if (k->count == ARRAY_LEN(k->key))
        return error_set(reterr, ERR_INVALID, "%s has more than %zu keys", where,
                         ARRAY_LEN(k->key));
    r = len == KEY_CHARS ? url_decode(text, len, &bytes) : 1;
    if (r < 0)
        return error_no_memory(reterr);
    if (r > 0 || bytes.len != sizeof(k->key[0]))
        return error_set(reterr, ERR_INVALID,
                         "%s: key %zu is not the urlsafe base64 (44 characters) of 32 bytes", where,
                         k->count + 1);
    memcpy(k->key[k->count++], bytes.data, bytes.len);
    return 0;
}

static int parse_keys(const char *text, const char *where, struct sealed_keys *ret,
                      struct error *reterr)
{
    static const char blank[] = " \t\r\n";

    for (;;) {
        size_t len = strcspn(text, ","), skip = strspn(text, blank);
        int r;

        text += MIN(skip, len);
        len -= MIN(skip, len);
        skip = len;
        while (skip && strchr(blank, text[skip - 1]))
            skip--;
        r = add_key(ret, text, skip, where, reterr);
        if (r < 0)
            return r;
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

static int check_key_file(int fd, const char *path, struct error *reterr)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return error_sys(reterr, errno, "cannot look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return error_set(reterr, ERR_DENIED, "'%s' is not a regular file", path);
    if (st.st_uid != geteuid())
        return error_set(reterr, ERR_DENIED, "'%s' belongs to user %u, not to %u that runs this",
                         path, (unsigned)st.st_uid, (unsigned)geteuid());
    if (st.st_mode & 077)
        return error_set(reterr, ERR_DENIED, "'%s' can be used by others; its mode must be 0600",
                         path);
    if (st.st_size > KEY_FILE_MAX)
        return error_set(reterr, ERR_INVALID, "'%s' is too large for keys", path);
    return 0;
}

/* 1, or 0 when there is no such file. */
static int read_key_file(int dir, const char *path, struct sealed_keys *ret, struct error *reterr)
{
    auto_fd int fd =
        openat(dir, SEALED_KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    char text[KEY_FILE_MAX + 1] = "";
    ssize_t n;
    int r;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_sys(reterr, errno, "cannot open '%s'", path);
    r = check_key_file(fd, path, reterr);
    if (r < 0)
        return r;
    n = fd_read_full(fd, text, KEY_FILE_MAX, reterr);
    r = n < 0 ? (int)n : parse_keys(text, path, ret, reterr);
    OPENSSL_cleanse(text, sizeof(text));
    return r < 0 ? r : 1;
}

static int write_stage(int dir, const char *stage, const struct buf *text, const char *path,
                       struct error *reterr)
{
    auto_fd int fd = openat(dir, stage, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return error_sys(reterr, errno, "cannot make '%s'", path);
    r = fd_write_full(fd, text->data, text->len, reterr);
    if (r < 0)
        return error_wrap(reterr, "'%s'", path);
    return fsync(fd) < 0 ? error_sys(reterr, errno, "cannot sync '%s'", path) : 0;
}

/* A file that is there already, because another server was faster, stays. */
static int publish(int dir, const struct buf *text, const char *path, struct error *reterr)
{
    char stage[sizeof(SEALED_KEY_FILE) + ID_LEN + 8], id[ID_LEN + 1];
    int r;

    r = id_new(id, reterr);
    if (r < 0)
        return r;
    snprintf(stage, sizeof(stage), "." SEALED_KEY_FILE ".%s", id);
    r = write_stage(dir, stage, text, path, reterr);
    if (r == 0 && linkat(dir, stage, dir, SEALED_KEY_FILE, 0) < 0 && errno != EEXIST)
        r = error_sys(reterr, errno, "cannot make '%s'", path);
    unlinkat(dir, stage, 0);
    if (r == 0 && fsync(dir) < 0)
        r = error_sys(reterr, errno, "cannot sync the directory of '%s'", path);
    return r;
}

static int make_key_file(int dir, const char *path, struct error *reterr)
{
    auto_secret_buf struct buf bytes, text;
    struct sealed_keys *k;

    buf_init(&bytes, sizeof(k->key[0]));
    buf_init(&text, KEY_CHARS + 1);
    if (buf_reserve(&bytes, sizeof(k->key[0])) < 0)
        return error_no_memory(reterr);
    if (getrandom(bytes.data, sizeof(k->key[0]), 0) != (ssize_t)sizeof(k->key[0]))
        return error_sys(reterr, errno, "cannot get random bytes");
    bytes.len = sizeof(k->key[0]);
    if (url_encode(&bytes, &text) < 0 || buf_append_byte(&text, '\n') < 0)
        return error_no_memory(reterr);
    return publish(dir, &text, path, reterr);
}

static int load_file(const struct settings *settings, struct sealed_keys *ret, struct error *reterr)
{
    char path[PATH_LEN];
    auto_fd int dir = -1;
    int r;

    r = path_join(path, sizeof(path), settings->state_dir, SEALED_KEY_FILE, reterr);
    if (r == 0)
        r = path_make_dirs(settings->state_dir, 0700, reterr);
    if (r == 0)
        r = dir = path_open_dir(AT_FDCWD, settings->state_dir, reterr);
    if (r >= 0)
        r = read_key_file(dir, path, ret, reterr);
    if (r != 0)
        return r;
    r = make_key_file(dir, path, reterr);
    if (r == 0)
        r = read_key_file(dir, path, ret, reterr);
    return r == 0 ? error_set(reterr, ERR_BUSY, "'%s' was removed while it was made", path) : r;
}

int sealed_keys_load(const struct settings *settings, struct sealed_keys *ret, struct error *reterr)
{
    const char *text = settings->encryption_key;
    int r;

    *ret = (struct sealed_keys){0};
    r = text && *text ? parse_keys(text, "ENCRYPTION_KEY", ret, reterr)
                      : load_file(settings, ret, reterr);
    if (r < 0)
        sealed_keys_clear(ret);
    return MIN(r, 0);
}

void sealed_keys_clear(struct sealed_keys *k)
{
    OPENSSL_cleanse(k, sizeof(*k));
}

/* ---- tokens ---- */

DEFINE_CLEANUP(EVP_CIPHER_CTX *, EVP_CIPHER_CTX_free)
#define auto_cipher __attribute__((cleanup(EVP_CIPHER_CTX_free_cleanup)))

static int sign(const unsigned char *key, const void *data, size_t len, unsigned char ret[MAC],
                struct error *reterr)
{
    unsigned int n = 0;

    if (!HMAC(EVP_sha256(), key, HALF, data, len, ret, &n) || n != MAC)
        return error_set(reterr, ERR_INTERNAL, "the cryptography library cannot sign");
    return 0;
}

/* Appends the ciphertext; the room was reserved. */
static int encrypt(const unsigned char *key, const unsigned char *iv, const void *data, size_t len,
                   struct buf *ret, struct error *reterr)
{
    auto_cipher EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    unsigned char *out = (unsigned char *)ret->data + ret->len;
    int n = 0, last = 0;

    if (!ctx)
        return error_no_memory(reterr);
    if (EVP_EncryptInit_ex(ctx, EVP_aes_128_cbc(), NULL, key, iv) != 1 ||
        EVP_EncryptUpdate(ctx, out, &n, data, (int)len) != 1 ||
        EVP_EncryptFinal_ex(ctx, out + n, &last) != 1)
        return error_set(reterr, ERR_INTERNAL, "the cryptography library cannot encrypt");
    ret->len += (size_t)(n + last);
    return 0;
}

static int append_head(struct buf *b, const struct sealed_moment *at)
{
    if (buf_append_byte(b, VERSION) < 0)
        return -1;
    for (int shift = 56; shift >= 0; shift -= 8)
        if (buf_append_byte(b, (unsigned char)((uint64_t)at->now_s >> shift)) < 0)
            return -1;
    return buf_append(b, at->iv, sizeof(at->iv));
}

int sealed_seal_at(const struct sealed_keys *k, const struct sealed_moment *at, const void *data,
                   size_t len, struct buf *ret, struct error *reterr)
{
    const unsigned char *key = k->key[0];
    auto_buf struct buf b;
    unsigned char mac[MAC];
    int r;

    buf_init(&b, SEALED_MAX + TEXT_AT + BLOCK + MAC);
    if (!k->count || len > SEALED_MAX)
        return error_set(reterr, ERR_LIMIT, "nothing of more than %d bytes is sealed", SEALED_MAX);
    if (append_head(&b, at) < 0 || buf_reserve(&b, len + BLOCK + MAC) < 0)
        return error_no_memory(reterr);
    r = encrypt(key + HALF, at->iv, data, len, &b, reterr);
    if (r == 0)
        r = sign(key, b.data, b.len, mac, reterr);
    if (r < 0)
        return r;
    if (buf_append(&b, mac, sizeof(mac)) < 0 || url_encode(&b, ret) < 0)
        return error_no_memory(reterr);
    return 0;
}

int sealed_seal(const struct sealed_keys *k, const void *data, size_t len, struct buf *ret,
                struct error *reterr)
{
    struct sealed_moment at = {.now_s = time(NULL)};

    if (getrandom(at.iv, sizeof(at.iv), 0) != (ssize_t)sizeof(at.iv))
        return error_sys(reterr, errno, "cannot get random bytes");
    return sealed_seal_at(k, &at, data, len, ret, reterr);
}

static int refuse(struct error *reterr)
{
    return error_set(reterr, ERR_DENIED,
                     "a sealed value cannot be opened: it was sealed with another key, was "
                     "changed, or is too old");
}

/* Which key has signed it; -1: none; < -1: a failure. All keys are tried, so time tells nothing. */
static int find_key(const struct sealed_keys *k, const struct buf *token, struct error *reterr)
{
    const char *mac = token->data + token->len - MAC;
    int found = -1;

    for (size_t i = 0; i < k->count; i++) {
        unsigned char want[MAC];

        if (sign(k->key[i], token->data, token->len - MAC, want, reterr) < 0)
            return -ERR_INTERNAL;
        if (CRYPTO_memcmp(want, mac, MAC) == 0)
            found = (int)i;
    }
    return found;
}

static bool is_of_time(const struct buf *token, int64_t now_s, int64_t ttl_s)
{
    uint64_t made = 0;

    for (size_t i = TIME_AT; i < IV_AT; i++)
        made = made << 8 | (unsigned char)token->data[i];
    if (ttl_s < 0)
        return true;
    return made <= (uint64_t)(now_s + SKEW_S) &&
           (made > (uint64_t)now_s || (uint64_t)now_s - made <= (uint64_t)ttl_s);
}

/* Appends the plain text; a wrong padding is the token's fault. */
static int decrypt(const unsigned char *key, const struct buf *token, struct buf *ret,
                   struct error *reterr)
{
    auto_cipher EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    const unsigned char *data = (const unsigned char *)token->data;
    size_t len = token->len - TEXT_AT - MAC;
    unsigned char *out;
    int n = 0, last = 0;

    if (!ctx || buf_reserve(ret, len) < 0)
        return error_no_memory(reterr);
    out = (unsigned char *)ret->data + ret->len;
    if (EVP_DecryptInit_ex(ctx, EVP_aes_128_cbc(), NULL, key, data + IV_AT) != 1 ||
        EVP_DecryptUpdate(ctx, out, &n, data + TEXT_AT, (int)len) != 1)
        return error_set(reterr, ERR_INTERNAL, "the cryptography library cannot decrypt");
    if (EVP_DecryptFinal_ex(ctx, out + n, &last) != 1) {
        OPENSSL_cleanse(out, len);
        return refuse(reterr);
    }
    ret->len += (size_t)(n + last);
    ret->data[ret->len] = 0;
    return 0;
}

int sealed_open_at(const struct sealed_keys *k, int64_t now_s, const char *token, size_t len,
                   int64_t ttl_s, struct buf *ret, struct error *reterr)
{
    auto_buf struct buf b;
    int r;

    buf_init(&b, (size_t)SEALED_MAX * 2);
    if (len > b.max)
        return refuse(reterr);
    r = url_decode(token, len, &b);
    if (r < 0)
        return error_no_memory(reterr);
    if (r > 0 || b.len < TEXT_AT + BLOCK + MAC || (b.len - TEXT_AT - MAC) % BLOCK ||
        (unsigned char)b.data[0] != VERSION)
        return refuse(reterr);
    r = find_key(k, &b, reterr);
    if (r < -1)
        return r;
    if (r < 0 || !is_of_time(&b, now_s, ttl_s))
        return refuse(reterr);
    return decrypt(k->key[r] + HALF, &b, ret, reterr);
}

int sealed_open(const struct sealed_keys *k, const char *token, size_t len, int64_t ttl_s,
                struct buf *ret, struct error *reterr)
{
    return sealed_open_at(k, time(NULL), token, len, ttl_s, ret, reterr);
}
