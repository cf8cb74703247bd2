"""test_large_input.py - texts and queries of a size or of bytes that nobody writes by hand

A megabyte of text, a word of a megabyte, half a million distinct words in a row, bytes that are no
UTF-8, NULL: as rows and as queries, in the log and in the file. No query is an error. A word counts
by its first 1,024 bytes.

SPDX-License-Identifier: MIT
"""
import pytest

WORDS = 500_000
MANY = " ".join(f"w{i:x}" for i in range(WORDS))
MEGABYTE = " ".join(["dark", "mode", "editor", "theme", "roof"] * 42_000)
TOKEN = "x" * (1 << 20)
BROKEN = "CAST(x'6461726bff20c0afeda0806d6f6465' AS TEXT)"  # "dark", a byte, an overlong one, a surrogate, "mode"


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.text_factory = bytes
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    con.executemany("INSERT INTO memory(id, content) VALUES (?, ?)", [(1, MANY), (2, MEGABYTE), (3, TOKEN), (5, None)])
    con.execute(f"INSERT INTO memory(id, content) VALUES (4, {BROKEN})")
    return con


def found(con, query, what="id"):
    return [row[0] for row in con.execute(f"SELECT {what} FROM memory WHERE content MATCH ? ORDER BY id", (query,))]


def check(con):
    assert found(con, f"w{WORDS - 1:x}") == [1] and found(con, f"w{WORDS:x}") == []
    assert found(con, "w7a11*") == [1]
    assert found(con, "dark theme") == [2, 4]
    assert found(con, TOKEN) == [3] and found(con, "y" + TOKEN) == []
    assert found(con, MEGABYTE) == [2, 4]
    assert found(con, MANY) == [1]
    assert found(con, None) == [] and found(con, "\0") == []
    broken = f"SELECT id FROM memory WHERE content MATCH {BROKEN} ORDER BY id"
    assert [row[0] for row in con.execute(broken)] == [2, 4]
    assert found(con, '"' + "a " * 500_000) == []
    assert found(con, "(" * 1_000_000) == []
    assert found(con, "theme", "length(snippet(memory, 0, '[', ']', '...', 12))")[0] < 200
    assert found(con, TOKEN, "length(highlight(memory, 0, '[', ']'))") == [len(TOKEN) + 2]
    assert bytes.fromhex("6461726bff20c0afeda0806d6f6465") in found(con, "dark", "content")
    assert con.execute("SELECT count(*) FROM memory WHERE content IS NULL").fetchone() == (1,)


def test_rows_and_queries(con):
    check(con)
    con.execute("SELECT h5mem_flush('memory')").fetchone()
    check(con)
    assert con.execute("SELECT h5mem_verify('memory')").fetchone() == (b"ok",)
    con.execute("UPDATE memory SET content = 'dark' WHERE id = 1")
    con.execute("DELETE FROM memory WHERE id = 3")
    assert found(con, "w1") == [] and found(con, TOKEN) == [] and found(con, "dark") == [1, 2, 4]


def test_with_fts5s_language_and_a_vector(con):
    asked = "SELECT id FROM memory WHERE content MATCH ? AND syntax = 'fts5'"
    assert con.execute(asked, (f'"{TOKEN}"',)).fetchall() == [(3,)]
    con.execute("UPDATE memory SET embedding = '[1, 0]', session = 's'")
    both = "SELECT id FROM memory WHERE content MATCH ? AND embedding MATCH '[1, 0]' ORDER BY score DESC LIMIT 1"
    for query, best in ((MANY, 1), (TOKEN, 3)):
        assert con.execute(both, (query,)).fetchone() == (best,)
