/* SPDX-License-Identifier: MIT */
/*
 * The settings table and its loader. An env file is read line by line: NAME=value, quotes optional,
 * `#` starts a comment, `export` allowed; nothing is expanded, so a value is what the file says.
 */
#include "base/settings.h"

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"

#include <ctype.h>
#include <fcntl.h>

enum { SETTINGS_ARENA = 256 * 1024, ENV_FILE_MAX = 64 * 1024, ENV_FILE_LINES = 512 };

#define STRING(name, field, fallback, alias, help) \
    {name, SETTING_STRING, offsetof(struct settings, field), fallback, alias, 0, 0, help}
#define INT(name, field, fallback, min, max, help) \
    {name, SETTING_INT, offsetof(struct settings, field), fallback, NULL, min, max, help}
#define BOOL(name, field, fallback, help) \
    {name, SETTING_BOOL, offsetof(struct settings, field), fallback, NULL, 0, 0, help}
#define SIZE(name, field, fallback, help) \
    {name, SETTING_SIZE, offsetof(struct settings, field), fallback, NULL, 0, 0, help}

static const struct setting_entry settings_table[] = {
    STRING("SANDBOX_ENGINE", engine, "auto", NULL, "auto or native"),
    STRING("SANDBOX_STATE_DIR", state_dir, "", NULL,
           "run directories, images; empty: $XDG_STATE_HOME/sandbox-agent, root: "
           "/var/lib/sandbox-agent"),
    STRING("SANDBOX_IMAGE_DIR", image_dir, "", NULL,
           "images; empty: images/ in the state directory"),
    STRING("STORAGE_DIR", storage_dir, "", NULL,
           "uploaded files, a folder for each owner; empty: storage/ in the state directory, which "
           "relative paths start from"),
    STRING("IMPORT_ALLOWED_DIRS", import_allowed_dirs, "", NULL,
           "folders of the host that agents may import from, besides their own one in STORAGE_DIR: "
           "absolute, comma-separated"),
    BOOL("SANDBOX_ALLOW_DEGRADED", allow_degraded, "false",
         "start sandboxes although this host lacks a required kernel feature"),
    STRING("SANDBOX_LOG", log_level, "info", NULL, "error, warn, info or debug"),
    STRING("SANDBOX_LOG_FORMAT", log_format, "text", NULL, "text or json"),
    SIZE("CONTAINER_MEMORY_LIMIT", memory_limit, "2048m", "memory of a session, without swap"),
    INT("CONTAINER_CPU_QUOTA", cpu_quota, "200000", 0, 100000000,
        "microseconds of CPU time per 100,000 (200000: two cores; 0: no limit)"),
    INT("CONTAINER_PIDS_LIMIT", pids_limit, "512", 8, 1000000,
        "processes and threads of a session"),
    SIZE("CONTAINER_TMPFS_SIZE", tmpfs_size, "200m", "size of /tmp and of /workspace, each"),
    SIZE("SANDBOX_PACKAGES_SIZE", packages_size, "0",
         "size of /home/sandbox, where packages go; 0: half the memory limit"),
    SIZE("SANDBOX_DISK", disk, "0",
         "home and workspace on a disk image of this size instead of memory; 0: off"),
    INT("CONTAINER_EXECUTION_TIMEOUT_SECONDS", execution_timeout_s, "30", 1, 86400,
        "time-out of a cell or command that names none"),
    INT("CONTAINER_MAX_SESSIONS", max_sessions, "5", 1, 100000, "sessions at once"),
    INT("CONTAINER_MAX_SESSIONS_PER_THREAD", max_sessions_per_thread, "3", 1, 100000,
        "sessions at once of one owner"),
    BOOL("CONTAINER_EXECUTE_AS_ROOT", execute_as_root, "false",
         "terminal and installers as uid 0 of the sandbox's own user namespace"),
    BOOL("CONTAINER_NETWORK_ENABLED", network_enabled, "true",
         "false: no session has a network, installs included"),
    INT("CONTAINER_ORPHAN_MIN_AGE_SECONDS", orphan_min_age_s, "300", 0, 86400,
        "without effect: what a dead process left is known by its lock, not by its age"),
    INT("SESSION_IDLE_TTL_SECONDS", idle_ttl_s, "1800", 1, 31536000,
        "a session ends after so long without a call"),
    INT("SESSION_MAX_LIFETIME_SECONDS", max_lifetime_s, "7200", 1, 31536000,
        "a session ends so long after its creation, after the running call"),
    INT("SESSION_GC_INTERVAL_SECONDS", gc_interval_s, "60", 1, 86400,
        "how often idle and old sessions are looked for"),
    INT("SESSION_MAX_ACTIVE_THREADS", max_active_threads, "10", 1, 100000,
        "owners past this number are evicted, least recently used first"),
    INT("SANDBOX_LEASE_SECONDS", lease_s, "60", 1, 31536000,
        "a sandbox ends so long after the process that owns it is gone"),
    INT("MAX_STDOUT_CHARS", max_stdout_chars, "50000", 100, 100000000,
        "kept of stdout in a result"),
    INT("MAX_STDERR_CHARS", max_stderr_chars, "120000", 100, 100000000, "kept of stderr"),
    INT("MAX_RESULT_CHARS", max_result_chars, "30000", 100, 100000000,
        "kept of each text of a result"),
    INT("MAX_TRACEBACK_CHARS", max_traceback_chars, "8000", 100, 100000000, "kept of a traceback"),
    STRING("NETWORK_PORTS", network_ports, "80,443", NULL, "TCP ports that sandboxes may reach"),
    STRING(
        "NETWORK_ALLOW", network_allow, "", NULL,
        "exceptions from the refusal of private addresses: name-or-address:port, comma-separated"),
    STRING("NETWORK_ALLOWLIST", network_allowlist, "", NULL,
           "names that mode allowlist may reach: name[:port] or *.suffix[:port]"),
    STRING("SANDBOX_PROXY", proxy, "", "HTTPS_PROXY", "proxy through which this host reaches out"),
    STRING("SANDBOX_NO_PROXY", no_proxy, "", "NO_PROXY", "names that are reached without it"),
    STRING("EXTRA_CA", extra_ca, "", "SSL_CERT_FILE",
           "file of CA certificates for every tool in every sandbox"),
    STRING("SANDBOX_PIP_INDEX", pip_index, "", "PIP_INDEX_URL", "index for pip"),
    STRING("SANDBOX_NPM_REGISTRY", npm_registry, "", "NPM_CONFIG_REGISTRY", "registry for npm"),
    STRING("SANDBOX_CRAN", cran, "", NULL, "repository for R's install.packages"),
    STRING("SANDBOX_LISTEN", listen, "127.0.0.1:8000", NULL,
           "where `api` listens; another address than loopback needs a key"),
    STRING("API_KEY", api_key, "", NULL, "the one key of `api`; its owner is called 'default'"),
    STRING("API_KEYS_FILE", api_keys_file, "", NULL,
           "file with a `name:key` per line: several owners"),
    STRING("CORS_ORIGINS", cors_origins, "", NULL,
           "further origins whose pages may call `api`, comma-separated: https://app.example.com"),
    STRING("ALLOWED_HOSTS", allowed_hosts, "", NULL,
           "further names that `api` answers to, comma-separated: as a proxy in front calls it"),
    STRING("API_BASE_URL", api_base_url, "http://127.0.0.1:8000", NULL,
           "how clients reach `api`: for download links"),
    STRING("ENCRYPTION_KEY", encryption_key, "", NULL,
           "seals stored secrets: urlsafe base64 of 32 bytes; several, comma-separated, newest "
           "first; without it a key file is made in the state directory"),
    STRING("CHAT_MODEL", chat_model, "gpt-4o", NULL, "the model that the agent thinks with"),
    STRING("CHAT_MODEL_PROVIDER", chat_model_provider, "openai", NULL,
           "openai (and whatever is compatible), anthropic, google_genai, ollama or direct"),
    STRING("CHAT_MODEL_API_KEY", chat_model_api_key, "", NULL, "the provider's key"),
    STRING("CHAT_MODEL_BASE_URL", chat_model_base_url, "", NULL,
           "another service than the provider's own: https://host/v1"),
    STRING("CHAT_MODEL_SUPPORTS_VISION", chat_model_supports_vision, "", NULL,
           "whether the model takes images; empty: find out"),
    STRING("PRIVATE_MODEL_HOSTS", private_model_hosts, "localhost,127.0.0.1", NULL,
           "hosts of private addresses that clients may name as a model's base URL; * for all"),
    STRING("APPROVE_TOOLS", approve_tools, "", NULL,
           "tools whose calls a person approves first, comma-separated; * for all"),
    INT("MAX_ITERATIONS", max_iterations, "25", 1, 100000, "steps of the agent in one run"),
    INT("MAX_HISTORY_TOKENS", history_tokens, "0", 0, 100000000,
        "of a conversation that a model is shown; 0: as known for the model"),
    INT("MAX_MODEL_CALLS_PER_DAY", max_model_calls, "10000", 0, 1000000000,
        "of one conversation in 24 hours; 0: no limit"),
    INT("MAX_PARALLEL_RUNS", max_parallel_runs, "128", 1, 10000, "runs at once in one `api`"),
    INT("RUN_TIMEOUT_SECONDS", run_timeout_s, "3600", 1, 31536000, "of one run of the agent"),
    INT("EVENT_RETENTION_SECONDS", event_retention_s, "600", 0, 86400,
        "how long after its end a run's events can be read again"),
    INT("REQUESTS_PER_SECOND", requests_per_second, "200", 0, 1000000,
        "of one key or address that may change something; 0: no limit"),
    SIZE("UPLOAD_MAX_SIZE", upload_max, "1g", "of one upload, all files together"),
    BOOL("CRONS", crons, "false", "serve the routes of crons and start what they plan"),
    STRING("POSTGRES_HOST", postgres_host, "", NULL,
           "keep everything in PostgreSQL in place of SQLite"),
    STRING("POSTGRES_PORT", postgres_port, "", NULL, "all of these are needed with the host"),
    STRING("POSTGRES_USER", postgres_user, "", NULL, "the user"),
    STRING("POSTGRES_PASSWORD", postgres_password, "", NULL, "its password"),
    STRING("POSTGRES_DB", postgres_db, "", NULL, "the database"),
};

/* Names that belong to us; another name with such a start is probably a slip. */
static const char *const own_prefixes[] = {"CONTAINER_", "SESSION_", "SANDBOX_", "NETWORK_",
                                           "OSB_"};

/* Names with these starts that are read elsewhere, come with a later part of the program, or belong
 * to container managers and desktops. */
static const char *const foreign_names[] = {
    "SANDBOX_AGENT",        "SANDBOX_AGENT_LIBEXEC", "SANDBOX_POOL",    "SANDBOX_ZYGOTES",
    "CONTAINER_RUNTIME",    "CONTAINER_NAME",        "CONTAINER_ID",    "CONTAINER_HOST",
    "CONTAINER_CONNECTION", "CONTAINER_SSHKEY",      "SESSION_MANAGER",
};

struct env_line {
    const char *name;
    const char *value;
};

struct env_file {
    struct env_line lines[ENV_FILE_LINES];
    size_t count;
};

const struct setting_entry *setting_table(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(settings_table);
    return settings_table;
}

static const char *env_find(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; env && *env; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    }
    return NULL;
}

static const char *file_find(const struct env_file *file, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < file->count; i++) {
        if (str_eq(file->lines[i].name, name))
            value = file->lines[i].value;
    }
    return value;
}

/* Cuts blanks at both ends and a pair of quotes; an unquoted value also ends at " #". */
static char *value_trim(char *s)
{
    size_t len;
    char *comment;

    while (isspace((unsigned char)*s))
        s++;
    if (*s == '"' || *s == '\'') {
        char *end = strchr(s + 1, *s);

        if (end) {
            *end = 0;
            return s + 1;
        }
    }
    comment = strstr(s, " #");
    if (comment)
        *comment = 0;
    for (len = strlen(s); len && isspace((unsigned char)s[len - 1]); len--)
        s[len - 1] = 0;
    return s;
}

static int line_parse(char *line, struct env_file *file, struct error *reterr)
{
    char *equals;

    while (isspace((unsigned char)*line))
        line++;
    if (!*line || *line == '#')
        return 0;
    if (str_starts(line, "export "))
        line += strlen("export ");
    equals = strchr(line, '=');
    if (!equals)
        return error_set(reterr, ERR_INVALID, "a line is no NAME=value: '%.40s'", line);
    if (file->count == ENV_FILE_LINES)
        return error_set(reterr, ERR_LIMIT, "more than %d lines", ENV_FILE_LINES);
    *equals = 0;
    file->lines[file->count++] =
        (struct env_line){.name = value_trim(line), .value = value_trim(equals + 1)};
    return 0;
}

/* The text is owned by the arena; the lines point into it. */
static int env_file_read(const struct settings_source *source, struct arena *arena,
                         struct env_file *ret, struct error *reterr)
{
    auto_free char *text = NULL;
    char *copy, *next;
    size_t len;
    int r;

    ret->count = 0;
    if (!source->env_file || (!source->required && access(source->env_file, F_OK) < 0))
        return 0;
    r = fd_read_file(AT_FDCWD, source->env_file, ENV_FILE_MAX, &text, &len, reterr);
    if (r < 0)
        return r;
    if (memchr(text, 0, len))
        return error_set(reterr, ERR_INVALID, "'%s' holds a NUL byte", source->env_file);
    copy = arena_memdup(arena, text, len);
    if (!copy)
        return error_no_memory(reterr);
    for (; copy; copy = next) {
        next = strchr(copy, '\n');
        if (next)
            *next++ = 0;
        if (line_parse(copy, ret, reterr) < 0)
            return error_wrap(reterr, "'%s'", source->env_file);
    }
    return 0;
}

static int value_set(const struct setting_entry *e, const char *text, struct settings *s,
                     struct error *reterr)
{
    void *field = (char *)s + e->offset;
    const char *copy;
    int r = 0;

    switch (e->type) {
    case SETTING_STRING:
        copy = arena_strdup(&s->arena, text);
        if (!copy)
            return error_no_memory(reterr);
        *(const char **)field = copy;
        break;
    case SETTING_INT:
        r = str_parse_int(text, e->min, e->max, field);
        break;
    case SETTING_BOOL:
        r = str_parse_bool(text, field);
        break;
    case SETTING_SIZE:
        r = str_parse_size(text, field);
        break;
    }
    if (r < 0 && e->type == SETTING_INT)
        return error_set(reterr, ERR_INVALID, "%s: '%.60s' is no number from %lld to %lld", e->name,
                         text, (long long)e->min, (long long)e->max);
    if (r < 0)
        return error_set(reterr, ERR_INVALID, "%s: '%.60s' is no %s", e->name, text,
                         e->type == SETTING_BOOL ? "true or false" : "size such as 200m");
    return 0;
}

static const char *alias_find(const char *name, char *const *env, const struct env_file *file)
{
    char lower[64];
    const char *value = env_find(env, name);

    if (!value)
        value = file_find(file, name);
    if (value || str_copy(lower, sizeof(lower), name) < 0)
        return value;
    /* Proxy variables are commonly written in lower case. */
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return env_find(env, lower);
}

static bool name_is_known(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(settings_table); i++) {
        if (str_eq(name, settings_table[i].name))
            return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(foreign_names); i++) {
        if (str_eq(name, foreign_names[i]))
            return true;
    }
    return false;
}

static void name_warn(const struct settings_source *source, const char *name)
{
    bool ours = false;
    char text[160];

    for (size_t i = 0; i < ARRAY_LEN(own_prefixes); i++)
        ours |= str_starts(name, own_prefixes[i]);
    if (!ours || name_is_known(name) || !source->warn)
        return;
    snprintf(text, sizeof(text), "unknown setting '%.80s', ignoring", name);
    source->warn(source->warn_user, text);
}

static void names_warn(const struct settings_source *source, const struct env_file *file)
{
    char name[96];

    for (char *const *e = source->env; e && *e; e++) {
        size_t len = strcspn(*e, "=");

        if (len < sizeof(name)) {
            memcpy(name, *e, len);
            name[len] = 0;
            name_warn(source, name);
        }
    }
    for (size_t i = 0; i < file->count; i++)
        name_warn(source, file->lines[i].name);
}

int settings_default_state_dir(char *const *env, char *ret, size_t size, struct error *reterr)
{
    const char *xdg = env_find(env, "XDG_STATE_HOME"), *home = env_find(env, "HOME");
    int len;

    if (xdg && xdg[0] == '/')
        len = snprintf(ret, size, "%s/sandbox-agent", xdg);
    else if (geteuid() == 0)
        len = snprintf(ret, size, "/var/lib/sandbox-agent");
    else if (home && home[0] == '/')
        len = snprintf(ret, size, "%s/.local/state/sandbox-agent", home);
    else
        return error_set(reterr, ERR_INVALID, "HOME is not set; give SANDBOX_STATE_DIR");
    if (len < 0 || (size_t)len >= size)
        return error_set(reterr, ERR_INVALID, "the path of the state directory is too long");
    return 0;
}

/* A directory that is not set, or not from the root on, is in the state directory. */
static int directory_complete(struct settings *s, const char **dir, const char *fallback,
                              struct error *reterr)
{
    const char *name = (*dir)[0] ? *dir : fallback;
    char path[PATH_LEN];
    int r;

    if (!s->state_dir)
        return error_no_memory(reterr);
    if (name[0] == '/')
        return 0;
    name += str_starts(name, "./") ? strlen("./") : 0;
    if ((r = path_join(path, sizeof(path), s->state_dir, name, reterr)) < 0)
        return r;
    *dir = arena_strdup(&s->arena, path);
    return *dir ? 0 : error_no_memory(reterr);
}

static int directories_complete(struct settings *s, const struct settings_source *source,
                                struct error *reterr)
{
    char path[PATH_LEN];
    int r;

    if (!s->state_dir[0]) {
        r = settings_default_state_dir(source->env, path, sizeof(path), reterr);
        if (r < 0)
            return r;
        s->state_dir = arena_strdup(&s->arena, path);
    }
    if (s->state_dir && (s->state_dir[0] != '/' || (s->image_dir[0] && s->image_dir[0] != '/')))
        return error_set(reterr, ERR_INVALID,
                         "SANDBOX_STATE_DIR and SANDBOX_IMAGE_DIR are absolute");
    r = directory_complete(s, &s->image_dir, "images", reterr);
    return r < 0 ? r : directory_complete(s, &s->storage_dir, "storage", reterr);
}

int settings_load(struct settings *ret, const struct settings_source *source, struct error *reterr)
{
    auto_free struct env_file *file = malloc(sizeof(*file));
    int r;

    *ret = (struct settings){};
    arena_init(&ret->arena, SETTINGS_ARENA);
    if (!file)
        return error_no_memory(reterr);
    r = env_file_read(source, &ret->arena, file, reterr);
    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(settings_table); i++) {
        const struct setting_entry *e = &settings_table[i];
        const char *text = env_find(source->env, e->name);

        if (!text)
            text = file_find(file, e->name);
        if (!text && e->alias)
            text = alias_find(e->alias, source->env, file);
        r = value_set(e, text ? text : e->fallback, ret, reterr);
    }
    if (r >= 0)
        r = directories_complete(ret, source, reterr);
    if (r >= 0)
        names_warn(source, file);
    else
        settings_done(ret);
    return r;
}

void settings_done(struct settings *s)
{
    arena_done(&s->arena);
}

void settings_print_example(FILE *f)
{
    fputs(
        "# Settings of sandbox-agent with their defaults. Copy to .env and change what you need.\n",
        f);
    for (size_t i = 0; i < ARRAY_LEN(settings_table); i++)
        fprintf(f, "\n# %s\n# %s=%s\n", settings_table[i].help, settings_table[i].name,
                settings_table[i].fallback);
}

void settings_print_markdown(FILE *f)
{
    fputs(
        "# Settings\n\n"
        "Read from the environment, then from `--env-file FILE`, else from `.env`: of the working "
        "directory\n"
        "for `api`, `ui` and `cli`, of the state directory for every other verb. An unknown name "
        "that looks like\n"
        "one of these is warned of; a bad value stops the start with its name. Sizes take the "
        "units b, k, m, g,\n"
        "t. This page is printed by\n"
        "`sandbox-agent doctor --print-settings markdown`.\n\n"
        "| setting | default | meaning |\n|---|---|---|\n",
        f);
    for (size_t i = 0; i < ARRAY_LEN(settings_table); i++) {
        const struct setting_entry *e = &settings_table[i];

        fprintf(f, "| `%s` | %s%s%s | %s%s%s |\n", e->name, e->fallback[0] ? "`" : "",
                e->fallback[0] ? e->fallback : "none", e->fallback[0] ? "`" : "", e->help,
                e->alias ? "; else the environment's " : "", e->alias ? e->alias : "");
    }
}
