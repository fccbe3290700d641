/* SPDX-License-Identifier: MIT */
/*
 * Instances: `STATE_DIR/run/<name>/`, held by a lock as long as the process that owns it lives.
 * Everything of a sandbox carries the name of its instance.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

enum { INSTANCE_NAME = 64 };

struct instance {
    char name[INSTANCE_NAME];
    int dir;  /* the instance directory */
    int lock; /* descriptor that holds the lock */
};

/*
 * Takes the instance `kind` when it is "server", else `<kind>-<n>` with the lowest unlocked n.
 * ERR_BUSY names the process that holds "server".
 */
int instance_take(const char *state_dir, const char *kind, struct instance *ret,
                  struct error *reterr) must_check;

/* Lets the lock go; removes the directory if nothing is left in it. */
void instance_release(struct instance *i, const char *state_dir);

/* Calls `each` for every instance directory of the state directory; stops at a negative return. */
typedef int instance_each_fn(void *user, const char *name, int dir);
int instance_each(const char *state_dir, instance_each_fn *each, void *user, struct error *reterr);

/* An address for a socket file below `dir`; long paths are no obstacle. */
struct sockaddr_un;
void instance_socket_address(int dir, const char *name, struct sockaddr_un *ret);

/* Connects to a socket file below `dir`; -1 with errno. */
int instance_socket_connect(int dir, const char *name, int type);
