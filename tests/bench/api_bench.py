#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Times the API beside the official JS Agent Server: the same requests, each with a fake model.

Ours asks its model over HTTP, the other one has it in its process. Requests per second come from
wrk, beside a loop that only receives and sends; the first byte of a stream and a whole run are
measured one after another, in turns with the other server. Then 1,000 event streams are held open
and 100 runs go at once, each of which has to get its own text, whole and in order. The exit status
tells whether the goals hold.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))

from apiserver import ApiServer
from fakemodel import FakeModel
from oracle import Oracle

BARE = "bare loop, recv and send"
GOAL_OK = 20
GOAL_FIRST_BYTE = 20
GOAL_STREAMS_MB = 60
CONNECTIONS = 16
STREAMS = 1000
RUNS = 100
WORDS = 200
JSON = {"Content-Type": "application/json"}


def wrk(url, connections):
    """Return the requests per second of GET."""
    output = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", "-d3s", url], capture_output=True, text=True, check=True)
    return float(re.search(r"Requests/sec:\s*([\d.]+)", output.stdout).group(1))


@contextlib.contextmanager
def bare_server(directory):
    """Run the least that can answer: what this machine and the load generator on it allow."""
    program = Path(directory) / "bare_http"
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-o", program,
                    ROOT / "tests/bench/bare_http.c"], check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def measure_rates(servers):
    """Return {name: requests per second}, the medians of rounds in which all take turns."""
    rounds = [{name: wrk(f"{url}/ok", CONNECTIONS) for name, url in servers.items()}
              for _ in range(5)]
    return {name: statistics.median(r[name] for r in rounds) for name in servers}


def run_once(connection, text):
    """Stream a stateless run; return the milliseconds to its first byte and to its end."""
    body = {"assistant_id": "agent", "stream_mode": ["values"],
            "input": {"messages": [{"role": "user", "content": text}]}}
    start = time.perf_counter()
    connection.request("POST", "/runs/stream", json.dumps(body), JSON)
    reply = connection.getresponse()
    reply.read1(1)
    first = time.perf_counter()
    rest = reply.read()
    end = time.perf_counter()
    assert reply.status == 200 and b"error" not in rest, rest[-300:]
    return (first - start) * 1000, (end - start) * 1000


def measure_runs(servers, rounds):
    """Return {name: ([first byte], [whole run])} of runs that go in turns."""
    times = {name: ([], []) for name in servers}
    connections = {name: http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
                   for name, url in servers.items()}
    for connection in connections.values():
        run_once(connection, "say: warm")
    for _ in range(rounds):
        for name, connection in connections.items():
            first, whole = run_once(connection, "say: hello")
            times[name][0].append(first)
            times[name][1].append(whole)
    return times


def resident_mb(pid):
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+)", status).group(1)) / 1024


async def open_stream(url, path):
    """Open an event stream and wait for its headers."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], head
    return writer


async def hold_streams(server):
    """Return the server's memory while STREAMS event streams are open."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
    connection.request("POST", "/threads", "{}", JSON)
    thread = json.loads(connection.getresponse().read())["thread_id"]
    writers = [await open_stream(server.url, f"/threads/{thread}/stream") for _ in range(STREAMS)]
    memory = resident_mb(server.pid)
    for writer in writers:
        writer.close()
    return memory


async def stream_run(url, number):
    """Stream a run and check that its text came whole and in order, and its ids, too."""
    words = " ".join(f"{number}.{i}" for i in range(WORDS))
    body = json.dumps({"assistant_id": "agent", "stream_mode": ["messages-tuple"], "input": {
        "messages": [{"role": "user", "content": f"say: {words}"}]}}).encode()
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 24)
    writer.write(f"POST /runs/stream HTTP/1.1\r\nHost: {parts.netloc}\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                 "Connection: close\r\n\r\n".encode() + body)
    raw = (await reader.read(-1)).split(b"\r\n\r\n", 1)[1]
    writer.close()
    text = re.sub(rb"\r\n[0-9a-fA-F]+\r\n", b"", b"\r\n" + raw).decode()
    ids = [int(i) for i in re.findall(r"^id: \d+-(\d+)$", text, re.MULTILINE)]
    said = "".join(json.loads(data)[0]["content"] for data in
                   re.findall(r"^event: messages\ndata: (.*)$", text, re.MULTILINE))
    return said == words and ids == sorted(set(ids)) and '"status":"success"' in text


async def parallel_runs(url):
    """Return how many of RUNS runs at once went wrong, and the seconds they took."""
    start = time.perf_counter()
    good = await asyncio.gather(*(stream_run(url, number) for number in range(RUNS)))
    return good.count(False), time.perf_counter() - start


def verdict(what, value, goal, at_least=True):
    """Print whether a goal holds, and return it."""
    ok = value >= goal if at_least else value <= goal
    print(f"  {what}: {value:.1f} (goal {'>=' if at_least else '<='} {goal:g}) "
          f"{'ok' if ok else 'MISSED'}", flush=True)
    return ok


def compare(ours, oracle, bare, rounds):
    """Print the servers side by side and return whether the goals hold."""
    servers = {"sandbox-agent": ours.url, "JS Agent Server": oracle.url}
    rates = measure_rates(servers | {BARE: bare})
    times = measure_runs(servers, rounds)
    print(f"api{'':29}{'/ok rps':>10}{'1st byte':>10}{'run':>10}   p50 ms, n={rounds}")
    for name in servers:
        first, whole = (statistics.median(t) for t in times[name])
        print(f"  {name:30}{rates[name]:10.0f}{first:10.2f}{whole:10.2f}", flush=True)
    print(f"  {BARE:30}{rates[BARE]:10.0f}")
    firsts = {name: statistics.median(t[0]) for name, t in times.items()}
    us, them = servers
    print(f"  /ok, share of the bare loop: {rates[us] / rates[BARE]:.2f}; "
          f"the bare loop / JS: {rates[BARE] / rates[them]:.1f}")
    return [verdict("/ok, ratio", rates[us] / rates[them], GOAL_OK),
            verdict("first byte, ratio", firsts[them] / firsts[us], GOAL_FIRST_BYTE)]


def main():
    """Run everything and tell whether the goals hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: tools/setup bench")
    os.environ.pop("CONTAINER_NAME", None)
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        model = stack.enter_context(FakeModel(keep=False))
        ours = stack.enter_context(ApiServer(directory, model, REQUESTS_PER_SECOND=0))
        bare = stack.enter_context(bare_server(directory))
        with Oracle() as oracle:
            goals = compare(ours, oracle, bare, options.rounds)
        memory = asyncio.run(hold_streams(ours))
        goals.append(verdict(f"{STREAMS} open event streams, MB", memory, GOAL_STREAMS_MB, False))
        wrong, seconds = asyncio.run(parallel_runs(ours.url))
        goals.append(verdict(f"{RUNS} runs at once ({seconds:.2f} s), not whole", wrong, 0, False))
    sys.exit(not all(goals))


if __name__ == "__main__":
    main()
