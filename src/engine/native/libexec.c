/* SPDX-License-Identifier: MIT */
/* Finding our own helpers. Paths are made real here, because the launcher refuses links in a mount
 * source. */
#include "engine/native/libexec.h"

#include "base/path.h"
#include "base/spawn.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static int dir_from_self(char *ret, size_t size)
{
    char self[PATH_LEN], probe[PATH_LEN + 64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    if (len <= 0)
        return -1;
    self[len] = 0;
    slash = strrchr(self, '/');
    if (!slash)
        return -1;
    *slash = 0;
    snprintf(probe, sizeof(probe), "%s/libexec/sandbox-launch", self);
    if (access(probe, X_OK) < 0)
        return -1;
    return path_join(ret, size, self, "libexec", NULL);
}

int libexec_find(const char *name, char *ret, size_t size, struct error *reterr)
{
    const char *env = secure_getenv("SANDBOX_AGENT_LIBEXEC");
    char dir[PATH_LEN], path[PATH_LEN], real[PATH_MAX];
    int r = 0;

    if (env && env[0] == '/')
        r = str_copy(dir, sizeof(dir), env);
    else if (dir_from_self(dir, sizeof(dir)) < 0)
        r = str_copy(dir, sizeof(dir), LIBEXEC_DIR);
    if (r < 0)
        return error_set(reterr, ERR_INVALID, "SANDBOX_AGENT_LIBEXEC is too long");
    if ((r = path_join(path, sizeof(path), dir, name, reterr)) < 0)
        return r;
    if (!realpath(path, real))
        return error_set(reterr, ERR_UNAVAILABLE,
                         "'%s' is missing (%s); install sandbox-agent whole, or point "
                         "SANDBOX_AGENT_LIBEXEC at its helpers",
                         path, strerrordesc_np(errno));
    if (str_copy(ret, size, real) < 0)
        return error_set(reterr, ERR_INVALID, "path '%s' is too long", real);
    return 0;
}

int libexec_start(char *const *argv, char *const *env, int in, int out, pid_t *ret,
                  struct error *reterr)
{
    char path[PATH_MAX];
    const struct spawn_fd fds[] = {{in, STDIN_FILENO}, {out, STDOUT_FILENO}};
    struct spawn_options options = {.size = sizeof(options),
                                    .path = path,
                                    .argv = argv,
                                    .env = env,
                                    .fds = fds,
                                    .fd_count = ARRAY_LEN(fds),
                                    .new_session = 1};
    int r = libexec_find(argv[0], path, sizeof(path), reterr);

    return r < 0 ? r : spawn_start(&options, ret, reterr);
}
