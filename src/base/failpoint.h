/* SPDX-License-Identifier: MIT */
/*
 * Named points at which a test makes the process die, wait or fail; nothing in release builds.
 *
 * The environment variable SBX_FAIL=NAME[:N][:ACTION] arms one point. The N-th time (default: the
 * first) that the point is passed, ACTION is carried out: `kill` (the default) is SIGKILL to the
 * own process, `err=E` makes failpoint() return that error (a name such as ENOSPC, or a number),
 * `sleep=MS` waits. Without N, err and sleep act every time.
 *
 *     r = failpoint("cgroup-limit");
 *     if (r < 0)
 *         return error_sys(reterr, -r, "cannot limit '%s'", path);
 *
 * From any thread; async-signal-unsafe.
 */
#pragma once

#ifdef SBX_FAILPOINTS
/* 0, or the negative errno that was asked for. */
int failpoint(const char *name);
#else
static inline int failpoint(const char *name)
{
    (void)name;
    return 0;
}
#endif
