"""A store's file through other people's readers (h5py, h5dump, h5diff, h5repack, h5stat): at rest, while a writer is at
work, and after it was killed.

SPDX-License-Identifier: MIT
"""
import os
import random
import shutil
import subprocess
import time

import pytest

from crash.kit import server  # noqa: F401, a fixture
from harness.jobs import Remote, open_host, vector

np = pytest.importorskip("numpy")
h5py = pytest.importorskip("h5py")

try:
    import hdf5plugin
    ZSTD = None
except ImportError:
    hdf5plugin, ZSTD = None, "no hdf5plugin, without which h5py cannot read zstd"

DIM = 8
TEXTS = ("content", "session", "channel", "tags")
SMALL = ("importance", "activation", "access_count", "last_access", "valid_from", "valid_to", "superseded_by")
SOURCES = (None, "user", "assistant", "system", "tool", "retrieval", "correction")
TIERS = ("working", "episodic", "semantic")
USER = {"user_id": "TEXT", "note": "BLOB", "priority": "INTEGER", "weight": "REAL"}
COMPRESSIONS = ["none", "deflate:1", "deflate:9",
                pytest.param("zstd:3", marks=pytest.mark.skipif(ZSTD is not None, reason=ZSTD or ""))]


# ---- the store as the file has it, by the conventions of st_schema.h

def texts(file, name, blob=False, group="memory"):
    data = file[f"{group}/{name}/data"][:].tobytes()
    offsets = file[f"{group}/{name}/offsets"][:]
    assert offsets[0] == 0 and (np.diff(offsets) >= 0).all() and offsets[-1] == len(data)
    out = []
    for start, end in zip(offsets[:-1], offsets[1:]):
        value = data[start:end]
        if not value:
            out.append(None)
            continue
        value = value[1:] if not value.strip(b"\0") else value  # '' is one NUL, and so on
        out.append(value if blob else value.decode())
    return out


def numbers(file, name, group="memory"):
    values = file[f"{group}/{name}"][:]
    if values.dtype.kind == "f":
        return [None if np.isnan(v) else float(v) for v in values]
    return [None if v == np.iinfo("i8").min else int(v) for v in values]


def rows_in_file(path, user=USER):
    """{id: {column: value}} of the rows that live."""
    with h5py.File(path, "r") as file:
        assert file.attrs["format"] == b"h5mem"
        columns = {name: texts(file, name) for name in TEXTS}
        columns.update({name: numbers(file, name) for name in SMALL + ("timestamp",)})
        columns["source"] = [SOURCES[v] for v in file["memory/source"][:]]
        columns["tier"] = [TIERS[v] for v in file["memory/tier"][:]]
        columns["pinned"] = [int(v) for v in file["memory/pinned"][:]]
        columns["embedding"] = [None if np.isnan(norm) else row.astype("<f4").tobytes()
                                for norm, row in zip(file["memory/norm"][:], file["memory/embedding"][:])]
        for name, kind in user.items():
            columns[name] = texts(file, name, kind == "BLOB") if kind in ("TEXT", "BLOB") else numbers(file, name)
        ids, live = file["memory/id"][:], file["memory/live"][:]
    assert all(len(values) == len(ids) == len(live) for values in columns.values())
    assert set(live) <= {0, 1, 2}  # 2: evicted
    rows = {}
    for i in np.flatnonzero(live == 1):
        assert int(ids[i]) not in rows, f"id {ids[i]} lives twice"
        rows[int(ids[i])] = {name: values[i] for name, values in columns.items()}
    return rows


def records_in_file(path, group):
    """[(value, ...)] of the records of a table beside the rows that live, in order of their keys."""
    names = {"sessions": ("id", "parent", "start", "end", "channel", "summary"),
             "events": ("seq", "time", "kind", "id", "json")}[group]
    with h5py.File(path, "r") as file:
        if group not in file:
            return []
        columns = [texts(file, name, group=group) if isinstance(file[f"{group}/{name}"], h5py.Group)
                   else numbers(file, name, group) for name in names]
        live = file[f"{group}/live"][:]
        assert set(live) <= {0, 1} and all(len(values) == len(live) for values in columns)
        if group == "events":
            assert file["events"].attrs["next"] > max(columns[0])
    return sorted(row for row, lives in zip(zip(*columns), live) if lives)


def rows_in_sql(con):
    cursor = con.execute("SELECT * FROM memory")
    names = [column[0] for column in cursor.description]
    return {row[0]: dict(zip(names[1:], row[1:])) for row in cursor}


# ---- filling

def some_rows(rng, n, first=1):
    def text():
        return rng.choice([None, "", "\0", "\0\0", "a\0b", "plain words", "naïve 記憶 \U0001f9e0", "long " * 300])

    for key in range(first, first + n):
        yield {
            "id": key, "content": text(), "session": text(), "channel": text(), "tags": text(),
            "embedding": rng.choice([None, vector(*rng.normal(size=DIM)), vector(*[0] * DIM)]),
            "timestamp": float(rng.integers(0, 1 << 40)) / 256, "source": rng.choice(SOURCES),
            "tier": rng.choice(TIERS), "importance": float(rng.random()), "activation": float(rng.random() * 4),
            "access_count": int(rng.integers(0, 1000)), "last_access": rng.choice([None, 1.5]),
            "valid_from": rng.choice([None, 2.5]), "valid_to": rng.choice([None, None, 3.5]),
            "superseded_by": rng.choice([None, 7]), "pinned": int(rng.integers(0, 2)),
            "user_id": text(), "note": rng.choice([None, b"", b"\0", b"\xff\x00\xfe", b"x" * 5000]),
            "priority": rng.choice([None, 0, -(1 << 62), (1 << 62)]), "weight": rng.choice([None, 0.0, -1e300])}


def insert(con, rows):
    """In the open transaction, or in one of its own."""
    alone = not con.in_transaction
    if alone:
        con.execute("BEGIN")
    for row in rows:
        con.execute(f"INSERT OR REPLACE INTO memory({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                    list(row.values()))
    if alone:
        con.execute("COMMIT")


def create(con, options=""):
    columns = "".join(f", {name} {kind}" for name, kind in USER.items())
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim={DIM}{columns}{options})")


def flush(con):
    return con.execute("SELECT h5mem_flush('memory')").fetchone()[0]


def tool(name, *arguments, plugin=False):
    """Output of an HDF5 tool that must end well and without a word of complaint."""
    exe = shutil.which(name)
    if exe is None:
        pytest.skip(f"no {name} on PATH")
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    if plugin:
        env["HDF5_PLUGIN_PATH"] = hdf5plugin.PLUGINS_PATH
    done = subprocess.run([exe, *map(str, arguments)], capture_output=True, text=True, env=env)
    assert done.returncode == 0 and not done.stderr, f"{name}: {done.returncode} {done.stderr[-2000:]}"
    return done.stdout


def all_tools(path, plugin=False):
    assert "HDF5" in tool("h5dump", "-H", path)
    assert "DATA {" in tool("h5dump", "-m", "%.9g", path, plugin=plugin)
    assert "Summary of file space information" in tool("h5stat", path)


# ---- at rest

@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_every_column(connect, in_tmp, compression):
    """After each of several flushes with new, changed and deleted rows the file holds what SQL shows."""
    rng = np.random.default_rng(7)
    con = connect("host.db")
    create(con, f", compression='{compression}'")
    all_tools("agent.h5")
    assert rows_in_file("agent.h5") == {}
    for number, n in enumerate((1, 17, 150, 900, 40)):
        con.execute("BEGIN")
        insert(con, some_rows(rng, n, first=1 + number * 1000))
        if number > 1:
            ids = [int(v) for v in rng.choice(list(rows_in_sql(con)), 12, replace=False)]
            insert(con, (row for key in ids[:4] for row in some_rows(rng, 1, first=key)))
            con.executemany("UPDATE memory SET importance = 0.125, priority = 5, source = 'tool', pinned = 1,"
                            " valid_to = NULL WHERE id = ?", [(key,) for key in ids[4:8]])
            con.executemany("DELETE FROM memory WHERE id = ?", [(key,) for key in ids[8:]])
        con.execute("COMMIT")
        assert flush(con) > 0
        assert rows_in_file("agent.h5") == rows_in_sql(con)
    con.close()
    con = connect("host.db")
    assert rows_in_file("agent.h5") == rows_in_sql(con)
    all_tools("agent.h5", plugin=compression.startswith("zstd"))


@pytest.mark.parametrize("compression", ["none", "deflate:1"])
def test_more_than_1025_chunks(connect, in_tmp, compression):
    """A row of 16384 numbers is a chunk: the index of the column gets pages, one by one and many at once."""
    dim = 16384
    con = connect("host.db")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim={dim}, compression='{compression}',"
                " autoflush=1000000000)")

    def add(n):
        con.execute("BEGIN")
        for _ in range(n):
            value = np.zeros(dim, "<f4")
            value[:3] = (1, add.count, 0.5)
            add.count += 1
            con.execute("INSERT INTO memory(content, embedding) VALUES (?, ?)", (f"row {add.count}", value.tobytes()))
        con.execute("COMMIT")
        assert flush(con) == n

    add.count = 0
    for n in (1020, 3, 2, 5, 1):
        add(n)
    con.execute("UPDATE memory SET embedding = ? WHERE id = 1024", (np.full(dim, 0.25, "<f4").tobytes(),))
    flush(con)
    with h5py.File("agent.h5", "r") as file:
        data = file["memory/embedding"]
        assert data.shape == (1032, dim) and data.chunks == (1, dim)
        assert list(data[:1031, 1]) == list(range(1031))
        assert (data[1031] == 0.25).all()
    found = con.execute("SELECT id, distance FROM memory WHERE embedding MATCH ? AND k = 1",
                        (np.full(dim, 0.5, "<f4").tobytes(),)).fetchall()
    assert found[0][0] == 1024 and abs(found[0][1]) < 1e-6
    assert "1032" in tool("h5dump", "-H", "agent.h5")
    assert "Summary of file space information" in tool("h5stat", "agent.h5")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_sessions_events_and_evicted_rows(connect, in_tmp, compression):
    con = connect("host.db")
    create(con, f", compression='{compression}'")
    con.execute("CREATE VIRTUAL TABLE chats USING h5mem_sessions(memory)")
    rng = np.random.default_rng(5)
    con.execute("SELECT h5mem_config('memory', 'working_capacity', 20)")
    for first in range(1, 400, 40):
        insert(con, some_rows(rng, 40, first=first))
        for key in range(first, first + 40):
            con.execute("INSERT INTO chats(id, parent, summary) VALUES (?, ?, ?)",
                        (f"s{key}", f"s{key - 1}" if key % 3 else None, "\0" if key % 5 else "é" * key))
        con.execute("UPDATE chats SET \"end\" = 2e9, summary = NULL WHERE id LIKE '%7'")
        con.execute("DELETE FROM chats WHERE id LIKE '%9'")
        con.execute("SELECT h5mem_consolidate('memory', 1.9e9)")
        con.execute("SELECT h5mem_compact('memory')" if first == 201 else "SELECT h5mem_flush('memory')")
        assert records_in_file("agent.h5", "sessions") == con.execute("SELECT * FROM chats ORDER BY id").fetchall()
        assert records_in_file("agent.h5", "events") == con.execute("SELECT * FROM h5mem_events('memory')").fetchall()
        assert rows_in_file("agent.h5") == rows_in_sql(con)
    assert con.execute("SELECT h5mem_verify('memory')").fetchone()[0] == "ok"
    with h5py.File("agent.h5", "r") as file:
        assert 2 in file["memory/live"][:]
    con.close()
    all_tools("agent.h5", plugin=compression.startswith("zstd"))


def test_repacked(connect, in_tmp):
    """h5repack's copy has the same objects, and is smaller by what no root reaches."""
    con = connect("host.db")
    create(con)
    rng = np.random.default_rng(11)
    for first in (1, 1001):
        insert(con, some_rows(rng, 300, first=first))
        con.execute("DELETE FROM memory WHERE id % 7 = 0")
        con.execute("UPDATE memory SET content = 'changed' WHERE id % 11 = 0")
        flush(con)
    wanted = rows_in_sql(con)
    con.close()
    tool("h5repack", "agent.h5", "packed.h5")
    tool("h5diff", "agent.h5", "packed.h5")
    assert rows_in_file("packed.h5") == wanted
    assert os.path.getsize("packed.h5") < os.path.getsize("agent.h5")


@pytest.mark.parametrize("dim", (16, 128))
def test_packed_by_another_program(dim, connect, in_tmp):
    """All columns compressed by h5repack, the planes among them, which a search reads in place otherwise: the same
    nearest rows to the last bit, whole or through lists."""
    con = connect()
    rng = np.random.default_rng(12)
    con.execute(f"CREATE VIRTUAL TABLE m USING h5mem('agent.h5', dim={dim}, index=rairs)")
    con.execute("BEGIN")
    con.executemany("INSERT INTO m(id, embedding, timestamp) VALUES (?, ?, 0)",
                    ((i, rng.standard_normal(dim, "<f4").tobytes() if i % 9 else None) for i in range(1, 3001)))
    con.execute("COMMIT")
    con.execute("SELECT h5mem_flush('m')")
    con.execute("DELETE FROM m WHERE id % 13 = 0")
    con.execute("SELECT h5mem_optimize('m')")
    asked = [rng.standard_normal(dim, "<f4").tobytes() for _ in range(20)]

    def answers(rest):
        return [con.execute(f"SELECT id, distance FROM m WHERE embedding MATCH ? {rest}", (q,)).fetchall()
                for q in asked]

    wanted = {rest: answers(rest) for rest in ("AND k = 10 AND exact = 1", "AND exact = 1 ORDER BY distance DESC")}
    con.close()
    tool("h5repack", "-L", "-f", "GZIP=1", "agent.h5", "packed.h5")
    with h5py.File("packed.h5") as f:
        assert f["index/vector/plane_coarse"].compression == "gzip"
    con = connect()
    con.execute("CREATE VIRTUAL TABLE m USING h5mem('packed.h5', readonly=on)")
    for rest, rows in wanted.items():
        assert answers(rest) == rows
    assert answers("AND k = 10 AND recall = 0.9") == wanted["AND k = 10 AND exact = 1"]


# ---- beside a writer

def opened(path, look, tries=5):
    """look(path), tried again after the two errors that may come: the superblock was met in mid-write, or libhdf5
    had asked for the file's size before a flush and read the superblock after it."""
    for attempt in range(tries):
        try:
            return look(path)
        except OSError as error:
            assert any(words in str(error) for words in ("checksum", "truncated file")), error
            opened.torn += 1
            time.sleep(0.001)
    raise AssertionError(f"{tries} failures one after the other")


opened.torn = 0


def whole(path):
    """Reads everything in the file; the number of its rows."""
    with h5py.File(path, "r") as file:
        sizes = []
        file.visititems(lambda name, item: sizes.append(item[()].size) if isinstance(item, h5py.Dataset) else None)
        n = file["memory/id"].shape[0]
        ids, live = file["memory/id"][:], file["memory/live"][:]
        for name in TEXTS:
            texts(file, name)
            assert file[f"memory/{name}/offsets"].shape[0] == n + 1
        for name in SMALL + ("embedding", "norm", "timestamp", "source", "tier", "pinned"):
            assert file[f"memory/{name}"].shape[0] == n
    living = ids[live == 1]
    assert len(set(living)) == len(living)
    return n


def dumped(path):
    done = subprocess.run(["h5dump", "-H", str(path)], capture_output=True, text=True,
                          env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
    if done.returncode:
        raise OSError(done.stderr)
    return done.stdout


@pytest.mark.parametrize("compression", ["none", "deflate:1"])
def test_while_a_writer_is_at_work(server, tmp_path, report, compression):
    child = server.start("harness.jobs", "writer", sync=False, folder=str(tmp_path), mode="wal", seed=5,
                         options=f", autoflush=4096, compression='{compression}'")
    assert child.recv()[0] == "ready"
    path, opened.torn, seen, dumps = tmp_path / "agent.h5", 0, [], 0
    end = time.monotonic() + 4
    while time.monotonic() < end:
        seen.append(opened(path, whole))
        if len(seen) % 10 == 0 and shutil.which("h5dump"):
            assert "memory" in opened(path, dumped)
            dumps += 1
        while child.channel.poll(0):
            child.recv()
    child.kill()
    for _ in child.rest():
        pass
    assert child.wait() == -9
    assert len(set(seen)) > 3, "the writer has not flushed meanwhile"
    report(f"{compression}: read whole {len(seen)} times by h5py, {dumps} times by h5dump -H, {len(set(seen))}"
           f" different states, {opened.torn} met a flush in their opening and were repeated")


@pytest.mark.parametrize("mode", ["wal", "delete", "memory"])
def test_after_a_writer_was_killed(server, tmp_path, mode):
    rng = random.Random(23)
    for number in range(12):
        child = server.start("harness.jobs", "writer", sync=False, folder=str(tmp_path), mode=mode, seed=number,
                             options=", autoflush=4096")
        child.recv()
        end = time.monotonic() + rng.uniform(0.01, 0.2)
        while time.monotonic() < end:
            if child.channel.poll(0.001):
                child.recv()
        child.kill()
        for _ in child.rest():
            pass
        child.wait()
        whole(tmp_path / "agent.h5")
        tool("h5dump", "-H", tmp_path / "agent.h5")
    con = open_host(tmp_path, mode)
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    in_file = rows_in_file(tmp_path / "agent.h5", {"user_id": "TEXT", "priority": "INTEGER"})
    assert in_file == rows_in_sql(con)
    con.close()


def test_a_file_holds_the_last_flush(server, tmp_path):
    """After a kill h5py sees the rows of the last flush, SQL those of the last commit."""
    con = Remote(server, tmp_path / "host.db")
    con("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=8)")
    con("INSERT INTO memory(content) VALUES ('one'), ('two')")
    con("SELECT h5mem_flush('memory')")
    con("INSERT INTO memory(content) VALUES ('three')")
    con("UPDATE memory SET content = 'TWO' WHERE id = 2")
    con("BEGIN")
    con("INSERT INTO memory(content) VALUES ('four')")
    con.kill()
    rows = rows_in_file(tmp_path / "agent.h5", {})
    assert {key: row["content"] for key, row in rows.items()} == {1: "one", 2: "two"}
    assert Remote(server, tmp_path / "host.db")("SELECT id, content FROM memory ORDER BY id") == [
        (1, "one"), (2, "TWO"), (3, "three")]


def test_an_open_reader_keeps_its_rows(connect, in_tmp):
    """A file opened by h5py before flushes shows the rows of that time, however late it reads them."""
    con = connect("host.db")
    create(con)
    rng = np.random.default_rng(3)
    insert(con, some_rows(rng, 100))
    flush(con)
    wanted = rows_in_sql(con)
    with h5py.File("agent.h5", "r") as file:
        for number in range(1, 8):
            insert(con, some_rows(rng, 60, first=1000 * number))
            con.execute("UPDATE memory SET importance = 0.75, priority = 99, tier = 'semantic'")
            con.execute("DELETE FROM memory WHERE id % 5 = ?", (number % 5,))
            con.execute("UPDATE memory SET content = 'changed' WHERE id < 50")
            flush(con)
        assert file["memory/id"].shape == (100,)
        assert texts(file, "content") == [row["content"] for row in wanted.values()]
        assert numbers(file, "importance") == [row["importance"] for row in wanted.values()]
        assert numbers(file, "priority") == [row["priority"] for row in wanted.values()]
        assert (file["memory/live"][:] == 1).all()
        blank = bytes(4 * DIM)
        assert [row.astype("<f4").tobytes() for row in file["memory/embedding"][:]] == [
            row["embedding"] or blank for row in wanted.values()]
    assert rows_in_file("agent.h5") == rows_in_sql(con)


# ---- other writers

def test_h5py_cannot_write_while_the_store_is_open(connect, in_tmp):
    con = connect("host.db")
    create(con)
    con.execute("INSERT INTO memory(content) VALUES ('one')")
    flush(con)
    for mode in ("r+", "a"):
        with pytest.raises(OSError, match="lock"):
            h5py.File("agent.h5", mode)
    assert rows_in_file("agent.h5")[1]["content"] == "one"
    con.execute("INSERT INTO memory(content) VALUES ('two')")
    con.close()
    with h5py.File("agent.h5", "r+"):
        pass
    con = connect("host.db")
    con.execute("INSERT INTO memory(content) VALUES ('three')")
    assert con.execute("SELECT content FROM memory ORDER BY id").fetchall() == [("one",), ("two",), ("three",)]


@pytest.mark.parametrize("in_log", [False, True], ids=["log-empty", "rows-in-log"])
def test_h5py_has_changed_the_file(connect, server, in_tmp, in_log):
    """Reads go on, also of rows in the log; writes are refused, and the words say why."""
    con = Remote(server, in_tmp / "host.db")
    con("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=8)")
    con("INSERT INTO memory(content) VALUES ('one'), ('two')")
    if in_log:
        con("SELECT h5mem_flush('memory')")
        con("INSERT INTO memory(content) VALUES ('three')")
        con.kill()
    else:
        con.close()
    with h5py.File("agent.h5", "r+") as file:
        file.attrs["mine"] = "a rather long text that needs room: " * 100
    before = open("agent.h5", "rb").read()
    con = connect("host.db")
    wanted = [("one",), ("two",)] + [("three",)] * in_log
    assert con.execute("SELECT content FROM memory ORDER BY id").fetchall() == wanted
    for sql in ("INSERT INTO memory(content) VALUES ('four')", "UPDATE memory SET content = 'x'",
                "DELETE FROM memory WHERE id = 1", "SELECT h5mem_flush('memory')"):
        with pytest.raises(Exception, match="agent.h5.*changed by another program"):
            con.execute(sql).fetchall()
    found = con.execute("SELECT content FROM memory WHERE content MATCH 'one two three' ORDER BY id").fetchall()
    assert found == wanted
    con.close()
    assert open("agent.h5", "rb").read() == before
    with h5py.File("agent.h5", "r") as file:
        assert file.attrs["mine"].startswith("a rather long")
    con = connect("host.db")
    assert con.execute("SELECT count(*) FROM memory").fetchone() == (len(wanted),)
