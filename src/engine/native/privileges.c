/* SPDX-License-Identifier: MIT */
/* Capability drop by the raw system call: libcap would be one more library for three calls. */
#include "engine/native/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int privileges_drop(struct error *reterr)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {};

    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap) < 0 && errno != EPERM)
            return error_sys(reterr, errno, "cannot drop capability %d", cap);
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
        return error_sys(reterr, errno, "cannot clear ambient capabilities");
    if (syscall(SYS_capset, &header, none) < 0)
        return error_sys(reterr, errno, "cannot drop capabilities");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(reterr, errno, "cannot set no_new_privs");
    return 0;
}
