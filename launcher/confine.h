/* SPDX-License-Identifier: MIT */
/*
 * One launch job applied to the calling process, which is the first of new namespaces: from its
 * file systems to the exec of init. The order is the security of it (docs/launcher.md section 3).
 * It needs nothing of its parent but the launch socket and the descriptors that come over it.
 */
#pragma once

#include "launcher/host.h"
#include "launcher/ids.h"
#include "launcher/seccomp.h"
#include "wire/job.h"

/* Parent -> child on the launch socket (SEQPACKET). */
enum launch_order {
    LAUNCH_MAPPED = 1, /* ids are mapped; comes with the mounts that the parent made */
    LAUNCH_ATTACHED,   /* the control groups are entered; end the set-up */
};

struct launch_go {
    uint32_t order;
    uint32_t has_root; /* descriptors that follow, in this order: image, disk, extra mounts */
    uint32_t has_disk;
    uint32_t mount_count;
    uint32_t degraded;
};

/* Child -> parent. */
enum launch_step {
    LAUNCH_LISTENERS = 1, /* with the listeners: TCP in the order of the job's ports, then UDP 53 */
    LAUNCH_READY,         /* all is applied; the end of the socket then means that init runs */
    LAUNCH_FAILED,
};

struct launch_report {
    uint32_t step;
    uint32_t degraded;
    int32_t code;
    int32_t sys;
    char text[400];
};

struct confine {
    const struct launch_job *job;
    const struct features *features;
    const struct id_plan *ids;
    const struct seccomp_program *filter; /* profile init */
    int sock;
    int control_fd, filter_fd, slot_fd, init_fd;
    uint32_t degraded;
    /* Detached mounts made by a privileged parent; -1: this process makes its own. */
    int image_fd, disk_fd;
    int mount_fds[JOB_MOUNTS];
    int anchor_fd; /* where the new root is attached until pivot_root */
    int stage_fd;  /* the tmpfs with the parts of overlays; -1: none */
    int root_fd;
};

/* Never returns: init runs, or a LAUNCH_FAILED was sent. */
_Noreturn void confine_run(struct confine *c);

/* Whether the root is an overlay even where the image could be mounted as it is: not where only a
 * plain mount can have its owners shifted. */
bool confine_overlays(const struct features *features, const struct id_plan *ids,
                      const struct launch_job *job);

/* What is mounted read-only (and without set-uid programs and devices) from the host. Returns a
 * detached mount. `userns_fd` >= 0: owners are shifted by that namespace's maps; EINVAL where the
 * file system cannot do that. */
int confine_image_open(const char *path, int userns_fd);
int confine_mount_open(const struct job_mount *mount);
