/* SPDX-License-Identifier: MIT */
/*
 * Who asks. Keys are kept as their SHA-256, so that comparing takes the same time for any guess and
 * a dump of memory shows none; a file of keys is read again when it changes.
 */
#include "api/auth.h"

#include "api/describe.h"
#include "api/page.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

enum { KEYS_MAX = 1000, KEY_MIN = 8, KEY_MAX = 512, NAME_MAX_LEN = 64, FILE_MAX = 256 << 10 };
enum { RECHECK_MS = 2000 };

struct key {
    char name[NAME_MAX_LEN + 1];
    char digest[2 * SHA256_SIZE + 1];
};

struct key_table {
    const struct settings *settings;
    pthread_mutex_t lock; /* of all below */
    struct key *keys;
    size_t count;
    struct timespec read; /* the file's time when it was read */
    int64_t checked_ms;
};

static const char name_set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-";

static void key_digest(const char *key, char ret[2 * SHA256_SIZE + 1])
{
    struct sha256 sha;

    sha256_init(&sha);
    sha256_update(&sha, key, strlen(key));
    sha256_finish_hex(&sha, ret);
}

static int key_add(struct key_table *t, const char *name, const char *key, struct error *reterr)
{
    struct key *keys;

    if (!str_check_chars(name, name_set, NAME_MAX_LEN) || str_eq(name, "anonymous"))
        return error_set(reterr, ERR_INVALID, "a key's owner has a name that cannot be used");
    if (strlen(key) < KEY_MIN || strlen(key) > KEY_MAX)
        return error_set(reterr, ERR_INVALID,
                         "the key of '%s' has less than %d characters or "
                         "more than %d",
                         name, KEY_MIN, KEY_MAX);
    if (t->count == KEYS_MAX)
        return error_set(reterr, ERR_LIMIT, "more than %d keys", KEYS_MAX);
    keys = realloc(t->keys, (t->count + 1) * sizeof(*keys));
    if (!keys)
        return error_no_memory(reterr);
    t->keys = keys;
    snprintf(keys[t->count].name, sizeof(keys->name), "%s", name);
    key_digest(key, keys[t->count].digest);
    t->count++;
    return 0;
}

static int line_add(struct key_table *t, char *line, struct error *reterr)
{
    char *colon = strchr(line, ':');

    line += strspn(line, " \t");
    if (!*line || *line == '#')
        return 0;
    if (!colon)
        return error_set(reterr, ERR_INVALID, "a line is not 'name:key'");
    *colon = 0;
    return key_add(t, line, colon + 1, reterr);
}

static int file_read(struct key_table *t, struct error *reterr)
{
    const char *path = t->settings->api_keys_file;
    auto_free char *text = NULL;
    char *save = NULL;
    struct stat st;
    size_t len;
    int r;

    if (stat(path, &st) < 0)
        return error_sys(reterr, errno, "API_KEYS_FILE: cannot read '%s'", path);
    if (st.st_mode & (S_IRWXO | S_IWGRP))
        return error_set(reterr, ERR_DENIED,
                         "API_KEYS_FILE: '%s' may be read or written by others; chmod 600", path);
    r = fd_read_file(AT_FDCWD, path, FILE_MAX, &text, &len, reterr);
    if (r < 0)
        return error_wrap(reterr, "API_KEYS_FILE");
    for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
        if (line_add(t, line, reterr) < 0)
            return error_wrap(reterr, "API_KEYS_FILE");
    }
    t->read = st.st_mtim;
    return 0;
}

int key_table_new(const struct settings *settings, struct key_table **ret, struct error *reterr)
{
    struct key_table *t = calloc(1, sizeof(*t));
    int r = 0;

    if (!t)
        return error_no_memory(reterr);
    pthread_mutex_init(&t->lock, NULL);
    t->settings = settings;
    if (settings->api_key[0] && (r = key_add(t, "default", settings->api_key, reterr)) < 0)
        error_wrap(reterr, "API_KEY");
    if (r == 0 && settings->api_keys_file[0])
        r = file_read(t, reterr);
    if (r < 0) {
        key_table_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void key_table_free(struct key_table *t)
{
    if (!t)
        return;
    free(t->keys);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

bool api_keys_are_set(const struct settings *settings)
{
    return settings->api_key[0] || settings->api_keys_file[0];
}

bool key_table_is_open(const struct key_table *t)
{
    return !api_keys_are_set(t->settings);
}

/* With the lock held. A file that cannot be read any more leaves the keys as they were. */
static void file_recheck(struct key_table *t)
{
    struct key_table fresh = {.settings = t->settings};
    struct error error;
    struct stat st;
    int r = 0;

    if (!t->settings->api_keys_file[0] || clock_ms() - t->checked_ms < RECHECK_MS)
        return;
    t->checked_ms = clock_ms();
    if (stat(t->settings->api_keys_file, &st) < 0 ||
        (st.st_mtim.tv_sec == t->read.tv_sec && st.st_mtim.tv_nsec == t->read.tv_nsec))
        return;
    if (t->settings->api_key[0])
        r = key_add(&fresh, "default", t->settings->api_key, &error);
    if (r == 0)
        r = file_read(&fresh, &error);
    t->read = st.st_mtim;
    if (r < 0) {
        log_warn("%s; the former keys stay", error.text);
        free(fresh.keys);
        return;
    }
    free(t->keys);
    t->keys = fresh.keys;
    t->count = fresh.count;
}

static bool digest_is(const char *a, const char *b)
{
    int difference = 0;

    for (size_t i = 0; i < 2 * SHA256_SIZE; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

bool key_table_find(struct key_table *t, const char *key, char ret[65])
{
    char digest[2 * SHA256_SIZE + 1];
    bool found = false;

    key_digest(key, digest);
    pthread_mutex_lock(&t->lock);
    file_recheck(t);
    for (size_t i = 0; i < t->count; i++) {
        if (digest_is(t->keys[i].digest, digest)) {
            memcpy(ret, t->keys[i].name, sizeof(t->keys[i].name));
            found = true;
        }
    }
    pthread_mutex_unlock(&t->lock);
    return found;
}

/* ---- a bucket of requests for each who asks ---- */

enum { BUCKETS = 4096, BURST_S = 2 };

struct limiter {
    pthread_mutex_t lock;
    double per_second;
    struct bucket {
        uint64_t who;
        double tokens;
        int64_t since_us;
    } buckets[BUCKETS];
};

int limiter_new(double per_second, struct limiter **ret, struct error *reterr)
{
    struct limiter *l = calloc(1, sizeof(*l));

    if (!l)
        return error_no_memory(reterr);
    pthread_mutex_init(&l->lock, NULL);
    l->per_second = per_second;
    *ret = l;
    return 0;
}

void limiter_free(struct limiter *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static uint64_t hash_of(const char *who)
{
    uint64_t hash = 14695981039346656037ull;

    for (; *who; who++)
        hash = (hash ^ (unsigned char)*who) * 1099511628211ull;
    return hash;
}

bool limiter_take(struct limiter *l, const char *who, double cost)
{
    uint64_t hash = hash_of(who);
    struct bucket *b = &l->buckets[hash % BUCKETS];
    double max = l->per_second * BURST_S;
    int64_t now = clock_us();
    bool taken;

    if (l->per_second <= 0)
        return true;
    pthread_mutex_lock(&l->lock);
    /* Two names that share a place push each other out, with a full bucket: a limit, not a ledger.
     */
    if (b->who != hash)
        *b = (struct bucket){.who = hash, .tokens = max, .since_us = now};
    b->tokens = MIN(max, b->tokens + (double)(now - b->since_us) * l->per_second / 1e6);
    b->since_us = now;
    taken = b->tokens >= cost;
    if (taken)
        b->tokens -= cost;
    pthread_mutex_unlock(&l->lock);
    return taken;
}

/* ---- the hook ---- */

/* Served to anybody, so that something can look whether the server is there. */
static const char *const open_paths[] = {"/",      "/ok",   "/info", "/health",
                                         "/ready", "/live", "/docs", "/openapi.json"};

static bool is_open(const struct http_request *req)
{
    /* The page asks for the key, so it has to be there before. */
    if (page_is_route(http_route(req)))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(open_paths); i++) {
        if (str_eq(http_path(req), open_paths[i]))
            return str_eq(http_method(req), "GET");
    }
    return false;
}

static const char *key_of(const struct http_request *req)
{
    const char *key = http_header(req, "X-Api-Key");
    const char *bearer = http_header(req, "Authorization");

    if (!key && bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
        key = bearer + 7 + strspn(bearer + 7, " ");
    return key;
}

static bool refuse(struct http_request *req, unsigned status, enum error_code code,
                   const char *text)
{
    struct error error;

    error_set(&error, code, "%s", text);
    if (status == 401)
        http_header_add(req, "WWW-Authenticate", "Bearer");
    if (status == 429)
        http_header_add(req, "Retry-After", "1");
    http_fail(req, status, &error);
    return false;
}

/* Reading costs little; what changes something or starts a run costs one. */
static double cost_of(const struct http_request *req)
{
    return str_eq(http_method(req), "GET") ? 0.1 : 1;
}

bool api_admit(void *user, struct http_request *req)
{
    struct api *api = user;
    char name[NAME_MAX_LEN + 1] = "anonymous";
    const char *key = key_of(req);
    bool open = key_table_is_open(api->principals);
    bool known = open || (key && key_table_find(api->principals, key, name));

    if (!known && !is_open(req)) {
        /* Guesses cost ten: there is one bucket for all who have no key. */
        if (!limiter_take(api->limiter, "", 10))
            return refuse(req, 429, ERR_LIMIT, "too many requests without a valid key");
        return refuse(req, 401, ERR_DENIED,
                      "unauthorized: a valid key is needed as x-api-key or "
                      "as a bearer token");
    }
    if (known && !limiter_take(api->limiter, name, cost_of(req)))
        return refuse(req, 429, ERR_LIMIT, "more requests than REQUESTS_PER_SECOND allows");
    http_set_principal(req, known ? name : "");
    return api_query_check(req) == 0;
}
