/* SPDX-License-Identifier: MIT */
/*
 * HTTP calls by libcurl. Each call has a worker of its own, a multi handle with one easy handle, so
 * threads share nothing while they wait; workers that rest keep their connections, and a call takes
 * the one that has talked to its host last.
 *
 * What curl offers to do by itself and a hostile service could use (redirects, decompression,
 * cookies, netrc, proxies of the environment) is off, or refused where it cannot be switched off.
 */
#include "http/client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "wire/url.h"

#include <curl/curl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

enum {
    CONNECT_MS = 10 * 1000,
    IDLE_MS = 120 * 1000,
    TOTAL_MS = 15 * 60 * 1000,
    HEADERS_MAX = 256 * 1024,
    FAILURE_MAX = 64 * 1024,
    RETRY_AFTER_MAX_MS = 3600 * 1000,
    WORKERS_RESTING = 64,
    WORKER_CONNECTIONS = 4,
    TARGET_SIZE = HOST_SIZE + 24, /* scheme://host:port */
};

#define REPLY_MAX (64 * MIB)

struct worker {
    struct worker *next;
    CURLM *multi;
    CURL *easy;
    char target[TARGET_SIZE]; /* whom it has asked last */
};

struct http_client {
    char *proxy, *no_proxy, *ca_file;
    pthread_mutex_t lock;
    struct worker *resting; /* the one that worked last is the first */
    unsigned resting_count;
};

/* One call while it runs. */
struct transfer {
    struct http_client *client;
    const struct http_call *call;
    struct http_reply *reply;
    CURL *easy;
    CURLM *multi;
    CURLU *url;
    struct curl_slist *headers;
    char target[TARGET_SIZE];
    const char *host; /* what error texts call it: in `target`, without the scheme */
    bool loopback;

    int64_t active_ms; /* when the last byte came or went */
    int64_t deadline_ms;
    curl_off_t sent;
    uint64_t body_at; /* of a body that is read */
    size_t header_bytes;
    uint64_t body_bytes, body_max;
    bool encoded;     /* the body is not what it stands for */
    bool cut;         /* we ended it: the rest of a failure's body is of no use */
    struct error err; /* of a callback; it ends the transfer */
    char detail[CURL_ERROR_SIZE];
};

/* ---- workers ---- */

static void worker_free(struct worker *w)
{
    if (w->easy)
        curl_easy_cleanup(w->easy);
    if (w->multi)
        curl_multi_cleanup(w->multi);
    free(w);
}
DEFINE_CLEANUP(struct worker *, worker_free)
#define auto_worker __attribute__((cleanup(worker_free_cleanup)))

static struct worker *worker_new(void)
{
    auto_worker struct worker *w = calloc(1, sizeof(*w));

    if (!w || !(w->multi = curl_multi_init()) || !(w->easy = curl_easy_init()))
        return NULL;
    /* The pair that wakes a multi handle is made so that programs we start would inherit it. All
     * other descriptors are close-on-exec already. */
    (void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
    curl_multi_setopt(w->multi, CURLMOPT_MAXCONNECTS, (long)WORKER_CONNECTIONS);
    return TAKE_PTR(w);
}

/* One that may have a connection to the target, else any, else a new one. */
static struct worker *worker_take(struct http_client *c, const char *target)
{
    struct worker **at, *w;

    pthread_mutex_lock(&c->lock);
    for (at = &c->resting; *at && !str_eq((*at)->target, target);)
        at = &(*at)->next;
    if (!*at)
        at = &c->resting;
    w = *at;
    if (w) {
        *at = w->next;
        c->resting_count--;
    }
    pthread_mutex_unlock(&c->lock);
    return w ? w : worker_new();
}

static void worker_put(struct http_client *c, struct worker *w, const char *target)
{
    (void)!str_copy(w->target, sizeof(w->target), target);
    pthread_mutex_lock(&c->lock);
    if (c->resting_count < WORKERS_RESTING) {
        w->next = c->resting;
        c->resting = TAKE_PTR(w);
        c->resting_count++;
    }
    pthread_mutex_unlock(&c->lock);
    if (w)
        worker_free(w);
}

/* ---- the client ---- */

static CURLcode global_result;

static void global_init(void)
{
    global_result = curl_global_init(CURL_GLOBAL_DEFAULT);
}

void http_client_free(struct http_client *c)
{
    struct worker *w;

    if (!c)
        return;
    while ((w = c->resting)) {
        c->resting = w->next;
        worker_free(w);
    }
    pthread_mutex_destroy(&c->lock);
    free(c->proxy);
    free(c->no_proxy);
    free(c->ca_file);
    free(c);
}
DEFINE_CLEANUP(struct http_client *, http_client_free)
#define auto_client __attribute__((cleanup(http_client_free_cleanup)))

/* A copy; NULL stands for "". */
static int setting_copy(const char *s, char **ret, struct error *reterr)
{
    *ret = strdup(s ? s : "");
    return *ret ? 0 : error_no_memory(reterr);
}

int http_client_new(const struct http_client_options *options, struct http_client **ret,
                    struct error *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    auto_client struct http_client *c = calloc(1, sizeof(*c));
    int r;

    pthread_once(&once, global_init);
    if (!c)
        return error_no_memory(reterr);
    pthread_mutex_init(&c->lock, NULL);
    if (global_result != CURLE_OK)
        return error_set(reterr, ERR_INTERNAL, "libcurl cannot be used");
    r = setting_copy(options->proxy, &c->proxy, reterr);
    if (r == 0)
        r = setting_copy(options->no_proxy, &c->no_proxy, reterr);
    if (r == 0)
        r = setting_copy(options->ca_file, &c->ca_file, reterr);
    if (r < 0)
        return r;
    if (c->ca_file[0] && access(c->ca_file, R_OK) < 0)
        return error_set(reterr, ERR_INVALID, "the file of CA certificates '%s' cannot be read",
                         c->ca_file);
    *ret = TAKE_PTR(c);
    return 0;
}

int http_client_new_by(const struct settings *settings, struct http_client **ret,
                       struct error *reterr)
{
    return http_client_new(&(struct http_client_options){.size = sizeof(struct http_client_options),
                                                         .proxy = settings->proxy,
                                                         .no_proxy = settings->no_proxy,
                                                         .ca_file = settings->extra_ca},
                           ret, reterr);
}

/* ---- what comes ---- */

static void transfer_done(struct transfer *t)
{
    curl_slist_free_all(t->headers);
    curl_url_cleanup(t->url);
}
#define auto_transfer __attribute__((cleanup(transfer_done)))

static bool status_is_good(unsigned status)
{
    return status >= 200 && status < 300;
}

/* "<digits>" or "<digits>.<digits>" of some unit; what is longer than anybody waits is the limit.
 */
static int64_t number_parse(const char *s, int64_t unit_ms)
{
    size_t digits = strspn(s, "0123456789");
    int64_t value = 0;

    if (digits == 0 || (s[digits] != 0 && s[digits] != '.'))
        return -1;
    if (digits > 9)
        return RETRY_AFTER_MAX_MS;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (s[i] - '0');
    return MIN(value * unit_ms, RETRY_AFTER_MAX_MS);
}

static void header_retry_after(struct transfer *t, const char *value)
{
    int64_t ms = number_parse(value, 1000);
    time_t date = -1;

    if (ms < 0)
        date = curl_getdate(value, NULL);
    if (date >= 0)
        ms = MIN(MAX((int64_t)date * 1000 - clock_wall_ms(), 0), RETRY_AFTER_MAX_MS);
    if (t->reply->retry_after_ms < 0)
        t->reply->retry_after_ms = ms;
}

/* The finer one counts, whichever comes first. */
static void header_retry_after_ms(struct transfer *t, const char *value)
{
    int64_t ms = number_parse(value, 1);

    if (ms >= 0)
        t->reply->retry_after_ms = ms;
}

static void header_content_type(struct transfer *t, const char *value)
{
    char *to = t->reply->content_type;
    size_t len = strcspn(value, "; \t");

    len = MIN(len, sizeof(t->reply->content_type) - 1);
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(value[i] >= 'A' && value[i] <= 'Z' ? value[i] + ('a' - 'A') : value[i]);
    to[len] = 0;
}

/* Nothing was asked to be encoded; who does it anyway may mean a bomb. */
static void header_encoding(struct transfer *t, const char *value)
{
    t->encoded |= value[0] != 0 && strcasecmp(value, "identity") != 0;
}

static void header_transfer(struct transfer *t, const char *value)
{
    if (strcasecmp(value, "chunked") != 0)
        header_encoding(t, value);
}

/* curl passes over a length that it cannot hold, and a cut reply would then seem to be whole. */
static void header_length(struct transfer *t, const char *value)
{
    if (strlen(value) > 18)
        error_set(&t->err, ERR_UPSTREAM, "the reply of %s has a malformed length", t->host);
}

static const struct {
    const char *name;
    void (*take)(struct transfer *t, const char *value);
} header_table[] = {
    {"content-type", header_content_type},     {"retry-after", header_retry_after},
    {"content-encoding", header_encoding},     {"transfer-encoding", header_transfer},
    {"retry-after-ms", header_retry_after_ms}, {"content-length", header_length},
};

enum { VALUE_SIZE = 256 };

/* The header's value without spaces around it, if the line is of that header. */
static bool header_value(const char *line, size_t len, const char *name, char ret[VALUE_SIZE])
{
    const char *colon = memchr(line, ':', len), *s;
    size_t n;

    if (!colon || (size_t)(colon - line) != strlen(name) ||
        strncasecmp(line, name, strlen(name)) != 0)
        return false;
    s = colon + 1;
    n = len - (size_t)(s - line);
    while (n > 0 && strchr(" \t", *s) && *s)
        s++, n--;
    while (n > 0 && strchr(" \t\r\n", s[n - 1]))
        n--;
    n = MIN(n, VALUE_SIZE - 1);
    memcpy(ret, s, n);
    ret[n] = 0;
    return true;
}

static void header_take(struct transfer *t, const char *line, size_t len)
{
    char value[VALUE_SIZE];

    for (size_t i = 0; i < ARRAY_LEN(header_table); i++) {
        if (header_value(line, len, header_table[i].name, value))
            header_table[i].take(t, value);
    }
    if (t->call->keep && header_value(line, len, t->call->keep, value))
        memcpy(t->reply->kept, value, sizeof(value));
}

/* The empty line behind the headers. */
static void head_end(struct transfer *t)
{
    if (t->encoded && status_is_good(t->reply->status))
        error_set(&t->err, ERR_UPSTREAM, "the reply of %s is compressed, which was not asked for",
                  t->host);
    else if (t->call->on_head && t->reply->status >= 200)
        t->call->on_head(t->call->user, t->reply);
}

/* A status line: what came before belongs to an interim reply. */
static void reply_begin(struct transfer *t)
{
    long status = 0;

    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    t->reply->status = (unsigned)status;
    t->reply->content_type[0] = 0;
    t->reply->kept[0] = 0;
    t->reply->retry_after_ms = -1;
    t->encoded = false;
}

static size_t on_header(char *line, size_t one, size_t len, void *user)
{
    struct transfer *t = user;

    t->active_ms = clock_ms();
    t->header_bytes += len;
    if (t->header_bytes > HEADERS_MAX)
        error_set(&t->err, ERR_LIMIT, "the headers of %s are larger than %d bytes", t->host,
                  HEADERS_MAX);
    else if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
        reply_begin(t);
    else
        header_take(t, line, len);
    if (line[0] == '\r' || line[0] == '\n')
        head_end(t);
    return t->err.code ? CURL_WRITEFUNC_ERROR : len;
}

/* What a service says about its own failure: some of it is enough. */
static size_t failure_keep(struct transfer *t, const char *data, size_t len)
{
    size_t room = FAILURE_MAX - t->reply->body.len;

    t->active_ms = clock_ms();
    t->cut = t->encoded || len > room;
    if (!t->encoded && buf_append(&t->reply->body, data, MIN(len, room)) < 0)
        error_no_memory(&t->err);
    return t->cut || t->err.code ? CURL_WRITEFUNC_ERROR : len;
}

static size_t on_body(char *data, size_t one, size_t len, void *user)
{
    struct transfer *t = user;
    int r = 0;

    t->body_bytes += len;
    if (!status_is_good(t->reply->status))
        return failure_keep(t, data, len);
    if (t->body_bytes > t->body_max)
        error_set(&t->err, ERR_LIMIT, "the reply of %s is larger than %llu bytes", t->host,
                  (unsigned long long)t->body_max);
    else if (!t->call->on_data && buf_append(&t->reply->body, data, len) < 0)
        error_no_memory(&t->err);
    else if (t->call->on_data)
        r = t->call->on_data(t->call->user, data, len, &t->err);
    if (r < 0 && !t->err.code)
        error_set(&t->err, ERR_INTERNAL, "the reply of %s was not taken", t->host);
    t->active_ms = clock_ms(); /* it may have taken a while to be taken */
    return t->err.code ? CURL_WRITEFUNC_ERROR : len;
}

/* ---- what goes ---- */

/* A piece of a body that is not in memory. */
static size_t on_body_read(char *to, size_t one, size_t max, void *user)
{
    struct transfer *t = user;
    const struct http_call *c = t->call;
    size_t left = c->len - (size_t)t->body_at;
    ssize_t n = left ? c->body_read(c->user, t->body_at, to, MIN(max, left), &t->err) : 0;

    if (n < 0 || (n == 0 && left)) {
        if (!t->err.code)
            error_set(&t->err, ERR_INTERNAL, "what was to be sent to %s ended early", t->host);
        return CURL_READFUNC_ABORT;
    }
    t->body_at += (uint64_t)n;
    return (size_t)n;
}

static int on_body_seek(void *user, curl_off_t offset, int origin)
{
    struct transfer *t = user;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->call->len)
        return CURL_SEEKFUNC_FAIL;
    t->body_at = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* curl's own sockets would be handed on to the programs that we start. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *t = user;
    struct addr addr = {0};
    uint16_t port;

    if (t->call->public_only && !t->client->proxy[0]) {
        if (addr_from_sockaddr(&address->addr, &addr, &port) < 0)
            return CURL_SOCKET_BAD;
        addr_unmap(&addr);
        if (addr_classify(&addr) != ADDR_PUBLIC) {
            error_set(&t->err, ERR_DENIED, "'%s' leads to an address that is not public", t->host);
            return CURL_SOCKET_BAD;
        }
        /* Of several addresses one will do. */
        t->err.code = ERR_OK;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- what is asked ---- */

static int target_read(struct transfer *t, const char *scheme, const char *host, const char *port,
                       struct error *reterr)
{
    struct url u = {0};
    int n = snprintf(t->target, sizeof(t->target), "%s://%s:%s", scheme, host, port);

    if (n < 0 || (size_t)n >= sizeof(t->target))
        return error_set(reterr, ERR_INVALID, "the URL's host name is too long");
    t->host = t->target + strlen(scheme) + 3;
    (void)!str_copy(u.host, sizeof(u.host), host);
    t->loopback = url_is_loopback(&u);
    return 0;
}

static int url_read(struct transfer *t, struct error *reterr)
{
    char *parts[3] = {0};
    static const CURLUPart which[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    int r = 0;

    t->url = curl_url();
    if (!t->url)
        return error_no_memory(reterr);
    if (curl_url_set(t->url, CURLUPART_URL, t->call->url, CURLU_DISALLOW_USER) != CURLUE_OK)
        return error_set(reterr, ERR_INVALID, "this is no URL of a service");
    for (size_t i = 0; i < ARRAY_LEN(parts) && r == 0; i++) {
        if (curl_url_get(t->url, which[i], &parts[i], CURLU_DEFAULT_PORT) != CURLUE_OK)
            r = error_set(reterr, ERR_INVALID, "the URL of a service lacks its host");
    }
    if (r == 0 && !str_eq(parts[0], "http") && !str_eq(parts[0], "https"))
        r = error_set(reterr, ERR_INVALID, "the URL of a service begins with http:// or https://");
    if (r == 0)
        r = target_read(t, parts[0], parts[1], parts[2], reterr);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        curl_free(parts[i]);
    return r;
}

static int header_add(struct transfer *t, const char *line, struct error *reterr)
{
    struct curl_slist *list = curl_slist_append(t->headers, line);

    if (!list)
        return error_no_memory(reterr);
    t->headers = list;
    return 0;
}

/* A line end in a header would begin another one; without a colon curl would take it for a rule. */
static int headers_read(struct transfer *t, struct error *reterr)
{
    const char *const *h = t->call->headers;
    bool typed = false;
    int r = header_add(t, "Expect:", reterr);

    for (; r == 0 && h && *h; h++) {
        size_t name =
            strspn(*h, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

        for (const char *s = *h; *s; s++) {
            if ((unsigned char)*s < ' ' || *s == 0x7f)
                return error_set(reterr, ERR_INVALID, "a header has a control character");
        }
        if (name == 0 || (*h)[name] != ':')
            return error_set(reterr, ERR_INVALID, "a header has no name");
        typed |= strncasecmp(*h, "content-type:", 13) == 0;
        r = header_add(t, *h, reterr);
    }
    return r == 0 && !typed ? header_add(t, "Content-Type:", reterr) : r;
}

static int method_check(const char *method, struct error *reterr)
{
    if (str_check_chars(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 16))
        return 0;
    return error_set(reterr, ERR_INVALID, "this is no method of HTTP");
}

static CURLcode body_read_set(struct transfer *t)
{
    CURLcode r[] = {
        curl_easy_setopt(t->easy, CURLOPT_READFUNCTION, on_body_read),
        curl_easy_setopt(t->easy, CURLOPT_READDATA, t),
        curl_easy_setopt(t->easy, CURLOPT_SEEKFUNCTION, on_body_seek),
        curl_easy_setopt(t->easy, CURLOPT_SEEKDATA, t),
    };

    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        if (r[i] != CURLE_OK)
            return r[i];
    }
    return CURLE_OK;
}

static CURLcode method_set(struct transfer *t)
{
    const struct http_call *c = t->call;
    CURLcode r;

    if (str_eq(c->method, "GET"))
        return curl_easy_setopt(t->easy, CURLOPT_HTTPGET, 1L);
    if (str_eq(c->method, "HEAD"))
        return curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
    r = curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    if (r == CURLE_OK)
        r = c->body_read ? body_read_set(t)
                         : curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, c->body ? c->body : "");
    if (r == CURLE_OK)
        r = curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->len);
    if (r == CURLE_OK)
        r = curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, c->method);
    return r;
}

/* The same for every call. QUICK_EXIT: a call that is cancelled does not wait for a resolver. */
static const struct {
    CURLoption option;
    long value;
} easy_numbers[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_QUICK_EXIT, 1},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
    {CURLOPT_TCP_NODELAY, 1},
    {CURLOPT_TCP_KEEPALIVE, 1},
    {CURLOPT_NOPROGRESS, 1},
};

/* "" as a proxy, and as the names without one: curl looks into the environment for neither. */
static CURLcode strings_set(struct transfer *t)
{
    const struct http_client *c = t->client;
    const struct {
        CURLoption option;
        const char *value;
    } strings[] = {
        {CURLOPT_PROXY, t->loopback ? "" : c->proxy},
        {CURLOPT_NOPROXY, c->no_proxy},
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_USERAGENT, "sandbox-agent/" PACKAGE_VERSION},
        {CURLOPT_CAINFO, c->ca_file[0] ? c->ca_file : NULL},
    };
    CURLcode r = CURLE_OK;

    for (size_t i = 0; i < ARRAY_LEN(strings) && r == CURLE_OK; i++) {
        if (strings[i].value || strings[i].option != CURLOPT_CAINFO)
            r = curl_easy_setopt(t->easy, strings[i].option, strings[i].value);
    }
    return r;
}

static CURLcode hooks_set(struct transfer *t)
{
    const struct http_call *c = t->call;
    long connect_ms = c->connect_timeout_ms ? (long)c->connect_timeout_ms : CONNECT_MS;
    CURLcode r[] = {
        curl_easy_setopt(t->easy, CURLOPT_CURLU, t->url),
        curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers),
        curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms),
        curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header),
        curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t),
        curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body),
        curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t),
        curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, on_socket),
        curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETDATA, t),
        curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->detail),
    };

    for (size_t i = 0; i < ARRAY_LEN(r); i++) {
        if (r[i] != CURLE_OK)
            return r[i];
    }
    return CURLE_OK;
}

static int easy_prepare(struct transfer *t, struct error *reterr)
{
    CURLcode r = CURLE_OK;

    curl_easy_reset(t->easy);
    for (size_t i = 0; i < ARRAY_LEN(easy_numbers) && r == CURLE_OK; i++)
        r = curl_easy_setopt(t->easy, easy_numbers[i].option, easy_numbers[i].value);
    if (r == CURLE_OK)
        r = strings_set(t);
    if (r == CURLE_OK)
        r = hooks_set(t);
    if (r == CURLE_OK)
        r = method_set(t);
    if (r == CURLE_OUT_OF_MEMORY)
        return error_no_memory(reterr);
    if (r != CURLE_OK)
        return error_set(reterr, ERR_INTERNAL, "libcurl refuses an option: %s",
                         curl_easy_strerror(r));
    return 0;
}

/* ---- how it ends ---- */

static const struct {
    CURLcode code;
    bool told; /* curl's own words may follow: nothing of the exchange is in them */
    const char *text;
} failure_table[] = {
    {CURLE_COULDNT_RESOLVE_HOST, false, "its name has no address"},
    {CURLE_COULDNT_RESOLVE_PROXY, false, "the proxy's name has no address"},
    {CURLE_COULDNT_CONNECT, false, "it takes no connection"},
    {CURLE_PEER_FAILED_VERIFICATION, true, "its certificate is not valid"},
    {CURLE_SSL_CONNECT_ERROR, true, "no TLS connection"},
    {CURLE_SSL_CACERT_BADFILE, false, "the file of CA certificates is not valid"},
    {CURLE_GOT_NOTHING, false, "it closed the connection without a reply"},
    {CURLE_PARTIAL_FILE, false, "its reply was cut"},
    {CURLE_RECV_ERROR, false, "the connection was lost"},
    {CURLE_SEND_ERROR, false, "the connection was lost"},
    {CURLE_WEIRD_SERVER_REPLY, false, "its reply is malformed"},
    {CURLE_UNSUPPORTED_PROTOCOL, false, "its reply is not HTTP"},
    {CURLE_PROXY, false, "the proxy refuses the connection"},
};

/* curl's words as one line of plain characters. */
static void detail_clean(char *s)
{
    size_t len = strcspn(s, "\r\n");

    s[MIN(len, 160)] = 0;
    for (; *s; s++) {
        if (*s < ' ' || *s >= 0x7f)
            *s = '?';
    }
}

static int transfer_fail(struct transfer *t, CURLcode code, struct error *reterr)
{
    const char *text = "its reply is malformed";
    bool told = false;

    if (code == CURLE_OUT_OF_MEMORY) /* curl says so too when a line passes its own bound */
        return error_set(reterr, ERR_LIMIT,
                         "a line of the reply of %s is too long, or memory is short", t->host);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return error_set(reterr, ERR_TIMEOUT, "no connection to %s in time", t->host);
    for (size_t i = 0; i < ARRAY_LEN(failure_table); i++) {
        if (failure_table[i].code == code) {
            text = failure_table[i].text;
            told = failure_table[i].told && t->detail[0];
        }
    }
    detail_clean(t->detail);
    return error_set(reterr, ERR_UPSTREAM, "%s: %s%s%s", t->host, text, told ? ": " : "",
                     told ? t->detail : "");
}

static int transfer_end(struct transfer *t, CURLcode code, struct error *reterr)
{
    if (t->err.code) {
        if (reterr)
            *reterr = t->err;
        return -(int)t->err.code;
    }
    return code == CURLE_OK || t->cut ? 0 : transfer_fail(t, code, reterr);
}

/* ---- waiting ---- */

static int64_t idle_ms(const struct transfer *t)
{
    return t->call->idle_timeout_ms ? t->call->idle_timeout_ms : IDLE_MS;
}

static bool transfer_cancelled(const struct transfer *t)
{
    return t->call->cancel_fd >= 0 && fd_wait(t->call->cancel_fd, POLLIN, 0) != 0;
}

/* A connection that is being made has a bound of its own; bytes that go count as those that come.
 */
static void activity_note(struct transfer *t)
{
    curl_off_t connected = 0, sent = 0;

    curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
    curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if (connected == 0 || sent != t->sent)
        t->active_ms = clock_ms();
    t->sent = sent;
}

static int bounds_check(struct transfer *t, struct error *reterr)
{
    int64_t now = clock_ms();

    if (transfer_cancelled(t))
        return error_set(reterr, ERR_CANCELLED, "the call to %s was cancelled", t->host);
    if (now >= t->deadline_ms)
        return error_set(reterr, ERR_TIMEOUT, "the reply of %s took too long", t->host);
    activity_note(t);
    if (now - t->active_ms >= idle_ms(t))
        return error_set(reterr, ERR_TIMEOUT, "nothing came from %s for %lld ms", t->host,
                         (long long)idle_ms(t));
    return 0;
}

/* How it went, once it is over. */
static bool transfer_is_over(struct transfer *t, CURLcode *ret)
{
    struct CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(t->multi, &left))) {
        if (message->msg == CURLMSG_DONE) {
            *ret = message->data.result;
            return true;
        }
    }
    return false;
}

static CURLMcode transfer_wait(struct transfer *t)
{
    struct curl_waitfd cancel = {.fd = t->call->cancel_fd, .events = CURL_WAIT_POLLIN};
    int64_t until = MIN(t->deadline_ms, t->active_ms + idle_ms(t));

    return curl_multi_poll(t->multi, &cancel, t->call->cancel_fd >= 0, clock_poll_ms(until), NULL);
}

static int transfer_run(struct transfer *t, struct error *reterr)
{
    CURLMcode m = CURLM_OK;
    CURLcode code;
    int running, r;

    while (m == CURLM_OK) {
        r = bounds_check(t, reterr);
        if (r < 0)
            return r;
        m = curl_multi_perform(t->multi, &running);
        if (transfer_is_over(t, &code))
            return transfer_end(t, code, reterr);
        if (m == CURLM_OK)
            m = transfer_wait(t);
    }
    return error_set(reterr, ERR_INTERNAL, "libcurl: %s", curl_multi_strerror(m));
}

static int transfer_start(struct transfer *t, struct worker *w, struct error *reterr)
{
    const struct http_call *call = t->call;
    int r;

    t->easy = w->easy;
    t->multi = w->multi;
    r = easy_prepare(t, reterr);
    if (r < 0)
        return r;
    if (curl_multi_add_handle(w->multi, w->easy) != CURLM_OK)
        return error_no_memory(reterr);
    t->active_ms = clock_ms();
    t->deadline_ms = t->active_ms + (call->total_timeout_ms ? call->total_timeout_ms : TOTAL_MS);
    return transfer_run(t, reterr);
}

int http_client_call(struct http_client *c, const struct http_call *call, struct http_reply *ret,
                     struct error *reterr)
{
    auto_transfer struct transfer t = {.client = c, .call = call, .reply = ret};
    struct worker *w;
    int r;

    *ret = (struct http_reply){.retry_after_ms = -1};
    t.body_max = call->reply_max ? call->reply_max : REPLY_MAX;
    buf_init(&ret->body, MAX(t.body_max, (uint64_t)FAILURE_MAX));
    r = method_check(call->method, reterr);
    if (r == 0)
        r = url_read(&t, reterr);
    if (r == 0)
        r = headers_read(&t, reterr);
    if (r < 0)
        return r;
    w = worker_take(c, t.target);
    if (!w)
        return error_no_memory(reterr);
    r = transfer_start(&t, w, reterr);
    curl_multi_remove_handle(w->multi, w->easy);
    curl_easy_reset(w->easy);
    worker_put(c, w, t.target);
    if (r < 0)
        buf_done(&ret->body);
    return r;
}
