# SPDX-License-Identifier: MIT
"""The real Python kernel under init: both sides of the protocol were written apart.

KERNEL_PYTHON names an interpreter with IPython that the sandbox user may execute (default:
/usr/bin/python3). What needs it is skipped where there is none, and the skip says so.
"""

import os
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
KERNEL = ROOT / "guest/kernels/python/kernel.py"
PYTHON = os.environ.get("KERNEL_PYTHON", "/usr/bin/python3")


def usable() -> bool:
    command = ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", PYTHON, "-I", "-c",
               f"import IPython; open({str(KERNEL)!r})"]
    return os.geteuid() == 0 and subprocess.run(command, check=False,
                                                capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not usable(), reason=f"{PYTHON} cannot run {KERNEL}: no IPython, "
                                "or the sandbox user may not read it")


@pytest.fixture
def python(client, init):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(init.workspace), "LANG": "C.UTF-8",
           "IPYTHONDIR": str(init.workspace / ".ipython")}
    end = client.kernel([PYTHON, "-B", str(KERNEL)], env).wait().end
    assert end["status"] == "ok", end
    return client


def run(client, code, **kwargs):
    return client.exec(code, **kwargs).wait()


def value(cell):
    return cell.of("RESULT")[0]["data"]["text/plain"]


def test_case_01_state(python):
    assert run(python, "total = 40").end["state"] == "kept"
    assert value(run(python, "total + 2")) == "42"
    cell = run(python, "missing")
    assert cell.of("ERROR")[0]["type"] == "NameError" and cell.end["status"] == "error"


def test_case_07_timeout(python):
    begin = time.monotonic()
    cell = run(python, "import time\nmark = 'here'\nprint('before', flush=True)\n"
                       "while True: time.sleep(0.05)", timeout_ms=1000)
    assert 1.0 <= time.monotonic() - begin < 2.5
    assert cell.end["status"] == "timeout" and cell.end["state"] == "kept"
    assert cell.stdout == b"before\n" and value(run(python, "mark")) == "'here'"


def test_case_10_burst(python):
    cell = run(python, "import sys\nsys.stdout.write('z'*5_000_000)\nprint()\nprint('LAST')")
    assert cell.end["stdout_bytes"] == "5000006" and cell.stdout.endswith(b"LAST\n")


def test_case_14_endless_print(python, init):
    cell = run(python, "while True: print('spam ' * 200)", timeout_ms=1500)
    assert cell.end["status"] == "timeout" and cell.end["state"] == "kept"
    assert init.rss() < 50 << 20


def test_case_15_split_bytes(python):
    first = run(python, "import os; _ = os.write(1, b'\\xe4\\xb8')")
    second = run(python, "_ = os.write(1, b'\\xad\\n')")
    assert first.stdout + second.stdout == "中\n".encode()


def test_case_54_ends(python):
    cell = run(python, "import sys; sys.exit(3)")
    assert cell.end["status"] == "error" and cell.end["state"] == "kept"
    cell = run(python, "import os; os._exit(5)")
    assert (cell.end["status"], cell.end["cause"], cell.end["state"]) == ("died", "exit:5", "lost")
    cell = run(python, "import ctypes; ctypes.string_at(0)")
    assert (cell.end["status"], cell.end["cause"]) == ("died", "signal:11")
    assert value(run(python, "1 + 1")) == "2"


def test_case_57_input(python):
    cell = run(python, "input('name? ')")
    assert cell.end["status"] == "error" and cell.of("ERROR")
    cell = python.exec("input('name? ')", stdin=True)
    cell.until(lambda: cell.of("INPUT_REQUEST"))
    cell.input(b"\1Zoe").wait()
    assert value(cell) == "'Zoe'"


def test_iso_24_frames_from_the_cell(python):
    code = """
import os, struct
body = b'{"status":"ok"}'
frame = struct.pack('<IBI', 16 + len(body), 0x34, 1) + bytes(16) + body
for fd in range(3, 1024):
    try:
        os.set_blocking(fd, False)
        os.write(fd, frame + os.urandom(1 << 20))
    except OSError: pass
import time; time.sleep(60)
"""
    cell = run(python, code)
    assert cell.end["status"] == "died" and cell.end["cause"] == "protocol"
    assert value(run(python, "2 + 2")) == "4"


def test_displays_and_lines_in_order(python):
    code = """
from IPython.display import display
import os
for i in range(300):
    print(i)
    os.system(f'echo s{i}')
    display(i)
"""
    cell = run(python, code)
    text = "".join(frame.data["data"]["text/plain"] + "D" if frame.kind == "DISPLAY"
                   else frame.payload.decode() for frame in cell.frames[:-1])
    assert text == "".join(f"{i}\ns{i}\n{i}D" for i in range(300))


def test_fork_in_a_cell(python):
    cell = run(python, "import os\npid = os.fork()\nprint('child' if pid == 0 else 'parent')\n"
                       "if pid: os.waitpid(pid, 0)")
    assert cell.end["status"] == "ok"
    assert sorted(cell.stdout.decode().split()) == ["child", "parent"]
