/* SPDX-License-Identifier: MIT */
/*
 * The `api` that the page and the chat speak to: the one that answers at API_BASE_URL or
 * SANDBOX_LISTEN, else one that is started here, in the background, and ends with us, whatever
 * ends us.
 */
#pragma once

#include "base/error.h"
#include "base/path.h"
#include "base/settings.h"
#include "http/client.h"

#include <stdbool.h>
#include <sys/types.h>

/* Start with {}, or with what stands first. */
struct local_server {
    const char *env_file; /* of --env-file, for the server that is started; NULL: none was given */
    const bool *stop;     /* set by another thread: no more waiting; NULL */

    char url[256];      /* "http://127.0.0.1:8000", without a slash at the end */
    char log[PATH_LEN]; /* what the started one writes to; "" when it was there already */
    pid_t pid;          /* of the started one; 0: it was there already; -1: it has ended */
    int life;           /* while `pid` > 0: a pipe whose end tells it that we are gone */
};

/*
 * A server that answers at `ret->url` when it returns 0. ERR_UNAVAILABLE: none does, and
 * none can be started (API_BASE_URL is another host's, or it ended at once; the text says why);
 * ERR_EXISTS: something else answers there; ERR_DENIED: another user's server, or one whose user
 * cannot be told; ERR_CANCELLED: `stop`. What failed leaves no server behind; its log stays.
 */
int local_server_ensure(const struct settings *settings, struct local_server *ret,
                        struct error *reterr) must_check;

/*
 * Who answers at `url`, asked without a key. 1: a server that may be given ours; 0: nobody;
 * ERR_EXISTS and ERR_DENIED as above. To be asked before a key is sent anywhere.
 */
int local_server_find(struct http_client *client, const char *url, struct error *reterr) must_check;

/* Whether the one that was started here still runs; true for one that was there already. */
bool local_server_is_alive(struct local_server *s);

/*
 * Takes over what a later local_server_ensure() has found: a server that was started here and
 * answers again stays ours to end.
 */
void local_server_adopt(struct local_server *s, const struct local_server *found);

/* Ends the one that was started here, with its sandboxes, and waits for that. */
void local_server_done(struct local_server *s);
