# SPDX-License-Identifier: MIT
"""Images: the verb with small definitions of the test's own, and what is in the real images."""

import json
import os
import platform
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SANDBOX_AGENT", str(ROOT / "build" / "sandbox-agent"))
RUNTIMES = ["python", "node", "r"]

GOOD = """#!/bin/sh
set -e
cd "$2"
echo built >>"$COUNTER"
echo '0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded.'
echo 'Setting up a (1) ...'
sleep "${BUILD_SECONDS:-0}"
mkdir rootfs
printf '%s\\n' 'bytes 1000' 'packages 2' "version $1 1.2.3" >facts
"""


class Store:
    """A state directory, and helpers whose only image definition is a script."""

    def __init__(self, path, script=GOOD):
        self.counter = path / "counter"
        self.images = path / "state" / "images" / "demo"
        self.definition = path / "libexec" / "images"
        for name in ("common", "demo"):
            (self.definition / name).mkdir(parents=True)
        (self.definition / "common" / "suite").write_text("trixie\n")
        (self.definition / "demo" / "packages").write_text("hello\n")
        self.write_script(script)
        self.env = {
            "PATH": os.environ["PATH"],
            "SANDBOX_AGENT_LIBEXEC": str(path / "libexec"),
            "SANDBOX_STATE_DIR": str(path / "state"),
            "COUNTER": str(self.counter),
        }

    def write_script(self, script):
        """Replace the build script."""
        path = self.definition / "build"
        path.write_text(script)
        path.chmod(0o755)

    def start(self, *args, **env):
        """Start `sandbox-agent image ...`."""
        return subprocess.Popen(
            [PROGRAM, "image", *args],
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *args, **env):
        """Run `sandbox-agent image ...`; its status, stdout and stderr."""
        child = self.start(*args, **env)
        out, err = child.communicate(timeout=60)
        return child.returncode, out, err

    def list(self):
        """What `image list --json` prints."""
        status, out, err = self.run("list", "--json")
        assert status == 0, err
        return [json.loads(line) for line in out.splitlines()]

    def names(self):
        """All names in the runtime's directory."""
        return sorted(p.name for p in self.images.iterdir())


@pytest.fixture
def store(tmp_path):
    """A store without images."""
    return Store(tmp_path)


def wait_until(condition, seconds=10):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_build_then_list_then_remove(store):
    status, out, err = store.run("build", "demo")
    assert status == 0, err
    name, rootfs = out.split()
    assert name == "demo" and Path(rootfs).is_dir()
    assert "demo: setting up 1 of 2 packages" in err
    (image,) = store.list()
    assert image["current"] and image["versions"] == {"demo": "1.2.3"}
    assert Path(rootfs).parent.name == image["digest"] == image["name"]
    table = store.run("list")[1].splitlines()
    assert "current" in table[1] and "1.2.3" in table[1]
    assert store.run("build", "demo")[0] == 0
    assert store.counter.read_text() == "built\n"
    assert store.run("rm", "demo/" + image["name"]) == (0, f"demo/{image['name']}\n", "")
    assert store.list() == []
    assert "not built" in store.run("list")[1]


def test_changed_definition_is_a_new_image(store):
    assert store.run("build")[0] == 0
    (store.definition / "demo" / "packages").write_text("other\n")
    assert not store.list()[0]["current"]
    assert store.run("build")[0] == 0
    assert sorted(i["current"] for i in store.list()) == [False, True]
    assert store.run("rm", "--unused")[0] == 0
    (image,) = store.list()
    assert image["current"]


def test_second_builder_waits_and_finds_the_result(store):
    first = store.start("build", "demo", BUILD_SECONDS="1")
    wait_until(store.counter.exists)
    status, out, err = store.run("build", "demo")
    assert status == 0 and "demo: waiting for another build" in err
    assert first.communicate(timeout=60)[0] == out
    assert store.counter.read_text() == "built\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_build_leaves_its_log_only(store, number):
    build = store.start("build", "demo", BUILD_SECONDS="60")
    wait_until(store.counter.exists)
    build.send_signal(number)
    err = build.communicate(timeout=30)[1]
    assert build.returncode == 1 and "was stopped" in err
    assert store.names() == ["build.log", "lock"]


def test_build_after_a_killed_one(store):
    build = store.start("build", "demo", BUILD_SECONDS="2")
    wait_until(store.counter.exists)
    build.kill()
    build.wait()
    build.communicate()
    assert ".build" in store.names()
    status, _, err = store.run("build", "demo")
    assert status == 0, err
    assert "waiting for another build" in err, "the killed builder's child was still at work"
    assert store.names() == sorted([store.list()[0]["name"], "lock"])


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["build", "nope"], 2, "unknown runtime 'nope'; known are: demo"),
        (["build", "../demo"], 2, "unknown runtime"),
        (["build", "--mirror", "a b", "demo"], 2, "no mirror's address"),
        (["rm", "demo/0123"], 3, "there is no image 'demo/0123'"),
        (["rm", "demo/../demo"], 3, "there is no image"),
        (["rm"], 2, "--unused"),
        ([], 2, "build, list, rm"),
        (["paint"], 2, "build, list, rm"),
    ],
)
def test_bad_words_are_one_clear_line(store, words, status, text):
    got, out, err = store.run(*words)
    assert (got, out) == (status, "")
    assert text in err and err.count("\n") == 1


def test_failed_build_names_reason_remedy_and_log(store):
    store.write_script(
        "#!/bin/sh\nmkdir \"$2/rootfs\"\necho 'E: cannot write: No space left on device'\nexit 1\n"
    )
    status, out, err = store.run("build", "demo")
    assert (status, out) == (3, "")
    message = err.splitlines()[-1]
    assert "No space left on device" in message and "SANDBOX_IMAGE_DIR" in message
    assert str(store.images / "build.log") in message
    assert store.names() == ["build.log", "lock"]


def test_image_in_use_is_not_removed(store):
    if os.geteuid() != 0:
        pytest.skip("needs root to change a process's root directory")
    rootfs = store.run("build", "demo")[1].split()[1]
    user = subprocess.Popen(
        ["/usr/bin/python3", "-c", "import os, sys\nos.chroot(sys.argv[1])\nos.read(0, 1)", rootfs],
        stdin=subprocess.PIPE,
    )
    try:
        wait_until(lambda: os.readlink(f"/proc/{user.pid}/root") == rootfs)
        status, _, err = store.run("rm", "demo")
        assert status == 3 and f"in use by process {user.pid}" in err
        assert store.list()[0]["current"]
    finally:
        user.communicate(b"x")
    assert store.run("rm", "demo")[0] == 0


# ---- the real images ----


def real_rootfs(runtime):
    """The root file system of a built image, or skip."""
    out = subprocess.run([PROGRAM, "image", "list", "--json"], capture_output=True, text=True)
    for image in map(json.loads, out.stdout.splitlines()):
        if image["runtime"] == runtime and image["current"]:
            found = subprocess.run(
                [PROGRAM, "image", "build", runtime], capture_output=True, text=True
            )
            return Path(found.stdout.split()[1]), image
    return pytest.skip(f"the {runtime} image is not built: sandbox-agent image build {runtime}")


@pytest.fixture(params=RUNTIMES)
def rootfs(request):
    """Each real image in turn."""
    return real_rootfs(request.param)[0]


def run_inside(rootfs, argv, script=""):
    """Run a program in an image as uid 65532 with only /tmp and the home writable."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount and chroot")
    setup = """
        set -e
        root=$1; shift
        mount --bind "$root" "$root"
        mount -o remount,bind,ro "$root"
        mount -t tmpfs -o mode=1777 tmp "$root/tmp"
        mount -t tmpfs -o mode=700,uid=65532,gid=65532 home "$root/home/sandbox"
        mount -t tmpfs -o mode=755 dev "$root/dev"
        mknod -m 666 "$root/dev/null" c 1 3
        mknod -m 666 "$root/dev/urandom" c 1 9
        exec chroot --userspec=65532:65532 "$root" /usr/bin/env -i HOME=/home/sandbox \
            LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin "$@"
    """
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", setup, "sh", str(rootfs), *argv],
        input=script,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def walk(rootfs):
    """Each path of an image with its lstat()."""
    for directory, dirs, files in os.walk(rootfs):
        for name in dirs + files:
            path = os.path.join(directory, name)
            yield path, os.lstat(path)


def test_image_has_no_privileged_special_or_unreadable_files(rootfs):
    for path, st in walk(rootfs):
        kind = stat.S_IFMT(st.st_mode)
        assert kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), path
        if kind == stat.S_IFREG:
            assert not st.st_mode & (stat.S_ISUID | stat.S_ISGID), path
            assert not os.listxattr(path, follow_symlinks=False), path
        if kind != stat.S_IFLNK and str(rootfs / "usr") in path:
            assert st.st_mode & stat.S_IROTH, path


def test_image_holds_nothing_of_the_building_machine(rootfs):
    assert list((rootfs / "dev").iterdir()) == []
    assert (rootfs / "etc/resolv.conf").read_text() == "nameserver 127.0.0.1\n"
    assert not (rootfs / "etc/resolv.conf").is_symlink()
    assert (rootfs / "etc/hostname").read_text() == "sandbox\n"
    assert platform.node() not in (rootfs / "etc/hosts").read_text().split()
    assert (rootfs / "etc/machine-id").read_text() == ""
    assert not list((rootfs / "etc/apt").glob("sources.list*"))
    assert not (rootfs / "var/lib/apt").exists() and not (rootfs / "var/cache/apt").exists()
    assert list((rootfs / "tmp").iterdir()) == []
    extra = rootfs / "usr/local/share/ca-certificates"
    assert not extra.exists() or not list(extra.iterdir())
    for directory in ("etc", "root", "home", "usr/local/etc"):
        for path in (rootfs / directory).rglob("*"):
            if path.is_file() and not path.is_symlink() and path.suffix != ".pem":
                assert b"mmdebstrap" not in path.read_bytes(), path


def test_image_has_the_places_that_a_sandbox_needs(rootfs):
    for name in ("home/sandbox", "workspace", "opt/sandbox-agent/kernel", "etc/sandbox-agent"):
        assert (rootfs / name).is_dir() and not list((rootfs / name).iterdir())
    assert "\nsandbox:x:65532:65532:" in (rootfs / "etc/passwd").read_text()
    assert "\nsandbox:x:65532:" in (rootfs / "etc/group").read_text()
    assert (rootfs / "usr/lib/locale/en_US.utf8/LC_CTYPE").exists()
    for tool in ("git", "curl", "unzip", "ps"):
        assert (rootfs / "usr/bin" / tool).exists()


def test_font_cache_is_valid(rootfs):
    out = run_inside(rootfs, ["env", "FC_DEBUG=16", "fc-match", "sans:lang=hi"])
    assert "Lohit-Devanagari.ttf" in out
    valid = [line.split() for line in out.splitlines() if line.startswith("FcCacheTimeValid")]
    assert valid and all(line[-1] == line[-4] for line in valid)
    assert run_inside(rootfs, ["fc-match", "sans:lang=ja"]).startswith("NotoSansCJK")


def test_python_plots_every_script_without_a_warning():
    rootfs = real_rootfs("python")[0]
    code = """
import logging, os, warnings
logging.basicConfig(level=logging.INFO)
logging.getLogger("matplotlib.font_manager").addHandler(logging.FileHandler("/tmp/log"))
import matplotlib.pyplot as plt
with warnings.catch_warnings(record=True) as w:
    warnings.simplefilter("always")
    plt.title("季度 売上 분기 مبيعات बिक्री"); plt.plot([1, 3, 2]); plt.plot([-1, -2])
    plt.savefig("/tmp/plot.png")
print([str(m.message) for m in w], "generated new" in open("/tmp/log").read())
print(os.listdir(os.path.expanduser("~/.cache/matplotlib")), os.path.getsize("/tmp/plot.png") > 9000)
"""
    assert run_inside(rootfs, ["python3", "-"], code).splitlines() == ["[] False", "[] True"]


def test_python_modules_are_compiled():
    rootfs = real_rootfs("python")[0]
    packages = rootfs / "usr/lib/python3/dist-packages"
    for name in ("numpy", "pandas", "scipy", "matplotlib", "sklearn", "IPython", "PIL"):
        sources = list((packages / name).glob("*.py"))
        assert sources
        for path in sources:
            compiled = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
            assert compiled.exists(), path


@pytest.mark.parametrize("runtime", ["python", "r"])
def test_blas_is_openblas(runtime):
    alternatives = real_rootfs(runtime)[0] / "etc/alternatives"
    links = list(alternatives.glob("libblas.so.3-*"))
    assert links and all("openblas" in os.readlink(link) for link in links)


def test_r_draws_every_script():
    rootfs = real_rootfs("r")[0]
    code = """
    png("/tmp/a.png"); plot(1, main = "季度 売上 분기 مبيعات बिक्री"); invisible(dev.off())
    png("/tmp/b.png"); plot(1, main = "\\uf8ff\\uf8ff \\uf8ff\\uf8ff"); invisible(dev.off())
    cat(file.size("/tmp/a.png") > file.size("/tmp/b.png"), Sys.getlocale("LC_CTYPE"), "Ü中")
    """
    assert run_inside(rootfs, ["Rscript", "-"], code) == "TRUE C.UTF-8 Ü中"


def test_node_and_npm_are_there():
    rootfs, image = real_rootfs("node")
    assert image["versions"]["node"].startswith("26.")
    out = run_inside(rootfs, ["sh", "-c", "node -p process.versions.node; npm --version"])
    assert out.split() == [image["versions"]["node"], image["versions"]["npm"]]
