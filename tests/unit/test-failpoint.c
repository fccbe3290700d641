/* SPDX-License-Identifier: MIT */
/* Failpoints: in a build without them the tests are skipped, since nothing can be shown. */
#include "base/failpoint.h"

#include "tests/lib/test.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child ends that passes the point `count` times; its exit status is the last error. */
static int child_status(const char *armed, const char *name, int count)
{
    int error = 0;
    int status;
    pid_t pid;

#ifndef SBX_FAILPOINTS
    test_skip("built without failpoints");
#endif
    pid = fork();
    if (pid == 0) {
        setenv("SBX_FAIL", armed, 1);
        for (int i = 0; i < count; i++)
            error = -failpoint(name);
        _exit(error);
    }
    assert_true(pid > 0);
    assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int child_error(const char *armed, const char *name, int count)
{
    int status = child_status(armed, name, count);

    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(a_point_that_is_not_armed_does_nothing)
{
    assert_int_eq(failpoint("clone"), 0);
    assert_int_eq(child_error("clone-late:err=EIO", "clone", 1), 0);
    assert_int_eq(child_error("clo:err=EIO", "clone", 1), 0);
}

TEST(an_error_is_returned_each_time)
{
    assert_int_eq(child_error("clone:err=ENOSPC", "clone", 1), ENOSPC);
    assert_int_eq(child_error("clone:err=ENOSPC", "clone", 2), ENOSPC);
    assert_int_eq(child_error("clone:err=5", "clone", 1), 5);
}

TEST(an_error_can_wait_for_its_turn)
{
    assert_int_eq(child_error("clone:2:err=EIO", "clone", 1), 0);
    assert_int_eq(child_error("clone:2:err=EIO", "clone", 2), EIO);
    assert_int_eq(child_error("clone:2:err=EIO", "clone", 3), 0);
}

TEST(kill_is_the_default_and_happens_at_the_named_pass)
{
    assert_int_eq(WTERMSIG(child_status("clone", "clone", 1)), SIGKILL);
    assert_int_eq(child_error("clone:3:kill", "clone", 2), 0);
    assert_int_eq(WTERMSIG(child_status("clone:3:kill", "clone", 3)), SIGKILL);
}

TEST(a_sleep_returns_success)
{
    assert_int_eq(child_error("clone:sleep=1", "clone", 1), 0);
}
