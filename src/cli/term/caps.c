/* SPDX-License-Identifier: MIT */
/*
 * Terminals as their environment names them. It is believed only as far as the terminal itself
 * would be: tmux hands on the variables of the terminal that it was started in.
 */
#include "cli/term/term.h"

#include "base/str.h"

enum { CELL_WIDTH = 10, CELL_HEIGHT = 20 };

enum match { IS, STARTS, HAS, IS_SET };

static bool matches(const char *value, enum match match, const char *text)
{
    if (!value || !*value)
        return false;
    switch (match) {
    case IS:
        return str_eq(value, text);
    case STARTS:
        return str_starts(value, text);
    case HAS:
        return strstr(value, text) != NULL;
    case IS_SET:
        return true;
    }
    return false;
}

static const struct color_row {
    const char *variable;
    enum match match;
    const char *text;
    enum term_color color;
} color_rows[] = {
    {"NO_COLOR", IS_SET, "", TERM_COLOR_NONE},   {"COLORTERM", IS, "truecolor", TERM_COLOR_TRUE},
    {"COLORTERM", IS, "24bit", TERM_COLOR_TRUE}, {"TERM", HAS, "direct", TERM_COLOR_TRUE},
    {"TERM", HAS, "kitty", TERM_COLOR_TRUE},     {"TERM", HAS, "ghostty", TERM_COLOR_TRUE},
    {"TERM", HAS, "256color", TERM_COLOR_256},   {"TERM", IS_SET, "", TERM_COLOR_16},
};

static const struct picture_row {
    const char *variable;
    enum match match;
    const char *text;
    enum term_picture picture;
} picture_rows[] = {
    {"KITTY_WINDOW_ID", IS_SET, "", TERM_PICTURE_KITTY},
    {"TERM", HAS, "kitty", TERM_PICTURE_KITTY},
    {"TERM", HAS, "ghostty", TERM_PICTURE_KITTY},
    {"TERM_PROGRAM", IS, "ghostty", TERM_PICTURE_KITTY},
    {"TERM_PROGRAM", IS, "iTerm.app", TERM_PICTURE_ITERM2},
    {"TERM_PROGRAM", IS, "WezTerm", TERM_PICTURE_ITERM2},
    {"LC_TERMINAL", IS, "iTerm2", TERM_PICTURE_ITERM2},
    {"TERM", STARTS, "foot", TERM_PICTURE_SIXEL},
    {"TERM", HAS, "sixel", TERM_PICTURE_SIXEL},
    {"TERM", STARTS, "mlterm", TERM_PICTURE_SIXEL},
};

void term_caps_guess(struct term_caps *caps, term_environment_fn *get)
{
    const char *term = get("TERM");

    caps->color = TERM_COLOR_NONE;
    caps->picture = TERM_PICTURE_NONE;
    caps->cell_width = CELL_WIDTH;
    caps->cell_height = CELL_HEIGHT;
    if (!term || !*term || str_eq(term, "dumb"))
        caps->is_tty = false;
    if (!caps->is_tty)
        return;
    caps->is_nested = matches(get("TMUX"), IS_SET, "") || matches(get("STY"), IS_SET, "") ||
                      matches(term, STARTS, "tmux") || matches(term, STARTS, "screen");
    caps->is_silent = matches(get("TERM_PROGRAM"), IS, "Apple_Terminal") || str_eq(term, "linux");
    for (size_t i = 0; i < ARRAY_LEN(color_rows); i++) {
        if (matches(get(color_rows[i].variable), color_rows[i].match, color_rows[i].text)) {
            caps->color = color_rows[i].color;
            break;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(picture_rows) && !caps->is_nested; i++) {
        if (matches(get(picture_rows[i].variable), picture_rows[i].match, picture_rows[i].text)) {
            caps->picture = picture_rows[i].picture;
            break;
        }
    }
}
