/* SPDX-License-Identifier: MIT */
/* Descriptors: whole reads and writes, atomic files, passing over sockets, sealed memory. */
#include "base/fd.h"

#include "base/clock.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct pair {
    int a, b;
};

static void pair_done(struct pair *p)
{
    close(p->a);
    close(p->b);
}

static struct pair pair_open(int type)
{
    int fds[2];

    assert_int_eq(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){fds[0], fds[1]};
}

TEST(a_read_is_short_only_at_the_end)
{
    auto_cleanup(pair_done) struct pair p = pair_open(SOCK_STREAM);
    struct error err;
    char data[8];

    assert_ok(fd_write_full(p.a, "abc", 3, &err), err);
    assert_ok(fd_write_full(p.a, "de", 2, &err), err);
    assert_int_eq(fd_read_full(p.b, data, 4, &err), 4);
    assert_mem_eq(data, "abcd", 4);
    shutdown(p.a, SHUT_WR);
    assert_int_eq(fd_read_full(p.b, data, 4, &err), 1);
    assert_int_eq(fd_read_full(p.b, data, 4, &err), 0);
}

TEST(an_atomic_write_replaces_the_whole_file)
{
    auto_fd int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_free char *first = NULL;
    auto_free char *second = NULL;
    struct error err;
    size_t len;

    assert_ok(fd_write_file_atomic(dir, "f", "one", 3, &err), err);
    assert_ok(fd_read_file(dir, "f", 100, &first, &len, &err), err);
    assert_str_eq(first, "one");
    assert_ok(fd_write_file_atomic(dir, "f", "", 0, &err), err);
    assert_ok(fd_read_file(dir, "f", 100, &second, &len, &err), err);
    assert_str_eq(second, "");
    assert_uint_eq(len, 0);
}

TEST(a_file_above_its_limit_is_refused)
{
    auto_fd int dir = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto_free char *text = NULL;
    struct error err;
    size_t len;

    assert_ok(fd_write_file_atomic(dir, "f", "12345", 5, &err), err);
    assert_true(fd_read_file(dir, "f", 4, &text, &len, &err) < 0);
    assert_ok(fd_read_file(dir, "f", 5, &text, &len, &err), err);
    assert_uint_eq(len, 5);
    assert_int_eq(fd_read_file(dir, "none", 5, &text, &len, &err), -ERR_SYSTEM);
    assert_int_eq(err.sys, ENOENT);
}

TEST(descriptors_travel_close_on_exec)
{
    auto_cleanup(pair_done) struct pair p = pair_open(SOCK_SEQPACKET);
    auto_fd int sent = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int got[2] = {-1, -1};
    size_t count = ARRAY_LEN(got);
    char data[8];

    assert_int_eq(fd_send(p.a, "hi", 2, &sent, 1), 0);
    assert_int_eq(fd_recv(p.b, data, sizeof(data), got, &count), 2);
    assert_uint_eq(count, 1);
    assert_true(got[0] >= 0 && got[0] != sent);
    assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
    fd_close_all(got, count);
}

TEST(more_descriptors_than_room_is_an_error)
{
    auto_cleanup(pair_done) struct pair p = pair_open(SOCK_SEQPACKET);
    auto_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int sent[3] = {null, null, null};
    int got[2] = {-1, -1};
    size_t count = ARRAY_LEN(got);
    char data[8];

    assert_int_eq(fd_send(p.a, "hi", 2, sent, 3), 0);
    assert_int_eq(fd_recv(p.b, data, sizeof(data), got, &count), -1);
    assert_int_eq(errno, EMSGSIZE);
}

TEST(a_message_longer_than_room_is_an_error)
{
    auto_cleanup(pair_done) struct pair p = pair_open(SOCK_SEQPACKET);
    size_t count = 0;
    char data[2];

    assert_int_eq(fd_send(p.a, "long", 4, NULL, 0), 0);
    assert_int_eq(fd_recv(p.b, data, sizeof(data), NULL, &count), -1);
    close(p.a);
    p.a = -1;
    assert_int_eq(fd_recv(p.b, data, sizeof(data), NULL, &count), 0);
}

TEST(sealed_memory_cannot_change)
{
    auto_fd int fd = fd_memfd_sealed("test", "data", 4);
    char data[8];

    assert_true(fd >= 0);
    assert_int_eq(pread(fd, data, sizeof(data), 0), 4);
    assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    assert_int_eq(ftruncate(fd, 0), -1);
    assert_ptr_eq(mmap(NULL, 4, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
}

TEST(waiting_ends_at_the_deadline)
{
    auto_cleanup(pair_done) struct pair p = pair_open(SOCK_STREAM);
    int64_t start = clock_ms();

    assert_int_eq(fd_wait(p.b, POLLIN, clock_deadline(20)), 0);
    assert_true(clock_ms() - start >= 19);
    assert_int_eq(write(p.a, "x", 1), 1);
    assert_int_eq(fd_wait(p.b, POLLIN, CLOCK_FOREVER), 1);
}
