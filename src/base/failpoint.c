/* SPDX-License-Identifier: MIT */
/*
 * The armed failpoint of this process.
 *
 * One point can be armed at a time, so one counter is enough; the variable is read again at each
 * point, which costs nothing that matters in a debug build and needs no start-up call.
 */
#include "base/failpoint.h"

#ifdef SBX_FAILPOINTS

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
    const char *name;
    int number;
} error_names[] = {
    {"EAGAIN", EAGAIN}, {"EINTR", EINTR},   {"EIO", EIO},
    {"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"ENOMEM", ENOMEM},
    {"ENOSPC", ENOSPC}, {"EPERM", EPERM},   {"EROFS", EROFS},
};

struct action {
    unsigned long hit; /* 0: every time */
    unsigned long milliseconds;
    int error;
    bool kills;
};

static int error_number(const char *text)
{
    for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++) {
        if (strcmp(text, error_names[i].name) == 0)
            return error_names[i].number;
    }
    return (int)strtoul(text, NULL, 10);
}

static struct action action_parse(const char *text)
{
    struct action action = {0};
    char *end;

    if (*text == ':') {
        action.hit = strtoul(text + 1, &end, 10);
        if (end != text + 1)
            text = end;
    }
    if (strncmp(text, ":err=", 5) == 0)
        action.error = error_number(text + 5);
    else if (strncmp(text, ":sleep=", 7) == 0)
        action.milliseconds = strtoul(text + 7, NULL, 10);
    else
        action.kills = true;
    if (action.kills && action.hit == 0)
        action.hit = 1;
    return action;
}

static int action_run(const struct action *action)
{
    struct timespec pause = {.tv_sec = (time_t)(action->milliseconds / 1000),
                             .tv_nsec = (long)(action->milliseconds % 1000) * 1000000};

    if (action->kills) {
        kill(getpid(), SIGKILL);
        _exit(128 + SIGKILL); /* the first process of a pid namespace survives its own signals */
    }
    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        continue;
    return -action->error;
}

int failpoint(const char *name)
{
    static atomic_ulong hits;
    const char *armed = getenv("SBX_FAIL");
    size_t length = strlen(name);
    struct action action;

    if (armed == NULL || strncmp(armed, name, length) != 0 ||
        (armed[length] != ':' && armed[length] != '\0'))
        return 0;
    action = action_parse(armed + length);
    if (action.hit != 0 && atomic_fetch_add(&hits, 1) + 1 != action.hit)
        return 0;
    return action_run(&action);
}

#endif
