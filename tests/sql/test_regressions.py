"""test_regressions.py - small inputs that once gave a wrong answer

SPDX-License-Identifier: MIT
"""
import os
import sqlite3

import pytest

from conftest import open_connection


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    return con


def ids(con, sql, *values):
    return [r[0] for r in con.execute(sql, values)]


def both(con, sql, *values):
    """The same before and after a flush."""
    first = ids(con, sql, *values)
    con.execute("SELECT h5mem_flush('memory')")
    assert ids(con, sql, *values) == first
    return first


@pytest.mark.parametrize("query, want", [
    ('"日本語 alpha"', [1]), ('"日本 alpha"', [2]), ("+日本語、中国語", [3]), ('"ab日本語cd"', [4]), ('"alpha 日本"', []),
    ('"日本語"', [1, 3, 4]), ('"語 alpha"', [1]),
])
def test_a_phrase_goes_on_behind_characters_without_spaces(con, query, want):
    con.execute("INSERT INTO memory(content) VALUES ('日本語 alpha beta'), ('日本 alpha'), ('日本語、中国語'),"
                "('ab日本語cd alpha')")
    assert sorted(both(con, "SELECT id FROM memory WHERE content MATCH ?", query)) == want
    if query[0] == '"':
        sql = "SELECT id FROM memory WHERE content MATCH ? AND syntax = 'fts5'"
        assert sorted(ids(con, sql, query)) == want


@pytest.mark.parametrize("where", ["id IN (1, 2, 3, 4)", "id IN (SELECT id FROM memory)",
                                   "id IN (4, 2, 1, 3) AND session IS NULL"])
def test_ids_by_time(con, where):
    con.execute("INSERT INTO memory(id, timestamp) VALUES (1, 30), (2, 20), (3, 10), (4, 15)")
    assert both(con, f"SELECT id FROM memory WHERE {where} ORDER BY timestamp") == [3, 4, 2, 1]
    assert both(con, f"SELECT id FROM memory WHERE {where} ORDER BY timestamp DESC LIMIT 2") == [1, 2]


def test_context_brings_in_neighbours_and_nobody_else(con):
    con.execute("""INSERT INTO memory(id, content, embedding, timestamp, session) VALUES
                   (1, 'alpha', '[1, 0]', 10, 'a'), (2, 'beta', NULL, 20, 'a'),
                   (3, '', NULL, 30, NULL), (6, 'zeta', NULL, 60, 'b')""")
    sql = "SELECT id FROM memory WHERE embedding MATCH '[1, 0]' AND context = 0.5 ORDER BY score DESC"
    assert both(con, sql) == [1, 2]


def test_forked_processes_that_open_the_store_themselves(con):
    """Locks belong to open files, which a fork shares: the children must not use their parent's."""
    con.execute("INSERT INTO memory(content) VALUES ('parent')")
    children = []
    for who in range(3):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                mine = open_connection("host.db", timeout=60)
                for i in range(30):
                    mine.execute("INSERT INTO memory(content) VALUES (?)", (f"{who} {i}",))
                    if i % 10 == 9:
                        mine.execute("SELECT h5mem_flush('memory')")
                mine.close()
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert len(ids(con, "SELECT id FROM memory")) == 91
    assert con.execute("SELECT h5mem_verify('memory')").fetchone()[0] == "ok"


def test_an_inherited_connection_does_not_write(con):
    con.execute("INSERT INTO memory(content) VALUES ('parent')")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            con.execute("INSERT INTO memory(content) VALUES ('child')")
        except sqlite3.Error as e:
            os.write(write, str(e).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    assert b"h5mem: memory: m.h5: it was opened before this process was forked" in os.read(read, 500)
    con.execute("INSERT INTO memory(content) VALUES ('parent again')")
    assert len(ids(con, "SELECT id FROM memory")) == 2


def test_groups_of_ids_by_time(con):
    con.execute("INSERT INTO memory(id, timestamp) VALUES (1, 30), (2, 10), (3, 30), (4, 10)")
    sql = "SELECT timestamp, count(*) FROM memory WHERE id IN (1, 2, 3, 4) GROUP BY timestamp"
    assert con.execute(sql).fetchall() == [(10.0, 2), (30.0, 2)]


@pytest.mark.parametrize("index", ["ivf", "ivfpq", "rairs"])
def test_a_new_topic_after_the_lists_were_made(con, index):
    """Rows of a kind that no list stands for are found as soon as they are flushed."""
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(60, 16)) * 2
    rows = (centres[rng.integers(0, 60, 4000)] + 0.5 * rng.normal(size=(4000, 16))).astype("f4")
    topic = (3 + 0.5 * rng.normal(size=(400, 16))).astype("f4")
    con.execute(f"CREATE VIRTUAL TABLE lists USING h5mem('l.h5', dim=16, metric=l2, index={index})")
    for some in (rows, topic):
        con.execute("BEGIN")
        con.executemany("INSERT INTO lists(embedding) VALUES (?)", ((v.tobytes(),) for v in some))
        con.execute("COMMIT")
        con.execute("SELECT h5mem_optimize('lists')" if some is rows else "SELECT h5mem_flush('lists')")
    hits = 0
    for _ in range(20):
        query = (3 + 0.5 * rng.normal(size=16)).astype("f4")
        sql = "SELECT id FROM lists WHERE embedding MATCH ? AND nprobe = 3 ORDER BY distance LIMIT 10"
        exact = ids(con, sql.replace("nprobe = 3", "exact = 1"), query.tobytes())
        assert min(exact) > 4000
        hits += len(set(exact) & set(ids(con, sql, query.tobytes())))
    assert hits >= 198
