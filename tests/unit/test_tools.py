# SPDX-License-Identifier: MIT
"""Each check of tools/ must fail on a bad example, and pass on a good one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
HEAD = "/* SPDX-License-Identifier: MIT */\n/* An example. */\n"
HEADER = HEAD + "#pragma once\n"


def check(name, root, files):
    """Write files below root, run a check over them, return (exit status, output)."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    run = subprocess.run([sys.executable, TOOLS / name, "--root", root],
                         capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


GOOD = {
    "src/base/buf.h": HEADER,
    "src/base/buf.c": HEAD + '#include "base/buf.h"\n#include <stdio.h>\n',
    "src/http/client.c": HEAD + '#include "base/buf.h"\n#include <curl/curl.h>\n',
    "src/engine/engine.h": HEADER,
    "src/session/session.c": HEAD + '#include "engine/engine.h"\n#include "base/buf.h"\n',
    "launcher/main.c": HEAD + '#include "base/buf.h"\n',
}

BAD_LAYERS = {
    "an arrow that points up": ({"src/base/up.c": '#include "engine/engine.h"\n'},
                                "base may not use engine"),
    "a room beside": ({"src/store/x.c": '#include "http/x.h"\n', "src/http/x.h": ""},
                      "store may not use http"),
    "a launcher that uses the engine": ({"launcher/x.c": '#include "engine/engine.h"\n'},
                                        "launcher may not use"),
    "a launcher that uses the daemon's base": (
        {"launcher/x.c": '#include "base/json.h"\n', "src/base/json.h": ""}, "base/json.h"),
    "an init that uses the launcher": (
        {"guest/init/x.c": '#include "launcher/x.h"\n', "launcher/x.h": ""},
        "guest/init may not use launcher/x.h"),
    "a private header": (
        {"src/session/x.c": '#include "engine/pool-internal.h"\n',
         "src/engine/pool-internal.h": ""}, "private to engine"),
    "curl in a second file": ({"src/http/server.c": "#include <curl/curl.h>\n"},
                              "belongs to src/http/client.c alone"),
    "a library seen by two files": (
        {"src/base/a.c": "#include <lz4.h>\n", "src/base/b.c": "#include <lz4.h>\n"},
        "<lz4.h> is in several files"),
    "the own header second": (
        {"src/base/x.c": '#include <stdio.h>\n#include "base/x.h"\n', "src/base/x.h": ""},
        "the first include is not src/base/x.h"),
    "a name without a room": ({"src/base/x.c": '#include "buf.h"\n'}, 'not written "room/file.h"'),
    "a file that does not exist": ({"src/base/x.c": '#include "base/none.h"\n'},
                                   "not a file of ours"),
    "an unknown room": ({"src/attic/x.c": '#include "base/buf.h"\n'}, "unknown to check-layers"),
    "the public header inside": ({"src/session/x.c": "#include <sandbox_agent.h>\n"},
                                 "for users of the library"),
    "a cycle": ({"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": '#include "base/a.h"\n'},
                "include cycle"),
}

BAD_STYLE = {
    "strcpy": ("void f(char *a)\n{\n    strcpy(a, a);\n}\n", "a banned function"),
    "a banned call after a cast": ("int f(char *a)\n{\n    return (int)atoi (a);\n}\n", "banned"),
    "fork": ("int f(void)\n{\n    return fork();\n}\n", "use posix_spawn"),
    "a goto ladder": ("void f(void)\n{\n    goto out;\nout:\n    return;\n}\n", "goto"),
    "a typedef": ("typedef struct x x_t;\n", "typedef"),
    "a // comment": ("// note\n", "a // comment"),
    "a descriptor that leaks": ("int f(void)\n{\n    return open(\"/\", O_RDONLY);\n}\n",
                                "without CLOEXEC"),
    "a socket that leaks": ("int f(void)\n{\n    return socket(AF_UNIX, SOCK_STREAM, 0);\n}\n",
                            "without CLOEXEC"),
    "a tab": ("\tint x;\n", "a tab"),
    "a long line": ("int " + "x, " * 60 + "y;\n", "columns"),
    "a registry": ('const char *x = "https://pypi' + '.org/simple";\n', "registry"),
    "a machine's path": ('const char *x = "/ho' + 'me/somebody/x";\n', "somebody's machine"),
    "a foreign document": ("/* See design" + ".md. */\n", "not in the repository"),
    "an unowned note": ("/* TO" + "DO: later */\n", "unowned"),
    "trailing space": ("int x; \n", "trailing space"),
    "no newline": ("int x;", "no newline"),
}


@pytest.mark.parametrize("name", ["check-layers", "check-style", "check-size"])
def test_good_tree_passes(tmp_path, name):
    status, output = check(name, tmp_path, GOOD)
    assert status == 0, output


@pytest.mark.parametrize("name", ["check-layers", "check-style", "check-size"])
def test_empty_tree_fails(tmp_path, name):
    status, output = check(name, tmp_path, {})
    assert status == 1
    assert "nothing to check" in output


@pytest.mark.parametrize("case", BAD_LAYERS)
def test_layers_refuses(tmp_path, case):
    files, complaint = BAD_LAYERS[case]
    files = {path: (HEADER if path.endswith(".h") else HEAD) + text
             for path, text in files.items()}
    status, output = check("check-layers", tmp_path, GOOD | files)
    assert status == 1
    assert complaint in output


@pytest.mark.parametrize("case", BAD_STYLE)
def test_style_refuses(tmp_path, case):
    text, complaint = BAD_STYLE[case]
    status, output = check("check-style", tmp_path, GOOD | {"src/base/bad.c": HEAD + text})
    assert status == 1
    assert "src/base/bad.c:" in output
    assert complaint in output


def test_style_ignores_comments_and_strings(tmp_path):
    text = '/* strcpy(a, b) is banned */\nconst char *x = "system(1) // no comment";\n'
    status, output = check("check-style", tmp_path, GOOD | {"src/base/ok.c": HEAD + text})
    assert status == 0, output


@pytest.mark.parametrize("head", ["", "/* MIT */\n", HEAD.split("\n", 1)[0] + "\nint x;\n"])
def test_style_wants_the_head_of_a_file(tmp_path, head):
    assert check("check-style", tmp_path, GOOD | {"src/base/bad.c": head + "int y;\n"})[0] == 1


def test_style_wants_pragma_once(tmp_path):
    status, output = check("check-style", tmp_path, GOOD | {"src/base/bad.h": HEAD})
    assert status == 1
    assert "pragma once" in output


def test_style_refuses_binaries(tmp_path):
    status, output = check("check-style", tmp_path, GOOD | {"tools/program": "\0ELF"})
    assert status == 1
    assert "a binary file" in output


def function(name, lines):
    """Return the text of a function with that many lines."""
    return f"int {name}(int x)\n{{\n" + "    x++;\n" * (lines - 4) + "    return x;\n}\n"


BAD_SIZES = {
    "a long function": (function("long_one", 101), "long_one() length is 101"),
    "long functions all over": (function("a", 20), "median of functions is 20"),
    "a complex function": ("int f(int x)\n{\n" + "    x += x > 1 ? 1 : 2;\n" * 25
                           + "    return x;\n}\n", "complexity is 26"),
    "deep blocks": ("int f(int x)\n{\n" + "".join("    " * d + "if (x) {\n" for d in range(1, 6))
                    + "x++;\n" + "}\n" * 5 + "    return x;\n}\n", "nesting is 5"),
    "a long file": ("\n" * 1000, "length is 1002"),
}


@pytest.mark.parametrize("case", BAD_SIZES)
def test_size_refuses(tmp_path, case):
    text, complaint = BAD_SIZES[case]
    status, output = check("check-size", tmp_path, {"src/base/bad.c": HEAD + text})
    assert status == 1
    assert complaint in output


def test_size_refuses_a_long_header(tmp_path):
    status, output = check("check-size", tmp_path, {"src/base/bad.h": HEADER + "int x;\n" * 200})
    assert status == 1
    assert "length is 203" in output


ROOT = TOOLS.parent
TORTURED = HEAD + """#include "tests/lib/test.h"
#include <stdlib.h>
TEST(memory)
{
    char *text = malloc(10);

    %s
    free(text);
}
"""


def torture(tmp_path, statement):
    """Build a test program with failing calls and run tools/torture over it."""
    program = tmp_path / "tests/unit/test-example"
    program.parent.mkdir(parents=True)
    (tmp_path / "x.c").write_text(TORTURED % statement)
    names = re.findall(r"'([a-z0-9_]+)'", (ROOT / "tests/torture/meson.build").read_text()
                       .partition("torture_wrapped = [")[2].partition("]")[0])
    subprocess.run(["cc", "-D_GNU_SOURCE", "-fexceptions", "-fsanitize=address,undefined", "-g",
                    "-I", ROOT, tmp_path / "x.c", ROOT / "tests/lib/test.c",
                    ROOT / "tests/torture/wrap.c", *(f"-Wl,--wrap={name}" for name in names),
                    "-o", program], check=True)
    run = subprocess.run([TOOLS / "torture", tmp_path], capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def test_torture_accepts_an_error(tmp_path):
    status, output = torture(tmp_path, "assert_not_null(text);")
    assert (status, "2 runs, 0 broken" in output) == (0, True), output


def test_torture_finds_an_unchecked_allocation(tmp_path):
    status, output = torture(tmp_path, "text[0] = 0;")
    assert (status, "2 runs, 2 broken" in output) == (1, True), output


def test_torture_finds_a_leak(tmp_path):
    status, output = torture(tmp_path, "void *more = malloc(5);\n"
                             "if (more == NULL) { text = NULL; return; }\nfree(more);")
    assert status == 1, output


PROGRAM = """#!/bin/sh
case "$*" in
--help) echo 'sandbox-agent 9.9: runs things'
        printf '\\nusage: sandbox-agent VERB\\n\\nverbs:\\n  run        Run cells\\n\\nMore.\\n' ;;
'run --help') printf 'usage: sandbox-agent run [OPTIONS] CODE\\n\\nRun cells.\\n\\n.Dotted line.\\n'
        printf '\\noptions:\\n  -c, --code CODE    a cell\\n      --json         as JSON\\n' ;;
*) echo '# SETTING=1' ;;
esac
"""


def test_man_pages_say_what_the_help_says(tmp_path):
    program = tmp_path / "sandbox-agent"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    subprocess.run([TOOLS / "gen-man", program, tmp_path / "man"], check=True)
    run = (tmp_path / "man/man1/sandbox-agent-run.1").read_text()
    assert run.startswith('.TH SANDBOX-AGENT-RUN 1 "" "sandbox-agent 9.9"')
    assert ".TP\n\\fB\\-c, \\-\\-code\\fR \\fICODE\\fR\na cell\n" in run
    assert "\n\\&.Dotted line.\n" in run
    assert "run cells\n" in run
    assert "\\fBrun\\fR\nRun cells" in (tmp_path / "man/man1/sandbox-agent.1").read_text()
    assert "# SETTING=1" in (tmp_path / "man/man5/sandbox-agent.5").read_text()


def test_style_refuses_test_modules_of_one_name(tmp_path):
    text = "# SPDX-License-Identifier: MIT\n"
    status, output = check("check-style", tmp_path, {"tests/integration/a/test_x.py": text,
                                                     "tests/integration/b/test_x.py": text})
    assert status != 0 and "a test module of this name" in output
