/* SPDX-License-Identifier: MIT */
/*
 * Which ids a sandbox has, inside and on the host, and the maps that say so. Host id 0 is never
 * mapped. Three kinds of host: root (65,536 ids per slot), an ordinary user with subordinate ids
 * and newuidmap (two or three ids), an ordinary user without (one id, degraded).
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    ID_SANDBOX = 65532, /* the user `sandbox` */
    ID_INIT = 65533,    /* init, when user code may be 0 */
    ID_RANGES = 3,
};

/* What this host gives us; read once. */
struct id_pool {
    bool root;
    bool subordinate; /* /etc/subuid, /etc/subgid and the two set-uid programs are there */
    uint32_t uid_start, gid_start;
    uint32_t half; /* sandbox ids are below it in the range, root ids from it on */
    uint32_t slots;
};

struct id_range {
    uint32_t inside, uid, gid, count;
};

/* Ids as the sandbox's own namespace counts them; uid and gid are always the same number. */
struct id_plan {
    struct id_range ranges[ID_RANGES];
    size_t range_count;
    bool userns;
    bool one_uid;
    bool programs; /* maps are written by newuidmap and newgidmap */
    bool as_root;
    uint32_t setup;     /* while mounting */
    uint32_t init;      /* pid 1 */
    uint32_t user;      /* `sandbox` */
    uint32_t root;      /* `root`, with as_root */
    uint32_t host_user; /* the sandbox user's id on the host */
};

int id_pool_read(struct id_pool *ret, struct error *reterr) must_check;

/* The first line of a subuid file for a user, given by name or number. False: none. */
bool id_subordinate_parse(const char *text, const char *name, uint32_t uid, uint32_t *ret_start,
                          uint32_t *ret_count);

/* `userns` false: as root on a host without user namespaces (degraded). */
void id_plan_make(const struct id_pool *pool, uint32_t slot, bool as_root, bool userns,
                  struct id_plan *ret);

/* Writes the maps of a child that waits in its new user namespace. */
int id_plan_apply(const struct id_plan *plan, pid_t pid, struct error *reterr) must_check;
