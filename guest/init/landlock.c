/* SPDX-License-Identifier: MIT */
/*
 * Landlock. The constants are ours, because the headers of the oldest supported system know the
 * second of seven versions; a right is asked for only where the running kernel knows it.
 */
#include "init/landlock.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_FIRST = (1 << 13) - 1, /* all of the first version */
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_BLOCK = 1 << 11,
    FS_REFER = 1 << 13,
    FS_TRUNCATE = 1 << 14,
    FS_IOCTL_DEV = 1 << 15,
    FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    SCOPE_ABSTRACT = 1 << 0,
    SCOPE_SIGNAL = 1 << 1,
    CREATE_VERSION = 1 << 0,
    RULE_PATH_BENEATH = 1,
};

struct ruleset {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};

struct path_rule {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

/* From which version on a right exists. */
static const struct {
    int abi;
    uint64_t fs;
} fs_versions[] = {
    {1, FS_FIRST},
    {2, FS_REFER},
    {3, FS_TRUNCATE},
    {5, FS_IOCTL_DEV},
};

static int abi_in_force;

int landlock_abi(void)
{
    return abi_in_force;
}

static uint64_t fs_handled(int abi)
{
    uint64_t fs = 0;

    for (size_t i = 0; i < ARRAY_LEN(fs_versions); i++)
        fs |= abi >= fs_versions[i].abi ? fs_versions[i].fs : 0;
    return fs;
}

/* Rights of directories cannot be given to a file. */
static int rule_add(int ruleset, const char *path, uint64_t allowed, struct error *reterr)
{
    auto_fd int fd = open(path, O_PATH | O_CLOEXEC);
    struct path_rule rule = {.allowed = allowed, .fd = fd};
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return error_sys(reterr, errno, "cannot open '%s' for Landlock", path);
    if (!S_ISDIR(st.st_mode))
        rule.allowed &= FS_OF_FILES;
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
        return error_sys(reterr, errno, "cannot add a Landlock rule for '%s'", path);
    return 0;
}

static int rules_add(int ruleset, const struct config *c, uint64_t handled, struct error *reterr)
{
    const uint64_t reading = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    const uint64_t device = FS_WRITE_FILE | FS_READ_FILE | FS_READ_DIR | FS_TRUNCATE | FS_IOCTL_DEV;
    int r = rule_add(ruleset, "/", reading & handled, reterr);

    if (r == 0)
        r = rule_add(ruleset, "/dev", device & handled, reterr);
    for (size_t i = 0; i < c->writable_count && r == 0; i++)
        r = rule_add(ruleset, c->writable[i],
                     handled & ~(uint64_t)(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV), reterr);
    return r;
}

/* The kernel refuses a struct that is longer than it knows, unless the rest is zero; ours is not.
 */
static size_t ruleset_size(int abi)
{
    if (abi >= 6)
        return sizeof(struct ruleset);
    return abi >= 4 ? offsetof(struct ruleset, scoped) : offsetof(struct ruleset, net);
}

int landlock_apply(const struct config *c, struct error *reterr)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    struct ruleset attr = {};
    auto_fd int ruleset = -1;

    if (!c->landlock || abi < 1)
        return 0;
    attr.fs = fs_handled((int)abi);
    attr.scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, ruleset_size((int)abi), 0);
    if (ruleset < 0)
        return error_sys(reterr, errno, "cannot make a Landlock ruleset");
    if (rules_add(ruleset, c, attr.fs, reterr) < 0)
        return -(int)reterr->code;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return error_sys(reterr, errno, "cannot apply Landlock");
    abi_in_force = (int)abi;
    return 0;
}
