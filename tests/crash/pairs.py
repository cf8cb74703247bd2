"""Writers and readers of pairs, for test_processes.py. Jobs for harness.forks.

A writer's transaction adds two rows of one session to the store, (n, a) and (n, b), and one row to the ordinary
table `done`. A reader may never see one row of a pair, nor a row of `done` without its pair.

SPDX-License-Identifier: MIT
"""
import sqlite3
import threading
import time

from conftest import open_connection
from harness.jobs import vector


def make(path, store, mode="wal", options=""):
    con = open_connection(path)
    con.execute(f"PRAGMA journal_mode = {mode}")
    con.execute("CREATE TABLE done(session TEXT PRIMARY KEY)")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{store}', dim=4{options})")
    con.close()


def write_pair(con, name):
    con.execute("BEGIN IMMEDIATE")
    first = con.execute("INSERT INTO memory(content, session, embedding) VALUES (?, ?, ?)",
                        (f"{name} a amber", name, vector(1, 2, 3, 4))).lastrowid
    con.execute("INSERT INTO done VALUES (?)", (name,))
    second = con.execute("INSERT INTO memory(content, session) VALUES (?, ?)", (f"{name} b brook", name)).lastrowid
    con.execute("COMMIT")
    return [first, second]


def write_pairs(path, who, timeout, upkeep, going_on):
    """ids of all rows, and how often SQLite or the store was busy; upkeep: 'flush', 'compact' or None, after each"""
    con = open_connection(path, timeout=timeout)
    ids, busy = [], 0
    while going_on():
        try:
            ids += write_pair(con, f"{who}-{len(ids)}")
            if upkeep:
                con.execute(f"SELECT h5mem_{upkeep}('memory')").fetchall()
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
            busy += 1
            if con.in_transaction:
                con.execute("ROLLBACK")
    con.close()
    return ids, busy


def look(con):
    """One look at the pairs; gives their number."""
    con.execute("BEGIN")
    done = con.execute("SELECT count(*) FROM done").fetchone()[0]
    rows = con.execute("SELECT id, session, content, embedding FROM memory").fetchall()
    con.execute("COMMIT")
    pairs = {}
    for _, session, content, embedding in rows:
        pairs.setdefault(session, []).append((content, embedding))
    for session, pair in pairs.items():
        assert sorted(pair) == [(f"{session} a amber", vector(1, 2, 3, 4)), (f"{session} b brook", None)], pair
    assert len({row[0] for row in rows}) == len(rows), "an id twice"
    assert len(pairs) >= done, f"{done} transactions in the host, {len(pairs)} pairs in the store"
    words = con.execute("SELECT count(*) FROM memory WHERE content MATCH 'amber brook'").fetchone()[0]
    assert words % 2 == 0 and words >= 2 * len(pairs), f"{words} rows by words after {2 * len(pairs)} rows"
    near = con.execute("SELECT count(*), max(distance) FROM memory WHERE embedding MATCH ?",
                       (vector(1, 2, 3, 4),)).fetchone()
    assert near[0] >= words // 2 and (near[1] or 0) < 1e-6, near
    return len(pairs)


def read_pairs(path, timeout, going_on):
    """numbers of pairs seen, one after the other"""
    con = open_connection(path, timeout=timeout)
    seen = []
    while going_on():
        seen.append(look(con))
    con.close()
    return seen


def until(seconds):
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def times(n):
    left = iter(range(n))
    return lambda: next(left, None) is not None


def writer(channel, path, who, seconds=0, count=0, timeout=0, upkeep=None):
    channel.send(write_pairs(path, who, timeout, upkeep, times(count) if count else until(seconds)))


def reader(channel, path, timeout=0):
    """Looks once and says so, then again and again until it is told to stop, then once more."""
    con = open_connection(path, timeout=timeout)
    seen = [look(con)]
    channel.send("ready")
    while not channel.poll(0):
        seen.append(look(con))
    seen.append(look(con))
    con.close()
    channel.send(seen)


def endless(channel, path, who):
    """Pairs until it is killed; tells the name of each once it is committed. Now and then it flushes."""
    con = open_connection(path, timeout=60)
    number = 0
    while True:
        try:
            write_pair(con, f"{who}-{number}")
            channel.send(f"{who}-{number}")
            number += 1
            if number % 7 == 0:
                con.execute("SELECT h5mem_flush('memory')").fetchall()
        except sqlite3.OperationalError as error:
            # Until the host of a writer that died has been opened again, other hosts cannot write.
            if "between two phases" not in str(error):
                raise
            if con.in_transaction:
                con.execute("ROLLBACK")
            time.sleep(0.002)


def names(channel, path):
    """(names of the pairs in the store, names in this host)"""
    con = open_connection(path, timeout=60)
    look(con)
    channel.send(({row[0] for row in con.execute("SELECT session FROM memory")},
                  {row[0] for row in con.execute("SELECT session FROM done")}))


def creator(channel, path, store, count):
    """At the word of the test, as others do: CREATE, then rows."""
    con = open_connection(path, timeout=60)
    channel.recv()
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{store}', dim=4)")
    for _ in range(count):
        con.execute("INSERT INTO memory(content) VALUES ('amber')")
    con.close()
    channel.send("made")


def threads(channel, path, seconds):
    """Writers and readers as threads of one process. Sends (ids, looks)."""
    results, failures = {}, []

    def run(name, function, *arguments):
        try:
            results[name] = function(*arguments)
        except BaseException as error:
            failures.append(f"{name}: {error!r}")

    going_on = until(seconds)
    jobs = [threading.Thread(target=run, args=(f"w{i}", write_pairs, path, f"w{i}", 30, upkeep, going_on))
            for i, upkeep in enumerate((None, "flush", "compact"))]
    jobs += [threading.Thread(target=run, args=(f"r{i}", read_pairs, path, 30, going_on)) for i in range(3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert not failures, failures
    channel.send((sum((results[f"w{i}"][0] for i in range(3)), []), [len(results[f"r{i}"]) for i in range(3)]))
