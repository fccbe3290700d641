/* SPDX-License-Identifier: MIT */
/* Instance directories: names, locks that end with their holder, and what is left afterwards. */
#include "engine/native/instance.h"

#include "base/str.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static const char *state(void)
{
    static char path[300];

    snprintf(path, sizeof(path), "%s/state", test_dir());
    return path;
}

static bool is_there(const char *name)
{
    char path[400];

    snprintf(path, sizeof(path), "%s/%s", state(), name);
    return access(path, F_OK) == 0;
}

TEST(the_lowest_free_number_is_taken)
{
    struct instance a, b, c;
    struct error err;

    assert_ok(instance_take(state(), "run", &a, &err), err);
    assert_ok(instance_take(state(), "run", &b, &err), err);
    assert_str_eq(a.name, "run-0");
    assert_str_eq(b.name, "run-1");
    instance_release(&a, state());
    assert_false(is_there("run/run-0"));
    assert_ok(instance_take(state(), "run", &c, &err), err);
    assert_str_eq(c.name, "run-0");
    assert_ok(instance_take(state(), "mcp", &a, &err), err);
    assert_str_eq(a.name, "mcp-0");
    instance_release(&a, state());
    instance_release(&b, state());
    instance_release(&c, state());
    assert_int_eq(a.dir, -1);
    assert_true(is_there("run"));
}

TEST(a_state_directory_that_others_can_change_is_refused)
{
    static const mode_t good[] = {0755, 01777};
    struct instance a;
    struct error err;
    char run[400];

    assert_int_eq(mkdir(state(), 0700), 0);
    assert_int_eq(chmod(state(), 0770), 0);
    assert_int_eq(instance_take(state(), "run", &a, &err), -ERR_DENIED);
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_eq(chmod(state(), good[i]), 0);
        assert_ok(instance_take(state(), "run", &a, &err), err);
        instance_release(&a, state());
    }
    snprintf(run, sizeof(run), "%s/run", state());
    assert_int_eq(chmod(run, 0702), 0);
    assert_int_eq(instance_take(state(), "run", &a, &err), -ERR_DENIED);
    assert_int_eq(chmod(run, 0700), 0);
    if (geteuid() != 0)
        return;
    assert_int_eq(chown(state(), 1234, 0), 0);
    assert_int_eq(instance_take(state(), "run", &a, &err), -ERR_DENIED);
    assert_str_has(err.text, "must belong to user 0");
}

TEST(there_is_one_server_and_the_second_is_told_of_it)
{
    struct instance a, b;
    struct error err;
    char pid[32];

    snprintf(pid, sizeof(pid), "process id %d uses", (int)getpid());
    assert_ok(instance_take(state(), "server", &a, &err), err);
    assert_str_eq(a.name, "server");
    assert_int_eq(instance_take(state(), "server", &b, &err), -ERR_BUSY);
    assert_str_has(err.text, pid);
    assert_str_has(err.text, state());
    instance_release(&a, state());
    assert_ok(instance_take(state(), "server", &b, &err), err);
    instance_release(&b, state());
}

TEST(a_lock_file_without_a_holder_means_nothing)
{
    struct instance a, b;
    struct error err;

    assert_ok(instance_take(state(), "server", &a, &err), err);
    close(a.dir);
    close(a.lock);
    assert_true(is_there("run/server/lock"));
    assert_ok(instance_take(state(), "server", &b, &err), err);
    instance_release(&b, state());
}

TEST(a_directory_in_use_by_a_keeper_is_left)
{
    struct instance a;
    struct error err;
    int fd;

    assert_ok(instance_take(state(), "run", &a, &err), err);
    fd = openat(a.dir, "keeper.sock", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    instance_release(&a, state());
    assert_true(is_there("run/run-0/lock"));
    assert_ok(instance_take(state(), "run", &a, &err), err);
    assert_str_eq(a.name, "run-0");
    assert_int_eq(unlinkat(a.dir, "keeper.sock", 0), 0);
    instance_release(&a, state());
    assert_false(is_there("run/run-0"));
}

TEST(only_names_are_names)
{
    static const char *const bad[] = {
        "", "..", "../x", "a/b", "a b", "\xc3\xa4", "0123456789012345678901234567890123456789x",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct instance a;
        struct error err;

        assert_int_eq(instance_take(state(), bad[i], &a, &err), -ERR_INVALID);
    }
}

TEST(a_link_in_the_place_of_a_directory_is_not_followed)
{
    struct instance a;
    struct error err;
    char path[400];

    assert_ok(instance_take(state(), "run", &a, &err), err);
    instance_release(&a, state());
    snprintf(path, sizeof(path), "%s/run/run-0", state());
    assert_int_eq(symlink(test_dir(), path), 0);
    assert_true(instance_take(state(), "run", &a, &err) < 0);
}

static int name_count(void *user, const char *name, int dir)
{
    int *counts = user;

    counts[str_eq(name, "run-0")]++;
    return faccessat(dir, "lock", F_OK, 0);
}

static int stop_at_once(void *user, const char *name, int dir)
{
    return -7;
}

TEST(every_instance_is_visited)
{
    struct instance a, b;
    int counts[2] = {};
    struct error err;

    assert_ok(instance_take(state(), "run", &a, &err), err);
    assert_ok(instance_take(state(), "server", &b, &err), err);
    assert_ok(instance_each(state(), name_count, counts, &err), err);
    assert_int_eq(counts[0], 1);
    assert_int_eq(counts[1], 1);
    assert_int_eq(instance_each(state(), stop_at_once, NULL, &err), -7);
    instance_release(&a, state());
    instance_release(&b, state());
}

TEST(a_socket_is_reached_however_long_its_path_is)
{
    char name[100], path[500];
    struct sockaddr_un address;
    auto_fd int dir = -1, sock = -1, client = -1;

    memset(name, 'd', 99);
    name[99] = 0;
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    assert_int_eq(mkdir(path, 0700), 0);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    assert_int_eq(instance_socket_connect(dir, "sock", SOCK_SEQPACKET), -1);
    sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    instance_socket_address(dir, "sock", &address);
    assert_int_eq(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_eq(listen(sock, 1), 0);
    client = instance_socket_connect(dir, "sock", SOCK_SEQPACKET);
    assert_true(client >= 0);
    assert_true(fcntl(client, F_GETFD) & FD_CLOEXEC);
}

/* ---- races ---- */

enum { TAKERS = 4, ROUNDS = 200 };

struct taker {
    char state[300];
    pthread_t thread;
    int *holders; /* how many think they are the server */
    int problems;
};

static void *taker_main(void *arg)
{
    struct taker *t = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct instance a;
        int r = instance_take(t->state, "server", &a, NULL);

        if (r < 0) {
            t->problems += r != -ERR_BUSY;
            continue;
        }
        t->problems += __atomic_add_fetch(t->holders, 1, __ATOMIC_SEQ_CST) != 1;
        __atomic_sub_fetch(t->holders, 1, __ATOMIC_SEQ_CST);
        instance_release(&a, t->state);
    }
    return NULL;
}

TEST(no_two_hold_a_name_while_others_let_go_of_it)
{
    static struct taker takers[TAKERS];
    int holders = 0;

    if (test_is_torture())
        test_skip("its threads make which call fails a matter of chance");
    for (size_t i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.holders = &holders};
        snprintf(takers[i].state, sizeof(takers[i].state), "%s", state());
        assert_int_eq(pthread_create(&takers[i].thread, NULL, taker_main, &takers[i]), 0);
    }
    for (size_t i = 0; i < TAKERS; i++)
        pthread_join(takers[i].thread, NULL);
    for (size_t i = 0; i < TAKERS; i++)
        assert_int_eq(takers[i].problems, 0);
}
