/* SPDX-License-Identifier: MIT */
/*
 * Calls to services that do what they should not. The service of these tests answers by the path
 * that is asked for, from a table of raw replies.
 */
#include "http/client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/spawn.h"
#include "base/str.h"
#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* What the service does once the reply was sent. */
enum then { THEN_KEEP, THEN_CLOSE, THEN_HANG, THEN_REPEAT, THEN_DRIP };

struct page {
    const char *path, *reply;
    enum then then;
    const char *more; /* sent again and again; of DRIP each 20 ms, ten times, then closed */
};

#define HEAD(status, headers) "HTTP/1.1 " status "\r\n" headers "\r\n"

static const struct page pages[] = {
    {"/ok",
     HEAD("200 OK", "Content-Type: Text/Plain; charset=utf-8\r\nContent-Length: 5\r\n") "hello"},
    {"/chunks",
     HEAD("200 OK", "Transfer-Encoding: chunked\r\n") "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
    {"/interim", HEAD("103 Early Hints", "Content-Type: a/b\r\nRetry-After: 9\r\n")
                     HEAD("200 OK", "Content-Length: 2\r\n") "ok"},
    {"/redirect",
     HEAD("302 Found", "Location: http://127.0.0.1:1/stolen\r\nContent-Length: 4\r\n") "away"},
    {"/busy", HEAD("429 Too Many", "Retry-After: 7\r\nContent-Length: 4\r\n") "slow"},
    {"/busy-ms",
     HEAD("429 Too Many", "Retry-After-Ms: 1250.5\r\nRetry-After: 7\r\nContent-Length: 0\r\n")},
    {"/busy-ever", HEAD("503 No", "Retry-After: 99999999999999999999\r\nContent-Length: 0\r\n")},
    {"/busy-past", HEAD("503 No", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\nContent-Length: 0"
                                  "\r\n")},
    {"/busy-odd", HEAD("503 No", "Retry-After: -5\r\nContent-Length: 0\r\n")},
    {"/cut", HEAD("200 OK", "Content-Length: 100\r\n") "only this", THEN_CLOSE},
    {"/cut-chunk", HEAD("200 OK", "Transfer-Encoding: chunked\r\n") "20\r\nhalf", THEN_CLOSE},
    {"/nothing", "", THEN_CLOSE},
    {"/silent", "", THEN_HANG},
    {"/half", HEAD("200 OK", "Content-Length: 100\r\n") "first", THEN_HANG},
    {"/drip", HEAD("200 OK", "") "x", THEN_DRIP, "x"},
    {"/old", "just text, as in 1991\n", THEN_CLOSE},
    {"/noise", "\x16\x03\x01\x02garbage\r\n\r\n", THEN_CLOSE},
    {"/gzip", HEAD("200 OK", "Content-Encoding: gzip\r\nContent-Length: 4\r\n") "\x1f\x8b\x08\x01"},
    {"/gzip-transfer", HEAD("200 OK", "Transfer-Encoding: gzip, chunked\r\n") "4\r\n\x1f\x8b\x08"
                                                                              "\x01\r\n0\r\n\r\n"},
    {"/gzip-failure",
     HEAD("500 Oh", "Content-Encoding: gzip\r\nContent-Length: 4\r\n") "\x1f\x8b\x08\x01"},
    {"/identity", HEAD("200 OK", "Content-Encoding: identity\r\nContent-Length: 2\r\n") "ok"},
    {"/endless", HEAD("200 OK", ""), THEN_REPEAT, "0123456789abcdef"},
    {"/endless-failure", HEAD("500 Oh", ""), THEN_REPEAT, "0123456789abcdef"},
    {"/endless-headers", "HTTP/1.1 200 OK\r\n", THEN_REPEAT, "X-More: of this\r\n"},
    {"/endless-line", "HTTP/1.1 200 OK\r\nX-Long: ", THEN_REPEAT, "0123456789abcdef"},
    {"/endless-trailers", HEAD("200 OK", "Transfer-Encoding: chunked\r\n") "2\r\nok\r\n0\r\n",
     THEN_REPEAT, "X-More: of this\r\n"},
    {"/endless-interim", "", THEN_REPEAT, HEAD("103 Early Hints", "X: y\r\n")},
    {"/lies", HEAD("200 OK", "Content-Length: 99999999999999999999999\r\n") "x", THEN_CLOSE},
    {"/negative", HEAD("200 OK", "Content-Length: -1\r\n") "x", THEN_CLOSE},
};

enum { CONNECTIONS = 256 };

static struct {
    int fd;
    int stop; /* eventfd: readable for ever once the test is over */
    uint16_t port;
    pthread_t accepter, threads[CONNECTIONS];
    int sockets[CONNECTIONS];
    atomic_uint connections, requests;
    pthread_mutex_t lock;
    char request[65536]; /* the newest */
} service = {.fd = -1, .stop = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static bool service_sent(int fd, const char *data, size_t len)
{
    while (len > 0) {
        struct pollfd p[] = {{.fd = fd, .events = POLLOUT}, {.fd = service.stop, .events = POLLIN}};
        ssize_t n;

        if (poll(p, 2, -1) < 0 || p[1].revents)
            return false;
        n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Whether the client has gone, or the test is over, within `ms`. */
static bool service_left(int fd, int ms)
{
    struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = service.stop, .events = POLLIN}};

    return poll(p, 2, ms) != 0;
}

static size_t body_length(const char *head)
{
    const char *s = strcasestr(head, "content-length: ");

    return s ? (size_t)atoll(s + 16) : 0;
}

/* One request, whole; its head stays. */
static bool service_request(int fd)
{
    static __thread char in[65536];
    size_t len = 0, body = 0;
    char *end = NULL;

    while (!end || body > len - (size_t)(end - in)) {
        ssize_t n;

        if (len == sizeof(in) - 1) { /* the rest of a large body is not kept */
            body -= len - (size_t)(end - in);
            end = in;
            len = 0;
        }
        if (!service_left(fd, -1) || (n = recv(fd, in + len, sizeof(in) - 1 - len, 0)) <= 0)
            return false;
        len += (size_t)n;
        in[len] = 0;
        if (in[0] == 0x16) { /* somebody speaks TLS */
            service_sent(fd, "HTTP/1.1 400 No\r\n\r\n", 19);
            return false;
        }
        if (!end && (end = strstr(in, "\r\n\r\n"))) {
            end += 4;
            body = body_length(in);
            pthread_mutex_lock(&service.lock);
            memcpy(service.request, in, len + 1);
            pthread_mutex_unlock(&service.lock);
        }
    }
    atomic_fetch_add(&service.requests, 1);
    return true;
}

static const struct page *service_page(void)
{
    const struct page *found = NULL;

    pthread_mutex_lock(&service.lock);
    for (size_t i = 0; i < ARRAY_LEN(pages) && !found; i++) {
        const char *path = strchr(service.request, ' ') + 1;

        if (strcspn(path, " ?") == strlen(pages[i].path) && str_starts(path, pages[i].path))
            found = &pages[i];
    }
    pthread_mutex_unlock(&service.lock);
    return found;
}

static bool service_answer(int fd, const struct page *page)
{
    static __thread char many[65536];
    size_t one = page->more ? strlen(page->more) : 0, filled = 0;

    if (!service_sent(fd, page->reply, strlen(page->reply)))
        return false;
    if (page->then == THEN_HANG)
        service_left(fd, -1);
    for (unsigned i = 0; page->then == THEN_DRIP && i < 10 && !service_left(fd, 20); i++)
        service_sent(fd, page->more, one);
    for (; page->then == THEN_REPEAT && filled + one <= sizeof(many); filled += one)
        memcpy(many + filled, page->more, one);
    while (page->then == THEN_REPEAT && service_sent(fd, many, filled))
        ;
    return page->then == THEN_KEEP;
}

static void *service_talk(void *arg)
{
    int fd = *(int *)arg;

    while (service_request(fd)) {
        const struct page *page = service_page();

        if (!page || !service_answer(fd, page))
            break;
    }
    shutdown(fd, SHUT_RDWR);
    return NULL;
}

static void *service_accept(void *arg)
{
    while (service.connections < CONNECTIONS) {
        struct pollfd p[] = {{.fd = service.fd, .events = POLLIN},
                             {.fd = service.stop, .events = POLLIN}};
        unsigned at = service.connections;

        if (poll(p, 2, -1) < 0 || p[1].revents)
            break;
        service.sockets[at] = accept4(service.fd, NULL, NULL, SOCK_CLOEXEC);
        if (service.sockets[at] < 0 ||
            pthread_create(&service.threads[at], NULL, service_talk, &service.sockets[at]))
            abort();
        atomic_fetch_add(&service.connections, 1);
    }
    return NULL;
}

/* ---- a test's client and service ---- */

struct world {
    struct http_client *client;
    struct http_reply reply;
    struct error err;
    char url[256];
};

static void world_done(struct world *w)
{
    http_client_free(w->client);
    buf_done(&w->reply.body);
    (void)!write(service.stop, &(uint64_t){1}, 8);
    pthread_join(service.accepter, NULL);
    for (unsigned i = 0; i < service.connections; i++) {
        pthread_join(service.threads[i], NULL);
        close(service.sockets[i]);
    }
    close(service.fd);
    close(service.stop);
}
#define auto_world __attribute__((cleanup(world_done)))

static int listen_open(uint16_t *ret_port, int backlog)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, backlog) < 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
        test_fail(__FILE__, __LINE__, "cannot listen");
    *ret_port = ntohs(sa.sin_port);
    return fd;
}

static struct world world_with(struct http_client_options options)
{
    struct world w = {0};

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    options.size = sizeof(options);
    assert_ok(http_client_new(&options, &w.client, &w.err), w.err);
    service.connections = 0;
    service.requests = 0;
    service.fd = listen_open(&service.port, 128);
    service.stop = eventfd(0, EFD_CLOEXEC);
    if (service.stop < 0 || pthread_create(&service.accepter, NULL, service_accept, NULL))
        abort();
    return w;
}

static struct world world_new(void)
{
    return world_with((struct http_client_options){0});
}

static int ask_with(struct world *w, const char *path, struct http_call call)
{
    snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%u%s", service.port, path);
    call.size = sizeof(call);
    call.method = call.method ? call.method : "GET";
    call.url = call.url ? call.url : w->url;
    call.cancel_fd = call.cancel_fd ? call.cancel_fd : -1;
    buf_done(&w->reply.body);
    w->err = (struct error){0};
    return http_client_call(w->client, &call, &w->reply, &w->err);
}

static int ask(struct world *w, const char *path)
{
    return ask_with(w, path, (struct http_call){0});
}

/* ---- what goes well ---- */

TEST(client_gives_status_type_and_body)
{
    auto_world struct world w = world_new();

    assert_ok(ask(&w, "/ok"), w.err);
    assert_uint_eq(w.reply.status, 200);
    assert_str_eq(w.reply.content_type, "text/plain");
    assert_str_eq(buf_str(&w.reply.body), "hello");
    assert_int_eq(w.reply.retry_after_ms, -1);
    assert_ok(ask(&w, "/chunks"), w.err);
    assert_str_eq(buf_str(&w.reply.body), "abcde");
    assert_str_eq(w.reply.content_type, "");
    assert_ok(ask(&w, "/identity"), w.err);
    assert_str_eq(buf_str(&w.reply.body), "ok");
}

TEST(client_keeps_nothing_of_interim_replies)
{
    auto_world struct world w = world_new();

    assert_ok(ask(&w, "/interim"), w.err);
    assert_uint_eq(w.reply.status, 200);
    assert_str_eq(w.reply.content_type, "");
    assert_int_eq(w.reply.retry_after_ms, -1);
    assert_str_eq(buf_str(&w.reply.body), "ok");
}

TEST(client_uses_a_connection_again)
{
    auto_world struct world w = world_new();

    for (unsigned i = 0; i < 5; i++)
        assert_ok(ask(&w, "/ok"), w.err);
    assert_uint_eq(service.requests, 5);
    assert_uint_eq(service.connections, 1);
}

TEST(client_sends_what_it_was_given_and_nothing_of_its_own)
{
    auto_world struct world w = world_new();
    const char *const headers[] = {"X-Api-Key: secret", "Content-Type: application/json", NULL};

    assert_ok(ask_with(&w, "/ok?alt=sse",
                       (struct http_call){
                           .method = "POST", .headers = headers, .body = "{\"a\":1}", .len = 7}),
              w.err);
    assert_true(str_starts(service.request, "POST /ok?alt=sse HTTP/1.1\r\n"));
    assert_str_has(service.request, "\r\nX-Api-Key: secret\r\n");
    assert_str_has(service.request, "\r\nContent-Type: application/json\r\n");
    assert_str_has(service.request, "\r\nContent-Length: 7\r\n");
    assert_str_has(service.request, "\r\n\r\n{\"a\":1}");
    assert_null(strcasestr(service.request, "accept-encoding"));
    assert_null(strcasestr(service.request, "expect"));
    assert_null(strcasestr(service.request, "cookie"));
}

TEST(client_sends_large_bodies_whole)
{
    auto_world struct world w = world_new();
    auto_free char *body = calloc(1, 8 * MIB);

    assert_not_null(body);
    assert_ok(
        ask_with(&w, "/ok", (struct http_call){.method = "POST", .body = body, .len = 8 * MIB}),
        w.err);
    assert_str_has(service.request, "\r\nContent-Length: 8388608\r\n");
    assert_uint_eq(service.requests, 1);
}

struct source {
    size_t len, fail_at;
    unsigned begun;
    bool gaps; /* something else was asked for than what follows */
    uint64_t next;
};

static ssize_t source_read(void *user, uint64_t offset, char *to, size_t max, struct error *reterr)
{
    struct source *s = user;
    size_t n = MIN(max, s->len - (size_t)offset);

    s->begun += offset == 0;
    s->gaps |= offset != 0 && offset != s->next;
    if (s->fail_at && offset >= s->fail_at)
        return error_set(reterr, ERR_INVALID, "the source is at its end");
    memset(to, 'x', n);
    s->next = offset + n;
    return (ssize_t)n;
}

static int send_source(struct world *w, const char *path, struct source *s, size_t len)
{
    return ask_with(
        w, path,
        (struct http_call){.method = "POST", .body_read = source_read, .len = len, .user = s});
}

TEST(client_reads_a_body_in_pieces)
{
    auto_world struct world w = world_new();
    struct source s = {.len = 8 * MIB}, none = {};

    assert_ok(send_source(&w, "/ok", &s, s.len), w.err);
    assert_str_has(service.request, "\r\nContent-Length: 8388608\r\n");
    assert_null(strcasestr(service.request, "expect"));
    assert_uint_eq(s.next, s.len);
    assert_uint_eq(s.begun, 1);
    assert_false(s.gaps);
    assert_ok(send_source(&w, "/ok", &none, 0), w.err);
    assert_str_has(service.request, "\r\nContent-Length: 0\r\n");
    assert_uint_eq(none.begun, 0);
}

TEST(client_begins_a_body_again_when_a_connection_was_lost)
{
    auto_world struct world w = world_new();
    struct source s = {.len = MIB};

    assert_ok(ask(&w, "/ok"), w.err);
    assert_true(send_source(&w, "/nothing", &s, s.len) < 0); /* the second time on a new one */
    assert_uint_eq(service.requests, 3);
    assert_uint_eq(s.begun, 2);
    assert_uint_eq(s.next, s.len);
}

TEST(client_ends_when_a_body_cannot_be_read)
{
    auto_world struct world w = world_new();
    struct source s = {.len = MIB, .fail_at = 100000}, brief = {.len = 1000};

    assert_int_eq(send_source(&w, "/ok", &s, s.len), -ERR_INVALID);
    assert_str_eq(w.err.text, "the source is at its end");
    assert_int_eq(send_source(&w, "/ok", &brief, 2000), -ERR_INTERNAL);
    assert_str_has(w.err.text, "ended early");
    assert_ok(ask(&w, "/ok"), w.err);
}

TEST(client_follows_no_redirect)
{
    auto_world struct world w = world_new();

    assert_ok(ask(&w, "/redirect"), w.err);
    assert_uint_eq(w.reply.status, 302);
    assert_str_eq(buf_str(&w.reply.body), "away");
    assert_uint_eq(service.requests, 1);
}

TEST(client_reads_how_long_to_wait)
{
    static const struct {
        const char *path;
        int64_t ms;
    } cases[] = {
        {"/busy", 7000},   {"/busy-ms", 1250}, {"/busy-ever", 3600000},
        {"/busy-past", 0}, {"/busy-odd", -1},
    };
    auto_world struct world w = world_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_ok(ask(&w, cases[i].path), w.err);
        assert_int_eq(w.reply.retry_after_ms, cases[i].ms);
    }
}

struct pieces {
    struct buf all;
    unsigned count, fail_at;
};

static int pieces_take(void *user, const char *data, size_t len, struct error *reterr)
{
    struct pieces *p = user;

    if (++p->count == p->fail_at)
        return error_set(reterr, ERR_PROTOCOL, "this piece is wrong");
    return buf_append(&p->all, data, len);
}

TEST(client_gives_pieces_as_they_come)
{
    auto_world struct world w = world_new();
    struct pieces p = {.all.max = 1000};

    assert_ok(ask_with(&w, "/drip", (struct http_call){.on_data = pieces_take, .user = &p}), w.err);
    buf_done(&p.all);
    assert_true(p.count >= 5);
    assert_uint_eq(w.reply.body.len, 0);
}

TEST(client_gives_no_pieces_of_a_failure)
{
    auto_world struct world w = world_new();
    struct pieces p = {.all.max = 1000};

    assert_ok(ask_with(&w, "/busy", (struct http_call){.on_data = pieces_take, .user = &p}), w.err);
    assert_uint_eq(p.count, 0);
    assert_str_eq(buf_str(&w.reply.body), "slow");
}

TEST(client_ends_when_a_piece_is_refused)
{
    auto_world struct world w = world_new();
    struct pieces p = {.all.max = 1000, .fail_at = 1};

    assert_int_eq(ask_with(&w, "/endless", (struct http_call){.on_data = pieces_take, .user = &p}),
                  -ERR_PROTOCOL);
    assert_str_eq(w.err.text, "this piece is wrong");
    assert_uint_eq(p.count, 1);
    assert_ok(ask(&w, "/ok"), w.err);
}

/* ---- what does not ---- */

TEST(client_names_how_a_reply_fails)
{
    static const struct {
        const char *path;
        enum error_code code;
        const char *text;
    } cases[] = {
        {"/cut", ERR_UPSTREAM, "its reply was cut"},
        {"/cut-chunk", ERR_UPSTREAM, "cut"},
        {"/nothing", ERR_UPSTREAM, "without a reply"},
        {"/old", ERR_UPSTREAM, "not HTTP"},
        {"/noise", ERR_UPSTREAM, "not HTTP"},
        {"/gzip", ERR_UPSTREAM, "compressed"},
        {"/gzip-transfer", ERR_UPSTREAM, "compressed"},
        {"/endless", ERR_LIMIT, "larger than 1048576 bytes"},
        {"/endless-headers", ERR_LIMIT, "headers"},
        {"/endless-line", ERR_LIMIT, "a line of the reply"},
        {"/endless-trailers", ERR_LIMIT, "headers"},
        {"/endless-interim", ERR_LIMIT, "headers"},
        {"/lies", ERR_UPSTREAM, "malformed"},
        {"/negative", ERR_UPSTREAM, "malformed"},
    };
    auto_world struct world w = world_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int r = ask_with(&w, cases[i].path, (struct http_call){.reply_max = MIB});

        test_note("%s: %s", cases[i].path, w.err.text);
        assert_int_eq(r, -(int)cases[i].code);
        assert_str_has(w.err.text, cases[i].text);
        assert_str_has(w.err.text, "127.0.0.1");
        assert_uint_eq(w.reply.body.len, 0);
    }
    assert_ok(ask(&w, "/ok"), w.err);
}

TEST(client_keeps_some_of_a_failure)
{
    auto_world struct world w = world_new();

    assert_ok(ask(&w, "/endless-failure"), w.err);
    assert_uint_eq(w.reply.status, 500);
    assert_uint_eq(w.reply.body.len, 65536);
    assert_ok(ask(&w, "/gzip-failure"), w.err);
    assert_uint_eq(w.reply.status, 500);
    assert_uint_eq(w.reply.body.len, 0);
}

TEST(client_waits_no_longer_than_it_may)
{
    auto_world struct world w = world_new();
    int64_t before = clock_ms();

    assert_int_eq(ask_with(&w, "/silent", (struct http_call){.idle_timeout_ms = 100}),
                  -ERR_TIMEOUT);
    assert_str_has(w.err.text, "nothing came from 127.0.0.1");
    assert_int_eq(ask_with(&w, "/half", (struct http_call){.idle_timeout_ms = 100}), -ERR_TIMEOUT);
    assert_int_eq(ask_with(&w, "/silent", (struct http_call){.total_timeout_ms = 100}),
                  -ERR_TIMEOUT);
    assert_str_has(w.err.text, "took too long");
    assert_true(clock_ms() - before >= 300);
    assert_ok(ask_with(&w, "/drip", (struct http_call){.idle_timeout_ms = 3000}), w.err);
    assert_uint_eq(w.reply.body.len, 11);
}

/* A queue that is full: the kernel does not answer whoever knocks then. */
struct wall {
    int fd, knocks[8];
    uint16_t port;
};

static void wall_done(struct wall *w)
{
    for (size_t i = 0; i < ARRAY_LEN(w->knocks); i++)
        close(w->knocks[i]);
    close(w->fd);
}

static struct wall wall_new(void)
{
    struct wall w = {0};
    struct sockaddr_in sa = {.sin_family = AF_INET};

    w.fd = listen_open(&w.port, 0);
    sa.sin_port = htons(w.port);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < ARRAY_LEN(w.knocks); i++) {
        w.knocks[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(w.knocks[i], (struct sockaddr *)&sa, sizeof(sa));
    }
    return w;
}

TEST(client_waits_for_connections_no_longer_than_it_may)
{
    auto_world struct world w = world_new();
    auto_cleanup(wall_done) struct wall wall = wall_new();
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/x?key=secret", wall.port);
    assert_int_eq(ask_with(&w, "", (struct http_call){.url = url, .connect_timeout_ms = 200}),
                  -ERR_TIMEOUT);
    assert_str_has(w.err.text, "no connection to 127.0.0.1");
    assert_null(strstr(w.err.text, "secret"));
}

/* ---- cancelling ---- */

static void *cancel_later(void *arg)
{
    struct timespec ts = {.tv_nsec = 50 * 1000000};

    nanosleep(&ts, NULL);
    (void)!write(*(int *)arg, &(uint64_t){1}, 8);
    return NULL;
}

static void cancel_check(struct world *w, const char *path, const char *url)
{
    auto_fd int fd = eventfd(0, EFD_CLOEXEC);
    int64_t before = clock_ms(), took;
    pthread_t thread;
    int r;

    assert_true(fd >= 0 && pthread_create(&thread, NULL, cancel_later, &fd) == 0);
    r = ask_with(w, path, (struct http_call){.url = url, .cancel_fd = fd});
    took = clock_ms() - before;
    pthread_join(thread, NULL);
    assert_int_eq(r, -ERR_CANCELLED);
    test_note("%s: %lld ms after it was asked to", w->err.text, (long long)took - 50);
    assert_true(took < 50 + 100 + 400); /* 400: other programs of this machine */
}

TEST(client_ends_at_once_when_it_is_cancelled)
{
    auto_world struct world w = world_new();
    auto_cleanup(wall_done) struct wall wall = wall_new();
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", wall.port);
    cancel_check(&w, "/silent", NULL);
    cancel_check(&w, "/half", NULL);
    cancel_check(&w, "", url);
    assert_ok(ask(&w, "/ok"), w.err);
}

TEST(client_does_not_begin_when_it_is_cancelled)
{
    auto_world struct world w = world_new();
    auto_fd int fd = eventfd(1, EFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_eq(ask_with(&w, "/ok", (struct http_call){.cancel_fd = fd}), -ERR_CANCELLED);
    assert_uint_eq(service.requests, 0);
}

TEST(client_sees_a_cancel_pipe_whose_other_end_is_gone)
{
    auto_world struct world w = world_new();
    int ends[2];

    assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[1]);
    assert_int_eq(ask_with(&w, "/silent", (struct http_call){.cancel_fd = ends[0]}),
                  -ERR_CANCELLED);
    close(ends[0]);
}

/* ---- what is refused before anything is sent ---- */

TEST(client_refuses_what_is_no_call)
{
    static const char *const urls[] = {
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "",
        "127.0.0.1",
        "http://",
        "gopher://127.0.0.1",
        "http://user:pw@127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/a\r\nX: y",
    };
    static const char *const headers[] = {"X: a\r\nY: b", "no colon", ": no name", "X;", "@/etc/x"};
    auto_world struct world w = world_new();

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        assert_int_eq(ask_with(&w, "", (struct http_call){.url = urls[i]}), -ERR_INVALID);
        assert_null(strstr(w.err.text, "pw"));
    }
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        const char *const list[] = {headers[i], NULL};

        assert_int_eq(ask_with(&w, "/ok", (struct http_call){.headers = list}), -ERR_INVALID);
    }
    assert_int_eq(ask_with(&w, "/ok", (struct http_call){.method = "GET /x"}), -ERR_INVALID);
    assert_uint_eq(service.connections, 0);
}

TEST(client_tells_nothing_of_the_query)
{
    auto_world struct world w = world_new();
    char url[64];
    uint16_t port;

    close(listen_open(&port, 1));
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/path?key=secret", port);
    assert_int_eq(ask_with(&w, "", (struct http_call){.url = url}), -ERR_UPSTREAM);
    assert_str_has(w.err.text, "takes no connection");
    assert_null(strstr(w.err.text, "secret"));
}

TEST(client_asks_no_private_address_where_only_public_ones_are_allowed)
{
    auto_world struct world w = world_new();

    assert_int_eq(ask_with(&w, "/ok", (struct http_call){.public_only = true}), -ERR_DENIED);
    assert_str_has(w.err.text, "not public");
    assert_uint_eq(service.connections, 0);
}

TEST(client_takes_no_plain_text_for_tls)
{
    auto_world struct world w = world_new();
    char url[64];

    snprintf(url, sizeof(url), "https://127.0.0.1:%u/ok", service.port);
    assert_int_eq(ask_with(&w, "", (struct http_call){.url = url, .total_timeout_ms = 5000}),
                  -ERR_UPSTREAM);
    assert_str_has(w.err.text, "no TLS connection");
}

/* ---- a service with a certificate of its own ---- */

static const char *const tls_words[][14] = {
    {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
     "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-batch", NULL},
    {"openssl", "s_server", "-accept", "127.0.0.1:0", "-www", NULL},
};

/* Runs openssl; `ret_out` reads what it says. */
static pid_t openssl_start(const char *const *words, const char *cert, const char *key,
                           bool makes_them, int *ret_out)
{
    const char *argv[20] = {0};
    auto_fd int theirs = -1;
    struct spawn_options o = {.size = sizeof(o), .path = "/usr/bin/openssl", .fd_count = 1};
    struct error err;
    size_t n = 0;
    int ends[2];
    pid_t pid;

    while (*words)
        argv[n++] = *words++;
    argv[n++] = makes_them ? "-out" : "-cert";
    argv[n++] = cert;
    argv[n++] = makes_them ? "-keyout" : "-key";
    argv[n++] = key;
    assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    *ret_out = ends[0];
    theirs = ends[1];
    o.argv = (char *const *)argv;
    o.fds = &(struct spawn_fd){.parent = theirs, .child = 1};
    assert_ok(spawn_start(&o, &pid, &err), err);
    return pid;
}

struct tls {
    char cert[256], key[256];
    pid_t pid;
    int out;
    unsigned port;
};

static void tls_done(struct tls *t)
{
    int status;

    kill(t->pid, SIGKILL);
    (void)!spawn_wait(t->pid, &status, NULL);
    close(t->out);
}

static struct tls tls_new(void)
{
    char said[4096] = "";
    size_t len = 0;
    struct tls t = {0};
    struct error err;
    int status;
    pid_t pid;

    if (access("/usr/bin/openssl", X_OK) < 0)
        test_skip("there is no openssl");
    snprintf(t.cert, sizeof(t.cert), "%s/cert.pem", test_dir());
    snprintf(t.key, sizeof(t.key), "%s/key.pem", test_dir());
    pid = openssl_start(tls_words[0], t.cert, t.key, true, &t.out);
    assert_ok(spawn_wait(pid, &status, &err), err);
    assert_int_eq(status, 0);
    close(t.out);
    t.pid = openssl_start(tls_words[1], t.cert, t.key, false, &t.out);
    while (!strstr(said, "ACCEPT 127.0.0.1:") || said[len - 1] != '\n') {
        ssize_t n = read(t.out, said + len, sizeof(said) - 1 - len);

        if (n <= 0)
            test_fail(__FILE__, __LINE__, "openssl does not serve: %s", said);
        len += (size_t)n;
    }
    t.port = (unsigned)atoi(strstr(said, "127.0.0.1:") + 10);
    return t;
}

static int tls_ask(const char *host, unsigned port, const char *ca, struct error *ret)
{
    auto_world struct world w = world_with((struct http_client_options){.ca_file = ca});
    char url[64];
    int r;

    snprintf(url, sizeof(url), "https://%s:%u/", host, port);
    r = ask_with(&w, "", (struct http_call){.url = url});
    *ret = w.err;
    return r;
}

TEST(client_trusts_the_authority_that_it_was_given_and_no_other)
{
    struct error err;

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    {
        auto_cleanup(tls_done) struct tls t = tls_new();

        assert_ok(tls_ask("localhost", t.port, t.cert, &err), err);
        assert_int_eq(tls_ask("localhost", t.port, NULL, &err), -ERR_UPSTREAM);
        assert_str_has(err.text, "its certificate is not valid");
        assert_int_eq(tls_ask("127.0.0.1", t.port, t.cert, &err), -ERR_UPSTREAM);
        assert_str_has(err.text, "its certificate is not valid");
        assert_true(tls_ask("localhost", t.port, t.key, &err) < 0);
    }
}

TEST(client_needs_its_file_of_certificates)
{
    struct http_client_options o = {.size = sizeof(o), .ca_file = "/does/not/exist.pem"};
    struct http_client *client = NULL;
    struct error err;

    assert_true(http_client_new(&o, &client, &err) < 0);
    if (!test_is_torture())
        assert_str_has(err.text, "/does/not/exist.pem");
}

/* ---- proxies ---- */

TEST(client_asks_a_proxy_for_others_and_never_for_loopback)
{
    char proxy[64];
    uint16_t port;
    int fd;

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    fd = listen_open(&port, 8);

    snprintf(proxy, sizeof(proxy), "http://user:hush@127.0.0.1:%u", port);
    close(fd);
    {
        auto_world struct world w =
            world_with((struct http_client_options){.proxy = proxy, .no_proxy = "direct.invalid"});

        assert_ok(ask(&w, "/ok"), w.err);
        assert_int_eq(ask_with(&w, "", (struct http_call){.url = "http://far.invalid/x"}),
                      -ERR_UPSTREAM);
        assert_str_has(w.err.text, "takes no connection");
        assert_null(strstr(w.err.text, "hush"));
        assert_int_eq(ask_with(&w, "", (struct http_call){.url = "http://direct.invalid/x"}),
                      -ERR_UPSTREAM);
        assert_str_has(w.err.text, "no address");
    }
}

TEST(client_reads_no_proxy_of_the_environment)
{
    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    {
        auto_world struct world w = world_new();

        assert_int_eq(ask_with(&w, "", (struct http_call){.url = "http://far.invalid/x"}),
                      -ERR_UPSTREAM);
        assert_str_has(w.err.text, "no address");
    }
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
}

/* ---- many threads ---- */

enum { THREADS = 8, CALLS = 25 };

static void *calls_make(void *arg)
{
    struct world *w = arg;
    intptr_t good = 0;

    for (unsigned i = 0; i < CALLS; i++) {
        char url[64];
        struct http_call call = {
            .size = sizeof(call), .method = "GET", .url = url, .cancel_fd = -1};
        struct http_reply reply;

        snprintf(url, sizeof(url), "http://127.0.0.1:%u/ok", service.port);
        if (http_client_call(w->client, &call, &reply, NULL) == 0)
            good += str_eq(buf_str(&reply.body), "hello");
        buf_done(&reply.body);
    }
    return (void *)good;
}

TEST(client_hands_no_descriptor_on)
{
    auto_world struct world w = world_new();

    assert_ok(ask(&w, "/ok"), w.err);
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);

        if (flags >= 0 && !(flags & FD_CLOEXEC))
            test_fail(__FILE__, __LINE__, "descriptor %d would be inherited", fd);
    }
}

TEST(client_serves_many_threads)
{
    auto_world struct world w = world_new();
    pthread_t threads[THREADS];
    intptr_t good = 0;

    for (unsigned i = 0; i < THREADS; i++)
        assert_int_eq(pthread_create(&threads[i], NULL, calls_make, &w), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        good += (intptr_t)result;
    }
    assert_int_eq(good, THREADS * CALLS);
    assert_true(service.connections <= THREADS);
}
