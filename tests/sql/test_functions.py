"""test_functions.py - h5mem_config, _stats, _flush, _import, _vector, _vector_json, _distance, h5mem_info

SPDX-License-Identifier: MIT
"""

import json
import os
import random
import sqlite3
import struct

import pytest


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, n INTEGER)")
    return con


def one(con, sql, *values):
    return con.execute(sql, values).fetchone()


def fails(con, sql, *values):
    with pytest.raises(sqlite3.Error) as failure:
        con.execute(sql, values).fetchall()
    return str(failure.value)


# ---- naming the table


def test_tables_by_name(con, in_tmp):
    con.execute("ATTACH 'aux.db' AS aux")
    con.execute("CREATE VIRTUAL TABLE aux.memory USING h5mem('a.h5', dim=3)")
    con.execute("CREATE VIRTUAL TABLE aux.\"odd.name 'x'\" USING h5mem('o.h5', dim=4)")
    con.execute("CREATE TABLE plain(x)")

    def dim(name):
        return one(con, "SELECT h5mem_config(?, 'dim')", name)[0]

    assert (
        dim("memory"),
        dim("MEMORY"),
        dim("main.memory"),
        dim("aux.memory"),
        dim("odd.name 'x'"),
        dim("aux.odd.name 'x'"),
    ) == (2, 2, 2, 3, 4, 4)
    con.execute("CREATE VIRTUAL TABLE temp.memory USING h5mem('t.h5', dim=5)")
    assert (dim("memory"), dim("main.memory"), dim("temp.memory")) == (5, 2, 5)
    con.execute("CREATE TEMP TABLE hidden(x)")
    for name in ("nosuch", "plain", "main.plain", "nosuch.memory", "memory_state", "", "."):
        assert fails(con, "SELECT h5mem_flush(?)", name) == f"h5mem: no h5mem table named '{name}'"
    assert "the table is 5; it takes a table's name" in fails(con, "SELECT h5mem_stats(5)")
    assert "the table is NULL" in fails(con, "SELECT h5mem_config(NULL, 'dim')")


def test_side_effects_are_direct_only(con):
    con.execute("CREATE VIEW v AS SELECT h5mem_flush('memory')")
    con.execute("CREATE VIEW w AS SELECT h5mem_vector('[1]') AS x")
    assert "unsafe use of h5mem_flush" in fails(con, "SELECT * FROM v")
    assert con.execute("SELECT length(x) FROM w").fetchall() == [(4,)]
    con.execute("CREATE TABLE t(x, CHECK (h5mem_distance(x, '[1]') < 2))")


# ---- config


def test_config_joins_the_transaction(con, connect):
    default = one(con, "SELECT h5mem_config('memory', 'autoflush')")[0]
    con.execute("BEGIN")
    assert one(con, "SELECT h5mem_config('memory', 'autoflush', 100000)") == (100000,)
    con.execute("SAVEPOINT s")
    assert one(con, "SELECT h5mem_config('memory', 'agent', 'me')") == ("me",)
    con.execute("ROLLBACK TO s")
    assert one(con, "SELECT h5mem_config('memory', 'agent'), h5mem_config('memory', 'autoflush')") == ("", 100000)
    con.execute("ROLLBACK")
    assert one(con, "SELECT h5mem_config('memory', 'autoflush')") == (default,)
    con.execute("SELECT h5mem_config('memory', 'rrf_k', '10'), h5mem_config('memory', 'agent', 'ich')").fetchall()
    con.close()
    con = connect("host.db")
    assert one(con, "SELECT h5mem_config('memory', 'rrf_k'), h5mem_config('memory', 'agent')") == (10.0, "ich")
    con.execute("INSERT INTO memory(content, embedding) VALUES ('a', '[1, 0]')")
    assert one(con, "SELECT score FROM memory WHERE embedding MATCH '[1, 0]' AND content MATCH 'a'")[
        0
    ] == pytest.approx(2 / 11)
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    con.close()
    assert one(connect("host.db"), "SELECT h5mem_config('memory', 'rrf_k')") == (10.0,)


@pytest.mark.parametrize(
    "args, message",
    [
        ("'nosuch'", "nosuch"),
        ("'nosuch', 1", "nosuch"),
        ("NULL", "the option's name is NULL"),
        ("'dim', 3", "dim"),
        ("'metric', 'l2'", "metric"),
        ("'agent', NULL", "agent cannot be NULL"),
        ("'agent', x'00'", "agent cannot be a blob"),
        ("'rrf_k', 'many'", "many"),
        ("'synchronous', 'sometimes'", "sometimes"),
        ("'readonly', 'maybe'", "readonly is 'maybe'"),
        ("'threads', 0", "threads is '0'"),
        ("'archive', 'on'", "archive is 'on'; known are off"),
    ],
)
def test_config_refuses(con, args, message):
    text = fails(con, f"SELECT h5mem_config('memory', {args})")
    assert text.startswith("h5mem: memory: m.h5: ") and message in text


def test_every_option_reads_and_takes_what_it_has(con):
    text = fails(con, "SELECT h5mem_config('memory', 'nosuch')")
    names = text.split("known are ")[1].split(", ")
    assert {"dim", "archive", "readonly", "threads", "as_of", "working_capacity"} <= set(names)
    for name in names:
        value = one(con, "SELECT h5mem_config('memory', ?)", name)[0]
        assert one(con, "SELECT h5mem_config('memory', ?, ?)", name, value) == (value,), name


def test_readonly_is_the_connections(con, connect):
    con.execute("INSERT INTO memory(content) VALUES ('kept')")
    assert one(con, "SELECT h5mem_config('memory', 'readonly', 'on')") == ("on",)
    for sql in ("INSERT INTO memory(content) VALUES ('no')", "DELETE FROM memory", "SELECT h5mem_touch('memory', 1)"):
        assert "readonly" in fails(con, sql)
    assert one(con, "SELECT count(*) FROM memory") == (1,)
    connect("host.db").execute("INSERT INTO memory(content) VALUES ('another')")
    assert one(con, "SELECT h5mem_config('memory', 'readonly', 0)") == ("off",)
    con.execute("INSERT INTO memory(content) VALUES ('a third')")
    con.execute("BEGIN")
    assert "within a transaction" in fails(con, "SELECT h5mem_config('memory', 'readonly', 'on')")
    con.execute("COMMIT")
    assert one(connect("host.db"), "SELECT count(*), h5mem_config('memory', 'readonly') FROM memory") == (3, "off")


# ---- stats, flush, info


def test_stats_and_flush(con):
    def stats():
        return json.loads(one(con, "SELECT h5mem_stats('memory')")[0])

    empty = stats()
    assert empty["rows"] == 0 and empty["in_doubt"] is False and empty["flush_error"] is None
    con.execute(
        "INSERT INTO memory(content, embedding, tier) VALUES ('a', '[1, 0]', 'semantic'), ('b', NULL, NULL),"
        " (NULL, '[0, 1]', NULL)"
    )
    now = stats()
    assert (now["rows"], now["vectors"], now["log_rows"], now["tiers"]) == (
        3,
        2,
        3,
        {"working": 2, "episodic": 0, "semantic": 1},
    )
    assert one(con, "SELECT h5mem_flush('memory')") == (3,)
    assert one(con, "SELECT h5mem_flush('memory')") == (0,)
    now = stats()
    assert (now["rows"], now["base_rows"], now["log_rows"]) == (3, 3, 0)
    assert now["file_bytes"] == os.path.getsize("m.h5") and now["generation"] == empty["generation"] + 1
    con.execute("BEGIN")
    con.execute("DELETE FROM memory WHERE id = 1")
    assert "h5mem: memory: m.h5: " in fails(con, "SELECT h5mem_flush('memory')")
    con.execute("COMMIT")
    assert stats()["rows"] == 2


def test_info(con):
    info = dict(con.execute("SELECT name, value FROM h5mem_info"))
    assert info["version"] == one(con, "SELECT h5mem_version()")[0] and info["sqlite"] == sqlite3.sqlite_version
    assert info["simd"] in ("scalar", "avx2", "avx512", "neon") and info["fts5"] == "on"
    assert {"zlib", "zstd", "vector", "text", "time", "user_columns_max"} <= set(info)
    assert "may not be modified" in fails(con, "DELETE FROM h5mem_info")


# ---- vectors


def test_vectors(con):
    assert one(con, "SELECT h5mem_vector('[1, -2.5e-1, 3]')") == (struct.pack("<3f", 1, -0.25, 3),)
    assert one(
        con, "SELECT h5mem_vector('[]'), h5mem_vector(NULL), h5mem_vector_json(x''), h5mem_vector_json(NULL)"
    ) == (b"", None, "[]", None)
    assert one(con, "SELECT h5mem_vector(x'0000803f')") == (b"\0\0\x80?",)
    assert one(con, "SELECT h5mem_vector_json(x'0000803f000020c1')") == ("[1,-10]",)
    rng = random.Random(1)
    for _ in range(200):
        blob = struct.pack(
            "<5I", *(rng.getrandbits(32) & 0xFF7FFFFF & ~(1 << rng.randrange(23, 31)) for _ in range(5))
        )
        text = one(con, "SELECT h5mem_vector_json(?)", blob)[0]
        assert one(con, "SELECT h5mem_vector(?)", text)[0] == blob
        assert struct.pack("<5f", *json.loads(text)) == blob, "any JSON reader gets the same floats"
    assert one(
        con,
        "SELECT h5mem_distance('[1, 0]', '[1, 1]'), h5mem_distance('[1, 0]', '[1, 1]', 'l2'),"
        " h5mem_distance('[1, 2]', '[3, 4]', 'ip')",
    ) == (pytest.approx(1 - 2**-0.5), pytest.approx(1), pytest.approx(-11))
    assert one(
        con,
        "SELECT h5mem_distance('[0, 0]', '[1, 1]'), h5mem_distance(NULL, '[1]'), h5mem_distance('[1]', '[1]', NULL)",
    ) == (1.0, None, None)
    con.execute("INSERT INTO memory(embedding) VALUES ('[3, 4]')")
    assert one(con, "SELECT h5mem_vector_json(embedding), h5mem_distance(embedding, '[3, 5]', 'l2') FROM memory") == (
        "[3,4]",
        1.0,
    )


@pytest.mark.parametrize(
    "sql, message",
    [
        ("h5mem_vector('x')", "h5mem_vector: 'x' is no JSON array of numbers"),
        ("h5mem_vector(5)", "h5mem_vector: 5 is no vector"),
        ("h5mem_vector(x'00')", "h5mem_vector: a blob of 1 bytes is no vector"),
        ("h5mem_vector('[1e99]')", "holds 1e99 at [0]"),
        ("h5mem_vector_json(x'0000c07f')", "h5mem_vector_json: NaN at [0]"),
        ("h5mem_vector_json(x'0000803f0000807f')", "h5mem_vector_json: infinite at [1]"),
        ("h5mem_distance('[1]', '[1, 2]')", "h5mem_distance: the vectors have 1 and 2 dimensions"),
        ("h5mem_distance('[1]', '[1]', 'l3')", "h5mem_distance: metric is 'l3'; known are cosine, l2, ip"),
        ("h5mem_distance(1, '[1]')", "h5mem_distance: 1 is no vector"),
    ],
)
def test_vectors_refused(con, sql, message):
    text = fails(con, f"SELECT {sql}")
    assert text.startswith("h5mem: ") and message in text


# ---- import

COLUMNS = (
    "id, content, embedding, timestamp, session, channel, tags, source, tier, importance, activation,"
    " access_count, last_access,"
    " valid_from, valid_to, superseded_by, pinned, n"
)


@pytest.fixture
def source(con):
    con.execute("CREATE VIRTUAL TABLE src USING h5mem('s.h5', dim=2, n INTEGER)")
    con.execute(
        f"INSERT INTO src({COLUMNS}) VALUES (1, 'first words', '[1, 0]', 10, 's', 'c', 'a,b', 'user', 'semantic',"
        f" 0.75, 2, 3, 11, 1, 2, 4, 1, 7)"
    )
    con.execute(
        "INSERT INTO src(id, content, embedding, timestamp, superseded_by) VALUES (4, 'second', NULL, 20, NULL),"
        " (5, NULL, '[0, 1]', 30, 1),"
        " (9, 'last', '[1, 1]', 40, 77)"
    )
    con.execute("SELECT h5mem_flush('src')").fetchall()
    con.execute("INSERT INTO src(id, content, timestamp, superseded_by) VALUES (10, 'in the log', 50, 9)")
    return con


def test_import_into_an_empty_store(source, connect):
    con = source
    before = con.execute(f"SELECT {COLUMNS} FROM src ORDER BY id").fetchall()
    assert one(con, "SELECT h5mem_import('memory', 's.h5', 'h5mem')") == (5,)
    got = con.execute(f"SELECT {COLUMNS} FROM memory ORDER BY id").fetchall()
    dangling = [row[:15] + (None,) + row[16:] if row[0] == 9 else row for row in before]
    assert got == dangling
    assert con.execute("SELECT id FROM memory('words') WHERE as_of = 1.5").fetchall() == [(1,)]
    assert con.execute("SELECT id FROM memory WHERE embedding MATCH '[0, 1]' AND k = 1").fetchall() == [(5,)]
    assert con.execute(f"SELECT {COLUMNS} FROM src ORDER BY id").fetchall() == before
    con.close()
    assert one(connect("host.db"), "SELECT count(*) FROM memory") == (5,)


def test_import_where_ids_are_taken(source):
    con = source
    con.execute("INSERT INTO memory(id, content) VALUES (4, 'mine'), (9, 'mine too'), (2, 'and this')")
    assert one(con, "SELECT h5mem_import('memory', 's.h5', 'h5mem')") == (5,)
    rows = {content: (row, by) for row, content, by in con.execute("SELECT id, content, superseded_by FROM memory")}
    assert rows["mine"][0] == 4 and rows["mine too"][0] == 9
    assert rows["first words"][0] == 1 and rows[None][0] == 5 and rows["in the log"][0] == 10
    second, last = rows["second"][0], rows["last"][0]
    assert second > 10 and last > 10 and second != last
    assert rows["first words"][1] == second, "superseded_by follows the row that moved"
    assert rows[None][1] == 1 and rows["in the log"][1] == last and rows["last"][1] is None


def test_import_twice_and_rolled_back(source):
    con = source
    con.execute("BEGIN")
    assert one(con, "SELECT h5mem_import('memory', 's.h5', 'h5mem')") == (5,)
    con.execute("SAVEPOINT s")
    assert one(con, "SELECT h5mem_import('memory', 's.h5', 'h5mem')") == (0,), "they are there"
    con.execute("UPDATE memory SET timestamp = timestamp + 1 WHERE id > 1")
    con.execute("UPDATE memory SET importance = 0.9, content = content WHERE id = 1")
    assert one(con, "SELECT h5mem_import('memory', 's.h5', 'h5mem')") == (4,), "the others are rows of their own now"
    assert one(con, "SELECT count(*), count(DISTINCT id) FROM memory") == (9, 9)
    con.execute("ROLLBACK TO s")
    assert one(con, "SELECT count(*) FROM memory") == (5,)
    con.execute("ROLLBACK")
    assert one(con, "SELECT count(*) FROM memory") == (0,)


def test_import_is_all_or_nothing(source):
    con = source
    con.execute("CREATE VIRTUAL TABLE narrow USING h5mem('n.h5', dim=2)")
    con.execute("INSERT INTO narrow(content) VALUES ('stays')")
    text = fails(con, "SELECT h5mem_import('narrow', 's.h5', 'h5mem')")
    assert text.startswith("h5mem: narrow: n.h5: ") and '"n"' in text and "s.h5" in text
    assert con.execute("SELECT content FROM narrow").fetchall() == [("stays",)] and not con.in_transaction
    con.execute("BEGIN")
    con.execute("INSERT INTO narrow(content) VALUES ('mine')")
    fails(con, "SELECT h5mem_import('narrow', 's.h5', 'h5mem')")
    assert one(con, "SELECT count(*) FROM narrow") == (2,) and con.in_transaction
    con.execute("COMMIT")
    con.execute("UPDATE src SET n = NULL")
    assert one(con, "SELECT h5mem_import('narrow', 's.h5', 'h5mem')") == (5,)


def test_import_columns_by_name(source):
    con = source
    con.execute("CREATE VIRTUAL TABLE wide USING h5mem('w.h5', dim=2, a TEXT, N TEXT)")
    assert one(con, "SELECT h5mem_import('wide', 's.h5', 'h5mem')") == (5,)
    assert one(con, "SELECT a, n FROM wide WHERE id = 1") == (None, "7")


@pytest.mark.parametrize(
    "args, message",
    [
        ("'s.h5', 'nosuch'", "the format is 'nosuch'; known are 'h5mem', 'markdown'"),
        ("'s.h5', NULL", "the format is NULL"),
        ("NULL, 'h5mem'", "the path is NULL"),
        ("'', 'h5mem'", "the path is ''"),
        ("'nosuch.h5', 'h5mem'", "nosuch.h5"),
        ("'m.h5', 'h5mem'", "this is the table's own store"),
        ("'d.h5', 'h5mem'", "dim is 2, d.h5 has 3"),
        ("'host.db', 'h5mem'", "host.db"),
    ],
)
def test_import_refuses(source, args, message):
    source.execute("CREATE VIRTUAL TABLE d USING h5mem('d.h5', dim=3)")
    text = fails(source, f"SELECT h5mem_import('memory', {args})")
    assert text.startswith("h5mem: memory: ") and message in text
    assert not os.path.exists("nosuch.h5")


def test_import_inside_a_write_says_why_not(source):
    source.execute("CREATE TABLE t(x)")
    assert "SQL statements in progress" in fails(
        source, "INSERT INTO t SELECT h5mem_import('memory', 's.h5', 'h5mem')"
    )
    assert one(source, "SELECT count(*) FROM memory") == (0,)
