/* SPDX-License-Identifier: MIT */
/* Parsers of mountinfo and of /proc/self/cgroup, over bounded copies of one line at a time. */
#include "launcher/cgroup-layout.h"

#include "base/fd.h"
#include "base/str.h"
#include "launcher/sys.h"

#include <fcntl.h>
#include <stdio.h>

static const char *const controller_names[CGROUP_CONTROLLERS] = {"memory", "pids", "cpu",
                                                                 "freezer"};

const char *cgroup_controller_name(enum cgroup_controller controller)
{
    return controller_names[controller];
}

bool cgroup_list_has(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (*list) {
        size_t n = strcspn(list, ", \n");

        if (n == len && memcmp(list, word, len) == 0)
            return true;
        list += n;
        list += strspn(list, ", \n");
    }
    return false;
}

/* The kernel writes space, tab, newline and backslash in paths as three octal digits. */
static void path_unescape(char *path)
{
    char *to = path;

    for (const char *from = path; *from;) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
            from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
}

/* Cuts the next word off *text; NULL when there is none. */
static char *word_next(char **text)
{
    char *word = *text + strspn(*text, " ");

    if (!*word)
        return NULL;
    *text = word + strcspn(word, " ");
    if (**text)
        *(*text)++ = 0;
    return word;
}

struct mount_line {
    char *root, *point, *type, *options;
};

static bool mount_line_parse(char *line, struct mount_line *ret)
{
    char *words[6], *rest = line;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        words[i] = word_next(&rest);
        if (!words[i])
            return false;
    }
    ret->root = words[3];
    ret->point = words[4];
    for (char *word = words[5]; !str_eq(word, "-");) {
        word = word_next(&rest);
        if (!word)
            return false;
    }
    ret->type = word_next(&rest);
    (void)word_next(&rest);
    ret->options = word_next(&rest);
    if (!ret->options)
        return false;
    path_unescape(ret->root);
    path_unescape(ret->point);
    return true;
}

/* Our group's path in a hierarchy: "3:cpu,cpuacct:/x", or "0::/x" for version 2 (name NULL). */
static bool group_find(const char *groups, const char *name, char *ret, size_t size)
{
    char line[1024];

    while (sys_line_next(&groups, line, sizeof(line))) {
        char *names = strchr(line, ':'), *path;

        if (!names || !(path = strchr(names + 1, ':')))
            continue;
        *names++ = 0;
        *path++ = 0;
        if (name ? cgroup_list_has(names, name) : (str_eq(line, "0") && !*names))
            return str_copy(ret, size, path) == 0;
    }
    return false;
}

/*
 * The directory of a group under a mount that may show only a part of the hierarchy, as in a
 * container: then the mount's root is a prefix of the group's path.
 */
static void place_set(const struct mount_line *mount, const char *group, struct cgroup_place *ret)
{
    size_t prefix = str_eq(mount->root, "/") ? 0 : strlen(mount->root);
    int n;

    if (ret->path[0] || group[0] != '/' || strncmp(group, mount->root, prefix) != 0 ||
        (group[prefix] && group[prefix] != '/'))
        return;
    group += prefix;
    n = snprintf(ret->path, sizeof(ret->path), "%s%s", mount->point,
                 str_eq(group, "/") ? "" : group);
    if (n < 0 || (size_t)n >= sizeof(ret->path) ||
        str_copy(ret->mount, sizeof(ret->mount), mount->point) < 0)
        ret->path[0] = 0;
}

void cgroup_layout_parse(const char *mountinfo, const char *groups, struct cgroup_layout *ret)
{
    char line[4096], group[JOB_PATH];
    struct mount_line mount;

    memset(ret, 0, sizeof(*ret));
    while (sys_line_next(&mountinfo, line, sizeof(line))) {
        if (!mount_line_parse(line, &mount))
            continue;
        if (str_eq(mount.type, "cgroup2") && group_find(groups, NULL, group, sizeof(group)))
            place_set(&mount, group, &ret->v2);
        if (!str_eq(mount.type, "cgroup"))
            continue;
        for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
            if (cgroup_list_has(mount.options, controller_names[c]) &&
                group_find(groups, controller_names[c], group, sizeof(group)))
                place_set(&mount, group, &ret->v1[c]);
        }
    }
}

int cgroup_layout_read(struct cgroup_layout *ret, struct error *reterr)
{
    auto_free char *mountinfo = NULL, *groups = NULL;
    int r;

    if ((r = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", 4 * MIB, &mountinfo, NULL, reterr)) <
            0 ||
        (r = fd_read_file(AT_FDCWD, "/proc/self/cgroup", 64 * KIB, &groups, NULL, reterr)) < 0)
        return r;
    cgroup_layout_parse(mountinfo, groups, ret);
    return 0;
}
