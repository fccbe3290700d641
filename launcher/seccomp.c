/* SPDX-License-Identifier: MIT */
/*
 * From the table to BPF: a verdict per number, runs of equal verdicts as leaves of a binary search,
 * and a short chain of comparisons for the few calls whose arguments count.
 */
#include "launcher/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Last, because it is a list of names for the macros below. */
#include "launcher/seccomp-table.h"

#ifdef __x86_64__
#define MACHINE_ARCH AUDIT_ARCH_X86_64
#else
#define MACHINE_ARCH AUDIT_ARCH_AARCH64
#endif

enum { NUMBER_MAX = 512 };

enum verdict {
    VERDICT_ENOSYS, /* the default */
    VERDICT_ALLOW,
    VERDICT_INIT, /* allowed to init, else EPERM */
    VERDICT_EPERM,
    VERDICT_NAMED, /* ENOSYS, but named in the table */
    VERDICT_ARGUMENTS,
};

struct named_call {
    const char *name;
    int number;
    enum verdict verdict;
};

#define CALL_ALLOW(call) {#call, __NR_##call, VERDICT_ALLOW},
#define CALL_INIT(call) {#call, __NR_##call, VERDICT_INIT},
#define CALL_EPERM(call) {#call, __NR_##call, VERDICT_EPERM},
#define CALL_NAMED(call) {#call, __NR_##call, VERDICT_NAMED},
#define CALL_ARGUMENTS(call) {#call, __NR_##call, VERDICT_ARGUMENTS},

/* clang-format off */
static const struct named_call named_calls[] = {
    SECCOMP_ALLOW_FILES(CALL_ALLOW)
    SECCOMP_ALLOW_MEMORY(CALL_ALLOW)
    SECCOMP_ALLOW_PROCESS(CALL_ALLOW)
    SECCOMP_ALLOW_REST(CALL_ALLOW)
    SECCOMP_ALLOW_MACHINE(CALL_ALLOW)
    SECCOMP_ALLOW_INIT(CALL_INIT)
    SECCOMP_EPERM(CALL_EPERM)
    SECCOMP_EPERM_MACHINE(CALL_EPERM)
    SECCOMP_ENOSYS(CALL_NAMED)
    CALL_ARGUMENTS(clone) CALL_ARGUMENTS(socket) CALL_ARGUMENTS(socketpair)
    CALL_ARGUMENTS(ioctl) CALL_ARGUMENTS(prctl) CALL_ARGUMENTS(personality)
    CALL_ARGUMENTS(prlimit64)
};
/* clang-format on */

/* CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
#define CLONE_NAMESPACES 0x7e020000u
#define TTY_TIOCSTI 0x5412u
#define TTY_TIOCLINUX 0x541cu
#define TTY_TIOCSETD 0x5423u /* loads line disciplines */

/* Half an argument, compared under a mask. `always` makes a condition that holds. */
struct condition {
    uint8_t argument;
    bool high;
    bool always;
    uint32_t mask;
    uint32_t value;
};

#define ARG(index, is) {.argument = (index), .mask = UINT32_MAX, .value = (is)}
#define ARG_BITS(index, bits, is) {.argument = (index), .mask = (bits), .value = (is)}
#define ARG_HIGH(index, is) {.argument = (index), .high = true, .mask = UINT32_MAX, .value = (is)}
#define ALWAYS {.always = true}

#define DO_ALLOW SECCOMP_RET_ALLOW
#define DO_ERRNO(e) (SECCOMP_RET_ERRNO | (e))

/*
 * Both conditions hold: the action. Rows of one call are tried in their order, the last one always
 * holds. The kernel takes the domain, the ioctl request, the prctl option and the personality as 32
 * bits, and every namespace flag is in the low half, so the low half is what counts.
 */
static const struct argument_rule {
    int number;
    uint32_t flags; /* only where all of these are set */
    struct condition first, second;
    uint32_t action;
} argument_rules[] = {
    {__NR_clone, 0, ARG_BITS(0, CLONE_NAMESPACES, 0), ALWAYS, DO_ALLOW},
    {__NR_clone, 0, ALWAYS, ALWAYS, DO_ERRNO(EPERM)},
    {__NR_socket, 0, ARG(0, AF_UNIX), ALWAYS, DO_ALLOW},
    {__NR_socket, 0, ARG(0, AF_INET), ALWAYS, DO_ALLOW},
    {__NR_socket, 0, ARG(0, AF_INET6), ALWAYS, DO_ALLOW},
    {__NR_socket, 0, ARG(0, AF_NETLINK), ARG(2, 0), DO_ALLOW},
    {__NR_socket, 0, ALWAYS, ALWAYS, DO_ERRNO(EAFNOSUPPORT)},
    {__NR_socketpair, 0, ARG(0, AF_UNIX), ALWAYS, DO_ALLOW},
    {__NR_socketpair, 0, ARG(0, AF_INET), ALWAYS, DO_ALLOW},
    {__NR_socketpair, 0, ARG(0, AF_INET6), ALWAYS, DO_ALLOW},
    {__NR_socketpair, 0, ALWAYS, ALWAYS, DO_ERRNO(EAFNOSUPPORT)},
    {__NR_ioctl, 0, ARG(1, TTY_TIOCSTI), ALWAYS, DO_ERRNO(EPERM)},
    {__NR_ioctl, 0, ARG(1, TTY_TIOCLINUX), ALWAYS, DO_ERRNO(EPERM)},
    {__NR_ioctl, 0, ARG(1, TTY_TIOCSETD), ALWAYS, DO_ERRNO(EPERM)},
    {__NR_ioctl, 0, ALWAYS, ALWAYS, DO_ALLOW},
    {__NR_prctl, 0, ARG(0, PR_SET_MM), ALWAYS, DO_ERRNO(EPERM)},
    {__NR_prctl, 0, ARG(0, PR_SET_PTRACER), ALWAYS, DO_ERRNO(EPERM)},
    {__NR_prctl, 0, ALWAYS, ALWAYS, DO_ALLOW},
    {__NR_personality, 0, ARG(0, 0), ALWAYS, DO_ALLOW},
    {__NR_personality, 0, ARG(0, 8), ALWAYS, DO_ALLOW},
    {__NR_personality, 0, ARG(0, 0x20000), ALWAYS, DO_ALLOW},
    {__NR_personality, 0, ARG(0, 0x20008), ALWAYS, DO_ALLOW},
    {__NR_personality, 0, ARG(0, UINT32_MAX), ALWAYS, DO_ALLOW},
    {__NR_personality, 0, ALWAYS, ALWAYS, DO_ERRNO(EPERM)},
    {__NR_prlimit64, SECCOMP_ONE_UID, ARG(0, 0), ALWAYS, DO_ALLOW},
    {__NR_prlimit64, SECCOMP_ONE_UID, ARG(2, 0), ARG_HIGH(2, 0), DO_ALLOW},
    {__NR_prlimit64, SECCOMP_ONE_UID, ALWAYS, ALWAYS, DO_ERRNO(EPERM)},
    {__NR_prlimit64, 0, ALWAYS, ALWAYS, DO_ALLOW},
};

/* A run of numbers with one verdict, up to the next run. */
struct run {
    uint32_t from;
    uint8_t verdict;
};

struct builder {
    struct seccomp_program *program;
    enum seccomp_profile profile;
    uint32_t flags;
    bool overflow;
    size_t run_count;
    struct run runs[NUMBER_MAX + 1];
};

static size_t emit(struct builder *b, struct sock_filter insn)
{
    if (b->program->len == SECCOMP_INSNS) {
        b->overflow = true;
        return 0;
    }
    b->program->insns[b->program->len] = insn;
    return b->program->len++;
}

static void emit_load(struct builder *b, size_t offset)
{
    emit(b, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void emit_return(struct builder *b, uint32_t action)
{
    emit(b, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Falls through where the condition holds, else skips `skip` instructions behind it. */
static void emit_condition(struct builder *b, const struct condition *c, uint8_t skip)
{
    size_t word = offsetof(struct seccomp_data, args) + 8u * c->argument + (c->high ? 4u : 0u);

    if (c->always)
        return;
    emit_load(b, word);
    emit(b, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask));
    emit(b, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c->value, 0, skip));
}

static void emit_arguments(struct builder *b, uint32_t number)
{
    for (size_t i = 0; i < ARRAY_LEN(argument_rules); i++) {
        const struct argument_rule *rule = &argument_rules[i];

        if ((uint32_t)rule->number != number || (rule->flags & ~b->flags))
            continue;
        emit_condition(b, &rule->first, rule->second.always ? 1 : 4);
        emit_condition(b, &rule->second, 1);
        emit_return(b, rule->action);
        if (rule->first.always && rule->second.always)
            return;
    }
}

static void emit_verdict(struct builder *b, const struct run *run)
{
    switch ((enum verdict)run->verdict) {
    case VERDICT_ALLOW:
        emit_return(b, SECCOMP_RET_ALLOW);
        break;
    case VERDICT_INIT:
        emit_return(b, b->profile == SECCOMP_INIT ? SECCOMP_RET_ALLOW : DO_ERRNO(EPERM));
        break;
    case VERDICT_EPERM:
        emit_return(b, DO_ERRNO(EPERM));
        break;
    case VERDICT_ARGUMENTS:
        emit_arguments(b, run->from);
        break;
    case VERDICT_ENOSYS:
    case VERDICT_NAMED:
        emit_return(b, DO_ERRNO(ENOSYS));
        break;
    }
}

/* The number is in A. Conditional jumps reach 255 instructions, so the far side is reached by JA.
 * Depth: log2 of the number of runs. */
static void emit_search(struct builder *b, size_t first, size_t count)
{
    size_t half = count / 2, jump;

    if (count == 1) {
        emit_verdict(b, &b->runs[first]);
        return;
    }
    emit(b,
         (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, b->runs[first + half].from, 0, 1));
    jump = emit(b, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0));
    emit_search(b, first, half);
    b->program->insns[jump].k = (uint32_t)(b->program->len - jump - 1);
    emit_search(b, first + half, count - half);
}

static void runs_find(struct builder *b)
{
    uint8_t verdicts[NUMBER_MAX + 1] = {0};

    for (size_t i = 0; i < ARRAY_LEN(named_calls); i++)
        verdicts[named_calls[i].number] = (uint8_t)named_calls[i].verdict;
    for (uint32_t n = 0; n <= NUMBER_MAX; n++) {
        bool alone = verdicts[n] == VERDICT_ARGUMENTS;

        if (n == 0 || alone || verdicts[n] != verdicts[n - 1])
            b->runs[b->run_count++] = (struct run){.from = n, .verdict = verdicts[n]};
    }
}

int seccomp_build(enum seccomp_profile profile, uint32_t flags, struct seccomp_program *ret,
                  struct error *reterr)
{
    struct builder b = {.program = ret, .profile = profile, .flags = flags};

    ret->len = 0;
    runs_find(&b);
    emit_load(&b, offsetof(struct seccomp_data, arch));
    emit(&b, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE_ARCH, 1, 0));
    emit_return(&b, SECCOMP_RET_KILL_PROCESS);
    emit_load(&b, offsetof(struct seccomp_data, nr));
    /* x32 numbers have bit 30 set, so they are past every run and ENOSYS. */
    emit_search(&b, 0, b.run_count);
    if (b.overflow)
        return error_set(reterr, ERR_INTERNAL, "the seccomp program is too long");
    return 0;
}

int seccomp_apply(const struct seccomp_program *program)
{
    struct sock_fprog prog = {.len = (unsigned short)program->len,
                              .filter = (struct sock_filter *)program->insns};

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

static const char *verdict_name(enum verdict verdict, enum seccomp_profile profile)
{
    static const char *const names[] = {
        [VERDICT_ENOSYS] = "ENOSYS", [VERDICT_ALLOW] = "allow",  [VERDICT_INIT] = "EPERM",
        [VERDICT_EPERM] = "EPERM",   [VERDICT_NAMED] = "ENOSYS", [VERDICT_ARGUMENTS] = "arguments",
    };

    if (verdict == VERDICT_INIT && profile == SECCOMP_INIT)
        return "allow";
    return names[verdict];
}

void seccomp_print(FILE *to)
{
    for (size_t i = 0; i < ARRAY_LEN(named_calls); i++) {
        const struct named_call *call = &named_calls[i];

        fprintf(to, "%s\t%d\t%s\t%s\n", call->name, call->number,
                verdict_name(call->verdict, SECCOMP_DEFAULT),
                verdict_name(call->verdict, SECCOMP_INIT));
    }
}
