/* SPDX-License-Identifier: MIT */
/* A server that was started here stays ours, whatever is found later; whose a port is. */
#include "cli/local_server.h"

#include "base/fd.h"
#include "cli/port_owner.h"
#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char url[] = "http://127.0.0.1:8000";

/* A server as it is known after its start. */
static struct local_server started(void)
{
    struct local_server s = {.life = open("/dev/null", O_WRONLY | O_CLOEXEC)};
    const char *argv[] = {"sleep", "600", NULL};

    snprintf(s.url, sizeof(s.url), "%s", url);
    snprintf(s.log, sizeof(s.log), "log");
    assert_true(s.life >= 0);
    assert_int_eq(posix_spawn(&s.pid, "/bin/sleep", NULL, NULL, (char *const *)argv, NULL), 0);
    return s;
}

static struct local_server found(void)
{
    struct local_server s = {.life = -1};

    snprintf(s.url, sizeof(s.url), "%s", url);
    return s;
}

TEST(a_server_of_ours_that_answers_again_stays_ours)
{
    struct local_server s, there = found();
    pid_t pid;

    if (test_is_torture())
        test_skip("starts a program");
    s = started();
    pid = s.pid;
    local_server_adopt(&s, &there);
    assert_int_eq(s.pid, pid);
    assert_str_eq(s.log, "log");
    local_server_done(&s);
    assert_int_eq(s.pid, 0);
    assert_int_eq(kill(pid, 0), -1);
}

TEST(a_server_that_has_ended_gives_way_to_the_one_that_is_there)
{
    struct local_server s, there = found();
    siginfo_t info;

    if (test_is_torture())
        test_skip("starts a program");
    s = started();
    assert_int_eq(kill(s.pid, SIGKILL), 0);
    assert_int_eq(waitid(P_PID, (id_t)s.pid, &info, WEXITED | WNOWAIT), 0);
    local_server_adopt(&s, &there);
    assert_int_eq(s.pid, 0);
    assert_str_eq(s.log, "");
    assert_true(local_server_is_alive(&s));
}

/* Listens at a port of the kernel's choice; returns it. */
static uint16_t port_take(const char *address, int *ret)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);

    assert_int_eq(inet_pton(AF_INET, address, &at.sin_addr), 1);
    *ret = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(*ret >= 0);
    assert_int_eq(bind(*ret, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_eq(listen(*ret, 1), 0);
    assert_int_eq(getsockname(*ret, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static int check(const char *host, uint16_t port, struct error *reterr)
{
    struct url u = {.port = port};

    snprintf(u.host, sizeof(u.host), "%s", host);
    return port_owner_check(&u, reterr);
}

TEST(a_port_is_trusted_by_its_listener)
{
    static const struct {
        const char *listens, *host;
        bool seen;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1", true}, {"127.0.0.1", "localhost", true},
        {"0.0.0.0", "127.0.0.1", true},   {"127.0.0.2", "127.0.0.1", false},
        {"0.0.0.0", "::1", false},
    };

    if (test_is_torture())
        test_skip("takes ports");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_fd int fd = -1;
        uint16_t port = port_take(cases[i].listens, &fd);
        struct error error = {};

        assert_int_eq(check(cases[i].host, port, &error), cases[i].seen ? 0 : -ERR_DENIED);
        if (!cases[i].seen)
            assert_str_has(error.text, "cannot be seen");
    }
}

TEST(a_listener_of_another_user_is_named)
{
    auto_fd int fd = -1;
    struct error error = {};
    uint16_t port;

    if (test_is_torture() || geteuid() != 0)
        test_skip("takes ports as two users");
    assert_int_eq(seteuid(65534), 0);
    port = port_take("127.0.0.1", &fd);
    assert_int_eq(seteuid(0), 0);
    assert_int_eq(check("127.0.0.1", port, &error), -ERR_DENIED);
    assert_str_has(error.text, "user 65534 listens");
}
