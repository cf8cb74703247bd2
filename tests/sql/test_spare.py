"""test_spare.py - when the state row is written, and when the host has nothing to commit

A commit is spared the row only where the host commits nothing else. Each case that must not be spared changes the
host within the statement in a way of its own; the row's txid then moves with the store.

SPDX-License-Identifier: MIT
"""
import sqlite3

import pytest

CREATE = "CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)"


def txid(con, table="memory"):
    return con.execute(f"SELECT hex(txid) FROM {table}_state").fetchone()[0]


@pytest.fixture(params=["wal", "delete"])
def con(connect, in_tmp, request):
    con = connect("host.db")
    con.execute(f"PRAGMA journal_mode = {request.param}")
    con.execute(CREATE)
    con.execute("CREATE TABLE plain(x)")
    con.execute("INSERT INTO memory(content) VALUES ('first')")
    con.execute("INSERT INTO memory(content) VALUES ('second')")  # versions are known from here on
    return con


def moved(con, run):
    before = txid(con)
    run()
    return txid(con) > before


@pytest.mark.parametrize("sql", [
    "INSERT INTO memory(content) VALUES ('x')",
    "INSERT OR REPLACE INTO main.memory(id, content) VALUES (1, 'x')",
    "  insert\tinto \"memory\"(content) SELECT 'x' FROM plain UNION ALL SELECT 'y'",
    "REPLACE INTO [memory](id, content) VALUES (1, 'x')",
    "UPDATE memory SET content = 'x'",
    "UPDATE OR IGNORE memory SET importance = 0.1 WHERE id = 1",
    "DELETE FROM `memory` WHERE id = 2",
])
def test_a_lone_statement_is_spared(con, sql):
    assert not moved(con, lambda: con.execute(sql))


@pytest.mark.parametrize("before, sql", [
    ([], "WITH w(x) AS (SELECT 'x') INSERT INTO memory(content) SELECT x FROM w"),
    (["CREATE TRIGGER t AFTER INSERT ON plain BEGIN INSERT INTO memory(content) VALUES (new.x); END"],
     "INSERT INTO plain VALUES ('x')"),
    (["CREATE VIEW v AS SELECT content FROM memory",
      "CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN INSERT INTO memory(content) VALUES (new.content); END"],
     "INSERT INTO v VALUES ('x')"),
    (["CREATE TABLE \"memory x\"(y)",
      "CREATE TRIGGER t AFTER INSERT ON \"memory x\" BEGIN INSERT INTO memory(content) VALUES (new.y); END"],
     "INSERT INTO \"memory x\" VALUES ('x')"),
])
def test_what_need_not_be_alone_writes_the_row(con, before, sql):
    for s in before:
        con.execute(s)
    con.execute("INSERT INTO memory(content) VALUES ('third')")
    assert moved(con, lambda: con.execute(sql))


def test_a_transaction_writes_the_row(con):
    def run():
        con.execute("BEGIN")
        con.execute("INSERT INTO memory(content) VALUES ('x')")
        con.execute("COMMIT")
    assert moved(con, run)


@pytest.mark.parametrize("nested", [
    "INSERT INTO plain VALUES (1)", "PRAGMA user_version = 7", "CREATE TABLE made(x)",
    "DELETE FROM plain", "INSERT INTO fts(fts, rowid, x) VALUES ('delete', 1, 'a')",
])
def test_a_function_that_writes_beside_it(con, nested):
    """A function of the statement changes the host: only page 1, only pages, only at the end (FTS5)."""
    con.execute("INSERT INTO plain VALUES (0)")
    con.execute("CREATE VIRTUAL TABLE fts USING fts5(x, content='', columnsize=0)")
    con.execute("INSERT INTO fts(rowid, x) VALUES (1, 'a')")
    con.execute("INSERT INTO memory(content) VALUES ('third')")
    con.create_function("run", 0, lambda: con.execute(nested).fetchall() or None)
    assert moved(con, lambda: con.execute("INSERT INTO memory(content) SELECT run() UNION ALL SELECT 'x'"))


def test_another_store_in_it(con):
    con.execute("CREATE VIRTUAL TABLE other USING h5mem('o.h5', dim=2)")
    con.execute("INSERT INTO memory(content) VALUES ('third')")
    con.create_function("run", 0, lambda: con.execute("INSERT INTO other(content) VALUES ('y')").fetchall() or None)
    assert moved(con, lambda: con.execute("INSERT INTO memory(content) SELECT 'x' UNION ALL SELECT run()"))
    assert con.execute("SELECT content FROM other").fetchall() == [("y",)]


def test_a_change_by_others_costs_one_row(con, connect):
    other = connect("host.db")
    other.execute("PRAGMA user_version = 3")
    assert moved(con, lambda: con.execute("INSERT INTO memory(content) VALUES ('x')"))
    assert not moved(con, lambda: con.execute("INSERT INTO memory(content) VALUES ('x')"))


def test_a_spared_row_is_everybodys(con, connect):
    con.execute("INSERT INTO memory(content) VALUES ('x')")
    other = connect("host.db")
    assert [r[0] for r in other.execute("SELECT content FROM memory")] == ["first", "second", "x"]
    other.execute("INSERT INTO memory(content) VALUES ('y')")
    with pytest.raises(sqlite3.DatabaseError, match="id 2 is taken"):
        con.execute("INSERT INTO memory(id, content) VALUES (2, 'z')")
    assert [r[0] for r in con.execute("SELECT content FROM memory")] == ["first", "second", "x", "y"]
    other.close()
    con.close()
    again = connect("host.db")
    assert [r[0] for r in again.execute("SELECT content FROM memory")] == ["first", "second", "x", "y"]


def test_statements_that_it_keeps_do_not_stand_in_the_way(con):
    con.execute("INSERT INTO memory(content) VALUES ('x')")
    con.execute("VACUUM")
    con.execute("INSERT INTO memory(content) VALUES ('y')")
    con.execute("DROP TABLE memory")
    con.close()


def test_a_commit_hook_that_vetoes(so, in_tmp, connect):
    """The frames are in the log when the hook says no, and must not count."""
    apsw = pytest.importorskip("apsw", reason="no apsw: Python's own sqlite3 has no commit hook")
    con = apsw.Connection("hook.db")

    def call(name, *args):  # older releases have the names without underscores
        return getattr(con, name if hasattr(con, name) else name.replace("_", ""))(*args)

    call("enable_load_extension", True)
    call("load_extension", str(so))
    con.execute(CREATE)
    for word in ("first", "second"):
        con.execute("INSERT INTO memory(content) VALUES (?)", (word,))
    call("set_commit_hook", lambda: True)
    with pytest.raises(apsw.ConstraintError):
        con.execute("INSERT INTO memory(content) VALUES ('x')")
    call("set_commit_hook", None)
    assert list(con.execute("SELECT content FROM memory")) == [("first",), ("second",)]
    assert [r[0] for r in connect("hook.db").execute("SELECT content FROM memory")] == ["first", "second"]
    con.execute("INSERT INTO memory(content) VALUES ('y')")
    assert [r[0] for r in connect("hook.db").execute("SELECT content FROM memory")] == ["first", "second", "y"]
