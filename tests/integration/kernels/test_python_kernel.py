# SPDX-License-Identifier: MIT
"""The Python kernel against its protocol and the cases that concern it.

KERNEL_PYTHON names the interpreter that runs the kernel (default: one that has IPython). What the
interpreter has no package for is skipped, and the skip says so.
"""

import base64
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelproto import Kernel, ProtocolError

ROOT = Path(__file__).resolve().parents[3]
KERNEL = Path(os.environ.get("KERNEL_PYTHON_SCRIPT", ROOT / "guest/kernels/python/kernel.py"))
PNG = b"\x89PNG\r\n\x1a\n"


def has(python: str, module: str) -> bool:
    """True where `python` can import a module."""
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    done = subprocess.run([python, "-c", code], check=False, capture_output=True, cwd="/")
    return done.returncode == 0


def find_python() -> str | None:
    named = os.environ.get("KERNEL_PYTHON")
    if named:
        return named
    candidates = (sys.executable, shutil.which("python3"), "/usr/bin/python3")
    return next((path for path in candidates if path and has(path, "IPython")), None)


PYTHON = find_python()
pytestmark = pytest.mark.skipif(PYTHON is None, reason="no Python with IPython found")


def needs(module: str):
    """Skip a test where the kernel's interpreter lacks a module."""
    there = PYTHON is not None and has(PYTHON, module)
    return pytest.mark.skipif(not there, reason=f"{PYTHON} has no {module}")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def start(tmp_path_factory, home):
    """Start kernels in a work directory and a home of the test's own."""
    kernels = []

    def start_kernel(cwd=None, option="-B", **env) -> Kernel:
        cwd = cwd or tmp_path_factory.mktemp("work")
        clean = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", **env}
        kernel = Kernel([PYTHON, option, KERNEL], env=clean, cwd=cwd)
        kernels.append(kernel)
        return kernel

    yield start_kernel
    for kernel in kernels:
        kernel.close()


@pytest.fixture(scope="module")
def shared(start):
    return {"kernel": start()}


@pytest.fixture
def kernel(shared, start):
    """A kernel that tests share; a test that kills it costs the next one a start."""
    if not shared["kernel"].alive():
        shared["kernel"] = start()
    yield shared["kernel"]
    if shared["kernel"].alive():
        cell = shared["kernel"].run("'still there'")
        assert cell.text == "'still there'", cell


@pytest.fixture
def fresh(start):
    kernel = start()
    yield kernel
    kernel.close()


# State, values, errors


def test_ready_says_what_it_is(fresh):
    assert fresh.ready["language"] == "python"
    assert fresh.ready["version"].startswith("3.")


def test_case_01_state_lives_between_cells(kernel):
    assert kernel.run("total = 40").order == ["done"]
    cell = kernel.run("total + 2")
    assert (cell.status, cell.text, cell.order) == ("ok", "42", ["result", "done"])


def test_unknown_name_is_an_error(kernel):
    cell = kernel.run("x = 1\nnope_not_here")
    assert cell.status == "error"
    assert cell.error["type"] == "NameError"
    assert cell.error["message"] == "name 'nope_not_here' is not defined"
    assert cell.stdout == cell.stderr == ""


def test_result_comes_once_and_nowhere_else(kernel):
    cell = kernel.run("print('out')\n'value'")
    assert cell.stdout == "out\n"
    assert cell.stderr == ""
    assert cell.order == ["stdout", "result", "done"]
    assert cell.result == {"text/plain": "'value'"}


@pytest.mark.parametrize("code", ["None", "x = 5", "5;", "5; # quiet", "", "   \n", "# nothing",
                                  "import os"])
def test_no_value(kernel, code):
    cell = kernel.run(code)
    assert (cell.status, cell.order) == ("ok", ["done"])


def test_underscore_is_the_last_value(fresh):
    fresh.run("40 + 2")
    assert fresh.run("_ + 1").text == "43"
    for number in range(20):
        fresh.run(f"{number}")
    assert fresh.run("_ , __").text == "(19, 18)"
    assert fresh.run("len(Out) < 10").text == "True"
    fresh.run("async def five():\n    return 5")
    fresh.run("five()")
    assert fresh.run("_").text == "5"


def test_traceback_shows_lines_of_cells(kernel):
    kernel.run("def inner(n):\n    return 1 / n  # the line\n")
    cell = kernel.run("def outer():\n    inner(0)\n\nouter()")
    text = cell.error["traceback"]
    assert text.startswith("Traceback (most recent call last):\n  File \"<cell ")
    assert "return 1 / n  # the line" in text and "inner(0)" in text
    assert text.endswith("ZeroDivisionError: division by zero\n")
    assert "sandbox_kernel" not in text and "IPython" not in text and "\x1b" not in text


def test_chained_and_grouped_errors(kernel):
    cell = kernel.run("try:\n    {}['a']\nexcept KeyError as e:\n"
                      "    raise RuntimeError('b') from e")
    assert "direct cause" in cell.error["traceback"] and "KeyError: 'a'" in cell.error["traceback"]
    cell = kernel.run("import asyncio\nasync def bad():\n    raise ValueError('in group')\n"
                      "async def group():\n    async with asyncio.TaskGroup() as g:\n"
                      "        g.create_task(bad())\nawait group()")
    assert cell.error["type"] == "ExceptionGroup"
    assert "ValueError: in group" in cell.error["traceback"]


def test_syntax_error(kernel):
    cell = kernel.run("def f(:\n  pass")
    assert cell.error["type"] == "SyntaxError"
    assert "<cell " in cell.error["message"]
    assert "def f(:" in cell.error["traceback"]
    cell = kernel.run("yield 5")
    assert cell.error["type"] == "SyntaxError" and "codeop" not in cell.error["traceback"]
    cell = kernel.run("ip = get_ipython(); ip.showsyntaxerror = lambda *a, **k: None\n")
    assert kernel.run("a b").status == "error"
    kernel.run("del ip.showsyntaxerror")
    assert cell.stderr == ""


def test_os_error_has_errno(kernel):
    cell = kernel.run("open('/no/such/file')")
    assert (cell.error["type"], cell.error["errno"]) == ("FileNotFoundError", 2)
    assert "errno" not in kernel.run("1/0").error


@pytest.mark.parametrize("code, message", [("import sys; sys.exit(3)", "3"), ("exit(3)", "3"),
                                           ("exit", "None"), ("quit()", "None"),
                                           ("raise SystemExit('bye')", "bye")])
def test_case_54_exit_ends_only_the_cell(kernel, code, message):
    kernel.run("kept = 1")
    cell = kernel.run(code)
    assert cell.status == "error"
    assert (cell.error["type"], cell.error["message"]) == ("SystemExit", message)
    assert kernel.run("kept").text == "1"


@pytest.mark.parametrize("code, cause", [("import os; os._exit(5)", "exit:5"),
                                         ("import ctypes; ctypes.string_at(0)", "signal:11"),
                                         ("import os; os.abort()", "signal:6")])
def test_case_54_death_is_seen(fresh, code, cause):
    cell = fresh.run("print('before')\n" + code)
    assert (cell.status, cell.cause) == ("died", cause)
    assert cell.stdout == "before\n"


def test_broken_repr(kernel):
    kernel.run("class Broken:\n    def __repr__(self):\n        raise ValueError('no repr')")
    cell = kernel.run("Broken()")
    assert (cell.status, cell.error["type"]) == ("error", "ValueError")
    kernel.run("class Half:\n    def __repr__(self):\n        return 'half'\n"
               "    def _repr_html_(self):\n        raise ValueError('no html')")
    cell = kernel.run("Half()")
    assert (cell.status, cell.text) == ("ok", "half")
    assert "ValueError: no html" in cell.stderr


def test_broken_exceptions(kernel):
    cell = kernel.run("class Bad(Exception):\n    def __str__(self):\n"
                      "        raise TypeError('x')\n"
                      "raise Bad()")
    assert cell.error["type"] == "Bad"
    cell = kernel.run("raise type('E' * 10**6, (Exception,), {})('m' * 5_000_000)")
    assert len(cell.error["type"]) <= 300
    assert len(cell.error["message"]) <= 1 << 20
    assert len(cell.error["traceback"]) <= 1 << 20
    assert "characters left out" in cell.error["message"]
    assert cell.error["traceback"].startswith("Traceback")
    assert cell.error["traceback"].endswith("mmmm\n")
    cell = kernel.run("raise ValueError('é' * 3_000_000)")
    assert 900_000 < len(cell.error["message"].encode()) <= 1 << 20


def test_recursion_and_memory_errors(kernel):
    cell = kernel.run("def down():\n    down()\ndown()")
    assert cell.error["type"] == "RecursionError"
    assert len(cell.error["traceback"]) < 5000
    assert kernel.run("b = bytearray(1 << 62)").error["type"] == "MemoryError"


def test_odd_text(kernel):
    cell = kernel.run("print('\\ud800')\n'é\\ud800\\x00中'")
    assert cell.status == "ok" and "\\ud800" in cell.stdout
    assert "中" in cell.text
    cell = kernel.run("raise ValueError('\\udc80 é')")
    assert cell.error["message"] == "\ufffd é"
    assert kernel.run(b"x = '\xff'").status in ("ok", "error")
    assert kernel.run("a = 1\0").status == "error"
    assert kernel.run("print('a')\r\nprint('b')").stdout == "a\nb\n"


def test_main_module_is_sane(kernel):
    cell = kernel.run("import sys, pickle\nclass Thing:\n    pass\n"
                      "(__name__, Thing.__module__, sys.modules['__main__'].Thing is Thing,"
                      " type(pickle.loads(pickle.dumps(Thing()))) is Thing, sys.argv)")
    assert cell.text == "('__main__', '__main__', True, True, [''])"
    cell = kernel.run("import inspect\ndef source():\n    return 1  # mark\n"
                      "print(inspect.getsource(source))")
    assert "# mark" in cell.stdout
    assert kernel.run("open.__module__").text in ("'io'", "'_io'")


def test_old_values_are_let_go(fresh):
    """Memory of a session is limited: 100 values of 2 MiB must not pile up."""
    def resident() -> int:
        return int(Path(f"/proc/{fresh.pid}/statm").read_text().split()[1]) * 4 // 1024

    fresh.run("class Big:\n    def __init__(self):\n        self.data = b'x' * (2 << 20)")
    for _ in range(10):
        fresh.run("Big()")
    before = resident()
    for _ in range(100):
        assert fresh.run("Big()").status == "ok"
    assert resident() - before < 60


# Output


def test_output_of_children_and_c_code_in_order(kernel):
    cell = kernel.run(
        "import os, subprocess, sys\nprint('a')\nos.write(1, b'b\\n')\nos.system('echo c')\n"
        "subprocess.run(['echo', 'd'])\nprint('e')\n!echo f\n"
        "print('g', end='')\n!echo h\nsys.stdout.write('i\\n');\n")
    assert cell.stdout == "a\nb\nc\nd\ne\nf\ngh\ni\n"
    cell = kernel.run("import ctypes\nctypes.CDLL(None).printf(b'from C\\n')\nNone")
    assert cell.stdout == "from C\n"


def test_stderr_is_its_own_stream(kernel):
    cell = kernel.run("import sys, warnings\nprint('e', file=sys.stderr)\nwarnings.warn('careful')")
    assert cell.stdout == ""
    assert cell.stderr.startswith("e\n") and "UserWarning: careful" in cell.stderr


def test_two_thousand_lines_and_displays_in_order(kernel):
    cell = kernel.run("for n in range(2000):\n    print('line', n)\n    display(n)", timeout=60)
    expected = []
    for number in range(2000):
        expected += [("stdout", f"line {number}\n"), ("display", str(number))]
    found = [(event.kind, event.data.decode() if event.kind == "stdout"
              else event.data["data"]["text/plain"]) for event in cell.events[:-1]]
    assert found == expected


def test_case_10_big_burst(kernel):
    cell = kernel.run('import sys\nsys.stdout.write("z"*5_000_000)\nprint()\nprint("LAST")')
    assert len(cell.raw("stdout")) == 5_000_006
    assert cell.stdout.endswith("LAST\n") and cell.status == "ok"


def test_res_08_a_hundred_megabytes_without_a_newline(kernel):
    code = "import sys\nfor _ in range(100):\n    sys.stdout.write('y' * (1 << 20))\nNone"
    cell = kernel.run(code, timeout=60)
    assert (len(cell.raw("stdout")), cell.status) == (100 << 20, "ok")


def test_case_15_bytes_that_are_not_text(kernel):
    assert kernel.run("import os; os.write(1, b'\\xe4\\xb8')").raw("stdout") == b"\xe4\xb8"
    assert kernel.run("os.write(1, b'\\xad\\n');").raw("stdout") == b"\xad\n"


def test_late_output(kernel):
    kernel.run("import threading, time\n"
               "threading.Timer(0.2, lambda: (print('late'), display('later'))).start()")
    kernel.idle_output(0.6)
    cell = kernel.run("1")
    assert cell.late_stdout == "late\n'later'\n"
    assert cell.order == ["late_stdout", "result", "done"]


@pytest.mark.parametrize("code", [
    "import sys; sys.stdout.close(); sys.stderr.close()",
    "import sys; sys.stdout = None; sys.stderr = 7",
    "import sys; del sys.stdout, sys.stderr",
    "import os; os.close(1); os.close(2)",
    "import os, asyncio; await asyncio.sleep(0); os.close(0); os.closerange(3, 256)",
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))",
    "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
    "import sys; sys.settrace(lambda *a: 1/0); sys.setprofile(lambda *a: 1/0)",
    "import sys; sys.setrecursionlimit(60)",
    "import gc; gc.disable(); import sys; sys.path.clear(); sys.path_importer_cache.clear()",
    "import sys, io; sys.stdout = io.TextIOWrapper(sys.stdout.buffer); print('q')",
    "import sys; sys.stdout.detach()",
    "import sys, io; sys.stdin.close(); sys.stdin = io.StringIO('x')",
    "import builtins; builtins.print = None; del builtins.print",
])
def test_res_08_broken_streams_do_not_outlive_the_cell(fresh, code):
    assert fresh.run(code).status in ("ok", "error")
    cell = fresh.run("import sys; sys.stdout.write('whole\\n'); sys.stderr.write('too\\n'); 1 + 1")
    assert (cell.stdout, cell.stderr, cell.text) == ("whole\n", "too\n", "2")
    assert fresh.run("raise ValueError(1)").error["type"] == "ValueError"


def test_print_into_a_broken_stream_is_an_error_of_the_cell(fresh):
    cell = fresh.run("import os\nos.close(1)\nprint('x')")
    assert (cell.status, cell.error["errno"]) == ("error", 9)
    assert fresh.run("print('y')").stdout.endswith("y\n")


# Displays


def test_display_kinds(kernel):
    cell = kernel.run(
        "from IPython.display import HTML, SVG, Image, JSON, Markdown\n"
        "display(HTML('<b>é</b>'), Markdown('*m*'), JSON({'a': [1, float('nan')]}))\n"
        "display({'image/png': b'\\x89PNG', 'application/x.y+json': {'k': 1}}, raw=True)\n"
        "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>'))\n"
        "display(Image(b'\\x89PNG\\r\\n\\x1a\\n', format='png'))\n")
    assert cell.status == "ok", cell.error
    html, markdown, json_, raw, svg, image = cell.displays
    assert html["text/html"] == "<b>é</b>" and "text/plain" in html
    assert markdown["text/markdown"] == "*m*"
    assert json_["application/json"] == {"a": [1, None]}
    assert base64.b64decode(raw["image/png"]) == b"\x89PNG"
    assert raw["application/x.y+json"] == {"k": 1}
    assert svg["image/svg+xml"].startswith("<svg")
    assert base64.b64decode(image["image/png"]) == PNG


def test_update_display_and_clear_output(kernel):
    cell = kernel.run("from IPython.display import clear_output, update_display\n"
                      "h = display(1, display_id=True)\nh.update(2)\n"
                      "clear_output(wait=True)\nprint('x')")
    assert [display["text/plain"] for display in cell.displays] == ["1", "2"]
    assert cell.stdout == "x\n" and cell.stderr == ""


def test_display_from_a_thread_and_from_within_itself(kernel):
    cell = kernel.run("import threading\n"
                      "ts = [threading.Thread(target=lambda n=n: [display(n) for _ in range(50)])"
                      " for n in range(4)]\n[t.start() for t in ts]\n"
                      "[display('main') for _ in range(50)]\n[t.join() for t in ts]\nNone")
    assert (cell.status, len(cell.displays)) == ("ok", 250)


def test_two_values_make_one_result(kernel):
    cell = kernel.run("import sys\nsys.displayhook(1)\nsys.displayhook(2)\n3")
    assert (cell.text, [d["text/plain"] for d in cell.displays]) == ("3", ["1", "2"])


def test_res_09_large_displays_are_left_out_by_name(kernel):
    cell = kernel.run("display({'image/png': bytes(60 << 20), 'text/plain': 'small'}, raw=True)",
                      timeout=60)
    assert list(cell.displays[0]) == ["text/plain"]
    text = cell.displays[0]["text/plain"]
    assert text.startswith("small\n[image/png of 8") and "limit" in text
    cell = kernel.run("class Big:\n    def __repr__(self):\n        return 'b' * (60 << 20)\nBig()")
    assert len(cell.text) < 1000 and "text/plain of 6" in cell.text
    cell = kernel.run("display({'text/html': 'x' * (30 << 20), 'image/png': bytes(20 << 20)},"
                      " raw=True)", timeout=60)
    assert list(cell.displays[0]) == ["image/png", "text/plain"] or list(
        cell.displays[0]) == ["text/html", "text/plain"]
    cell = kernel.run("display({'image/png': bytes(33 << 20)}, raw=True)", timeout=60)
    assert len(cell.displays[0]["image/png"]) == 4 * 11 * (1 << 20)


def test_capture_magic(kernel):
    cell = kernel.run("%%capture got\nprint('in')\ndisplay(5)\n7")
    assert cell.order == ["done"]
    assert kernel.run("(got.stdout, len(got.outputs))").text == "('in\\n', 2)"


@needs("matplotlib")
def test_figures(kernel):
    cell = kernel.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);\nprint('before')\n"
                      "plt.show()\nprint('after')\nplt.figure(); plt.plot([1]);", timeout=120)
    assert cell.order == ["stdout", "display", "stdout", "display", "done"], cell
    for display in cell.displays:
        assert base64.b64decode(display["image/png"]).startswith(PNG)
        assert display["text/plain"].startswith("<Figure size")
        assert set(display) == {"image/png", "text/plain"}
    assert kernel.run("plt.get_fignums()").text == "[]"


@needs("matplotlib")
@pytest.mark.parametrize("code, order", [
    ("fig, ax = plt.subplots(); ax.plot([1]); fig", ["result", "done"]),
    ("fig, ax = plt.subplots(); ax.plot([1]); display(fig)", ["display", "done"]),
    ("fig, ax = plt.subplots(); display(fig); ax.plot([1]); None", ["display", "display", "done"]),
    ("fig, ax = plt.subplots(); fig.show()", ["display", "done"]),
    ("fig, ax = plt.subplots(); plt.show(); plt.show()", ["display", "done"]),
    ("plt.plot([1]); plt.close(); None", ["done"]),
    ("plt.plot([1]); plt.figure(); plt.plot([2]); plt.show()", ["display", "display", "done"]),
    ("plt.plot([1]); 1/0", ["display", "error", "done"]),
    ("import matplotlib; matplotlib.use('Agg'); plt.plot([1]); plt.show()", ["display", "done"]),
    ("%matplotlib inline\nplt.plot([1]); plt.show()", ["display", "done"]),
    ("plt.title(r'$\\frac{1$'); plt.plot([1]); None", ["error", "done"]),
])
def test_figure_is_shown_once(kernel, code, order):
    cell = kernel.run("import matplotlib.pyplot as plt\n" + code, timeout=60)
    assert cell.order == order, cell
    assert cell.stdout == cell.stderr == ""
    assert kernel.run("plt.get_fignums()").text == "[]"


@needs("matplotlib")
def test_broken_figure_does_not_hide_the_error(kernel):
    cell = kernel.run("import matplotlib.pyplot as plt\nplt.title(r'$\\frac{1$')\n1/0")
    assert cell.error["type"] == "ZeroDivisionError" and "frac" in cell.stderr


@needs("matplotlib")
def test_figure_formats(kernel):
    plot = "\nimport matplotlib.pyplot as plt\nplt.plot([1]); plt.show()"
    small = kernel.run(plot).displays[0]["image/png"]
    large = kernel.run("%config InlineBackend.figure_format = 'retina'" + plot).displays[0]
    assert len(large["image/png"]) > len(small)
    svg = kernel.run("%config InlineBackend.figure_format = 'svg'" + plot).displays[0]
    assert "<svg" in svg["image/svg+xml"] and "image/png" not in svg
    kernel.run("%config InlineBackend.figure_format = 'png'")


@needs("matplotlib")
def test_case_07_figure_of_an_interrupted_cell(kernel):
    cell = kernel.run("import matplotlib.pyplot as plt, time\nplt.plot([1]);\nmark = 'here'\n"
                      "print('before', flush=True)\nwhile True:\n    time.sleep(0.05)",
                      interrupt_on="before")
    assert cell.order == ["stdout", "display", "error", "done"], cell
    assert (cell.status, cell.error["type"]) == ("interrupted", "KeyboardInterrupt")
    assert kernel.run("mark").text == "'here'"


@needs("matplotlib")
def test_interrupt_while_figures_are_drawn(kernel):
    """Three figures, interrupted again and again while the end of the cell draws them."""
    plot = ("import matplotlib.pyplot as plt\nfor n in range(3):\n    plt.figure(figsize=(9, 9))\n"
            "    plt.plot([n])\nprint('drawn', flush=True);")
    for number in range(8):
        cell = kernel.run(plot, interrupt_on="drawn", interrupt_after=0.02 + number * 0.03)
        images = [display["image/png"] for display in cell.displays]
        assert len(set(images)) == len(images) <= 3, cell.order
        assert kernel.run("plt.get_fignums()").text == "[]"


@needs("matplotlib")
@needs("pandas")
def test_case_04_large_imports_and_frames(fresh):
    cell = fresh.run('import pandas as pd, matplotlib.pyplot as plt\n'
                     'print(pd.DataFrame({"q":[1,2]}).to_string())', timeout=120)
    assert (cell.status, cell.stdout) == ("ok", "   q\n0  1\n1  2\n")
    cell = fresh.run("pd.DataFrame({'q': [1, 2]})")
    assert "<table" in cell.result["text/html"] and cell.text == "   q\n0  1\n1  2"


@needs("matplotlib")
def test_case_20_labels(kernel):
    cell = kernel.run("import matplotlib.pyplot as plt\nplt.plot([-1, -2]); plt.title('a - b')\n"
                      "plt.show()")
    assert len(cell.displays) == 1 and cell.stderr == ""


@needs("plotly")
def test_case_23_plotly_without_a_browser(kernel):
    cell = kernel.run("import plotly.graph_objects as go, plotly.io as pio\n"
                      'f = go.Figure(go.Bar(x=["a","b"], y=[1,2]), layout={"title": "T"})\n'
                      "f.show()\nf.show(renderer='notebook')\nf", timeout=60)
    assert cell.status == "ok", cell.error
    maps = cell.displays + ([cell.result] if cell.result else [])
    assert len(maps) == 3
    for data in maps:
        assert data["application/vnd.plotly.v1+json"]["data"][0]["type"] == "bar"
        assert data["text/plain"] == 'plotly figure "T": 1 trace(s) (bar)'
        assert set(data) == {"application/vnd.plotly.v1+json", "text/plain"}
    cell = kernel.run("from plotly.offline import init_notebook_mode, iplot\n"
                      "init_notebook_mode(connected=False)\niplot(f)")
    assert sum(len(str(data)) for data in cell.displays) < 20_000


@needs("PIL")
def test_pillow_images(kernel):
    cell = kernel.run("from PIL import Image\nImage.new('RGB', (4, 4), 'red')")
    assert set(cell.result) == {"image/png", "text/plain"}
    assert base64.b64decode(cell.result["image/png"]).startswith(PNG)


def test_nothing_heavy_is_loaded_at_start(fresh):
    cell = fresh.run("import sys\nsorted({'matplotlib', 'numpy', 'pandas', 'plotly', 'PIL', 'jedi',"
                     " 'prompt_toolkit', 'ctypes'} & set(sys.modules))")
    assert cell.text == "[]"


# Awaiting


@pytest.mark.parametrize("code", [
    "asyncio.run(main())",
    "asyncio.get_event_loop().run_until_complete(main())",
    "await main()",
    "main()",
    "asyncio.ensure_future(main(), loop=asyncio.get_event_loop())",
    "asyncio.run(main()); asyncio.get_event_loop().run_until_complete(main())",
    "t = asyncio.get_event_loop().create_task(main())\nawait t",
    "value = await asyncio.gather(main(), main())\nvalue[0]",
    "asyncio.get_event_loop().close()\n5",
    "loop = asyncio.new_event_loop(); asyncio.set_event_loop(loop)\n"
    "loop.run_until_complete(main())",
    "async with asyncio.timeout(5):\n    got = await main()\ngot",
    "[x async for x in agen()][0]",
])
@pytest.mark.filterwarnings("ignore")
def test_case_24_every_way_to_await(kernel, code):
    kernel.run("import asyncio\nasync def main():\n    await asyncio.sleep(0.01)\n    return 5\n"
               "async def agen():\n    yield await main()")
    for _ in range(2):
        cell = kernel.run(code)
        assert (cell.status, cell.text) == ("ok", "5"), (cell.error, cell.stderr)
        assert cell.stderr == ""


def test_awaited_errors_and_values(kernel):
    kernel.run("import asyncio\nasync def bad():\n    raise KeyError('k')  # here\n"
               "async def none():\n    pass\nclass Aw:\n    def __await__(self):\n"
               "        yield from asyncio.sleep(0).__await__()\n        return 'aw'\n")
    for code in ("bad()", "await bad()", "asyncio.run(bad())"):
        cell = kernel.run(code)
        assert cell.error["type"] == "KeyError" and "# here" in cell.error["traceback"]
    assert kernel.run("none()").order == ["done"]
    assert kernel.run("Aw()").text == "'aw'"
    assert kernel.run("await asyncio.sleep(0)\nAw()").text == "'aw'"
    assert kernel.run("bad();").error["type"] == "KeyError"


def test_background_task_goes_on_and_ends_on_interrupt(kernel):
    kernel.run("import asyncio\nticks = []\nasync def tick():\n    while True:\n"
               "        ticks.append(1)\n        await asyncio.sleep(0.01)\n"
               "t = asyncio.get_event_loop().create_task(tick())")
    kernel.run("await asyncio.sleep(0.1)")
    assert int(kernel.run("len(ticks)").text) > 2
    cell = kernel.run("print('go', flush=True)\nawait asyncio.sleep(60)", interrupt_on="go")
    assert (cell.status, cell.error["type"]) == ("interrupted", "KeyboardInterrupt")
    assert "await asyncio.sleep(60)" in cell.error["traceback"]
    assert kernel.run("ticks.clear()\nawait asyncio.sleep(0.1)\nlen(ticks)").text == "0"


def test_tasks_that_resist_are_left_behind(kernel):
    cell = kernel.run("import asyncio\ncount = 0\nasync def stubborn():\n    global count\n"
                      "    while True:\n        try:\n            await asyncio.sleep(0.02)\n"
                      "            count += 1\n        except asyncio.CancelledError:\n"
                      "            pass\nprint('go', flush=True)\n"
                      "await asyncio.gather(stubborn(), stubborn())",
                      interrupt_on="go", timeout=20)
    assert cell.status == "interrupted", cell
    assert cell.seconds < 2.5
    before = kernel.run("count").text
    assert kernel.run("await asyncio.sleep(0.2)\ncount").text == before


# Interrupts


@pytest.mark.parametrize("body", [
    "time.sleep(60)",
    "while True:\n    time.sleep(0.01)",
    "while True:\n    pass",
    "while True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n"
    "        n += 1\n        if n > 2:\n            raise",
    "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    pass\nwhile True:\n    pass",
    "await asyncio.sleep(60)",
    "asyncio.run(asyncio.sleep(60))",
    "asyncio.get_event_loop().run_until_complete(asyncio.sleep(60))",
    "asyncio.sleep(60)",
    "async def spin():\n    while True:\n        pass\nawait spin()",
    "threading.Event().wait()",
    "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "subprocess.run(['sleep', '60'])",
    "!sleep 60",
    "import os; os.read(os.pipe()[0], 1)",
    "[display(1) for _ in iter(int, 1)]",
    "while True: print('x' * 100)",
    "%timeit -n1 -r1 time.sleep(60)",
    "%%time\nprint('ready', flush=True)\nimport time; time.sleep(60)",
    "%%bash\necho ready\nsleep 60",
    "class R:\n    def __repr__(self):\n        time.sleep(60)\nR()",
    "class E(Exception):\n    def __str__(self):\n        return 'e'\n"
    "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    raise E()",
])
def test_interrupt(kernel, body):
    head = "import time, threading, asyncio, subprocess\nn = 0\nprint('ready', flush=True)\n"
    code = body if body.startswith("%%") else head + body
    kernel.run("kept = 'state'; import time")
    cell = kernel.run(code, interrupt_on="ready", timeout=30)
    assert cell.status == "interrupted", cell.events[-3:]
    assert cell.error is not None
    assert cell.seconds < 6
    assert kernel.run("kept").text == "'state'"


def test_interrupt_that_is_caught_for_good_leaves_the_cell_ok(kernel):
    cell = kernel.run("import time\nprint('ready', flush=True)\ntry:\n    time.sleep(60)\n"
                      "except KeyboardInterrupt:\n    print('caught')\n'fine'",
                      interrupt_on="ready")
    assert (cell.status, cell.text, cell.error) == ("ok", "'fine'", None)


def test_own_keyboard_interrupt_is_an_error(kernel):
    cell = kernel.run("raise KeyboardInterrupt")
    assert (cell.status, cell.error["type"]) == ("error", "KeyboardInterrupt")


def test_sigint_handler_of_a_cell_does_not_outlive_it(kernel):
    kernel.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    cell = kernel.run("import time\nprint('ready', flush=True)\ntime.sleep(60)",
                      interrupt_on="ready")
    assert cell.status == "interrupted"


def timer_off(kernel):
    while kernel.run("signal.setitimer(signal.ITIMER_REAL, 0);").status != "ok":
        assert kernel.alive()


def test_alarm_of_a_cell(kernel):
    kernel.run("import signal, time\nclass Late(Exception):\n    pass\n"
               "def on_alarm(signum, frame):\n    raise Late()\n"
               "signal.signal(signal.SIGALRM, on_alarm)")
    assert kernel.run("signal.getsignal(signal.SIGALRM) is on_alarm").text == "True"
    cell = kernel.run("signal.setitimer(signal.ITIMER_REAL, 0.1)\ntime.sleep(30)")
    assert (cell.status, cell.error["type"]) == ("error", "Late")
    cell = kernel.run("signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)\nn = 0\nwhile True:\n"
                      "    display(n)\n    n += 1")
    assert cell.error["type"] == "Late" and len(cell.displays) > 1
    timer_off(kernel)
    kernel.run("signal.setitimer(signal.ITIMER_REAL, 0.2);")
    kernel.idle_output(0.5)
    cell = kernel.run("'alive'")
    assert cell.text == "'alive'" and b"Late" in cell.raw("late_stderr")
    for number in range(60):
        cell = kernel.run("signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.002)\n"
                          f"x = {number}\nfor _ in range(30): display(x)\nx")
        timer_off(kernel)
    assert kernel.run("signal.signal(signal.SIGALRM, signal.SIG_DFL) is on_alarm").text == "True"


def test_res_14_a_cell_that_cannot_be_interrupted_is_killed(fresh):
    cell = fresh.run("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                     "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                     "print('ready', flush=True)\nwhile True:\n    time.sleep(1)",
                     interrupt_on="ready")
    assert (cell.status, cell.cause) == ("died", "signal:9")
    assert cell.seconds < 4


def test_signals_around_the_end_of_cells(kernel):
    """SIGINT at any moment, also between cells: never dead, never two errors, never a lost cell."""
    stop = time.monotonic() + 6
    number = interrupted = 0
    while time.monotonic() < stop:
        number += 1
        kernel.signal(signal.SIGINT)
        cell = kernel.run(f"x = {number}\nfor _ in range({number % 7} * 300): pass\nx",
                          interrupt_after=(number % 13) * 0.0001)
        kernel.signal(signal.SIGINT)
        assert cell.status in ("ok", "interrupted"), cell
        interrupted += cell.status == "interrupted"
        assert (cell.text == str(number)) or cell.status == "interrupted", cell
    assert number > 100 and interrupted > 0


def test_displays_under_signals_stay_whole(kernel):
    for number in range(40):
        cell = kernel.run("for n in range(100000):\n    display(n)",
                          interrupt_after=0.01 + number * 0.0007)
        assert cell.status == "interrupted", cell.events[-1]
        assert [d["text/plain"] for d in cell.displays] == [
            str(n) for n in range(len(cell.displays))]


# Input


def test_case_57_input(kernel):
    cell = kernel.run("a = input('name? ')\nb = input()\n(a, b)", answers=["Zoë", ""])
    assert cell.text == "('Zoë', '')"
    assert cell.of("input") == [{"prompt": "name? ", "password": False},
                                {"prompt": "", "password": False}]
    assert cell.stdout == ""
    cell = kernel.run("import getpass\ngetpass.getpass('key: ')", answers=["s3"])
    assert cell.text == "'s3'"
    assert cell.of("input") == [{"prompt": "key: ", "password": True}]


def test_case_57_nobody_answers(kernel):
    for code in ("input('name? ')", "from getpass import getpass; getpass()"):
        begin = time.monotonic()
        cell = kernel.run(code)
        assert time.monotonic() - begin < 2
        assert cell.error["type"] == "StdinNotImplementedError"
        assert "nobody can answer" in cell.error["message"]
    cell = kernel.run("try:\n    input()\nexcept EOFError:\n    print('no input')")
    assert cell.stdout == "no input\n"
    assert kernel.run("import sys; sys.stdin.read()").text == "''"


def test_input_from_a_replaced_stdin(kernel):
    cell = kernel.run("import io, sys\nsys.stdin = io.StringIO('one\\ntwo\\n')\ninput(), input()")
    assert (cell.text, cell.of("input")) == ("('one', 'two')", [])
    assert kernel.run("input()", answers=["three"]).text == "'three'"


def test_input_from_a_thread_is_refused(kernel):
    cell = kernel.run("import threading\ndef ask():\n    try:\n        input()\n"
                      "    except EOFError as e:\n        print(type(e).__name__)\n"
                      "t = threading.Thread(target=ask); t.start(); t.join()", answers=["x"])
    assert cell.stdout == "StdinNotImplementedError\n"


# Magics, shell commands, packages


def test_case_61_magics(kernel):
    assert kernel.run("!echo out; echo err >&2").stdout == "out\n"
    assert kernel.run("!exit 3").status == "ok"
    assert kernel.run("_exit_code").text == "3"
    assert kernel.run("word = 'w'\n!echo {word} $word").stdout == "w w\n"
    assert kernel.run("lines = !printf 'a\\nb\\n'\nlines").text == "['a', 'b']"
    cell = kernel.run("%%bash\nfor i in 1 2 3; do echo é$i; done")
    assert (cell.status, cell.stdout) == ("ok", "é1\né2\né3\n")
    cell = kernel.run("%%bash\necho no; exit 3")
    assert (cell.status, cell.error["type"]) == ("error", "CalledProcessError")
    assert kernel.run("%%script sh -c 'cat; echo \"a  b\"'\nx").stdout == "x\na  b\n"
    assert kernel.run("%%bash --out got\necho kept").order == ["done"]
    assert kernel.run("got").text == "'kept\\n'"
    cell = kernel.run("%%time\nx = 6\nx * 7")
    assert cell.text == "42" and "Wall time" in cell.stdout
    assert kernel.run("%%time\n1 / 0").error["type"] == "ZeroDivisionError"
    cell = kernel.run("%tb")
    assert cell.status == "ok" and cell.stdout.endswith("ZeroDivisionError: division by zero\n")
    assert "per loop" in kernel.run("%timeit -n2 -r2 pass").stdout
    assert kernel.run("%matplotlib inline").order in (["done"],)
    assert kernel.run("%nope").error["type"] == "UsageError"
    assert kernel.run("%%writefile f.txt\nhello").status == "ok"
    assert kernel.run("!cat f.txt").stdout == "hello\n"
    assert kernel.run("%cd -q /tmp\n%pwd").text == "'/tmp'"
    assert "Docstring" in kernel.run("len?").stdout
    assert kernel.run("%who_ls str").status == "ok"


def test_run_magic_and_reset(kernel):
    kernel.run("%%writefile script.py\nprint('script', __name__)\n1/0")
    cell = kernel.run("%run script.py")
    assert cell.stdout == "script __main__\n"
    assert (cell.status, cell.error["type"]) == ("error", "ZeroDivisionError")
    kernel.run("gone = 1")
    assert kernel.run("%reset -f").status == "ok"
    assert kernel.run("gone").error["type"] == "NameError"
    assert kernel.run("open.__module__").text in ("'io'", "'_io'")


def test_output_of_a_command_is_live(kernel):
    cell = kernel.run("!echo first; sleep 30", interrupt_on="first")
    assert (cell.stdout, cell.status) == ("first\n", "interrupted")


@needs("pip")
def test_case_61_pip(kernel):
    cell = kernel.run("%pip --version", timeout=60)
    assert cell.stdout.startswith("pip ") and cell.status == "ok"


def has_user_site() -> bool:
    code = "import site, sys; sys.exit(not site.ENABLE_USER_SITE or sys.prefix != sys.base_prefix)"
    return PYTHON is not None and subprocess.run(
        [PYTHON, "-c", code], check=False, cwd="/").returncode == 0


@pytest.mark.skipif(not has_user_site(), reason="the interpreter has no user site (a venv)")
@pytest.mark.parametrize("option", ["-B", "-s"])
def test_case_29_user_packages_at_once(start, tmp_path, option):
    kernel = start(option=option, HOME=str(tmp_path))
    cell = kernel.run("import site, pathlib, subprocess, sys\n"
                      "d = pathlib.Path(site.getusersitepackages())\n"
                      "print(d.is_dir(), sys.path.count(str(d)))\n"
                      "(d / 'fresh_module.py').write_text('value = 7')\n"
                      "import fresh_module\nfresh_module.value")
    assert (cell.stdout, cell.text) == ("True 1\n", "7"), cell
    for name in ("IPython", "traitlets", "decorator"):
        kernel.run(f"(d / '{name}').mkdir(); (d / '{name}/__init__.py').write_text('1/0')")
    kernel.run("(d / 'pygments.py').write_text('1/0')")
    again = start(option=option, HOME=str(tmp_path))
    assert again.run("import fresh_module; fresh_module.value").text == "7"
    assert again.run("import sys; sys.path[0]").text == "''"


def test_modules_of_the_work_directory(start, tmp_path):
    for name in ("sitecustomize", "usercustomize", "json", "traitlets", "IPython", "asyncio"):
        (tmp_path / f"{name}.py").write_text("print('planted'); raise SystemExit(9)")
    kernel = start(cwd=tmp_path)
    cell = kernel.run("import sys; sys.path[0], any('sandbox_kernel' in p or 'kernels' in p"
                      " for p in sys.path)")
    assert (cell.text, cell.late_stdout, cell.stdout) == ("('', False)", "", "")
    (tmp_path / "mine.py").write_text("value = 1")
    assert kernel.run("import mine; mine.value").text == "1"
    kernel.run("import os; os.makedirs('sub'); os.chdir('sub')\n"
               "open('deep.py', 'w').write('d = 2')")
    assert kernel.run("import deep; deep.d").text == "2"


def test_startup_file_is_not_run(start, tmp_path):
    (tmp_path / "start.py").write_text("planted = 1")
    kernel = start(cwd=tmp_path, PYTHONSTARTUP=str(tmp_path / "start.py"))
    assert kernel.run("planted").error["type"] == "NameError"
    assert kernel.run("import os; sorted(os.listdir(os.path.expanduser('~')))").text in (
        "[]", "['.local']", "['.cache', '.local']", "['.cache', '.config', '.local']",
        "['.cache', '.config']", "['.config']")


# Processes and threads


def test_fork_in_a_cell(kernel):
    cell = kernel.run("import os\npid = os.fork()\nif pid == 0:\n    display('in child')\n"
                      "    print('child')\nelse:\n    _, code = os.waitpid(pid, 0)\n"
                      "    print('parent', code)")
    assert cell.status == "ok"
    assert cell.stdout == "'in child'\nchild\nparent 0\n"
    cell = kernel.run("pid = os.fork()\nif pid == 0:\n    1/0\nos.waitpid(pid, 0)[1]")
    assert cell.text == "256" and "ZeroDivisionError" in cell.stderr
    cell = kernel.run("import sys\npid = os.fork()\nif pid == 0:\n    sys.exit(7)\n"
                      "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
    assert cell.text == "7"
    cell = kernel.run("print('once', end='')\npid = os.fork()\nif pid == 0:\n    os._exit(0)\n"
                      "os.waitpid(pid, 0)\nprint()")
    assert cell.stdout == "once\n"


def test_fork_bomb_children_do_not_answer(fresh):
    cell = fresh.run("import os\nfor _ in range(4):\n    os.fork()\nx = 1")
    assert cell.order == ["done"]
    cell = fresh.run("import asyncio\nawait asyncio.sleep(0)\npid = os.fork()\nif pid == 0:\n"
                      "    asyncio.run(asyncio.sleep(0.01))\n    input()\nos.waitpid(pid, 0)\n"
                      "await asyncio.sleep(0.01)\n'parent'", answers=["never"])
    assert cell.text == "'parent'" and "StdinNotImplementedError" in cell.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(kernel, method):
    cell = kernel.run("import multiprocessing as mp, math\n"
                      f"with mp.get_context('{method}').Pool(2) as pool:\n"
                      "    got = pool.map(math.factorial, [3, 4])\ngot", timeout=60)
    assert (cell.status, cell.text) == ("ok", "[6, 24]"), (cell.error, cell.stderr)


def test_multiprocessing_with_functions_of_a_cell(kernel):
    cell = kernel.run("import multiprocessing as mp\ndef square(n):\n    print('n', n)\n"
                      "    return n * n\nwith mp.get_context('fork').Pool(2) as pool:\n"
                      "    got = pool.map(square, [3, 4])\ngot", timeout=60)
    assert cell.text == "[9, 16]"
    assert sorted(cell.stdout.splitlines()) == ["n 3", "n 4"]
    cell = kernel.run("from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor\n"
                      "import math\nwith ThreadPoolExecutor(2) as p:\n"
                      "    print(list(p.map(abs, [-1, -2])))\n"
                      "with ProcessPoolExecutor(2, mp.get_context('fork')) as p:\n"
                      "    print(list(p.map(square, [2, 3])))", timeout=60)
    assert cell.stdout.startswith("[1, 2]\n") and cell.stdout.endswith("[4, 9]\n")


def test_thread_errors_go_to_stderr(kernel):
    cell = kernel.run("import threading\nt = threading.Thread(target=lambda: 1/0)\n"
                      "t.start(); t.join()")
    assert cell.status == "ok" and "ZeroDivisionError" in cell.stderr


def test_children_do_not_get_the_connection(kernel):
    cell = kernel.run("import os, subprocess\nprint(subprocess.run(['ls', '-l', '/proc/self/fd'],"
                      " capture_output=True, text=True, close_fds=False).stdout.count('socket'))\n"
                      "three = '/proc/self/fd/3'\n"
                      "print(os.path.exists(three) and 'socket' in os.readlink(three))")
    assert cell.stdout == "0\nFalse\n"


# The connection


def test_iso_24_frames_written_by_user_code(fresh):
    cell = fresh.run(
        "import os, struct\nbody = bytes(16) + b'{\"status\":\"ok\"}'\n"
        "frame = struct.pack('<IBI', len(body), 0x34, 1) + body\nwrote = 0\n"
        "for fd in [*range(3, 256), *range(900, 1024)]:\n    try:\n        os.write(fd, frame)\n"
        "        wrote += 1\n    except OSError:\n        pass\nprint('wrote', wrote > 0)")
    assert cell.status == "died" and cell.cause == "protocol", cell


def test_kernel_ends_with_its_connection(fresh):
    fresh._socket.close()
    deadline = time.monotonic() + 5
    while fresh.alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert fresh.returncode == 0
    fresh._socket = os.fdopen(os.open(os.devnull, os.O_RDONLY))


def test_large_cell(kernel):
    cell = kernel.run("data = '" + "x" * (8 << 20) + "'\nlen(data)", timeout=60)
    assert cell.text == str(8 << 20)


def test_start_without_a_connection_fails():
    done = subprocess.run([PYTHON, KERNEL], check=False, capture_output=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    assert done.returncode != 0


def test_a_wrong_kernel_is_told(tmp_path):
    script = tmp_path / "bad.py"
    script.write_text("import os; os.write(3, bytes(9))")
    with pytest.raises(ProtocolError):
        Kernel([PYTHON, script])


def test_overhead_of_a_cell(fresh):
    """A cell costs well below a millisecond, the harness included; the limit is for slow hosts."""
    for _ in range(50):
        fresh.run("1+1")
    begin = time.perf_counter()
    for _ in range(200):
        fresh.run("1+1")
    mean = (time.perf_counter() - begin) / 200
    print(f"1+1: {mean * 1e6:.0f} us with the harness")
    assert mean < 0.005
