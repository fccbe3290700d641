/* SPDX-License-Identifier: MIT */
/* The words of a command that a person types: separated by spaces, quoted as in a shell, without
 * anything else of a shell. */
#pragma once

#include "base/error.h"

enum { CHAT_WORDS_MAX = 64 };

struct chat_words {
    char *text; /* owns the words */
    char *words[CHAT_WORDS_MAX];
    size_t count;
};

/* ERR_INVALID for a quote that does not end, and for too many words. */
int chat_words_split(const char *text, struct chat_words *ret, struct error *reterr) must_check;
void chat_words_done(struct chat_words *w);
#define auto_chat_words auto_cleanup(chat_words_done)

/*
 * Where the last word of an unfinished line begins, for completion; its text without quotes and
 * backslashes in `ret`. -1 when it does not fit.
 */
int chat_words_last(const char *line, size_t *ret_from, char *ret, size_t size) must_check;

/* A word as it has to be typed: spaces, quotes and backslashes get a backslash. */
int chat_word_quote(const char *word, char *ret, size_t size) must_check;
