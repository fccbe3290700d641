/* SPDX-License-Identifier: MIT */
/* The parts of confine, each in a file of its own; the table of phases is in confine.c. */
#pragma once

#include "launcher/confine.h"

/* For tests: as failpoint(), but `kill` ends this process, which as pid 1 cannot kill itself. */
int confine_failpoint(const char *name);

/* confine-root.c */
int confine_root(struct confine *c, struct error *reterr) must_check;
int confine_extra_mounts(struct confine *c, struct error *reterr) must_check;
int confine_pivot(struct confine *c, struct error *reterr) must_check;

/* A directory below the new root, reached without following any link. */
int confine_target(const struct confine *c, const char *path, struct error *reterr) must_check;

/* confine-fs.c */
struct tmpfs_options {
    uint64_t size;
    unsigned int mode;
    uint32_t owner;
    unsigned int flags; /* MOUNT_ATTR_x */
};

int confine_tmpfs(const struct tmpfs_options *options, struct error *reterr) must_check;

/* Attaches a detached mount on top of an open file or directory. */
int confine_attach(int mount_fd, int target_fd, const char *name, struct error *reterr) must_check;

int confine_dev(struct confine *c, struct error *reterr) must_check;
int confine_proc(struct confine *c, struct error *reterr) must_check;
int confine_masks(struct confine *c, struct error *reterr) must_check;
int confine_writable(struct confine *c, struct error *reterr) must_check;
int confine_etc(struct confine *c, struct error *reterr) must_check;
int confine_dev_seal(struct confine *c, struct error *reterr) must_check;

/* confine-net.c */
int confine_network(struct confine *c, struct error *reterr) must_check;

/* confine-drop.c */
int confine_limits(struct confine *c, struct error *reterr) must_check;
int confine_descriptors(struct confine *c, struct error *reterr) must_check;
int confine_identity(struct confine *c, struct error *reterr) must_check;
int confine_privileges(struct confine *c, struct error *reterr) must_check;
int confine_exec(struct confine *c, struct error *reterr) must_check;
