# SPDX-License-Identifier: MIT
"""The R kernel against its protocol and the cases that concern it.

KERNEL_R names the interpreter that runs the kernel (default: R of PATH), KERNEL_R_DIR a directory
with the built kernel (default: the module is compiled here). What the interpreter has no package
for is skipped, and the skip says so.
"""

import base64
import functools
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import time
from pathlib import Path

import pytest

from kernelproto import Kernel

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "guest/kernels/r"
R = os.environ.get("KERNEL_R") or shutil.which("R")
pytestmark = pytest.mark.skipif(R is None, reason="no R found; KERNEL_R can name one")


@functools.cache
def has(package: str) -> bool:
    """True where R can load a package."""
    code = f"quit(status = !requireNamespace('{package}', quietly = TRUE))"
    argv = [R, "--vanilla", "--no-echo", "-e", code]
    return subprocess.run(argv, check=False, capture_output=True).returncode == 0


def needs(package: str) -> None:
    """Skip a test where R lacks a package."""
    if not has(package):
        pytest.skip(f"{R} has no package {package}")


@pytest.fixture(scope="session")
def kernel_dir(tmp_path_factory) -> Path:
    """A directory as the build makes it: the scripts and the module beside them."""
    if "KERNEL_R_DIR" in os.environ:
        return Path(os.environ["KERNEL_R_DIR"])
    made = tmp_path_factory.mktemp("kernel")
    made.chmod(0o755)
    for script in SOURCE.glob("*.R"):
        shutil.copy(script, made)
    subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared",
         "-fvisibility=hidden", "-Wall", "-Werror", "-o", made / "sandbox_kernel.so",
         *SOURCE.glob("*.c")], check=True)
    return made


@pytest.fixture(scope="session")
def argv(kernel_dir) -> list[str]:
    """The command of the file `argv`, for the interpreter and the directory under test."""
    words = (SOURCE / "argv").read_text().split()
    return [R, *words[1:-1], f"--file={kernel_dir}/kernel.R"]


@pytest.fixture(scope="module")
def start(argv, tmp_path_factory):
    """Start kernels in a work directory and with a package library of the test's own."""
    kernels = []
    library = tmp_path_factory.mktemp("library") / "deep" / "r"

    def start_kernel(cwd=None, **env) -> Kernel:
        cwd = cwd or tmp_path_factory.mktemp("work")
        clean = {"PATH": os.environ["PATH"], "HOME": "/tmp", "LC_ALL": "C.UTF-8",
                 "R_LIBS_USER": str(library), **env}
        kernels.append(Kernel(argv, env=clean, cwd=cwd))
        return kernels[-1]

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
    return shared["kernel"]


def png_size(data: str) -> tuple[int, int]:
    raw = base64.b64decode(data, validate=True)
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", raw[16:24])


def cpu_ms(kernel: Kernel) -> float:
    fields = Path(f"/proc/{kernel.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


# Values and output


def test_ready(kernel):
    assert kernel.ready["language"] == "r"
    assert re.fullmatch(r"\d+\.\d+\.\d+", kernel.ready["version"])


def test_state_and_result(kernel):
    assert kernel.run("x <- 41").order == ["done"]
    cell = kernel.run("x + 1")
    assert cell.order == ["result", "done"]
    assert cell.text == "[1] 42" and cell.stdout == "" and cell.status == "ok"
    assert kernel.run(".Last.value").text == "[1] 42"


def test_every_visible_value_is_printed_but_the_last(kernel):
    cell = kernel.run('1; invisible(2)\n"three"; NULL; (function() 4)()')
    assert cell.stdout == '[1] 1\n[1] "three"\nNULL\n' and cell.text == "[1] 4"
    assert kernel.run("1; invisible(2)").order == ["stdout", "done"]
    assert kernel.run("NULL").order == ["done"]
    assert kernel.run("").order == kernel.run("# only").order == ["done"]


def test_case_19_strings(kernel):
    cell = kernel.run('x <- "Ü中"; print(x); cat(x, "\\n"); nchar(x)')
    assert cell.stdout == '[1] "Ü中"\nÜ中 \n' and cell.text == "[1] 2"
    assert "UTF-8" in kernel.run('Sys.getlocale("LC_CTYPE")').text


def test_values_print_as_at_the_prompt(kernel):
    code = """print.foo <- function(x, ...) cat("<foo>\\n")
    setClass("P", representation(x = "numeric"))
    setMethod("show", "P", function(object) cat("<P>\\n"))
    f <- function(a) { # kept
        a
    }"""
    assert kernel.run(code).status == "ok"
    assert kernel.run('structure(1, class = "foo")').text == "<foo>"
    assert kernel.run('new("P", x = 1); 5').stdout == "<P>\n"
    assert kernel.run('new("P", x = 1)').text == "<P>"
    assert "# kept" in kernel.run("f").text
    assert kernel.run("quote(expr = )").status == "ok"
    assert kernel.run("data.frame(a = 1:2)").text == "  a\n1 1\n2 2"


def test_top_level_is_top_level(kernel):
    assert kernel.run("length(sys.calls()) + sys.nframe()").text == "[1] 0"
    assert kernel.run("identical(environment(), globalenv())").text == "[1] TRUE"
    for code in ("return(5)", "break"):
        assert kernel.run(code).status == "error"
    assert kernel.run("f <- function() parent.frame(); f()").text == "<environment: R_GlobalEnv>"


def test_output_is_live(kernel):
    cell = kernel.run('cat("a"); repeat Sys.sleep(0.05)', interrupt_on="a")
    assert cell.status == "interrupted" and cell.stdout == "a"


def test_children_print_to_the_streams(kernel):
    cell = kernel.run('cat("1\\n"); system("echo 2; echo e >&2"); cat("3\\n"); '
                      'system2("echo", "4")')
    assert cell.stdout == "1\n2\n3\n4\n" and cell.stderr == "e\n"
    assert kernel.run('system("cat", input = "in", intern = TRUE)').text == '[1] "in"'
    assert kernel.run('x <- system("exit 3"); x').text == "[1] 3"


def test_bytes_that_are_no_text(kernel):
    cell = kernel.run(r'''cat("a\xffb\n"); cat("\x01\t\"\\")''')
    assert cell.raw("stdout") == b'a\xffb\n\x01\t"\\'
    kernel.run(r'''print.bytes <- function(x, ...) cat(x, "\x01\t\"\\", "\xff", "\xed\xa0\x80")''')
    cell = kernel.run('structure("\u2028😀", class = "bytes")')
    assert cell.text == '\u2028😀 \x01\t"\\ \ufffd \ufffd\ufffd\ufffd'


def test_bad_code_bytes(kernel):
    assert "UTF-8" in kernel.run(b'x <- "\xff"').error["message"]
    assert "zero" in kernel.run(b'x <- "a\0"').error["message"]
    assert kernel.run("x <- 5\r\ny <- 6\r\nx + y").text == "[1] 11"


def test_sink_of_the_code(kernel, tmp_path):
    cell = kernel.run(f'sink("{tmp_path}/s"); print(1); 2; sink(); 3')
    assert cell.text == "[1] 3" and cell.stdout == ""
    assert (tmp_path / "s").read_text() == "[1] 1\n[1] 2\n"


def test_case_47_environment_is_byte_exact(start):
    value = 'a\'b"$(id)\n`x`\\ \t%s é'
    kernel = start(ODD=value, REPLY="x y")
    assert kernel.run('cat(Sys.getenv("ODD"))').stdout == value
    assert kernel.run('system("printf %s \\"$ODD\\"")').stdout == value


def test_case_17_names_stay_whole(start, tmp_path):
    names = ["販売データ_今週.csv", "Générer – suite.js", "a b'c\"d$e.txt", "-rf", "ｅ.txt",
             "e\u0301.txt", "\u00e9.txt"]
    for number, name in enumerate(names):
        (tmp_path / name).write_text(f"{number}\n")
    kernel = start(cwd=tmp_path)
    cell = kernel.run("for (n in list.files()) cat(n, readLines(n), sep = '\\n')")
    lines = cell.stdout.splitlines()
    assert sorted(zip(lines[::2], lines[1::2])) == sorted((n, str(i)) for i, n in enumerate(names))
    assert kernel.run('readLines("販売データ_今週.csv")').text == '[1] "0"'


# Conditions


def test_case_61_error_shows_the_call(kernel):
    cell = kernel.run('f <- function(n) g(n)\ng <- function(n) stop("boom")\nf(1)')
    assert cell.status == "error" and cell.stderr == ""
    assert cell.error["type"] == "simpleError" and cell.error["message"] == "boom"
    first, *calls = cell.error["traceback"].splitlines()
    assert first == "Error in g(n) : boom"
    assert [re.sub(r"<cell \d+>", "<cell>", line) for line in calls] == [
        "Traceback:", "1: f(1)", "2: g(n) at <cell>:1", '3: stop("boom") at <cell>:2']


def test_error_kinds(kernel):
    assert kernel.run('stop("top")').error["traceback"].startswith("Error: top\n")
    cell = kernel.run('stop(structure(class = c("mine", "error", "condition"), '
                      'list(message = "m", call = NULL)))')
    assert cell.error["type"] == "mine" and cell.error["message"] == "m"
    assert "object 'nope' not found" in kernel.run("nope").error["message"]
    cell = kernel.run('cat("before\\n"); stop("x"); cat("never\\n")')
    assert cell.stdout == "before\n" and cell.order[-2:] == ["error", "done"]
    assert kernel.run('tryCatch(stop("a"), error = function(e) "caught")').text == '[1] "caught"'
    assert kernel.run('try(stop("a"), silent = TRUE); 1').text == "[1] 1"
    cell = kernel.run('f <- function() log(-1); x <- 1; x[[3]]')
    assert cell.error["message"] == "subscript out of bounds"


def test_parse_error_shows_line_and_caret(kernel):
    cell = kernel.run("cat('never')\nx <- 1\nx y")
    assert cell.order == ["error", "done"] and cell.error["type"] == "parseError"
    assert ":3:3: unexpected symbol" in cell.error["message"]
    assert cell.error["message"].endswith("3: x y\n     ^")


def test_errors_no_handler_sees(kernel):
    cell = kernel.run("f <- function() f(); f()")
    assert cell.status == "error" and re.search("stack|nested", cell.error["message"])
    assert kernel.run('invokeRestart("abort"); 1').status == "error"
    assert kernel.run('globalCallingHandlers(NULL); stop("x")').error["message"] == "x"
    assert kernel.run('stop("y")').error["traceback"].startswith("Error: y")
    assert kernel.run("1").text == "[1] 1"


def test_global_calling_handlers_work(kernel):
    cell = kernel.run('globalCallingHandlers(message = function(m) cat("seen\\n"))')
    assert cell.status == "ok"
    assert kernel.run('message("m")').stdout == "seen\n"
    kernel.run("globalCallingHandlers(NULL)")


def test_warnings_come_once_after_the_expression(kernel):
    cell = kernel.run('f <- function() { warning("w1"); as.integer("b") }\nf(); 5')
    assert cell.stdout == "[1] NA\n" and cell.text == "[1] 5"
    assert cell.stderr == ("Warning messages:\n1: In f() : w1\n"
                           "2: In f() : NAs introduced by coercion\n")
    assert "w1" in kernel.run("warnings()").text
    assert kernel.run('warning("careful")').stderr == "Warning message:\ncareful \n"
    cell = kernel.run('f <- function() { warning("w"); stop("s") }; f()')
    assert cell.stderr == "Warning message:\nIn f() : w\n" and cell.error["message"] == "s"
    assert kernel.run("1").stderr == ""
    assert "12 warnings" in kernel.run('for (i in 1:12) warning("m")').stderr
    assert kernel.run('suppressWarnings(as.integer("z"))').order == ["result", "done"]


def test_options_warn(kernel):
    cell = kernel.run('options(warn = 1); f <- function() { warning("now"); cat("later\\n") }; f()')
    assert "Warning in f() : now" in cell.stderr
    cell = kernel.run('options(warn = 2); f <- function() as.integer("q"); f()')
    assert "converted from warning" in cell.error["message"]
    assert cell.error["traceback"].splitlines()[-1].startswith("1: f()")
    kernel.run("options(warn = 0)")


def test_messages_are_stderr(kernel):
    cell = kernel.run('message("hey"); 1')
    assert cell.stderr == "hey\n" and cell.text == "[1] 1" and cell.status == "ok"


def test_errno(kernel):
    cell = kernel.run('file("/nonexistent/x", "w")')
    assert cell.error["errno"] == 2 and "No such file" in cell.stderr
    assert "errno" not in kernel.run('stop("x")').error
    assert kernel.run('stop("cannot write: No space left on device")').error["errno"] == 28


def test_error_while_a_value_prints(kernel):
    cell = kernel.run('print.bad <- function(x, ...) { cat("part\\n"); stop("no") }\n'
                      'structure(1, class = "bad")')
    assert cell.stdout == "part\n" and cell.error["message"] == "no" and cell.result is None
    assert kernel.run("2").text == "[1] 2"


def test_the_code_cannot_shadow_the_kernel(kernel):
    names = "c list paste print lapply vapply identical head is.null length step send json"
    define = "; ".join(f'{name} <- function(...) base::stop("mine")' for name in names.split())
    assert kernel.run(define).status == "ok"
    assert kernel.run("41 + 1").text == "[1] 42"
    assert kernel.run("f <- function() base::stop('z'); f()").error["message"] == "z"
    assert kernel.run("rm(list = ls(all.names = TRUE)); 1").text == "[1] 1"


# Input


def test_case_57_nobody_answers(kernel):
    for code in ('readline("name? ")', "readLines(stdin(), 1)", 'readLines("stdin")',
                 'readLines(file("stdin"))', "scan()", 'scan("stdin")', 'menu(c("a", "b"))'):
        name = code.partition("(")[0]
        cell = kernel.run(f"f <- function() {code}\nf()", timeout=5)
        assert cell.status == "error", code
        assert cell.error["message"] == f"{name}() was called, but nobody can answer it in this run"
        assert cell.error["traceback"].splitlines()[-1].startswith("2: " + code[:10])
    assert kernel.run("browser(); 5", timeout=5).text == "[1] 5"


def test_case_57_answers(kernel):
    cell = kernel.run('x <- readline("name? "); x', answers=["  Ünal 中 "])
    assert cell.one("input") == {"prompt": "name? ", "password": False}
    assert cell.text == '[1] "Ünal 中"'
    cell = kernel.run('getOption("askpass")("pw: ")', answers=["s3"])
    assert cell.one("input") == {"prompt": "pw: ", "password": True} and cell.stdout == ""
    cell = kernel.run('menu(c("a", "b"), title = "pick")', answers=["9", "b"])
    assert cell.text == "[1] 2" and "1: a" in cell.stdout and len(cell.of("input")) == 2
    assert kernel.run("readLines(stdin(), 2)", answers=["p", "q"]).text == '[1] "p" "q"'
    assert kernel.run('readLines("stdin")', answers=["p", "q"]).text == '[1] "p" "q"'
    assert kernel.run("scan(quiet = TRUE)", answers=["1 2", "3", ""]).text == "[1] 1 2 3"
    assert kernel.run("scan(quiet = TRUE, n = 1)", answers=["7"]).text == "[1] 7"
    cell = kernel.run("f <- function(x) { browser(); x }; f(3)", answers=["x <- 8", "c"])
    assert cell.text == "[1] 8"


def test_readers_of_files_still_read(kernel, tmp_path):
    (tmp_path / "f").write_text("a b\nc\n")
    cell = kernel.run(f'f <- "{tmp_path}/f"; readLines(f); scan(f, "", quiet = TRUE)')
    assert cell.stdout == '[1] "a b" "c"  \n' and cell.text == '[1] "a" "b" "c"'
    assert kernel.run('readLines(textConnection("abc"))').text == '[1] "abc"'
    assert kernel.run('scan(text = "1 2", quiet = TRUE)').text == "[1] 1 2"


# Plots


def plots(cell) -> list[tuple[int, int]]:
    return [png_size(display["image/png"]) for display in cell.displays]


def test_a_plot_comes_where_it_was_drawn(kernel):
    cell = kernel.run('plot(1); cat("a\\n"); hist(1:9); cat("b\\n"); 7')
    assert cell.order == ["display", "stdout", "display", "stdout", "result", "done"]
    assert plots(cell) == [(800, 600)] * 2


def test_every_page_of_a_loop_comes(kernel):
    cell = kernel.run('for (i in 1:4) { cat(i, "\\n"); plot(i) }')
    # A page is known to be finished when the next one begins, and that is after the next line.
    assert cell.order == ["stdout"] + ["display", "stdout"] * 2 + ["display", "display", "done"]
    assert cell.stdout == "1 \n2 \n3 \n4 \n"
    assert len({display["image/png"] for display in cell.displays}) == 4


def test_additions_are_one_picture(kernel):
    for code in ("plot(1:3); lines(3:1); abline(h = 2); legend('top', 'x'); cat('x')",
                 "curve(sin, 0, 3); curve(cos, add = TRUE)",
                 "par(mfrow = c(1, 2)); plot(1); cat('a'); plot(2)",
                 "layout(matrix(1:2, 1)); plot(1); plot(2); cat('done')",
                 "plot(1); dev.off()",
                 "library(grid); grid.newpage(); grid.rect(); grid.text('t')"):
        cell = kernel.run(code)
        assert cell.status == "ok" and len(plots(cell)) == 1, code


def test_a_page_that_changes_late_comes_again(kernel):
    cell = kernel.run('add <- function() lines(1:3)\nplot(1:3); cat("s\\n"); add()')
    assert cell.order == ["display", "stdout", "display", "done"]
    assert cell.displays[0] != cell.displays[1]


def test_plots_before_an_error_an_interrupt_and_a_death(kernel):
    assert kernel.run('plot(1); stop("x")').order == ["display", "error", "done"]
    cell = kernel.run('for (i in 1:2) plot(i); stop("x")')
    assert cell.order == ["display", "display", "error", "done"]
    cell = kernel.run('plot(1); cat("go"); repeat {}', interrupt_on="go")
    assert cell.status == "interrupted" and len(plots(cell)) == 1
    cell = kernel.run('{ plot(1); cat("go"); repeat {} }', interrupt_on="go")
    assert cell.order == ["stdout", "display", "error", "done"]


def test_devices_of_the_code_are_its_own(start, tmp_path):
    kernel = start(cwd=tmp_path)
    cell = kernel.run('png("u.png"); plot(1); invisible(dev.off())')
    assert cell.order == ["done"] and (tmp_path / "u.png").stat().st_size > 500
    cell = kernel.run('plot(1); pdf("u.pdf"); plot(2); invisible(dev.off()); cat("q"); lines(1:2)')
    assert len(plots(cell)) >= 1 and cell.status == "ok"
    assert kernel.run("dev.list()").order == ["done"]
    cell = kernel.run("dev.new(width = 10, height = 5); plot(1)")
    assert plots(cell) == [(1000, 500)]
    cell = kernel.run("options(repr.plot.width = 4, repr.plot.height = 3); plot(1)")
    assert plots(cell) == [(400, 300)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["u.pdf", "u.png"]


def test_no_device_without_a_plot(kernel):
    cell = kernel.run("x <- 1; dev.cur()[[1]]")
    assert cell.text == "[1] 1"
    assert kernel.run('par("mar")').order == ["result", "done"]
    assert kernel.run("plot.new()").order == ["done"]
    assert kernel.run('grepl("plots-", list.files(tempdir()))').text == "logical(0)"


def test_ggplot(start, tmp_path):
    needs("ggplot2")
    kernel = start(cwd=tmp_path)
    cell = kernel.run("library(ggplot2)\np <- ggplot(mtcars, aes(wt, mpg)) + geom_point()\np",
                      timeout=60)
    assert cell.order[-2:] == ["display", "done"] and cell.result is None
    assert plots(cell) == [(800, 600)] and cell.stdout == ""
    cell = kernel.run('p; cat("after\\n"); p + geom_line(); 5')
    assert cell.order == ["display", "stdout", "display", "result", "done"]
    assert len(plots(kernel.run("for (i in 1:2) print(p)"))) == 2
    cell = kernel.run("ggplot(mtcars, aes(nope, mpg)) + geom_point()")
    assert cell.status == "error" and cell.displays == [] and cell.stdout == ""
    cell = kernel.run("ggplot(data.frame(x = c(1, NA), y = 1), aes(x, y)) + geom_point()")
    assert cell.stderr.count("Removed 1 row") == 1
    assert kernel.run('ggsave("g.png", p, width = 3, height = 3)').displays == []
    assert [path.name for path in tmp_path.iterdir()] == ["g.png"]


def test_html_widget_is_self_contained(kernel):
    needs("htmlwidgets")
    code = """
    dir <- tempfile(); dir.create(dir)
    writeLines('var tag = "</script>";', file.path(dir, "w.js"))
    writeBin(as.raw(1:9), file.path(dir, "i.png"))
    writeLines("b { background: url(i.png) }", file.path(dir, "w.css"))
    need <- htmltools::htmlDependency("w", "1.0", dir, script = "w.js", stylesheet = "w.css")
    w <- htmlwidgets::createWidget("mine", list(a = "é"), dependencies = need)
    """
    assert kernel.run(code, timeout=60).status == "ok"
    cell = kernel.run('w; cat("a"); print(w); w')
    assert cell.order == ["display", "stdout", "display", "result", "done"]
    page = cell.result["text/html"]
    assert cell.result["text/plain"] == "<mine>" and "é" in page
    assert 'var tag = "<\\/script>"' in page
    assert "url(data:image/png;base64,AQIDBAUGBwgJ)" in page
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", page)
    cell = kernel.run('htmltools::tags$b("x")')
    assert "<b>x</b>" in cell.result["text/html"] and cell.text == "<b>x</b>"


# Displays and barriers


def test_display_kinds(kernel):
    cell = kernel.run('sandbox_display("image/png", as.raw(1:10))')
    assert cell.displays == [{"image/png": "AQIDBAUGBwgJCg=="}]
    cell = kernel.run('sandbox_display("audio/wav", "AAAA\\nBBBB")')
    assert cell.displays == [{"audio/wav": "AAAABBBB"}]
    cell = kernel.run('sandbox_display("image/svg+xml", "<svg>é</svg>", list(width = 3))')
    assert cell.displays == [{"image/svg+xml": "<svg>é</svg>"}]
    if has("jsonlite"):
        cell = kernel.run('sandbox_display("application/vnd.x+json", "{\\"a\\":[1,2]}")\n'
                          'sandbox_display("application/json", list(a = 1))')
        assert cell.displays == [{"application/vnd.x+json": {"a": [1, 2]}},
                                 {"application/json": {"a": 1}}]


def test_2000_lines_and_displays_in_order(kernel):
    cell = kernel.run("""for (i in 1:2000) {
        cat("line", i, "\n")
        sandbox_display("text/html", paste0("<b>", i, "</b>"))
    }""", timeout=60)
    expected = []
    for i in range(1, 2001):
        expected += [("stdout", f"line {i} \n".encode()), ("display", f"<b>{i}</b>")]
    found = [(event.kind, bytes(event.data) if event.kind == "stdout"
              else event.data["data"]["text/html"]) for event in cell.events[:-1]]
    assert found == expected


def test_order_with_children_and_both_streams(kernel):
    cell = kernel.run("""for (i in 1:50) {
        system(paste("echo", i)); message(i)
        sandbox_display("text/plain", as.character(i))
    }""", timeout=60)
    for stream in ("stdout", "stderr"):
        merged = b"".join(bytes(event.data) if event.kind == stream
                          else event.data["data"]["text/plain"].encode() + b"\n"
                          for event in cell.events if event.kind in (stream, "display"))
        assert merged.split() == [str(i).encode() for i in range(1, 51) for _ in "ab"]


def test_order_with_real_plots(kernel):
    code = "\n".join(f'cat({i}, "\\n")\nbarplot({i}:{i + 2})' for i in range(30))
    cell = kernel.run(code, timeout=60)
    assert cell.order == ["stdout", "display"] * 30 + ["done"]
    assert [bytes(data) for data in cell.of("stdout")] == [f"{i} \n".encode() for i in range(30)]
    assert len({display["image/png"] for display in cell.displays}) == 30


def test_values_that_are_too_large(kernel):
    cell = kernel.run('sandbox_display("text/html", strrep("x", 60e6)); "still"', timeout=60)
    note = cell.displays[0]["text/plain"]
    assert list(cell.displays[0]) == ["text/plain"]
    assert "text/html" in note and "60000002" in note and "limit" in note
    assert cell.text == '[1] "still"'
    kernel.run('print.long <- function(x, ...) cat(strrep("é", x))')
    assert len(kernel.run('structure(20e6, class = "long")', timeout=60).text) == 20_000_000
    cell = kernel.run('structure(40e6, class = "long")', timeout=60)
    assert "text/plain" in cell.text and "80000002" in cell.text
    kernel.run('long <- paste0("head", strrep("é", 3e6), "tail")')
    cell = kernel.run("f <- function() stop(simpleError(long)); f()")
    for text in (cell.error["message"], cell.error["traceback"]):
        assert 1_000_000 < len(text.encode()) < 1_100_000 and "left out" in text
        assert "\ufffd" not in text
    assert cell.error["message"].startswith("head") and cell.error["message"].endswith("tail")


def test_long_code(kernel):
    cell = kernel.run('x <- "' + "é" * 5_000_000 + '"; nchar(x)', timeout=60)
    assert cell.text == "[1] 5000000"


# Interrupts


INTERRUPTED = {
    "loop": "cat('go'); repeat {}",
    "sleep": "cat('go'); Sys.sleep(60)",
    "system": "cat('go'); system('sleep 60'); 5",
    "last system": "cat('go'); system('sleep 60')",
    "intern": "cat('go'); system('sleep 60', intern = TRUE)",
    "system in a function": "f <- function() { cat('go'); system('sleep 60'); repeat {} }; f()",
    "system2": "cat('go'); system2('sleep', '60')",
    "vector code": "cat('go'); while (TRUE) y <- sum(sqrt(1:1000))",
    "errors caught": "cat('go'); repeat try(stop('x'), silent = TRUE)",
    "printing": "print.slow <- function(x, ...) { cat('go', file = stderr()); repeat {} }\n"
                "cat('go'); structure(1, class = 'slow')",
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_case_7_interrupt_keeps_state(kernel, name):
    kernel.run("mark <- 'here'")
    cell = kernel.run(INTERRUPTED[name], interrupt_on="go", timeout=10)
    assert cell.status == "interrupted" and cell.stdout.startswith("go"), cell
    assert cell.error["type"] == "interrupt" and cell.seconds < 2
    assert kernel.run("mark").text == '[1] "here"'


def test_interrupt_while_waiting_for_input(start):
    kernel = start()
    for code in ('readline("? ")', "browser()"):
        # The answer is held back by having none in time: SIGINT comes before the harness answers.
        cell = kernel.run(f"cat('go\\n'); Sys.sleep(0.3); {code}", interrupt_on="go")
        assert cell.status == "interrupted"
    assert kernel.run("1").text == "[1] 1"


def test_an_interrupt_can_be_caught(kernel):
    cell = kernel.run("tryCatch(Sys.sleep(60), interrupt = function(e) 'caught')",
                      interrupt_after=0.2)
    assert cell.text == '[1] "caught"' and cell.status == "ok"
    cell = kernel.run("f <- function() { on.exit(cat('clean')); repeat {} }; f()",
                      interrupt_after=0.2)
    assert cell.stdout == "clean" and cell.status == "interrupted"


def test_code_that_swallows_every_interrupt_is_killed(start):
    kernel = start()
    cell = kernel.run("repeat tryCatch(repeat {}, interrupt = function(e) 1)", interrupt_after=0.2)
    assert cell.status == "died" and cell.cause == "signal:9"


def test_sigint_between_cells_is_ignored(kernel):
    for i in range(300):
        kernel.signal(signal.SIGINT)
        cell = kernel.run("1 + 1")
        assert cell.text == "[1] 2" and cell.status == "ok", (i, cell)
        kernel.signal(signal.SIGINT)
    time.sleep(0.05)
    assert kernel.run("2").text == "[1] 2"


def test_interrupt_at_any_moment(kernel):
    """Around begin and end of a cell: it is either done or interrupted, and the next one runs."""
    for i in range(150):
        cell = kernel.run("x <- 0; for (i in 1:20000) x <- x + 1; x", interrupt_after=i * 0.00003)
        assert cell.status in ("ok", "interrupted") and cell.order[-1] == "done"
        assert kernel.run("3").text == "[1] 3"


# Processes


def test_forked_children_stay_silent(kernel):
    cell = kernel.run("unlist(parallel::mclapply(1:4, function(i) i * 2))")
    assert cell.text == "[1] 2 4 6 8" and cell.status == "ok"
    cell = kernel.run("""invisible(parallel::mclapply(1:2, function(i) {
        plot(i); sandbox_display("text/plain", "child"); readline("child? ")
    }))""")
    assert cell.of("input") == [] and not any("text/plain" in d for d in cell.displays)
    cell = kernel.run("""job <- parallel:::mcfork()
    if (inherits(job, "masterProcess")) cat("child\\n")
    7""")
    assert cell.status == "ok" and cell.text == "[1] 7"
    kernel.idle_output(0.3)
    cell = kernel.run('invisible(parallel::mclapply(1:2, function(i) stop("in child"))); 8')
    assert cell.text == "[1] 8" and cell.status == "ok"


def test_children_inherit_no_descriptor(kernel):
    cell = kernel.run("system('ls -l /proc/self/fd')")
    assert "socket:" not in cell.stdout and "kernel.R" not in cell.stdout


def test_quit_is_an_exit(start):
    for code, cause in (("quit(status = 3)", "exit:3"), ("q('no')", "exit:0"),
                        ("f <- function() q(status = 4); f()", "exit:4"),
                        ("cat('x'); tools::pskill(Sys.getpid(), 9); Sys.sleep(5)", "signal:9")):
        cell = start().run(code)
        assert cell.status == "died" and cell.cause == cause


def test_planted_profiles_are_not_read(start, tmp_path):
    (tmp_path / ".Rprofile").write_text('cat("PLANTED\\n"); planted <- TRUE\n')
    (tmp_path / ".Renviron").write_text("PLANTED=1\nR_LIBS=/planted\n")
    (tmp_path / ".RData").write_text("PLANTED")
    kernel = start(cwd=tmp_path, HOME=str(tmp_path))
    cell = kernel.run('exists("planted"); Sys.getenv("PLANTED")')
    assert cell.late_stdout == "" and cell.stdout == "[1] FALSE\n" and cell.text == '[1] ""'


def test_case_29_installed_packages_load_at_once(start, tmp_path):
    package = tmp_path / "praiseme"
    (package / "R").mkdir(parents=True)
    (package / "DESCRIPTION").write_text(
        "Package: praiseme\nVersion: 1.0\nTitle: T\nDescription: D.\nLicense: MIT\n"
        "Author: A\nMaintainer: A <a@b.c>\n")
    (package / "NAMESPACE").write_text("export(praise)\n")
    (package / "R" / "a.R").write_text(
        'praise <- function() "well done"\n'
        '.onAttach <- function(...) packageStartupMessage("welcome")\n')
    kernel = start()
    cell = kernel.run(f'install.packages("{package}", repos = NULL, type = "source")', timeout=120)
    assert cell.status == "ok", cell.stderr
    assert "DONE (praiseme)" in cell.stderr + cell.stdout
    cell = kernel.run("library(praiseme); praise()")
    assert cell.stderr == "welcome\n" and cell.text == '[1] "well done"' and cell.status == "ok"
    assert start().run("praiseme::praise()").text == '[1] "well done"'


def test_mirror_setting(start):
    kernel = start(SANDBOX_CRAN="http://127.0.0.1:9/cran")
    assert kernel.run('getOption("repos")[["CRAN"]]').text == '[1] "http://127.0.0.1:9/cran"'


def test_help_needs_no_terminal(kernel):
    assert "Arithmetic Mean" in kernel.run("?mean").text


# The module and the cost


def test_module_needs_an_old_libc_only(kernel_dir):
    objdump = shutil.which("objdump")
    if not objdump:
        pytest.skip("no objdump")
    text = subprocess.run([objdump, "-T", kernel_dir / "sandbox_kernel.so"], check=True,
                          capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split(".")))
                for found in re.findall(r"GLIBC_([\d.]+)", text)}
    assert versions and max(versions) <= (2, 17)


def test_overhead_of_a_cell(start):
    kernel = start()
    for _ in range(100):
        kernel.run("1 + 1")
    before = cpu_ms(kernel)
    for _ in range(1000):
        assert kernel.run("1 + 1").text == "[1] 2"
    assert (cpu_ms(kernel) - before) / 1000 < 1.0


def test_start_is_near_that_of_bare_r(start, tmp_path):
    bare, ready = [], []
    for _ in range(5):
        begin = time.monotonic()
        subprocess.run([R, "--vanilla", "--no-echo", "-e", "0"], check=True, cwd=tmp_path,
                       stdout=subprocess.DEVNULL)
        bare.append(time.monotonic() - begin)
        begin = time.monotonic()
        kernel = start()
        kernel.run("0")
        ready.append(time.monotonic() - begin)
        kernel.close()
    assert min(ready) < 1.3 * min(bare) + 0.02, (statistics.median(bare), statistics.median(ready))
