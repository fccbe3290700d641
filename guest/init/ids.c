/* SPDX-License-Identifier: MIT */
/*
 * Identities. A change of uid alone does not take capabilities away in every case (from 65533 to 0
 * the kernel keeps them), so a child empties its sets itself and then looks whether they are empty.
 */
#include "init/ids.h"

#include "init/config.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct caps {
    struct __user_cap_data_struct part[_LINUX_CAPABILITY_U32S_3];
};

static int caps_get(struct caps *ret)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return (int)syscall(SYS_capget, &header, ret->part);
}

static int caps_set(const struct caps *caps)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

    return (int)syscall(SYS_capset, &header, caps->part);
}

static bool caps_are_empty(const struct caps *caps)
{
    uint32_t all = 0;

    for (size_t i = 0; i < ARRAY_LEN(caps->part); i++)
        all |= caps->part[i].effective | caps->part[i].permitted | caps->part[i].inheritable;
    return all == 0;
}

/* Only a process with CAP_SETPCAP can; the launcher's init has none, and an empty bounding set. */
static void caps_drop_bounding(void)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

int ids_secure_self(struct error *reterr)
{
    struct caps caps;

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot become undumpable");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot set no_new_privs");
    caps_drop_bounding();
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot clear the ambient capabilities");
    if (caps_get(&caps) < 0)
        return error_sys(reterr, errno, "cannot read the capabilities");
    for (size_t i = 0; i < ARRAY_LEN(caps.part); i++)
        caps.part[i].inheritable = 0;
    if (caps_set(&caps) < 0)
        return error_sys(reterr, errno, "cannot clear the inheritable capabilities");
    return 0;
}

static uid_t user_uid(enum ids_user user)
{
    return (uid_t)(user == IDS_ROOT ? config.root_uid : config.uid);
}

/* The user root has the group of the same number. */
static gid_t user_gid(enum ids_user user)
{
    return (gid_t)(user == IDS_ROOT ? config.root_uid : config.gid);
}

bool ids_enter(enum ids_user user)
{
    if (config.one_uid)
        return true;
    setfsgid(user_gid(user));
    setfsuid(user_uid(user));
    /* setfsuid() tells the id before the call and nothing else; -1 changes nothing. */
    if (setfsuid((uid_t)-1) == (int)user_uid(user) && setfsgid((gid_t)-1) == (int)user_gid(user))
        return true;
    ids_leave();
    errno = EPERM;
    return false;
}

void ids_leave(void)
{
    if (config.one_uid)
        return;
    setfsuid(geteuid());
    setfsgid(getegid());
}

static int groups_clear(void)
{
    if (setgroups(0, NULL) == 0)
        return 0;
    /* With one mapped id setgroups is denied for good; then there must be none but our own. */
    return config.one_uid || getgroups(0, NULL) == 0 ? 0 : -1;
}

/* A root that could get capabilities back by its next exec is refused. */
static bool root_is_harmless(uid_t uid)
{
    int bits;

    if (uid != 0)
        return true;
    bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
    if (bits >= 0 && (bits & 1 /* SECBIT_NOROOT */))
        return true;
    for (unsigned long cap = 0;; cap++) {
        int in_set = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);

        if (in_set < 0)
            return true;
        if (in_set > 0)
            return false;
    }
}

int ids_become(enum ids_user user)
{
    const uid_t uid = user_uid(user);
    const gid_t gid = user_gid(user);
    struct caps caps = {};

    if (groups_clear() < 0)
        return -1;
    if (!config.one_uid && (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
        return -1;
    if (caps_set(&caps) < 0 || caps_get(&caps) < 0)
        return -1;
    if (!caps_are_empty(&caps) || !root_is_harmless(getuid())) {
        errno = EPERM;
        return -1;
    }
    return 0;
}
