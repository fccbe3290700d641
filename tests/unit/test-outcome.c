/* SPDX-License-Identifier: MIT */
/* Each cause of a bad end has a sentence that names the limit and what to do. */
#include "session/manager-internal.h"
#include "session/session-internal.h"

#include "tests/lib/test.h"

#include <stdio.h>

static struct settings settings = {.memory_limit = 256 * MIB};
static struct session_manager manager = {.settings = &settings};
static const struct session session = {.manager = &manager,
                                       .memory_bytes = 256 * MIB,
                                       .tmpfs_bytes = 200 * MIB,
                                       .home_bytes = 128 * MIB,
                                       .pids = 77};

static const char *message(const char *cause, enum run_kind kind, bool state_kept)
{
    static char text[400];
    struct run run = {.kind = kind, .timeout_ms = 2500, .outcome = {.state_kept = state_kept}};

    snprintf(run.cause, sizeof(run.cause), "%s", cause);
    outcome_message(&session, &run, text, sizeof(text));
    return text;
}

TEST(limits_are_named_with_their_size_and_setting)
{
    assert_str_has(message("oom", RUN_CODE, false), "256 MiB (CONTAINER_MEMORY_LIMIT)");
    assert_str_has(message("pids", RUN_CODE, true), "77 processes");
    assert_str_has(message("pids", RUN_CODE, true), "CONTAINER_PIDS_LIMIT");
    assert_str_has(message("disk", RUN_CODE, true), "200 MiB");
    assert_str_has(message("disk", RUN_CODE, true), "128 MiB (SANDBOX_PACKAGES_SIZE)");
    assert_str_has(message("evicted", RUN_CODE, false), "SESSION_MAX_ACTIVE_THREADS");
    assert_str_has(message("expired", RUN_CODE, false), "create a new one");
    assert_str_has(message("lost", RUN_CODE, false), "unknown reason");
}

/* A higher limit is advice only where there is one. */
TEST(what_memory_can_be_had_is_told)
{
    assert_str_has(message("oom", RUN_CODE, false), "Only the operator can raise the limit");
    assert_null(strstr(message("oom", RUN_CODE, false), "Create a session"));
    settings.memory_limit = 2048 * MIB;
    assert_str_has(message("oom", RUN_CODE, false), "256 MiB (memory_limit)");
    assert_str_has(message("oom", RUN_CODE, false), "up to 2048 MiB (CONTAINER_MEMORY_LIMIT)");
    settings.memory_limit = 256 * MIB;
}

TEST(a_disk_of_its_own_is_named)
{
    const struct session s = {.tmpfs_bytes = 200 * MIB, .disk_bytes = 64 * MIB};
    struct run run = {.cause = "disk"};
    char text[400];

    outcome_message(&s, &run, text, sizeof(text));
    assert_str_has(text, "64 MiB together (SANDBOX_DISK)");
    assert_str_has(text, "/tmp 200 MiB (CONTAINER_TMPFS_SIZE)");
}

TEST(a_time_out_says_how_long_and_whether_state_is_kept)
{
    assert_str_eq(message("timeout", RUN_CODE, true), "timed out after 2.5 s");
    assert_str_has(message("timeout", RUN_CODE, false), "variables are lost, files are kept");
    assert_str_eq(message("user", RUN_CODE, true), "stopped on request");
    assert_str_has(message("user", RUN_CODE, false), "the variables are lost");
}

TEST(signals_and_statuses_are_told_for_kernels_and_commands)
{
    assert_str_has(message("signal:11", RUN_CODE, false), "signal 11 (SIGSEGV)");
    assert_str_has(message("signal:11", RUN_CODE, false), "a fresh kernel is ready");
    assert_str_eq(message("signal:15", RUN_COMMAND, true),
                  "the command was ended by signal 15 (SIGTERM)");
    assert_str_has(message("signal:99", RUN_CODE, false), "SIG?");
    assert_str_has(message("signal:x", RUN_CODE, false), "SIG?");
    assert_str_has(message("exit:5", RUN_CODE, false), "status 5");
    assert_str_eq(message("exit:5", RUN_COMMAND, true), "the command ended with status 5");
    assert_str_has(message("protocol", RUN_CODE, false), "the kernel's own channel");
}

TEST(what_is_no_cause_has_no_message)
{
    assert_str_eq(message("", RUN_CODE, true), "");
    assert_str_eq(message("something new", RUN_CODE, true), "");
    assert_str_eq(message("signal", RUN_CODE, true), "");
}
