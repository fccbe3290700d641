/* SPDX-License-Identifier: MIT */
/*
 * What the launcher told init (docs/launcher.md section 1): options and the seccomp program. Set
 * once at the start, read everywhere.
 */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CONFIG_WRITABLE = 24,
    CONFIG_FD_LISTEN = 3,
    CONFIG_FD_SECCOMP = 4,
    CONFIG_FD_SLOT = 5,
    CONFIG_LEASE_MAX_MS = 1000 * 3600 * 24 * 24,
};

struct config {
    int64_t lease_ms;
    int64_t uid; /* the user `sandbox` */
    int64_t gid;
    int64_t root_uid;   /* the user `root`, where as_root */
    int64_t memory_mib; /* to be enforced by polling; 0: a cgroup does it */
    bool as_root;
    bool one_uid;
    bool landlock;
    bool seccomp;
    const char *workspace;
    const char *writable[CONFIG_WRITABLE];
    size_t writable_count;
    struct sock_filter *filter;
    size_t filter_count;
    bool pid1; /* false only in tests: then other processes of the host are not ours to signal */
};

extern struct config config;

/* Reads the options; ERR_INVALID names the one that is wrong. */
int config_parse(struct config *c, const char *const *argv, struct error *reterr) must_check;

/* Reads the seccomp program of `fd`, unless it is switched off. A missing one is refused. */
int config_read_filter(struct config *c, int fd, struct error *reterr) must_check;

/* Whether a writable directory has no space or no inodes left. */
bool config_is_full(const struct config *c);
