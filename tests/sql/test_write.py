"""test_write.py - INSERT, UPDATE, DELETE: conversions, conflicts, hidden columns, commands

SPDX-License-Identifier: MIT
"""

import math
import sqlite3
import struct
import time

import pytest

USER = "t TEXT, i INTEGER, r REAL, b BLOB"


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, {USER})")
    return con


def one(con, sql, *values):
    return con.execute(sql, values).fetchone()


# ---- conversions


@pytest.mark.parametrize(
    "column, value, stored",
    [
        ("content", "text", "text"),
        ("content", 5, "5"),
        ("content", 2.5, "2.5"),
        ("content", "", ""),
        ("content", "nul\0inside", "nul\0inside"),
        ("content", "Grüße 東京 🙂", "Grüße 東京 🙂"),
        ("embedding", "[1, 2.5]", struct.pack("<2f", 1, 2.5)),
        ("embedding", struct.pack("<2f", -0.0, 3e38), struct.pack("<2f", -0.0, 3e38)),
        ("embedding", None, None),
        ("timestamp", 5, 5.0),
        ("timestamp", -2.5, -2.5),
        ("timestamp", "2026-11-01T00:00:00+01:00", 1793487600.0),
        ("timestamp", "2026-11-01 00:00:00.5", 1793491200.5),
        ("timestamp", "1793491200", 1793491200.0),
        ("timestamp", " 1e3 ", 1000.0),
        ("last_access", "2026-11-01", 1793491200.0),
        ("valid_from", "1970-01-02", 86400.0),
        ("valid_to", 7, 7.0),
        ("valid_to", None, None),
        ("session", 17, "17"),
        ("tags", "a,b", "a,b"),
        ("source", "tool", "tool"),
        ("source", None, None),
        ("tier", "semantic", "semantic"),
        ("tier", None, "working"),
        ("importance", 1, 1.0),
        ("importance", "0.25", 0.25),
        ("importance", None, 0.5),
        ("access_count", 3.0, 3),
        ("access_count", "4", 4),
        ("access_count", None, 0),
        ("superseded_by", 9, 9),
        ("pinned", 1, 1),
        ("pinned", None, 0),
        ("activation", 2, 2.0),
        ("t", 1.0, "1.0"),
        ("i", "12", 12),
        ("i", 12.0, 12),
        ("i", "1e2", 100),
        ("i", 2**63 - 1, 2**63 - 1),
        ("r", "12", 12.0),
        ("r", 2**53 + 1, float(2**53)),
        ("r", 1e300, 1e300),
        ("b", b"", b""),
        ("b", b"\0\1", b"\0\1"),
        ("b", None, None),
    ],
)
def test_stored(con, column, value, stored):
    for verb in ("INSERT", "UPDATE"):
        if verb == "INSERT":
            con.execute(f"INSERT INTO memory({column}) VALUES (?)", (value,))
        else:
            con.execute(f"UPDATE memory SET {column} = NULL")
            con.execute(f"UPDATE memory SET {column} = ?", (value,))
        got = one(con, f"SELECT {column} FROM memory")[0]
        assert got == stored and type(got) is type(stored)
        con.execute("SELECT h5mem_flush('memory')").fetchall()
        assert one(con, f"SELECT {column} FROM memory")[0] == stored


NAN = struct.pack("<2f", 1, math.nan)
INF = struct.pack("<2f", -math.inf, 1)


@pytest.mark.parametrize(
    "column, value, message",
    [
        ("content", b"x", "content is a blob of 1 bytes; it takes text"),
        ("embedding", b"", "embedding has 0 bytes, expected 8 (dim 2)"),
        ("embedding", bytes(12), "embedding has 12 bytes, expected 8 (dim 2)"),
        ("embedding", bytes(7), "embedding has 7 bytes, expected 8 (dim 2)"),
        ("embedding", NAN, "embedding is NaN at [1]"),
        ("embedding", INF, "embedding is infinite at [0]"),
        ("embedding", "[1]", "dim is 2, got an embedding of 1"),
        ("embedding", "[1,2,3]", "dim is 2, got an embedding of 3"),
        ("embedding", "[]", "dim is 2, got an embedding of 0"),
        ("embedding", "hello", "embedding 'hello' is no JSON array of numbers"),
        ("embedding", "[1, NaN]", "is no JSON array of numbers: NaN at [1]"),
        ("embedding", "[1, 1e39]", "holds 1e39 at [1], more than a 32-bit float can hold"),
        ("embedding", 5, "embedding is 5; it takes a blob of 4 bytes a dimension or a JSON array"),
        ("timestamp", "yesterday", "timestamp is 'yesterday'; it takes Unix seconds or ISO 8601 text"),
        ("timestamp", "2026", "timestamp is '2026'"),
        ("timestamp", "2026-02-30", "timestamp is '2026-02-30'"),
        ("valid_to", b"x", "valid_to is a blob of 1 bytes"),
        ("tier", "core", "core"),
        ("source", "nobody", "nobody"),
        ("importance", 1.5, "1.5"),
        ("importance", "high", "importance is 'high'; it takes a number"),
        ("access_count", 1.5, "access_count is 1.5; it takes a whole number"),
        ("access_count", "x", "access_count is 'x'"),
        ("pinned", 2, "2"),
        ("superseded_by", "x", "superseded_by is 'x'"),
        ("id", "x", "id is 'x'; it takes a whole number"),
        ("id", 1.5, "id is 1.5; it takes a whole number"),
        ("id", b"1", "id is a blob of 1 bytes"),
        ("t", b"x", "t is a blob of 1 bytes; it takes text"),
        ("i", 1.5, "i is 1.5; it takes a whole number"),
        ("i", "12x", "i is '12x'"),
        ("i", 1e300, "i is 1.0e+300; it takes a whole number"),
        ("r", "x", "r is 'x'; it takes a number"),
        ("r", b"1", "r is a blob of 1 bytes"),
        ("b", "text", "b is 'text'; it takes a blob"),
        ("b", 5, "b is 5; it takes a blob"),
        ("memory", "nosuch", "unknown command 'nosuch'; known are 'flush'"),
        ("memory", 5, "unknown command 5"),
        ("distance", 1, "distance cannot be written"),
        ("rank", 1, "rank cannot be written"),
        ("score", 0, "score cannot be written"),
        ("k", 5, "k cannot be written"),
        ("as_of", 5, "as_of cannot be written"),
        ("vector_weight", 1, "vector_weight cannot be written"),
    ],
)
def test_refused(con, column, value, message):
    con.execute("INSERT INTO memory(id, content, embedding) VALUES (1, 'as it was', '[1, 0]')")
    before = con.execute("SELECT * FROM memory").fetchall()
    for sql in (f"INSERT INTO memory({column}) VALUES (?)", f"UPDATE memory SET {column} = ?"):
        if column == "memory" and sql.startswith("UPDATE"):
            message = "memory cannot be written"
        for transaction in (False, True):
            if transaction:
                con.execute("BEGIN")
            with pytest.raises(sqlite3.OperationalError) as failure:
                con.execute(sql, (value,))
            assert message in str(failure.value) and str(failure.value).startswith("h5mem: memory: m.h5: ")
            assert con.execute("SELECT * FROM memory").fetchall() == before
            if transaction:
                con.execute("COMMIT")
    assert con.execute("SELECT * FROM memory").fetchall() == before


def test_now_is_the_default_time(con):
    before = time.time()
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.execute("INSERT INTO memory(content, timestamp) VALUES ('b', NULL)")
    got = [row[0] for row in con.execute("SELECT timestamp FROM memory")]
    assert all(before - 0.01 <= t <= time.time() + 0.01 for t in got)
    con.execute("UPDATE memory SET timestamp = 5")
    con.execute("UPDATE memory SET content = 'c' WHERE id = 1")
    assert one(con, "SELECT timestamp FROM memory WHERE id = 1") == (5.0,)


# ---- ids


def test_ids(con):
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.execute("INSERT INTO memory(id, content) VALUES (7, 'b'), ('9', 'c'), (11.0, 'd')")
    con.execute("INSERT INTO memory(rowid, content) VALUES (20, 'e')")
    con.execute("INSERT INTO memory(rowid, id, content) VALUES (21, 21, 'f')")
    con.execute("INSERT INTO memory(id, content) VALUES (-3, 'g'), (0, 'h')")
    con.execute("INSERT INTO memory(content) VALUES ('i')")
    assert one(con, "SELECT last_insert_rowid()") == (22,)
    rows = con.execute("SELECT id, rowid, _rowid_, oid, content FROM memory ORDER BY id").fetchall()
    assert [row[0] for row in rows] == [-3, 0, 1, 7, 9, 11, 20, 21, 22] and all(
        row[0] == row[1] == row[2] == row[3] for row in rows
    )
    with pytest.raises(sqlite3.OperationalError, match="rowid is 30 and id is 31; they are the same column"):
        con.execute("INSERT INTO memory(rowid, id) VALUES (30, 31)")
    con.execute("DELETE FROM memory WHERE id = 22")
    con.execute("INSERT INTO memory(content) VALUES ('j')")
    assert one(con, "SELECT last_insert_rowid()") == (23,), "ids are not used again"
    assert [row[1] for row in con.execute("PRAGMA table_info(memory)") if row[5]] == ["id"]


def test_update_of_the_id(con):
    con.execute(
        "INSERT INTO memory(id, content, embedding, i) VALUES (1, 'one word', '[1, 0]', 1), (2, 'two', NULL, 2),"
        " (3, NULL, '[0, 1]', 3)"
    )
    con.execute("UPDATE memory SET id = 10 WHERE id = 1")
    con.execute("UPDATE memory SET rowid = 30 WHERE id = 3")
    con.execute("UPDATE memory SET id = 20, rowid = 20, i = 22 WHERE id = 2")
    assert con.execute("SELECT id, content, i FROM memory ORDER BY id").fetchall() == [
        (10, "one word", 1),
        (20, "two", 22),
        (30, None, 3),
    ]
    assert con.execute("SELECT id FROM memory('word')").fetchall() == [(10,)]
    assert con.execute("SELECT id FROM memory WHERE embedding MATCH '[1, 0]'").fetchall() == [(10,), (30,)]
    for sql in (
        "UPDATE memory SET id = NULL",
        "UPDATE memory SET id = 5, rowid = 6 WHERE id = 10",
        "UPDATE memory SET id = 'x'",
    ):
        with pytest.raises(sqlite3.OperationalError, match="h5mem: memory: m.h5: "):
            con.execute(sql)


def test_update_onto_another_row(con):
    def fill():
        con.execute("DELETE FROM memory")
        con.execute("INSERT INTO memory(id, content, i) VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)")

    def state():
        return con.execute("SELECT id, content, i FROM memory ORDER BY id").fetchall()

    fill()
    before = state()
    for verb in ("UPDATE", "UPDATE OR ABORT", "UPDATE OR FAIL"):
        with pytest.raises(sqlite3.IntegrityError, match="h5mem: memory: m.h5: id 2"):
            con.execute(f"{verb} memory SET id = 2 WHERE id = 1")
        assert state() == before
    con.execute("UPDATE OR IGNORE memory SET id = id + 1, i = 9")
    assert state() == [(1, "one", 1), (2, "two", 2), (4, "three", 9)]
    fill()
    con.execute("BEGIN")
    con.execute("UPDATE OR REPLACE memory SET id = 2, i = 7 WHERE id = 1")
    assert state() == [(2, "one", 7), (3, "three", 3)]
    assert con.execute("SELECT count(*) FROM memory('two')").fetchone() == (0,)
    con.execute("ROLLBACK")
    assert state() == before
    # a REPLACE that fails in its second step leaves the row that stood in the way
    with pytest.raises(sqlite3.OperationalError):
        con.execute("UPDATE OR REPLACE memory SET id = 2, tier = 'nosuch' WHERE id = 1")
    assert state() == before
    con.execute("CREATE TABLE plain(id INTEGER PRIMARY KEY, content, i)")
    con.execute("INSERT INTO plain SELECT id, content, i FROM memory")
    for table in ("memory", "plain"):
        con.execute(f"UPDATE OR REPLACE {table} SET id = 5 - id")  # 1 to 4, 2 onto 3, which then moves on to 2
    assert state() == con.execute("SELECT * FROM plain ORDER BY id").fetchall() == [(2, "two", 2), (4, "one", 1)]


def test_replace(con):
    con.execute(
        "INSERT INTO memory(id, content, embedding, importance, i, tier) VALUES (5, 'old words', '[1, 0]', 0.9,"
        " 3, 'semantic')"
    )
    con.execute("REPLACE INTO memory(id, content) VALUES (5, 'new')")
    row = one(con, "SELECT content, embedding, importance, i, tier, access_count FROM memory WHERE id = 5")
    assert row == ("new", None, 0.5, None, "working", 0)
    assert con.execute("SELECT count(*) FROM memory('old')").fetchone() == (0,)
    with pytest.raises(sqlite3.OperationalError):
        con.execute("REPLACE INTO memory(id, content, importance) VALUES (5, 'bad', 7)")
    assert one(con, "SELECT content FROM memory") == ("new",)


# ---- UPDATE leaves the rest alone


def versions(con):
    """Row versions written since the last flush."""
    return one(con, "SELECT json_extract(h5mem_stats('memory'), '$.log_rows')")[0]


@pytest.mark.parametrize(
    "form", ["UPDATE memory SET {} WHERE id = 1", "UPDATE memory SET {} FROM (SELECT 1 AS one) o WHERE id = one"]
)
def test_metadata_only(con, form):
    con.execute("INSERT INTO memory(content, embedding, session) VALUES ('some words', '[1, 0]', 's')")
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    assert versions(con) == 0
    con.execute(form.format("importance = 0.75, pinned = 1"))
    assert versions(con) == 0, "no text or vector was written again"
    assert one(con, "SELECT content, importance, pinned FROM memory('words') WHERE embedding MATCH '[1, 1]'") == (
        "some words",
        0.75,
        1,
    )
    con.execute(form.format("content = 'some words', importance = 0.5"))
    assert versions(con) == 0, "the same text is no change"
    con.execute(form.format("content = 'other words'"))
    assert versions(con) == 1
    assert con.execute("SELECT count(*) FROM memory('some')").fetchone() == (0,)
    assert one(con, "SELECT embedding, session FROM memory('other')") == (struct.pack("<2f", 1, 0), "s")
    con.execute(form.format("embedding = '[0, 1]'"))
    assert one(con, "SELECT content FROM memory('other') WHERE embedding MATCH '[0, 1]' AND distance < 0.1") == (
        "other words",
    )
    con.execute(form.format("embedding = NULL"))
    assert one(con, "SELECT content, embedding FROM memory('other')") == ("other words", None)
    con.execute(form.format("content = NULL"))
    assert con.execute("SELECT count(*) FROM memory('other')").fetchone() == (0,)


def test_update_by_search(con):
    con.execute("INSERT INTO memory(content, embedding) VALUES ('a b', '[1, 0]'), ('b', '[0, 1]'), ('c', '[-1, 0]')")
    con.execute("UPDATE memory SET session = 'near' WHERE embedding MATCH '[1, 0]' AND k = 2")
    con.execute("UPDATE memory SET channel = 'words' WHERE content MATCH 'b'")
    con.execute(
        "UPDATE memory SET tags = s.x FROM (SELECT 'tag' AS x) s WHERE embedding MATCH '[1, 0]' AND distance < 0.5"
    )
    con.execute("DELETE FROM memory WHERE id IN (SELECT id FROM memory('c'))")
    assert con.execute("SELECT session, channel, tags FROM memory ORDER BY id").fetchall() == [
        ("near", "words", "tag"),
        ("near", "words", None),
    ]


def test_delete(con):
    con.executemany("INSERT INTO memory(content, i) VALUES (?, ?)", [(f"word{n}", n % 7) for n in range(100)])
    con.execute("DELETE FROM memory WHERE i = 3")
    con.execute("DELETE FROM memory WHERE id = 1")
    con.execute("DELETE FROM memory WHERE id = 1000")
    assert one(con, "SELECT changes()") == (0,)
    assert one(con, "SELECT count(*) FROM memory") == (100 - 14 - 1,)
    con.execute("DELETE FROM memory")
    assert one(con, "SELECT changes(), (SELECT count(*) FROM memory)") == (85, 0)


# ---- the rest of SQL


def test_triggers_and_views(con):
    con.execute("CREATE TABLE log(x)")
    con.execute("CREATE TRIGGER t AFTER INSERT ON log BEGIN INSERT INTO memory(content) VALUES (new.x); END")
    con.execute("CREATE VIEW v AS SELECT id, content FROM memory")
    con.execute(
        "CREATE TRIGGER w INSTEAD OF INSERT ON v BEGIN INSERT INTO memory(content) VALUES ('by view: ' ||"
        " new.content); END"
    )
    con.execute("INSERT INTO log VALUES ('one'), ('two')")
    con.execute("INSERT INTO v(content) VALUES ('three')")
    assert con.execute("SELECT content FROM v").fetchall() == [("one",), ("two",), ("by view: three",)]
    con.execute("BEGIN")
    con.execute("INSERT INTO log VALUES ('four')")
    con.execute("ROLLBACK")
    assert one(con, "SELECT (SELECT count(*) FROM log), (SELECT count(*) FROM v)") == (2, 3)


def test_returning_and_upsert_say_what_they_cannot(con):
    assert con.execute("INSERT INTO memory(id, content) VALUES (4, 'a') RETURNING content").fetchall() == [("a",)]
    for sql in (
        "UPDATE memory SET content = 'b' RETURNING id",
        "INSERT INTO memory(id) VALUES (4) ON CONFLICT DO NOTHING",
    ):
        with pytest.raises(sqlite3.OperationalError, match="virtual table"):
            con.execute(sql)


def test_commands(con):
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.execute("INSERT INTO memory(memory) VALUES ('flush')")
    con.execute("INSERT INTO memory(memory) VALUES ('FLUSH')")
    assert versions(con) == 0
    with pytest.raises(sqlite3.OperationalError, match="a command stands alone, without values for other columns"):
        con.execute("INSERT INTO memory(memory, content) VALUES ('flush', 'x')")
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(memory) VALUES ('flush')")
    con.execute("INSERT INTO memory(content) VALUES ('b')")
    with pytest.raises(sqlite3.OperationalError, match="h5mem: memory: m.h5: .*uncommitted"):
        con.execute("INSERT INTO memory(memory) VALUES ('flush')")
    con.execute("COMMIT")
    assert one(con, "SELECT count(*) FROM memory") == (2,)


def test_many_savepoints(con):
    con.execute("BEGIN")
    for n in range(300):
        con.execute(f"SAVEPOINT s{n}")
        con.execute("INSERT INTO memory(id, content) VALUES (?, 'x')", (n,))
    for n in range(299, -1, -3):
        con.execute(f"ROLLBACK TO s{n}")
        assert one(con, "SELECT max(id) FROM memory")[0] == (n - 1 if n else None)
    con.execute("COMMIT")
    assert one(con, "SELECT count(*) FROM memory") == (2,)
