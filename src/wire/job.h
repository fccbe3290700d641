/* SPDX-License-Identifier: MIT */
/*
 * Fixed-size messages between daemon, keeper and egress (docs/PROTOCOL.md section 4). All of it
 * crosses a privilege border: a receiver calls *_check on its own copy before it reads a field.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    JOB_MAGIC = 0x5342584a,
    JOB_VERSION = 1,
    JOB_ID = 32, /* lower-case hex digits of a sandbox id */
    JOB_PATH = 512,
    JOB_PORTS = 64,
    JOB_MOUNTS = 8,
    JOB_META = 4096,
    KEEPER_MAGIC = 0x5342584b,
    EGRESS_MAGIC = 0x53425845,
    EGRESS_RULES = 128,
};

/* ---- a launch job: daemon -> keeper, as a sealed memfd ---- */

enum job_flag {
    JOB_OVERLAY_ROOT = 1u << 0, /* root writable through an overlay on tmpfs */
    JOB_AS_ROOT = 1u << 1,      /* user code may be uid 0 of the namespace; init takes another id */
    JOB_INSTALL_NETWORK = 1u << 2, /* network `none`, but egress until KEEPER_SEAL */
    JOB_ALLOW_DEGRADED = 1u << 3,  /* start without a required feature */
};

enum job_network { JOB_NETWORK_NONE, JOB_NETWORK_PUBLIC, JOB_NETWORK_ALLOWLIST };

struct job_mount {
    char source[JOB_PATH]; /* absolute, on the host */
    char target[256]; /* absolute, in the sandbox; exists in the image or below a tmpfs of ours */
    uint32_t writable;
};

struct launch_job {
    uint32_t magic;
    uint32_t version;
    uint32_t flags;
    uint32_t network;
    char id[JOB_ID + 1];
    char owner[129];       /* whose session it is; empty: nobody's */
    char hostname[65];     /* empty: "sandbox" */
    char runtime[17];      /* python, node, r; empty for a bare image */
    char rootfs[JOB_PATH]; /* prepared root file system on the host */
    uint64_t memory_bytes; /* without swap */
    uint64_t tmpfs_bytes;  /* of /tmp and of /workspace, each; an inode per 4 KiB */
    uint64_t home_bytes;   /* of /home/sandbox */
    uint64_t disk_bytes;   /* 0: tmpfs; else home and workspace are one disk image of this size */
    uint32_t cpu_quota_us; /* per cpu_period_us; 0: no quota */
    uint32_t cpu_period_us;
    uint32_t pids;
    uint32_t nofile;
    uint32_t lease_ms;
    uint32_t port_count; /* TCP ports with a listener inside, for `public` and `allowlist` */
    uint16_t ports[JOB_PORTS];
    uint32_t mount_count;
    struct job_mount mounts[JOB_MOUNTS];
    int64_t created_ms;  /* wall clock */
    char meta[JOB_META]; /* the daemon's own record of the session, opaque to the keeper */
};

int launch_job_check(const struct launch_job *job, struct error *reterr) must_check;

/* ---- requests: any process that may open the instance directory -> keeper, SEQPACKET ---- */

enum keeper_op {
    KEEPER_INFO = 1, /* answered by KEEPER_IS */
    KEEPER_OPEN,     /* fd 0: job memfd. Answered by KEEPER_OPENED or KEEPER_FAILED */
    KEEPER_CLOSE,    /* id. Ends a sandbox; answered when every trace of it is gone: KEEPER_ENDED */
    KEEPER_SEAL,     /* id. Takes the install network away; KEEPER_DONE */
    KEEPER_LIST,     /* a KEEPER_SANDBOX (with its job memfd) per sandbox, then KEEPER_DONE */
    KEEPER_STOP,     /* end all sandboxes in parallel, answer KEEPER_DONE, exit */
    KEEPER_BUILD,    /* arg text: runtime; fd 0: where the builder prints. KEEPER_DONE or FAILED */
    KEEPER_UNBUILD,  /* stops all builds: KEEPER_DONE, and each build FAILED */
};

struct keeper_request {
    uint32_t magic;
    uint32_t op;
    uint64_t serial; /* not 0; comes back with the answer */
    char id[JOB_ID + 1];
    char arg[65];
};

enum keeper_kind {
    KEEPER_IS = 1,
    KEEPER_OPENED,
    KEEPER_FAILED,
    KEEPER_ENDED, /* to every client, serial 0; or the answer to KEEPER_CLOSE */
    KEEPER_SANDBOX,
    KEEPER_DONE,
    KEEPER_OOM, /* to every client, serial 0: the memory limit was hit; ENDED may follow */
};

/* What a sandbox, or the host, does without. Names: degraded_name(). */
enum degraded {
    DEGRADED_ONE_UID = 1u << 0,
    DEGRADED_NO_MEMORY_CGROUP = 1u << 1,
    DEGRADED_NO_PIDS_CGROUP = 1u << 2,
    DEGRADED_NO_CPU_CGROUP = 1u << 3,
    DEGRADED_NO_LANDLOCK = 1u << 4,
    DEGRADED_NO_QUOTA = 1u << 5,
    DEGRADED_NO_SECCOMP = 1u << 6,
    DEGRADED_NO_IDMAP = 1u << 7,
    DEGRADED_EGRESS_UID = 1u << 8, /* egress runs with the caller's uid */
    DEGRADED_NO_NETNS = 1u << 9,
    DEGRADED_NO_USERNS = 1u << 10,
};

struct keeper_event {
    uint32_t magic;
    uint32_t kind;
    uint64_t serial;
    char id[JOB_ID + 1];
    int32_t code;      /* KEEPER_FAILED: enum error_code */
    int32_t sys;       /* and errno */
    char text[400];    /* and the message */
    char cause[32];    /* KEEPER_ENDED: "oom", "signal:N", "exit:N", "lost", "closed" */
    uint32_t degraded; /* OPENED, SANDBOX, IS */
    int32_t pid;       /* init's pid on the host; KEEPER_IS: the keeper's own */
    uint32_t slot;
    uint32_t uid;     /* host id of the sandbox user */
    uint32_t running; /* KEEPER_IS: number of sandboxes */
    /* host files that the daemon may read; empty where there is none */
    char pids_events[JOB_PATH];
    char pids_current[JOB_PATH];
    char memory_current[JOB_PATH];
    char memory_events[JOB_PATH];
};

int keeper_request_check(const struct keeper_request *req, size_t len,
                         struct error *reterr) must_check;
int keeper_event_check(const struct keeper_event *event, size_t len,
                       struct error *reterr) must_check;

/* Short name of one bit of `enum degraded`, for people: "no memory cgroup". */
const char *degraded_name(uint32_t bit);
/* ---- keeper -> egress, SEQPACKET; listeners travel with ADD ---- */

enum egress_op {
    EGRESS_ADD =
        1, /* fds: `port_count` TCP listeners in the order of `ports`, then the UDP 53 socket */
    EGRESS_REMOVE, /* closes every listener and connection of the sandbox */
    EGRESS_GONE,   /* egress -> keeper: answer to REMOVE */
};

struct egress_msg {
    uint32_t magic;
    uint32_t op;
    uint32_t network; /* enum job_network */
    uint32_t port_count;
    char id[JOB_ID + 1];
    uint16_t ports[JOB_PORTS];
};

int egress_msg_check(const struct egress_msg *msg, size_t len, struct error *reterr) must_check;

/* ---- daemon -> egress through the keeper: a sealed memfd, read once at start ---- */

struct egress_rule {
    char host[254]; /* name, address, or "*.suffix" */
    uint16_t port;  /* 0: any allowed port */
};

struct egress_config {
    uint32_t magic;
    uint32_t version;
    char proxy[1024];    /* http://[user:password@]host:port, or empty */
    char no_proxy[2048]; /* comma list as curl reads it */
    uint32_t allow_count;
    struct egress_rule
        allow[EGRESS_RULES]; /* NETWORK_ALLOW and index hosts: exceptions from refusal */
    uint32_t list_count;
    struct egress_rule list[EGRESS_RULES]; /* NETWORK_ALLOWLIST, for mode `allowlist` */
};

int egress_config_check(const struct egress_config *config, struct error *reterr) must_check;

/* descriptors that the keeper and egress inherit */
enum keeper_fd {
    KEEPER_FD_DIR = 3,       /* instance directory */
    KEEPER_FD_LISTEN,        /* SEQPACKET listener, bound to keeper.sock in it */
    KEEPER_FD_INIT,          /* sandbox-init */
    KEEPER_FD_EGRESS,        /* sandbox-egress, executed by descriptor */
    KEEPER_FD_EGRESS_CONFIG, /* memfd */
    KEEPER_FD_COUNT,         /* first descriptor that is not inherited */
};

enum egress_fd {
    EGRESS_FD_CONTROL = 3, /* SEQPACKET, to the keeper */
    EGRESS_FD_CONFIG,      /* memfd */
};
