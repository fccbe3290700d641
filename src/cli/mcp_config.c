/* SPDX-License-Identifier: MIT */
/*
 * Clients start servers with a bare PATH and from any directory, so the path of the program is
 * absolute. Shapes: the clients' own documentation of `mcpServers` (Claude Desktop, Cursor) and
 * `servers` (VS Code), and the arguments of `claude mcp add`.
 */
#include "cli/mcp_config.h"

#include "base/json.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/verb.h"

#include <stdio.h>
#include <unistd.h>

struct client_entry {
    const char *name;
    const char *where;    /* a line for the person, on stderr */
    const char *list_key; /* NULL: a command line */
    bool typed;           /* entries say "type": "stdio" */
};

static const struct client_entry clients[] = {
    {"claude", "into claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers",
     false},
    {"claude-code", "run this", NULL, false},
    {"cursor", "into ~/.cursor/mcp.json, or .cursor/mcp.json of a project", "mcpServers", false},
    {"vscode", "into .vscode/mcp.json", "servers", true},
};

static void json_print(const struct client_entry *client, const char *program)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_val *servers = yyjson_mut_obj_add_obj(doc, root, client->list_key);
    yyjson_mut_val *server = yyjson_mut_obj_add_obj(doc, servers, "sandbox-agent");
    auto_free char *text = NULL;

    if (client->typed)
        yyjson_mut_obj_add_str(doc, server, "type", "stdio");
    yyjson_mut_obj_add_str(doc, server, "command", program);
    yyjson_mut_arr_add_str(doc, yyjson_mut_obj_add_arr(doc, server, "args"), "mcp");
    yyjson_mut_obj_add_obj(doc, server, "env");
    yyjson_mut_doc_set_root(doc, root);
    text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
    puts(text ? text : "");
}

/* In single quotes, as a shell reads it. */
static void word_print(const char *word)
{
    putchar('\'');
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    }
    putchar('\'');
}

int mcp_config_print(const char *client)
{
    char program[PATH_LEN];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (len < 0)
        return EXIT_HOST;
    program[len] = 0;
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        if (!str_eq(clients[i].name, client))
            continue;
        fprintf(stderr, "%s:\n", clients[i].where);
        if (clients[i].list_key) {
            json_print(&clients[i], program);
        } else {
            fputs("claude mcp add sandbox-agent --transport stdio -- ", stdout);
            word_print(program);
            puts(" mcp");
        }
        return 0;
    }
    fputs("sandbox-agent mcp: --print-config: one of", stderr);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        fprintf(stderr, " %s", clients[i].name);
    fputc('\n', stderr);
    return EXIT_USAGE;
}
