/* SPDX-License-Identifier: MIT */
/* Reading arguments that a schema has checked. */
#include "base/str.h"
#include "tools/tool-internal.h"

int argument_text(yyjson_val *arguments, const char *name, const char **ret, struct error *reterr)
{
    yyjson_val *v = yyjson_obj_get(arguments, name);

    *ret = yyjson_get_str(v);
    /* Cut there, it would name something else. */
    if (*ret && strlen(*ret) != yyjson_get_len(v))
        return error_set(reterr, ERR_INVALID, "%s holds a NUL character", name);
    return 0;
}

int64_t argument_int(yyjson_val *arguments, const char *name, int64_t fallback)
{
    yyjson_val *v = yyjson_obj_get(arguments, name);

    return yyjson_is_int(v) ? yyjson_get_sint(v) : fallback;
}
