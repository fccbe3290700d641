/* SPDX-License-Identifier: MIT */
/* Streams of a session against a peer that plays init, and the list of what is exported: what only
 * a sandbox that misbehaves can do. */
#include "session/transfer-internal.h"

#include "base/str.h"
#include "tests/lib/fake-engine.h"

#include <stdio.h>

/* ---- a session, a peer, and a reader whose opening needs the peer's answer ---- */

struct stage {
    struct world w;
    struct session_info session;
    struct peer *peer;
    struct session_reader *reader;
    struct session_file_info info;
    struct error error;
    const char *path;
    int opened;
};

static void stage_done(struct stage *s)
{
    session_reader_close(s->reader);
    world_end(&s->w);
}

#define auto_stage __attribute__((cleanup(stage_done)))

static void stage_open(struct stage *s)
{
    world_init(&s->w);
    world_start(&s->w);
    s->session = world_session(&s->w, "me");
    s->peer = fake_peer(&s->w.engine, 0);
}

static void *opener_main(void *arg)
{
    struct stage *s = arg;

    s->opened = session_reader_open(s->w.m, &(struct session_path){s->session.id, "me", "f"},
                                    &s->info, &s->reader, &s->error);
    return NULL;
}

static void report_send(struct peer *p, uint32_t stream, const char *type, int64_t size)
{
    auto_buf struct buf b;

    buf_init(&b, 4096);
    if (fields_add_str(&b, "type", type) == 0 && fields_add_int(&b, "size", size) == 0 &&
        fields_add_str(&b, "mode", "755") == 0)
        peer_send(p, FRAME_REPORT, stream, b.data, b.len);
}

/* Opens a reader of a file of `size`; returns its stream. */
static uint32_t reader_begin(struct stage *s, int64_t size)
{
    struct peer_frame *asked;
    pthread_t opener;

    stage_open(s);
    assert_int_eq(pthread_create(&opener, NULL, opener_main, s), 0);
    asked = peer_take(s->peer, FRAME_FILE_READ);
    assert_str_eq(peer_field(asked, "path"), "f");
    report_send(s->peer, asked->stream, "file", size);
    pthread_join(opener, NULL);
    assert_ok(s->opened, s->error);
    assert_uint_eq(s->info.size, (uint64_t)size);
    assert_uint_eq(s->info.mode, 0755);
    return asked->stream;
}

static ssize_t all_read(struct session_reader *r, size_t piece, struct error *err)
{
    auto_free char *data = malloc(piece);
    ssize_t n, all = 0;

    while ((n = session_reader_read(r, data, piece, err)) > 0)
        all += n;
    return n < 0 ? n : all;
}

/* ---- reading ---- */

TEST(a_file_is_read_to_its_end_and_its_credit_given_back)
{
    enum { CHUNKS = 3 * FRAME_WINDOW / FRAME_BULK_MAX };
    char chunk[FRAME_BULK_MAX] = "x";
    auto_stage struct stage s = {};
    uint32_t stream = reader_begin(&s, CHUNKS * FRAME_BULK_MAX);
    size_t sent = 0, window = FRAME_WINDOW / FRAME_BULK_MAX;
    auto_free char *data = malloc(1000000);
    struct error err;
    ssize_t n;

    while (sent < window) {
        peer_send(s.peer, FRAME_DATA, stream, chunk, sizeof(chunk));
        sent++;
    }
    /* Nothing is taken yet, so nothing is given back. */
    assert_null(peer_take_within(s.peer, FRAME_CREDIT, 50));
    for (size_t got = 0; got < CHUNKS * FRAME_BULK_MAX; got += (size_t)n) {
        n = session_reader_read(s.reader, data, 1000000, &err);
        assert_ok(n, err);
        assert_true(n > 0);
        while (sent < CHUNKS && (sent - window) * FRAME_BULK_MAX < got) {
            peer_send(s.peer, FRAME_DATA, stream, chunk, sizeof(chunk));
            sent++;
        }
    }
    peer_end_with(s.peer, stream, "status=ok");
    assert_int_eq(session_reader_read(s.reader, data, 10, &err), 0);
    assert_int_eq(session_reader_read(s.reader, data, 10, &err), 0);
    assert_not_null(peer_take(s.peer, FRAME_CREDIT));
}

TEST(fil_18_a_growing_file_ends_where_it_ended)
{
    auto_stage struct stage s = {};
    uint32_t stream = reader_begin(&s, 10);
    struct error err;

    peer_send_text(s.peer, FRAME_DATA, stream, "0123456");
    peer_send_text(s.peer, FRAME_DATA, stream, "789abcdef");
    peer_send_text(s.peer, FRAME_DATA, stream, "more and more");
    assert_int_eq(all_read(s.reader, 4, &err), 10);
    session_reader_close(TAKE_PTR(s.reader));
    assert_uint_eq(peer_take(s.peer, FRAME_KILL)->stream, stream);
}

TEST(fil_18_a_file_that_was_cut_short_has_no_end)
{
    auto_stage struct stage s = {};
    uint32_t stream = reader_begin(&s, 10);
    char data[16];
    struct error err;

    peer_send_text(s.peer, FRAME_DATA, stream, "01234");
    peer_end_with(s.peer, stream, "status=ok");
    assert_int_eq(session_reader_read(s.reader, data, sizeof(data), &err), 5);
    assert_int_eq(session_reader_read(s.reader, data, sizeof(data), &err), -ERR_SYSTEM);
    assert_str_has(err.text, "cut short");
    assert_int_eq(session_reader_read(s.reader, data, sizeof(data), &err), -ERR_SYSTEM);
}

TEST(fil_18_an_error_in_the_middle_is_told_behind_the_data)
{
    auto_stage struct stage s = {};
    uint32_t stream = reader_begin(&s, 10);
    char data[16];
    struct error err;

    peer_send_text(s.peer, FRAME_DATA, stream, "01234");
    peer_end_with(s.peer, stream, "status=error", "errno=5", "message=it broke");
    assert_int_eq(session_reader_read(s.reader, data, sizeof(data), &err), 5);
    assert_int_eq(session_reader_read(s.reader, data, sizeof(data), &err), -ERR_SYSTEM);
    assert_str_has(err.text, "it broke");
    assert_int_eq(err.sys, 5);
}

TEST(a_session_that_ends_ends_its_readers)
{
    auto_stage struct stage s = {};
    uint32_t stream = reader_begin(&s, 10);
    struct error err;

    peer_send_text(s.peer, FRAME_DATA, stream, "01234");
    assert_ok(session_stop(s.w.m, s.session.id, "me", &err), err);
    assert_int_eq(all_read(s.reader, 16, &err), -ERR_DIED);
}

TEST(a_sandbox_that_sends_without_credit_is_not_listened_to)
{
    auto_stage struct stage s = {};
    uint32_t stream = reader_begin(&s, 1 << 30);
    char chunk[FRAME_BULK_MAX] = "x";
    struct error err;

    for (size_t i = 0; i < 2 * FRAME_WINDOW / sizeof(chunk); i++)
        peer_send(s.peer, FRAME_DATA, stream, chunk, sizeof(chunk));
    assert_int_eq(all_read(s.reader, 1 << 20, &err), -ERR_PROTOCOL);
}

TEST(a_pebibyte_is_a_size_like_any_other)
{
    auto_stage struct stage s = {};
    uint32_t stream = reader_begin(&s, 1ll << 50);
    char data[16];
    struct error err;

    peer_send_text(s.peer, FRAME_DATA, stream, "0");
    assert_int_eq(session_reader_read(s.reader, data, sizeof(data), &err), 1);
    session_reader_close(TAKE_PTR(s.reader));
    assert_uint_eq(peer_take(s.peer, FRAME_KILL)->stream, stream);
}

TEST(what_cannot_be_opened_is_told_at_once)
{
    auto_stage struct stage s = {};
    struct peer_frame *asked;
    pthread_t opener;

    stage_open(&s);
    assert_int_eq(pthread_create(&opener, NULL, opener_main, &s), 0);
    asked = peer_take(s.peer, FRAME_FILE_READ);
    peer_end_with(s.peer, asked->stream, "status=error", "errno=2", "message=not there");
    pthread_join(opener, NULL);
    assert_int_eq(s.opened, -ERR_NOT_FOUND);
    assert_str_has(s.error.text, "not there");
    assert_null(s.reader);
}

/* ---- writing ---- */

static struct session_writer *writer_begin(struct stage *s, uint32_t *ret_stream)
{
    struct session_writer *w = NULL;
    struct peer_frame *asked;
    struct error err;

    stage_open(s);
    assert_ok(session_writer_open(s->w.m, &(struct session_path){s->session.id, "me", "f"}, 10,
                                  06777, &w, &err),
              err);
    asked = peer_take(s->peer, FRAME_FILE_WRITE);
    assert_str_eq(peer_field(asked, "mode"), "755");
    assert_str_eq(peer_field(asked, "size"), "10");
    *ret_stream = asked->stream;
    return w;
}

struct ending {
    struct peer *peer;
    uint8_t at; /* the frame that is answered */
    const char *const *fields;
    uint32_t stream;
};

static void *ending_main(void *arg)
{
    struct ending *e = arg;
    struct peer_frame *f;

    do
        f = peer_take_within(e->peer, e->at, PEER_WAIT_MS);
    while (f && e->at == FRAME_WRITE_DATA && f->len);
    if (f)
        peer_end(e->peer, e->stream, e->fields);
    return NULL;
}

TEST(a_file_is_written_and_shown)
{
    static const char *const ok[] = {"status=ok", NULL};
    auto_stage struct stage s = {};
    auto_session_writer struct session_writer *w = NULL;
    struct ending ending = {.at = FRAME_WRITE_DATA, .fields = ok};
    pthread_t thread;
    struct error err;

    w = writer_begin(&s, &ending.stream);
    ending.peer = s.peer;
    assert_int_eq(pthread_create(&thread, NULL, ending_main, &ending), 0);
    assert_ok(session_writer_write(w, "01234", 5, &err), err);
    assert_ok(session_writer_write(w, "56789", 5, &err), err);
    assert_ok(session_writer_commit(w, &err), err);
    pthread_join(thread, NULL);
}

TEST(case_34_a_full_disk_is_told_in_the_middle_with_its_setting)
{
    static const char *const full[] = {"status=error", "cause=disk", "errno=28",
                                       "message=cannot write 'f': No space left on device", NULL};
    auto_stage struct stage s = {};
    auto_session_writer struct session_writer *w = NULL;
    auto_free char *data = calloc(1, 1 << 20);
    struct error err;
    uint32_t stream;
    int r = 0;

    w = writer_begin(&s, &stream);
    peer_end(s.peer, stream, full);
    for (int i = 0; i < 1000 && r == 0; i++)
        r = session_writer_write(w, data, 1 << 16, &err);
    assert_int_eq(r, -ERR_DISK);
    assert_str_has(err.text, "No space left");
    assert_str_has(err.text, "CONTAINER_TMPFS_SIZE");
    assert_int_eq(session_writer_commit(w, &err), -ERR_DISK);
}

TEST(a_file_that_is_not_committed_is_given_up)
{
    static const char *const stopped[] = {"status=interrupted", "cause=user", NULL};
    auto_stage struct stage s = {};
    struct ending ending = {.at = FRAME_KILL, .fields = stopped};
    struct session_writer *w;
    pthread_t thread;
    struct error err;

    w = writer_begin(&s, &ending.stream);
    ending.peer = s.peer;
    assert_int_eq(pthread_create(&thread, NULL, ending_main, &ending), 0);
    assert_ok(session_writer_write(w, "01234", 5, &err), err);
    session_writer_close(w);
    pthread_join(thread, NULL);
}

TEST(a_session_that_ends_ends_its_writers)
{
    auto_stage struct stage s = {};
    auto_session_writer struct session_writer *w = NULL;
    struct error err;
    uint32_t stream;

    w = writer_begin(&s, &stream);
    assert_ok(session_stop(s.w.m, s.session.id, "me", &err), err);
    assert_int_eq(session_writer_write(w, "01234", 5, &err), -ERR_DIED);
    assert_int_eq(session_writer_commit(w, &err), -ERR_DIED);
}

/* ---- walks ---- */

static void entry_send(struct peer *p, uint32_t stream, const char *type, const char *name,
                       const char *target)
{
    auto_buf struct buf b;

    buf_init(&b, 16 * KIB);
    if (fields_add_str(&b, "type", type) == 0 && fields_add_str(&b, "name", name) == 0 &&
        (!target || fields_add_str(&b, "target", target) == 0))
        peer_send(p, FRAME_REPORT, stream, b.data, b.len);
}

/* The first folder has two, of which one is gone when it is asked for. */
static void *folders_main(void *arg)
{
    struct stage *s = arg;
    struct peer_frame *f;

    while ((f = peer_take_within(s->peer, FRAME_FILE_LIST, PEER_WAIT_MS))) {
        bool gone = str_eq(peer_field(f, "path"), "/workspace/gone");
        bool top = str_eq(peer_field(f, "path"), "/workspace");

        if (top) {
            entry_send(s->peer, f->stream, "dir", "there", NULL);
            entry_send(s->peer, f->stream, "dir", "gone", NULL);
        }
        if (gone)
            peer_end_with(s->peer, f->stream, "status=error", "errno=2", "message=it is gone");
        else
            peer_end_with(s->peer, f->stream, "status=ok");
        if (!top && !gone)
            break;
    }
    return NULL;
}

/* Links whose targets are more than all names together may be. */
static void *links_main(void *arg)
{
    struct stage *s = arg;
    struct peer_frame *f = peer_take(s->peer, FRAME_FILE_LIST);
    char target[4001] = "";

    memset(target, 'x', sizeof(target) - 1);
    for (int i = 0; i < 20000; i++)
        entry_send(s->peer, f->stream, "link", "l", target);
    peer_end_with(s->peer, f->stream, "status=ok");
    return NULL;
}

static int walk_count(void *user, const char *rel, const struct session_file_info *info,
                      struct error *err)
{
    *(unsigned *)user += 1;
    return 0;
}

static int workspace_walk(struct stage *s, void *(*answers)(void *arg), unsigned *ret,
                          struct error *err)
{
    pthread_t thread;
    int r;

    stage_open(s);
    assert_int_eq(pthread_create(&thread, NULL, answers, s), 0);
    r = session_walk(s->w.m, &(struct session_path){s->session.id, "me", "/workspace"}, walk_count,
                     ret, err);
    pthread_join(thread, NULL);
    return r;
}

TEST(a_folder_that_is_gone_since_it_was_listed_is_empty)
{
    auto_stage struct stage s = {};
    unsigned count = 0;
    struct error err;

    assert_ok(workspace_walk(&s, folders_main, &count, &err), err);
    assert_uint_eq(count, 2);
}

/* The sandbox pays for its names with its own memory, and nobody else for them with more. */
TEST(a_folder_whose_names_take_too_much_memory_is_not_walked)
{
    auto_stage struct stage s = {};
    unsigned count = 0;
    struct error err;

    assert_int_eq(workspace_walk(&s, links_main, &count, &err), -ERR_LIMIT);
    assert_str_has(err.text, "64 MiB of names");
    assert_uint_eq(count, 0);
}

/* ---- exports ---- */

/* Answers every look with a file of 3 bytes. */
static void *looks_main(void *arg)
{
    struct stage *s = arg;
    struct peer_frame *f;

    while ((f = peer_take_within(s->peer, FRAME_FILE_READ, PEER_WAIT_MS))) {
        report_send(s->peer, f->stream, "file", 3);
        peer_end_with(s->peer, f->stream, "status=ok");
        if (str_eq(peer_field(f, "path"), "/workspace/last"))
            break;
    }
    return NULL;
}

static void count_one(void *user, const char *id, const struct export_info *info)
{
    *(unsigned *)user += info->size == 3 && info->type == 'f' && strlen(id) == ID_LEN;
}

static int export_one(struct stage *s, const char *owner, const char *path, struct error *err)
{
    struct export_info info;

    return session_export(s->w.m, &(struct session_path){s->session.id, owner, path}, &info, err);
}

static int export_is_known(struct stage *s, const char *owner, const char *path, struct error *err)
{
    return session_export_check(s->w.m, &(struct session_path){s->session.id, owner, path}, err);
}

TEST(fil_17_what_is_exported_and_what_is_not)
{
    auto_stage struct stage s = {};
    unsigned count = 0;
    pthread_t looks;
    struct error err;

    stage_open(&s);
    assert_int_eq(pthread_create(&looks, NULL, looks_main, &s), 0);
    assert_ok(export_one(&s, "me", "a", &err), err);
    assert_ok(export_one(&s, "me", "/workspace/./x/../a", &err), err);
    assert_ok(export_one(&s, "me", "last", &err), err);
    pthread_join(looks, NULL);
    assert_int_eq(export_one(&s, "me", "../etc/passwd", &err), -ERR_DENIED);
    assert_str_has(err.text, "outside /workspace");
    assert_int_eq(export_one(&s, "me", "/workspace2/a", &err), -ERR_DENIED);
    assert_int_eq(export_one(&s, "me", "/tmp/a", &err), -ERR_DENIED);
    assert_int_eq(export_one(&s, "you", "a", &err), -ERR_NOT_FOUND);

    assert_ok(export_is_known(&s, "me", "/workspace/a", &err), err);
    assert_ok(export_is_known(&s, "me", "/workspace/a/below", &err), err);
    assert_int_eq(export_is_known(&s, "me", "/workspace/ab", &err), -ERR_DENIED);
    assert_int_eq(export_is_known(&s, "me", "/workspace", &err), -ERR_DENIED);
    assert_int_eq(export_is_known(&s, "you", "/workspace/a", &err), -ERR_NOT_FOUND);

    assert_ok(session_export_list(s.w.m, NULL, "me", count_one, &count, &err), err);
    assert_uint_eq(count, 2);
    assert_ok(session_export_list(s.w.m, s.session.id, "me", count_one, &count, &err), err);
    assert_uint_eq(count, 4);
    assert_ok(session_export_list(s.w.m, NULL, "you", count_one, &count, &err), err);
    assert_uint_eq(count, 4);
    assert_int_eq(session_export_list(s.w.m, s.session.id, "you", count_one, &count, &err),
                  -ERR_NOT_FOUND);
    assert_ok(session_stop(s.w.m, s.session.id, "me", &err), err);
    assert_int_eq(export_is_known(&s, "me", "/workspace/a", &err), -ERR_NOT_FOUND);
}
