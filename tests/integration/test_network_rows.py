# SPDX-License-Identifier: MIT
"""The network through the whole product, from every language: rows NET-*, case 37, R packages.

Whatever dials private or metadata addresses runs in network namespaces that the tests make, with
own listeners on these addresses. The relay and its policy alone are tested in egress/.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import entries
import pytest
import registry
import sa as sa_module
import tlsproxy

import egress

AGENT = sa_module.BUILD / "sandbox-agent"
OUTSIDE = "203.0.113.7"
METADATA = ("169.254.169.254", "100.100.100.200", "fd00:ec2::254", "169.254.170.2")
PRIVATE = ("10.1.2.3", "172.20.0.1", "192.168.7.7", "100.64.3.3", "fd12:3456::7")
HOST_PORTS = (2375, 2376, 5432, 8000)


def banner(sock):
    """Say something at once, as a server that must not be reached."""
    sock.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\nREACHED")


def answer(sock):
    """Answer a request."""
    sock.recv(4096)
    banner(sock)


@pytest.fixture(scope="module")
def world(state_dir):
    """A host and an outside with listeners where nobody must get to, and one where all may."""
    if os.geteuid():
        pytest.skip("needs root for network namespaces")
    with egress.World() as made:
        made.forbidden = [made.serve(a, 80, banner) for a in (*METADATA, *PRIVATE)]
        made.forbidden += [
            made.serve(a, port, banner, on_host=True)
            for a in ("127.0.0.1", made.HOST[0], made.HOST[1], "::1")
            for port in HOST_PORTS
        ]
        made.open = made.serve(OUTSIDE, 80, answer)
        yield made


HOSTS = (
    f"127.0.0.1 localhost\n{METADATA[0]} metadata.google.internal\n{OUTSIDE} open.test\n"
    f"{PRIVATE[0]} intranet.test\n"
)


@pytest.fixture
def run_there(world, tmp_path):
    """Run the program in the world's host, whose names come from a file: run(language, code)."""
    (tmp_path / "hosts").write_text(HOSTS)
    (tmp_path / "hosts").chmod(0o644)
    (tmp_path / "resolv.conf").write_text("nameserver 203.0.113.99\noptions timeout:1 attempts:1\n")
    script = (
        f"mount --bind {tmp_path}/hosts /etc/hosts && "
        f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && exec "$0" "$@"'
    )
    for path in (tmp_path, *tmp_path.parents[:2]):
        path.chmod(0o755)

    def call(language, code, network="public", **env):
        ports = ",".join(map(str, (80, 443, *HOST_PORTS)))
        with world.host.entered():
            return subprocess.run(
                [
                    "unshare",
                    "-m",
                    "sh",
                    "-c",
                    script,
                    AGENT,
                    "run",
                    "-l",
                    language,
                    "--network",
                    network,
                    "--timeout",
                    "60",
                    "-c",
                    code,
                ],
                capture_output=True,
                text=True,
                timeout=90,
                env={**os.environ, "NETWORK_PORTS": ports, **env},
                check=False,
            )

    return call


def shell(language, script):
    """A cell that runs a line of shell."""
    return entries.RUN_SHELL[language].format(json.dumps(script))


def dials(targets):
    """A line of shell that tries to reach each target and says so if it did."""
    urls = [f"http://[{t}]" if t.count(":") > 1 else f"http://{t}" for t in targets]
    return (
        "; ".join(
            f"curl -g -s -m 4 {url}:{port}/ && echo ' {url}:{port}'"
            for url in urls
            for port in (80,)
        )
        + "; true"
    )


@pytest.mark.parametrize("language", entries.KERNELS)
def test_net_02_metadata_is_refused_in_public(world, run_there, language):
    names = ("metadata.google.internal", "intranet.test", "169.254.169.254.")
    done = run_there(
        language,
        shell(
            language,
            dials(
                (*METADATA, *PRIVATE, *names, "0xa9fea9fe", "[::ffff:169.254.169.254]".strip("[]"))
            ),
        ),
    )
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stdout + done.stderr
    assert [server.seen for server in world.forbidden] == [0] * len(world.forbidden)
    # and the way out is there, so that this says something
    done = run_there(language, shell(language, dials(("open.test", OUTSIDE))))
    assert done.stdout.count("REACHED") == 2, done.stdout + done.stderr


@pytest.mark.parametrize("language", entries.KERNELS)
def test_net_01_02_none_reaches_nothing_at_once(world, run_there, language):
    seen = world.open.seen
    script = dials((*METADATA, *PRIVATE, OUTSIDE, "open.test", "127.0.0.1", world.HOST[0]))
    done = run_there(language, shell(language, script), network="none")
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stdout + done.stderr
    assert world.open.seen == seen and not any(server.seen for server in world.forbidden)


ERRORS = """
import errno, socket, time
start = time.monotonic()
for family, address in ((socket.AF_INET, "203.0.113.7"), (socket.AF_INET, "10.1.2.3"),
                        (socket.AF_INET, "169.254.169.254"), (socket.AF_INET6, "2001:db8::7")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        s.settimeout(3)
        try:
            s.connect((address, 80)); s.send(b"x"); print("ok", address, kind)
        except OSError as e:
            print(errno.errorcode.get(e.errno, e))
try:
    socket.getaddrinfo("open.test", 80); print("a name")
except OSError:
    print("no name")
print(time.monotonic() - start < 2)
"""


def test_net_01_errors_are_immediate(world, run_there):
    done = run_there("python", ERRORS, network="none")
    assert set(done.stdout.split("\n")) == {"ENETUNREACH", "no name", "True", ""}, done.stdout
    # UDP and ICMP have no way out in any mode; a datagram to nowhere is refused by the own kernel.
    done = run_there(
        "python",
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"s.settimeout(1)\ns.connect(('{OUTSIDE}', 5353)); s.send(b'x')\n"
        "try: s.recv(1)\nexcept OSError as e: print(type(e).__name__)",
    )
    assert done.stdout.strip() in ("ConnectionRefusedError", "TimeoutError"), done.stdout


def test_net_08_ports_of_the_host_are_not_reached(world, run_there):
    addresses = (
        "127.0.0.1",
        "localhost",
        world.HOST[0],
        world.HOST[1],
        "host.sandbox.internal",
        "0.0.0.0",
    )
    code = (
        f"import socket\nfor a in {addresses!r}:\n    for p in {HOST_PORTS!r}:\n        try:\n"
        "            s = socket.create_connection((a, p), 3); s.settimeout(3)\n"
        "            if s.recv(9): print('reached', a, p)\n        except OSError: pass\n"
        "print('tried')"
    )
    done = run_there("python", code)
    assert done.stdout == "tried\n", done.stdout + done.stderr
    assert not any(server.seen for server in world.forbidden)
    # What NETWORK_ALLOW names is opened, and nothing beside it.
    done = run_there("python", code, NETWORK_ALLOW="host.sandbox.internal:5432")
    assert done.stdout == "reached host.sandbox.internal 5432\ntried\n", done.stdout + done.stderr
    assert sum(server.seen for server in world.forbidden) == 1
    for server in world.forbidden:
        server.seen = 0


RAW = """
import errno, socket, struct
def attempt(name, call):
    try:
        call(); print(name, "works")
    except OSError as e:
        print(name, errno.errorcode.get(e.errno, "refused"))
for name, args in (("icmp", (socket.AF_INET, socket.SOCK_RAW, 1)),
                   ("icmp6", (socket.AF_INET6, socket.SOCK_RAW, 58)),
                   ("packet", (socket.AF_PACKET, socket.SOCK_RAW, 0)),
                   ("ping", (socket.AF_INET, socket.SOCK_DGRAM, 1)),
                   ("vsock", (40, socket.SOCK_STREAM, 0)), ("xdp", (44, socket.SOCK_RAW, 0)),
                   ("netfilter", (socket.AF_NETLINK, socket.SOCK_RAW, 12))):
    attempt(name, lambda: socket.socket(*args))
s = socket.socket()
for name, option in (("transparent", (socket.SOL_IP, 19, 1)), ("mark", (socket.SOL_SOCKET, 36, 1)),
                     ("header", (socket.SOL_IP, 3, 1)), ("priority", (socket.SOL_SOCKET, 12, 7)),
                     ("force", (socket.SOL_SOCKET, 32, 1 << 20))):
    attempt(name, lambda: s.setsockopt(*option))
route = struct.pack("IHHII", 52, 24, 0x501, 1, 0)
route += struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0)
n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
n.send(route + bytes(24))
reply = n.recv(4096)
print("route", errno.errorcode.get(-struct.unpack("i", reply[16:20])[0], "works"))
"""

CHANGES = (
    "ip link set lo down",
    "ip addr add 10.0.0.1/8 dev lo",
    "ip route flush table local",
    "ip route add default dev lo",
    "nft flush ruleset",
    "iptables -F",
    "sysctl -w net.ipv4.ip_forward=1",
    "echo 1 > /proc/sys/net/ipv4/ip_forward",
    "ping -c1 -W1 127.0.0.1",
    "tc qdisc add dev lo root netem",
)


@pytest.mark.parametrize("network", ("none", "public"))
def test_net_12_13_no_raw_sockets_and_no_changes(make, network):
    session = make(network=network)
    for text in (session.execute(RAW)["stdout"], _as_command(session)):
        found = dict(line.split() for line in text.splitlines())
        assert {name for name, result in found.items() if result == "works"} <= {"ping"}, found
        assert found["icmp"] == found["transparent"] == found["mark"] == found["route"] == "EPERM"
        assert found["packet"] == found["vsock"] == found["xdp"] == "EAFNOSUPPORT"
    before = session.terminal("cat /proc/net/route /proc/net/if_inet6 /proc/net/tcp6")["stdout"]
    for line in CHANGES[:-2]:
        assert session.terminal(line)["status"] == "error", line
    assert (
        session.terminal("cat /proc/net/route /proc/net/if_inet6 /proc/net/tcp6")["stdout"]
        == before
    )


def _as_command(session):
    session.write("raw.py", RAW)
    return session.terminal("python3 raw.py")["stdout"]


@pytest.mark.parametrize("language", entries.KERNELS)
def test_net_14_a_server_inside_is_the_sandboxs_own(make, language):
    first, other = make(language, network="public"), make("python", network="public")
    serve = make("python", network="public")
    serve.terminal("python3 -m http.server 8899 --bind 0.0.0.0 >/dev/null 2>&1 & sleep 1")
    assert (
        serve.terminal("curl -s -m 3 -o /dev/null -w %{http_code} http://127.0.0.1:8899/")["stdout"]
        == "200"
    )
    for session in (first, other):
        assert not session.terminal("curl -s -m 3 http://127.0.0.1:8899/")["success"]
    with (
        pytest.raises(OSError),
        contextlib.closing(socket.create_connection(("127.0.0.1", 8899), 1)),
    ):
        pass


def test_net_17_a_killed_egress_comes_back(state_dir, monkeypatch):
    with registry.Registry() as index:
        index.add("page", b"here")
        monkeypatch.setenv("SANDBOX_CRAN", index.url("r"))
        others = set(egress_pids())
        with sa_module.Library(instance="egress") as library:
            session = library.create("python", network="public")
            get = f"curl -s -m 5 {index.url('page')}"
            assert session.terminal(get)["stdout"] == "here"
            for _ in range(2):
                (pid,) = set(egress_pids()) - others
                os.kill(pid, signal.SIGKILL)
                # Closed while it is away: nothing else serves the sandbox.
                deadline = time.monotonic() + 10
                while (done := session.terminal(get))["stdout"] != "here":
                    assert done["stdout"] == "" and time.monotonic() < deadline
                assert pid not in egress_pids()
            assert session.execute("6 * 7")["result"]["text/plain"] == "42"


def egress_pids():
    """The egress processes below the keepers of this process."""
    keepers = [
        pid
        for task in os.listdir("/proc/self/task")
        for pid in Path(f"/proc/self/task/{task}/children").read_text().split()
    ]
    return [
        int(pid)
        for keeper in keepers
        for pid in _children(keeper)
        if b"sandbox-egress" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def _children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


# ---- a proxy that breaks TLS open ----


@pytest.fixture(scope="module")
def company(tmp_path_factory, state_dir):
    """A proxy, and behind it a server with pages, an R repository and a git repository."""
    if not shutil.which("openssl") or not shutil.which("git"):
        pytest.skip("needs openssl and git")
    directory = tmp_path_factory.mktemp("company")
    repository = directory / "repo.git"

    def git(*words, **options):
        done = subprocess.run(
            ["git", "-C", repository, *words], capture_output=True, text=True, check=True, **options
        )
        return done.stdout.strip()

    subprocess.run(["git", "init", "-q", "--bare", repository], check=True)
    tree = git("mktree", input="")
    commit = git(
        "-c", "user.name=t", "-c", "user.email=t@t.test", "commit-tree", "-m", "first", tree
    )
    git("update-ref", "refs/heads/main", commit)
    git("update-server-info")
    with registry.Registry() as pages:
        pages.add("hello", b"hello from behind the proxy\n", "text/plain")
        pages.r("probe")
        for path in repository.rglob("*"):
            if path.is_file():
                pages.add(f"repo.git/{path.relative_to(repository)}", path.read_bytes())
        with tlsproxy.TlsProxy(directory, {"code.test": pages.port}) as proxy:
            yield proxy, commit


def real(*argv):
    """Whether a command of the machine itself works, so that its package index can be reached."""
    return (
        shutil.which(argv[0])
        and subprocess.run(
            argv,
            capture_output=True,
            timeout=90,
            check=False,
            env={k: v for k, v in os.environ.items() if k != "PIP_FIND_LINKS"},
        ).returncode
        == 0
    )


@pytest.fixture
def behind(company, agent):
    """Run cells behind the proxy: (stdout, stderr) of a run that must succeed."""

    def call(language, *cells):
        words = [word for cell in cells for word in ("-c", cell)]
        done = agent(
            "run",
            "-l",
            language,
            "--network",
            "public",
            "--timeout",
            "100",
            *words,
            env={
                **company[0].settings(),
                "SANDBOX_LOG": "debug",
                "SANDBOX_CRAN": "https://code.test/r",
                "SANDBOX_PIP_INDEX": "",
                "SANDBOX_NPM_REGISTRY": "",
            },
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert company[0].secret not in done.stdout + done.stderr
        assert "proxyuser" not in done.stdout + done.stderr
        return done.stdout

    return call


def test_case_37_python_behind_a_proxy(company, behind):
    proxy, commit = company
    cell = (
        "import requests, urllib.request\n"
        "print(requests.get('https://code.test/hello').text, end='')\n"
        "print(urllib.request.urlopen('https://code.test/hello').read().decode(), end='')\n"
        "print(urllib.request.urlopen('http://code.test/hello').read().decode(), end='')"
    )
    out = behind(
        "python",
        cell,
        shell(
            "python",
            "curl -sS https://code.test/hello; git ls-remote https://code.test/repo.git 2>&1",
        ),
    )
    assert out.count("hello from behind the proxy") == 4, out
    assert f"{commit}\trefs/heads/main" in out
    assert {"code.test:443", "code.test:80"} <= set(proxy.seen) and proxy.refused == 0


def test_case_37_node_behind_a_proxy(behind):
    out = behind(
        "node",
        "console.log(await (await fetch('https://code.test/hello')).text())",
        shell("node", "curl -sS https://code.test/hello"),
    )
    assert out.count("hello from behind the proxy") == 2, out


def test_case_37_r_behind_a_proxy(behind):
    out = behind(
        "r",
        "cat(rownames(available.packages(repos = Sys.getenv('SANDBOX_CRAN'))), '\\n')",
        "download.file('https://code.test/hello', 'h', quiet = TRUE); cat(readLines('h'), '\\n')",
        "cat(readLines(url('https://code.test/hello')), '\\n')",
    )
    assert "probe" in out and out.count("hello from behind the proxy") == 2, out


def test_case_37_pip_and_npm_behind_a_proxy(company, behind, tmp_path):
    """To the indexes of this machine's own settings, through the proxy of the test."""
    if not real("pip", "download", "-q", "--no-deps", "-d", str(tmp_path), "six"):
        pytest.skip("this machine itself reaches no package index")
    out = behind("python", shell("python", "pip download --no-deps -d d six && ls d"))
    assert "six-" in out
    if real("npm", "view", "left-pad", "version"):
        out = behind("node", shell("node", "npm view left-pad version"))
        assert out.strip().count(".") == 2
    assert company[0].refused == 0


@pytest.mark.parametrize("language", entries.KERNELS)
def test_case_37_the_password_is_nowhere_inside(company, behind, language):
    proxy = company[0]
    script = f"env; cat /proc/net/tcp6; {entries.search(proxy.secret)}"
    out = behind(language, shell(language, script))
    assert "HOME=/home/sandbox" in out and "_PROXY" not in out.upper()
    # nor do the host's other users see it: the arguments of our processes
    listed = subprocess.run(
        ["ps", "-ewwo", "args="], capture_output=True, text=True, check=True
    ).stdout
    assert not [
        line for line in listed.splitlines() if proxy.secret in line and "pytest" not in line
    ]


def test_case_37_a_wrong_password_is_an_error(company, agent):
    settings = company[0].settings()
    settings["SANDBOX_PROXY"] = settings["SANDBOX_PROXY"].replace(
        company[0].secret, "wrong-canary-1"
    )
    start = time.monotonic()
    done = agent(
        "run",
        "--network",
        "public",
        "-c",
        "import urllib.request; urllib.request.urlopen('https://code.test/hello', timeout=20)",
        env={**settings, "SANDBOX_LOG": "debug"},
    )
    assert done.returncode == 1 and time.monotonic() - start < 20
    assert "wrong-canary-1" not in done.stdout + done.stderr
    company[0].refused = 0


def test_case_37_without_the_ca_nothing_is_believed(company, agent):
    settings = {**company[0].settings(), "EXTRA_CA": "", "SSL_CERT_FILE": ""}
    code = (
        "from urllib.request import urlopen\n"
        "try: print(urlopen('https://code.test/hello').status)\n"
        "except OSError as e: print('certificate' in str(e).lower())"
    )
    assert agent("run", "--network", "public", "-c", code, env=settings).stdout == "True\n"


# ---- R packages ----


@pytest.fixture(scope="module")
def cran(state_dir):
    """A library whose R repository the test serves."""
    with registry.Registry() as index, pytest.MonkeyPatch.context() as patch:
        index.r("probe", code="answer <- function() 42\n")
        index.r("needs", code="twice <- function() 84\n")
        index.r("broken", code="this is no R (\n")
        index.r("silent", hook="exit 1")
        patch.setenv("SANDBOX_CRAN", index.url("r"))
        with sa_module.Library(instance="cran") as library:
            yield library, index


def test_r_packages_install_without_a_session_network(cran):
    library, index = cran
    session = library.create("r", dependencies=["probe", "needs"], network="none")
    assert session.execute("probe::answer() + needs::twice()")["result"]["text/plain"] == "[1] 126"
    assert session.info()["dependencies"] == {"probe": "", "needs": ""}
    assert not session.terminal(f"curl -s -m 3 {index.url('r/src/contrib/PACKAGES')}")["success"]
    asked = len(index.asked)
    result = session.execute(
        "install.packages('needs', repos = Sys.getenv('SANDBOX_CRAN'))", timeout=30
    )
    assert len(index.asked) == asked, result
    # a package survives the kernel's end
    assert session.execute("quit(status = 3)")["status"] == "died"
    assert session.execute("probe::answer()", timeout=30)["result"]["text/plain"] == "[1] 42"


def test_r_packages_in_a_session_with_a_network(cran):
    library, _ = cran
    session = library.create("r", network="public")
    absent = session.execute("print(requireNamespace('probe', quietly = TRUE))")
    assert "FALSE" in absent["stdout"]
    result = session.execute(
        "install.packages('probe', repos = Sys.getenv('SANDBOX_CRAN'))", timeout=60
    )
    assert result["status"] == "ok", result
    assert session.execute("probe::answer()")["result"]["text/plain"] == "[1] 42"


@pytest.mark.parametrize("name", ("broken", "silent", "absent"))
def test_r_counts_an_install_only_if_the_package_loads(cran, name):
    library, _ = cran
    with pytest.raises(sa_module.Error) as e:
        library.create("r", dependencies=["probe", name], network="none")
    assert e.value.name == "UPSTREAM" and name in str(e.value), e.value


def test_a_version_of_an_r_package(cran):
    library, _ = cran
    session = library.create("r", dependencies=[("probe", "1.0")], network="none")
    assert session.execute("probe::answer()")["result"]["text/plain"] == "[1] 42"
    with pytest.raises(sa_module.Error):
        library.create("r", dependencies=[("probe", "9.9")], network="none")
