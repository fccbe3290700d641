/* SPDX-License-Identifier: MIT */
/*
 * A client that sends the bytes it is given and keeps the bytes that come, for tests of what no
 * proper client would send. Every wait is bounded.
 */
#pragma once

#include "base/clock.h"
#include "base/fd.h"
#include "http/server.h"
#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { RAW_MAX = 1 << 20, RAW_WAIT_MS = 5000 };

struct raw {
    int fd;
    bool ended; /* the server has closed */
    size_t len;
    char data[RAW_MAX + 1];
};

static inline void raw_free(struct raw **r)
{
    if (*r && (*r)->fd >= 0)
        close((*r)->fd);
    free(*r);
}
#define auto_raw __attribute__((cleanup(raw_free)))

/* `window` limits what the kernel takes for a client that does not read; 0 leaves it. */
static inline struct raw *raw_open(uint16_t port, int window)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct raw *r = calloc(1, sizeof(*r));

    assert_not_null(r);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (window)
        setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    if (r->fd < 0 || connect(r->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
        test_fail(__FILE__, __LINE__, "cannot connect: %s", strerror(errno));
    return r;
}

static inline void raw_send(struct raw *r, const void *data, size_t len)
{
    const char *s = data;

    while (len > 0) {
        ssize_t n = send(r->fd, s, len, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* the server has refused; its answer tells */
        s += n;
        len -= (size_t)n;
    }
}

static inline void raw_text(struct raw *r, const char *text)
{
    raw_send(r, text, strlen(text));
}

/* One more piece of what the server sends; false at its end or after `ms`. */
static inline bool raw_more(struct raw *r, int64_t ms)
{
    ssize_t n;

    if (r->ended || r->len == RAW_MAX || fd_wait(r->fd, POLLIN, clock_deadline(ms)) <= 0)
        return false;
    n = recv(r->fd, r->data + r->len, RAW_MAX - r->len, 0);
    r->ended = n <= 0;
    if (n > 0)
        r->len += (size_t)n;
    r->data[r->len] = 0;
    return n > 0;
}

/* Reads until `text` has come; whether it has. */
static inline bool raw_wait(struct raw *r, const char *text, int64_t ms)
{
    int64_t deadline = clock_deadline(ms);

    while (!memmem(r->data, r->len, text, strlen(text))) {
        if (!raw_more(r, deadline - clock_ms()))
            return false;
    }
    return true;
}

/* Reads until the server closes; whether it did. */
static inline bool raw_drain(struct raw *r, int64_t ms)
{
    int64_t deadline = clock_deadline(ms);

    while (raw_more(r, deadline - clock_ms()))
        ;
    return r->ended;
}

/* How many answers came. */
static inline unsigned raw_answers(const struct raw *r)
{
    unsigned count = 0;

    for (const char *s = r->data; (s = strstr(s, "HTTP/1.1 ")); s++)
        count++;
    return count;
}

static inline int raw_status(const struct raw *r)
{
    return r->len > 12 && memcmp(r->data, "HTTP/1.1 ", 9) == 0 ? atoi(r->data + 9) : -1;
}

/* Sends one request, after which the connection ends; its status. */
static inline int raw_request(struct raw *r, const char *text)
{
    raw_text(r, text);
    shutdown(r->fd, SHUT_WR);
    raw_drain(r, RAW_WAIT_MS);
    return raw_status(r);
}

/* ---- a server for one test ---- */

struct served {
    struct http_server *server;
    uint16_t port;
};

static inline void served_done(struct served *s)
{
    struct error err;

    if (s->server && http_server_stop(s->server, 2000, &err) < 0)
        printf("# the server did not stop: %s\n", err.text);
}
#define auto_served __attribute__((cleanup(served_done)))

/* On a free port, unless the options name one. */
static inline struct served served_start(struct http_options options)
{
    struct served s = {0};
    struct error err;

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    options.size = sizeof(options);
    if (!options.listen)
        options.listen = "127.0.0.1:0";
    assert_ok(http_server_start(&options, &s.server, &err), err);
    s.port = http_server_port(s.server);
    return s;
}
