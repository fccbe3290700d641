/* SPDX-License-Identifier: MIT */
/*
 * The stdio transport: a message a line. Nothing but messages goes to the output. It is written in
 * pieces that a pipe takes without blocking, so that a client that reads nothing cannot keep us
 * from ending.
 */
#include "mcp/mcp.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024, POLL_MS = 200 };

struct stdio {
    struct mcp_channel channel; /* first */
    pthread_mutex_t lock;
    int in, out, stop_fd;
    bool closing; /* read without the lock: what cannot be written at once is dropped */
    bool broken;  /* the client reads no more, or got half a line */
};

/* ---- out ---- */

/*
 * Waits until the output takes something. Not for a client that has closed the input, or its half
 * of a socket, and so has left, or when we are leaving: then it has a moment.
 */
static bool output_wait(struct stdio *io)
{
    struct pollfd p[] = {{.fd = io->out, .events = POLLOUT},
                         {.fd = io->in, .events = POLLRDHUP},
                         {.fd = io->stop_fd, .events = POLLIN}};

    for (;;) {
        int n = poll(p, ARRAY_LEN(p), POLL_MS);

        if (n > 0 && p[0].revents)
            return true;
        if (n > 0 || (n == 0 && __atomic_load_n(&io->closing, __ATOMIC_RELAXED)))
            return poll(p, 1, POLL_MS) > 0;
        if (n < 0 && errno != EINTR)
            return false;
    }
}

/* Whether the whole piece went out. */
static bool piece_write(struct stdio *io, const char *data, size_t len)
{
    while (len) {
        ssize_t done;

        if (!output_wait(io))
            return false;
        done = write(io->out, data, MIN(len, (size_t)PIPE_BUF));
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return false;
        if (done > 0) {
            data += done;
            len -= (size_t)done;
        }
    }
    return true;
}

static void stdio_send(struct mcp_channel *c, const struct mcp_outgoing *m)
{
    struct stdio *io = (struct stdio *)c;
    auto_buf struct buf line;

    buf_init(&line, m->len + 2);
    if (buf_append(&line, m->json, m->len) < 0 || buf_append_byte(&line, '\n') < 0)
        return;
    pthread_mutex_lock(&io->lock);
    if (!io->broken)
        io->broken = !piece_write(io, line.data, line.len);
    pthread_mutex_unlock(&io->lock);
}

static void stdio_free(struct mcp_channel *c)
{
    struct stdio *io = (struct stdio *)c;

    pthread_mutex_destroy(&io->lock);
    free(io);
}

static bool stdio_is_broken(struct stdio *io)
{
    bool broken;

    pthread_mutex_lock(&io->lock);
    broken = io->broken;
    pthread_mutex_unlock(&io->lock);
    return broken;
}

/* ---- in ---- */

struct line_reader {
    const struct mcp_stdio *transport;
    struct buf line;
    bool skipping; /* a line above the limit */
};

static void line_receive(struct line_reader *reader, struct stdio *io)
{
    static const char too_long[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
                                   "\"message\":\"a message is longer than 32 MiB\"}}";
    struct buf *line = &reader->line;

    if (reader->skipping)
        stdio_send(&io->channel,
                   &(struct mcp_outgoing){.json = too_long, .len = sizeof(too_long) - 1});
    else if (line->len && strspn(line->data, " \t\r") != line->len)
        reader->transport->line(reader->transport->user, &io->channel, line->data, line->len);
    reader->skipping = false;
    buf_clear(line);
}

static void bytes_receive(struct line_reader *reader, struct stdio *io, const char *data,
                          size_t len)
{
    while (len) {
        const char *end = memchr(data, '\n', len);
        size_t part = end ? (size_t)(end - data) : len;

        if (!reader->skipping && buf_append(&reader->line, data, part) < 0)
            reader->skipping = true;
        if (end)
            line_receive(reader, io);
        part += end != NULL;
        data += part;
        len -= part;
    }
}

/* Until the end of input, or of us. */
static int input_read(const struct mcp_stdio *transport, struct stdio *io, struct error *reterr)
{
    struct pollfd p[2] = {{.fd = io->in, .events = POLLIN}, {.fd = io->stop_fd, .events = POLLIN}};
    auto_free char *data = malloc(READ_BYTES);
    struct line_reader reader = {.transport = transport};
    ssize_t n = 1;

    if (!data)
        return error_no_memory(reterr);
    buf_init(&reader.line, MCP_MESSAGE_MAX);
    while (n > 0 && !stdio_is_broken(io)) {
        int ready = poll(p, 2, POLL_MS * 5);

        if (ready < 0 && errno != EINTR)
            n = -1;
        else if (ready > 0 && p[1].revents)
            n = 0;
        else if (ready > 0)
            n = read(io->in, data, READ_BYTES);
        if (ready > 0 && n > 0 && p[0].revents)
            bytes_receive(&reader, io, data, (size_t)n);
        if (n < 0 && errno == EINTR)
            n = 1;
    }
    buf_done(&reader.line);
    return n < 0 ? error_sys(reterr, errno, "cannot read the input") : 0;
}

int mcp_stdio_serve(const struct mcp_stdio *transport, struct error *reterr)
{
    struct stdio *io = calloc(1, sizeof(*io));
    int r;

    if (!io)
        return error_no_memory(reterr);
    io->channel = (struct mcp_channel){.send = stdio_send, .free = stdio_free, .refs = 1};
    io->in = transport->in;
    io->out = transport->out;
    io->stop_fd = transport->stop_fd;
    pthread_mutex_init(&io->lock, NULL);
    r = transport->begin(transport->user, &io->channel, reterr);
    if (r == 0)
        r = input_read(transport, io, reterr);
    __atomic_store_n(&io->closing, true, __ATOMIC_RELAXED);
    transport->end(transport->user);
    mcp_channel_unref(&io->channel);
    return r;
}

/* ---- a server of this process ---- */

struct served {
    struct mcp_server *server;
    struct mcp_client *client;
};

static int served_begin(void *user, struct mcp_channel *out, struct error *reterr)
{
    struct served *s = user;

    s->client = mcp_client_new(s->server, out);
    return s->client ? 0 : error_no_memory(reterr);
}

static void served_line(void *user, struct mcp_channel *out, const char *json, size_t len)
{
    const struct served *s = user;

    mcp_client_receive(s->client, out, json, len);
}

static void served_end(void *user)
{
    struct served *s = user;

    if (s->client)
        mcp_client_free(s->client);
}

int mcp_stdio_run(struct mcp_server *s, int in, int out, int stop_fd, struct error *reterr)
{
    struct served served = {.server = s};

    return mcp_stdio_serve(&(struct mcp_stdio){.size = sizeof(struct mcp_stdio),
                                               .in = in,
                                               .out = out,
                                               .stop_fd = stop_fd,
                                               .begin = served_begin,
                                               .line = served_line,
                                               .end = served_end,
                                               .user = &served},
                           reterr);
}
