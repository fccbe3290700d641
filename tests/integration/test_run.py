# SPDX-License-Identifier: MIT
"""`sandbox-agent run` as a person types it: what is printed and saved, statuses, bad input."""

import json
import os
import signal
import subprocess
import time

import index
import ownimage
import pytest
import sa as sa_module

RUN = {
    "python": ("x = 41", "x + 1", "42\n"),
    "node": ("const x = 41", "x + 1", "42\n"),
    "r": ("x <- 41", "x + 1", "[1] 42\n"),
}


@pytest.mark.parametrize("language", RUN)
def test_cells_share_their_state(agent, language):
    first, second, out = RUN[language]
    done = agent("run", "-l", language, "-c", first, "-c", second)
    assert (done.stdout, done.returncode) == (out, 0), done.stderr


@pytest.mark.parametrize(
    "language,code,look,value",
    [
        ("python", 'import time; m = 1; print("a", flush=True); time.sleep(60)', "m", "1"),
        ("node", 'globalThis.m = 1; console.log("a"); while(true){}', "m", "1"),
        ("r", 'm <- 1; cat("a\\n"); repeat {}', "m", "[1] 1"),
    ],
)
def test_a_timeout_keeps_the_state_and_gives_124(agent, language, code, look, value):
    done = agent("run", "-l", language, "--timeout", "2", "--json", "-c", code, "-c", look)
    first, second = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 124
    assert (first["status"], first["cause"], first["state"], first["stdout"]) == (
        "timeout",
        "timeout",
        "kept",
        "a\n",
    )
    assert 2000 <= first["duration_ms"] < 3500
    assert second["result"]["text/plain"] == value


def test_json_has_the_fields_of_the_contract(agent):
    done = agent("run", "--json", "-c", "1 + 1")
    result = json.loads(done.stdout)
    assert set(result) >= {
        "success",
        "status",
        "state",
        "cause",
        "stdout",
        "stderr",
        "result",
        "error",
        "display_outputs",
        "duration_ms",
        "output",
    }
    assert set(result["output"]) == {"stdout_bytes", "stderr_bytes", "truncated"}
    assert result["success"] is True and result["error"] is None and result["cause"] is None


def test_a_plot_lands_in_the_display_dir(agent, tmp_path):
    done = agent(
        "run",
        "-c",
        "import matplotlib.pyplot as plt; _ = plt.plot([1, 2])",
        "--display-dir",
        tmp_path / "out",
    )
    assert done.returncode == 0, done.stderr
    files = list((tmp_path / "out").iterdir())
    assert [f.name for f in files] == ["display-001.png"]
    assert files[0].read_bytes().startswith(b"\x89PNG\r\n")


def test_files_and_standard_input_are_cells(agent, tmp_path):
    (tmp_path / "a.js").write_text("const a = 1\n")
    (tmp_path / "b.js").write_text("a + 1\n")
    assert agent("run", tmp_path / "a.js", tmp_path / "b.js").stdout == "2\n"
    assert agent("run", "-", input="print(6 * 7)").stdout == "42\n"


def test_output_is_live(state_dir):
    process = subprocess.Popen(
        [
            sa_module.BUILD / "sandbox-agent",
            "run",
            "-c",
            "import time\nprint('now', flush=True); time.sleep(4)",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    start = time.monotonic()
    assert process.stdout.readline() == "now\n"
    assert process.poll() is None
    assert process.wait(timeout=30) == 0 and time.monotonic() - start > 2


def test_a_failing_cell_does_not_stop_the_next_but_counts(agent):
    done = agent("run", "-c", "1/0", "-c", "print('still here')")
    assert done.returncode == 1 and done.stdout == "still here\n"
    assert "ZeroDivisionError" in done.stderr


def test_cells_stop_when_the_state_is_lost(agent):
    done = agent("run", "-c", "import os; os._exit(5)", "-c", "print('not reached')")
    assert done.returncode == 1 and done.stdout == ""
    assert "status 5" in done.stderr


USAGE = {
    "unknown language": ["-l", "cobol", "-c", "1"],
    "empty code": ["-c", ""],
    "nothing": [],
    "bad time-out": ["--timeout", "soon", "-c", "1"],
    "bad network": ["--network", "lan", "-c", "1"],
    "bad memory": ["--memory", "much", "-c", "1"],
    "unknown option": ["--frobnicate"],
    "no such file": ["/no/such/file.py"],
    "bad dependency": ["--dep", "six; touch /tmp/pwn", "-c", "1"],
}


@pytest.mark.parametrize("case", USAGE)
def test_bad_usage_is_one_clear_line_and_2(agent, case):
    done = agent("run", *USAGE[case])
    assert done.returncode == 2 and done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if "--help" not in line]
    assert len(lines) == 1, done.stderr


def test_50_mib_of_code_is_refused(agent, tmp_path):
    path = tmp_path / "big.py"
    path.write_bytes(b"x = 1\n" * (50 * 1024 * 1024 // 6))
    done = agent("run", path)
    assert (
        done.returncode == 2 and "too large" in done.stderr and len(done.stderr.splitlines()) == 1
    )


def test_a_missing_image_without_build_is_one_line(agent, tmp_path):
    done = agent("run", "--no-build", "-c", "1", env={"SANDBOX_IMAGE_DIR": str(tmp_path)})
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1 and "image build" in done.stderr


def test_a_bad_setting_stops_the_start_with_its_name(agent):
    done = agent("run", "-c", "1", env={"CONTAINER_PIDS_LIMIT": "many"})
    assert done.returncode == 2 and "CONTAINER_PIDS_LIMIT" in done.stderr
    done = agent("run", "-c", "print(1)", env={"SANDBOX_FROBNICATE": "1"})
    assert done.returncode == 0 and "SANDBOX_FROBNICATE" in done.stderr


def test_unknown_words_print_help(agent):
    for words, status in (
        (["frobnicate"], 2),
        (["help"], 0),
        (["--help"], 0),
        (["-h"], 0),
        (["run", "--help"], 0),
        (["ps", "--help"], 0),
    ):
        done = agent(*words)
        assert done.returncode == status
        assert "usage:" in done.stdout + done.stderr


def test_sto_12_a_full_state_directory_is_told_and_heals(agent, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=200", "none", mount], check=True
    )
    try:
        env = {"SANDBOX_STATE_DIR": str(mount)}
        filler = mount / "filler"
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={filler}", "bs=4096"],
            stderr=subprocess.DEVNULL,
            check=False,
        )
        done = agent("run", "-c", "print(1)", env=env)
        assert done.returncode == 3 and "No space left" in done.stderr, done.stderr
        filler.unlink()
        assert agent("run", "-c", "print(1)", env=env).stdout == "1\n"
    finally:
        subprocess.run(["umount", mount], check=True)


@pytest.mark.parametrize(
    "language,dep,code,out",
    [
        ("python", "six", "import six; print(six.__name__)", "six\n"),
        ("node", "left-pad", "console.log(require('left-pad')('a', 3))", "  a\n"),
    ],
)
def test_dependencies_install_through_egress_without_a_session_network(
    agent, language, dep, code, out
):
    done = agent("run", "-l", language, "--dep", dep, "-c", code, timeout=300)
    assert (done.stdout, done.returncode) == (out, 0), done.stderr
    done = agent(
        "run",
        "-l",
        language,
        "--dep",
        dep,
        "-c",
        {
            "python": "import urllib.request as r; r.urlopen('http://example.org', timeout=5)",
            "node": "await fetch('http://example.org')",
        }[language],
        timeout=300,
    )
    assert done.returncode == 1


def test_a_failed_install_fails_the_create_with_its_last_lines(agent):
    done = agent("run", "--dep", "no-such-package-3141592", "-c", "print(1)", timeout=300)
    assert done.returncode == 3 and done.stdout == ""
    assert "No matching distribution" in done.stderr


NETWORK = {
    "python": (
        "import urllib.request\nprint(urllib.request.urlopen('{pip}six/').status)",
        "200\n",
    ),
    "node": ("const r = await fetch('{npm}left-pad'); console.log(r.status)", "200\n"),
    "r": (
        "download.file('{pip}six/', 'f', quiet=TRUE); cat(file.size('f') > 100, '\\n')",
        "TRUE \n",
    ),
}


@pytest.mark.parametrize("language", NETWORK)
def test_network_public_reaches_the_index_and_none_fails_at_once(agent, language):
    code, out = NETWORK[language]
    code = code.format(pip=index.pip_index(), npm=index.npm_registry())
    done = agent("run", "-l", language, "--network", "public", "-c", code)
    assert done.stdout == out, done.stderr
    done = agent("run", "-l", language, "--json", "-c", code)
    result = json.loads(done.stdout)
    assert done.returncode == 1 and result["status"] == "error" and result["duration_ms"] < 5000


def test_the_example_program_of_the_library(state_dir):
    env = {**os.environ, "SANDBOX_AGENT_LIBEXEC": str(sa_module.BUILD / "libexec")}
    done = subprocess.run(
        [sa_module.BUILD / "example-hello"],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'hello from the sandbox\nresult: {"text/plain":"42"}\nsandbox\n'


def test_settings_example_and_page_are_current(agent):
    for form, path in (("env", ".env.example"), ("markdown", "docs/configuration.md")):
        printed = agent("doctor", "--print-settings", form).stdout
        with open(os.path.join(os.path.dirname(__file__), "../..", path), encoding="utf-8") as f:
            assert f.read() == printed, f"print {path} anew with doctor --print-settings {form}"


def test_the_first_use_builds_the_image_although_privileges_are_gone(agent, tmp_path):
    env, recipe = ownimage.environment(sa_module.BUILD / "sandbox-agent", tmp_path)
    done = agent("run", "-l", "node", "-c", "6 * 7", env=env)
    assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr
    assert "node: building image" in done.stderr
    recipe.write_text("#!/bin/sh\nsleep 100\n")
    process = subprocess.Popen(
        [sa_module.BUILD / "sandbox-agent", "run", "-l", "node", "-c", "1"],
        env={**os.environ, **env},
        stderr=subprocess.PIPE,
        text=True,
    )
    while "building image" not in process.stderr.readline():
        pass
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 1
    assert time.monotonic() - start < 20 and "stopped" in process.stderr.read()
    recipe.write_text("#!/bin/sh\necho 'it is broken'; exit 1\n")
    done = agent("run", "-l", "node", "-c", "6 * 7", env=env)
    assert done.returncode == 3 and "cannot build the node image" in done.stderr
    assert done.stderr.count("sandbox-agent: cannot") == 1


def test_a_signal_that_means_nothing_takes_no_other_away(state_dir):
    with subprocess.Popen(
        [sa_module.BUILD / "sandbox-agent", "run", "-c", "print(1, flush=True)\nwhile True: pass"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout.readline() == b"1\n"
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 1
