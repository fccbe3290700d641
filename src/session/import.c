/* SPDX-License-Identifier: MIT */
/* Files into sessions. */
#include "session/transfer.h"

int session_import(struct session_manager *m, const struct session_path *to,
                   const struct import_source *from, const struct import_roots *roots,
                   struct import_result *ret, struct error *reterr)
{
    return error_set(reterr, ERR_UNAVAILABLE, "files cannot be imported yet");
}
