# SPDX-License-Identifier: MIT
"""The store on SQLite and on a PostgreSQL of the test's own: STO-08, 16, 17, 18, 20, 21.

The unit tests of the store run on SQLite by themselves; here they run again on PostgreSQL. What
needs a server that hangs, is full or is killed is done with `store-worker`, which is the store of
a server without the server.
"""

import contextlib
import os
import random
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pgcluster
import pytest
import sa as sa_module

WORKER = sa_module.BUILD / "tests/lib/store-worker"
PROGRAMS = sorted((sa_module.BUILD / "tests/unit").glob("test-store-*"))
PROGRAMS = [path for path in PROGRAMS if path.is_file() and path.suffix == ""]
ANSWER = 12  # seconds: a connection may take 5 and an answer 10, and the machine is not idle
THREADS = 40
WORKERS = 8


def environment(folder, settings=None):
    """Return the environment of a program: the store in `folder` where no settings name another."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith("POSTGRES_")}
    return rest | {"SANDBOX_STATE_DIR": str(folder)} | (settings or {})


@pytest.fixture(scope="module")
def cluster():
    """A PostgreSQL for all tests that only need one."""
    try:
        running = pgcluster.Cluster()
    except pgcluster.Missing as error:
        pytest.skip(str(error))
    with running:
        yield running


@pytest.fixture
def database(cluster):
    """An empty database of its own; gives its settings."""
    name = f"test{random.getrandbits(48):x}"
    cluster.sql(f"CREATE DATABASE {name}")
    yield cluster.environment(POSTGRES_DB=name)
    cluster.sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request):
    """Each test that takes it runs on both."""
    return request.param


class Rows:
    """The same SQL on either database, beside the store."""

    def __init__(self, folder, settings, cluster):
        self.folder, self.settings, self.cluster = folder, settings, cluster

    def __call__(self, text):
        """Return rows as lists of texts; a change is committed."""
        if self.settings:
            return self.cluster.sql(text, database=self.settings["POSTGRES_DB"])
        with contextlib.closing(sqlite3.connect(self.folder / "server.db", timeout=30)) as db, db:
            return [["" if cell is None else str(cell) for cell in row] for row in db.execute(text)]


@pytest.fixture
def store(kind, request, tmp_path):
    """Give (environment, rows) of an empty store of this kind."""
    settings = cluster_of = None
    if kind == "postgres":
        cluster_of = request.getfixturevalue("cluster")
        settings = request.getfixturevalue("database")
    return environment(tmp_path, settings), Rows(tmp_path, settings, cluster_of)


class Pinger:
    """A store that is open in a process: the first ping opens it, each further one writes."""

    def __init__(self, env):
        self.process = subprocess.Popen([WORKER, "ping"], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()

    def __call__(self):
        """Return ("ok" or the error's name, seconds, the error's text)."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        name, ms, *text = self.process.stdout.readline().strip().split(" ", 2)
        return name, int(ms) / 1000, "".join(text)


def ping_once(env):
    """Open a store and return what that says."""
    with Pinger(env) as ping:
        return ping()


# ---- the same tests on both ----


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_unit_tests_pass_on_postgres(program, cluster, database, tmp_path):
    env = environment(tmp_path, database) | {"SBX_SOURCE_ROOT": str(sa_module.ROOT)}
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=240,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)


# ---- STO-08: migrations ----


def test_many_servers_migrate_at_once(store):
    env, rows = store
    with contextlib.ExitStack() as stack:
        pings = [stack.enter_context(Pinger(env)) for _ in range(6)]
        for ping in pings:
            ping.process.stdin.write("\n")
            ping.process.stdin.flush()
        assert [ping.process.stdout.readline().split()[0] for ping in pings] == ["ok"] * 6
    assert rows("SELECT version, name FROM schema_versions ORDER BY version") == [
        ["1", "0001-server"]]


def test_broken_off_migration_is_done_again(store):
    env, rows = store
    done = subprocess.run([WORKER, "ping"], env=env | {"SBX_FAIL": "store-migrate"}, input="\n",
                          capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 0:
        pytest.skip("the program was built without failpoints")
    assert done.returncode == -signal.SIGKILL
    assert ping_once(env)[0] == "ok"
    assert rows("SELECT count(*) FROM runs") == [["0"]]


def test_newer_schema_is_refused_by_name(store):
    env, rows = store
    assert ping_once(env)[0] == "ok"
    rows("INSERT INTO schema_versions (version, name, applied_us) VALUES (99, '0099-x', 0)")
    name, _, text = ping_once(env)
    assert name == "UNAVAILABLE"
    assert "version 99" in text and "newer" in text
    assert rows("SELECT count(*) FROM threads") == [["0"]]


def test_database_file_is_private(tmp_path):
    assert ping_once(environment(tmp_path))[0] == "ok"
    path = tmp_path / "server.db"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert ping_once(environment(tmp_path))[0] == "ok"
    assert path.stat().st_mode & 0o777 == 0o600


# ---- STO-16: a PostgreSQL that does not answer ----


@pytest.mark.parametrize("missing", ["POSTGRES_PORT", "POSTGRES_USER", "POSTGRES_PASSWORD",
                                     "POSTGRES_DB"])
def test_missing_setting_is_named(tmp_path, missing):
    settings = {"POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": "1", "POSTGRES_USER": "u",
                "POSTGRES_PASSWORD": "p", "POSTGRES_DB": "d"}
    del settings[missing]
    name, _, text = ping_once(environment(tmp_path, settings))
    assert name == "UNAVAILABLE"
    assert missing in text


def test_down_at_start_and_up_later(tmp_path):
    try:
        running = pgcluster.Cluster()
    except pgcluster.Missing as error:
        pytest.skip(str(error))
    with running, Pinger(environment(tmp_path, running.environment())) as ping:
        running.stop()
        name, took, text = ping()
        assert (name, took < 2) == ("UNAVAILABLE", True), text
        running.start()
        assert ping()[0] == "ok"
        running.stop(signal.SIGQUIT)  # a crash: connections are cut, then refused
        assert ping()[0] == "UNAVAILABLE"
        running.start()
        assert ping()[0] == "ok"
        assert ping()[0] == "ok"


def test_wrong_password_is_not_repeated(cluster, tmp_path):
    wrong = "canary-5b1f"
    name, took, text = ping_once(
        environment(tmp_path, cluster.environment(POSTGRES_PASSWORD=wrong)))
    assert (name, took < 5) == ("UNAVAILABLE", True)
    assert "password" in text and wrong not in text


def test_too_many_connections(tmp_path):
    try:
        running = pgcluster.Cluster("max_connections=4", "superuser_reserved_connections=0",
                                    "max_wal_senders=0")
    except pgcluster.Missing as error:
        pytest.skip(str(error))
    with running, contextlib.ExitStack() as stack:
        env = environment(tmp_path, running.environment())
        pings = [stack.enter_context(Pinger(env)) for _ in range(5)]
        answers = [ping() for ping in pings]
        assert [answer[0] for answer in answers] == ["ok"] * 4 + ["UNAVAILABLE"], answers
        assert "too many clients" in answers[4][2]
        assert answers[4][1] < 5
        pings[0].process.stdin.close()
        pings[0].process.wait(timeout=30)
        deadline = time.monotonic() + 20
        while pings[4]()[0] != "ok":
            assert time.monotonic() < deadline


def backends(cluster, database):
    """Return the process ids of the store's connections."""
    return [int(row[0]) for row in cluster.sql(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'sandbox-agent' "
        f"AND datname = '{database['POSTGRES_DB']}'")]


def test_stopped_backend_is_given_up(cluster, database, tmp_path):
    with Pinger(environment(tmp_path, database)) as ping:
        assert ping()[0] == "ok"
        (pid,) = backends(cluster, database)
        os.kill(pid, signal.SIGSTOP)
        try:
            name, took, text = ping()
            assert (name, 9 < took < ANSWER) == ("UNAVAILABLE", True), (took, text)
            assert "does not answer" in text
            assert ping()[0] == "ok"  # another connection
        finally:
            os.kill(pid, signal.SIGCONT)


def test_ended_backend_is_not_noticed(cluster, database, tmp_path):
    with Pinger(environment(tmp_path, database)) as ping:
        assert ping()[0] == "ok"
        cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    f"WHERE datname = '{database['POSTGRES_DB']}'")
        assert ping()[0] == "ok"


def test_black_hole_is_given_up(tmp_path):
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(1)
        settings = {"POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": str(hole.getsockname()[1]),
                    "POSTGRES_USER": "u", "POSTGRES_PASSWORD": "p", "POSTGRES_DB": "d"}
        name, took, text = ping_once(environment(tmp_path, settings))
        assert (name, 4 < took < 8) == ("UNAVAILABLE", True), (took, text)


class Relay:
    """Stands between the store and PostgreSQL; may stop to pass anything on."""

    def __init__(self, port):
        self.target = port
        self.passes = threading.Event()
        self.passes.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += [client, server]
                threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client, server):
        other = {client: server, server: client}
        with contextlib.suppress(OSError, ValueError):
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    self.passes.wait()
                    if not data:
                        return
                    other[ready].sendall(data)

    def close(self):
        """Close everything."""
        self.passes.set()
        for each in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def test_black_hole_amid_a_connection(cluster, database, tmp_path):
    relay = Relay(cluster.port)
    try:
        env = environment(tmp_path, database | {"POSTGRES_PORT": str(relay.port)})
        with Pinger(env) as ping:
            assert ping()[0] == "ok"
            relay.passes.clear()
            name, took, text = ping()
            assert (name, 9 < took < ANSWER) == ("UNAVAILABLE", True), (took, text)
            relay.passes.set()
            assert ping()[0] == "ok"
    finally:
        relay.close()


# ---- STO-17: full and read-only ----


def test_read_only_postgres(cluster, database, tmp_path):
    name = database["POSTGRES_DB"]
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    with Pinger(environment(tmp_path, database)) as ping:
        assert ping()[0] == "ok"
        cluster.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on; {cut}")
        answer, _, text = ping()
        assert answer == "UNAVAILABLE" and "read-only" in text
        cluster.sql("SET default_transaction_read_only = off; "
                    f"ALTER DATABASE {name} RESET default_transaction_read_only")
        assert ping()[0] == "ok"


@pytest.fixture
def small_disk():
    """A file system of 3 MiB."""
    folder = Path(tempfile.mkdtemp(prefix="sbx-small-"))
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", folder],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        folder.rmdir()
        pytest.skip(f"no tmpfs can be mounted: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def test_full_disk_heals(small_disk):
    env = environment(small_disk)
    subprocess.run([WORKER, "fill", "5", "5"], env=env, check=True)
    with Pinger(env) as ping:
        assert ping()[0] == "ok"
        with open(small_disk / "ballast", "wb", 0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(bytes(4096))
        seen = {ping()[0] for _ in range(300)}
        full = subprocess.run([WORKER, "fill", "300", "5"], env=env, capture_output=True,
                              text=True, check=False, timeout=60)
        assert full.returncode == 1 and "full" in full.stderr, (seen, full.stderr)
        made = Rows(small_disk, None, None)
        (small_disk / "ballast").unlink()
        assert ping()[0] == "ok"
        assert made("PRAGMA integrity_check") == [["ok"]]
        assert int(made("SELECT count(*) FROM runs")[0][0]) >= 5


def test_read_only_sqlite(tmp_path):
    env = environment(tmp_path)
    with Pinger(env) as ping:
        assert ping()[0] == "ok"
    user = pgcluster.ordinary_user()
    options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    mine = Path(tempfile.mkdtemp(prefix="sbx-ro-"))
    try:
        shutil.copy(tmp_path / "server.db", mine)
        for path in (mine, mine / "server.db"):
            if user:
                os.chown(path, user.pw_uid, user.pw_gid)
        (mine / "server.db").chmod(0o400)
        mine.chmod(0o500)
        done = subprocess.run([WORKER, "ping"], env=environment(mine), input="\n", text=True,
                              capture_output=True, check=False, timeout=60, **options)
        if "Permission denied" in done.stderr:
            pytest.skip("the build directory is closed to ordinary users")
        assert done.stdout.startswith("UNAVAILABLE "), done.stdout + done.stderr
    except PermissionError as error:
        pytest.skip(f"the build directory is closed to ordinary users: {error}")
    finally:
        mine.chmod(0o700)
        shutil.rmtree(mine)


# ---- STO-18: transactions that meet ----

INJECT = """
CREATE SEQUENCE tries;
CREATE FUNCTION inject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM nextval('tries');
    IF random() < {chance} THEN
        RAISE EXCEPTION 'injected' USING ERRCODE = '{state}';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER inject BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION inject();
"""


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03"])
def test_a_transaction_is_tried_four_times(cluster, database, tmp_path, state):
    env, name = environment(tmp_path, database), database["POSTGRES_DB"]
    assert ping_once(env)[0] == "ok"
    cluster.sql(INJECT.format(chance=2, state=state, table="threads"), database=name)
    done = subprocess.run([WORKER, "fill", "1", "1"], env=env, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 1 and "injected" in done.stderr
    assert cluster.sql("SELECT last_value FROM tries", database=name) == [["4"]]
    assert cluster.sql("SELECT count(*) FROM threads", database=name) == [["0"]]


def test_injected_failures_make_no_duplicates(cluster, database, tmp_path):
    env, name = environment(tmp_path, database), database["POSTGRES_DB"]
    subprocess.run([WORKER, "fill", "200", "20"], env=env, check=True)
    cluster.sql(INJECT.format(chance=0.05, state="40001", table="runs"), database=name)
    done = subprocess.run([WORKER, "work", "w", "2000"], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = Rows(tmp_path, database, cluster)
    deadline = time.monotonic() + 60
    while rows("SELECT count(*) FROM runs WHERE status <> 'success'") != [["0"]]:
        assert time.monotonic() < deadline  # one that failed four times is taken over
        again = subprocess.run([WORKER, "work", "w", "2000"], env=env, stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=True, timeout=120)
        done.stdout += again.stdout
    check_history(rows, done.stdout, 200, exact=True)


# ---- STO-21: workers that are killed ----


def check_history(rows, told, count, exact=False):
    """Nothing lost, nothing ended twice, each thread's runs in order.

    A worker may be killed between the commit of an end and telling of it, so of some runs the end
    was not told; `exact` is for histories without a kill.
    """
    assert rows("SELECT status, count(*) FROM runs GROUP BY status") == [["success", str(count)]]
    ends = [line.split()[1] for line in told.splitlines() if line.startswith("end ")]
    assert len(ends) == len(set(ends))
    assert not exact or len(ends) == count
    claims = [tuple(line.split()[1:]) for line in told.splitlines() if line.startswith("claim ")]
    assert len(claims) == len(set(claims)), "an attempt was claimed twice"
    seq = {run: int(number) for run, number in rows("SELECT id, seq FROM runs")}
    last = {}
    for thread, text in rows("SELECT thread_id, json FROM messages ORDER BY thread_id, ref"):
        number = seq[text.strip('"')]
        assert number >= last.get(thread, 0), f"{thread}: run {number} after {last[thread]}"
        last[thread] = number
    assert len(last) == len({thread for (thread,) in rows("SELECT thread_id FROM runs")})
    assert {tuple(row) for row in rows("SELECT status FROM threads")} == {("idle",)}


def test_killed_workers_lose_nothing(store, kind, tmp_path):
    env, rows = store
    count = 2000 if kind == "sqlite" else 600
    subprocess.run([WORKER, "fill", str(count), str(THREADS)], env=env, check=True)
    told = tmp_path / "history"
    kills = 0

    def start(number):
        with told.open("ab") as out:
            return subprocess.Popen([WORKER, "work", f"w{number}", "400"], env=env,
                                    stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE)

    workers = [start(i) for i in range(WORKERS)]
    deadline = time.monotonic() + 120
    try:
        while rows("SELECT count(*) FROM runs WHERE status <> 'success'") != [["0"]]:
            assert time.monotonic() < deadline, "the queue is not worked off"
            time.sleep(0.1)  # the time between two kills
            victim = random.randrange(WORKERS)
            workers[victim].kill()
            workers[victim].communicate()
            kills += 1
            workers[victim] = start(WORKERS + kills)
    finally:
        failures = [worker.communicate()[1] for worker in workers]
    print(f"{count} runs, {kills} kills")
    assert not any(failures), failures
    assert kills > 3
    check_history(rows, told.read_text(), count)
