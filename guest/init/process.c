/* SPDX-License-Identifier: MIT */
/*
 * Starting a process. The child goes through a table of steps; the first that fails is written,
 * with its errno, to a close-on-exec pipe whose end of file means success.
 */
#include "init/process.h"

#include "base/fd.h"
#include "base/signals.h"
#include "base/str.h"
#include "init/config.h"
#include "init/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { FD_HIGH = 16, EXIT_NOT_STARTED = 127 };

static const char path_default[] = "/usr/local/bin:/usr/bin:/bin";

static struct {
    int null_fd;
    int oom_fd;
    char oom[16]; /* init's own oom_score_adj */
    size_t oom_len;
} process = {.null_fd = -1, .oom_fd = -1};

int process_setup(struct error *reterr)
{
    ssize_t n;

    process.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (process.null_fd < 0)
        return error_sys(reterr, errno, "cannot open '/dev/null'");
    /* Landlock will not let init write below /proc; a descriptor of before goes on working. */
    process.oom_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (process.oom_fd < 0)
        return 0;
    n = pread(process.oom_fd, process.oom, sizeof(process.oom), 0);
    process.oom_len = n > 0 ? (size_t)n : 0;
    return 0;
}

int process_null_fd(void)
{
    return process.null_fd;
}

/* ---- the request ---- */

void process_spec_done(struct process_spec *spec)
{
    free(spec->argv);
    free(spec->env);
    free(spec->cwd);
    *spec = (struct process_spec){.fds = {-1, -1, -1, -1}};
}

static int spec_user(struct process_spec *spec, const struct fields *f, struct error *reterr)
{
    auto_free char *user = NULL;
    struct field field;

    if (!fields_find(f, "user", &field))
        return 0;
    if (fields_get_str(f, "user", &user, reterr) < 0)
        return -(int)ERR_PROTOCOL;
    if (str_eq(user, "sandbox"))
        return 0;
    if (!str_eq(user, "root"))
        return error_set(reterr, ERR_INVALID, "user '%.40s' is neither sandbox nor root", user);
    spec->user = IDS_ROOT;
    if (config.as_root)
        return 0;
    (void)error_set(reterr, ERR_DENIED, "this sandbox runs nothing as root");
    if (reterr)
        reterr->sys = EPERM;
    return -(int)ERR_DENIED;
}

int process_spec_parse(struct process_spec *spec, const struct fields *f, struct error *reterr)
{
    struct field cwd;
    size_t count;
    int r;

    *spec = (struct process_spec){.fds = {-1, -1, -1, -1}};
    if (f->len > PROCESS_ARGS_MAX) {
        r = error_set(reterr, ERR_LIMIT, "arguments and environment are above the limit of 2 MiB");
        if (reterr)
            reterr->sys = E2BIG;
        return r;
    }
    r = fields_get_strv(f, "argv", &spec->argv, &count, reterr);
    if (r < 0)
        return r;
    if (count == 0 || !spec->argv[0][0])
        return error_set(reterr, ERR_INVALID, "there is no program to run");
    r = fields_get_strv(f, "env", &spec->env, NULL, reterr);
    if (r < 0)
        return r;
    if (fields_find(f, "cwd", &cwd))
        r = fields_get_str(f, "cwd", &spec->cwd, reterr);
    return r < 0 ? r : spec_user(spec, f, reterr);
}

/* ---- descriptors ---- */

static int pair_open(enum ids_user owner, int ret[2], int (*make)(int *))
{
    int r;

    /* The inode takes its owner from the file system ids of its maker. */
    if (!ids_enter(owner))
        return -1;
    r = make(ret);
    ids_leave();
    return r;
}

static int make_pipe(int *fds)
{
    return pipe2(fds, O_CLOEXEC);
}

static int make_socketpair(int *fds)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
}

static int pair_finish(int *fds)
{
    if (fd_set_nonblock(fds[0], true) == 0)
        return 0;
    fd_close_all(fds, 2);
    return -1;
}

int process_pipe_out(const struct process_spec *spec, int ret[2])
{
    return pair_open(spec->user, ret, make_pipe) < 0 ? -1 : pair_finish(ret);
}

int process_pipe_in(const struct process_spec *spec, int ret[2])
{
    int fds[2];

    if (pair_open(spec->user, fds, make_pipe) < 0)
        return -1;
    ret[0] = fds[1];
    ret[1] = fds[0];
    return pair_finish(ret);
}

int process_socketpair(const struct process_spec *spec, int ret[2])
{
    return pair_open(spec->user, ret, make_socketpair) < 0 ? -1 : pair_finish(ret);
}

/* ---- in the child ---- */

struct child {
    const struct process_spec *spec;
    int status;
};

/* A session of its own, so that what it starts can be found again, whatever groups a shell makes.
 */
static int step_session(struct child *c)
{
    return setsid() < 0 ? -1 : 0;
}

/* Descriptors go up first: a source may have the number that another one is to take. */
static int step_descriptors(struct child *c)
{
    int high[PROCESS_FDS], count = c->spec->fds[PROCESS_FDS - 1] >= 0 ? PROCESS_FDS : 3, status;

    for (int i = 0; i < count; i++) {
        high[i] = fcntl(c->spec->fds[i], F_DUPFD_CLOEXEC, FD_HIGH);
        if (high[i] < 0)
            return -1;
    }
    /* What has failed is told by the old one. */
    status = fcntl(c->status, F_DUPFD_CLOEXEC, FD_HIGH);
    if (status < 0)
        return -1;
    c->status = status;
    for (int i = 0; i < count; i++) {
        if (dup2(high[i], i) < 0)
            return -1;
    }
    status = dup3(c->status, count, O_CLOEXEC);
    if (status < 0)
        return -1;
    c->status = status;
    return close_range((unsigned)count + 1, ~0u, 0);
}

static int step_ids(struct child *c)
{
    return ids_become(c->spec->user);
}

/* init ignores SIGPIPE and blocks everything; both would be inherited over exec. */
static int step_signals(struct child *c)
{
    return signals_default();
}

/* As the user, who must be able to enter it. */
static int step_cwd(struct child *c)
{
    umask(022);
    return chdir(c->spec->cwd ? c->spec->cwd : config.workspace);
}

/* Nearly last: the steps before need calls that the program forbids. */
static int step_seccomp(struct child *c)
{
    struct sock_fprog program = {.len = (unsigned short)config.filter_count,
                                 .filter = config.filter};

    if (!config.filter)
        return 0;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static const char *env_find(char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; *env; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    }
    return NULL;
}

/*
 * execvpe() would hand a script without an interpreter line to a shell. The request's PATH begins
 * with directories that user code can write: what it puts there must not become the next kernel.
 */
static char *const *spec_env(const struct process_spec *spec)
{
    return spec->env_fallback && !spec->env[0] ? spec->env_fallback : spec->env;
}

static int step_exec(struct child *c)
{
    char **argv = c->spec->argv, file[4096];
    char *const *env = spec_env(c->spec);
    const char *dirs = c->spec->fds[PROCESS_FDS - 1] >= 0 ? NULL : env_find(env, "PATH");
    int worst = ENOENT;

    if (strchr(argv[0], '/'))
        return execve(argv[0], argv, env);
    for (dirs = dirs ? dirs : path_default; dirs; dirs = strchr(dirs, ':')) {
        int len;

        dirs += *dirs == ':';
        len = (int)strcspn(dirs, ":");
        if (snprintf(file, sizeof(file), "%.*s/%s", len ? len : 1, len ? dirs : ".", argv[0]) >=
            (int)sizeof(file))
            continue;
        execve(file, argv, env);
        if (errno != ENOENT && errno != ENOTDIR)
            worst = errno;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            break;
    }
    errno = worst;
    return -1;
}

static const struct step {
    const char *what;
    int (*run)(struct child *c);
} steps[] = {
    {"cannot begin a session", step_session},
    {"cannot arrange descriptors", step_descriptors},
    {"cannot take the user's identity", step_ids},
    {"cannot reset signals", step_signals},
    {"cannot enter", step_cwd},
    {"cannot load the seccomp program", step_seccomp},
    {"cannot run", step_exec},
};

struct report {
    int step;
    int sys;
};

/* _exit() alone: buffers and exit handlers are those of init. */
static _Noreturn void child_main(const struct process_spec *spec, int status)
{
    struct child c = {.spec = spec, .status = status};

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (steps[i].run(&c) < 0) {
            struct report report = {.step = (int)i, .sys = errno};

            (void)!write(c.status, &report, sizeof(report));
            _exit(EXIT_NOT_STARTED);
        }
    }
    _exit(EXIT_NOT_STARTED);
}

/* ---- in init ---- */

/* A child inherits the score of its parent, and cannot write its own under Landlock. */
static pid_t fork_expendable(void)
{
    pid_t pid;

    if (process.oom_len)
        (void)!pwrite(process.oom_fd, "1000", 4, 0);
    pid = fork();
    if (pid != 0 && process.oom_len)
        (void)!pwrite(process.oom_fd, process.oom, process.oom_len, 0);
    return pid;
}

int process_start(const struct process_spec *spec, pid_t *ret_pid, int *ret_status,
                  struct error *reterr)
{
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return error_sys(reterr, errno, "cannot start '%.200s'", spec->argv[0]);
    pid = fork_expendable();
    if (pid == 0)
        child_main(spec, fds[1]);
    close(fds[1]);
    if (pid < 0) {
        close(fds[0]);
        return error_sys(reterr, errno, "cannot start '%.200s'", spec->argv[0]);
    }
    *ret_pid = pid;
    *ret_status = fds[0];
    return 0;
}

/* The pipe closes by itself when exec succeeds; a report is smaller than PIPE_BUF, so never cut. */
int process_status(const struct process_spec *spec, int status_fd, struct error *reterr)
{
    struct report report;
    ssize_t n = read(status_fd, &report, sizeof(report));
    const struct step *step;

    if (n == 0)
        return 1;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : error_sys(reterr, errno, "cannot start");
    if (n != sizeof(report) || report.step < 0 || (size_t)report.step >= ARRAY_LEN(steps))
        return error_set(reterr, ERR_INTERNAL, "the start of a process went wrong");
    step = &steps[report.step];
    if (step->run == step_cwd)
        return error_sys(reterr, report.sys, "cannot enter '%.200s'",
                         spec->cwd ? spec->cwd : config.workspace);
    if (step->run == step_exec)
        return error_sys(reterr, report.sys, "cannot run '%.200s'", spec->argv[0]);
    return error_sys(reterr, report.sys, "%s", step->what);
}

void process_signal_group(pid_t pid, int sig)
{
    if (pid > 0 && kill(-pid, sig) < 0 && errno == ESRCH)
        kill(pid, sig);
}
