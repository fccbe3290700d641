/* SPDX-License-Identifier: MIT */
/* What the files of the HTTP transport share: peers, exchanges, and the checks of headers. */
#pragma once

#include "mcp/mcp-internal.h"

#include "base/id.h"

struct exchange;
struct event_logs;
struct event_log;

/*
 * Whom messages belong to. Legacy: a session, which has an id and is in the endpoint's list until
 * it ends. Modern: one POST, because nothing connects it with another one.
 */
struct mcp_peer {
    unsigned refs;
    struct mcp_http *http;
    struct mcp_client *client;
    char id[ID_LEN + 1];     /* "" for modern */
    struct event_logs *logs; /* NULL for modern */
    /* Of a session, under the endpoint's lock: */
    struct mcp_peer *next;
    int64_t used_ms;
    unsigned open; /* exchanges */
    bool ended;
    /* Under its lock of events: the stream of its GET. */
    struct exchange *events;
};

struct mcp_http {
    unsigned refs; /* its peers' */
    struct mcp_server *server;
    mcp_http_find_fn *find; /* of several owners: it has neither server nor sessions */
    void *find_user;
    pthread_mutex_t lock;
    struct mcp_peer *sessions;
    size_t count;
    pthread_mutex_t events_lock; /* before the MCP server's own lock; never in an exchange's end */
};

/* ---- peers (http-session.c) ---- */

/* Modern ones are ready; a session is to be added once it is initialized. NULL without memory. */
struct mcp_peer *mcp_peer_new(struct mcp_http *h, bool modern);
struct mcp_peer *mcp_peer_ref(struct mcp_peer *p);
void mcp_peer_unref(struct mcp_peer *p);

/* An exchange begins (1) or ends (-1). */
void mcp_peer_use(struct mcp_peer *p, int delta);

/* What is long unused makes room. ERR_LIMIT when there is none. */
int mcp_session_add(struct mcp_peer *p, struct error *reterr) must_check;

/* Referenced; NULL when there is none of this id. */
struct mcp_peer *mcp_session_find(struct mcp_http *h, const char *id);

/* Forgets the session, and cancels what is under way. False when it was forgotten already. */
bool mcp_session_end(struct mcp_peer *p);

/* After a message was given to it: cancels that too, if the session ended meanwhile. */
void mcp_session_check(struct mcp_peer *p);

/* Sets the stream of its GET (NULL: none), and ends the one before; only where that is `before`,
 * unless it is NULL. */
void mcp_session_set_events(struct mcp_peer *p, struct exchange *x, const struct exchange *before);

DEFINE_CLEANUP(struct mcp_peer *, mcp_peer_unref)
#define auto_mcp_peer __attribute__((cleanup(mcp_peer_unref_cleanup)))

/* ---- one answer (http-exchange.c) ---- */

/*
 * The answer to one POST, or the stream of a GET. Plain JSON when the response is the first that is
 * sent, and comes soon; else an event stream. Where the client takes none (`streams`), what is not
 * the response is dropped. The caller's reference is that of the channel.
 */
struct exchange *exchange_new(struct mcp_peer *p, struct http_request *req, bool streams);
struct mcp_channel *exchange_channel(struct exchange *x);

/* Waits until it is known how to answer, and does. */
void exchange_answer(struct exchange *x);

/* Opens the stream at once: that of a GET. */
int exchange_listen(struct exchange *x, struct error *reterr) must_check;

/* ---- streams that can be resumed (http-log.c) ---- */

/* All of a session. */
struct event_logs *event_logs_new(void);
void event_logs_free(struct event_logs *s);

/* The session has ended, and so do its streams. */
void event_logs_end(struct event_logs *s);

/*
 * Answers the GET with what came after the event of the id, and what still comes. ERR_NOT_FOUND
 * when that is not kept; less than 0: it is not answered.
 */
int event_logs_resume(struct event_logs *s, struct http_request *req, const char *id,
                      struct error *reterr) must_check;

/* One stream's, which it keeps; NULL without memory. */
struct event_log *event_log_new(struct event_logs *s, struct http_stream *stream);
void event_log_unref(struct event_log *log);

/* An event without data, so that there is an id from the start; and when to come back. */
void event_log_prime(struct event_log *log);

void event_log_write(struct event_log *log, const struct mcp_outgoing *m);

/* Closes the stream; what is written goes to who resumes it. */
void event_log_pause(struct event_log *log);

/* Nothing will be written any more. */
void event_log_end(struct event_log *log);

/* ---- headers (http-headers.c) ---- */

/* Whether an Accept header admits a type; an absent one admits all. */
bool mcp_accept_has(const char *accept, const char *type);

/* Whether the headers of a modern request say what its body says. */
int mcp_headers_check(const struct mcp_http *h, const struct http_request *req,
                      const struct jsonrpc_message *m, struct error *reterr) must_check;
