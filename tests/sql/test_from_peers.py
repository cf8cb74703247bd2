"""h5mem_import from tables of sqlite-vec and FTS5 on the same connection.

SPDX-License-Identifier: MIT
"""
import json
import struct
import subprocess

import pytest

from harness.doors import fails, one


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=4, user_id INTEGER, genre TEXT)")
    return con


@pytest.fixture(scope="module")
def vec0(root):
    """The path of the real sqlite-vec."""
    done = subprocess.run(["sh", str(root / "bench/peers/fetch.sh"), str(root / ".build/peers"), "vec0"], text=True,
                          capture_output=True, timeout=100)
    if done.returncode:
        pytest.skip(f"no sqlite-vec: {done.stderr.strip()}")
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture
def vec(con, vec0):
    con.enable_load_extension(True)
    con.load_extension(vec0)
    con.enable_load_extension(False)
    return con


def take(con, source):
    return one(con, f"SELECT h5mem_import('memory', NULL, {source!r})")[0]


def refused(con, source, *words):
    text = fails(con, "SELECT h5mem_import('memory', NULL, ?)", source)
    assert text.startswith("h5mem: memory: ") and all(w in text for w in words), text


# ---- sqlite-vec

def test_vec0_with_all_kinds_of_columns(vec):
    con = vec
    con.execute("CREATE VIRTUAL TABLE docs USING vec0(user_id integer partition key, embedding float[4] "
                "distance_metric=cosine, genre text, timestamp float, +content text, chunk_size=8)")
    rows = [(i, i % 3, struct.pack("4f", i, 1, 0, -i / 3), f"g{i % 2}", 1e9 + i, f"text {i}") for i in range(1, 40)]
    con.executemany("INSERT INTO docs(rowid, user_id, embedding, genre, timestamp, content) VALUES (?, ?, ?, ?, ?, ?)",
                    rows)
    assert take(con, "sqlite-vec:docs") == 39
    got = con.execute("SELECT id, user_id, embedding, genre, timestamp, content FROM memory ORDER BY id").fetchall()
    assert got == rows
    q = json.dumps([3, 1, 0, -1])
    want = con.execute("SELECT rowid FROM docs WHERE embedding MATCH ? AND k = 5 ORDER BY distance", (q,)).fetchall()
    assert con.execute("SELECT id FROM memory WHERE embedding MATCH ? AND k = 5", (q,)).fetchall() == want
    assert one(con, "SELECT id FROM memory('text 7') LIMIT 1") == (7,)


def test_vec0_plain_primary_key_int8_and_names(vec):
    con = vec
    con.execute("ATTACH 'aux.db' AS aux")
    con.execute("CREATE VIRTUAL TABLE aux.\"odd.name\" USING vec0( item_id INTEGER PRIMARY KEY , "
                "embedding int8[4])")
    con.execute("INSERT INTO aux.\"odd.name\"(item_id, embedding) VALUES (7, vec_int8('[1,-2,127,-128]')),"
                " (9, vec_int8('[0,0,0,1]'))")
    con.execute("INSERT INTO memory(id, content) VALUES (9, 'mine')")
    for name in ("odd.name", "aux.odd.name", "AUX.ODD.NAME"):
        con.execute("BEGIN")
        assert take(con, f"sqlite-vec:{name}") == 2
        assert con.execute("SELECT id, content, h5mem_vector_json(embedding) FROM memory ORDER BY id").fetchall() == [
            (7, None, "[1,-2,127,-128]"), (9, "mine", None), (10, None, "[0,0,0,1]")]
        con.execute("ROLLBACK")


def test_vec0_of_several_vectors(vec):
    con = vec
    con.execute("CREATE VIRTUAL TABLE a USING vec0(other float[3], embedding f32[4], b bit[8])")
    con.execute("INSERT INTO a(other, embedding, b) VALUES ('[1,2,3]', '[1,2,3,4]', vec_bit(x'01'))")
    assert take(con, "sqlite-vec:a") == 1
    assert one(con, "SELECT h5mem_vector_json(embedding) FROM memory") == ("[1,2,3,4]",)


def test_vec0_with_a_key_of_text(vec):
    con = vec
    con.execute("CREATE VIRTUAL TABLE k USING vec0(genre text primary key, embedding float[4])")
    con.execute("INSERT INTO k(genre, embedding) VALUES ('x', '[1,2,3,4]'), ('y', '[0,0,0,1]')")
    assert take(con, "sqlite-vec:k") == 2
    assert sorted(con.execute("SELECT id, genre FROM memory")) == [(1, "x"), (2, "y")]


def test_vec0_refusals(vec):
    con = vec
    con.execute("CREATE VIRTUAL TABLE short USING vec0(v float[3])")
    con.execute("CREATE VIRTUAL TABLE bits USING vec0(v bit[8])")
    con.execute("CREATE VIRTUAL TABLE two USING vec0(v float[4], w float[4])")
    con.execute("CREATE VIRTUAL TABLE more USING vec0(v float[4], +note text)")
    con.execute("INSERT INTO more(rowid, v, note) VALUES (5, '[1,2,3,4]', 'x')")
    con.execute("CREATE TABLE plain(v)")
    con.execute("CREATE VIRTUAL TABLE words USING fts5(content)")
    refused(con, "sqlite-vec:short", "short: ", '"v" has 3 dimensions, dim is 4')
    refused(con, "sqlite-vec:bits", '"v" holds bits')
    refused(con, "sqlite-vec:two", 'several vectors, "v" and "w"')
    refused(con, "sqlite-vec:more", "rowid 5", 'column "note" with values')
    refused(con, "sqlite-vec:plain", "no table of vec0")
    refused(con, "sqlite-vec:words", "no table of vec0")
    refused(con, "sqlite-vec:nosuch", "nosuch: no such table of vec0")
    refused(con, "sqlite-vec:", "known are")
    assert one(con, "SELECT count(*) FROM memory") == (0,)
    con.execute("UPDATE more SET note = NULL")
    assert take(con, "sqlite-vec:more") == 1


def test_vec0_without_its_module(vec, connect):
    vec.execute("CREATE VIRTUAL TABLE docs USING vec0(embedding float[4])")
    vec.close()
    con = connect("host.db")
    refused(con, "sqlite-vec:docs", "no such module: vec0")


# ---- FTS5

def test_fts5_columns_by_name(con):
    con.execute("CREATE VIRTUAL TABLE notes USING fts5(content, tags, session UNINDEXED, timestamp UNINDEXED)")
    con.execute("INSERT INTO notes(rowid, content, tags, session, timestamp) VALUES (3, 'dark mode', 'a,b', 's', 12),"
                " (-8, 'n\u00e4chste', NULL, NULL, 13), (5, NULL, NULL, NULL, '2026-11-01')")
    assert take(con, "fts5:notes") == 3
    assert con.execute("SELECT id, content, tags, session, timestamp FROM memory ORDER BY id").fetchall() == [
        (-8, "n\u00e4chste", None, None, 13), (3, "dark mode", "a,b", "s", 12), (5, None, None, None, 1793491200)]
    assert con.execute("SELECT id FROM memory('dark')").fetchall() == [(3,)]
    assert take(con, "fts5:notes") == 3 and one(con, "SELECT count(DISTINCT id) FROM memory") == (6,)


def test_fts5_other_columns_are_joined(con):
    con.execute("CREATE VIRTUAL TABLE mail USING fts5(title, id UNINDEXED, body, content, tokenize = \"porter ascii\", "
                "prefix='2 3')")
    con.execute("INSERT INTO mail VALUES ('Hello', 12, 'the body', 'and this'), ('', NULL, 'only', NULL), "
                "(NULL, NULL, NULL, NULL)")
    assert take(con, "fts5:main.mail") == 3
    assert con.execute("SELECT id, content FROM memory").fetchall() == [
        (1, "Hello\n\n12\n\nthe body\n\nand this"), (2, "only"), (3, None)]


def test_fts5_external_and_contentless(con):
    con.execute("CREATE TABLE src(k INTEGER PRIMARY KEY, content)")
    con.execute("INSERT INTO src VALUES (4, 'outside')")
    con.execute("CREATE VIRTUAL TABLE x USING fts5(content, content='src', content_rowid='k')")
    con.execute("CREATE VIRTUAL TABLE empty USING fts5(content, content = '')")
    assert take(con, "fts5:x") == 1 and con.execute("SELECT id, content FROM memory").fetchall() == [(4, "outside")]
    refused(con, "fts5:empty", "contentless")
    con.execute("DROP TABLE src")
    refused(con, "fts5:x", "x: ")


def test_fts5_refusals(con):
    con.execute("CREATE VIRTUAL TABLE f USING fts5(content, timestamp UNINDEXED)")
    con.execute("INSERT INTO f(rowid, content, timestamp) VALUES (1, 'fine', 1), (2, 'bad', 'yesterday')")
    refused(con, "fts5:f", "f: rowid 2: timestamp is 'yesterday'")
    assert one(con, "SELECT count(*) FROM memory") == (0,)
    con.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, row)")
    refused(con, "fts5:v", "no table of fts5")
    refused(con, "fts5:memory", "no table of fts5")
    text = fails(con, "SELECT h5mem_import('memory', 'a.db', 'fts5:f')")
    assert "the path is 'a.db'" in text
    assert "known are" in fails(con, "SELECT h5mem_export('memory', NULL, 'fts5:f')")
    con.execute("CREATE TABLE \"USING fts5(\"(x)")
    refused(con, "fts5:USING fts5(", "no table of fts5")


def test_it_is_the_callers_transaction(con):
    con.execute("CREATE VIRTUAL TABLE temp.notes USING fts5(content)")
    con.execute("INSERT INTO notes VALUES ('a'), ('b')")
    con.execute("BEGIN")
    assert take(con, "fts5:notes") == 2
    con.execute("ROLLBACK")
    assert one(con, "SELECT count(*) FROM memory") == (0,)
