/* SPDX-License-Identifier: MIT */
/*
 * Options of init. They come from our launcher, but a wrong one ends init at once with a message:
 * an option that is silently ignored could be one that protects.
 */
#include "init/config.h"

#include "base/fd.h"
#include "base/str.h"

#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    CONFIG_ID_MAX = 0x7ffffffe,
    CONFIG_SPACE_MIN = 64 * 1024, /* a mount with less than one bulk write left counts as full */
};

struct config config = {
    .lease_ms = 60000,
    .uid = 65532,
    .gid = 65532,
    .root_uid = -1,
    .landlock = true,
    .seccomp = true,
    .workspace = "/workspace",
};

enum option_kind { OPTION_NUMBER, OPTION_TRUE, OPTION_OFF, OPTION_DIR, OPTION_WRITABLE };

static const struct option {
    const char *name;
    enum option_kind kind;
    size_t offset;
    int64_t max;
} options[] = {
    {"--lease-ms", OPTION_NUMBER, offsetof(struct config, lease_ms), CONFIG_LEASE_MAX_MS},
    {"--uid", OPTION_NUMBER, offsetof(struct config, uid), CONFIG_ID_MAX},
    {"--gid", OPTION_NUMBER, offsetof(struct config, gid), CONFIG_ID_MAX},
    {"--root-uid", OPTION_NUMBER, offsetof(struct config, root_uid), CONFIG_ID_MAX},
    {"--memory-mib", OPTION_NUMBER, offsetof(struct config, memory_mib), UINT32_MAX},
    {"--as-root", OPTION_TRUE, offsetof(struct config, as_root), 0},
    {"--one-uid", OPTION_TRUE, offsetof(struct config, one_uid), 0},
    {"--landlock", OPTION_OFF, offsetof(struct config, landlock), 0},
    {"--seccomp", OPTION_OFF, offsetof(struct config, seccomp), 0},
    {"--workspace", OPTION_DIR, offsetof(struct config, workspace), 0},
    {"--writable", OPTION_WRITABLE, 0, 0},
};

static const struct option *option_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (str_eq(options[i].name, name))
            return &options[i];
    }
    return NULL;
}

static int writable_add(struct config *c, const char *dir)
{
    if (c->writable_count == CONFIG_WRITABLE)
        return -1;
    c->writable[c->writable_count++] = dir;
    return 0;
}

static int option_apply(struct config *c, const struct option *o, const char *value)
{
    char *place = (char *)c + o->offset;

    if (o->kind == OPTION_NUMBER)
        return str_parse_int(value, 0, o->max, (int64_t *)(void *)place);
    if (o->kind == OPTION_OFF) {
        *(bool *)place = false;
        return str_eq(value, "off") ? 0 : -1;
    }
    if (value[0] != '/')
        return -1;
    if (o->kind == OPTION_WRITABLE)
        return writable_add(c, value);
    *(const char **)(void *)place = value;
    return 0;
}

int config_parse(struct config *c, const char *const *argv, struct error *reterr)
{
    for (; *argv; argv++) {
        const struct option *o = option_find(*argv);

        if (!o)
            return error_set(reterr, ERR_INVALID, "option '%s' is not known", *argv);
        if (o->kind == OPTION_TRUE) {
            *(bool *)((char *)c + o->offset) = true;
            continue;
        }
        if (!argv[1])
            return error_set(reterr, ERR_INVALID, "option '%s' needs a value", *argv);
        argv++;
        if (option_apply(c, o, *argv) < 0)
            return error_set(reterr, ERR_INVALID, "'%s' is no value for '%s'", *argv, o->name);
    }
    if (c->as_root != (c->root_uid >= 0))
        return error_set(reterr, ERR_INVALID, "--as-root and --root-uid belong together");
    return 0;
}

int config_read_filter(struct config *c, int fd, struct error *reterr)
{
    struct stat st;
    ssize_t got;

    if (!c->seccomp)
        return 0;
    if (fstat(fd, &st) < 0)
        return error_sys(reterr, errno, "cannot read the seccomp program");
    if (!S_ISREG(st.st_mode) || st.st_size == 0 ||
        (size_t)st.st_size % sizeof(struct sock_filter) != 0 ||
        (size_t)st.st_size / sizeof(struct sock_filter) > BPF_MAXINSNS)
        return error_set(reterr, ERR_INVALID, "there is no seccomp program in descriptor %d", fd);
    c->filter = malloc((size_t)st.st_size);
    if (!c->filter)
        return error_no_memory(reterr);
    got = fd_read_full(fd, c->filter, (size_t)st.st_size, reterr);
    if (got < 0)
        return (int)got;
    if (got != st.st_size)
        return error_set(reterr, ERR_INVALID, "the seccomp program is cut");
    c->filter_count = (size_t)got / sizeof(struct sock_filter);
    return 0;
}

/*
 * A writer in large pieces stops before the last byte, on a disk also for what the file system
 * keeps to itself: so a little of the whole counts as nothing, at least one bulk write.
 */
static bool mount_is_full(const struct statvfs *st)
{
    uint64_t total = (uint64_t)st->f_blocks * st->f_frsize;
    uint64_t least = MAX(MIN(total / 64, (uint64_t)MIB), (uint64_t)CONFIG_SPACE_MIN);

    return (uint64_t)st->f_bavail * st->f_frsize < least || (st->f_files > 0 && st->f_favail == 0);
}

bool config_is_full(const struct config *c)
{
    for (size_t i = 0; i < c->writable_count; i++) {
        struct statvfs st;

        if (statvfs(c->writable[i], &st) < 0 || (st.f_flag & ST_RDONLY) || st.f_blocks == 0)
            continue;
        if (mount_is_full(&st))
            return true;
    }
    return false;
}
