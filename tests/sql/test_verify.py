"""h5mem_verify: a sound store is 'ok' in every state; damage is found wherever it changes what is read.

Each byte of a small store is flipped in turn (in steps, by a seed). The store then either gives an
error, or rows that differ and a fault that says where, or the same rows.

SPDX-License-Identifier: MIT
"""

import os
import random
import sqlite3
import struct

import pytest

DIM = 3
BYTES = int(os.environ.get("H5MEM_FLIPS", "400"))


def vector(*values):
    return struct.pack(f"<{DIM}f", *values)


def fill(db, n, first=0):
    for i in range(first, first + n):
        db.execute(
            "INSERT INTO memory(content, embedding, session, tags, priority) VALUES(?,?,?,?,?)",
            (f"turn {i} about the roof and topic{i % 7}", vector(i, 1, i % 5), f"s{i % 3}",
             None if i % 2 else "a,b", i))


@pytest.fixture
def store(connect, tmp_path):
    db = connect(tmp_path / "host.db")
    db.execute("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=3, priority INTEGER)")
    return db


def test_ok_in_every_state(store):
    def ok():
        assert store.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)

    ok()
    with store:
        fill(store, 40)
    ok()
    store.execute("SELECT h5mem_flush('memory')").fetchone()
    ok()
    with store:
        store.execute("DELETE FROM memory WHERE id % 5 = 0")
        store.execute("UPDATE memory SET content = content || ' again' WHERE id % 7 = 1")
        store.execute("UPDATE memory SET tier = 'semantic' WHERE id % 3 = 1")
    ok()
    for i in range(12):  # runs of the indexes merge
        with store:
            fill(store, 20, 100 + 20 * i)
            store.execute("UPDATE memory SET content = 'changed ' || id WHERE id = ?", (100 + i,))
        store.execute("SELECT h5mem_flush('memory')").fetchone()
        ok()


def test_refuses_with_uncommitted_rows(store):
    store.execute("BEGIN")
    fill(store, 1)
    with pytest.raises(Exception, match="uncommitted"):
        store.execute("SELECT h5mem_verify('memory')").fetchone()
    store.execute("ROLLBACK")


def everything(connect, folder):
    db = connect(folder / "host.db")
    db.text_factory = lambda b: b.decode("utf-8", "replace")
    try:
        rows = db.execute(
            "SELECT id, content, embedding, session, tags, tier, importance, priority FROM memory"
            " ORDER BY id").fetchall()
        text = db.execute(
            "SELECT id, rank FROM memory WHERE content MATCH 'roof topic3' ORDER BY rank").fetchall()
        near = db.execute("SELECT id, distance FROM memory WHERE embedding MATCH ?"
                          " ORDER BY distance", (vector(1, 2, 3),)).fetchall()
        return (rows, text, near), db.execute("SELECT h5mem_verify('memory')").fetchone()[0]
    finally:
        db.close()


def test_every_damage_is_found(store, connect, tmp_path):
    with store:
        fill(store, 60)
    store.execute("SELECT h5mem_flush('memory')").fetchone()
    with store:
        store.execute("DELETE FROM memory WHERE id < 9")
        store.execute("UPDATE memory SET content = 'other roof' WHERE id = 20")
    store.close()
    good, verdict = everything(connect, tmp_path)
    assert verdict == "ok"
    image = (tmp_path / "agent.h5").read_bytes()
    rng = random.Random(7)
    found = 0
    for at in sorted(rng.sample(range(len(image)), BYTES)):
        bad = bytearray(image)
        bad[at] ^= 1 << rng.randrange(8)
        (tmp_path / "agent.h5").write_bytes(bad)
        try:
            rows, verdict = everything(connect, tmp_path)
        except Exception as e:  # an error that says so is found damage, too
            assert "agent.h5" in str(e), (at, e)
            found += 1
            continue
        if rows != good:
            assert verdict != "ok", f"byte {at} changes rows and verify is content"
        found += verdict != "ok"
    (tmp_path / "agent.h5").write_bytes(image)
    assert everything(connect, tmp_path) == (good, "ok")
    assert found > BYTES // 10  # the rest is space that no root reaches


@pytest.mark.parametrize("pragma", ["integrity_check", "quick_check"])
def test_integrity_check_asks_the_store(connect, tmp_path, pragma):
    if sqlite3.sqlite_version_info < (3, 44):
        pytest.skip("this SQLite does not ask virtual tables")
    con = connect(tmp_path / "host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    con.execute("INSERT INTO memory(content) VALUES ('amber brook'), ('cedar')")
    con.execute("SELECT h5mem_flush('memory')")
    assert con.execute(f"PRAGMA {pragma}").fetchall() == [("ok",)]
    con.close()
    data = bytearray((tmp_path / "m.h5").read_bytes())
    data[data.index(b"amber brook")] ^= 1
    (tmp_path / "m.h5").write_bytes(data)
    (said,), = connect(tmp_path / "host.db").execute(f"PRAGMA {pragma}").fetchall()
    assert "memory: content/data: chunk 0" in said


@pytest.mark.parametrize("damage", ["missing", "no log", "empty", "cut", "superblock", "log", "folder"])
def test_drop_needs_no_whole_store(connect, tmp_path, damage):
    con = connect(tmp_path / "host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    con.execute("CREATE VIRTUAL TABLE sessions USING h5mem_sessions(memory)")
    con.execute("INSERT INTO memory(content) VALUES ('amber')")
    con.close()
    file, log = tmp_path / "m.h5", tmp_path / "m.h5-wal"
    if damage in ("missing", "folder"):
        file.unlink()
        log.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage == "no log":
        log.unlink()
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:700])
    elif damage == "superblock":
        file.write_bytes(b"\xff" * 48 + file.read_bytes()[48:])
    elif damage == "log":
        log.write_bytes(b"\xff" * len(log.read_bytes()))
    before = sorted((p.name, p.is_file() and p.read_bytes()) for p in tmp_path.glob("m.h5*"))
    con = connect(tmp_path / "host.db")
    for table in ("memory", "sessions"):
        con.execute("BEGIN")
        con.execute(f"DROP TABLE {table}")
        con.execute("ROLLBACK")
        con.execute(f"DROP TABLE {table}")
    assert con.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    con.close()
    after = sorted((p.name, p.is_file() and p.read_bytes()) for p in tmp_path.glob("m.h5*"))
    assert after == before or damage in ("no log", "superblock")  # these two are mended by opening
