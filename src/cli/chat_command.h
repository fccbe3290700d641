/* SPDX-License-Identifier: MIT */
/* What a person types with a slash in front. One table serves the calls, the help and completion.
 */
#pragma once

#include "cli/chat.h"

/* Collects what fits the word that is being typed. */
struct chat_choices {
    struct line_choices *to;
    size_t from;      /* where the word begins */
    const char *word; /* as it is meant, without quotes */
};
/* Gives `text` as a choice if it begins with the word. */
void chat_choice(struct chat_choices *choices, const char *text);
/* The same for paths of this host. */
void chat_choose_path(struct chat_choices *choices);

struct chat_command {
    const char *name;  /* "/model" */
    const char *words; /* usage of its words; "" */
    const char *help;
    /* `words` without the command's own. */
    void (*run)(struct chat *c, char **words, size_t count);
    /* Choices for the word at hand, `at` words behind the command; NULL. */
    void (*complete)(struct chat *c, size_t at, const char *word, struct chat_choices *choices);
};

extern const struct chat_command chat_commands[]; /* ended by a NULL name */

/* Whether a line is meant as a command: it has the form of one, or is exit, quit or q. */
bool chat_is_command(const char *line);

/* Does it. False when the line had better not be in the history. */
bool chat_command_run(struct chat *c, const char *line);

/* For the line editor. */
void chat_complete(void *user, const char *before, struct line_choices *choices);

/* ---- the commands of other files ---- */

void chat_model_command(struct chat *c, char **words, size_t count);
void chat_model_complete(struct chat *c, size_t at, const char *word, struct chat_choices *choices);
/* "gpt-4o (openai)" as the next run will have it; whether it can be asked, as far as one can say.
 */
int chat_model_describe(struct chat *c, struct buf *ret, bool *ret_usable);

void chat_threads_command(struct chat *c, char **words, size_t count);
void chat_sessions_command(struct chat *c, char **words, size_t count);
void chat_sessions_complete(struct chat *c, size_t at, const char *word,
                            struct chat_choices *choices);
void chat_files_command(struct chat *c, char **words, size_t count);
void chat_upload_command(struct chat *c, char **words, size_t count);
void chat_download_command(struct chat *c, char **words, size_t count);
void chat_download_complete(struct chat *c, size_t at, const char *word,
                            struct chat_choices *choices);
void chat_upload_complete(struct chat *c, size_t at, const char *word,
                          struct chat_choices *choices);
