/* SPDX-License-Identifier: MIT */
/* The verb table, nothing else. */
#include "cli/verb.h"

int main(int argc, char **argv)
{
    static const struct verb_entry *const verbs[] = {
        &verb_cli,   &verb_ui,     &verb_run, &verb_api,  &verb_mcp,
        &verb_image, &verb_doctor, &verb_ps,  &verb_stop, NULL,
    };

    return verb_main(verbs, argc, argv);
}
