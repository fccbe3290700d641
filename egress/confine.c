/* SPDX-License-Identifier: MIT */
/*
 * The filter is a table of system calls, written out as BPF by hand: two instructions for each
 * call, and a few more where an argument counts. The kernel caches the answer for calls without
 * argument rules, so the length of the program costs nothing. What is not in the table is ENOSYS,
 * which libraries take for an old kernel; only a foreign architecture kills.
 */
#include "egress/confine.h"

#include "egress/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { FILES_MAX = 65536, FIRST_FOREIGN_FD = 5 };

/* ---- limits and privileges ---- */

static int limit_set(__rlimit_resource_t what, rlim_t value, struct error *reterr)
{
    struct rlimit old, new;

    if (getrlimit(what, &old) < 0)
        return error_sys(reterr, errno, "cannot read a limit");
    new.rlim_cur = new.rlim_max = MIN(value, old.rlim_max);
    if (setrlimit(what, &new) < 0)
        return error_sys(reterr, errno, "cannot set a limit");
    return 0;
}

/*
 * More descriptors than the soft limit gives, no core that would hold the proxy's credentials, and
 * nothing of what a relay never needs.
 */
static int limits_set(struct error *reterr)
{
    int r;

    if ((r = limit_set(RLIMIT_NOFILE, FILES_MAX, reterr)) < 0 ||
        (r = limit_set(RLIMIT_CORE, 0, reterr)) < 0 ||
        (r = limit_set(RLIMIT_MEMLOCK, 0, reterr)) < 0)
        return r;
    return limit_set(RLIMIT_MSGQUEUE, 0, reterr);
}

/*
 * The keeper starts us with an id of our own, so there is usually nothing left to drop; this is for
 * the case that it could not.
 */
static int privileges_drop(struct error *reterr)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot give up new privileges");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot hide our memory");
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); /* needs a capability that we may not have */
    if (syscall(SYS_capset, &header, none) < 0)
        return error_sys(reterr, errno, "cannot give up capabilities");
    return 0;
}

/* ---- Landlock ---- */

/* Of ABI 6; older headers end earlier, and older kernels take the size that they know. */
struct landlock_rules {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};

enum {
    LANDLOCK_FS_ABI1 = (1 << 13) - 1,
    LANDLOCK_NET_BIND = 1 << 0,
    LANDLOCK_SCOPE_ALL = 3, /* abstract sockets, signals */
};

/* Handles all that this ABI knows, and returns the size of the struct that it expects. */
static size_t rules_for(int abi, struct landlock_rules *ret)
{
    *ret = (struct landlock_rules){.fs = LANDLOCK_FS_ABI1};
    if (abi >= 2)
        ret->fs |= 1 << 13;
    if (abi >= 3)
        ret->fs |= 1 << 14;
    if (abi >= 4)
        ret->net = LANDLOCK_NET_BIND;
    if (abi >= 5)
        ret->fs |= 1 << 15;
    if (abi >= 6)
        ret->scoped = LANDLOCK_SCOPE_ALL;
    return abi >= 6 ? sizeof(*ret) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

/* What getaddrinfo() and the modules of the name service switch read. */
static void paths_allow(int rules)
{
    static const char *const paths[] = {
        "/etc",
        "/usr/lib",
        "/lib",
        "/lib64",
        "/usr/lib64",
        "/run/systemd/resolve",
        "/run/resolvconf",
        "/run/NetworkManager",
        "/run/nscd",
        "/var/lib/sss",
        "/usr/share/zoneinfo",
    };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        auto_fd int fd = open(paths[i], O_PATH | O_CLOEXEC);
        const struct landlock_path_beneath_attr rule = {
            .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
            .parent_fd = fd};

        if (fd >= 0)
            syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
}

/*
 * Best effort: the filter and the own uid hold without it. TCP connections are not bound to ports,
 * because the ports come later, with each sandbox.
 */
static void landlock_apply(void)
{
    struct landlock_rules rules;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    auto_fd int fd = -1;

    if (abi < 1) {
        log_line("no Landlock in this kernel");
        return;
    }
    fd = (int)syscall(SYS_landlock_create_ruleset, &rules, rules_for((int)abi, &rules), 0);
    if (fd >= 0) {
        paths_allow(fd);
        if (syscall(SYS_landlock_restrict_self, fd, 0) == 0)
            return;
    }
    log_line("cannot use Landlock: %s", strerrordesc_np(errno));
}

int confine_early(struct error *reterr)
{
    int r;

    if (close_range(FIRST_FOREIGN_FD, ~0u, 0) < 0)
        return error_sys(reterr, errno, "cannot close what was inherited");
    if ((r = limits_set(reterr)) < 0 || (r = privileges_drop(reterr)) < 0)
        return r;
    landlock_apply();
    return 0;
}

/* ---- the filter ---- */

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

#if defined(__x86_64__)
#define CONFINE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CONFINE_ARCH AUDIT_ARCH_AARCH64
#else
#error "name this architecture here"
#endif

/*
 * What the loop, getaddrinfo() with the modules of the name service switch, malloc and the end of a
 * process use. Nothing starts a program or a thread, nothing names another process.
 */
static const int calls_allowed[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_getdents64,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_uname,
    SYS_getrandom,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
    SYS_tgkill,
    SYS_epoll_pwait,
    SYS_epoll_ctl,
    SYS_ppoll,
    SYS_accept4,
    SYS_connect,
    SYS_bind,
    SYS_getsockname,
    SYS_getpeername,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_splice,
    SYS_pipe2,
    SYS_fcntl,
    SYS_ioctl,
    SYS_getrlimit,
    SYS_prlimit64,
    SYS_membarrier,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
    SYS_poll,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_time,
#endif
};

enum { FILTER_MAX = 256 };

struct filter {
    unsigned short count;
    struct sock_filter code[FILTER_MAX];
};

static void filter_put(struct filter *f, struct sock_filter code)
{
    if (f->count < FILTER_MAX)
        f->code[f->count++] = code;
}

/* Loads a word of struct seccomp_data; the jumps that follow compare with it. */
static void filter_load(struct filter *f, size_t offset)
{
    filter_put(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void filter_return(struct filter *f, uint32_t action)
{
    filter_put(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Returns `action` when what was loaded last is `value`. */
static void filter_return_if(struct filter *f, uint32_t value, uint32_t action)
{
    filter_put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    filter_return(f, action);
}

/* Begins rules for one call; filter_end() makes other calls jump over them. */
static unsigned short filter_begin(struct filter *f, int number)
{
    filter_load(f, offsetof(struct seccomp_data, nr));
    filter_put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 0));
    return f->count;
}

static void filter_end(struct filter *f, unsigned short begin)
{
    if (f->count < FILTER_MAX)
        f->code[begin - 1].jf = (uint8_t)(f->count - begin);
}

/*
 * The low half of an argument. The kernel itself cuts the arguments that matter here to 32 bits, so
 * what stands in the high half changes nothing.
 */
static void filter_load_arg(struct filter *f, int arg)
{
    const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    filter_load(f, offsetof(struct seccomp_data, args) + (size_t)arg * 8 + (big ? 4 : 0));
}

/* The families that resolving and dialling need. Raw sockets need a capability that is gone. */
static void filter_socket(struct filter *f)
{
    static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    unsigned short begin = filter_begin(f, SYS_socket);

    filter_load_arg(f, 0);
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        filter_return_if(f, families[i], SECCOMP_RET_ALLOW);
    filter_return(f, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    filter_end(f, begin);
}

/* Files are opened to be read. */
static void filter_open(struct filter *f, int number, int arg)
{
    const uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    unsigned short begin = filter_begin(f, number);

    filter_load_arg(f, arg);
    filter_put(f, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, writing));
    filter_return_if(f, 0, SECCOMP_RET_ALLOW);
    filter_return(f, SECCOMP_RET_ERRNO | EACCES);
    filter_end(f, begin);
}

/* The architecture comes first: numbers mean other calls in another one. */
static void filter_build(struct filter *f)
{
    filter_load(f, offsetof(struct seccomp_data, arch));
    filter_put(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CONFINE_ARCH, 1, 0));
    filter_return(f, SECCOMP_RET_KILL_PROCESS);
    filter_load(f, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_LEN(calls_allowed); i++)
        filter_return_if(f, (uint32_t)calls_allowed[i], SECCOMP_RET_ALLOW);
    filter_socket(f);
    filter_open(f, SYS_openat, 2);
#ifdef SYS_open
    filter_open(f, SYS_open, 1);
#endif
    filter_return(f, SECCOMP_RET_ERRNO | ENOSYS);
}

int confine_late(struct error *reterr)
{
    struct filter f = {};
    struct sock_fprog program = {.filter = f.code};

    if (is_sanitized)
        return 0;
    filter_build(&f);
    if (f.count >= FILTER_MAX)
        return error_set(reterr, ERR_INTERNAL, "the system call filter is too long");
    program.len = f.count;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        return error_sys(reterr, errno, "cannot filter system calls");
    return 0;
}
