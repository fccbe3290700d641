/* SPDX-License-Identifier: MIT */
/* The filters, run by an interpreter of the few BPF instructions that they use. */
#include "launcher/seccomp.h"

#include "tests/lib/test.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifdef __x86_64__
#define OUR_ARCH AUDIT_ARCH_X86_64
#else
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))

static struct seccomp_program program;

static void build(enum seccomp_profile profile, uint32_t flags)
{
    struct error err;

    assert_ok(seccomp_build(profile, flags, &program, &err), err);
    assert_true(program.len > 100 && program.len <= BPF_MAXINSNS);
}

static uint32_t jump(const struct sock_filter *insn, uint32_t a)
{
    bool yes = false;

    switch (BPF_OP(insn->code)) {
    case BPF_JA:
        return insn->k;
    case BPF_JEQ:
        yes = a == insn->k;
        break;
    case BPF_JGE:
        yes = a >= insn->k;
        break;
    default:
        test_fail(__FILE__, __LINE__, "jump 0x%x is not known", insn->code);
    }
    return yes ? insn->jt : insn->jf;
}

static uint32_t filter_run(const struct seccomp_data *data)
{
    uint32_t a = 0, word;

    for (size_t pc = 0; pc < program.len; pc++) {
        const struct sock_filter *insn = &program.insns[pc];

        switch (BPF_CLASS(insn->code)) {
        case BPF_LD:
            assert_true(insn->k % 4 == 0 && insn->k < sizeof(*data));
            memcpy(&word, (const char *)data + insn->k, sizeof(word));
            a = word;
            break;
        case BPF_ALU:
            assert_int_eq(BPF_OP(insn->code), BPF_AND);
            a &= insn->k;
            break;
        case BPF_JMP:
            pc += jump(insn, a);
            break;
        case BPF_RET:
            return insn->k;
        default:
            test_fail(__FILE__, __LINE__, "instruction 0x%x is not known", insn->code);
        }
    }
    test_fail(__FILE__, __LINE__, "the program has no end");
}

static uint32_t call(long number, uint64_t a, uint64_t b, uint64_t c)
{
    const struct seccomp_data data = {.nr = (int)number, .arch = OUR_ARCH, .args = {a, b, c}};

    return filter_run(&data);
}

TEST(ordinary_calls_are_allowed)
{
    static const long allowed[] = {SYS_read,   SYS_write,  SYS_execve, SYS_mmap,     SYS_futex,
                                   SYS_openat, SYS_clone3, SYS_accept, SYS_getrandom};

    build(SECCOMP_DEFAULT, 0);
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
        uint32_t want = allowed[i] == SYS_clone3 ? ERRNO(ENOSYS) : SECCOMP_RET_ALLOW;

        assert_uint_eq(call(allowed[i], 0, 0, 0), want);
    }
}

TEST(unknown_numbers_are_enosys)
{
    static const long numbers[] = {511, 512, 1000, 0x40000000 | SYS_getpid, 0x7fffffff, -1};

    build(SECCOMP_DEFAULT, 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_uint_eq(call(numbers[i], 0, 0, 0), ERRNO(ENOSYS));
}

TEST(another_machine_is_killed)
{
    struct seccomp_data data = {.nr = 1, .arch = AUDIT_ARCH_I386};

    build(SECCOMP_DEFAULT, 0);
    assert_uint_eq(filter_run(&data), SECCOMP_RET_KILL_PROCESS);
}

TEST(only_init_has_what_init_needs)
{
    static const long init_only[] = {SYS_setfsuid, SYS_setfsgid, SYS_capset};

    for (size_t i = 0; i < sizeof(init_only) / sizeof(init_only[0]); i++) {
        build(SECCOMP_DEFAULT, 0);
        assert_uint_eq(call(init_only[i], 0, 0, 0), ERRNO(EPERM));
        build(SECCOMP_INIT, 0);
        assert_uint_eq(call(init_only[i], 0, 0, 0), SECCOMP_RET_ALLOW);
    }
}

TEST(init_differs_in_nothing_else)
{
    static uint32_t first[1024];

    build(SECCOMP_DEFAULT, 0);
    for (long n = 0; n < 1024; n++)
        first[n] = call(n, 0, 0, 0);
    build(SECCOMP_INIT, 0);
    for (long n = 0; n < 1024; n++) {
        if (n != SYS_setfsuid && n != SYS_setfsgid && n != SYS_capset)
            assert_uint_eq(call(n, 0, 0, 0), first[n]);
    }
}

TEST(clone_may_not_make_namespaces)
{
    static const unsigned long flags[] = {CLONE_NEWNS,  CLONE_NEWCGROUP, CLONE_NEWUTS,
                                          CLONE_NEWIPC, CLONE_NEWUSER,   CLONE_NEWPID,
                                          CLONE_NEWNET};

    build(SECCOMP_DEFAULT, 0);
    assert_uint_eq(call(SYS_clone, 0x3d0f00, 0, 0), SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        assert_uint_eq(call(SYS_clone, 0x3d0f00 | flags[i], 0, 0), ERRNO(EPERM));
}

TEST(sockets_by_family)
{
    build(SECCOMP_DEFAULT, 0);
    for (uint64_t family = 0; family < 64; family++) {
        bool plain = family == AF_UNIX || family == AF_INET || family == AF_INET6;

        assert_uint_eq(call(SYS_socket, family, SOCK_STREAM, 0),
                       plain || family == AF_NETLINK ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT));
        assert_uint_eq(call(SYS_socketpair, family, SOCK_STREAM, 0),
                       plain ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT));
        assert_uint_eq(call(SYS_socket, AF_NETLINK, SOCK_RAW, family),
                       family == 0 ? SECCOMP_RET_ALLOW : ERRNO(EAFNOSUPPORT));
    }
    /* The kernel takes the low half of the family. */
    assert_uint_eq(call(SYS_socket, 0x100000000ull | AF_VSOCK, 0, 0), ERRNO(EAFNOSUPPORT));
    assert_uint_eq(call(SYS_socket, 0x100000000ull | AF_NETLINK, 0, 4), ERRNO(EAFNOSUPPORT));
}

TEST(terminals_cannot_be_fed_or_get_line_disciplines)
{
    static const uint64_t refused[] = {0x5412, 0x541c, 0x5423, 0x100005412ull,
                                       0xffffffff0000541cull};

    build(SECCOMP_DEFAULT, 0);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_uint_eq(call(SYS_ioctl, 0, refused[i], 0), ERRNO(EPERM));
    assert_uint_eq(call(SYS_ioctl, 0, 0x5401, 0), SECCOMP_RET_ALLOW);
}

TEST(prctl_and_personality)
{
    build(SECCOMP_DEFAULT, 0);
    assert_uint_eq(call(SYS_prctl, PR_SET_MM, 0, 0), ERRNO(EPERM));
    assert_uint_eq(call(SYS_prctl, PR_SET_NAME, 0, 0), SECCOMP_RET_ALLOW);
    assert_uint_eq(call(SYS_personality, 0, 0, 0), SECCOMP_RET_ALLOW);
    assert_uint_eq(call(SYS_personality, 0xffffffff, 0, 0), SECCOMP_RET_ALLOW);
    assert_uint_eq(call(SYS_personality, 0x400000, 0, 0), ERRNO(EPERM));
}

TEST(with_one_uid_limits_are_for_oneself)
{
    build(SECCOMP_DEFAULT, 0);
    assert_uint_eq(call(SYS_prlimit64, 1, 0, 0x7fff0000), SECCOMP_RET_ALLOW);
    build(SECCOMP_DEFAULT, SECCOMP_ONE_UID);
    assert_uint_eq(call(SYS_prlimit64, 0, 0, 0x7fff0000), SECCOMP_RET_ALLOW);
    assert_uint_eq(call(SYS_prlimit64, 1, 0, 0), SECCOMP_RET_ALLOW);
    assert_uint_eq(call(SYS_prlimit64, 1, 0, 0x7fff0000), ERRNO(EPERM));
    assert_uint_eq(call(SYS_prlimit64, 1, 0, 0x100000000ull), ERRNO(EPERM));
}

TEST(the_printed_table_tells_every_class)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    assert_not_null(to);
    seccomp_print(to);
    fclose(to);
    assert_str_has(text, "mount\t");
    assert_str_has(text, "\tEPERM\tEPERM\n");
    assert_str_has(text, "\tEPERM\tallow\n");
    assert_str_has(text, "\tENOSYS\tENOSYS\n");
    assert_str_has(text, "\targuments\targuments\n");
    free(text);
}
