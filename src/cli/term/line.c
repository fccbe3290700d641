/* SPDX-License-Identifier: MIT */
/*
 * libedit edits one line, and draws one that has line ends in it as several: that is a message of
 * many lines. It reads through a function of ours, which waits for two descriptors, takes late
 * answers of the terminal out of what is typed, and turns Ctrl-C into a key.
 */
#include "cli/term/line.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/term/answer.h"
#include "cli/term/clean.h"
#include "cli/term/history.h"
#include "cli/term/text.h"
#include "wire/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
    ESCAPE_MS = 50, /* between ESC and what belongs to it */
    PASTE_MS = 2000,
    SECRET_MAX = 4096,
    CHOICES_MAX = 256,
    KEY_INTERRUPT = 0x03,
    KEY_END = 0x04,
    KEY_BACKSPACE = 0x08,
    KEY_KILL = 0x15,
    KEY_DELETE = 0x7f,
    KEY_JOIN = 0x1e, /* what our reader says instead of Enter behind a backslash */
    KEY_LEAVE = 0x1f,
};

struct line_choices {
    size_t from;
    size_t count;
    char *texts[CHOICES_MAX];
};

struct line {
    struct term *term;
    struct line_options options;
    struct answer answer;
    struct buf input; /* bytes that are typed and not yet read */
    EditLine *el;     /* NULL: plain lines */
    HistoryW *history;
    FILE *in, *out;
    struct winsize size;
    char prompt[128];
    enum line_event event; /* what a key has decided */
    bool is_ended;
};

/* ---- bytes ---- */

/* Waits for input: 1 readable, 0 time-out, -1 stopped or broken. */
static int input_wait(struct line *l, int ms)
{
    struct pollfd fds[] = {{term_in(l->term), POLLIN, 0}, {l->options.stop_fd, POLLIN, 0}};
    int n;

    do {
        n = poll(fds, l->options.stop_fd >= 0 ? 2 : 1, ms);
    } while (n < 0 && errno == EINTR);
    if (n > 0 && fds[1].revents) {
        l->event = LINE_STOPPED;
        return -1;
    }
    return n;
}

/* Fills `input` with at least one byte. 1, or 0 at a time-out, -1 at the end. */
static int input_fill(struct line *l, int ms)
{
    char piece[4096];
    ssize_t n = 0;
    int ready = 1;

    n = (ssize_t)term_typed_take(l->term, piece, sizeof(piece));
    while (n == 0 && l->input.len == 0) {
        ready = input_wait(l, l->answer.len ? ESCAPE_MS : ms);
        if (ready < 0 || (ready == 0 && l->answer.len == 0))
            return ready;
        if (ready == 0)
            return answer_finish(&l->answer, &l->input) < 0 ? -1 : 1;
        n = read(term_in(l->term), piece, sizeof(piece));
        if (n <= 0 && errno != EINTR)
            return -1;
        n = MAX(n, 0);
        if (answer_feed(&l->answer, piece, (size_t)n, &l->input) < 0)
            return -1;
        n = 0;
    }
    if (n && answer_feed(&l->answer, piece, (size_t)n, &l->input) < 0)
        return -1;
    return 1;
}

/* The next byte, or -1. */
static int byte_next(struct line *l, int ms)
{
    unsigned char c;

    while (l->input.len == 0) {
        if (input_fill(l, ms) <= 0)
            return -1;
    }
    c = (unsigned char)l->input.data[0];
    buf_consume(&l->input, 1);
    return c;
}

static size_t bytes_of(int lead)
{
    if (lead < 0xc0)
        return 1;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The next character; WEOF at the end. What is ill-formed becomes U+FFFD. */
static wint_t character_next(struct line *l)
{
    int lead = byte_next(l, -1);
    char text[5] = "";
    size_t len;

    if (lead < 0)
        return WEOF;
    text[0] = (char)lead;
    for (size_t i = 1; i < bytes_of(lead); i++) {
        int c = byte_next(l, ESCAPE_MS);

        if (c < 0)
            break;
        text[i] = (char)c;
    }
    return (wint_t)text_char(text, strlen(text), &len);
}

/* ---- the message as text ---- */

static int wide_append(struct buf *ret, const wchar_t *text, size_t len)
{
    char bytes[MB_LEN_MAX];

    for (size_t i = 0; i < len; i++) {
        mbstate_t state = {};
        size_t n = wcrtomb(bytes, text[i], &state);

        if (n != (size_t)-1 && buf_append(ret, bytes, n) < 0)
            return -1;
    }
    return 0;
}

/* For free(). */
static wchar_t *wide_of(const char *text)
{
    size_t len = strlen(text), at = 0, n;
    wchar_t *wide = calloc(len + 1, sizeof(*wide));

    for (size_t i = 0; wide && i < len; i += n)
        wide[at++] = (wchar_t)text_char(text + i, len - i, &n);
    return wide;
}

static int text_insert(struct line *l, const char *text)
{
    auto_free wchar_t *wide = wide_of(text);

    return wide ? el_winsertstr(l->el, wide) : -1;
}

static struct line *line_of(EditLine *el)
{
    struct line *l = NULL;

    el_wget(el, EL_CLIENTDATA, &l);
    return l;
}

/* ---- keys ---- */

static bool ends_with_backslash(struct line *l)
{
    const LineInfoW *info = el_wline(l->el);

    return info->cursor == info->lastchar && info->cursor > info->buffer &&
           info->cursor[-1] == L'\\';
}

static void size_follow(struct line *l)
{
    struct winsize now;

    if (ioctl(term_out(l->term), TIOCGWINSZ, &now) < 0 ||
        (now.ws_col == l->size.ws_col && now.ws_row == l->size.ws_row))
        return;
    l->size = now;
    el_resize(l->el);
}

/* libedit's reader. */
static int on_read(EditLine *el, wchar_t *ret)
{
    struct line *l = line_of(el);
    wint_t c = character_next(l);

    if (c == WEOF) {
        l->is_ended = true;
        return 0;
    }
    size_follow(l);
    if ((c == L'\r' || c == L'\n') && ends_with_backslash(l))
        c = KEY_JOIN;
    *ret = (wchar_t)c;
    return 1;
}

static unsigned char on_join(EditLine *el, int key)
{
    el_deletestr(el, 1);
    return el_winsertstr(el, L"\n") < 0 ? CC_ERROR : CC_REFRESH;
}

static unsigned char on_newline(EditLine *el, int key)
{
    return el_winsertstr(el, L"\n") < 0 ? CC_ERROR : CC_REFRESH;
}

/* Ctrl-C: to the end of what is drawn first, so that nothing is written over it. */
static unsigned char on_interrupt(EditLine *el, int key)
{
    static const wchar_t leave[] = {KEY_LEAVE, 0};
    const LineInfoW *info = el_wline(el);

    el_cursor(el, (int)(info->lastchar - info->cursor));
    el_wpush(el, leave);
    return CC_CURSOR;
}

static unsigned char on_leave(EditLine *el, int key)
{
    line_of(el)->event = LINE_INTERRUPTED;
    return CC_NEWLINE;
}

/* Ctrl-Z, which is no signal here, stops us all the same. */
static unsigned char on_suspend(EditLine *el, int key)
{
    el_wset(el, EL_PREP_TERM, 0);
    kill(0, SIGTSTP);
    el_wset(el, EL_PREP_TERM, 1);
    return CC_REDISPLAY;
}

static bool ends_paste(const struct buf *b)
{
    static const char end[] = "\033[201~";
    size_t len = sizeof(end) - 1;

    return b->len >= len && memcmp(b->data + b->len - len, end, len) == 0;
}

/* Everything up to the end of the paste is text, whatever keys it would be. */
static unsigned char on_paste(EditLine *el, int key)
{
    struct line *l = line_of(el);
    auto_buf struct buf raw, text;
    int c;

    buf_init(&raw, LINE_MAX_BYTES);
    buf_init(&text, 2 * LINE_MAX_BYTES);
    while (!ends_paste(&raw) && (c = byte_next(l, PASTE_MS)) >= 0) {
        if (buf_append_byte(&raw, (unsigned char)c) < 0)
            break;
    }
    if (ends_paste(&raw))
        raw.len -= strlen("\033[201~");
    while (raw.len && strchr("\r\n", raw.data[raw.len - 1]))
        raw.len--;
    if (clean_text(buf_str(&raw), raw.len, CLEAN_STRIP, &text) < 0 ||
        text_insert(l, buf_str(&text)) < 0)
        return CC_ERROR;
    return CC_REFRESH;
}

/* ---- completion ---- */

void line_choice(struct line_choices *choices, size_t from, const char *text)
{
    if (choices->count == CHOICES_MAX)
        return;
    choices->texts[choices->count] = strdup(text);
    choices->count += choices->texts[choices->count] != NULL;
    choices->from = from;
}

static void choices_done(struct line_choices *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->texts[i]);
}

/* How much all choices have in common, in whole characters. */
static size_t common_length(const struct line_choices *c)
{
    size_t len = strlen(c->texts[0]);

    for (size_t i = 1; i < c->count; i++) {
        size_t n = 0;

        while (n < len && c->texts[i][n] == c->texts[0][n])
            n++;
        len = n;
    }
    return utf8_cut(c->texts[0], strlen(c->texts[0]), len);
}

static void choices_list(struct line *l, const struct line_choices *c)
{
    auto_buf struct buf out;

    buf_init(&out, LINE_MAX_BYTES);
    for (size_t i = 0; i < c->count; i++) {
        if (buf_append_str(&out, i ? "  " : "\n") < 0 || clean_line(c->texts[i], 60, &out) < 0)
            return;
    }
    if (buf_append_byte(&out, '\n') == 0)
        (void)!fd_write_full(term_out(l->term), buf_str(&out), out.len, NULL);
}

static unsigned char choices_apply(struct line *l, const char *before, const struct line_choices *c)
{
    size_t typed = strlen(before), common = common_length(c);
    auto_buf struct buf text;
    bool is_same;

    buf_init(&text, LINE_MAX_BYTES);
    if (c->from > typed || buf_append(&text, c->texts[0], common) < 0)
        return CC_ERROR;
    is_same = common == typed - c->from && memcmp(before + c->from, c->texts[0], common) == 0;
    if (c->count == 1 && !str_ends(c->texts[0], "/") && buf_append_byte(&text, ' ') < 0)
        return CC_ERROR;
    if (c->count > 1 && is_same) {
        choices_list(l, c);
        return CC_REDISPLAY;
    }
    el_deletestr(l->el, (int)utf8_count(before + c->from, typed - c->from));
    return text_insert(l, buf_str(&text)) < 0 ? CC_ERROR : CC_REFRESH;
}

static unsigned char on_complete(EditLine *el, int key)
{
    struct line *l = line_of(el);
    const LineInfoW *info = el_wline(el);
    auto_cleanup(choices_done) struct line_choices choices = {};
    auto_buf struct buf before;

    buf_init(&before, LINE_MAX_BYTES);
    if (!l->options.complete ||
        wide_append(&before, info->buffer, (size_t)(info->cursor - info->buffer)) < 0)
        return CC_ERROR;
    l->options.complete(l->options.user, buf_str(&before), &choices);
    return choices.count ? choices_apply(l, buf_str(&before), &choices) : CC_ERROR;
}

/* ---- making ---- */

static wchar_t *on_prompt(EditLine *el)
{
    static wchar_t prompt[256];
    auto_free wchar_t *wide = wide_of(line_of(el)->prompt);

    prompt[0] = 0;
    if (wide)
        swprintf(prompt, ARRAY_LEN(prompt), L"%ls", wide);
    return prompt;
}

static const struct key_function {
    const wchar_t *name;
    unsigned char (*function)(EditLine *el, int key);
    const wchar_t *keys[4];
} key_functions[] = {
    {L"sa-join", on_join, {L"^^"}},
    {L"sa-newline", on_newline, {L"\\e\\r", L"\\e\\n", L"\\e^^"}},
    {L"sa-interrupt", on_interrupt, {L"^C"}},
    {L"sa-suspend", on_suspend, {L"^Z"}},
    {L"sa-leave", on_leave, {L"^_"}},
    {L"sa-paste", on_paste, {L"\\e[200~"}},
    {L"sa-complete", on_complete, {L"\\t"}},
};

/* Keys that libedit has no binding for, though every keyboard has them. */
static const wchar_t *const key_bindings[][2] = {
    {L"\\e[1;5C", L"em-next-word"},      {L"\\e[1;5D", L"ed-prev-word"},
    {L"\\e[3~", L"ed-delete-next-char"}, {L"\\e[H", L"ed-move-to-beg"},
    {L"\\e[F", L"ed-move-to-end"},       {L"^R", L"em-inc-search-prev"},
};

static void keys_bind(EditLine *el)
{
    for (size_t i = 0; i < ARRAY_LEN(key_functions); i++) {
        const struct key_function *f = &key_functions[i];

        el_wset(el, EL_ADDFN, f->name, L"", f->function);
        for (size_t k = 0; k < ARRAY_LEN(f->keys) && f->keys[k]; k++)
            el_wset(el, EL_BIND, f->keys[k], f->name, NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(key_bindings); i++)
        el_wset(el, EL_BIND, key_bindings[i][0], key_bindings[i][1], NULL);
}

static int editor_make(struct line *l, struct error *reterr)
{
    HistEventW event;

    l->in = fdopen(fcntl(term_in(l->term), F_DUPFD_CLOEXEC, 3), "r");
    l->out = fdopen(fcntl(term_out(l->term), F_DUPFD_CLOEXEC, 3), "w");
    l->history = history_winit();
    if (l->in && l->out && l->history)
        l->el = el_init_fd("sandbox-agent", l->in, l->out, l->out, term_in(l->term),
                           term_out(l->term), term_out(l->term));
    if (!l->el)
        return error_set(reterr, ERR_UNAVAILABLE, "cannot edit lines on this terminal");
    history_w(l->history, &event, H_SETSIZE, LINE_HISTORY_MAX);
    el_wset(l->el, EL_CLIENTDATA, l);
    el_wset(l->el, EL_EDITOR, L"emacs");
    el_wset(l->el, EL_SIGNAL, 0);
    el_wset(l->el, EL_GETCFN, on_read);
    el_wset(l->el, EL_PROMPT_ESC, on_prompt, L'\1');
    el_wset(l->el, EL_HIST, history_w, l->history);
    /* Ctrl-C is a key like others, and Enter is not what ends the lines of a paste. */
    el_set(l->el, EL_SETTY, "-d", "-isig", "-icrnl", NULL);
    keys_bind(l->el);
    return 0;
}

/* ---- history ---- */

static void history_enter(void *user, const char *text)
{
    struct line *l = user;
    auto_free wchar_t *wide = wide_of(text);
    HistEventW event;

    if (l->history && wide)
        history_w(l->history, &event, H_ENTER, wide);
}

/* The newest one, or "". */
static int history_newest(struct line *l, struct buf *ret)
{
    HistEventW event;

    if (!l->history || history_w(l->history, &event, H_FIRST) < 0)
        return 0;
    return wide_append(ret, event.str, wcslen(event.str));
}

/* What cannot be written is only missing next time. */
void line_remember(struct line *l, const char *text)
{
    auto_buf struct buf newest;

    buf_init(&newest, 4 * (size_t)LINE_MAX_BYTES);
    if (*text == 0 || *text == ' ' || history_newest(l, &newest) < 0 ||
        str_eq(buf_str(&newest), text))
        return;
    history_enter(l, text);
    if (l->options.history)
        (void)!history_append(l->options.history, text, NULL);
}

/* ---- life ---- */

int line_new(struct term *t, const struct line_options *options, struct line **ret,
             struct error *reterr)
{
    auto_line struct line *l = calloc(1, sizeof(*l));
    int r = 0;

    if (!l)
        return error_no_memory(reterr);
    l->term = t;
    l->options.stop_fd = -1;
    memcpy(&l->options, options, MIN(options->size, sizeof(l->options)));
    buf_init(&l->input, 4 * (size_t)LINE_MAX_BYTES);
    if (term_caps(t)->has_input)
        r = editor_make(l, reterr);
    if (r == 0 && l->el && l->options.history)
        (void)!history_load(l->options.history, LINE_HISTORY_MAX, history_enter, l, NULL);
    if (r == 0)
        *ret = TAKE_PTR(l);
    return r;
}

void line_free(struct line *l)
{
    if (l->el)
        el_end(l->el);
    if (l->history)
        history_wend(l->history);
    if (l->in)
        fclose(l->in);
    if (l->out)
        fclose(l->out);
    buf_done(&l->input);
    free(l);
}

/* ---- reading ---- */

/* Not a terminal: up to the next '\n'. */
static int plain_read(struct line *l, struct buf *ret, enum line_event *ret_event)
{
    int c = 0;

    l->event = LINE_TEXT;
    while (ret->len < LINE_MAX_BYTES && (c = byte_next(l, -1)) >= 0 && c != '\n') {
        if (buf_append_byte(ret, (unsigned char)c) < 0)
            return -1;
    }
    if (ret->len && ret->data[ret->len - 1] == '\r')
        ret->len--;
    if (c < 0 && l->event == LINE_TEXT && ret->len == 0)
        l->event = LINE_END;
    *ret_event = l->event;
    return 0;
}

static void say(struct line *l, const char *text)
{
    (void)!fd_write_full(term_out(l->term), text, strlen(text), NULL);
}

static int edit_read(struct line *l, struct buf *ret, enum line_event *ret_event)
{
    const wchar_t *text;
    int count = 0;

    l->event = LINE_TEXT;
    l->is_ended = false;
    el_wset(l->el, EL_PREP_TERM, 1); /* before the prompt, which says that keys are read */
    say(l, "\033[?2004h");
    text = el_wgets(l->el, &count);
    say(l, "\033[?2004l");
    if (l->event != LINE_TEXT || !text || count <= 0)
        say(l, "\r\n");
    if (l->event == LINE_TEXT && (!text || count <= 0 || l->is_ended))
        l->event = LINE_END;
    *ret_event = l->event;
    if (!text || count <= 0 || l->event == LINE_END)
        return 0;
    if (text[count - 1] == L'\n')
        count--;
    return wide_append(ret, text, (size_t)count);
}

int line_read(struct line *l, const char *prompt, struct buf *ret, enum line_event *ret_event,
              struct error *reterr)
{
    auto_buf struct buf raw, drawn;
    enum term_color color = term_color(l->term);
    int r;

    buf_init(&raw, 4 * (size_t)LINE_MAX_BYTES);
    buf_init(&drawn, sizeof(l->prompt));
    if (l->el) {
        /* \1 is around what has no columns. */
        bool is_plain = color == TERM_COLOR_NONE;

        if (buf_append_str(&drawn, is_plain ? "" : "\1") < 0 ||
            style_put(&drawn, style_of(STYLE_USER), color) < 0 ||
            buf_append_str(&drawn, is_plain ? "" : "\1") < 0 ||
            buf_append_str(&drawn, prompt) < 0 ||
            buf_append_str(&drawn, is_plain ? "" : "\1") < 0 ||
            style_put(&drawn, style_of(STYLE_PLAIN), color) < 0 ||
            buf_append_str(&drawn, is_plain ? "" : "\1") < 0 ||
            str_copy(l->prompt, sizeof(l->prompt), buf_str(&drawn)) < 0)
            return error_set(reterr, ERR_INVALID, "the prompt is too long");
        r = edit_read(l, &raw, ret_event);
    } else {
        r = plain_read(l, &raw, ret_event);
    }
    if (r < 0 || clean_text(buf_str(&raw), raw.len, CLEAN_STRIP, ret) < 0)
        return error_set(reterr, ERR_LIMIT, "the message is too long");
    return 0;
}

/* ---- secrets ---- */

/* What a paste is put between has come with keys that were pressed at another prompt. */
static void paste_marks_remove(struct buf *b)
{
    static const char *const marks[] = {"\033[200~", "\033[201~"};

    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        size_t n = strlen(marks[i]);
        char *at;

        while (b->len >= n && (at = memmem(b->data, b->len, marks[i], n))) {
            memmove(at, at + n, b->len - (size_t)(at - b->data) - n);
            b->len -= n;
        }
    }
}

/* One key; false: it ends the line. */
static bool secret_key(struct line *l, int key, struct buf *ret)
{
    if (key < 0 || (key == KEY_END && ret->len == 0))
        l->event = l->event == LINE_TEXT ? LINE_END : l->event;
    else if (key == KEY_INTERRUPT)
        l->event = LINE_INTERRUPTED;
    else if (key == KEY_KILL)
        buf_clear(ret);
    else if (key == KEY_BACKSPACE || key == KEY_DELETE)
        ret->len = ret->len ? utf8_cut(buf_str(ret), ret->len, ret->len - 1) : 0;
    else if (key != '\r' && key != '\n')
        return buf_append_byte(ret, (unsigned char)key) == 0;
    else
        return false;
    return l->event == LINE_TEXT;
}

int line_read_secret(struct line *l, const char *prompt, struct buf *ret,
                     enum line_event *ret_event, struct error *reterr)
{
    struct termios before, hidden;
    auto_buf struct buf shown;

    buf_init(&shown, SECRET_MAX);
    if (tcgetattr(term_in(l->term), &before) < 0)
        return error_sys(reterr, errno, "cannot hide what is typed");
    hidden = before;
    hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON);
    hidden.c_lflag |= ISIG;
    hidden.c_cc[VMIN] = 1;
    hidden.c_cc[VTIME] = 0;
    if (tcsetattr(term_in(l->term), TCSANOW, &hidden) < 0)
        return error_sys(reterr, errno, "cannot hide what is typed");
    if (style_text(&shown, STYLE_USER, term_color(l->term), prompt, strlen(prompt)) == 0)
        term_raw(l->term, buf_str(&shown), shown.len);
    l->event = LINE_TEXT;
    while (ret->len < SECRET_MAX && secret_key(l, byte_next(l, -1), ret))
        ;
    paste_marks_remove(ret);
    (void)tcsetattr(term_in(l->term), TCSANOW, &before);
    term_raw(l->term, "\n", 1);
    *ret_event = l->event;
    return ret->len < SECRET_MAX ? 0 : error_set(reterr, ERR_LIMIT, "that is too long");
}

void line_drop(struct line *l)
{
    if (!isatty(term_in(l->term)))
        return;
    buf_clear(&l->input);
    l->answer = (struct answer){};
    term_typed_drop(l->term);
}
