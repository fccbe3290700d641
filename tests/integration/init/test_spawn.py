# SPDX-License-Identifier: MIT
"""Runs of a process: output, ends, stdin, stopping, what is left behind."""

import os
import time

import pytest

SLEEPS = ["sh", "-c", "sleep 300 & sleep 300"]


def processes(client) -> int:
    return int(client.status()["processes"])


def wait_for(condition, seconds: float = 2.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_processes(client, count: int, seconds: float = 2.0) -> None:
    """Zombies of a moment ago may still be counted."""
    wait_for(lambda: processes(client) == count, seconds)


def test_output_and_exit(client):
    run = client.spawn(["sh", "-c", "echo out; echo err >&2; exit 3"]).wait()
    assert (run.stdout, run.stderr) == (b"out\n", b"err\n")
    assert run.end["status"] == "error" and run.end["cause"] == "exit:3"
    assert run.end["exit_code"] == "3" and "signal" not in run.end
    assert run.end["stdout_bytes"] == "4" and run.end["stderr_bytes"] == "4"
    assert float(run.end["duration_ms"]) > 0


def test_success_has_no_cause(client):
    end = client.spawn(["true"]).wait().end
    assert end["status"] == "ok" and end["exit_code"] == "0" and "cause" not in end


def test_signal(client):
    end = client.spawn(["sh", "-c", "kill -SEGV $$"]).wait().end
    assert end["status"] == "error" and end["cause"] == "signal:11" and end["signal"] == "11"


@pytest.mark.parametrize("kwargs, number, text", [
    ({"argv": ["no-such-program"]}, 2, "cannot run 'no-such-program'"),
    ({"argv": ["/etc/passwd"]}, 13, "cannot run '/etc/passwd'"),
    ({"argv": ["ls"], "cwd": "/no/such/dir"}, 2, "cannot enter '/no/such/dir'"),
    ({"argv": ["ls"], "cwd": "/root"}, 13, "cannot enter '/root'"),
    ({"argv": ["ls"], "user": "root"}, 1, "nothing as root"),
    ({"argv": ["ls", "x" * (3 << 20)]}, 7, "limit of 2 MiB"),
    ({"argv": []}, None, "no program"),
])
def test_case_12_start_failure_is_a_normal_end(client, kwargs, number, text):
    run = client.spawn(**kwargs).wait()
    assert run.order == ["END"]
    assert run.end["status"] == "error" and text in run.end["message"]
    assert run.end.get("errno") == (None if number is None else str(number))
    assert client.spawn(["true"]).wait().end["status"] == "ok"


def test_path_of_the_request_is_searched(client, init):
    tool = init.workspace / "tool"
    tool.write_text("#!/bin/sh\necho found\n")
    tool.chmod(0o755)
    run = client.spawn(["tool"], env={"PATH": f"/nowhere:{init.workspace}"}).wait()
    assert run.stdout == b"found\n"


def test_a_script_without_interpreter_goes_to_no_shell(client, init):
    (init.workspace / "script").write_text("echo hello\n")
    (init.workspace / "script").chmod(0o755)
    end = client.spawn([str(init.workspace / "script")]).wait().end
    assert end["errno"] == "8"


def test_environment_is_exactly_what_was_asked(client):
    value = "a'b\"$(id)\n"
    run = client.spawn(["/usr/bin/env", "-0"], env={"ONLY": value}).wait()
    assert run.stdout.decode().split("\0")[:-1] == [f"ONLY={value}"]


def test_what_a_process_is_given(client, init):
    script = """
        cat /proc/self/status; ls -l /proc/self/fd; umask; cat /proc/self/oom_score_adj
        cat /proc/self/stat | cut -d' ' -f5,6; echo $$; ulimit -c"""
    run = client.spawn(["sh", "-c", script]).wait()
    lines = dict(line.split(":\t", 1) for line in run.stdout.decode().splitlines() if ":\t" in line)
    assert lines["Uid"].split() == ["65532"] * 4 and lines["Gid"].split() == ["65532"] * 4
    assert lines["Groups"].split() in ([], ["65532"]) and lines["NoNewPrivs"] == "1"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(lines[name], 16) == 0, name
    for name in ("SigBlk", "SigIgn"):
        assert int(lines[name], 16) == 0, name
    rest = run.stdout.decode().split("total 0\n")[1].splitlines()
    assert [line.split()[8] for line in rest[:4]] == ["0", "1", "2", "3"]  # 3: ls reads the list
    assert rest[0].endswith("/dev/null") and "pipe:" in rest[1] and "/proc/" in rest[3]
    assert rest[4:6] == ["0022", "1000"]


def test_stdout_can_be_opened_again(client):
    run = client.spawn(["sh", "-c", "echo a >/dev/stdout; echo b | tee /dev/stderr"]).wait()
    assert run.stdout == b"a\nb\n" and run.stderr == b"b\n"


def test_stdin(client):
    run = client.spawn(["cat"], stdin=True)
    run.input(b"one\n").input(b"two\n").input(b"").wait()
    assert run.stdout == b"one\ntwo\n" and run.end["status"] == "ok"


def test_stdin_of_megabytes(client):
    data = os.urandom(1 << 20) * 12
    run = client.spawn(["cat"], stdin=True)
    for at in range(0, len(data), 1 << 20):
        run.input(data[at:at + (1 << 20)])
    run.input(b"").wait()
    assert run.stdout == data


def test_stdin_that_nobody_reads(client):
    run = client.spawn(["true"], stdin=True).wait()
    run.input(b"x" * 100_000)
    assert client.spawn(["true"]).wait().end["status"] == "ok"


def test_case_15_bytes_are_kept(client):
    run = client.spawn(["printf", r"ok \377\376 caf\351\n"]).wait()
    assert run.stdout == b"ok \xff\xfe caf\xe9\n"


def test_case_09_timeout_kills_the_thing_inside(client):
    begin = time.monotonic()
    run = client.spawn(SLEEPS, timeout_ms=500).wait()
    assert 0.5 <= time.monotonic() - begin < 1.5
    assert run.end["status"] == "timeout" and run.end["cause"] == "timeout"
    assert run.end["signal"] == "9"
    assert client.spawn(["pgrep", "-x", "sleep"]).wait().stdout == b""


def test_timeout_reaches_daemons(client):
    """Double forks, own sessions, own groups: all that this run started."""
    script = """
import os, sys, time
for style in ("setsid", "group", "twice"):
    if os.fork() == 0:
        if style == "group":
            os.setpgid(0, 0)
        else:
            os.setsid()
        if style == "twice" and os.fork():
            os._exit(0)
        time.sleep(300)
print("started", flush=True)
time.sleep(300)
"""
    run = client.spawn(["/usr/bin/python3", "-c", script], timeout_ms=800).wait()
    assert run.stdout == b"started\n" and run.end["status"] == "timeout"
    wait_processes(client, 0)


def test_timeout_spares_other_runs(client):
    other = client.spawn(["sh", "-c", "sleep 2 & sleep 2; echo done"])
    assert client.spawn(SLEEPS, timeout_ms=300).wait().end["status"] == "timeout"
    assert other.wait().stdout == b"done\n"


def test_timeout_of_a_process_that_ignores_everything(client):
    script = "trap '' INT TERM HUP QUIT; kill -STOP $$; while :; do :; done"
    begin = time.monotonic()
    end = client.spawn(["sh", "-c", script], timeout_ms=300).wait().end
    assert end["status"] == "timeout" and time.monotonic() - begin < 1.5


def test_timeout_of_a_fork_bomb(client):
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass\n"
    limited = f"import resource as r; r.setrlimit(r.RLIMIT_NPROC, (300, 300))\n{bomb}"
    begin = time.monotonic()
    end = client.spawn(["/usr/bin/python3", "-c", limited], timeout_ms=700).wait().end
    assert end["status"] == "timeout" and time.monotonic() - begin < 6
    wait_processes(client, 0)


def test_interrupt_then_kill(client):
    polite = client.spawn(["sh", "-c", "trap 'echo bye; exit 7' INT; while :; do sleep 0.05; done"])
    time.sleep(0.2)
    end = polite.interrupt().wait().end
    assert polite.stdout == b"bye\n"
    assert end["status"] == "interrupted" and end["cause"] == "user" and end["exit_code"] == "7"
    deaf = client.spawn(["sh", "-c", "trap '' INT; while :; do sleep 0.05; done"])
    time.sleep(0.2)
    begin = time.monotonic()
    end = deaf.interrupt().wait().end
    assert end["status"] == "interrupted" and end["signal"] == "9"
    assert 1.9 < time.monotonic() - begin < 3


def test_kill(client):
    run = client.spawn(SLEEPS)
    time.sleep(0.1)
    end = run.kill().wait().end
    assert end["status"] == "interrupted" and end["cause"] == "user" and end["signal"] == "9"
    wait_processes(client, 0)


def test_background_process_does_not_hold_the_end(client):
    script = "(sleep 0.3; seq 100000; echo more; touch finished) & echo first"
    begin = time.monotonic()
    run = client.spawn(["sh", "-c", script]).wait()
    assert run.stdout == b"first\n" and run.end["status"] == "ok"
    assert time.monotonic() - begin < 0.3
    # Its pipe is still read, so it comes to its end.
    time.sleep(0.6)
    assert client.file("STAT", "finished").end["status"] == "ok"
    assert len(run.frames) == 2


def test_case_10_big_burst(client):
    run = client.spawn(["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' z; echo; echo LAST"])
    run.wait()
    assert run.end["stdout_bytes"] == "5000006" and run.stdout.endswith(b"zzz\nLAST\n")


def test_flow_control(start):
    """A client that does not give credit gets the window and no more; nothing piles up in init."""
    init = start()
    with init.connect(credit=False) as client:
        run = client.spawn(["sh", "-c", "yes | head -c 60000000"])
        quiet = 0
        while quiet < 5:
            quiet = 0 if client.read(0.1) else quiet + 1
        assert 4 << 20 <= len(run.stdout) <= (4 << 20) + (64 << 10)
        assert init.rss() < 40 << 20
        client.credit = True
        client.give_credit(run)
        run.wait()
        assert len(run.stdout) == 60_000_000 and not run.of("DROPPED")


def test_endless_output_is_bounded(start):
    init = start()
    with init.connect() as client:
        number = client.spawn(["yes"], timeout_ms=3000).number
        time.sleep(0.2)
    time.sleep(3.2)
    assert init.rss() < 20 << 20
    with init.connect() as client:
        assert client.runs[number][1] == "done"
        run = client.attach(number).wait()
        assert run.order == ["STDOUT", "DROPPED", "STDOUT", "END"]
        dropped = run.of("DROPPED")[0]
        assert run.end["status"] == "timeout"
        assert int(run.end["stdout_bytes"]) == len(run.stdout) + int(dropped["stdout_bytes"])
        head = b"".join(f.payload for f in run.frames[:[f.kind for f in run.frames]
                                                     .index("DROPPED")])
        assert len(head) >= 256 << 10 and len(run.stdout) - len(head) >= 3 << 20


def test_res_08_no_newline_and_many_lines(client):
    run = client.spawn(["sh", "-c", "head -c 100000000 /dev/zero; exec >&-; sleep 0.1"]).wait()
    assert run.end["stdout_bytes"] == "100000000" and run.end["status"] == "ok"
    run = client.spawn(["sh", "-c", "yes a | head -n 1000000"]).wait()
    assert len(run.stdout) == 2_000_000


def test_res_13_zombies(client, init):
    """10,000 children that nobody waits for, then as many orphans of a daemon."""
    children = "for (1..10000) { exit 0 unless fork }"
    daemon = f"exit 0 if fork; setpgrp; {children}"
    assert client.spawn(["perl", "-e", children]).wait(60).end["status"] == "ok"
    wait_processes(client, 0, 10 if init.sanitized else 3)
    assert client.spawn(["perl", "-e", daemon]).wait(60).end["status"] == "ok"
    wait_processes(client, 0, 40)


def test_sweep(client):
    script = "for i in 1 2 3 4 5; do (setsid sleep 300 &) ; done; echo ok"
    assert client.spawn(["sh", "-c", script]).wait().stdout == b"ok\n"
    running = client.spawn(["sleep", "300"])
    assert processes(client) >= 6
    assert client.sweep()["status"] == "ok"
    assert running.wait().end["status"] == "interrupted"
    wait_processes(client, 0)


def test_sweep_of_a_fork_bomb(client):
    bomb = """
import os, resource
resource.setrlimit(resource.RLIMIT_NPROC, (300, 300))
os.setsid()
if os.fork(): os._exit(0)
while True:
    try: os.fork()
    except OSError: pass
"""
    client.spawn(["/usr/bin/python3", "-c", bomb]).wait()
    time.sleep(0.5)
    begin = time.monotonic()
    assert client.sweep()["status"] == "ok"
    assert time.monotonic() - begin < 5
    wait_processes(client, 0)


def test_many_runs_at_once(client):
    runs = [client.spawn(["sh", "-c", f"echo {i}; sleep 0.2; echo {i} >&2"]) for i in range(40)]
    for i, run in enumerate(runs):
        run.wait()
        assert run.stdout == run.stderr == b"%d\n" % i
        run.ack()


def test_runs_that_nobody_acknowledges_are_limited(client):
    runs = [client.spawn(["true"]) for _ in range(64)]
    refused = client.spawn(["true"]).wait()
    assert refused.end["status"] == "error" and "acknowledged" in refused.end["message"]
    for run in runs:
        run.wait().ack()
    assert client.spawn(["true"]).wait().end["status"] == "ok"


def test_no_descriptor_is_leaked(client, init):
    def count():
        return len(os.listdir(f"/proc/{init.pid}/fd"))

    client.spawn(["true"]).wait().ack()
    before = count()
    for _ in range(50):
        client.spawn(["cat"], stdin=True).input(b"x").input(b"").wait().ack()
        client.spawn(["nope"]).wait().ack()
        client.read_file("/etc/passwd")
    wait_for(lambda: count() == before)
