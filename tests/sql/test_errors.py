"""test_errors.py - bad input: a clear error that names table, file and value, and nothing changed

Each case is one statement that must fail, with words its message must hold. After every case the table
holds what it held, and the next statement works.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess

import pytest

TWO_ROWS = [(1, "one", "s-1"), (2, "two", "s-2")]
NAN, INF = struct.pack("<3f", 1, float("nan"), 0), struct.pack("<3f", float("inf"), 0, 0)


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=3, user_id TEXT, priority INTEGER)")
    con.execute("INSERT INTO memory(id, content, session, embedding) VALUES (1, 'one', 's-1', '[1, 0, 0]'),"
                " (2, 'two', 's-2', '[0, 1, 0]')")
    return con


def rows(con):
    return con.execute("SELECT id, content, session FROM memory ORDER BY id").fetchall()


def fails(con, sql, *values, words=()):
    """The message of a statement that must fail; it must hold every one of `words`."""
    with pytest.raises(sqlite3.Error) as caught:
        con.execute(sql, values).fetchall()
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{sql}: {message!r} lacks {missing}"
    return message


VECTORS = [
    pytest.param(struct.pack("<4f", 1, 2, 3, 4), ["16", "12"], id="too-long-blob"),
    pytest.param(struct.pack("<2f", 1, 2), ["8", "12"], id="too-short-blob"),
    pytest.param(b"\x00" * 11, ["11", "12"], id="no-whole-float"),
    pytest.param(b"", ["0", "12"], id="empty-blob"),
    pytest.param(NAN, ["NaN"], id="nan"),
    pytest.param(INF, ["inf"], id="infinity"),
    pytest.param("[1, 2]", ["2", "3"], id="two-numbers"),
    pytest.param("[1, 2, 3, 4]", ["4", "3"], id="four-numbers"),
    pytest.param("[]", ["3"], id="no-number"),
    pytest.param("1, 2, 3", ["JSON"], id="no-array"),
    pytest.param("hello", ["JSON"], id="word"),
    pytest.param("", ["JSON"], id="empty-text"),
    pytest.param("[1, 2, 3", ["JSON"], id="unclosed"),
    pytest.param("[1, 2, 3] x", ["JSON"], id="rest"),
    pytest.param("[1, 2, 3,]", ["JSON"], id="comma"),
    pytest.param('[1, "2", 3]', ["JSON"], id="string-inside"),
    pytest.param("[1, [2], 3]", ["JSON"], id="array-inside"),
    pytest.param("[1, null, 3]", ["JSON"], id="null-inside"),
    pytest.param("[NaN, 0, 0]", ["JSON"], id="nan-text"),
    pytest.param("[1e999, 0, 0]", [], id="overflow"),
    pytest.param("[1e39, 0, 0]", [], id="float-overflow"),
    pytest.param('{"a": 1}', ["JSON"], id="object"),
    pytest.param(7, [], id="integer"),
    pytest.param(1.5, [], id="real"),
]


@pytest.mark.parametrize("value,words", VECTORS)
def test_a_bad_vector_to_store(con, value, words):
    place = ["memory", "agent.h5"]
    fails(con, "INSERT INTO memory(id, embedding) VALUES (3, ?)", value, words=words + place)
    fails(con, "UPDATE memory SET embedding = ?, content = 'x' WHERE id = 1", value, words=words + place)
    fails(con, "INSERT OR REPLACE INTO memory(id, embedding) VALUES (1, ?)", value, words=words + place)
    assert rows(con) == TWO_ROWS
    con.execute("INSERT INTO memory(id, embedding) VALUES (3, '[1, 2, 3]')")


@pytest.mark.parametrize("value,words", VECTORS + [pytest.param(None, ["NULL"], id="null")])
def test_a_bad_vector_to_ask_for(con, value, words):
    fails(con, "SELECT id FROM memory WHERE embedding MATCH ?", value, words=words + ["memory", "agent.h5"])
    fails(con, "SELECT id FROM memory WHERE embedding MATCH ? AND content MATCH 'one'", value, words=words)
    assert con.execute("SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 1").fetchall() == [(1,)]


@pytest.mark.parametrize("value,words", [v for v in VECTORS if v.id not in (
    "too-long-blob", "too-short-blob", "two-numbers", "four-numbers", "no-number", "empty-blob")])
def test_a_bad_vector_to_convert(con, value, words):
    words = [word for word in words if word in ("JSON", "NaN", "inf")]
    if isinstance(value, bytes):
        fails(con, "SELECT h5mem_vector_json(?)", value, words=words)
    else:
        fails(con, "SELECT h5mem_vector(?)", value, words=words)


@pytest.mark.parametrize("column,value", [
    ("timestamp", "yesterday"), ("timestamp", "2026-13-01"), ("timestamp", "2026-02-30"),
    ("timestamp", "2026-11-01T25:00:00Z"), ("timestamp", ""), ("timestamp", b"\x01"),
    ("importance", "high"), ("priority", "high"), ("priority", 1.5),
    ("priority", b"\x01"), ("source", "nobody"), ("tier", "lost"),
])
def test_a_bad_value(con, column, value):
    fails(con, f"INSERT INTO memory(id, {column}) VALUES (3, ?)", value, words=[column, "memory", "agent.h5"])
    fails(con, f"UPDATE memory SET {column} = ?, content = 'x' WHERE id = 1", value, words=[column])
    assert rows(con) == TWO_ROWS


@pytest.mark.parametrize("column", ["distance", "rank", "score", "k", "rrf_k", "vector_weight"])
def test_a_hidden_column_is_not_written(con, column):
    fails(con, f"INSERT INTO memory(content, {column}) VALUES ('x', 1)", words=[column])
    fails(con, f"UPDATE memory SET {column} = 1", words=[column])
    assert rows(con) == TWO_ROWS


@pytest.mark.parametrize("sql,words", [
    ("INSERT INTO memory(id, content) VALUES (1, 'again')", []),
    ("UPDATE memory SET id = 2 WHERE id = 1", []),
    ("INSERT INTO memory(id, content) VALUES ('abc', 'x')", []),
    ("INSERT INTO memory(memory) VALUES ('nosuchcommand')", ["nosuchcommand", "flush"]),
    ("INSERT INTO memory(nosuchcolumn) VALUES (1)", ["nosuchcolumn"]),
    ("SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = -1", ["k", "-1"]),
    ("SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 'many'", ["k"]),
    ("SELECT id FROM memory WHERE timestamp > '2026-11-01'", ["timestamp", "unixepoch"]),
    ("SELECT id FROM memory WHERE timestamp BETWEEN '2026-11-01' AND '2026-12-01'", ["timestamp"]),
    ("SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND embedding MATCH '[0, 1, 0]'", ["two"]),
    ("SELECT id FROM memory WHERE content MATCH 'a' AND content MATCH 'b'", ["two"]),
    ("SELECT id FROM memory WHERE session MATCH 'a'", ["MATCH"]),
    ("SELECT id, content MATCH 'one' FROM memory", ["MATCH"]),
    ("SELECT id FROM memory WHERE NOT (content MATCH 'one')", ["MATCH"]),
    ("SELECT nosuchcolumn FROM memory", ["nosuchcolumn"]),
    ("SELECT h5mem_flush()", ["h5mem_flush"]),
    ("SELECT h5mem_flush('nosuchtable')", ["nosuchtable"]),
    ("SELECT h5mem_flush('nosuchschema.memory')", ["nosuchschema"]),
    ("SELECT h5mem_flush(NULL)", []),
    ("SELECT h5mem_stats('sqlite_schema')", ["sqlite_schema"]),
    ("SELECT h5mem_config('memory', 'nosuchoption')", ["nosuchoption", "autoflush"]),
    ("SELECT h5mem_config('memory', 'autoflush', 'many')", ["autoflush", "many"]),
    ("SELECT h5mem_config('memory', 'dim', 4)", ["dim"]),
    ("SELECT h5mem_config('memory', 'synchronous', 'sometimes')", ["synchronous", "sometimes"]),
    ("SELECT h5mem_import('memory', 'nosuchfile.h5', 'h5mem')", ["nosuchfile.h5"]),
    ("SELECT h5mem_import('memory', 'host.db', 'h5mem')", ["host.db"]),
    ("SELECT h5mem_import('memory', 'agent.h5', 'nosuchformat')", ["nosuchformat"]),
    ("SELECT h5mem_nosuchfunction('memory')", ["h5mem_nosuchfunction"]),
    ("SELECT h5mem_distance(x'00000000', x'0000000000000000')", []),
    ("SELECT h5mem_distance(x'00000000', x'00000000', 'nosuchmetric')", ["nosuchmetric"]),
])
def test_a_bad_statement(con, sql, words):
    fails(con, sql, words=words)
    assert rows(con) == TWO_ROWS
    con.execute("INSERT INTO memory(id, content) VALUES (3, 'three')")
    assert con.execute("SELECT h5mem_flush('memory')").fetchone()[0] == 3


def test_rows_of_a_failed_statement_are_gone_in_a_transaction(con):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(id, content, session) VALUES (3, 'three', 's-3')")
    fails(con, "INSERT INTO memory(id, content, embedding) VALUES (4, 'four', NULL), (5, 'five', '[1]')")
    fails(con, "INSERT INTO memory(id, content) VALUES (6, 'six'), (3, 'three again')")
    fails(con, "UPDATE memory SET id = 3 WHERE id < 3")
    fails(con, "SELECT h5mem_flush('memory')")
    con.execute("COMMIT")
    assert rows(con) == TWO_ROWS + [(3, "three", "s-3")]
    assert con.execute("SELECT id FROM memory WHERE content MATCH 'four six again'").fetchall() == []


@pytest.mark.parametrize("arguments,words", [
    ("", []),
    ("dim=3", []),
    ("'new.h5'", ["dim"]),
    ("'new.h5', dim=0", ["dim"]),
    ("'new.h5', dim=-3", ["dim"]),
    ("'new.h5', dim=three", ["dim", "three"]),
    ("'new.h5', dim=3, metric=manhattan", ["metric", "manhattan"]),
    ("'new.h5', dim=3, colour=blue", ["colour", "metric", "tokenize"]),
    ("'new.h5', dim=3, dim=3", ["dim"]),
    ("'new.h5', dim=3, compression=brotli", ["compression", "brotli"]),
    ("'new.h5', dim=3, tokenize='nosuchtokenizer'", ["nosuchtokenizer"]),
    ("'new.h5', dim=3, autoflush=often", ["autoflush", "often"]),
    ("'new.h5', dim=3, content TEXT", ["content"]),
    ("'new.h5', dim=3, distance REAL", ["distance"]),
    ("'new.h5', dim=3, memory2 TEXT", ["memory2"]),
    ("'new.h5', dim=3, a TEXT, a TEXT", ["a"]),
    ("'', dim=3", []),
    ("'nosuchfolder/new.h5', dim=3", ["nosuchfolder"]),
    ("'agent.h5', dim=4", ["dim", "3", "4"]),
    ("'agent.h5', metric=l2", ["metric", "cosine", "l2"]),
    ("'agent.h5', tokenize='unicode61'", ["tokenize", "unicode61"]),
    ("'agent.h5', user_id INTEGER", ["user_id"]),
    ("'agent.h5', somebody TEXT", ["somebody"]),
    ("'host.db', dim=3", ["host.db", "HDF5"]),
    ("'.', dim=3", []),
])
def test_a_bad_create(con, arguments, words):
    fails(con, f"CREATE VIRTUAL TABLE memory2 USING h5mem({arguments})", words=words)
    assert con.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'memory2%'").fetchall() == []
    assert not pathlib.Path("new.h5").exists() and not pathlib.Path("new.h5-wal").exists()
    assert rows(con) == TWO_ROWS
    con.execute("CREATE VIRTUAL TABLE memory2 USING h5mem('good.h5', dim=2)")
    assert con.execute("SELECT count(*) FROM memory2").fetchone() == (0,)


def test_files_that_are_no_store_stay_as_they_are(con):
    h5py = pytest.importorskip("h5py")
    with h5py.File("foreign.h5", "w") as file:
        file["data"] = [1, 2, 3]
    pathlib.Path("text.h5").write_text("no HDF5 at all, only words\n" * 100)
    pathlib.Path("empty.h5").write_bytes(b"")
    for name, words in (("foreign.h5", ["foreign.h5"]), ("text.h5", ["text.h5", "HDF5"]), ("empty.h5", ["empty.h5"])):
        before = pathlib.Path(name).read_bytes()
        fails(con, f"CREATE VIRTUAL TABLE other USING h5mem('{name}', dim=3)", words=words)
        fails(con, "SELECT h5mem_import('memory', ?, 'h5mem')", name, words=words)
        assert pathlib.Path(name).read_bytes() == before, name
        assert not pathlib.Path(name + "-wal").exists(), name


def test_a_store_that_went_away(con, connect):
    con.close()
    pathlib.Path("agent.h5").unlink()
    pathlib.Path("agent.h5-wal").unlink()
    con = connect("host.db")
    fails(con, "SELECT * FROM memory", words=["agent.h5"])
    fails(con, "INSERT INTO memory(content) VALUES ('x')", words=["agent.h5"])
    con.execute("DROP TABLE memory")
    assert not pathlib.Path("agent.h5").exists()


def test_a_store_of_other_bytes(con, connect):
    con.close()
    pathlib.Path("agent.h5").write_bytes(b"\x00" * 5000)
    con = connect("host.db")
    fails(con, "SELECT * FROM memory", words=["agent.h5"])
    con.execute("ALTER TABLE memory RENAME TO other")
    con.execute("DROP TABLE other")
    assert pathlib.Path("agent.h5").read_bytes() == b"\x00" * 5000


def test_readonly(con, connect):
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    con.execute("CREATE VIRTUAL TABLE reader USING h5mem('agent.h5', readonly=1)")
    for sql in ("INSERT INTO reader(content) VALUES ('x')", "UPDATE reader SET content = 'x'", "DELETE FROM reader"):
        fails(con, sql, words=["reader"])
    assert con.execute("SELECT count(*) FROM reader").fetchone() == (2,)
    con.execute("PRAGMA query_only = 1")
    fails(con, "INSERT INTO memory(content) VALUES ('x')")
    assert rows(con) == TWO_ROWS


def test_functions_with_effects_are_not_for_views_and_triggers(con):
    con.execute("CREATE VIEW v AS SELECT h5mem_flush('memory')")
    fails(con, "SELECT * FROM v", words=["h5mem_flush"])
    con.execute("CREATE TABLE t(x)")
    con.execute("CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT h5mem_config('memory', 'agent', 'x'); END")
    fails(con, "INSERT INTO t VALUES (1)", words=["h5mem_config"])


def test_a_full_disk(so, tmp_path):
    """A write that finds no space fails with an error; what was committed before is whole."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs the right to mount a small file system")
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs: {done.stderr.strip()}")
    try:
        con = sqlite3.connect(tmp_path / "host.db", isolation_level=None)
        con.enable_load_extension(True)
        con.load_extension(str(so))
        con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{disk}/full.h5', dim=3)")
        committed = 0
        with pytest.raises(sqlite3.Error) as caught:
            for number in range(100):
                con.execute("INSERT INTO memory(id, content) VALUES (?, ?)", (number + 1, "x" * 50000))
                committed += 1
        assert "full.h5" in str(caught.value)
        assert committed > 3
        assert con.execute("SELECT count(*), sum(length(content)) FROM memory").fetchone() == (
            committed, committed * 50000)
        con.close()
        con = sqlite3.connect(tmp_path / "host.db")
        con.enable_load_extension(True)
        con.load_extension(str(so))
        assert con.execute("SELECT count(*) FROM memory").fetchone() == (committed,)
        con.close()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
