"""test_plan.py - what the planner hands down, in which order rows come, and what is an error

EXPLAIN QUERY PLAN in words; MATCH in joins, in OR, past the sixteenth constraint; ORDER BY that costs no
sorting; comparisons across types; times against text.

SPDX-License-Identifier: MIT
"""

import json
import sqlite3
import threading
import time

import pytest

N = 60


@pytest.fixture(scope="module")
def con(so, tmp_path_factory):
    from conftest import open_connection

    con = open_connection(tmp_path_factory.mktemp("plan") / "host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, metric=l2, context=0, n INTEGER, name TEXT,"
                " raw BLOB)")
    for i in range(1, N + 1):
        con.execute(
            "INSERT INTO memory(id, content, embedding, timestamp, session, n, name, raw)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                i,
                "even word" if i % 2 == 0 else "odd" + " word" * (i % 3),
                json.dumps([i, 0]),
                i * 10,
                f"s-{i % 3}",
                i if i % 5 else None,
                str(i),
                bytes([i]),
            ),
        )
    con.execute("CREATE TABLE asked(q, words, k)")
    con.execute("INSERT INTO asked VALUES ('[1, 0]', 'even', 2), ('[60, 0]', 'odd', 3)")
    yield con
    con.close()


def plan(con, sql, *values):
    """The plan's lines, without the codes of xFilter's arguments."""
    lines = [row[3] for row in con.execute("EXPLAIN QUERY PLAN " + sql, values)]
    return [
        line.split(" INDEX ", 1)[1].split("~")[0].split(":", 1)[1] if " INDEX " in line else line for line in lines
    ]


def ids(con, sql, *values):
    return [row[0] for row in con.execute(sql, values)]


Q = "embedding MATCH '[10, 0]'"
T = "content MATCH 'even'"
SORT = "USE TEMP B-TREE FOR ORDER BY"


@pytest.mark.parametrize(
    "where, words",
    [
        ("1", "scan"),
        ("id = 5", "id"),
        ("rowid = 5 AND session = 's-1'", "id"),
        ("id IN (5, 6)", "scan filter:id"),
        ("timestamp BETWEEN 20 AND 30 AND session = 's-1'", "scan filter:session,time,time"),
        ("n IS NULL AND name IS NOT NULL", "scan filter:n,name"),
        (Q, "knn:flat order:distance"),
        (f"{Q} AND k = 3 AND n > 2", "knn:flat filter:n order:distance k"),
        (T, "text:bm25 order:score"),
        (f"{Q} AND {T}", "knn:flat text:bm25 order:score"),
        (f"{Q} AND timestamp > 5 AND session = 's-1' AND {T}", "knn:flat filter:time,session text:bm25 order:score"),
        (f"{Q} AND distance < 5", "knn:flat filter:distance order:distance"),
        ("name = '5' COLLATE NOCASE", "scan"),
        ("name LIKE 'a%'", "scan filter:name"),
        ("name LIKE 'a%' ESCAPE '!'", "scan"),
        ("n LIKE '1%'", "scan"),
        ("h5mem_has_tag(tags, 'a')", "scan filter:tags"),
        ("session GLOB 's-1*'", "scan filter:session,session,session"),
        ("name GLOB '5*'", "scan filter:name"),  # SQLite makes no range of it: the prefix reads as a number
        ("n IS NOT 5", "scan"),
        ("n <> 5 AND n IS 7", "scan filter:n,n"),
    ],
)
def test_words(con, where, words):
    assert plan(con, f"SELECT id FROM memory WHERE {where}") == [words]


@pytest.mark.parametrize(
    "where, order, sorted_inside, words",
    [
        ("1", "id", True, "scan order:id"),
        ("1", "rowid DESC", True, "scan order:id desc"),
        ("1", "id, content DESC", True, "scan order:id"),
        ("n > 3", "id DESC", True, "scan filter:n order:id desc"),
        ("1", "timestamp", True, "scan order:time"),
        (Q, "distance", True, "knn:flat order:distance"),
        (Q, "distance DESC", True, "knn:flat order:distance desc"),
        (Q, "distance, id", True, "knn:flat order:distance"),
        (Q, "distance DESC, id", True, "knn:flat order:distance desc"),
        (Q, "distance, id DESC", False, "knn:flat order:distance"),
        (Q, "score DESC", True, "knn:flat order:score"),
        (Q, "score", True, "knn:flat order:score desc"),
        (Q, "score DESC, id", False, "knn:flat order:distance"),
        (Q, "rank", False, "knn:flat order:distance"),
        (f"{Q} AND k = 5", "distance", True, "knn:flat order:distance k"),
        (f"{Q} AND k = 5", "distance DESC", False, "knn:flat order:distance k"),
        (T, "rank", True, "text:bm25 order:rank"),
        (T, "rank DESC", True, "text:bm25 order:rank desc"),
        (T, "score DESC, id", True, "text:bm25 order:score"),
        (T, "score", True, "text:bm25 order:score desc"),
        (T, "distance", False, "text:bm25 order:score"),
        (f"{Q} AND {T}", "score DESC", True, "knn:flat text:bm25 order:score"),
        (f"{Q} AND {T}", "score ASC, id", True, "knn:flat text:bm25 order:score desc"),
        (f"{Q} AND {T}", "distance", False, "knn:flat text:bm25 order:score"),
        (f"{Q} AND {T}", "rank", False, "knn:flat text:bm25 order:score"),
    ],
)
def test_order(con, where, order, sorted_inside, words):
    sql = f"SELECT id FROM memory WHERE {where} ORDER BY {order}"
    lines = plan(con, sql)
    assert lines == [words] + ([] if sorted_inside else [SORT])
    # the same rows, sorted by SQLite: the terms are hidden from the planner
    terms = [t.split() for t in order.split(", ")]
    key = ", ".join(f"+{t[0]} {t[1] if len(t) > 1 else ''}" for t in terms)
    got = con.execute(f"SELECT id, {', '.join(t[0] for t in terms)} FROM memory WHERE {where} ORDER BY {order}")
    want = con.execute(f"SELECT id, {', '.join(t[0] for t in terms)} FROM memory WHERE {where} ORDER BY {key}")
    assert [row[1:] for row in got] == [row[1:] for row in want]


def test_limit_is_only_a_hint(con):
    for where in (Q, T, f"{Q} AND {T}", "1"):
        for order in ("", "ORDER BY score DESC", "ORDER BY score", "ORDER BY id DESC", "ORDER BY n"):
            everything = ids(con, f"SELECT id FROM memory WHERE {where} {order}")
            for page in (
                "LIMIT 4",
                "LIMIT 4 OFFSET 3",
                "LIMIT 0",
                "LIMIT -1",
                "LIMIT -1 OFFSET 55",
                "LIMIT 5 OFFSET -3",
            ):
                limit, _, offset = page.removeprefix("LIMIT ").partition(" OFFSET ")
                start = max(0, int(offset or 0))
                want = everything[start:] if int(limit) < 0 else everything[start : start + int(limit)]
                assert ids(con, f"SELECT id FROM memory WHERE {where} {order} {page}") == want, (where, order, page)
        # a filter that SQLite evaluates still fills the page
        got = ids(con, f"SELECT id FROM memory WHERE {where} AND id % 7 = 0 AND NOT (name = '14') LIMIT 3")
        assert len(got) == 3 and all(i % 7 == 0 and i != 14 for i in got)


def test_k(con):
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 3") == [10, 9, 11]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 3 AND n > 10") == [11, 12, 13]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 3 AND session IN ('s-0', 's-1')") == [10, 9, 12]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 3 AND id % 2 = 0") == [10]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 3 ORDER BY distance DESC") == [11, 9, 10] or ids(
        con, f"SELECT id FROM memory WHERE {Q} AND k = 3 ORDER BY distance DESC"
    ) == [9, 11, 10]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 3 LIMIT 2 OFFSET 1") == [9, 11]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 0") == []
    assert len(ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 1000000000000")) == N
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 2.0") == [10, 9]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 2 AND k = 2") == [10, 9]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 2 AND k = 3") == []
    assert con.execute(f"SELECT k, id FROM memory WHERE {Q} AND k = 1").fetchall() == [(1, 10)]
    assert ids(con, "SELECT id FROM memory WHERE k = 2") == [1, 2]
    # a bound number on a text column is the text it makes, and handed down
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND k = 2 AND name = ?", 44) == [44]
    assert (
        ids(con, "SELECT id FROM memory WHERE name = ?", 44)
        == ids(con, "SELECT id FROM memory WHERE name = 44")
        == [44]
    )


@pytest.mark.parametrize(
    "where, message",
    [
        (f"{Q} AND k = -1", "k is -1; it cannot be negative"),
        (f"{Q} AND k = 1.5", "k is 1.5; it takes a whole number"),
        (f"{Q} AND k = 'x'", "k is 'x'; it takes a whole number"),
        (f"{Q} AND k = NULL", "k is NULL; it takes a whole number"),
        (f"{Q} AND k IN (1, 2)", "k takes one value, not a list"),
        (f"{Q} AND k < 5", "k takes one value, by k = value"),
        (f"{Q} AND k LIKE '5'", "k takes one value, by k = value"),
        (f"{Q} AND rrf_k = 'x'", "rrf_k is 'x'; it takes a number"),
        (f"{Q} AND vector_weight = -1", "vector_weight is -1; it cannot be negative"),
        (f"{Q} AND text_weight = 9e999", "text_weight is Inf; it takes a number"),
        (f"{Q} AND as_of = '2026-11-01'", "as_of is '2026-11-01'; it takes a number"),
        ("memory IN ('a', 'b')", "memory takes one value, not a list"),
        (f"memory = 'a' AND {T}", "two MATCH on the text part in one WHERE"),
        (f"{Q} AND embedding MATCH '[1, 1]'", "two MATCH on the vector part in one WHERE"),
        ("session MATCH 'x'", "MATCH works on embedding, content and memory, not on session"),
        ("k MATCH 5", "MATCH works on embedding, content and memory, not on k"),
        ("rowid MATCH 5", "MATCH works on embedding, content and memory, not on id"),
        ("content MATCH x'00'", "the text query is a blob of 1 bytes; it takes text"),
        ("NOT (content MATCH 'even')", "MATCH must be a term of its own"),
        (f"{T} OR length(content) > 3", "MATCH must be a term of its own"),
        (
            "timestamp > '2026-11-01'",
            "timestamp is compared with the text '2026-11-01'; use a number or unixepoch('2026-11-01')",
        ),
        ("timestamp > '100'", "timestamp is compared with the text '100'"),
        ("timestamp IN ('2026-11-01', 3)", "timestamp is compared with the text '2026-11-01'"),
        ("id = 5 AND timestamp = 'x'", "timestamp is compared with the text 'x'"),
        ("valid_to >= 'now'", "valid_to is compared with the text 'now'"),
        (f"{Q} AND timestamp BETWEEN 1 AND 'x'", "timestamp is compared with the text 'x'"),
    ],
)
def test_errors(con, where, message):
    with pytest.raises(sqlite3.OperationalError) as failure:
        ids(con, f"SELECT id FROM memory WHERE {where}")
    assert message in str(failure.value)
    assert str(failure.value).startswith("h5mem: ")


def test_settings_come_back(con):
    row = con.execute(
        f"SELECT vector_weight, text_weight, rrf_k, as_of, memory, score FROM memory WHERE {Q}"
        " AND memory MATCH 'even' AND vector_weight = 0.25 AND text_weight = 2 AND rrf_k = 7 AND as_of = 5"
        " LIMIT 1"
    ).fetchone()
    assert row[:5] == (0.25, 2, 7, 5, "even")
    assert row[5] == pytest.approx(0.25 / 8 + 2 / 8) or row[5] > 0
    assert (
        con.execute("SELECT k, as_of, memory, distance, rank, score FROM memory LIMIT 1").fetchone() == (None,) * 6
    )
    effective = "SELECT fusion, vector_weight, rrf_k, context, recency, min_score, dedup, mmr, expand FROM memory"
    assert con.execute(f"{effective} LIMIT 1").fetchone() == ("rrf", 1, 60, 0, 0, 0, 0, 0, 0)
    set_both = "SELECT h5mem_config('memory', 'context', ?), h5mem_config('memory', 'fusion', ?)"
    con.execute(set_both, ("0.25", "weighted")).fetchall()
    assert con.execute(f"{effective} WHERE {T} LIMIT 1").fetchone()[:4] == ("weighted", 1, 60, 0.25)
    assert con.execute(f"{effective} WHERE {Q} LIMIT 1").fetchone()[3] == 0  # the nearest are what was asked for
    assert con.execute(f"{effective} WHERE {Q} AND context = 0.5 LIMIT 1").fetchone()[3] == 0.5
    con.execute(set_both, ("0", "rrf")).fetchall()


def test_patterns_and_tags_come_before_k(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, who TEXT)")
    con.executemany("INSERT INTO memory(id, content, embedding, tags, session, who) VALUES (?, 'dark', ?, ?, ?, ?)",
                    [(i, f"[{i}, 1]", "red, deep" if i % 3 == 0 else "blue", f"S-{i % 4}é", f"u{i}")
                     for i in range(40)])
    for where, keep in (("h5mem_has_tag(tags, 'deep')", lambda i: i % 3 == 0),
                        ("session LIKE 's-1%'", lambda i: i % 4 == 1),
                        ("session GLOB '[R-T]-[23]é'", lambda i: i % 4 > 1),
                        ("session GLOB 's-*'", lambda i: False), ("who LIKE '%5' AND h5mem_has_tag(tags, 'red')",
                                                                  lambda i: i % 30 == 15)):
        want = [i for i in range(40) if keep(i)]
        for part in ("content MATCH 'dark'", "embedding MATCH '[0, 1]'", "id >= 0"):
            sql = f"SELECT id FROM memory WHERE {part} AND {where} AND k = 3 ORDER BY id"
            assert len(ids(con, sql)) == min(3, len(want)), sql
            assert set(ids(con, sql)) <= set(want)
        plan = con.execute(f"EXPLAIN QUERY PLAN SELECT id FROM memory WHERE {where}").fetchone()[3]
        assert "filter:" in plan
    assert ids(con, "SELECT id FROM memory WHERE id LIKE '1_' ORDER BY id") == list(range(10, 20))
    assert ids(con, "SELECT id FROM memory WHERE who LIKE 'u-_' ESCAPE '-'") == []


def test_a_pattern_means_what_the_host_means(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    con.execute("INSERT INTO memory(id, session) VALUES (1, 'Ada'), (2, 'ada'), (3, 'ÄDA'), (4, 'x')")
    like, glob = (f"SELECT id FROM memory WHERE session {op} ORDER BY id" for op in ("LIKE 'a%'", "GLOB 'a*'"))
    assert (ids(con, like), ids(con, glob)) == ([1, 2], [2])
    con.execute("PRAGMA case_sensitive_like = 1")
    assert ids(con, like) == [2]
    con.execute("PRAGMA case_sensitive_like = 0")
    assert ids(con, like) == [1, 2]
    con.create_function("like", 2, lambda pattern, text: text == "x")
    con.create_function("glob", 2, lambda pattern, text: text == "ÄDA")
    assert (ids(con, like), ids(con, glob)) == ([4], [3])


def test_every_setting_has_an_option_and_reads_what_is_in_force(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, nprobe=3)")
    con.executemany("INSERT INTO memory(id, content, embedding, valid_from, session) VALUES (?, ?, '[1, 0]', ?, 's')",
                    [(1, "dark mode", 100), (2, "dark AND light", 10), (3, "mode", 1)])
    names = ("exact", "nprobe", "syntax", "as_of", "graph_weight")
    read = f"SELECT {', '.join(names)} FROM memory"
    assert con.execute(f"{read}('dark')").fetchone() == (0, 3, "plain", None, 0)
    for name, value in zip(names, ("1", "5", "fts5", "50", "0.25")):
        con.execute("SELECT h5mem_config('memory', ?, ?)", (name, value)).fetchall()
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    con.close()
    con = connect("host.db")
    assert con.execute(f"{read}('dark')").fetchone() == (1, 5, "fts5", 50, 0.25)
    assert con.execute(f"{read} LIMIT 1").fetchone() == (1, 5, "fts5", None, 0.25)  # a scan sees every row
    assert ids(con, "SELECT id FROM memory('dark AND light')") == [2]
    assert ids(con, "SELECT id FROM memory('dark') ORDER BY id") == [2]
    assert ids(con, "SELECT id FROM memory('dark') WHERE as_of = 200 ORDER BY id") == [1, 2]
    assert ids(con, "SELECT id FROM memory('dark AND light') WHERE syntax = 'plain' AND as_of = 200 ORDER BY id") == [
        1, 2]
    plan = con.execute(f"EXPLAIN QUERY PLAN SELECT id FROM memory WHERE {Q}").fetchone()[3]
    assert "knn:flat" in plan
    assert con.execute("SELECT h5mem_config('memory', 'as_of', 'none')").fetchone() == ("none",)
    assert con.execute("SELECT as_of FROM memory('dark')").fetchone() == (None,)
    for name, value in (("syntax", "sql"), ("exact", "2"), ("nprobe", "-1"), ("as_of", "today"),
                        ("graph_weight", "1.5")):
        with pytest.raises(sqlite3.OperationalError, match=f"h5mem: memory: m.h5: {name} is '{value}'"):
            con.execute("SELECT h5mem_config('memory', ?, ?)", (name, value))


def test_a_graph_weight_moves_nothing_and_says_so(con):
    bare = "SELECT id, score FROM memory('odd') ORDER BY score DESC"
    assert con.execute(bare).fetchall() == con.execute(bare.replace("ORDER", "WHERE graph_weight = 1 ORDER")).fetchall()
    why = con.execute("SELECT h5mem_explain(memory) FROM memory('odd') WHERE graph_weight = 0.5 LIMIT 1").fetchone()[0]
    assert '"graph":1.0' in why
    assert "graph" not in con.execute("SELECT h5mem_explain(memory) FROM memory('odd') LIMIT 1").fetchone()[0]


def test_weights(con):
    def top(extra=""):
        return con.execute(
            f"SELECT id, score FROM memory WHERE {Q} AND content MATCH 'odd' {extra} LIMIT 1"
        ).fetchone()

    near, far = top("AND text_weight = 0"), top("AND vector_weight = 0")
    assert near == (10, pytest.approx(1 / 61)) and far[1] == pytest.approx(1 / 61)
    assert top("AND rrf_k = 0 AND text_weight = 0")[1] == pytest.approx(1.0)


def test_twenty_constraints(con):
    """omit counts for the first sixteen only: the rest are rechecked against what xColumn gives, MATCH by match()."""
    fill = " AND ".join(f"n > -{i}" for i in range(1, 18))
    want = ids(con, f"SELECT id FROM memory WHERE {Q} AND {T} AND n > 0 AND k = 4")
    assert len(want) == 4
    got = ids(
        con,
        f"SELECT id FROM memory WHERE {fill} AND n > 0 AND {Q} AND {T} AND k = 4 AND rrf_k = 60"
        " AND vector_weight = 1 AND text_weight = 1.0",
    )
    assert got == want
    assert ids(con, f"SELECT id FROM memory WHERE {fill} AND memory = 'even' AND k = 2") == ids(
        con, "SELECT id FROM memory('even') WHERE n > 0 AND k = 2"
    )
    assert ids(con, f"SELECT id FROM memory WHERE {fill} AND distance < 3 AND {Q}") == [9, 11, 8, 12]


def test_both_parts_with_a_null_vector_past_the_sixteenth(so, connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE m USING h5mem('x.h5', dim=2)")
    con.execute(
        "INSERT INTO m(content, embedding) VALUES ('only words', NULL), (NULL, '[1, 0]'), ('both words', '[0, 1]')"
    )
    fill = " AND ".join(f"id > -{i}" for i in range(1, 18))
    for where in ("1", fill):
        rows = con.execute(
            f"SELECT id, distance IS NULL, rank IS NULL FROM m WHERE {where} AND embedding MATCH '[1, 0]'"
            " AND content MATCH 'words' ORDER BY id"
        ).fetchall()
        assert rows == [(1, 1, 0), (2, 0, 1), (3, 0, 0)]


def test_or_is_a_union(con):
    got = ids(con, f"SELECT id FROM memory WHERE {Q} AND distance < 2 OR {T} AND id < 5")
    assert sorted(got) == [2, 4, 9, 10, 11]
    got = ids(con, f"SELECT id FROM memory WHERE ({Q} OR {T}) AND n IS NULL")
    assert sorted(got) == list(range(5, N + 1, 5))
    got = ids(con, f"SELECT count(*) FROM memory WHERE {T} OR content MATCH 'odd' OR memory = 'word'")
    assert got == [N]


def test_joins(con):
    # the query comes from another table
    got = con.execute(
        "SELECT a.rowid, m.id FROM asked a JOIN memory m ON m.embedding MATCH a.q AND m.k = a.k"
    ).fetchall()
    assert sorted(got) == [(1, 1), (1, 2), (2, 58), (2, 59), (2, 60)]
    got = con.execute("SELECT count(*) FROM asked a, memory m WHERE m.content MATCH a.words").fetchall()
    assert got == [(N,)]
    got = con.execute(
        "SELECT a.rowid, m.id FROM asked a LEFT JOIN memory m ON m.content MATCH a.words AND m.id < 2"
    ).fetchall()
    assert sorted(got, key=str) == sorted([(1, None), (2, 1)], key=str)
    got = con.execute(
        "SELECT a.rowid, (SELECT id FROM memory m WHERE m.embedding MATCH a.q LIMIT 1) FROM asked a"
    ).fetchall()
    assert got == [(1, 1), (2, 60)]
    # the search is the outer loop, each row of it looks the other up
    con.execute("CREATE TABLE IF NOT EXISTS doc(id INTEGER PRIMARY KEY, title)")
    con.execute("INSERT OR IGNORE INTO doc SELECT id, 'doc ' || id FROM memory")
    sql = f"SELECT d.title FROM memory m JOIN doc d ON d.id = m.id WHERE m.{Q} ORDER BY m.distance LIMIT 3"
    assert ids(con, sql) == ["doc 10", "doc 9", "doc 11"]
    lines = [row[3] for row in con.execute("EXPLAIN QUERY PLAN " + sql)]
    assert lines[0].startswith("SCAN m ") and lines[1].startswith("SEARCH d ") and len(lines) == 2
    # and a table of ids looks rows up one by one
    lines = plan(con, "SELECT m.content FROM asked a JOIN memory m ON m.id = a.k")
    assert lines[-1] == "id"
    assert ids(con, "SELECT m.id FROM memory m JOIN memory o ON o.id = m.id + 1 WHERE m.n < 3 ORDER BY 1") == [1, 2]


def test_views_and_subqueries(con):
    con.execute(
        "CREATE TEMP VIEW IF NOT EXISTS v AS SELECT id, content, embedding, distance, score, session FROM memory"
    )
    assert ids(con, f"SELECT id FROM v WHERE {Q} LIMIT 2") == [10, 9]
    assert ids(
        con,
        f"WITH near AS MATERIALIZED (SELECT id, distance FROM memory WHERE {Q} AND k = 3)"
        " SELECT id FROM near WHERE distance > 0 ORDER BY distance",
    ) == [9, 11]
    assert ids(con, f"SELECT count(*) FROM memory WHERE id IN (SELECT id FROM memory WHERE {T} AND k = 7)") == [7]
    assert con.execute(
        f"SELECT session, count(*), min(distance) FROM memory WHERE {Q} GROUP BY session ORDER BY 1"
    ).fetchall() == [("s-0", 20, 1.0), ("s-1", 20, 0.0), ("s-2", 20, 1.0)]
    assert ids(con, f"SELECT DISTINCT session FROM memory WHERE {Q} ORDER BY 1") == ["s-0", "s-1", "s-2"]
    assert con.execute(
        f"SELECT id, row_number() OVER (ORDER BY distance, id) FROM memory WHERE {Q} LIMIT 3"
    ).fetchall() == [(10, 1), (9, 2), (11, 3)]


@pytest.mark.parametrize(
    "value",
    [
        "5",
        5,
        5.0,
        " 5 ",
        "5.0",
        "0x5",
        "abc",
        "",
        5.5,
        b"5",
        None,
        2**63 - 1,
        -(2**63),
        1e300,
        "1e1",
        "9223372036854775808",
    ],
)
@pytest.mark.parametrize("column", ["id", "n", "name", "raw", "importance"])
def test_mixed_types_compare_as_in_a_plain_table(con, column, value):
    con.execute(
        "CREATE TEMP TABLE IF NOT EXISTS plain(id INTEGER PRIMARY KEY, n INTEGER, name TEXT, raw BLOB, importance REAL)"
    )
    con.execute("INSERT OR IGNORE INTO plain SELECT id, n, name, raw, importance FROM memory")
    con.execute("CREATE TEMP TABLE IF NOT EXISTS other(i INTEGER, t TEXT, b BLOB, r REAL)")
    con.execute("DELETE FROM other")
    con.execute("INSERT INTO other VALUES (?1, ?1, ?1, ?1)", (value,))
    for op in ("=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT", "IN"):
        right = "(?1, 7)" if op == "IN" else "?1"
        sql = f"SELECT id FROM {{}} WHERE {column} {op} {right} ORDER BY id"
        assert ids(con, sql.format("memory"), value) == ids(con, sql.format("plain"), value), (op, value)
        for other in "itbr":
            sql = (
                f"SELECT m.id FROM other o JOIN {{}} m ON m.{column} {op} "
                + (f"(SELECT {other} FROM other)" if op == "IN" else f"o.{other}")
                + " ORDER BY 1"
            )
            assert ids(con, sql.format("memory")) == ids(con, sql.format("plain")), (op, other)


def test_scores_are_filters_too(con):
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND distance <= 1") == [10, 9, 11]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND distance BETWEEN 1 AND 2") == [9, 11, 8, 12]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND score > 0.4") == [10, 9, 11]
    assert ids(con, f"SELECT id FROM memory WHERE {Q} AND distance IN (0, 2.0, NULL, 'x')") == [10, 8, 12]
    assert ids(con, f"SELECT count(*) FROM memory WHERE {T} AND rank IS NOT NULL AND distance IS NULL") == [N // 2]
    assert ids(con, "SELECT count(*) FROM memory WHERE distance IS NULL AND rank IS NULL AND score IS NULL") == [N]
    assert ids(con, "SELECT count(*) FROM memory WHERE score > 0") == [0]
    both = con.execute(
        f"SELECT id FROM memory WHERE {Q} AND {T} AND rank IS NOT NULL AND distance IS NOT NULL"
    ).fetchall()
    assert len(both) == N // 2


def test_text_that_is_no_query_gives_no_rows(con):
    for text in ("", "   ", "?!", None):
        assert ids(con, "SELECT id FROM memory WHERE content MATCH ?", text) == []
        assert ids(con, "SELECT id FROM memory(?)", text) == []
        assert ids(con, f"SELECT id FROM memory WHERE {Q} AND content MATCH ? LIMIT 2", text) == [10, 9]
    assert len(ids(con, "SELECT id FROM memory WHERE content MATCH ?", '"even AND (NOT* :^')) == N // 2


def test_interrupt(so, connect, in_tmp):
    """A search that takes long stops soon after sqlite3_interrupt()."""
    con = connect("big.db", check_same_thread=False)
    con.execute("CREATE VIRTUAL TABLE m USING h5mem('big.h5', dim=1024)")
    con.execute("BEGIN")
    vector = bytes(4 * 1024)
    con.executemany("INSERT INTO m(embedding) VALUES (?)", [(vector,)] * 2000)
    con.execute("COMMIT")
    con.execute("CREATE TABLE many(x)")
    con.execute(
        "WITH r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 5000) INSERT INTO many SELECT i FROM r"
    )
    started = threading.Event()

    def stop():
        started.wait()
        time.sleep(0.3)
        con.interrupt()

    other = threading.Thread(target=stop)
    other.start()
    begin = time.monotonic()
    started.set()
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        con.execute(
            "SELECT count(m.id) FROM many JOIN m ON m.embedding MATCH ? AND m.k = 1 + many.x % 2", (vector,)
        ).fetchall()
    other.join()
    assert time.monotonic() - begin < 5
    assert ids(con, "SELECT count(*) FROM m") == [2000]
