/* SPDX-License-Identifier: MIT */
/* What a session has exported. */
#include "session/transfer.h"

int session_export(struct session_manager *m, const struct session_path *at,
                   struct export_info *ret, struct error *reterr)
{
    return error_set(reterr, ERR_UNAVAILABLE, "files cannot be exported yet");
}

int session_export_list(struct session_manager *m, const char *id, const char *owner,
                        session_export_fn *each, void *user, struct error *reterr)
{
    return 0;
}
