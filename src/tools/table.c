/* SPDX-License-Identifier: MIT */
/* The table of tools, in the order in which clients list them. */
#include "tools/tool.h"

#include "base/str.h"

const struct tool_entry *const tool_table[] = {
    NULL,
};

const struct tool_entry *tool_find(const char *name)
{
    for (size_t i = 0; tool_table[i]; i++) {
        if (str_eq(tool_table[i]->name, name))
            return tool_table[i];
    }
    return NULL;
}
