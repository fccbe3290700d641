/* SPDX-License-Identifier: MIT */
/*
 * Id plans and maps. Names are looked up in /etc/passwd by hand, since a static program cannot load
 * name service modules; where a user is not there, LOGNAME serves: newuidmap checks it all again.
 */
#include "launcher/ids.h"

#include "base/failpoint.h"
#include "base/fd.h"
#include "base/str.h"
#include "launcher/slot.h"
#include "launcher/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

extern char **environ;

/* Cuts `line` at colons; the number of parts. */
static size_t line_split(char *line, char *parts[], size_t max)
{
    size_t count = 0;

    while (count < max) {
        parts[count++] = line;
        line = strchr(line, ':');
        if (!line)
            break;
        *line++ = 0;
    }
    return count;
}

bool id_subordinate_parse(const char *text, const char *name, uint32_t uid, uint32_t *ret_start,
                          uint32_t *ret_count)
{
    char line[512], number[16];
    char *parts[3];

    snprintf(number, sizeof(number), "%u", uid);
    while (sys_line_next(&text, line, sizeof(line))) {
        int64_t start, count;

        if (line_split(line, parts, ARRAY_LEN(parts)) != 3 ||
            !(str_eq(parts[0], number) || (name[0] && str_eq(parts[0], name))) ||
            str_parse_int(parts[1], 1, UINT32_MAX - 1, &start) < 0 ||
            str_parse_int(parts[2], 1, UINT32_MAX - 1, &count) < 0 || start + count > UINT32_MAX)
            continue;
        *ret_start = (uint32_t)start;
        *ret_count = (uint32_t)count;
        return true;
    }
    return false;
}

static void user_name(uint32_t uid, char *ret, size_t size)
{
    auto_free char *text = NULL;
    const char *p, *login = getenv("LOGNAME");
    char line[512];
    char *parts[7];

    if (fd_read_file(AT_FDCWD, "/etc/passwd", 16 * MIB, &text, NULL, NULL) == 0) {
        p = text;
        while (sys_line_next(&p, line, sizeof(line))) {
            int64_t id;

            if (line_split(line, parts, ARRAY_LEN(parts)) >= 3 &&
                str_parse_int(parts[2], 0, UINT32_MAX, &id) == 0 && id == (int64_t)uid &&
                str_copy(ret, size, parts[0]) == 0)
                return;
        }
    }
    if (!login || str_copy(ret, size, login) < 0)
        ret[0] = 0;
}

static bool range_read(const char *file, const char *name, uint32_t *ret_start, uint32_t *ret_count)
{
    auto_free char *text = NULL;

    return fd_read_file(AT_FDCWD, file, 16 * MIB, &text, NULL, NULL) == 0 &&
           id_subordinate_parse(text, name, geteuid(), ret_start, ret_count);
}

static bool program_exists(const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "/usr/bin/%s", name);
    return access(path, X_OK) == 0;
}

int id_pool_read(struct id_pool *ret, struct error *reterr)
{
    uint32_t uid_count, gid_count;
    char name[256];

    *ret = (struct id_pool){.root = geteuid() == 0, .slots = SLOT_MAX};
    if (ret->root)
        return 0;
    if (getuid() != geteuid())
        return error_set(reterr, ERR_DENIED, "the launcher must not be a set-uid program");
    user_name(geteuid(), name, sizeof(name));
    if (!range_read("/etc/subuid", name, &ret->uid_start, &uid_count) ||
        !range_read("/etc/subgid", name, &ret->gid_start, &gid_count) ||
        !program_exists("newuidmap") || !program_exists("newgidmap"))
        return 0;
    ret->half = MIN(uid_count, gid_count) / 2;
    /* Slot 0 is never given out, so two slots are the least that is of use. */
    ret->subordinate = ret->half >= 2;
    if (ret->subordinate)
        ret->slots = MIN(ret->half, (uint32_t)SLOT_MAX);
    return 0;
}

static void plan_add(struct id_plan *plan, struct id_range range)
{
    plan->ranges[plan->range_count++] = range;
    if (ID_SANDBOX >= range.inside && ID_SANDBOX - range.inside < range.count)
        plan->host_user = range.uid + (ID_SANDBOX - range.inside);
}

static void plan_root(uint32_t slot, struct id_plan *ret)
{
    uint32_t base = SLOT_BASE + slot * SLOT_IDS;

    /* Without a user namespace the numbers inside are the host's own. */
    uint32_t shift = ret->userns ? 0 : base;

    ret->setup = 0;
    ret->init = shift + (ret->as_root ? ID_INIT : 0);
    ret->user = shift + ID_SANDBOX;
    ret->root = shift;
    plan_add(ret, (struct id_range){.uid = base, .gid = base, .count = SLOT_IDS});
}

static void plan_subordinate(const struct id_pool *pool, uint32_t slot, struct id_plan *ret)
{
    const struct id_range own = {
        .inside = ret->as_root ? ID_INIT : 0, .uid = geteuid(), .gid = getegid(), .count = 1};

    ret->setup = ret->init = own.inside;
    ret->user = ID_SANDBOX;
    ret->programs = true;
    if (ret->as_root)
        plan_add(ret, (struct id_range){.inside = 0,
                                        .uid = pool->uid_start + pool->half + slot,
                                        .gid = pool->gid_start + pool->half + slot,
                                        .count = 1});
    else
        plan_add(ret, own);
    plan_add(ret, (struct id_range){.inside = ID_SANDBOX,
                                    .uid = pool->uid_start + slot,
                                    .gid = pool->gid_start + slot,
                                    .count = 1});
    if (ret->as_root)
        plan_add(ret, own);
}

static void plan_one(struct id_plan *ret)
{
    uint32_t inside = ret->as_root ? 0 : ID_SANDBOX;

    ret->one_uid = true;
    ret->setup = ret->init = ret->user = inside;
    ret->host_user = geteuid();
    plan_add(ret,
             (struct id_range){.inside = inside, .uid = geteuid(), .gid = getegid(), .count = 1});
}

void id_plan_make(const struct id_pool *pool, uint32_t slot, bool as_root, bool userns,
                  struct id_plan *ret)
{
    *ret = (struct id_plan){.userns = userns, .as_root = as_root};
    if (pool->root)
        plan_root(slot, ret);
    else if (pool->subordinate)
        plan_subordinate(pool, slot, ret);
    else
        plan_one(ret);
}

static int map_write(pid_t pid, const char *file, const char *text, struct error *reterr)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    if (sys_write_text(AT_FDCWD, path, text) < 0)
        return error_sys(reterr, errno, "cannot write %s of a user namespace", file);
    return 0;
}

/* The kernel takes a whole map in one write. */
static int maps_write(const struct id_plan *plan, pid_t pid, struct error *reterr)
{
    char uids[ID_RANGES * 36] = "", gids[ID_RANGES * 36] = "";
    int r;

    for (size_t i = 0; i < plan->range_count; i++) {
        const struct id_range *range = &plan->ranges[i];
        size_t u = strlen(uids), g = strlen(gids);

        snprintf(uids + u, sizeof(uids) - u, "%u %u %u\n", range->inside, range->uid, range->count);
        snprintf(gids + g, sizeof(gids) - g, "%u %u %u\n", range->inside, range->gid, range->count);
    }
    if (plan->one_uid && (r = map_write(pid, "setgroups", "deny", reterr)) < 0)
        return r;
    if ((r = map_write(pid, "uid_map", uids, reterr)) < 0)
        return r;
    return map_write(pid, "gid_map", gids, reterr);
}

static int program_run(char *const argv[], struct error *reterr)
{
    char path[64];
    int status, r;
    pid_t pid;

    snprintf(path, sizeof(path), "/usr/bin/%s", argv[0]);
    r = posix_spawn(&pid, path, NULL, NULL, argv, environ);
    if (r != 0)
        return error_sys(reterr, r, "cannot run %s", argv[0]);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return error_sys(reterr, errno, "cannot wait for %s", argv[0]);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(reterr, ERR_UNAVAILABLE,
                         "%s refuses the id map; check /etc/subuid and /etc/subgid", argv[0]);
    return 0;
}

static int maps_run(const struct id_plan *plan, pid_t pid, const char *program, bool uids,
                    struct error *reterr)
{
    char words[3 * ID_RANGES + 1][16];
    char *argv[3 * ID_RANGES + 3];
    size_t n = 0, w = 0;

    argv[n++] = (char *)program;
    snprintf(words[w], sizeof(words[w]), "%d", (int)pid);
    argv[n++] = words[w++];
    for (size_t i = 0; i < plan->range_count; i++) {
        const struct id_range *range = &plan->ranges[i];
        const uint32_t numbers[3] = {range->inside, uids ? range->uid : range->gid, range->count};

        for (size_t k = 0; k < 3; k++) {
            snprintf(words[w], sizeof(words[w]), "%u", numbers[k]);
            argv[n++] = words[w++];
        }
    }
    argv[n] = NULL;
    return program_run(argv, reterr);
}

int id_plan_apply(const struct id_plan *plan, pid_t pid, struct error *reterr)
{
    int r = failpoint("uid-map");

    if (r < 0)
        return error_sys(reterr, -r, "cannot write the id maps");
    if (!plan->programs)
        return maps_write(plan, pid, reterr);
    if ((r = maps_run(plan, pid, "newuidmap", true, reterr)) < 0)
        return r;
    return maps_run(plan, pid, "newgidmap", false, reterr);
}
