/* SPDX-License-Identifier: MIT */
/*
 * The tries. Each uses the code that a start uses, on things that are gone with the child: what a
 * kernel claims in a version number or a file is not asked where it can be done.
 */
#include "launcher/probe-internal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/cgroup.h"
#include "launcher/confine-internal.h"
#include "launcher/ids.h"
#include "launcher/netlink.h"
#include "launcher/seccomp.h"
#include "launcher/slot.h"
#include "launcher/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static long number_read(const char *path)
{
    char text[32];
    int64_t value;

    if (sys_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
        return -1;
    text[strcspn(text, "\n")] = 0;
    return str_parse_int(text, INT32_MIN, INT32_MAX, &value) < 0 ? -1 : (long)value;
}

static void userns_fix(struct finding *ret)
{
    static const struct {
        const char *path;
        long bad;
        const char *fix;
    } causes[] = {
        {"/proc/sys/user/max_user_namespaces", 0, "sysctl -w user.max_user_namespaces=15000"},
        {"/proc/sys/kernel/unprivileged_userns_clone", 0,
         "sysctl -w kernel.unprivileged_userns_clone=1"},
        {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
         "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or load an AppArmor profile "
         "for sandbox-launch that has 'userns,'"},
    };

    for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
        if (number_read(causes[i].path) == causes[i].bad)
            snprintf(ret->fix, sizeof(ret->fix), "%s", causes[i].fix);
    }
}

/* Into new namespaces as uid 0 of them. */
static int namespaces_enter(int flags, struct finding *ret, struct error *reterr)
{
    char uid[48], gid[48];

    snprintf(uid, sizeof(uid), "0 %u 1", geteuid());
    snprintf(gid, sizeof(gid), "0 %u 1", getegid());
    if (unshare(CLONE_NEWUSER) < 0) {
        int sys = errno;

        userns_fix(ret);
        return error_sys(reterr, sys, "cannot make a user namespace");
    }
    /* With AppArmor's restriction the namespace can be made, and then nothing done in it. */
    if (sys_write_text(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
        sys_write_text(AT_FDCWD, "/proc/self/uid_map", uid) < 0 ||
        sys_write_text(AT_FDCWD, "/proc/self/gid_map", gid) < 0 || (flags && unshare(flags) < 0)) {
        int sys = errno;

        userns_fix(ret);
        return error_sys(reterr, sys, "a user namespace has no privileges inside");
    }
    if ((flags & CLONE_NEWNS) && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_sys(reterr, errno, "cannot change mounts in a namespace of our own");
    return 0;
}

static int try_userns(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    long most = number_read("/proc/sys/user/max_user_namespaces");
    int r = namespaces_enter(CLONE_NEWUTS, ret, reterr);

    (void)o;
    if (r == 0)
        snprintf(ret->detail, sizeof(ret->detail), "at most %ld for each user", most);
    return r;
}

static int try_namespaces(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    int r = namespaces_enter(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                                 CLONE_NEWNET | CLONE_NEWCGROUP,
                             ret, reterr);

    (void)o;
    if (r == 0)
        snprintf(ret->detail, sizeof(ret->detail), "pid, mount, ipc, uts, net, cgroup");
    return r;
}

static int try_mount_api(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    const struct tmpfs_options options = {.size = MIB, .mode = 0755, .flags = MOUNT_ATTR_NODEV};
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    auto_fd int tmpfs = -1, tree = -1;
    int r = namespaces_enter(CLONE_NEWNS, ret, reterr);

    (void)o;
    if (r < 0)
        return r;
    tmpfs = confine_tmpfs(&options, reterr);
    if (tmpfs < 0)
        return tmpfs;
    tree = open_tree(AT_FDCWD, "/dev/null", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
        return error_sys(reterr, errno, "cannot clone and change a mount");
    snprintf(ret->detail, sizeof(ret->detail), "fsopen, open_tree, mount_setattr");
    return 0;
}

/* In a child, because a pid namespace holds from the next child on. */
static int try_proc(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    int status = 0, r = namespaces_enter(CLONE_NEWNS | CLONE_NEWPID, ret, reterr);
    pid_t pid;

    (void)o;
    if (r < 0)
        return r;
    pid = sys_clone3(&args);
    if (pid == 0) {
        int fs = fsopen("proc", FSOPEN_CLOEXEC);

        _exit(fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) < 0 ||
              fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ||
              fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID) < 0);
    }
    if (pid < 0)
        return error_sys(reterr, errno, "cannot start a process in a pid namespace");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(reterr, ERR_UNAVAILABLE, "cannot mount /proc: the host's is masked");
    snprintf(ret->detail, sizeof(ret->detail), "hidepid=invisible");
    return 0;
}

static int try_overlay(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    static const char *const dirs[] = {"lower", "upper", "work", "root"};
    const struct tmpfs_options options = {.size = MIB, .mode = 0755};
    auto_fd int tmpfs = -1, anchor = -1;
    int r = namespaces_enter(CLONE_NEWNS, ret, reterr);

    (void)o;
    if (r < 0)
        return r;
    tmpfs = confine_tmpfs(&options, reterr);
    anchor = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (tmpfs < 0 || anchor < 0 || (r = confine_attach(tmpfs, anchor, "tmpfs", reterr)) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
        if (mkdirat(tmpfs, dirs[i], 0755) < 0)
            return error_sys(reterr, errno, "cannot make a directory");
    }
    if (fchdir(tmpfs) < 0 || mount("overlay", "root", "overlay", 0,
                                   "lowerdir=lower,upperdir=upper,workdir=work,userxattr") < 0)
        return error_sys(reterr, errno, "no overlay in a user namespace");
    snprintf(ret->detail, sizeof(ret->detail), "in a user namespace, with userxattr");
    return 0;
}

/* A user namespace with a whole slot's maps, as a start as root makes it. */
static int slot_userns_open(struct error *reterr)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    const struct id_pool pool = {.root = true};
    struct id_plan plan;
    char path[64];
    int fd = -1, r;
    pid_t pid;

    id_plan_make(&pool, 0, false, true, &plan);
    pid = sys_clone3(&args);
    if (pid == 0) {
        for (;;)
            pause();
    }
    if (pid < 0)
        return error_sys(reterr, errno, "cannot make a user namespace");
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    r = id_plan_apply(&plan, pid, reterr);
    if (r == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        r = error_sys(reterr, errno, "cannot open a user namespace");
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return r < 0 ? r : fd;
}

static int try_idmap(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    auto_fd int userns = -1, mount_fd = -1;
    const char *dir = o->image_dir;

    if (geteuid() != 0) {
        snprintf(ret->detail, sizeof(ret->detail), "not used by an ordinary user");
        return 0;
    }
    if (!dir || access(dir, F_OK) < 0)
        dir = "/var";
    userns = slot_userns_open(reterr);
    if (userns < 0)
        return userns;
    mount_fd = confine_image_open(dir, userns);
    if (mount_fd < 0)
        return error_sys(reterr, errno, "'%s' cannot be mounted id-mapped", dir);
    snprintf(ret->detail, sizeof(ret->detail), "of '%.200s'", dir);
    return 0;
}

static int try_no_new_privs(const struct probe_options *o, struct finding *ret,
                            struct error *reterr)
{
    (void)o;
    (void)ret;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot set no_new_privs");
    return 0;
}

static int try_seccomp(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    struct clone_args args = {.exit_signal = SIGCHLD};
    static struct seccomp_program program;
    int r = seccomp_build(SECCOMP_DEFAULT, 0, &program, reterr);
    pid_t pid;

    (void)o;
    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_apply(&program) < 0)
        return error_sys(reterr, errno, "cannot set a seccomp filter");
    pid = sys_clone3(&args);
    if (pid == 0)
        _exit(0);
    if (pid > 0 || errno != ENOSYS)
        return error_set(reterr, ERR_UNAVAILABLE, "a seccomp filter has no effect");
    snprintf(ret->detail, sizeof(ret->detail), "%zu instructions", program.len);
    return 0;
}

static int try_landlock(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    int abi = sys_landlock_abi();

    (void)o;
    if (!abi)
        return error_sys(reterr, errno, "no Landlock");
    snprintf(ret->detail, sizeof(ret->detail), "ABI %d%s", abi,
             abi < 6 ? ", without scopes for signals and abstract sockets" : "");
    return 0;
}

/* Listens as a start does and connects to an address that is nobody's. */
static int any_ip_connect(struct error *reterr)
{
    auto_fd int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto_fd int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto_fd int taken = -1;
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    const struct sockaddr_in far = {
        .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0xc6120001)};
    const int no = 0;

    if (listener < 0 || client < 0 ||
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) < 0 ||
        bind(listener, (const struct sockaddr *)&any, sizeof(any)) < 0 || listen(listener, 1) < 0)
        return error_sys(reterr, errno, "cannot listen on [::]:80 in a network namespace");
    if (connect(client, (const struct sockaddr *)&far, sizeof(far)) < 0 ||
        fd_wait(listener, POLLIN, clock_deadline(1000)) <= 0 ||
        (taken = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
        return error_sys(reterr, errno, "a connection to any address does not arrive");
    return 0;
}

static int try_any_ip(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    int r = namespaces_enter(CLONE_NEWNET, ret, reterr);

    (void)o;
    if (r < 0 || (r = netlink_lo_up(reterr)) < 0 || (r = netlink_any_ip_add(reterr)) < 0 ||
        (r = any_ip_connect(reterr)) < 0)
        return r;
    snprintf(ret->detail, sizeof(ret->detail), "every address local, listener on [::]");
    return 0;
}

static int try_cgroup(enum cgroup_controller controller, struct finding *ret, struct error *reterr)
{
    static struct cgroup_layout layout;
    const struct launch_job job = {
        .memory_bytes = GIB, .pids = 64, .cpu_quota_us = 50000, .cpu_period_us = 100000};
    struct cgroup_set base, set = {0};
    const struct cgroup_dir *dir;
    char name[32];
    int r = cgroup_layout_read(&layout, reterr);

    if (r < 0)
        return r;
    snprintf(name, sizeof(name), "probe-%d", (int)getpid());
    cgroup_base_open(&layout, name, &base);
    dir = cgroup_find(&base, controller);
    if (!dir)
        r = error_set(reterr, ERR_UNAVAILABLE, "no control group that we may make groups in");
    else if ((r = cgroup_create(&base, "try", &set, reterr)) == 0)
        r = cgroup_limit(&set, &job, reterr);
    if (r == 0)
        snprintf(ret->detail, sizeof(ret->detail), "version %u, %.200s", dir->version, dir->path);
    (void)cgroup_remove(&set);
    cgroup_base_close(&base);
    return r;
}

static int try_memory(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    (void)o;
    return try_cgroup(CGROUP_MEMORY, ret, reterr);
}

static int try_pids(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    (void)o;
    return try_cgroup(CGROUP_PIDS, ret, reterr);
}

static int try_cpu(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    (void)o;
    return try_cgroup(CGROUP_CPU, ret, reterr);
}

static int try_calls(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    auto_fd int pidfd = pidfd_open(getpid(), 0);
    auto_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_fd int below = -1, memfd = -1;

    (void)o;
    if (pidfd < 0 || pidfd_send_signal(pidfd, 0, NULL, 0) < 0)
        return error_sys(reterr, errno, "no pidfd");
    below = sys_open_beneath(root, "proc", O_PATH);
    if (below < 0)
        return error_sys(reterr, errno, "no openat2");
    memfd = fd_memfd_sealed("probe", "x", 1);
    if (memfd < 0)
        return error_sys(reterr, errno, "no sealed memfd");
    if (close_range(1000, 1000, 0) < 0)
        return error_sys(reterr, errno, "no close_range");
    snprintf(ret->detail, sizeof(ret->detail), "pidfd, openat2, memfd seals, close_range");
    return 0;
}

/* Really maps two ids into a waiting child. */
static int subids_map(const struct id_pool *pool, struct error *reterr)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    struct id_plan plan;
    pid_t pid;
    int r;

    id_plan_make(pool, 1, false, true, &plan);
    pid = sys_clone3(&args);
    if (pid == 0) {
        for (;;)
            pause();
    }
    if (pid < 0)
        return error_sys(reterr, errno, "cannot make a user namespace");
    r = id_plan_apply(&plan, pid, reterr);
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return r;
}

static int try_subids(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    struct id_pool pool;
    int r = id_pool_read(&pool, reterr);

    (void)o;
    if (r < 0)
        return r;
    if (pool.root) {
        snprintf(ret->detail, sizeof(ret->detail), "not needed by root: %d slots from %u",
                 SLOT_MAX - 1, (uint32_t)SLOT_BASE);
        return 0;
    }
    if (!pool.subordinate)
        return error_set(reterr, ERR_UNAVAILABLE, "no subordinate ids, or no newuidmap");
    if ((r = subids_map(&pool, reterr)) < 0)
        return r;
    snprintf(ret->detail, sizeof(ret->detail), "%u sandboxes at a time", pool.slots - 1);
    return 0;
}

static int try_loop(const struct probe_options *o, struct finding *ret, struct error *reterr)
{
    auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    (void)o;
    if (control < 0)
        return error_sys(reterr, errno, "SANDBOX_DISK: cannot open /dev/loop-control");
    if (ioctl(control, LOOP_CTL_GET_FREE) < 0)
        return error_sys(reterr, errno, "SANDBOX_DISK: no free loop device");
    if (access("/usr/sbin/mkfs.ext4", X_OK) < 0 && access("/sbin/mkfs.ext4", X_OK) < 0)
        return error_set(reterr, ERR_UNAVAILABLE, "SANDBOX_DISK: no mkfs.ext4");
    snprintf(ret->detail, sizeof(ret->detail), "for SANDBOX_DISK");
    return 0;
}

#define FIX_KERNEL "use a Linux kernel of version 5.15 or later that has this compiled in"
#define FIX_CONTAINER "run it outside of a container, or in one with --privileged"
#define FIX_CGROUP \
    "as root: run it where a cgroup file system is mounted writable; as an ordinary user: " \
    "systemd-run --user --scope -p Delegate=yes sandbox-agent ..."

const struct probe_entry probe_table[] = {
    {"user-namespaces", FINDING_MISSING, try_userns, FIX_KERNEL},
    {"namespaces", FINDING_MISSING, try_namespaces, FIX_KERNEL},
    {"mounts", FINDING_MISSING, try_mount_api, FIX_KERNEL},
    {"proc", FINDING_MISSING, try_proc, FIX_CONTAINER},
    {"calls", FINDING_MISSING, try_calls, FIX_KERNEL},
    {"no-new-privs", FINDING_MISSING, try_no_new_privs, FIX_KERNEL},
    {"seccomp", FINDING_MISSING, try_seccomp, FIX_KERNEL},
    {"overlay", FINDING_DEGRADED, try_overlay, FIX_KERNEL},
    {"id-mapped-mounts", FINDING_DEGRADED, try_idmap,
     "keep the images on ext4, xfs, btrfs or tmpfs"},
    {"landlock", FINDING_DEGRADED, try_landlock,
     "boot a kernel with CONFIG_SECURITY_LANDLOCK and landlock in its lsm= list"},
    {"network", FINDING_DEGRADED, try_any_ip, FIX_KERNEL},
    {"memory-cgroup", FINDING_DEGRADED, try_memory, FIX_CGROUP},
    {"pids-cgroup", FINDING_DEGRADED, try_pids, FIX_CGROUP},
    {"cpu-cgroup", FINDING_DEGRADED, try_cpu, FIX_CGROUP},
    {"subordinate-ids", FINDING_DEGRADED, try_subids,
     "apt install uidmap, then as root: usermod --add-subuids 165536-231071 --add-subgids "
     "165536-231071 USER"},
    {"loop-devices", FINDING_DEGRADED, try_loop, "needs root, the loop module and e2fsprogs"},
};
const size_t probe_count = ARRAY_LEN(probe_table);
