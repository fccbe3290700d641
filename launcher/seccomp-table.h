/* SPDX-License-Identifier: MIT */
/*
 * Which system calls a sandbox has. What is in no list, and every number that a later kernel adds,
 * is ENOSYS: programs then fall back, where EPERM or a kill would break them (glibc's clone3,
 * libuv's io_uring). Only the class that programs expect to be refused is EPERM. Private to
 * seccomp.c.
 */
#pragma once

/* Numbers that the headers of the oldest supported build machine lack; the same on all machines. */
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_futex_wake
#define __NR_futex_wake 454
#define __NR_futex_wait 455
#define __NR_futex_requeue 456
#endif
#ifndef __NR_mseal
#define __NR_mseal 462
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#define __NR_getxattrat 464
#define __NR_listxattrat 465
#define __NR_removexattrat 466
#endif

/* clang-format off */

/* Files and directories. */
#define SECCOMP_ALLOW_FILES(X) \
    X(read) X(write) X(readv) X(writev) X(pread64) X(pwrite64) X(preadv) X(pwritev) X(preadv2) \
    X(pwritev2) X(openat) X(openat2) X(close) X(close_range) X(lseek) X(dup) X(dup3) X(fcntl) \
    X(flock) X(fstat) X(newfstatat) X(statx) X(statfs) X(fstatfs) X(faccessat) X(faccessat2) \
    X(truncate) X(ftruncate) X(fallocate) X(fadvise64) X(readahead) X(fsync) X(fdatasync) \
    X(syncfs) X(sync_file_range) X(sendfile) X(splice) X(tee) X(copy_file_range) X(pipe2) \
    X(getdents64) X(getcwd) X(chdir) X(fchdir) X(mkdirat) X(mknodat) X(unlinkat) X(symlinkat) \
    X(linkat) X(renameat) X(renameat2) X(readlinkat) X(fchmod) X(fchmodat) X(fchmodat2) X(fchown) \
    X(fchownat) X(utimensat) X(umask) X(setxattr) X(lsetxattr) X(fsetxattr) X(getxattr) \
    X(lgetxattr) X(fgetxattr) X(listxattr) X(llistxattr) X(flistxattr) X(removexattr) \
    X(lremovexattr) X(fremovexattr) X(setxattrat) X(getxattrat) X(listxattrat) X(removexattrat) \
    X(inotify_init1) X(inotify_add_watch) X(inotify_rm_watch) X(memfd_create)

/* Memory. */
#define SECCOMP_ALLOW_MEMORY(X) \
    X(brk) X(mmap) X(munmap) X(mremap) X(mprotect) X(madvise) X(process_madvise) X(msync) \
    X(mlock) X(mlock2) X(mlockall) X(munlock) X(munlockall) X(membarrier) X(mseal) \
    X(pkey_alloc) X(pkey_free) X(pkey_mprotect) \
    X(shmget) X(shmat) X(shmdt) X(shmctl) X(semget) X(semop) X(semtimedop) X(semctl) \
    X(msgget) X(msgsnd) X(msgrcv) X(msgctl)

/* Processes, threads, signals, identity. */
#define SECCOMP_ALLOW_PROCESS(X) \
    X(execve) X(execveat) X(exit) X(exit_group) X(wait4) X(waitid) X(kill) X(tkill) X(tgkill) \
    X(pidfd_open) X(pidfd_send_signal) X(getpid) X(getppid) X(gettid) X(getpgid) X(setpgid) \
    X(getsid) X(setsid) X(getuid) X(geteuid) X(getgid) X(getegid) X(getresuid) X(getresgid) \
    X(getgroups) X(setuid) X(setgid) X(setreuid) X(setregid) X(setresuid) X(setresgid) \
    X(setgroups) X(capget) X(rt_sigaction) X(rt_sigprocmask) X(rt_sigreturn) X(rt_sigpending) \
    X(rt_sigsuspend) X(rt_sigtimedwait) X(rt_sigqueueinfo) X(rt_tgsigqueueinfo) X(sigaltstack) \
    X(restart_syscall) X(set_tid_address) X(set_robust_list) X(get_robust_list) X(rseq) X(futex) \
    X(futex_waitv) X(futex_wake) X(futex_wait) X(futex_requeue) X(getrlimit) X(setrlimit) \
    X(getrusage) X(times) X(getcpu) X(getpriority) X(setpriority) X(ioprio_get) X(sched_yield) \
    X(sched_getaffinity) X(sched_setaffinity) X(sched_getparam) X(sched_setparam) \
    X(sched_getscheduler) X(sched_setscheduler) X(sched_getattr) X(sched_setattr) \
    X(sched_get_priority_max) X(sched_get_priority_min) X(sched_rr_get_interval) X(seccomp) \
    X(landlock_create_ruleset) X(landlock_add_rule) X(landlock_restrict_self) X(uname) X(sysinfo) \
    X(getrandom)

/* Time, waiting, sockets. */
#define SECCOMP_ALLOW_REST(X) \
    X(nanosleep) X(clock_nanosleep) X(clock_gettime) X(clock_getres) X(gettimeofday) \
    X(getitimer) X(setitimer) X(timer_create) X(timer_delete) X(timer_getoverrun) \
    X(timer_gettime) X(timer_settime) X(timerfd_create) X(timerfd_gettime) X(timerfd_settime) \
    X(eventfd2) X(signalfd4) X(ppoll) X(pselect6) X(epoll_create1) X(epoll_ctl) X(epoll_pwait) \
    X(epoll_pwait2) X(bind) X(connect) X(listen) X(accept) X(accept4) X(shutdown) X(sendto) \
    X(sendmsg) X(sendmmsg) X(recvfrom) X(recvmsg) X(recvmmsg) X(getsockname) X(getpeername) \
    X(getsockopt) X(setsockopt)

#ifdef __x86_64__
#define SECCOMP_ALLOW_MACHINE(X) \
    X(open) X(creat) X(stat) X(lstat) X(access) X(getdents) X(dup2) X(pipe) X(mkdir) X(rmdir) \
    X(mknod) X(unlink) X(symlink) X(link) X(rename) X(readlink) X(chmod) X(chown) X(lchown) \
    X(utime) X(utimes) X(futimesat) X(inotify_init) X(fork) X(vfork) X(getpgrp) X(alarm) X(pause) \
    X(time) X(poll) X(select) X(epoll_create) X(epoll_wait) X(eventfd) X(signalfd) X(arch_prctl)
#else
#define SECCOMP_ALLOW_MACHINE(X)
#endif

/* Only init: files as the sandbox user, and dropping what it still has in its children. */
#define SECCOMP_ALLOW_INIT(X) X(setfsuid) X(setfsgid) X(capset)

/* Refused with EPERM, because programs expect to be refused. */
#define SECCOMP_EPERM(X) \
    X(mount) X(umount2) X(pivot_root) X(chroot) X(setns) X(unshare) X(ptrace) \
    X(process_vm_readv) X(process_vm_writev) X(kcmp) X(pidfd_getfd) X(add_key) X(request_key) \
    X(keyctl) X(bpf) X(perf_event_open) X(init_module) X(finit_module) X(delete_module) \
    X(kexec_load) X(kexec_file_load) X(reboot) X(swapon) X(swapoff) X(quotactl) X(quotactl_fd) \
    X(acct) X(settimeofday) X(clock_settime) X(adjtimex) X(clock_adjtime) X(sethostname) \
    X(setdomainname) X(syslog) X(vhangup) X(open_by_handle_at) X(name_to_handle_at) \
    X(fanotify_init) X(fanotify_mark) X(sync) X(ioprio_set) X(move_pages) X(migrate_pages)

#ifdef __x86_64__
#define SECCOMP_EPERM_MACHINE(X) X(iopl) X(ioperm)
#else
#define SECCOMP_EPERM_MACHINE(X)
#endif

/* ENOSYS like everything unknown; named because the tests and the documentation name them. */
#define SECCOMP_ENOSYS(X) \
    X(clone3) X(io_uring_setup) X(io_uring_enter) X(io_uring_register) X(userfaultfd) \
    X(memfd_secret) X(vmsplice) X(remap_file_pages) X(mincore) X(process_mrelease) X(io_setup) \
    X(io_destroy) X(io_submit) X(io_cancel) X(io_getevents) X(mq_open) X(mq_unlink) \
    X(mq_timedsend) X(mq_timedreceive) X(mq_notify) X(mq_getsetattr) X(open_tree) \
    X(move_mount) X(fsopen) X(fsconfig) X(fsmount) X(fspick) X(mount_setattr) X(get_mempolicy) \
    X(set_mempolicy) X(mbind)
/* clang-format on */
