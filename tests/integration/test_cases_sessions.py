# SPDX-License-Identifier: MIT
"""Field cases about sessions, death, time-outs and limits; each is named after its number."""

import json
import os
import time

import leaks
import pytest
import sa as sa_module

MIB = 1 << 20


def text(result):
    """The text/plain of a result object's value."""
    return (result["result"] or {}).get("text/plain")


def test_case_01_state_lives_in_the_session(make, sa):
    session, other = make(), make()
    assert session.execute("total = 40")["status"] == "ok"
    result = session.execute("total + 2")
    assert text(result) == "42" and result["state"] == "kept" and result["success"]
    result = other.execute("total")
    assert result["status"] == "error" and result["error"]["type"] == "NameError"
    with pytest.raises(sa_module.Error, match="unknown session") as e:
        sa.session("0" * 32).execute("1")
    assert e.value.name == "NOT_FOUND"


OOM = {
    "python": (
        "keep = 7",
        "blob = bytearray(3 * 1024**3); blob[::4096] = b'x' * len(blob[::4096])",
    ),
    "node": ("globalThis.keep = 7", "const a=[]; for(;;) a.push(Buffer.alloc(1<<20, 1))"),
    "r": ("keep <- 7", "x <- lapply(1:4000, function(i) raw(1e6)+as.raw(1))"),
}


@pytest.mark.parametrize("language", OOM)
def test_case_02_oom_is_named(make, language):
    session = make(language, memory_bytes=256 * MIB)
    keep, blob = OOM[language]
    assert session.execute(keep)["status"] == "ok"
    result = session.execute(blob, timeout=60)
    if result["status"] == "error":
        assert language in ("python", "r") and result["state"] == "kept"
        assert text(session.execute("keep")) in ("7", "[1] 7")
        return
    assert (result["status"], result["cause"], result["state"]) == ("died", "oom", "lost")
    assert "256 MiB" in result["message"]
    with pytest.raises(sa_module.Error, match="died \\(oom\\)") as e:
        session.execute("keep")
    assert e.value.name == "DIED"


def test_case_04_large_import_does_not_break_the_stream(make):
    session = make()
    for _ in range(50):
        result = session.execute(
            "import pandas as pd, matplotlib.pyplot as plt\n"
            'print(pd.DataFrame({"q":[1,2]}).to_string())'
        )
        assert result["status"] == "ok" and result["stdout"].split() == ["q", "0", "1", "1", "2"]


LOOPS = {
    "python": (
        'import time\nmark = "here"\nprint("before", flush=True)\nwhile True: time.sleep(0.05)',
        "mark",
        "'here'",
    ),
    "node": ('globalThis.mark = 1; console.log("before"); while(true){}', "mark", "1"),
    "r": ('mark <- 1; cat("before\\n"); repeat {}', "mark", "[1] 1"),
}


@pytest.mark.parametrize("language", LOOPS)
def test_case_07_timeout_is_real_and_keeps_state(make, language):
    session = make(language)
    code, look, value = LOOPS[language]
    start = time.monotonic()
    result = session.execute(code, timeout=2)
    took = time.monotonic() - start
    assert 2.0 <= took < 3.5
    assert (result["status"], result["cause"], result["state"]) == ("timeout", "timeout", "kept")
    assert result["stdout"] == "before\n"
    assert result["error"]["type"] == "TimeoutError"
    assert text(session.execute(look)) == value


def test_case_07_a_plot_before_the_timeout_is_delivered(make):
    session = make()
    session.execute("import matplotlib.pyplot as plt")
    result = session.execute("plt.plot([1, 2]); plt.show()\nwhile True: pass", timeout=2)
    assert result["status"] == "timeout"
    assert [d["type"] for d in result["display_outputs"]] == ["image/png"]


def test_case_07_code_that_swallows_interrupts_costs_the_state_only(make):
    session = make()
    result = session.execute(
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('x', flush=True)\nwhile True: pass",
        timeout=1,
    )
    assert (result["status"], result["state"], result["stdout"]) == ("timeout", "lost", "x\n")
    assert text(session.execute("1 + 1")) == "2"


def test_case_09_timeout_kills_what_is_inside(make):
    session = make()
    result = session.terminal("sh -c 'sleep 300 & sleep 300'", timeout=1)
    assert result["status"] == "timeout"
    assert session.terminal("ps -e -o comm= | grep -c sleep")["stdout"].strip() == "0"


def test_case_12_start_failure_is_a_normal_error(make):
    session = make()
    with session.run("true", kind="command", cwd="/no/such/dir") as run:
        result = run.result()
    assert result["status"] == "error" and not result["success"]
    assert text(session.execute("1")) == "1"


DEATHS = {
    "import sys; sys.exit(3)": ("error", None, "kept"),
    "import os; os._exit(5)": ("died", "exit:5", "lost"),
    "import ctypes; ctypes.string_at(0)": ("died", "signal:11", "lost"),
}


@pytest.mark.parametrize("code", DEATHS)
def test_case_54_exits_and_crashes_are_told_apart(make, code):
    session = make()
    session.execute("keep = 1")
    result = session.execute(code)
    assert (result["status"], result["cause"], result["state"]) == DEATHS[code]
    if result["state"] == "kept":
        assert result["error"]["type"] == "SystemExit"
        assert text(session.execute("keep")) == "1"
    else:
        assert session.execute("keep")["error"]["type"] == "NameError"


def test_a_kernel_that_dies_between_cells_is_told(make):
    session = make()
    session.execute("import threading, os, time\nkeep = 1\n"
                    "threading.Timer(0.5, lambda: os._exit(7)).start()")
    time.sleep(2)
    result = session.execute("1 + 1")
    assert (result["status"], result["state"], text(result)) == ("ok", "lost", "2")
    assert "exit:7" in result["message"] and "lost" in result["message"]
    assert session.execute("1")["state"] == "kept"


def test_case_57_input_without_a_client_is_an_immediate_error(make):
    for language, code in (
        ("python", 'input("name? ")'),
        ("r", 'readline("name? ")'),
        ("node", 'prompt("name? ")'),
    ):
        start = time.monotonic()
        result = make(language).execute(code, timeout=20)
        assert result["status"] == "error", (language, result)
        assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "language,code,value",
    [
        ("python", 'x = input("name? ")\nx', "'Ann'"),
        ("r", 'x <- readline("name? ")\nx', '[1] "Ann"'),
        ("node", 'prompt("name? ")', "'Ann'"),
    ],
)
def test_case_57_input_with_a_client(make, language, code, value):
    run = make(language).run(code, answers_input=True)
    for kind, data in run:
        if kind == "input":
            assert json.loads(data)["prompt"] == "name? "
            run.input("Ann")
    assert text(run.result()) == value
    run.close()


LINE_THEN_FOREVER = {
    "python": ('x = input("name? ")\nx', 'x = input("name? ")\nwhile True: pass'),
    "r": ('x <- readline("name? ")\nx', 'x <- readline("name? ")\nrepeat {}'),
    "node": ('prompt("name? ")', 'prompt("name? "); for (;;);'),
}


def asked(session, code, timeout):
    """Start a cell; return it when it has asked and more time than it has is over."""
    run = session.run(code, timeout=timeout, answers_input=True)
    assert run.next(timeout=20)[0] == "input"
    with pytest.raises(sa_module.Error) as error:
        run.next(timeout=2 * timeout)
    assert error.value.name == "TIMEOUT"
    return run


@pytest.mark.parametrize("language", LINE_THEN_FOREVER)
def test_case_57_a_cells_time_stands_still_while_somebody_is_asked(make, language):
    session = make(language)
    once, forever = LINE_THEN_FOREVER[language]
    run = asked(session, once, timeout=2)
    run.input("Ann")
    result = run.result(timeout=10)
    assert result["status"] == "ok" and "Ann" in text(result), result
    assert result["duration_ms"] > 4000
    run.close()
    run = asked(session, forever, timeout=2)
    answered = time.monotonic()
    run.input("Ann")
    result = run.result(timeout=30)
    assert (result["status"], result["cause"]) == ("timeout", "timeout"), result
    assert time.monotonic() - answered < 6
    run.close()
    run = asked(session, once, timeout=1)
    run.cancel()
    assert run.result(timeout=10)["status"] == "interrupted"
    run.close()


def test_case_62_fork_bombs(make):
    quiet = make()
    bomb = make(pids=64)
    start = time.monotonic()
    bomb.write(
        "bomb.py",
        b"import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
    )
    result = bomb.terminal("python3 bomb.py & sleep 2; true", timeout=20)
    assert result["cause"] == "pids", result
    assert result["status"] == "error" and "64" in result["message"]
    assert bomb.terminal("bash -c ':(){ :|:& };:'", timeout=5)["cause"] in ("pids", "timeout")
    assert text(bomb.execute("1 + 1", timeout=20)) == "2"
    result = bomb.execute("import os\nwhile True: os.fork()", timeout=10)
    assert result["cause"] == "pids", result
    assert time.monotonic() - start < 60
    assert text(quiet.execute("1 + 1", timeout=5)) == "2"


def test_case_63_disk_fill(make):
    session = make(tmpfs_bytes=16 * MIB)
    result = session.terminal("dd if=/dev/zero of=f bs=1M", timeout=30)
    assert result["status"] == "error" and result["cause"] == "disk", result
    assert "CONTAINER_TMPFS_SIZE" in result["message"]
    result = session.execute("open('g', 'wb').write(b'x' * 10_000_000)")
    assert result["cause"] == "disk" and result["state"] == "kept"
    assert session.terminal("rm -f f g")["success"]
    assert text(session.execute("open('g', 'wb').write(b'x')")) == "1"


def test_case_41_limits_are_answers(state_dir, monkeypatch):
    monkeypatch.setenv("CONTAINER_MAX_SESSIONS", "2")
    library = sa_module.Library(instance="limits")
    try:
        made = [library.create("python") for _ in range(2)]
        with pytest.raises(sa_module.Error, match="CONTAINER_MAX_SESSIONS is 2") as e:
            library.create("python")
        assert e.value.name == "LIMIT" and made[0].id in str(e.value)
        made[0].stop()
        library.create("node").stop()
        fds = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            library.create("node").stop()
        assert leaks.settled_fds(fds) <= fds
    finally:
        library.close()


def test_case_30_memory_limit_is_no_address_space_limit(make):
    assert (
        text(
            make("python", memory_bytes=512 * MIB).execute("import numpy as np; np.ones(10).sum()")
        )
        == "np.float64(10.0)"
    )
    assert text(make("node", memory_bytes=512 * MIB).execute("1+1")) == "2"
    assert text(make("r", memory_bytes=512 * MIB).execute("library(stats); 1")) == "[1] 1"
