# SPDX-License-Identifier: MIT
"""Field cases about output, text, names, plots and the languages; named after their numbers."""

import base64
import hashlib
import json
import os

import pytest
import sa as sa_module

MIB = 1 << 20


def text(result):
    """The text/plain of a result object's value."""
    return (result["result"] or {}).get("text/plain")


def test_case_10_big_burst(make):
    session = make()
    result = session.execute('import sys\nsys.stdout.write("z"*5_000_000)\nprint()\nprint("LAST")')
    assert result["status"] == "ok"
    assert result["output"]["stdout_bytes"] == 5_000_006
    assert result["output"]["truncated"] and result["stdout"].endswith("LAST\n")
    assert "characters left out" in result["stdout"]
    assert text(session.execute("1")) == "1"


def test_case_13_truncation_keeps_head_and_tail(state_dir, monkeypatch):
    monkeypatch.setenv("MAX_STDOUT_CHARS", "1000")
    library = sa_module.Library(instance="truncation")
    try:
        session = library.create()
        out = session.execute('for i in range(10000): print(f"row {i}")')["stdout"]
        assert out.startswith("row 0\n") and out.endswith("row 9999\n")
        assert out.count("characters left out") == 1 and len(out) < 1100
        out = session.execute('print("ä中😀" * 5000)')["stdout"]
        assert "\ufffd" not in out and set(out.split("\n")[0]) <= set("ä中😀")
        out = session.execute('print("\\x1b[31mred\\x1b[0m" * 5000)')["stdout"]
        head, _, tail = out.partition("\n... [")
        assert head.rsplit("\x1b", 1)[1].endswith(("m", "red")) or head.endswith(("r", "re"))
        assert not tail.split("...\n", 1)[1].startswith(("[", "3", "1", "0", "m"))
    finally:
        library.close()


def test_case_14_endless_print_is_bounded(make):
    session = make("node")
    session.execute("1")
    before = rss()
    result = session.execute('while (true) console.log("spam ".repeat(200))', timeout=3)
    assert result["status"] == "timeout" and result["state"] == "kept"
    assert rss() - before < 50 * MIB
    assert text(session.execute("1 + 1")) == "2"


def rss():
    """Resident bytes of this process, which holds the library."""
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_case_15_bytes_that_are_not_utf8(make):
    session = make()
    result = session.terminal("printf 'ok \\377\\376 caf\\351\\n'")
    assert result["stdout"] == "ok \ufffd\ufffd caf\ufffd\n"
    session.terminal("printf 'ok \\377\\376 caf\\351\\n' > raw")
    assert session.read("raw") == b"ok \xff\xfe caf\xe9\n"
    assert session.execute('import os; _ = os.write(1, b"\\xe4\\xb8")')["status"] == "ok"
    assert session.execute('_ = os.write(1, b"\\xad\\n")')["status"] == "ok"
    result = session.execute(
        'import time\n_ = os.write(1, b"\\xe4\\xb8"); time.sleep(0.1); _ = os.write(1, b"\\xad\\n")'
    )
    assert result["stdout"] == "中\n"


NAMES = [
    "販売データ_今週.csv",
    "販売データ_先週.csv",
    "Générer – suite.js",
    "a b'c\"d$e.txt",
    "-rf",
    "ｅ.txt",
    "e.txt",
    "\u00e9.txt",
    "e\u0301.txt",
]


def test_case_17_names_stay_different_and_whole(make):
    session = make()
    for i, name in enumerate(NAMES):
        session.write(name, f"file {i}\n".encode())
    assert sorted(e["name"] for e in session.files("/workspace")) == sorted(NAMES)
    for i, name in enumerate(NAMES):
        assert session.read(name) == f"file {i}\n".encode()
        assert text(session.execute(f"open({name!r}).read()")) == repr(f"file {i}\n")
    for language, code in (
        ("node", "require('fs').readFileSync('販売データ_今週.csv','utf8')"),
        ("r", 'readLines("販売データ_今週.csv")'),
    ):
        other = make(language)
        other.write(NAMES[0], b"ok\n")
        assert "ok" in text(other.execute(code))


def test_case_19_r_strings(make):
    session = make("r")
    result = session.execute('x <- "Ü中"; print(x); cat(x, "\\n"); nchar(x)')
    assert result["stdout"] == '[1] "Ü中"\nÜ中 \n' and text(result) == "[1] 2"
    assert "UTF-8" in text(session.execute('Sys.getlocale("LC_CTYPE")'))


def test_case_20_plot_labels(make):
    session = make()
    result = session.execute(
        "import matplotlib.pyplot as plt, warnings\n"
        "with warnings.catch_warnings(record=True) as w:\n"
        '    warnings.simplefilter("always")\n'
        '    plt.title("季度 売上 분기 مبيعات बिक्री"); _ = plt.plot([1,3,2]); plt.show()\n'
        'print([str(m.message) for m in w if "Glyph" in str(m.message)])'
    )
    assert result["stdout"] == "[]\n", result
    assert [d["type"] for d in result["display_outputs"]] == ["image/png"]
    assert base64.b64decode(result["display_outputs"][0]["data"]).startswith(b"\x89PNG")


def test_case_23_plotly_without_chrome(make):
    result = make().execute(
        "import plotly.graph_objects as go\n"
        'f = go.Figure(go.Bar(x=["a","b"], y=[1,2]))\nf.show()\nf',
        timeout=60,
    )
    assert result["status"] == "ok", result
    types = [d["type"] for d in result["display_outputs"]] + list(result["result"] or {})
    assert "application/vnd.plotly.v1+json" in types or "text/html" in types
    assert len(json.dumps(result)) < 200_000


def test_case_24_asyncio_works(make):
    session = make()
    session.execute(
        "import asyncio\nasync def main():\n    await asyncio.sleep(0.01)\n    return 5"
    )
    for code in (
        "asyncio.run(main())",
        "asyncio.get_event_loop().run_until_complete(main())",
        "await main()",
        "main()",
        "asyncio.run(main())",
    ):
        assert text(session.execute(code)) == "5", code


def test_case_26_imports_in_node(make):
    session = make("node", network="public", dependencies=[("nanoid", "5.0.9")])
    session.write("m.mjs", b"export const here = 7;\n")
    for code, value in (
        ('const { join } = await import("node:path"); join("a","b")', "'a/b'"),
        ('import fs from "node:fs"; fs.existsSync("/")', "true"),
        ('require("os").EOL', "'\\n'"),
        ('const { nanoid } = await import("nanoid"); nanoid().length', "21"),
        ('(await import("./m.mjs")).here', "7"),
    ):
        assert text(session.execute(code)) == value, code


def test_case_28_no_leakage_and_redeclaration(make):
    session = make("node")
    for value in (1, 2):
        result = session.execute(f"const k = {value}; let v = 2; class C {{}}; k")
        assert text(result) == str(value)
    a, b = make(), make(env={"OWN": "b"})
    a.execute("secret = 1; open('/tmp/canary', 'w').write('x'); open('f', 'w').write('x')")
    assert b.execute("secret")["error"]["type"] == "NameError"
    assert (
        b.terminal("ls -A /tmp /workspace /dev/shm; env | grep CANARY")["stdout"].count("canary")
        == 0
    )
    assert [e["name"] for e in b.files("/workspace")] == []
    for _ in range(10):
        short = make("node")
        assert text(short.execute("const value = 2; value")) == "2"
        short.stop()


def test_case_29_packages_survive(make):
    session = make(network="public")
    session.execute("before = 1")
    assert session.terminal("pip install tabulate==0.9.0", timeout=120)["success"]
    assert text(session.execute("import tabulate; tabulate.__version__")) == "'0.9.0'"
    session.execute("import os; os._exit(1)")
    assert text(session.execute("import tabulate; tabulate.__version__")) == "'0.9.0'"
    assert make().execute("import tabulate")["error"]["type"] == "ModuleNotFoundError"
    node = make("node", network="public")
    assert node.terminal("npm install left-pad", timeout=120)["success"]
    assert text(node.execute("require('left-pad')('a', 3)")) == "'  a'"


SECRET = "a'b\"$(id)\n"


def test_case_47_arguments_are_data(sa, make):
    for bad in (
        "six; touch /tmp/pwn",
        "--index-url=http://evil",
        "../../etc",
        "-r/etc/passwd",
        "git+ssh://x",
        "file:..",
        'x");system("id',
        "six[extra]",
    ):
        with pytest.raises(sa_module.Error) as e:
            sa.create(dependencies=[bad])
        assert e.value.name == "INVALID", bad
    for language, version in (
        ("python", "1.0 --index-url=http://x"),
        ("node", "file:/"),
        ("r", "1;2"),
    ):
        with pytest.raises(sa_module.Error) as e:
            sa.create(language, dependencies=[("six", version)])
        assert e.value.name == "INVALID"
    with pytest.raises(sa_module.Error):
        sa.session("../x").execute("1")
    with pytest.raises(sa_module.Error, match="not supported"):
        sa.create("python --version")
    assert not os.path.exists("/tmp/pwn")
    want = SECRET.encode().hex()
    for language, code in (
        ("python", "import os; os.environb[b'V'].hex()"),
        ("node", "Buffer.from(process.env.V).toString('hex')"),
        ("r", "paste(as.character(charToRaw(Sys.getenv('V'))), collapse='')"),
    ):
        session = make(language, env={"V": SECRET})
        assert want in text(session.execute(code))
        assert session.terminal("printf %s \"$V\" | od -An -tx1 | tr -d ' \\n'")["stdout"] == want


def test_case_61_magics_warnings_and_r_messages(make):
    session = make(network="public")
    assert "six" in session.execute("!pip download six 2>&1 | tail -1; ls")["stdout"]
    assert session.execute("%pip install six", timeout=90)["status"] == "ok"
    assert session.execute("%%bash\necho one; echo two >&2")["stdout"] == "one\n"
    assert "Wall time" in session.execute("%%time\nx = 1")["stdout"]
    assert session.execute("%matplotlib inline")["status"] == "ok"
    r = make("r")
    result = r.execute("library(dplyr)", timeout=60)
    assert result["status"] == "ok" and "Attaching package" in result["stderr"]
    result = r.execute('f <- function(x) warning("careful"); f(1); 5')
    assert result["stderr"].count("careful") == 1 and text(result) == "[1] 5"
    result = r.execute('g <- function(x) stop("bad"); g(1)')
    assert result["error"]["type"] == "simpleError" and "g(1)" in json.dumps(result["error"])


@pytest.mark.parametrize(
    "language,code",
    [
        (
            "python",
            "from IPython.display import display, HTML\n"
            "for i in range(1000):\n    print(i)\n    display(HTML(str(i)))",
        ),
        ("node", "for (let i = 0; i < 1000; i++) { console.log(i); display(String(i)); }"),
        (
            "r",
            "for (i in 0:999) { cat(i, '\\n', sep='')\n"
            "  sandbox_display('text/html', as.character(i)) }",
        ),
    ],
)
def test_order_of_output_and_displays_is_exact(make, language, code):
    events, out = [], b""
    run = make(language).run(code, timeout=120)
    for kind, data in run:
        if kind == "stdout":
            out += data
            while b"\n" in out:
                line, _, out = out.partition(b"\n")
                events.append(("line", line.decode()))
        elif kind == "display":
            events.append(("display", json.loads(data)["data"]))
    run.close()
    want = [item for i in range(1000) for item in (("line", str(i)), ("display", str(i)))]
    assert events == want


def test_case_34_upload_means_written(make):
    session = make(tmpfs_bytes=400 * MIB)
    for size in (0, 1, 18_000, 18_500, 5 * MIB, 300 * MIB):
        data = os.urandom(size)
        session.write("up.bin", data)
        want = hashlib.sha256(data).hexdigest()
        assert session.terminal("sha256sum up.bin")["stdout"].split()[0] == want, size
        assert hashlib.sha256(session.read("up.bin")).hexdigest() == want
    with pytest.raises(sa_module.Error) as e:
        session.write("more.bin", data)
    assert e.value.name == "DISK" and "No space" in str(e.value)
    assert [entry["name"] for entry in session.files("/workspace")] == ["up.bin"]
    session.remove("up.bin")
    session.write("more.bin", b"fits again")
    assert session.read("more.bin") == b"fits again"
    with pytest.raises(sa_module.Error) as e:
        session.read("absent")
    assert e.value.name == "NOT_FOUND"
