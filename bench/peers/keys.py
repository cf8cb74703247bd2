#!/usr/bin/env python3
"""keys.py - one text by its key: an h5mem table, a plain SQLite table and a Redis server, in alternation

    python3 bench/peers/keys.py [--runs 2000] [--server redis-server]

The server is started here, on a Unix socket in a temp folder, keeps nothing on disk, and is asked one command at a time
over a raw socket; all three sides are called from Python, whose own share is in every figure. 10,000 texts of 191
bytes; h5mem and SQLite have synchronous off and the host in WAL mode. Reading: GET beside SELECT content ... WHERE id.
Writing: SET of a new key beside INSERT of a new row (without a vector), each its own transaction.

What a Redis cannot answer (words, vectors, times) has no row. The tier without a disk that its SET and GET are to be
compared with is not built yet.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import socket
import sqlite3
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = 10000


class Redis:
    """The few commands that are needed, in the server's protocol."""

    def __init__(self, server, folder):
        path = f"{folder}/redis.sock"
        options = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", str(folder)]
        self.process = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        for _ in range(200):
            try:
                self.socket.connect(path)
                break
            except OSError:
                time.sleep(0.02)
        self.version = self.call(b"INFO", b"server").split(b"redis_version:")[1].split(b"\r")[0].decode()

    def call(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        answer = self.socket.recv(65536)
        if answer[:1] != b"$":
            return answer
        start = answer.index(b"\r\n") + 2
        size = int(answer[1:start - 2])
        while len(answer) < start + size + 2:
            answer += self.socket.recv(65536)
        return answer[start:start + size]

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()


def connection(path, create):
    con = sqlite3.connect(path, isolation_level=None)
    con.enable_load_extension(True)
    con.load_extension(os.environ.get("H5MEM_SO", str(ROOT / "h5mem")))
    con.execute("PRAGMA journal_mode = wal")
    con.execute("PRAGMA synchronous = off")
    con.execute(create)
    return con


def text_of(i):
    return f"{i:08d} " + "word of a text " * 13


def show(name, peer, ours, theirs, out):
    """A line as the other rows with peers have it: medians, the ratio pair by pair and its interval."""
    ratios = sorted(b / a for a, b in zip(ours, theirs))
    n = len(ratios)
    half = 0.98 * math.sqrt(n)
    low, high = ratios[max(0, round(n / 2 - half))], ratios[min(n - 1, round(n / 2 + half))]
    a, b, ratio = statistics.median(ours), statistics.median(theirs), statistics.median(ratios)
    print(f"{name:<28} keys   ours {a / 1e3:9.1f} us  {peer} {b / 1e3:9.1f} us  {ratio:6.2f}x [{low:.2f}, {high:.2f}] "
          f"of {n} pairs  check ok", flush=True)
    if out:
        print(json.dumps({"row": name, "part": "keys", "peer": peer, "n": n, "ours": a, "theirs": b, "ratio": ratio,
                          "low": low, "high": high, "check": True}), file=out)


def timed(call, *args):
    start = time.perf_counter_ns()
    answer = call(*args)
    return time.perf_counter_ns() - start, answer


def measure(sides, runs, first):
    """Times of every side; each run asks all of them, in an order that turns. Their answers must agree."""
    times = {name: [] for name in sides}
    names = list(sides)
    for run in range(-50, runs):
        answers = []
        for at in range(len(names)):
            name = names[(run + at) % len(names)]
            spent, answer = timed(sides[name], first + run * 7919 % TEXTS if first == 0 else first + run)
            answers.append(answer)
            if run >= 0:
                times[name].append(spent)
        if len(set(answers)) != 1:
            raise SystemExit(f"FAILED: run {run}: the sides differ: {answers}")
    return times


def run(server, runs, folder, out):
    ours = connection(f"{folder}/ours.db", "CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=4, synchronous=off)")
    plain = connection(f"{folder}/plain.db", "CREATE TABLE m(id INTEGER PRIMARY KEY, content TEXT, timestamp REAL)")
    redis = Redis(server, folder)
    try:
        print(f"Redis {redis.version} on a Unix socket, one command at a time")
        for con in (ours, plain):
            con.execute("BEGIN")
            con.executemany("INSERT INTO m(id, content, timestamp) VALUES (?, ?, 0)",
                            ((i, text_of(i)) for i in range(TEXTS)))
            con.execute("COMMIT")
        ours.execute("SELECT h5mem_flush('m')").fetchone()
        for i in range(TEXTS):
            redis.call(b"SET", b"%d" % i, text_of(i).encode())
        get = "SELECT content FROM m WHERE id = ?"
        put = "INSERT INTO m(id, content, timestamp) VALUES (?, ?, 0)"
        times = measure({"ours": lambda i: ours.execute(get, (i,)).fetchone()[0],
                         "plain": lambda i: plain.execute(get, (i,)).fetchone()[0],
                         "redis": lambda i: redis.call(b"GET", b"%d" % i).decode()}, runs, 0)
        show("get_by_key_redis", "Redis", times["ours"], times["redis"], out)
        show("get_by_key_plain", "plain table", times["ours"], times["plain"], out)
        times = measure({"ours": lambda i: ours.execute(put, (i, text_of(i))).rowcount,
                         "plain": lambda i: plain.execute(put, (i, text_of(i))).rowcount,
                         "redis": lambda i: int(redis.call(b"SET", b"%d" % i, text_of(i).encode())[:3] == b"+OK")},
                        runs, 2 * TEXTS)
        show("set_by_key_redis", "Redis", times["ours"], times["redis"], out)
        show("set_by_key_plain", "plain table", times["ours"], times["plain"], out)
        counts = [con.execute("SELECT count(*) FROM m").fetchone()[0] for con in (ours, plain)]
        counts.append(int(redis.call(b"DBSIZE")[1:-2]))
        if counts != [TEXTS + runs + 50] * 3:
            raise SystemExit(f"FAILED: not every side holds what was put into it: {counts}")
    finally:
        redis.close()
        ours.close()
        plain.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--server", default="redis-server")
    args = parser.parse_args()
    if not shutil.which(args.server):
        print("SKIP Redis: no redis-server (Debian: redis-server)")
        return
    path = os.environ.get("BENCH_OUT")
    with tempfile.TemporaryDirectory() as folder:
        out = open(path, "a", encoding="utf-8") if path else None
        run(args.server, args.runs, folder, out)
        if out:
            out.close()


if __name__ == "__main__":
    main()
