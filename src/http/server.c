/* SPDX-License-Identifier: MIT */
/*
 * The one file that sees libmicrohttpd, which reads requests and writes answers on a thread per
 * connection.
 *
 * Its versions 0.9 take more for HTTP than is: they join folded lines into other names, cut values
 * at NUL and accept both a length and a coding. So each request is checked on the raw bytes that
 * the library points at: request line and headers must lie behind each other without a gap, each
 * ended by CR LF, and a connection whose request was chunked or refused carries no second one.
 */
#include "http/server.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "http/http-internal.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>

enum {
    POOL_SIZE = 24 << 10, /* of a connection: headers, and pieces of bodies */
    STACK_SIZE = 256 << 10,
    BLOCK_SIZE = 64 << 10,  /* of a body that is pulled */
    STREAM_BLOCK = 1 << 10, /* of a stream, which has it for as long as it lasts */
    CONNS_ENDING = 64,      /* that were cut, while their threads end */
    CUT_MS = 1000,          /* for the threads of connections that were cut */
    LOST_PEER_MS = 60000,   /* until a peer that acknowledges nothing is given up */
};

/* What this connection's thread is reading. */
static _Thread_local struct http_request *current;

static void active_add(struct http_server *server, int delta)
{
    pthread_mutex_lock(&server->lock);
    server->active += (unsigned)delta;
    if (atomic_load(&server->stopping))
        pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* ---- connections ---- */

static int connection_fd(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/* A peer that vanished without a word is noticed although nothing is sent. */
static void socket_prepare(int fd)
{
    int on = 1, idle = 30, lost = LOST_PEER_MS;

    (void)!setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)!setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)!setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost, sizeof(lost));
}

static void conn_open(struct http_server *server, struct MHD_Connection *mhd, void **context)
{
    struct http_conn *conn = calloc(1, sizeof(*conn));
    const struct sockaddr *peer;
    uint16_t port;

    *context = conn;
    if (!conn)
        return;
    conn->server = server;
    conn->fd = connection_fd(mhd);
    conn->since = clock_ms();
    peer = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    if (addr_from_sockaddr(peer, &conn->addr, &port) == 0)
        addr_unmap(&conn->addr);
    socket_prepare(conn->fd);
    pthread_mutex_lock(&server->lock);
    conn_admit(conn);
    pthread_mutex_unlock(&server->lock);
}

static void conn_close(struct http_server *server, struct http_conn *conn)
{
    if (!conn)
        return;
    pthread_mutex_lock(&server->lock);
    if (conn->next)
        conn->next->prev = conn->prev;
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
    free(conn);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        conn_open(cls, mhd, context);
    else
        conn_close(cls, *context);
}

/* ---- answers ---- */

/* A body that is pulled, as the library's response owns it. */
struct pull {
    struct http_reader reader;
    struct http_conn *conn;
    uint64_t size; /* UINT64_MAX: unknown */
    bool unmarked; /* the end of the body is the end of the connection */
};

static ssize_t pull_fail(struct pull *p, const char *why)
{
    log_warn("an http answer is cut reason=%s", why);
    if (p->unmarked)
        conn_reset(p->conn);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t on_pull(void *cls, uint64_t at, char *ret, size_t len)
{
    struct pull *p = cls;
    ssize_t n;

    n = p->reader.read(p->reader.user, ret, len);
    if (n < 0)
        return pull_fail(p, "its source failed");
    if (n == 0 && p->size != UINT64_MAX && at < p->size)
        return pull_fail(p, "its source ended early");
    return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void on_pull_done(void *cls)
{
    struct pull *p = cls;

    if (p->reader.close)
        p->reader.close(p->reader.user);
    free(p);
}

static struct MHD_Response *pull_response(struct http_request *req, const struct http_answer *a)
{
    struct pull *p = calloc(1, sizeof(*p));
    struct MHD_Response *response;

    if (!p) {
        if (a->reader->close)
            a->reader->close(a->reader->user);
        return NULL;
    }
    *p = (struct pull){
        .reader = *a->reader,
        .conn = req->conn,
        .size = a->size < 0 ? UINT64_MAX : (uint64_t)a->size,
        .unmarked = a->size < 0 && req->minor == 0,
    };
    response = MHD_create_response_from_callback(p->size, BLOCK_SIZE, on_pull, p, on_pull_done);
    if (!response)
        on_pull_done(p);
    return response;
}

static ssize_t on_stream(void *cls, uint64_t at, char *ret, size_t len)
{
    ssize_t n = stream_pull(cls, ret, len);

    return n > 0    ? n
           : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM
                    : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void on_stream_done(void *cls)
{
    stream_detach(cls);
}

static struct MHD_Response *response_new(struct http_request *req, const struct http_answer *a)
{
    struct MHD_Response *response;

    if (a->reader)
        return pull_response(req, a);
    if (!a->stream)
        return MHD_create_response_from_buffer(a->len, (void *)(uintptr_t)a->body,
                                               MHD_RESPMEM_MUST_COPY);
    response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_stream,
                                                 a->stream, on_stream_done);
    if (!response)
        on_stream_done(a->stream);
    return response;
}

static void cors_add(struct http_request *req, struct MHD_Response *response)
{
    const char *expose = req->server->options.cors_expose;

    if (!req->cors_origin)
        return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", req->cors_origin);
    MHD_add_response_header(response, "Vary", "Origin");
    if (expose)
        MHD_add_response_header(response, "Access-Control-Expose-Headers", expose);
}

void server_answer(struct http_request *req, const struct http_answer *answer)
{
    struct MHD_Response *response = response_new(req, answer);

    if (!response)
        return;
    if (req->answered)
        log_error("a second answer is not sent path=%s", req->target.path);
    else
        req->answered = true;
    if (answer->content_type)
        MHD_add_response_header(response, "Content-Type", answer->content_type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    cors_add(req, response);
    for (size_t i = 0; i < req->answer_count; i++)
        MHD_add_response_header(response, req->answer_headers[i].name,
                                req->answer_headers[i].value);
    if (req->last || atomic_load(&req->server->stopping))
        MHD_add_response_header(response, "Connection", "close");
    log_debug("http method=%s path=%s status=%u", req->method ? req->method : "",
              req->target.path ? req->target.path : "", answer->status);
    /* Refuses a second answer, and then the response ends with our reference. */
    (void)MHD_queue_response(req->mhd, answer->status, response);
    MHD_destroy_response(response);
}

/* ---- what a request says ---- */

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                 size_t name_len, const char *value, size_t value_len)
{
    struct http_request *req = cls;

    req->headers[req->header_count++] =
        (struct http_field){name, value ? value : "", name_len, value_len};
    return MHD_YES;
}

/* Whether only white space is between a name's colon and its value. */
static bool gap_is_blank(const struct http_field *f)
{
    for (const char *s = f->name + f->name_len + 1; s < f->value; s++) {
        if (*s != ' ' && *s != '\t')
            return false;
    }
    return f->value > f->name + f->name_len;
}

/* Whether the parts cover the bytes of the header block, as the library keeps them since 0.9.74:
 * each part ended by NUL bytes in the place of a space, of a colon, or of CR LF. */
static bool head_is_seamless(const struct http_request *req, const char *method,
                             const char *version)
{
    size_t size =
        MHD_get_connection_info(req->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    const char *at = version + strlen(version) + 2;

    if (method + strlen(method) + 1 != req->raw_at || req->raw_at + req->raw_len + 1 != version)
        return false;
    for (size_t i = 0; i < req->header_count; i++) {
        const struct http_field *f = &req->headers[i];

        if (f->name != at || !gap_is_blank(f))
            return false;
        at = f->value + f->value_len + 2;
    }
    return at + 2 == method + size;
}

static int malformed(struct http_request *req, const char *what)
{
    return error_set(&req->error, ERR_INVALID, "%s", what);
}

/* Copies what outlives the library's buffers: without white space around values. */
static int headers_keep(struct http_request *req)
{
    for (size_t i = 0; i < req->header_count; i++) {
        struct http_field *f = &req->headers[i];

        while (f->value_len > 0 && strchr(" \t", f->value[f->value_len - 1]))
            f->value_len--;
        f->name = arena_memdup(&req->arena, f->name, f->name_len);
        f->value = arena_memdup(&req->arena, f->value, f->value_len);
        if (!f->name || !f->value)
            return error_no_memory(&req->error);
    }
    return 0;
}

/* Fills `head` and `headers`, or says why the connection has to end. */
static int head_read(struct http_request *req, const char *method, const char *version)
{
    static const char form[] = "HTTP/1.";
    int count = MHD_get_connection_values_n(req->mhd, MHD_HEADER_KIND, NULL, NULL);

    if (count > HTTP_HEADERS_MAX)
        return malformed(req, "the request has too many headers");
    req->headers = arena_alloc(&req->arena, (size_t)count * sizeof(*req->headers));
    if (!req->headers)
        return error_no_memory(&req->error);
    MHD_get_connection_values_n(req->mhd, MHD_HEADER_KIND, on_header, req);
    if (strncmp(version, form, sizeof(form) - 1) != 0 ||
        (!str_eq(version + 7, "0") && !str_eq(version + 7, "1")))
        return malformed(req, "the request's version is not supported");
    req->minor = version[7] == '1';
    if (!http_is_token(method, strlen(method)))
        return malformed(req, "the request's method is malformed");
    /* Later versions of the library are strict by themselves, and keep their buffers otherwise. */
    if (str_starts(MHD_get_version(), "0.9.") && !head_is_seamless(req, method, version))
        return malformed(req, "the request's headers are malformed");
    if (headers_keep(req) < 0)
        return -ERR_NO_MEMORY;
    for (size_t i = 0; i < req->header_count; i++) {
        if (http_head_add(&req->head, &req->headers[i], &req->error) < 0)
            return -ERR_INVALID;
    }
    return http_head_check(&req->head, req->minor, &req->error);
}

/* ---- the life of a request ---- */

static size_t on_unescape(void *cls, struct MHD_Connection *mhd, char *s)
{
    return strlen(s);
}

static void *on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct http_request *req = calloc(1, sizeof(*req));

    if (!req)
        return NULL;
    req->server = cls;
    req->mhd = mhd;
    req->conn = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    arena_init(&req->arena, HTTP_ARENA_MAX);
    req->raw_at = target;
    req->raw_len = strlen(target);
    req->raw = arena_memdup(&req->arena, target, req->raw_len);
    current = req;
    return req;
}

/* An answer before the body was read, so the connection cannot go on. */
static enum MHD_Result answer_early(struct http_request *req, unsigned status)
{
    req->last = true;
    req->unread = true;
    if (!req->answered)
        http_fail(req, status, &req->error);
    conn_phase_set(req->conn, CONN_SEND);
    return req->answered ? MHD_YES : MHD_NO;
}

/* Whether whoever asks may go on; else the answer is given. */
static bool request_admit(struct http_request *req)
{
    const struct http_options *o = &req->server->options;

    return !o->admit || !req->route || o->admit(o->admit_user, req);
}

static enum MHD_Result request_begin(struct http_request *req, const char *method,
                                     const char *version)
{
    if (!req->conn || !req->raw)
        return MHD_NO;
    req->counted = true;
    active_add(req->server, 1);
    req->method = arena_strdup(&req->arena, method);
    if (!req->method || head_read(req, method, version) < 0)
        return answer_early(req, 400);
    req->has_body = req->head.codings > 0 || req->head.length > 0;
    if (http_request_check(req) < 0 && req->has_body)
        return answer_early(req, req->refused);
    if (req->has_body) {
        /* What it answers is the last of the connection, because the body stays unread. */
        req->last = req->unread = true;
        if (!request_admit(req)) {
            error_set(&req->error, ERR_DENIED, "the request is not admitted");
            return answer_early(req, 401);
        }
        req->unread = false;
    }
    /* What ends a chunked body is where proxies and servers disagree. */
    req->last = req->head.codings > 0;
    conn_phase_set(req->conn, req->has_body ? CONN_BODY : CONN_HANDLER);
    return MHD_YES;
}

/* The library takes no answer in the middle of a body, so this one goes to the socket itself. */
static void answer_raw(struct http_request *req, unsigned status, const struct error *error)
{
    auto_buf struct buf answer, body;

    buf_init(&answer, 16384);
    buf_init(&body, 8192);
    if (http_error_write(error, &body) == 0 &&
        buf_printf(&answer,
                   "HTTP/1.1 %u Refused\r\nContent-Type: application/json\r\n"
                   "X-Content-Type-Options: nosniff\r\nContent-Length: %zu\r\n%s%s%s"
                   "Connection: close\r\n\r\n%s",
                   status, body.len, req->cors_origin ? "Access-Control-Allow-Origin: " : "",
                   req->cors_origin ? req->cors_origin : "",
                   req->cors_origin ? "\r\nVary: Origin\r\n" : "", buf_str(&body)) == 0)
        (void)!send(req->conn->fd, answer.data, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(req->conn->fd, SHUT_WR);
    req->answered = true;
    req->unread = true;
}

/* The request will have no body, so others may have the room. */
static void body_drop(struct http_request *req)
{
    atomic_fetch_sub(&req->server->body_bytes, req->body_counted);
    req->body_counted = 0;
    buf_done(&req->body);
    if (req->body_began)
        (void)req->route->on_body(req, NULL, 0, NULL);
    req->body_began = false;
}

static enum MHD_Result body_refuse(struct http_request *req, unsigned status)
{
    body_drop(req);
    answer_raw(req, status ? status : (unsigned)error_entry(req->error.code)->http_status,
               &req->error);
    return MHD_NO;
}

/*
 * The library answers some malformed requests by itself, and 0.9.75 sends two heads when the length
 * is what is malformed. It says so before, and then it finds the socket closed for writing.
 */
static void on_log(void *cls, const char *format, va_list args)
{
    struct error error;
    unsigned status;

    if (!current || !current->conn || current->answered ||
        !str_starts(format, "Error processing request (HTTP response code is %u"))
        return;
    status = va_arg(args, unsigned);
    error_set(&error, status == 413 || status == 431 ? ERR_LIMIT : ERR_INVALID,
              "the request is malformed or too large");
    answer_raw(current, status, &error);
}

static enum MHD_Result request_body(struct http_request *req, const char *data, size_t *len)
{
    bool streamed = req->route && req->route->on_body;
    size_t total = 0;

    atomic_fetch_add(&req->conn->body, *len);
    if (*len > req->body_max - req->body_len) {
        error_set(&req->error, ERR_LIMIT, "the request's body is too large");
        return body_refuse(req, 413);
    }
    req->body_len += *len;
    if (streamed) {
        req->body_began = true;
        if (req->route->on_body(req, data, *len, &req->error) < 0)
            return body_refuse(req, req->error.code == ERR_LIMIT ? 413 : 0);
        *len = 0;
        return MHD_YES;
    }
    total = atomic_fetch_add(&req->server->body_bytes, *len) + *len;
    req->body_counted += *len;
    if (total > req->server->options.body_total)
        error_set(&req->error, ERR_UNAVAILABLE, "too many request bodies are under way");
    else if (buf_append(&req->body, data, *len) < 0)
        error_no_memory(&req->error);
    else
        *len = 0;
    return *len > 0 ? body_refuse(req, 503) : MHD_YES;
}

static void request_handle(struct http_request *req)
{
    struct error error;

    req->body_began = false;
    if (req->refused) {
        http_fail(req, req->refused, &req->error);
        return;
    }
    if (!req->route) {
        http_options_answer(req);
        return;
    }
    if (req->has_body || request_admit(req))
        req->route->handler(req);
    if (req->answered)
        return;
    error_set(&error, ERR_INTERNAL, "the request was not answered");
    http_fail(req, 500, &error);
}

static enum MHD_Result request_finish(struct http_request *req)
{
    conn_phase_set(req->conn, CONN_HANDLER);
    request_handle(req);
    conn_phase_set(req->conn, CONN_SEND);
    return req->answered ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **context)
{
    struct http_request *req = *context;

    if (!req)
        return MHD_NO;
    if (!req->started) {
        req->started = true;
        return request_begin(req, method, version);
    }
    return *len > 0 ? request_body(req, data, len) : request_finish(req);
}

static void request_free(struct http_request *req)
{
    body_drop(req);
    http_set_context(req, NULL, NULL);
    arena_done(&req->arena);
    free(req);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode how)
{
    struct http_request *req = *context;
    struct http_server *server = cls;
    bool counted;

    current = NULL;
    if (!req)
        return;
    counted = req->counted;
    if (req->conn) {
        if (req->unread && !atomic_load(&server->stopping))
            conn_linger(req->conn);
        atomic_store(&req->conn->body, 0);
        conn_phase_set(req->conn, CONN_IDLE);
    }
    *context = NULL;
    request_free(req);
    if (counted)
        active_add(server, -1);
}

/* ---- start and stop ---- */

static void server_free(struct http_server *server)
{
    http_listener_close(&server->at);
    pthread_cond_destroy(&server->watch_wake);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

static int daemon_start(struct http_server *server, struct error *reterr)
{
    const struct http_options *o = &server->options;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG;

    server->daemon = MHD_start_daemon(
        flags | (strchr(server->at.address, ':') ? MHD_USE_IPv6 : 0), 0, NULL, NULL, on_request,
        server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, server->at.fd,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, server, MHD_OPTION_URI_LOG_CALLBACK, on_target, server,
        MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_SIZE, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_SIZE, MHD_OPTION_CONNECTION_LIMIT, o->connections + CONNS_ENDING,
        MHD_OPTION_END);
    if (!server->daemon)
        return error_set(reterr, ERR_SYSTEM, "cannot start the HTTP server");
    return 0;
}

static void watch_end(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->watch_stop = true;
    pthread_cond_broadcast(&server->watch_wake);
    pthread_mutex_unlock(&server->lock);
    pthread_join(server->watch, NULL);
}

int http_server_start(const struct http_options *options, struct http_server **ret,
                      struct error *reterr)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return error_no_memory(reterr);
    server->at.fd = -1;
    pthread_mutex_init(&server->lock, NULL);
    http_cond_init(&server->changed);
    http_cond_init(&server->watch_wake);
    http_options_fill(server, options);
    r = http_listen(server, reterr);
    if (r == 0 && (errno = pthread_create(&server->watch, NULL, conn_watch_main, server)) != 0)
        r = error_sys(reterr, errno, "cannot start a thread");
    else if (r == 0 && (r = daemon_start(server, reterr)) < 0)
        watch_end(server);
    if (r < 0) {
        server_free(server);
        return r;
    }
    *ret = server;
    return 0;
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->at.port;
}

const char *http_server_url(const struct http_server *server)
{
    return server->at.url;
}

static bool has_active(const struct http_server *server)
{
    return server->active > 0;
}

static bool has_conns(const struct http_server *server)
{
    return server->conns != NULL;
}

/* Waits as long as there are any; whether there are none. */
static bool none_wait(struct http_server *server, bool (*any)(const struct http_server *),
                      unsigned ms)
{
    int64_t deadline = clock_deadline(ms);
    bool none;

    pthread_mutex_lock(&server->lock);
    while (any(server) && clock_ms() < deadline)
        http_cond_wait(&server->changed, &server->lock, deadline);
    none = !any(server);
    pthread_mutex_unlock(&server->lock);
    return none;
}

static void conns_cut(struct http_server *server)
{
    pthread_mutex_lock(&server->lock);
    for (struct http_conn *conn = server->conns; conn; conn = conn->next)
        conn_cut(conn, HTTP_GONE_STOP);
    pthread_mutex_unlock(&server->lock);
}

int http_server_stop(struct http_server *server, unsigned grace_ms, struct error *reterr)
{
    atomic_store(&server->stopping, true);
    MHD_quiesce_daemon(server->daemon);
    /* Who is still in its queue would wait for an answer until the process ends. */
    shutdown(server->at.fd, SHUT_RDWR);
    streams_stop(server, grace_ms / 2);
    (void)none_wait(server, has_active, grace_ms);
    streams_cut(server);
    conns_cut(server);
    /* The library ends what is left, but not safely: an error answer that meets its end crashes. */
    if (!none_wait(server, has_conns, MAX(grace_ms, (unsigned)CUT_MS)))
        return error_set(reterr, ERR_BUSY, "requests are still being handled");
    MHD_stop_daemon(server->daemon);
    watch_end(server);
    server_free(server);
    return 0;
}
