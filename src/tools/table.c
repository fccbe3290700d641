/* SPDX-License-Identifier: MIT */
/* The table of tools, in the order in which clients list them. */
#include "base/str.h"
#include "tools/tool-internal.h"

const struct tool_entry *const tool_table[] = {
    &tool_create_session, &tool_execute_code,      &tool_execute_terminal,
    &tool_import_files,   &tool_export_files,      &tool_stop_session,
    &tool_list_sessions,  &tool_interrupt_session, NULL,
};

const struct tool_entry *tool_find(const char *name)
{
    for (size_t i = 0; tool_table[i]; i++) {
        if (str_eq(tool_table[i]->name, name))
            return tool_table[i];
    }
    return NULL;
}
