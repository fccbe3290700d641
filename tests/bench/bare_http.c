/* SPDX-License-Identifier: MIT */
/*
 * The least that can answer a request: a thread per connection that receives, and sends a constant.
 * It parses, checks and limits nothing; what it reaches is what this machine and the load generator
 * on it allow. Prints its port.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
                             "Content-Type: application/json\r\nContent-Length: 11\r\n\r\n"
                             "{\"ok\":true}";

static void *serve(void *arg)
{
    int fd = (int)(long)arg, on = 1;
    char request[4096];

    (void)!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    while (recv(fd, request, sizeof(request), 0) > 0 &&
           send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) > 0)
        ;
    close(fd);
    return NULL;
}

int main(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), conn;
    socklen_t len = sizeof(addr);

    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return 1;
    printf("%d\n", ntohs(addr.sin_port));
    fflush(stdout);
    while ((conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, serve, (void *)(long)conn) == 0)
            pthread_detach(thread);
        else
            close(conn);
    }
    return 1;
}
