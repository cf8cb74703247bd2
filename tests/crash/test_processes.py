"""Several processes, hosts, tables and connections over one store at once.

SPDX-License-Identifier: MIT
"""
import json
import os
import random
import shutil
import time

import pytest

from crash import pairs
from crash.kit import server  # noqa: F401, a fixture
from harness.jobs import BEFORE, Remote

SECONDS = float(os.environ.get("H5MEM_SECONDS", 2))
READERS = 8


@pytest.fixture
def remote(server):
    """remote(path) -> Remote; its process is killed when the test ends"""
    started = []

    def go(path):
        started.append(Remote(server, path))
        return started[-1]

    yield go
    for one in started:
        if one.child.status is None:
            one.child.kill()


def start(server, job, path, **arguments):
    return server.start("crash.pairs", job, path=str(path), **arguments)


def rows(con, columns="id, content", table="memory"):
    return con(f"SELECT {columns} FROM {table} ORDER BY id")


# ---- readers beside a writer

@pytest.mark.parametrize("upkeep", [None, "flush", "compact"])
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_readers_see_whole_transactions(server, connect, tmp_path, report, mode, upkeep):
    path = tmp_path / "host.db"
    pairs.make(path, "agent.h5", mode, ", autoflush=4096")
    # A WAL host: nobody waits. With a rollback journal SQLite's own locks apply.
    timeout = 0 if mode == "wal" else 60
    readers = [start(server, "reader", path, timeout=timeout) for _ in range(READERS)]
    for reader in readers:
        assert reader.recv() == "ready"
    ids, busy = start(server, "writer", path, who="w", seconds=SECONDS, timeout=60, upkeep=upkeep).recv()
    looks = [reader.ask("stop") for reader in readers]
    assert busy == 0
    assert len(set(ids)) == len(ids) > 10
    for seen in looks:
        assert seen == sorted(seen), "a reader went back in time"
        assert seen[0] == 0 and seen[-1] == len(ids) // 2
    con = connect(path)
    assert pairs.look(con) == len(ids) // 2
    also = f", {upkeep} after each" if upkeep else ""
    report(f"{mode}{also}: {len(ids) // 2} transactions, {sum(map(len, looks))} looks")


def test_no_reader_waits_for_a_writer(remote, tmp_path):
    path = tmp_path / "host.db"
    pairs.make(path, "agent.h5")
    writer, reader = remote(path), remote(path)
    for con in (writer, reader):
        con("PRAGMA busy_timeout = 0")
    writer("INSERT INTO memory(content) VALUES ('one')")
    writer("BEGIN IMMEDIATE")
    writer("INSERT INTO memory(content) VALUES ('two')")
    writer("UPDATE memory SET content = 'ONE' WHERE id = 1")
    assert rows(writer) == [(1, "ONE"), (2, "two")]
    assert rows(reader) == [(1, "one")]
    assert reader("SELECT id FROM memory WHERE content MATCH 'one two'") == [(1,)]
    writer("COMMIT")
    assert rows(reader) == [(1, "ONE"), (2, "two")]


def test_a_reader_keeps_its_statement(connect, remote, tmp_path):
    """A statement that has begun shows its snapshot to the end, whatever others write and flush."""
    path = tmp_path / "host.db"
    pairs.make(path, "agent.h5")
    writer, con = remote(path), connect(path)
    for i in range(50):
        writer("INSERT INTO memory(content) VALUES (?)", f"row {i}")
    writer("SELECT h5mem_flush('memory')")
    cursor = con.execute("SELECT id, content FROM memory ORDER BY id")
    seen = [cursor.fetchone() for _ in range(10)]
    for i in range(3):
        writer("UPDATE memory SET content = 'changed'")
        writer("SELECT h5mem_flush('memory')")
        writer("DELETE FROM memory WHERE id % 2")
        writer("INSERT INTO memory(content) VALUES ('new')")
        writer("SELECT h5mem_flush('memory')")
        seen += [cursor.fetchone() for _ in range(10)]
    seen += cursor.fetchall()
    assert seen == [(i + 1, f"row {i}") for i in range(50)]
    assert con.execute("SELECT DISTINCT content FROM memory ORDER BY 1").fetchall() == [("changed",), ("new",)]


# ---- several writers

@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_two_writers_that_wait(server, connect, tmp_path, mode):
    path = tmp_path / "host.db"
    pairs.make(path, "agent.h5", mode, ", autoflush=16384")
    writers = [start(server, "writer", path, who=who, count=60, timeout=60) for who in "ab"]
    results = [writer.recv() for writer in writers]
    assert [busy for _, busy in results] == [0, 0]
    ids = results[0][0] + results[1][0]
    assert len(set(ids)) == len(ids) == 240
    con = connect(path)
    assert pairs.look(con) == 120
    assert {row[0] for row in con.execute("SELECT id FROM memory")} == set(ids)


def test_a_writer_that_does_not_wait(remote, tmp_path):
    path = tmp_path / "host.db"
    pairs.make(path, "agent.h5")
    one, two = remote(path), remote(path)
    for con in (one, two):
        con("PRAGMA busy_timeout = 0")
    one("BEGIN")
    one("INSERT INTO memory(content) VALUES ('one')")
    assert two.fails("INSERT INTO memory(content) VALUES ('two')").startswith("SQLITE_BUSY")
    one("COMMIT")
    two("INSERT INTO memory(content) VALUES ('two')")
    assert rows(one) == rows(two) == [(1, "one"), (2, "two")]


def two_hosts(tmp_path, remote):
    for name in ("a", "b"):
        pairs.make(tmp_path / f"{name}.db", "agent.h5")
    return remote(tmp_path / "a.db"), remote(tmp_path / "b.db")


def test_two_hosts_of_one_store(remote, tmp_path):
    a, b = two_hosts(tmp_path, remote)
    for con in (a, b):
        con("PRAGMA busy_timeout = 0")
    a("BEGIN")
    a("INSERT INTO memory(content) VALUES ('from a')")
    message = b.fails("INSERT INTO memory(content) VALUES ('from b')")
    assert message.startswith("SQLITE_BUSY") and "memory" in message and "agent.h5" in message
    assert rows(b) == []
    a("COMMIT")
    b("INSERT INTO memory(content) VALUES ('from b')")
    a("UPDATE memory SET content = content || '!'")
    assert rows(a) == rows(b) == [(1, "from a!"), (2, "from b!")]
    b("DELETE FROM memory WHERE id = 1")
    b("SELECT h5mem_flush('memory')")
    assert rows(a) == rows(b) == [(2, "from b!")]


def test_two_hosts_that_write_at_once(server, connect, tmp_path):
    for name in ("a", "b"):
        pairs.make(tmp_path / f"{name}.db", "agent.h5", options=", autoflush=16384" if name == "a" else "")
    writers = [start(server, "writer", tmp_path / f"{name}.db", who=name, count=40, timeout=60) for name in "ab"]
    results = [writer.recv() for writer in writers]
    assert [busy for _, busy in results] == [0, 0]
    ids = results[0][0] + results[1][0]
    assert len(set(ids)) == len(ids) == 160
    assert pairs.look(connect(tmp_path / "a.db")) == pairs.look(connect(tmp_path / "b.db")) == 80


def test_a_host_that_died_between_the_phases(remote, tmp_path):
    """Another host reads the state before and cannot write, and is told why, until the first one has been opened."""
    a, b = two_hosts(tmp_path, remote)
    b("INSERT INTO memory(content) VALUES ('from b')")
    met = 0
    for call in range(1, 30):
        before = rows(b)
        a.ask("kill at", call, BEFORE)
        try:
            a("BEGIN")  # a statement alone needs no verdict
            a("INSERT INTO memory(content) VALUES (?)", f"from a {call}")
            a("COMMIT")
            break
        except EOFError:
            a.child.wait()
        seen = rows(b)
        assert seen in (before, before + [(before[-1][0] + 1, f"from a {call}")])
        b.ask("INSERT INTO memory(content) VALUES ('from b again')", ())
        if b.error is not None:
            assert "a.db" in b.error and "agent.h5" in b.error and "memory" in b.error, b.error
            assert rows(b) == seen == before
            assert "a.db" in b.fails("SELECT h5mem_flush('memory')")
            met += 1
        a = remote(tmp_path / "a.db")
        own = rows(a)
        a("INSERT INTO memory(content) VALUES ('from a')")
        assert rows(a)[:-1] == own
        assert rows(b) == rows(a)
        b("INSERT INTO memory(content) VALUES ('from b')")
    assert met > 0, "no kill fell between the two phases"
    assert call > 3 and a.error is None


@pytest.mark.parametrize("hosts", [("a", "a"), ("a", "b")], ids=["one-host", "two-hosts"])
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_kills_beside_the_living(server, connect, tmp_path, report, mode, hosts):
    """Two writers, one killed every few milliseconds and replaced, beside a reader that never ends."""
    seed = int(os.environ.get("T_SEED", random.SystemRandom().getrandbits(32)))
    rng = random.Random(seed)
    for name in set(hosts):
        pairs.make(tmp_path / f"{name}.db", "agent.h5", mode, ", autoflush=16384")
    readers = [connect(tmp_path / f"{name}.db", timeout=60) for name in set(hosts)]
    writers, confirmed = [None, None], set()
    # Fewer with a rollback journal, where SQLite's readers and writers wait for each other.
    kills = int(os.environ.get("H5MEM_KILLS", 500)) // (10 if mode == "wal" else 25)
    for number in range(kills):
        for i, writer in enumerate(writers):
            if writer is None:
                writers[i] = start(server, "endless", tmp_path / f"{hosts[i]}.db", who=f"{hosts[i]}{number}.{i}")
        end = time.monotonic() + rng.uniform(0.005, 0.08)
        while time.monotonic() < end:
            for writer in writers:
                if writer.channel.poll(0.001):
                    confirmed.add(writer.recv())
        victim = rng.randrange(2)
        writers[victim].kill()
        confirmed |= set(writers[victim].rest())
        assert writers[victim].wait() == -9
        writers[victim] = None
        for reader in readers:
            pairs.look(reader)
    for writer in filter(None, writers):
        writer.kill()
        confirmed |= set(writer.rest())
    there = {}
    for name in sorted(set(hosts)) * 2:  # twice: the first look may have mended what the second host waits for
        connect(tmp_path / f"{name}.db", timeout=60).execute("UPDATE done SET session = session")
        there[name] = server.run("crash.pairs", "names", path=str(tmp_path / f"{name}.db"))
    for name, (in_store, in_host) in there.items():
        missing = {pair for pair in confirmed if pair.startswith(name)} - in_host
        assert not missing, f"seed {seed}: confirmed and not in host {name}: {missing}"
        assert in_host == {pair for pair in in_store if pair.startswith(name)}, f"seed {seed}"
    assert len(confirmed) > kills
    report(f"{mode}, {len(set(hosts))} hosts, seed {seed}: {kills} kills, {len(confirmed)} transactions confirmed")


# ---- who may decide about a transaction in doubt

def in_doubt(con):
    return json.loads(con("SELECT h5mem_stats('memory')")[0][0])["in_doubt"]


@pytest.fixture(params=[False, True], ids=["not-committed", "committed"])
def doubt(request, remote, tmp_path):
    """A folder whose writer died between the two phases; gives it and the rows that its host a.db decides for."""
    for call in range(1, 40):
        folder = tmp_path / str(call)
        folder.mkdir()
        for name in ("a", "b"):
            pairs.make(folder / f"{name}.db", "agent.h5")
        con = remote(folder / "a.db")
        con("INSERT INTO memory(content) VALUES ('one')")
        con.ask("kill at", call, BEFORE)
        con("BEGIN")
        con("INSERT INTO done VALUES ('two')")
        con("INSERT INTO memory(content) VALUES ('two')")
        try:
            con("COMMIT")
        except EOFError:
            con.child.wait()
            committed = remote(folder / "a.db")("SELECT count(*) FROM done") == [(1,)]
            if in_doubt(remote(folder / "b.db")) and committed == request.param:
                return folder, [(1, "one")] + [(2, "two")] * committed
    raise AssertionError("no call is between the phases")


def decided(con, wanted):
    assert rows(con) == wanted
    con("INSERT INTO memory(content) VALUES ('more')")
    assert rows(con) == wanted + [(wanted[-1][0] + 1, "more")]
    assert not in_doubt(con)


def test_its_own_host_decides(remote, doubt):
    folder, wanted = doubt
    decided(remote(folder / "a.db"), wanted)


def test_a_host_that_was_moved_decides(remote, doubt):
    folder, wanted = doubt
    new = folder.parent / "moved"
    folder.rename(new)
    decided(remote(new / "a.db"), wanted)


def test_a_host_that_was_copied_with_its_store_decides(remote, doubt):
    folder, wanted = doubt
    new = folder.parent / "copied"
    shutil.copytree(folder, new)
    decided(remote(new / "a.db"), wanted)
    decided(remote(folder / "a.db"), wanted)


def test_a_host_that_was_put_back_decides(remote, doubt):
    """As from a backup: the same database in another file of the same name."""
    folder, wanted = doubt
    for end in ("", "-wal", "-shm"):
        if (folder / f"a.db{end}").exists():
            shutil.copy(folder / f"a.db{end}", folder / "copy")
            (folder / "copy").rename(folder / f"a.db{end}")
    decided(remote(folder / "a.db"), wanted)


def test_a_copy_of_the_host_does_not_decide(remote, doubt):
    folder, wanted = doubt
    for end in ("", "-wal"):
        if (folder / f"a.db{end}").exists():
            shutil.copy(folder / f"a.db{end}", folder / f"copy.db{end}")
    copy = remote(folder / "copy.db")
    assert "a.db" in copy.fails("INSERT INTO memory(content) VALUES ('x')")
    decided(remote(folder / "a.db"), wanted)
    copy("INSERT INTO memory(content) VALUES ('x')")


def test_another_host_with_the_first_one_attached_does_not_decide(remote, doubt):
    """It may read an old snapshot of the first one, which it has not locked."""
    folder, wanted = doubt
    other = remote(folder / "b.db")
    other(f"ATTACH '{folder}/a.db' AS a")
    assert "a.db" in other.fails("INSERT INTO main.memory(content) VALUES ('x')")
    other("INSERT INTO a.memory(content) VALUES ('more')")
    assert rows(other) == wanted + [(wanted[-1][0] + 1, "more")]
    other("INSERT INTO main.memory(content) VALUES ('x')")


def test_a_drop_decides(remote, doubt):
    """The row that knows goes away with the table."""
    folder, wanted = doubt
    con = remote(folder / "a.db")
    con("DROP TABLE memory")
    decided(remote(folder / "b.db"), wanted)


def test_a_flush_decides(remote, doubt):
    folder, wanted = doubt
    assert "a.db" in remote(folder / "b.db").fails("SELECT h5mem_flush('memory')")
    con = remote(folder / "a.db")
    con("SELECT h5mem_flush('memory')")
    assert not in_doubt(con) and rows(con) == rows(remote(folder / "b.db")) == wanted


# ---- several tables and databases in one connection

def test_two_tables_of_one_store(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE one USING h5mem('agent.h5', dim=4)")
    con.execute("CREATE VIRTUAL TABLE two USING h5mem('agent.h5')")

    def seen():
        both = [con.execute(f"SELECT id, content FROM {t} ORDER BY id").fetchall() for t in ("one", "two")]
        assert both[0] == both[1]
        return [content for _, content in both[0]]

    con.execute("BEGIN")
    con.execute("INSERT INTO one(content) VALUES ('a')")
    con.execute("INSERT INTO two(content) VALUES ('b')")
    assert seen() == ["a", "b"]
    con.execute("ROLLBACK")
    assert seen() == []
    con.execute("BEGIN")
    con.execute("INSERT INTO two(content) VALUES ('a')")
    con.execute("SAVEPOINT s")
    con.execute("INSERT INTO one(content) VALUES ('b')")
    con.execute("UPDATE two SET content = 'c' WHERE content = 'a'")
    assert seen() == ["c", "b"]
    con.execute("ROLLBACK TO s")
    assert seen() == ["a"]
    con.execute("INSERT INTO one(content) VALUES ('d')")
    con.execute("COMMIT")
    assert seen() == ["a", "d"]
    con.execute("DROP TABLE one")
    con.execute("INSERT INTO two(content) VALUES ('e')")
    assert [row[0] for row in con.execute("SELECT content FROM two ORDER BY id")] == ["a", "d", "e"]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_attached_databases(connect, in_tmp, mode):
    for name in ("main", "aux"):
        pairs.make(in_tmp / f"{name}.db", f"{name}.h5", mode)
    con = connect("main.db")
    con.execute("ATTACH 'aux.db' AS aux")

    def seen():
        return [[row[0] for row in con.execute(f"SELECT content FROM {schema}.memory ORDER BY id")]
                for schema in ("main", "aux")]

    con.execute("BEGIN")
    con.execute("INSERT INTO main.memory(content) VALUES ('m')")
    con.execute("INSERT INTO aux.memory(content) VALUES ('a')")
    assert seen() == [["m"], ["a"]]
    con.execute("ROLLBACK")
    assert seen() == [[], []]
    con.execute("BEGIN")
    con.execute("INSERT INTO aux.memory(content) VALUES ('a')")
    con.execute("INSERT INTO main.memory SELECT * FROM aux.memory")
    con.execute("SAVEPOINT s")
    con.execute("DELETE FROM aux.memory")
    con.execute("ROLLBACK TO s")
    con.execute("COMMIT")
    assert seen() == [["a"], ["a"]]
    assert con.execute("SELECT h5mem_flush('aux.memory')").fetchone()[0] == 1
    con.close()
    con = connect("aux.db")
    assert con.execute("SELECT id, content FROM memory").fetchall() == [(1, "a")]


def test_attached_databases_over_one_store(connect, in_tmp):
    for name in ("main", "aux"):
        pairs.make(in_tmp / f"{name}.db", "agent.h5")
    con = connect("main.db")
    con.execute("ATTACH 'aux.db' AS aux")
    con.execute("BEGIN")
    con.execute("INSERT INTO aux.memory(content) VALUES ('a')")
    con.execute("INSERT INTO main.memory(content) VALUES ('m')")
    con.execute("COMMIT")
    for schema in ("main", "aux"):
        assert con.execute(f"SELECT content FROM {schema}.memory ORDER BY id").fetchall() == [("a",), ("m",)]
    con.execute("DETACH aux")
    con.execute("INSERT INTO memory(content) VALUES ('n')")
    assert con.execute("SELECT count(*) FROM memory").fetchone() == (3,)


# ---- coming and going

def test_a_connection_opened_before_create(connect, remote, tmp_path):
    path = tmp_path / "host.db"
    early = connect(path)
    early.execute("CREATE TABLE done(session TEXT)")
    other = remote(path)
    other("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=4)")
    other("INSERT INTO memory(content) VALUES ('one')")
    assert early.execute("SELECT content FROM memory").fetchall() == [("one",)]
    early.execute("INSERT INTO memory(content) VALUES ('two')")
    assert rows(other) == [(1, "one"), (2, "two")]
    other("ALTER TABLE memory RENAME TO thoughts")
    assert early.execute("SELECT count(*) FROM thoughts").fetchone() == (2,)
    other("DROP TABLE thoughts")
    with pytest.raises(Exception, match="thoughts"):
        early.execute("SELECT count(*) FROM thoughts")
    early.execute("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5')")
    assert rows(other) == [(1, "one"), (2, "two")]


def test_two_processes_create_one_store(server, connect, tmp_path):
    children = [server.start("crash.pairs", "creator", path=str(tmp_path / f"{i}.db"), store="agent.h5", count=5)
                for i in range(4)]
    for child in children:
        child.send("go")
    assert [child.recv() for child in children] == ["made"] * 4
    con = connect(tmp_path / "0.db")
    assert con.execute("SELECT count(*), count(DISTINCT id) FROM memory").fetchone() == (20, 20)


def test_the_last_one_flushes(remote, tmp_path):
    path, log = tmp_path / "host.db", tmp_path / "agent.h5-wal"
    pairs.make(path, "agent.h5")
    one, two = remote(path), remote(path)
    one("INSERT INTO memory(content) VALUES ('one')")
    assert rows(two) == [(1, "one")]
    assert log.stat().st_size > 4096
    one.close()
    assert log.stat().st_size > 4096, "flushed although another process has the store open"
    two("INSERT INTO memory(content) VALUES ('two')")
    two.close()
    assert log.stat().st_size == 4096, "the last one to close has not flushed"
    assert rows(remote(path)) == [(1, "one"), (2, "two")]


def test_threads_of_one_process(server, connect, tmp_path):
    path = tmp_path / "host.db"
    pairs.make(path, "agent.h5", options=", autoflush=8192")
    ids, looks = start(server, "threads", path, seconds=SECONDS).recv()
    assert len(set(ids)) == len(ids) > 10 and min(looks) > 0
    assert pairs.look(connect(path)) == len(ids) // 2
