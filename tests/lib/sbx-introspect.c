/* SPDX-License-Identifier: MIT */
/*
 * What a process inside a sandbox can do, tried and printed a line each, for the isolation tests.
 * Static, so that it runs in any image, also in an empty one.
 *
 *     sbx-introspect sweep      NUMBER RESULT for each system call number, with wrong arguments
 *     sbx-introspect named      NAME RESULT for dangerous calls with valid arguments
 *     sbx-introspect sockets    what socket() gives for each family and netlink protocol
 *     sbx-introspect machine    other ways into the kernel: int 0x80, x32, vsyscall
 *     sbx-introspect sleep N
 *
 * A result is "ok", an errno by name, "signal:N" or "hangs".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/quota.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

enum { HANG_MS = 300, NUMBER_MAX = 512 };

struct attempt {
    int pipe;
    long number;
    long (*call)(void);
};

static _Noreturn void attempt_child(const struct attempt *a)
{
    long r;
    int error;

    alarm(5);
    errno = 0;
    r = a->call ? a->call() : syscall(a->number, -1, -1, -1, -1, -1, -1);
    error = r < 0 ? errno : 0;
    (void)!write(a->pipe, &error, sizeof(error));
    _exit(0);
}

/* In a child each, because a call may kill, stop or replace the process. */
static void attempt_run(const char *label, long number, long (*call)(void))
{
    int ends[2], error = -1, status;
    struct attempt a = {.number = number, .call = call};
    struct pollfd ready;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(3);
    a.pipe = ends[1];
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        attempt_child(&a);
    close(ends[1]);
    ready = (struct pollfd){.fd = ends[0], .events = POLLIN};
    if (poll(&ready, 1, HANG_MS) == 0)
        kill(pid, SIGKILL);
    else if (read(ends[0], &error, sizeof(error)) != (ssize_t)sizeof(error))
        error = -2;
    close(ends[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (error == -1)
        printf("%s hangs\n", label);
    else if (error == -2 && WIFSIGNALED(status))
        printf("%s signal:%d\n", label, WTERMSIG(status));
    else if (error == -2)
        printf("%s ok\n", label);
    else
        printf("%s %s\n", label, error ? strerrorname_np(error) : "ok");
}

static void sweep(void)
{
    for (long n = 0; n < NUMBER_MAX; n++) {
        char label[16];

        snprintf(label, sizeof(label), "%ld", n);
        attempt_run(label, n, NULL);
    }
}

/* ---- named calls ---- */

static char buffer[4096];
static int self_fd(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC);
}

static long call_mount(void)
{
    return mount("none", "/tmp", "tmpfs", 0, NULL);
}
static long call_umount(void)
{
    return umount2("/tmp", MNT_DETACH);
}
static long call_pivot_root(void)
{
    return syscall(SYS_pivot_root, "/tmp", "/tmp");
}
static long call_chroot(void)
{
    return chroot("/tmp");
}
static long call_setns(void)
{
    return setns(self_fd("/proc/self/ns/net"), 0);
}
static long call_unshare_user(void)
{
    return unshare(CLONE_NEWUSER);
}
static long call_unshare_mount(void)
{
    return unshare(CLONE_NEWNS);
}
static long call_clone_user(void)
{
    return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}
static long call_clone_net(void)
{
    return syscall(SYS_clone, (unsigned long)CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
}
static long call_clone3(void)
{
    struct clone_args args = {.exit_signal = SIGCHLD};

    return syscall(SYS_clone3, &args, sizeof(args));
}
static long call_io_uring(void)
{
    struct io_uring_params params = {0};

    return syscall(SYS_io_uring_setup, 4, &params);
}
static long call_userfaultfd(void)
{
    return syscall(SYS_userfaultfd, 1);
}
static long call_bpf(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

    return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}
static long call_perf(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};

    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}
static long call_keyctl(void)
{
    return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1);
}
static long call_add_key(void)
{
    return syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING);
}
static long call_request_key(void)
{
    return syscall(SYS_request_key, "user", "x", NULL, KEY_SPEC_PROCESS_KEYRING);
}
static long call_kcmp(void)
{
    return syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0);
}
static long call_pidfd_getfd(void)
{
    return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getppid(), 0), 1, 0);
}
static long call_process_vm_readv(void)
{
    struct iovec v = {buffer, 1};

    return process_vm_readv(getppid(), &v, 1, &v, 1, 0);
}
static long call_process_vm_writev(void)
{
    struct iovec v = {buffer, 1};

    return process_vm_writev(getppid(), &v, 1, &v, 1, 0);
}
static long call_memfd_secret(void)
{
    return syscall(SYS_memfd_secret, 0);
}
static long call_open_by_handle(void)
{
    return syscall(SYS_open_by_handle_at, AT_FDCWD, buffer, O_RDONLY);
}
static long call_name_to_handle(void)
{
    int id;

    *(unsigned int *)(void *)buffer = 128;
    return syscall(SYS_name_to_handle_at, AT_FDCWD, "/", buffer, &id, 0);
}
static long call_fanotify(void)
{
    return syscall(SYS_fanotify_init, 0, O_RDONLY);
}
static long call_kexec(void)
{
    return syscall(SYS_kexec_load, 0, 0, NULL, 0);
}
static long call_swapon(void)
{
    return swapon("/tmp/x", 0);
}
static long call_swapoff(void)
{
    return swapoff("/tmp/x");
}
static long call_quotactl(void)
{
    return quotactl(Q_SYNC << 8, NULL, 0, NULL);
}
static long call_ptrace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static long call_reboot(void)
{
    return syscall(SYS_reboot, 0xfee1dead, 672274793, RB_DISABLE_CAD, NULL);
}
static long call_sethostname(void)
{
    return sethostname("x", 1);
}
static long call_setdomainname(void)
{
    return setdomainname("x", 1);
}
static long call_settimeofday(void)
{
    struct timeval now = {.tv_sec = 1};

    return settimeofday(&now, NULL);
}
static long call_clock_settime(void)
{
    struct timespec now = {.tv_sec = 1};

    return clock_settime(CLOCK_REALTIME, &now);
}
static long call_adjtimex(void)
{
    struct timex t = {.modes = ADJ_MAXERROR};

    return adjtimex(&t);
}
static long call_syslog(void)
{
    return syscall(SYS_syslog, 3, buffer, sizeof(buffer));
}
static long call_init_module(void)
{
    return syscall(SYS_init_module, buffer, sizeof(buffer), "");
}
static long call_acct(void)
{
    return syscall(SYS_acct, NULL);
}
static long call_fsopen(void)
{
    return syscall(SYS_fsopen, "tmpfs", 0);
}
static long call_open_tree(void)
{
    return syscall(SYS_open_tree, AT_FDCWD, "/", 1);
}
static long call_mq_open(void)
{
    return syscall(SYS_mq_open, "x", O_RDWR | O_CREAT, 0600, NULL);
}
static long call_personality_exec(void)
{
    return personality(READ_IMPLIES_EXEC);
}
static long call_personality_get(void)
{
    return personality(0xffffffff);
}
static long call_prctl_mm(void)
{
    return prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0);
}
static long call_tiocsti(void)
{
    return ioctl(0, TIOCSTI, "x");
}
static long call_tiocsti_high(void)
{
    return syscall(SYS_ioctl, 0, 0x100000000ul | TIOCSTI, "x");
}
static long call_tioclinux(void)
{
    return ioctl(0, 0x541c, buffer);
}
static long call_tcgets(void)
{
    return ioctl(0, 0x5401, buffer);
}
static long call_sched_fifo(void)
{
    struct sched_param param = {.sched_priority = 1};

    return sched_setscheduler(0, SCHED_FIFO, &param);
}
static long call_nice(void)
{
    return syscall(SYS_setpriority, 0, 0, -20);
}
static long call_ioprio(void)
{
    return syscall(SYS_ioprio_set, 1, 0, 1 << 13);
}
static long call_mknod_device(void)
{
    return mknod("/tmp/sbx-null", 0020666, 0x103);
}
static long call_kill_init(void)
{
    return kill(1, SIGKILL);
}
static long call_vmsplice(void)
{
    struct iovec v = {buffer, 1};

    return vmsplice(1, &v, 1, 0);
}

static const struct {
    const char *name;
    long (*call)(void);
} named[] = {
    {"mount", call_mount},
    {"umount2", call_umount},
    {"pivot_root", call_pivot_root},
    {"chroot", call_chroot},
    {"setns", call_setns},
    {"unshare-user", call_unshare_user},
    {"unshare-mount", call_unshare_mount},
    {"clone-user", call_clone_user},
    {"clone-net", call_clone_net},
    {"clone3", call_clone3},
    {"io_uring_setup", call_io_uring},
    {"userfaultfd", call_userfaultfd},
    {"bpf", call_bpf},
    {"perf_event_open", call_perf},
    {"keyctl", call_keyctl},
    {"add_key", call_add_key},
    {"request_key", call_request_key},
    {"kcmp", call_kcmp},
    {"pidfd_getfd", call_pidfd_getfd},
    {"process_vm_readv", call_process_vm_readv},
    {"process_vm_writev", call_process_vm_writev},
    {"memfd_secret", call_memfd_secret},
    {"open_by_handle_at", call_open_by_handle},
    {"name_to_handle_at", call_name_to_handle},
    {"fanotify_init", call_fanotify},
    {"kexec_load", call_kexec},
    {"swapon", call_swapon},
    {"swapoff", call_swapoff},
    {"quotactl", call_quotactl},
    {"ptrace", call_ptrace},
    {"reboot", call_reboot},
    {"sethostname", call_sethostname},
    {"setdomainname", call_setdomainname},
    {"settimeofday", call_settimeofday},
    {"clock_settime", call_clock_settime},
    {"adjtimex", call_adjtimex},
    {"syslog", call_syslog},
    {"init_module", call_init_module},
    {"acct", call_acct},
    {"fsopen", call_fsopen},
    {"open_tree", call_open_tree},
    {"mq_open", call_mq_open},
    {"vmsplice", call_vmsplice},
    {"personality-exec", call_personality_exec},
    {"personality-get", call_personality_get},
    {"prctl-mm", call_prctl_mm},
    {"tiocsti", call_tiocsti},
    {"tiocsti-high", call_tiocsti_high},
    {"tioclinux", call_tioclinux},
    {"tcgets", call_tcgets},
    {"sched-fifo", call_sched_fifo},
    {"nice", call_nice},
    {"ioprio-rt", call_ioprio},
    {"mknod-device", call_mknod_device},
    {"kill-init", call_kill_init},
};

/* ---- sockets ---- */

static void socket_try(const char *what, int domain, int type, int protocol)
{
    int fd = socket(domain, type, protocol);

    printf("%s %d %s\n", what, domain == AF_NETLINK ? protocol : domain,
           fd >= 0 ? "ok" : strerrorname_np(errno));
    if (fd >= 0)
        close(fd);
}

static void sockets(void)
{
    for (int domain = 0; domain <= 45; domain++) {
        if (domain != AF_NETLINK)
            socket_try("family", domain, SOCK_STREAM, 0);
    }
    for (int protocol = 0; protocol <= 22; protocol++)
        socket_try("netlink", AF_NETLINK, SOCK_RAW, protocol);
    socket_try("raw", AF_INET, SOCK_RAW, 1);
    socket_try("raw6", AF_INET6, SOCK_RAW, 58);
}

/* ---- other ways in ---- */

#ifdef __x86_64__
static long call_int80(void)
{
    long r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory");
    return r;
}
static long call_x32(void)
{
    return syscall(0x40000000 | SYS_getpid);
}
static long call_vsyscall(void)
{
    long (*now)(long *) = (long (*)(long *))(uintptr_t)0xffffffffff600400ul;

    return now(NULL) > 0 ? 0 : -1;
}
static long call_modify_ldt(void)
{
    return syscall(SYS_modify_ldt, 0, buffer, sizeof(buffer));
}

static void machine(void)
{
    attempt_run("int80", 0, call_int80);
    attempt_run("x32", 0, call_x32);
    attempt_run("vsyscall", 0, call_vsyscall);
    attempt_run("modify_ldt", 0, call_modify_ldt);
}
#else
static void machine(void)
{
}
#endif

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "sweep") == 0) {
        sweep();
    } else if (strcmp(verb, "named") == 0) {
        for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
            attempt_run(named[i].name, 0, named[i].call);
    } else if (strcmp(verb, "sockets") == 0) {
        sockets();
    } else if (strcmp(verb, "machine") == 0) {
        machine();
    } else if (strcmp(verb, "sleep") == 0 && argc > 2) {
        sleep((unsigned int)strtoul(argv[2], NULL, 10));
    } else {
        fputs("usage: sbx-introspect sweep|named|sockets|machine|sleep N\n", stderr);
        return 2;
    }
    return 0;
}
