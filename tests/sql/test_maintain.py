"""h5mem_compact and h5mem_backup: same rows, same answers, other files.

SPDX-License-Identifier: MIT
"""

import os
import random
import sqlite3
import struct

import pytest

DIM = 4


def vector(rng):
    return struct.pack(f"<{DIM}f", *(rng.uniform(-1, 1) for _ in range(DIM)))


def work(db, rng, n):
    """n random statements, each its own transaction."""
    for _ in range(n):
        what = rng.random()
        ids = [r[0] for r in db.execute("SELECT id FROM memory")]
        if what < 0.6 or not ids:
            db.execute("INSERT INTO memory(content, embedding, session, mood) VALUES(?,?,?,?)",
                       (f"turn {rng.randrange(50)} of word{rng.randrange(20)}",
                        vector(rng) if rng.random() < 0.9 else None,
                        rng.choice([None, "s1", "s2"]), rng.choice([None, b"\0", b"x" * 300])))
        elif what < 0.75:
            db.execute("DELETE FROM memory WHERE id = ?", (rng.choice(ids),))
        elif what < 0.9:
            db.execute("UPDATE memory SET content = ? WHERE id = ?",
                       (f"changed word{rng.randrange(20)}", rng.choice(ids)))
        else:
            db.execute("UPDATE memory SET importance = ?, tier = 'semantic' WHERE id = ?",
                       (rng.random(), rng.choice(ids)))


def answers(db):
    query = struct.pack(f"<{DIM}f", 0.3, -0.2, 0.9, 0.1)
    return (
        db.execute("SELECT id, content, embedding, session, mood, importance, tier, timestamp"
                   " FROM memory ORDER BY id").fetchall(),
        db.execute("SELECT id, rank FROM memory WHERE content MATCH 'word3 word7 changed'"
                   " ORDER BY rank, id").fetchall(),
        db.execute("SELECT id, distance FROM memory WHERE embedding MATCH ? ORDER BY distance",
                   (query,)).fetchall(),
        db.execute("SELECT h5mem_verify('memory')").fetchone())


def close_to(a, b):
    assert a[0] == b[0] and a[2:] == b[2:]
    assert [r[0] for r in a[1]] == [r[0] for r in b[1]]
    for (_, x), (_, y) in zip(a[1], b[1]):
        assert x == pytest.approx(y, rel=1e-12)


def create(connect, folder, options=""):
    db = connect(folder / "host.db")
    db.execute("PRAGMA synchronous=OFF")
    db.execute(
        f"CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim={DIM}, mood BLOB{options})")
    return db


@pytest.mark.parametrize("options", ["", ", compression='zstd:3'"])
def test_compact_keeps_everything(connect, tmp_path, options):
    rng = random.Random(11)
    db = create(connect, tmp_path, options)
    other = connect(tmp_path / "host.db")  # has the old file open
    for round_ in range(5):
        work(db, rng, 40)
        if round_ % 2:
            db.execute("SELECT h5mem_flush('memory')").fetchone()
        before = answers(db)
        assert before[3] == ("ok",)
        answers(other)
        size = os.path.getsize(tmp_path / "agent.h5")
        saved = db.execute("SELECT h5mem_compact('memory')").fetchone()[0]
        if round_ % 2:
            assert saved == max(0, size - os.path.getsize(tmp_path / "agent.h5"))
        close_to(answers(db), before)
        close_to(answers(other), before)
    assert not os.path.exists(tmp_path / "agent.h5-new")
    db.execute("INSERT INTO memory(memory) VALUES('compact')")
    db.execute("INSERT INTO memory(memory) VALUES('verify')")
    other.execute("INSERT INTO memory(content) VALUES('after')")  # writes to the new file
    assert db.execute("SELECT count(*) FROM memory WHERE content = 'after'").fetchone() == (1,)
    dead = db.execute("SELECT json_extract(h5mem_stats('memory'), '$.dead_rows')").fetchone()[0]
    assert dead == 0


def test_compact_under_an_open_cursor(connect, tmp_path):
    db = create(connect, tmp_path)
    db.execute("PRAGMA journal_mode=WAL")
    work(db, random.Random(3), 60)
    want = db.execute("SELECT id, content FROM memory ORDER BY id").fetchall()
    reader = connect(tmp_path / "host.db")
    rows = reader.execute("SELECT id, content FROM memory ORDER BY id")
    got = [next(rows) for _ in range(5)]
    db.execute("SELECT h5mem_compact('memory')").fetchone()
    db.execute("DELETE FROM memory")
    db.execute("SELECT h5mem_compact('memory')").fetchone()
    got += rows.fetchall()
    assert got == want
    assert reader.execute("SELECT count(*) FROM memory").fetchone() == (0,)


def test_forgotten_bytes_are_gone_after_compact(connect, tmp_path):
    db = create(connect, tmp_path)
    db.execute("INSERT INTO memory(content) VALUES('the secret is xyzzyplugh'), ('kept')")
    db.execute("SELECT h5mem_flush('memory')").fetchone()
    db.execute("DELETE FROM memory WHERE content MATCH 'xyzzyplugh'")
    db.execute("SELECT h5mem_compact('memory')").fetchone()
    for name in ("agent.h5", "agent.h5-wal"):
        assert b"xyzzyplugh" not in (tmp_path / name).read_bytes()
    assert db.execute("SELECT content FROM memory").fetchall() == [("kept",)]


@pytest.mark.parametrize("flush", [False, True])
def test_backup(connect, tmp_path, flush):
    rng = random.Random(5)
    db = create(connect, tmp_path)
    work(db, rng, 80)
    if flush:
        db.execute("SELECT h5mem_flush('memory')").fetchone()
    work(db, rng, 10)
    want = answers(db)
    to = str(tmp_path / "copy.h5")
    bytes_ = db.execute("SELECT h5mem_backup('memory', ?)", (to,)).fetchone()[0]
    assert bytes_ == sum(os.path.getsize(tmp_path / f"copy.h5{s}") for s in ("", "-wal"))
    work(db, rng, 30)  # the copy does not follow
    (tmp_path / "b").mkdir()
    copy = connect(tmp_path / "b" / "host.db")
    copy.execute("CREATE VIRTUAL TABLE memory USING h5mem('../copy.h5')")
    close_to(answers(copy), want)
    copy.execute("INSERT INTO memory(content) VALUES('lives on')")
    assert answers(copy)[3] == ("ok",)
    with pytest.raises(sqlite3.Error, match="copy.h5' is there already"):
        db.execute("SELECT h5mem_backup('memory', ?)", (to,)).fetchone()
    with pytest.raises(sqlite3.Error, match="no-such-folder"):
        db.execute("SELECT h5mem_backup('memory', ?)",
                   (str(tmp_path / "no-such-folder/x.h5"),)).fetchone()
    assert not os.path.exists(tmp_path / "no-such-folder")


def test_refused_with_uncommitted_rows(connect, tmp_path):
    db = create(connect, tmp_path)
    db.execute("BEGIN")
    db.execute("INSERT INTO memory(content) VALUES('x')")
    for call in ("h5mem_compact('memory')", f"h5mem_backup('memory', '{tmp_path}/copy.h5')"):
        with pytest.raises(sqlite3.OperationalError, match="uncommitted"):
            db.execute(f"SELECT {call}").fetchone()
    db.execute("COMMIT")
    assert not os.path.exists(tmp_path / "copy.h5")


def test_a_file_that_is_mostly_dead_compacts_itself(connect, tmp_path):
    db = create(connect, tmp_path, ", autoflush=200000, autocompact=0.4")
    text = "x" * 2000
    for round_ in range(12):
        db.execute("BEGIN")
        for i in range(200):
            db.execute("INSERT OR REPLACE INTO memory(id, content) VALUES(?, ?)",
                       (i, f"{round_} {text}"))
        db.execute("COMMIT")
    assert db.execute("SELECT count(*), min(substr(content, 1, 2)) FROM memory").fetchone() == (
        200, "11")
    assert os.path.getsize(tmp_path / "agent.h5") < 4 << 20  # 12 rounds wrote 4.8 MB of text
    stats = "SELECT json_extract(h5mem_stats('memory'), '$.dead_share')"
    assert db.execute(stats).fetchone()[0] < 0.9
    assert db.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)
    db.execute("SELECT h5mem_config('memory', 'autocompact', 1)").fetchone()
