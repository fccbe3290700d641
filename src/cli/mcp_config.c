/* SPDX-License-Identifier: MIT */
/*
 * Clients start servers with a bare PATH and from any directory, so paths are absolute. Shapes: the
 * clients' own documentation of `mcpServers` (Claude Desktop, Cursor) and `servers` (VS Code), and
 * the arguments of `claude mcp add`.
 */
#include "cli/mcp_config.h"

#include "base/json.h"
#include "base/path.h"
#include "base/str.h"

#include <stdio.h>
#include <unistd.h>

enum { WORDS_MAX = 32 };

struct client_entry {
    const char *name;
    const char *where;    /* a line for the person, on stderr */
    const char *list_key; /* NULL: a command line */
    bool typed;           /* entries say "type": "stdio" or "http" */
    bool takes_url;
};

static const struct client_entry clients[] = {
    {"claude", "into claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers",
     false, false},
    {"claude-code", "run this", NULL, false, true},
    {"cursor", "into ~/.cursor/mcp.json, or .cursor/mcp.json of a project", "mcpServers", false,
     true},
    {"vscode", "into .vscode/mcp.json", "servers", true, true},
};

/* How the server is started or found. */
struct start {
    char program[PATH_LEN];
    char *words[WORDS_MAX]; /* after the program; freed */
    size_t count;
    char url[PATH_LEN]; /* with --http; else "" */
};

static void start_done(struct start *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->words[i]);
}

static int word_add(struct start *s, char *word)
{
    if (!word || s->count == WORDS_MAX) {
        free(word);
        return -1;
    }
    s->words[s->count++] = word;
    return 0;
}

static int option_add(struct start *s, const struct option_given *given)
{
    bool is_file = str_eq(given->entry->name, "env-file");
    char *word = NULL;

    if (str_eq(given->entry->name, "print-config") || str_eq(given->entry->name, "http"))
        return 0;
    if (asprintf(&word, "--%s", given->entry->name) < 0 || word_add(s, word) < 0)
        return -1;
    if (!given->value)
        return 0;
    return word_add(s, is_file ? realpath(given->value, NULL) : strdup(given->value));
}

static int start_fill(struct start *s, const struct verb_args *args)
{
    const char *listen = verb_option(args, "http", NULL);
    ssize_t len = readlink("/proc/self/exe", s->program, sizeof(s->program) - 1);
    int r = len < 0 ? -1 : word_add(s, strdup("mcp"));

    for (size_t i = 0; i < args->given_count && r == 0; i++)
        r = option_add(s, &args->given[i]);
    if (listen)
        snprintf(s->url, sizeof(s->url), "http://%s/mcp", listen);
    return r;
}

/* ---- printing ---- */

static void server_fill(yyjson_mut_doc *doc, yyjson_mut_val *server, const struct start *s)
{
    yyjson_mut_val *words;

    if (s->url[0]) {
        yyjson_mut_obj_add_str(doc, server, "url", s->url);
        return;
    }
    yyjson_mut_obj_add_str(doc, server, "command", s->program);
    words = yyjson_mut_obj_add_arr(doc, server, "args");
    for (size_t i = 0; i < s->count; i++)
        yyjson_mut_arr_add_str(doc, words, s->words[i]);
    yyjson_mut_obj_add_obj(doc, server, "env");
}

static void json_print(const struct client_entry *client, const struct start *s)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_val *servers = yyjson_mut_obj_add_obj(doc, root, client->list_key);
    yyjson_mut_val *server = yyjson_mut_obj_add_obj(doc, servers, "sandbox-agent");
    auto_free char *text = NULL;

    if (client->typed)
        yyjson_mut_obj_add_str(doc, server, "type", s->url[0] ? "http" : "stdio");
    server_fill(doc, server, s);
    yyjson_mut_doc_set_root(doc, root);
    text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL);
    puts(text ? text : "");
}

/* In single quotes, as a shell reads it. */
static void word_print(const char *word)
{
    fputs(" '", stdout);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    }
    putchar('\'');
}

static void command_print(const struct start *s)
{
    fputs("claude mcp add sandbox-agent --transport ", stdout);
    if (s->url[0]) {
        fputs("http", stdout);
        word_print(s->url);
    } else {
        fputs("stdio --", stdout);
        word_print(s->program);
        for (size_t i = 0; i < s->count; i++)
            word_print(s->words[i]);
    }
    putchar('\n');
}

static int client_print(const struct client_entry *client, const struct start *s)
{
    if (s->url[0] && !client->takes_url) {
        fprintf(stderr, "sandbox-agent mcp: %s's file takes no URL; leave out --http\n",
                client->name);
        return EXIT_USAGE;
    }
    fprintf(stderr, "%s:\n", client->where);
    if (client->list_key)
        json_print(client, s);
    else
        command_print(s);
    return 0;
}

int mcp_config_print(const char *client, const struct verb_args *args)
{
    struct start start = {};
    int status = EXIT_USAGE;

    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        if (!str_eq(clients[i].name, client))
            continue;
        if (start_fill(&start, args) == 0)
            status = client_print(&clients[i], &start);
        else
            fputs("sandbox-agent mcp: an option names a file that is not there\n", stderr);
        start_done(&start);
        return status;
    }
    fputs("sandbox-agent mcp: --print-config: one of", stderr);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        fprintf(stderr, " %s", clients[i].name);
    fputc('\n', stderr);
    return status;
}
