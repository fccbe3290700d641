/* SPDX-License-Identifier: MIT */
/*
 * Settings: one table gives names, types, defaults and help to the loader, to `.env.example`, to
 * the docs page and to the tests. Read from the environment, then from an env file.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum setting_type {
    SETTING_STRING,
    SETTING_INT,
    SETTING_BOOL,
    SETTING_SIZE, /* bytes; "200m" */
};

struct settings {
    struct arena arena; /* owns every string below */

    const char *engine;
    const char *state_dir;
    const char *image_dir;
    const char *storage_dir;
    const char *import_allowed_dirs; /* a comma list */
    bool allow_degraded;
    const char *log_level;
    const char *log_format;

    uint64_t memory_limit;
    int64_t cpu_quota;
    int64_t pids_limit;
    uint64_t tmpfs_size;
    uint64_t packages_size; /* 0: half the memory limit */
    uint64_t disk;          /* 0: off */
    int64_t execution_timeout_s;
    int64_t max_sessions;
    int64_t max_sessions_per_thread;
    bool execute_as_root;
    bool network_enabled;
    int64_t orphan_min_age_s;

    int64_t idle_ttl_s;
    int64_t max_lifetime_s;
    int64_t gc_interval_s;
    int64_t max_active_threads;

    int64_t max_stdout_chars;
    int64_t max_stderr_chars;
    int64_t max_result_chars;
    int64_t max_traceback_chars;

    const char *network_ports;
    const char *network_allow;
    const char *network_allowlist;
    const char *proxy;
    const char *no_proxy;
    const char *extra_ca;
    const char *pip_index;
    const char *npm_registry;
    const char *cran;
    int64_t lease_s;

    const char *listen; /* of `api` */
    const char *api_key;
    const char *api_keys_file;
    const char *cors_origins; /* comma lists */
    const char *allowed_hosts;
    const char *api_base_url;
    const char *encryption_key;
    const char *chat_model;
    const char *chat_model_provider;
    const char *chat_model_api_key;
    const char *chat_model_base_url;
    const char *chat_model_supports_vision; /* a bool, or "" for: find out */
    const char *private_model_hosts;        /* a comma list */
    const char *approve_tools;
    int64_t max_iterations;
    int64_t history_tokens; /* 0: by the model */
    int64_t max_model_calls;
    int64_t max_parallel_runs;
    int64_t run_timeout_s;
    int64_t event_retention_s;
    int64_t requests_per_second;
    uint64_t upload_max;
    bool crons;
    const char *postgres_host;
    const char *postgres_port;
    const char *postgres_user;
    const char *postgres_password;
    const char *postgres_db;
};

struct setting_entry {
    const char *name;
    enum setting_type type;
    size_t offset;
    const char *fallback; /* as it would be written in a file; "" for none */
    const char *alias;    /* read when `name` is not set anywhere; NULL */
    int64_t min, max;     /* of SETTING_INT */
    const char *help;
};

const struct setting_entry *setting_table(size_t *ret_count);

/* Told about a name that looks like one of ours but is not: "unknown setting 'SANDBOX_FOO',
 * ignoring". */
typedef void settings_warn_fn(void *user, const char *text);

/*
 * Fills `ret` (settings_done). `env_file` may be NULL; a missing file is fine unless `required`. A
 * bad value fails with the setting's name.
 */
struct settings_source {
    char *const *env; /* as environ */
    const char *env_file;
    bool required;
    settings_warn_fn *warn;
    void *warn_user;
};
int settings_load(struct settings *ret, const struct settings_source *source,
                  struct error *reterr) must_check;
void settings_done(struct settings *s);

/* The state directory that holds without any setting (XDG rules); in `ret`. */
int settings_default_state_dir(char *const *env, char *ret, size_t size, struct error *reterr);

/* Print the table as `.env.example`, and as the docs page. */
void settings_print_example(FILE *f);
void settings_print_markdown(FILE *f);

#define auto_settings __attribute__((cleanup(settings_done)))
