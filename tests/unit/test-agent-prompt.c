/* SPDX-License-Identifier: MIT */
/* The system prompt keeps to its size, and knows every tool. */
#include "agent/view.h"
#include "tests/lib/test.h"
#include "tools/tool.h"

#include <ctype.h>

enum { BYTES_MAX = 5500, TOKENS_MAX = 1500 };

TEST(prompt_is_short)
{
    assert_true(strlen(agent_prompt()) <= BYTES_MAX);
}

/* Tokenizers make a piece of a word, a number or a mark: at 4 bytes a piece this is an upper
 * estimate for English text. */
TEST(prompt_has_few_tokens)
{
    size_t tokens = 0;

    for (const char *s = agent_prompt(); *s;) {
        size_t word = 0;

        while (isalnum((unsigned char)s[word]))
            word++;
        tokens += word ? (word + 7) / 8 : !isspace((unsigned char)*s);
        s += word ? word : 1;
    }
    test_note("about %zu tokens", tokens);
    assert_true(tokens <= TOKENS_MAX);
}

TEST(prompt_is_plain_text)
{
    for (const char *s = agent_prompt(); *s; s++)
        assert_true(*s == '\n' || (*s >= ' ' && *s < 0x7f));
}

TEST(prompt_names_every_tool)
{
    for (size_t i = 0; tool_table[i]; i++)
        assert_str_has(agent_prompt(), tool_table[i]->name);
}

/* What a model has to know of outcomes is called by the names of payloads. */
TEST(prompt_names_what_results_hold)
{
    static const char *const words[] = {"success", "error",     "hint",    "status",
                                        "cause",   "state",     "timeout", "interrupted",
                                        "died",    "truncated", "kept",    "lost"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        assert_str_has(agent_prompt(), words[i]);
}
