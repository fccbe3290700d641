/* SPDX-License-Identifier: MIT */
/* Not by execvp(): the working directory is nobody's to put a program into. See program.h. */
#include "cli/program.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_there(const char *path)
{
    return access(path, X_OK) == 0;
}

int program_find(const char *name, char ret[PATH_LEN], struct error *reterr)
{
    const char *at = getenv("PATH");
    char dir[PATH_LEN];

    if (strchr(name, '/') && str_copy(ret, PATH_LEN, name) == 0 && is_there(ret))
        return 0;
    while (at && *at && !strchr(name, '/')) {
        size_t len = strcspn(at, ":");

        if (at[0] == '/' && len < sizeof(dir)) {
            memcpy(dir, at, len);
            dir[len] = 0;
            if (path_join(ret, PATH_LEN, dir, name, NULL) == 0 && is_there(ret))
                return 0;
        }
        at += len + (at[len] == ':');
    }
    return error_set(reterr, ERR_NOT_FOUND, "there is no program '%.100s'", name);
}
