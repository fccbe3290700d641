# SPDX-License-Identifier: MIT
"""Cells and the kernel, with a fake kernel that does exactly what a test says."""

import os
import time

import pytest

from control import ControlTimeout
from places import FAKE

PYTHON = "/usr/bin/python3"
FAKE_ARGV = [PYTHON, "-I", str(FAKE)]


def started(client, *before, **fields):
    """Start a fake kernel that first runs some source."""
    return client.kernel([*FAKE_ARGV, *before], **fields).wait()


def run(client, code, **kwargs):
    return client.exec(code, **kwargs).wait()


def text(stream, kind):
    return [value["data"]["text/plain"] for value in stream.of(kind)]


# The start


def test_start(client):
    assert client.welcome["kernel"] == "none"
    assert started(client).end == {"status": "ok"}
    status = client.status()
    assert status["kernel"] == "ready" and status["generation"] == "1"
    assert int(status["kernel_pid"]) > 1 and status["processes"] == "1"


def test_cell_without_kernel(client):
    end = run(client, "pass").end
    assert end["status"] == "error" and end["errno"] == "2" and "no kernel" in end["message"]


def test_second_kernel_is_refused(fake):
    end = started(fake).end
    assert end["status"] == "error" and end["errno"] == "17"
    assert run(fake, "k.out('still')").stdout == b"still"


@pytest.mark.parametrize("argv, message", [
    (["/no/kernel"], "cannot run '/no/kernel'"),
    (["/bin/sh", "-c", "echo it broke >&2; exit 3"], "before it was ready (exit:3): it broke"),
    (["/bin/sh", "-c", "kill -9 $$"], "before it was ready (signal:9)"),
    (["/bin/sh", "-c", "echo garbage garbage >&3; sleep 9"], "frame"),
])
def test_kernel_that_does_not_start(client, argv, message):
    end = client.kernel(argv).wait().end
    assert end["status"] == "error" and message in end["message"]
    assert client.status()["kernel"] == "dead"
    assert message in run(client, "pass").end["message"]
    # What was wrong may be mended: KERNEL may be said again.
    assert started(client).end["status"] == "ok"
    assert run(client, "k.out('x')").stdout == b"x"


def test_kernel_that_never_gets_ready(client):
    begin = time.monotonic()
    end = client.kernel(["sleep", "60"], ready_ms=400).wait().end
    assert end["status"] == "error" and end["errno"] == "110" and "400 ms" in end["message"]
    assert 0.4 <= time.monotonic() - begin < 1.5


def test_cell_waits_for_the_kernel(client):
    starting = client.kernel([*FAKE_ARGV, "time.sleep(0.5)"])
    cells = [client.exec(f"k.out('{i}')") for i in range(3)]
    assert [cell.wait().stdout for cell in cells] == [b"0", b"1", b"2"]
    assert starting.ended


def test_descriptors_of_the_kernel(fake):
    code = """
for fd in sorted(os.listdir('/proc/self/fd'), key=int):
    try: k.out(fd + ' ' + os.readlink('/proc/self/fd/' + fd).split(':')[0] + '\\n')
    except OSError: pass
k.out('%d %d %s' % (os.getpgid(0) == os.getpid(), os.getuid(), os.getgroups()))"""
    lines = run(fake, code).stdout.decode().splitlines()
    assert lines[:4] == ["0 /dev/null", "1 pipe", "2 pipe", "3 socket"]
    assert lines[-1] in ("1 65532 []", "1 65532 [65532]") and len(lines) == 5


# Output and barriers


def test_cell(fake):
    cell = run(fake, "k.out('a\\n'); k.out('e\\n', 2); k.display('d'); k.result('42')")
    assert cell.stdout == b"a\n" and cell.stderr == b"e\n"
    assert text(cell, "DISPLAY") == ["d"] and text(cell, "RESULT") == ["42"]
    end = cell.end
    assert end["status"] == "ok" and end["state"] == "kept" and "cause" not in end
    assert end["stdout_bytes"] == end["stderr_bytes"] == "2" and "full" not in end


def test_error_is_passed_on(fake):
    cell = run(fake, "raise ValueError('v')")
    assert cell.of("ERROR") == [{"type": "ValueError", "message": "v", "traceback": ""}]
    assert cell.end["status"] == "error" and cell.end["state"] == "kept"


def test_state_is_kept(fake):
    run(fake, "total = 40")
    assert run(fake, "k.out(str(total + 2))").stdout == b"42"


@pytest.mark.parametrize("size", [1, 3000, 70_000])
def test_barriers_are_exact(fake, size):
    """Lines and displays in alternation arrive in that order, whatever the size of the output."""
    code = f"""
for i in range(500):
    k.out('%06d' % i + 'x' * {size} + '\\n', 1 + i % 2)
    k.display(str(i))
"""
    cell = fake.exec(code).wait(60)
    position, expected = 0, []
    for i in range(500):
        expected += [(b"%06d" % i) + b"x" * size + b"\n", str(i)]
    seen = []
    for frame in cell.frames:
        if frame.kind == "DISPLAY":
            seen.append(frame.data["data"]["text/plain"])
        elif frame.kind in ("STDOUT", "STDERR"):
            if position and isinstance(seen[-1], bytes):
                seen[-1] += frame.payload
            else:
                seen.append(frame.payload)
        position += 1
    assert seen == expected


def test_output_of_children_is_drained_at_barriers(fake):
    code = """
for i in range(50):
    os.system('echo %d' % i)
    k.display(str(i))
"""
    cell = run(fake, code)
    assert cell.order[:-1] == ["STDOUT", "DISPLAY"] * 50


def test_barrier_beside_a_child_that_prints_for_ever(fake):
    code = """
import subprocess
child = subprocess.Popen(['yes'])
time.sleep(0.2)
for i in range(20): k.display(str(i))
child.kill(); child.wait()
"""
    cell = run(fake, code)
    assert text(cell, "DISPLAY") == [str(i) for i in range(20)]
    assert cell.end["status"] == "ok"


def test_large_displays(fake):
    cell = run(fake, "k.display('a' * (40 << 20)); k.out('between'); k.display('b' * (1 << 20))")
    first, second = text(cell, "DISPLAY")
    assert first == "a" * (40 << 20) and second == "b" * (1 << 20)
    assert cell.order == ["DISPLAY", "STDOUT", "DISPLAY", "END"]


def test_displays_above_the_limit_are_left_out(fake, init):
    cell = run(fake, "for i in range(5): k.display('%d' % i + 'a' * (20 << 20))\nk.result('r')")
    assert [value[0] for value in text(cell, "DISPLAY")] == ["0", "1", "2"]
    assert cell.stderr.count(b"a display was left out") == 1
    assert text(cell, "RESULT") == ["r"] and cell.end["status"] == "ok"
    cell.ack()
    fake.status()
    assert init.rss() < 60 << 20


def test_case_10_big_burst(fake):
    cell = run(fake, "k.out('z' * 5_000_000); k.out('\\nLAST\\n')")
    assert cell.end["stdout_bytes"] == "5000006" and cell.stdout.endswith(b"z\nLAST\n")


def test_code_of_50_megabytes(fake, init):
    code = b"x = len('" + b"a" * (50 << 20) + b"')\nk.out(str(x))"
    assert run(fake, code).stdout == str(50 << 20).encode()
    assert run(fake, "k.out('next')").stdout == b"next"
    assert init.rss() < 30 << 20


def test_late_output(fake):
    run(fake, "import threading\n"
              "threading.Timer(0.2, lambda: (k.out('late'), k.out('err', 2))).start()")
    time.sleep(0.5)
    cell = run(fake, "k.out('now')")
    assert cell.raw("LATE_STDOUT") == b"late" and cell.raw("LATE_STDERR") == b"err"
    assert cell.order == ["LATE_STDOUT", "LATE_STDERR", "STDOUT", "END"]
    assert cell.end["stdout_bytes"] == "3"
    assert run(fake, "pass").order == ["END"]


def test_late_output_keeps_the_newest(fake):
    run(fake, """
import threading
def late():
    k.out('first')
    for i in range(300): k.out('%08d' % i + '.' * 19991 + '\\n')
threading.Timer(0.1, late).start()""")
    time.sleep(1.5)
    late = run(fake, "pass").raw("LATE_STDOUT")
    assert len(late) == 1 << 20 and late.endswith(b".\n") and b"00000299" in late
    assert b"first" not in late


def test_closed_stdout(fake):
    assert run(fake, "k.out('a'); os.close(1); k.out('b', 2)").end["status"] == "ok"
    cell = run(fake, "k.out('c', 2); k.result('r')")
    assert cell.stderr == b"c" and text(cell, "RESULT") == ["r"]


# Input


def test_case_57_input_that_nobody_can_answer(fake):
    begin = time.monotonic()
    cell = run(fake, "k.out(repr(k.input('name? ')))")
    assert cell.stdout == b"None" and time.monotonic() - begin < 1
    assert not cell.of("INPUT_REQUEST")


def test_case_57_input_is_answered(fake):
    cell = fake.exec("k.out('before'); k.out(repr(k.input('name? ')) + repr(k.input()))",
                     stdin=True)
    cell.until(lambda: cell.of("INPUT_REQUEST"))
    assert cell.of("INPUT_REQUEST") == [{"prompt": "name? ", "password": False}]
    assert cell.stdout == b"before"
    cell.input(b"\1Zo\xc3\xab")
    cell.until(lambda: len(cell.of("INPUT_REQUEST")) == 2)
    cell.input(b"\0").wait()
    assert cell.stdout == "before'Zoë'None".encode()


def test_input_without_a_question_is_ignored(fake):
    cell = fake.exec("time.sleep(0.3); k.out(str(k.input()))", stdin=True)
    cell.input(b"\1early")
    cell.until(lambda: cell.of("INPUT_REQUEST"))
    cell.input(b"\1asked").wait()
    assert cell.stdout == b"asked"


ASKS = "k.out(repr(k.input('name? ')))"
STANDS_STILL_S = 1.5  # longer than the time-outs below


def asked_and_idle(cell):
    """Wait for a question and then longer than its cell's time; nothing may come meanwhile."""
    cell.until(lambda: cell.of("INPUT_REQUEST"))
    with pytest.raises(ControlTimeout):
        cell.until(lambda: cell.frames[-1].kind != "INPUT_REQUEST", STANDS_STILL_S)
    return cell


def test_time_stands_still_while_somebody_is_asked(fake):
    cell = asked_and_idle(fake.exec(ASKS, stdin=True, timeout_ms=1000))
    cell.input(b"\1Ada").wait()
    assert cell.stdout == b"'Ada'" and cell.end["status"] == "ok"
    assert cell.order == ["INPUT_REQUEST", "INPUT_TAKEN", "STDOUT", "END"]
    assert float(cell.end["duration_ms"]) >= 1000 * STANDS_STILL_S


def test_time_goes_on_with_its_rest(fake):
    cell = fake.exec(f"time.sleep(0.6); {ASKS}\nwhile True: time.sleep(0.05)",
                     stdin=True, timeout_ms=1000)
    asked_and_idle(cell)
    answered = time.monotonic()
    cell.input(b"\0").wait()
    assert cell.stdout == b"None" and cell.end["cause"] == "timeout"
    assert cell.end["state"] == "kept" and time.monotonic() - answered < 0.9


def test_an_answer_without_a_question_moves_no_clock(fake):
    cell = fake.exec("while True: time.sleep(0.05)", stdin=True, timeout_ms=700)
    begin = time.monotonic()
    while time.monotonic() - begin < 0.5:
        cell.input(b"\1early")
        time.sleep(0.05)
    cell.wait()
    assert cell.end["status"] == "timeout" and time.monotonic() - begin < 1.2
    assert not cell.of("INPUT_TAKEN")


@pytest.mark.parametrize("stop, state", [("interrupt", "kept"), ("kill", "lost")])
def test_a_cell_that_waits_for_a_line_is_stopped(fake, stop, state):
    cell = asked_and_idle(fake.exec(ASKS, stdin=True, timeout_ms=1000))
    getattr(cell, stop)().wait()
    assert (cell.end["status"], cell.end["state"]) == ("interrupted", state)


def test_a_cell_that_is_being_stopped_asks_nobody(fake):
    code = """
try:
    k.input("first")
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    k.out(repr(k.input("second")))
"""
    cell = fake.exec(code, stdin=True)
    cell.until(lambda: cell.of("INPUT_REQUEST"))
    cell.interrupt().wait()
    assert cell.stdout == b"None" and len(cell.of("INPUT_REQUEST")) == 1
    assert (cell.end["status"], cell.end["state"]) == ("interrupted", "kept")


# Time-outs and interrupts


def test_case_07_timeout_keeps_state_and_output(fake):
    begin = time.monotonic()
    cell = run(fake, "mark = 1; k.out('before'); k.display('d')\nwhile True: time.sleep(0.05)",
               timeout_ms=700)
    assert 0.7 <= time.monotonic() - begin < 2.2
    assert cell.end["status"] == "timeout" and cell.end["cause"] == "timeout"
    assert cell.end["state"] == "kept"
    assert cell.order == ["STDOUT", "DISPLAY", "ERROR", "END"]
    assert run(fake, "k.out(str(mark))").stdout == b"1"


def test_interrupt(fake):
    cell = fake.exec("k.out('on'); time.sleep(60)")
    cell.until(lambda: cell.stdout)
    cell.interrupt().wait()
    assert cell.end["status"] == "interrupted" and cell.end["cause"] == "user"
    assert cell.end["state"] == "kept"


def test_interrupt_reaches_children(fake):
    begin = time.monotonic()
    cell = fake.exec("import subprocess; subprocess.call(['sleep', '60'])")
    time.sleep(0.3)
    assert cell.interrupt().wait().end["status"] == "interrupted"
    assert time.monotonic() - begin < 2


DEAF = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"


def test_res_14_ladder_ends_with_a_fresh_kernel(fake):
    run(fake, "mark = 1")
    begin = time.monotonic()
    cell = run(fake, DEAF + "k.out('partial'); k.display('d')\nwhile True: time.sleep(1)",
               timeout_ms=500)
    assert 2.4 <= time.monotonic() - begin < 3.6
    assert cell.end["status"] == "timeout" and cell.end["state"] == "lost"
    assert cell.order == ["STDOUT", "DISPLAY", "END"]
    again = run(fake, "k.out(str('mark' in globals()))")
    assert again.stdout == b"False" and "restarted" not in again.end
    assert fake.status()["generation"] == "2"


def test_res_14_stopped_kernel_is_continued(fake):
    cell = run(fake, "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)", timeout_ms=400)
    assert cell.end["status"] == "timeout" and cell.end["state"] == "kept"


def test_signals_of_the_ladder(fake):
    code = """
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(time.monotonic()))
end = time.monotonic() + 1.6
while time.monotonic() < end: time.sleep(0.01)
signal.signal(signal.SIGINT, signal.SIG_IGN)
k.sock.settimeout(1)
k.out('%d %.2f %d' % (len(seen), seen[1] - seen[0], k.read()[0]))
k.done('interrupted')
"""
    cell = fake.exec(code)
    time.sleep(0.2)
    cell.interrupt().wait()
    count, gap, kind = cell.stdout.split()
    assert 5 <= int(count) <= 9 and 0.18 <= float(gap) <= 0.3 and int(kind) == 0x23
    assert cell.end["status"] == "interrupted" and cell.end["state"] == "kept"


def test_first_signal_can_be_delayed(client):
    started(client, sigint_delay_ms=400)
    cell = client.exec("k.out('on'); begin = time.monotonic()\n"
                       "try: time.sleep(60)\n"
                       "except KeyboardInterrupt: k.out('%.1f' % (time.monotonic() - begin))")
    cell.until(lambda: cell.stdout)
    cell.interrupt().wait()
    assert 0.4 <= float(cell.stdout[2:]) < 1.0
    assert cell.end["status"] == "interrupted"


def test_cell_that_ends_well_after_its_time(fake):
    code = "try: time.sleep(60)\nexcept KeyboardInterrupt: pass\nk.result('caught')"
    cell = run(fake, code, timeout_ms=300)
    assert cell.end["status"] == "timeout" and text(cell, "RESULT") == ["caught"]


def test_kill(fake):
    cell = fake.exec("time.sleep(60)")
    time.sleep(0.2)
    begin = time.monotonic()
    end = cell.kill().wait().end
    assert end["status"] == "interrupted" and end["state"] == "lost"
    assert time.monotonic() - begin < 1
    assert run(fake, "k.out('new')").stdout == b"new"


def test_waiting_cell_is_interrupted(fake):
    first, second = fake.exec("time.sleep(0.5)"), fake.exec("k.out('second')")
    third = fake.exec("k.out('third')")
    end = second.interrupt().wait().end
    assert end["status"] == "interrupted" and end["state"] == "kept"
    assert third.wait().stdout == b"third" and first.ended


def test_timeout_holds_without_a_client(init, start):
    with init.connect() as client:
        started(client)
        number = client.exec("k.out('on'); time.sleep(60)", timeout_ms=500).number
        time.sleep(0.1)
    time.sleep(1.0)
    with init.connect() as client:
        assert client.runs[number][:2] == ("exec", "done")
        cell = client.attach(number).wait()
        assert cell.stdout == b"on" and cell.end["status"] == "timeout"
        assert 400 < float(cell.end["duration_ms"]) < 1500


def test_timeout_with_a_client_that_does_not_read(start):
    init = start()
    with init.connect(credit=False) as client:
        started(client)
        cell = client.exec("for i in range(3000): k.out('x' * 10000)\ntime.sleep(60)",
                           timeout_ms=1500)
        time.sleep(2.2)
        cell.wait()
        assert cell.end["status"] == "timeout" and cell.end["state"] == "kept"


# Death


@pytest.mark.parametrize("code, cause", [
    ("os._exit(5)", "exit:5"), ("os.kill(os.getpid(), 11)", "signal:11"),
    ("k.out('dying'); os.kill(os.getpid(), 9)", "signal:9"),
])
def test_case_54_kernel_dies_in_a_cell(fake, code, cause):
    cell = run(fake, code)
    assert cell.end["status"] == "died" and cell.end["cause"] == cause
    assert cell.end["state"] == "lost"
    assert cell.stdout == (b"dying" if "dying" in code else b"")
    again = run(fake, "k.out('alive')")
    assert again.stdout == b"alive" and "restarted" not in again.end


def test_result_of_a_dying_kernel_is_kept(fake):
    cell = run(fake, "k.out('o'); k.result('r'); k.error('E'); k.out('p' * 60000); os._exit(1)")
    assert cell.stdout == b"o" + b"p" * 60000 and text(cell, "RESULT") == ["r"]
    assert cell.end["status"] == "died"


def test_kernel_dies_between_cells(fake):
    run(fake, "import threading; threading.Timer(0.2, lambda: os._exit(6)).start()")
    time.sleep(0.6)
    cell = run(fake, "k.out('fresh')")
    assert cell.stdout == b"fresh" and cell.end["restarted"] == "exit:6"
    assert "restarted" not in run(fake, "pass").end


def test_kernel_that_always_dies_does_not_spin(client):
    started(client, "import threading; threading.Timer(0.3, lambda: os._exit(6)).start()")
    time.sleep(1.5)
    assert int(client.status()["generation"]) <= 2


def test_children_of_a_dead_kernel_die(fake):
    run(fake, "import subprocess; subprocess.Popen(['sleep', '77']); os._exit(1)")
    assert fake.spawn(["pgrep", "-xf", "sleep 77"]).wait().stdout == b""


def test_sweep_spares_the_kernel(fake):
    run(fake, "x = 1; import subprocess; subprocess.Popen(['sleep', '77'])")
    assert fake.sweep()["status"] == "ok"
    assert run(fake, "k.out(str(x))").stdout == b"1"
    assert fake.status()["generation"] == "1"


def test_timeout_of_a_process_spares_the_kernel(fake):
    run(fake, "import subprocess; child = subprocess.Popen(['sleep', '77'])")
    fake.spawn(["sleep", "60"], timeout_ms=200).wait()
    assert run(fake, "k.out(str(child.poll()))").stdout == b"None"


def test_start_beside_a_cell(fake):
    cell = fake.exec("time.sleep(0.5); k.out('cell')")
    assert fake.spawn(["echo", "process"]).wait().stdout == b"process\n"
    assert not cell.ended
    assert cell.wait().stdout == b"cell"


@pytest.mark.parametrize("child", ["pass", "os.setpgid(0, 0)", DEAF.strip()])
def test_fork_bomb_in_a_cell(fake, child):
    """It ends within the ladder, and what is left does not keep a new kernel from starting."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NPROC, (300, 300))
{DEAF}
while True:
    try:
        if os.fork() == 0:
            k.sock.close()
            {child}
    except OSError: pass
"""
    begin = time.monotonic()
    cell = run(fake, code, timeout_ms=500)
    assert cell.end["status"] == "timeout" and cell.end["state"] == "lost"
    assert time.monotonic() - begin < 6
    assert run(fake, "k.out('alive')").stdout == b"alive"
    assert int(fake.status()["processes"]) <= 2


# Forgery (ISO-24, ISO-25)


WRONG = {
    "wrong token": "k.json(0x34, {'status': 'ok'}, token=b'x' * 16)",
    "zero token": "k.json(0x32, {'data': {}, 'metadata': {}}, token=bytes(16))",
    "another cell": "k.json(0x34, {'status': 'ok'}, cell=k.cell + 1)",
    "unknown type": "k.json(0x39, {})",
    "a type of init": "k.json(0x4f, {})",
    "ready again": "k.json(0x30, {}, cell=0)",
    "two results": "k.result('a'); k.json(0x32, {'data': {}, 'metadata': {}})",
    "two errors": "k.error('a'); k.json(0x33, {})",
    "bad status": "k.frame(0x34, b'{\"status\": \"fine\"}')",
    "no object": "k.frame(0x34, b'ok')",
    "no token": "k.sock.sendall(struct.pack('<IBI', 3, 0x34, k.cell) + b'abc')",
    "too long": "k.sock.sendall(struct.pack('<IBI', 60 << 20, 0x31, k.cell))",
    "random": "k.sock.sendall(os.urandom(1 << 16))",
    "closed": "k.sock.close(); time.sleep(60)",
}


@pytest.mark.parametrize("name", WRONG)
def test_iso_24_a_broken_frame_ends_the_kernel(fake, name):
    cell = run(fake, "k.out('before')\n" + WRONG[name] + "\ntime.sleep(60)")
    assert cell.end["status"] == "died" and cell.end["cause"] == "protocol", cell.end
    assert cell.end["state"] == "lost" and cell.end["message"]
    assert cell.stdout == b"before"
    assert run(fake, "k.out('alive')").stdout == b"alive"


def test_iso_24_plausible_frames_to_every_descriptor(fake):
    code = """
good = b'{"status":"ok"}'
frame = struct.pack('<IBI', 16 + len(good), 0x34, k.cell) + bytes(16) + good
if os.fork() == 0:
    for fd in range(3, 256):
        try: os.write(fd, frame + os.urandom(1 << 20))
        except OSError: pass
    os._exit(0)
time.sleep(60)
"""
    cell = run(fake, code)
    assert cell.end["status"] == "died" and cell.end["cause"] == "protocol"


def test_frame_between_cells_ends_the_kernel(fake):
    run(fake, "import threading\n"
              "threading.Timer(0.2, lambda: k.json(0x31, {'data': {}, 'metadata': {}})).start()")
    time.sleep(0.6)
    assert run(fake, "k.out('x')").end["restarted"] == "protocol"


def test_iso_25_nothing_to_connect_to(fake):
    """Another process of the sandbox finds no path, no port, and no descriptor of the kernel."""
    pid = fake.status()["kernel_pid"]
    script = "ls /proc/1/fd /proc/1/cwd/; cat /proc/1/environ /proc/1/maps /proc/1/mem"
    probe = fake.spawn(["sh", "-c", script]).wait()
    assert probe.stdout == b"" and probe.stderr.count(b"ermission denied") == 5
    open_it = f"import os; os.open('/proc/{pid}/fd/3', os.O_RDWR)"
    assert fake.spawn(["/usr/bin/python3", "-c", open_it]).wait().end["status"] == "error"


def test_one_at_a_time(fake):
    """A session's cells never overlap, whoever sends them."""
    first, second = fake.exec("time.sleep(0.4); k.out('A')"), fake.exec("k.out('B')")
    second.wait()
    assert first.ended and first.stdout == b"A" and second.stdout == b"B"


def test_many_cells(fake):
    before = None
    for i in range(300):
        cell = run(fake, f"k.out('{i}')")
        assert cell.stdout == str(i).encode()
        cell.ack()
        if i == 50:
            before = fake.status()
    assert fake.status()["processes"] == before["processes"]
