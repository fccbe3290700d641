/* SPDX-License-Identifier: MIT */
/*
 * One run after another: a message, and the answers to what its run asks. Ctrl-C asks the server to
 * stop the run and goes on reading, so what was done by then is still shown; the second one leaves
 * the run alone.
 */
#include "cli/chat.h"

#include "base/clock.h"
#include "base/str.h"
#include "base/uuid.h"
#include "cli/chat_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/signalfd.h>

enum { SETTLE_MS = 50 }; /* a question about calls comes at once behind them, or never */

/* How a run ended for us. */
enum ending { ENDING_OK, ENDING_FAILED, ENDING_STOPPED, ENDING_WAITS, ENDING_LEFT };

struct running {
    struct chat *c;
    struct chat_stream *stream;
    bool is_stopping, is_over, is_left;
    bool is_given_up; /* a server of ours has died, and no other could be started */
    struct error error;
};

/* ---- what a run is asked for ---- */

/* The message gets its id here, so that it is known when it comes back. */
static int input_write(struct chat *c, yyjson_mut_doc *doc, const char *text, struct error *reterr)
{
    yyjson_mut_val *root = yyjson_mut_doc_get_root(doc);
    yyjson_mut_val *list = yyjson_mut_arr(doc), *message = yyjson_mut_arr_add_obj(doc, list);
    char id[UUID_LEN + 1];
    auto_buf struct buf whole;
    int r = uuid_v4(id, reterr);

    if (r < 0)
        return r;
    buf_init(&whole, 2 * LINE_MAX_BYTES);
    if (chat_memory_see(&c->memory, id) < 0 || buf_append_str(&whole, text) < 0)
        return error_no_memory(reterr);
    if (c->attached.len > 0 &&
        buf_printf(&whole, "\n\n<attached-files>\n%s</attached-files>", buf_str(&c->attached)) < 0)
        return error_no_memory(reterr);
    buf_clear(&c->attached);
    yyjson_mut_obj_add_str(doc, message, "role", "user");
    yyjson_mut_obj_add_strcpy(doc, message, "id", id);
    yyjson_mut_obj_add_val(doc, message, "content", json_mut_text(doc, buf_str(&whole), whole.len));
    yyjson_mut_obj_add_val(doc, yyjson_mut_obj_add_obj(doc, root, "input"), "messages", list);
    return 0;
}

static void body_begin(struct chat *c, yyjson_mut_doc *doc)
{
    static const char *const modes[] = {"values", "updates", "messages-tuple", "custom"};
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list, *config;

    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_str(doc, root, "assistant_id", "agent");
    list = yyjson_mut_obj_add_arr(doc, root, "stream_mode");
    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        yyjson_mut_arr_add_str(doc, list, modes[i]);
    yyjson_mut_obj_add_str(doc, root, "on_disconnect", "continue");
    config = chat_config_write(&c->config, doc);
    if (config)
        yyjson_mut_obj_add_val(doc, root, "config", config);
}

/* ---- stopping ---- */

static void run_cancel(struct running *r)
{
    struct chat *c = r->c;
    char run_id[64], path[CHAT_THREAD_SIZE + 128];
    yyjson_doc *doc = NULL;
    struct error error;

    chat_stream_run(r->stream, run_id, sizeof(run_id));
    if (!run_id[0]) {
        r->is_left = true; /* nobody has told us about it yet */
        return;
    }
    snprintf(path, sizeof(path), "/threads/%s/runs/%s/cancel?action=interrupt", c->thread_id,
             run_id);
    if (chat_api_json(&c->api, "POST", path, "{}", &doc, &error) < 0 &&
        error.code != ERR_NOT_FOUND && error.code != ERR_BUSY) {
        chat_complain(c, "the run cannot be stopped: %s", error.text);
        r->is_left = true;
    }
    yyjson_doc_free(doc);
}

static void on_signal(struct running *r)
{
    int got = chat_signal_take(r->c);

    if (got == 0)
        return;
    if (got < 0 || r->is_stopping) {
        r->is_left = true;
        return;
    }
    r->is_stopping = true;
    spinner_start(r->c->spinner, "stopping");
    run_cancel(r);
}

/* ---- reading ---- */

/*
 * A server of ours that has died is started again: it takes its runs up from where they were. Its
 * connections are closed before it counts as dead, so that is looked for each time.
 */
static void on_trouble(struct running *r, const struct chat_event *event)
{
    struct chat *c = r->c;
    struct error error;

    spinner_start(c->spinner, "the connection is lost, trying again");
    if (c->server.log[0] && !r->is_given_up && !local_server_is_alive(&c->server) &&
        chat_server_ensure(c, &error) < 0) {
        r->is_given_up = true;
        chat_complain(c, "%s", error.text);
    }
}

static void on_event(struct running *r, struct chat_event *event)
{
    switch (event->kind) {
    case CHAT_EVENT:
        chat_view_event(r->c, event);
        break;
    case CHAT_TROUBLE:
        on_trouble(r, event);
        break;
    case CHAT_RESUMED:
        spinner_start(r->c->spinner, "thinking");
        break;
    case CHAT_FINISHED:
        r->is_over = true;
        r->error = event->error;
        break;
    }
}

static void run_read(struct running *r)
{
    struct pollfd fds[] = {{.fd = chat_stream_fd(r->stream), .events = POLLIN},
                           {.fd = r->c->signal_fd, .events = POLLIN}};
    struct chat_event event;

    while (!r->is_over && !r->is_left) {
        int n = poll(fds, ARRAY_LEN(fds), r->c->view.is_unsettled ? SETTLE_MS : -1);

        if (n < 0 && errno != EINTR)
            break;
        if (n == 0)
            chat_view_settle(r->c);
        else if (fds[1].revents)
            on_signal(r);
        else if (chat_stream_next(r->stream, &event)) {
            on_event(r, &event);
            chat_event_done(&event);
        }
    }
}

static enum ending ending_of(const struct running *r)
{
    const struct chat_view *v = &r->c->view;

    if (r->is_left)
        return ENDING_LEFT;
    if (r->error.code != ERR_OK || v->has_failed || str_eq(v->outcome, "error") ||
        str_eq(v->outcome, "timeout"))
        return ENDING_FAILED;
    if (v->waiting)
        return ENDING_WAITS;
    return str_eq(v->outcome, "interrupted") ? ENDING_STOPPED : ENDING_OK;
}

/* What is told when it is over. */
static void ending_show(struct running *r, enum ending ending)
{
    static const struct {
        enum panel_state state;
        const char *note;
    } panels[] = {
        [ENDING_OK] = {PANEL_OK, NULL},
        [ENDING_FAILED] = {PANEL_ERROR, "failed"},
        [ENDING_STOPPED] = {PANEL_WARNING, "stopped"},
        [ENDING_WAITS] = {PANEL_OK, NULL},
        [ENDING_LEFT] = {PANEL_WARNING, "goes on at the server"},
    };
    struct chat *c = r->c;

    chat_view_end(c, panels[ending].state, panels[ending].note);
    if (ending == ENDING_STOPPED) {
        chat_gap(c);
        chat_say(c, STYLE_WARNING, "stopped");
    } else if (ending == ENDING_LEFT && !c->is_over) {
        chat_gap(c);
        chat_say(c, STYLE_WARNING, "the run was left; /stop ends it");
    } else if (r->error.code != ERR_OK) {
        c->is_lost = r->error.code == ERR_UPSTREAM || r->error.code == ERR_TIMEOUT;
        chat_gap(c);
        chat_complain(c, "%s", r->error.text);
    } else if (ending == ENDING_FAILED && !c->view.has_failed) {
        chat_gap(c);
        chat_complain(c, "the run ended: %s", c->view.outcome);
    }
}

/* One run from its start, or from where it is joined, to its end. */
static enum ending run_one(struct chat *c, const char *body, const char *run_id)
{
    struct running r = {.c = c};
    struct chat_stream_options options = {
        .api = &c->api, .thread_id = c->thread_id, .body = body, .run_id = run_id};
    enum ending ending;

    chat_view_begin(c);
    if (chat_stream_start(&options, &r.stream, &r.error) < 0) {
        chat_complain(c, "%s", r.error.text);
        return ENDING_FAILED;
    }
    term_echo(c->term, false);
    spinner_start(c->spinner, "thinking");
    run_read(&r);
    spinner_stop(c->spinner);
    term_echo(c->term, true);
    chat_stream_free(r.stream);
    ending = ending_of(&r);
    ending_show(&r, ending);
    return ending;
}

/* ---- from a message to its answer ---- */

static enum ending doc_run(struct chat *c, const yyjson_mut_doc *doc)
{
    auto_buf struct buf body;
    struct error error;
    enum ending ending;

    buf_init(&body, 8 * LINE_MAX_BYTES);
    if (json_mut_write(doc, &body, &error) < 0) {
        chat_complain(c, "%s", error.text);
        return ENDING_FAILED;
    }
    ending = run_one(c, buf_str(&body), NULL);
    explicit_bzero(body.data, body.cap); /* there may be a key in it */
    return ending;
}

/* Asks, and runs what the answer is for; ENDING_WAITS when nobody answered. */
static enum ending answer_run(struct chat *c)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    auto_json yyjson_doc *waiting = TAKE_PTR(c->view.waiting);
    yyjson_mut_val *resume = NULL;
    struct error error;
    int r;

    body_begin(c, doc);
    r = chat_ask(c, yyjson_doc_get_root(waiting), doc, &resume, &error);
    if (r < 0)
        chat_complain(c, "%s", error.text);
    if (r <= 0) {
        chat_view_end(c, PANEL_WARNING, "waits for an answer");
        return ENDING_WAITS;
    }
    yyjson_mut_obj_add_val(doc,
                           yyjson_mut_obj_add_obj(doc, yyjson_mut_doc_get_root(doc), "command"),
                           "resume", resume);
    return doc_run(c, doc);
}

static void rest_run(struct chat *c, enum ending ending)
{
    while (ending == ENDING_WAITS && c->view.waiting && !c->is_over)
        ending = answer_run(c);
    c->status = ending == ENDING_OK ? 0 : 1;
    if (ending == ENDING_WAITS && !c->is_over)
        chat_complain(c, "the conversation waits for an answer; it is asked again by /answer");
}

void chat_run_message(struct chat *c, const char *text)
{
    auto_json_mut yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    struct error error;

    body_begin(c, doc);
    c->status = 1;
    if (chat_server_ensure(c, &error) < 0 || input_write(c, doc, text, &error) < 0)
        chat_complain(c, "%s", error.text);
    else
        rest_run(c, doc_run(c, doc));
}

void chat_run_follow(struct chat *c, const char *run_id)
{
    rest_run(c, run_one(c, NULL, run_id));
}

void chat_run_answer(struct chat *c)
{
    rest_run(c, ENDING_WAITS);
}
