"""test_drop.py - DROP TABLE in a transaction that has written rows: kept on COMMIT, gone on ROLLBACK

SPDX-License-Identifier: MIT
"""
import sqlite3

import pytest

CREATE = "CREATE VIRTUAL TABLE {} USING h5mem('m.h5', dim=2)"


@pytest.fixture(params=["wal", "delete"])
def con(connect, in_tmp, request):
    con = connect("host.db")
    con.execute(f"PRAGMA journal_mode = {request.param}")
    con.execute(CREATE.format("memory"))
    con.execute("INSERT INTO memory(content) VALUES ('old')")
    return con


def stored(connect):
    """What is in the store, through a table of another host."""
    other = connect(":memory:")
    other.execute(CREATE.format("look"))
    got = [r[0] for r in other.execute("SELECT content FROM look ORDER BY id")]
    assert other.execute("SELECT h5mem_verify('look')").fetchone()[0] == "ok"
    other.execute("INSERT INTO look(content) VALUES ('probe')")  # nothing holds the lock, nothing is in doubt
    other.execute("DELETE FROM look WHERE content = 'probe'")
    other.close()
    return got


def dropped(con):
    return con.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'memory%'").fetchone()[0] == 0


def test_committed(con, connect):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    con.execute("DROP TABLE memory")
    assert con.execute("SELECT name FROM h5mem_dropped").fetchall() == [("memory",)]
    con.execute("COMMIT")
    assert dropped(con) and stored(connect) == ["old", "new"]
    assert con.execute("SELECT name FROM h5mem_dropped").fetchall() == []


def test_rolled_back(con, connect):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    con.execute("DROP TABLE memory")
    con.execute("ROLLBACK")
    assert not dropped(con) and stored(connect) == ["old"]
    con.execute("INSERT INTO memory(content) VALUES ('later')")
    assert stored(connect) == ["old", "later"]


def test_the_drop_alone_rolled_back(con, connect):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    con.execute("SAVEPOINT a")
    con.execute("UPDATE memory SET content = 'changed' WHERE content = 'new'")
    con.execute("DROP TABLE memory")
    con.execute("ROLLBACK TO a")
    assert [r[0] for r in con.execute("SELECT content FROM memory ORDER BY id")] == ["old", "new"]
    con.execute("INSERT INTO memory(content) VALUES ('newer')")
    con.execute("COMMIT")
    assert not dropped(con) and stored(connect) == ["old", "new", "newer"]
    con.execute("INSERT INTO memory(content) VALUES ('later')")
    assert stored(connect) == ["old", "new", "newer", "later"]


def test_two_tables_on_the_store(con, connect):
    con.execute(CREATE.format("second"))
    for first, other in (("memory", "second"), ("second", "memory")):
        con.execute("BEGIN")
        con.execute(f"INSERT INTO {first}(content) VALUES ('by {first}')")
        con.execute(f"INSERT INTO {other}(content) VALUES ('by {other}')")
        con.execute("DROP TABLE memory")
        con.execute("COMMIT")
        assert dropped(con)
        con.execute(CREATE.format("memory"))
    con.execute("INSERT INTO second(content) VALUES ('last')")
    assert stored(connect) == ["old", "by memory", "by second", "by second", "by memory", "last"]


def test_dropped_and_made_again(con, connect):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('one')")
    con.execute("DROP TABLE memory")
    con.execute(CREATE.format("memory"))
    con.execute("INSERT INTO memory(content) VALUES ('two')")
    con.execute("COMMIT")
    assert stored(connect) == ["old", "one", "two"]
    con.execute("INSERT INTO memory(content) VALUES ('three')")
    assert stored(connect) == ["old", "one", "two", "three"]


def test_a_close_in_the_middle(con, connect):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    con.execute("DROP TABLE memory")
    con.close()
    assert stored(connect) == ["old"]
    con = connect("host.db")
    assert [r[0] for r in con.execute("SELECT content FROM memory")] == ["old"]


def test_made_and_written_and_dropped_is_refused(connect, in_tmp):
    con = connect("host.db")
    con.execute("BEGIN")
    con.execute(CREATE.format("memory"))
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        con.execute("DROP TABLE memory")
    con.execute("COMMIT")
    assert stored(connect) == ["new"]


def test_nothing_writes_to_the_list(con):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    con.execute("DROP TABLE memory")
    for sql in ("INSERT INTO h5mem_dropped(name) VALUES ('x')", "UPDATE h5mem_dropped SET name = 'x'",
                "DELETE FROM h5mem_dropped"):
        with pytest.raises(sqlite3.OperationalError, match="h5mem_dropped cannot be written"):
            con.execute(sql)
    assert con.execute("SELECT name FROM h5mem_dropped").fetchall() == [("memory",)]
    con.execute("ROLLBACK")


def test_query_only_in_the_middle(con, connect):
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    con.execute("PRAGMA query_only = 1")
    con.execute("COMMIT")
    assert con.execute("PRAGMA query_only").fetchone()[0] == 1
    assert stored(connect) == ["old", "new"]


def kept_open(con):
    """Another table over the store, in a statement that Python keeps: the store stays open when the first goes."""
    con.execute("CREATE VIRTUAL TABLE sessions USING h5mem_sessions(memory)")
    con.execute("SELECT id FROM sessions").fetchall()


def test_a_drop_taken_back_leaves_no_marks(con):
    """The table had only been looked at; its rows, and those of another over the store, are written later."""
    kept_open(con)
    con.execute("BEGIN")
    con.execute("UPDATE memory SET content = 'x' WHERE id = 99")
    con.execute("SAVEPOINT a")
    con.execute("DROP TABLE memory")
    con.execute("ROLLBACK TO a")
    con.execute("RELEASE a")
    con.execute("INSERT INTO sessions(id) VALUES ('s-1')")
    with pytest.raises(sqlite3.IntegrityError):
        con.execute("INSERT INTO memory(id, content) VALUES (7, 'x'), (1, 'taken')")
    assert con.execute("SELECT id FROM sessions").fetchall() == [("s-1",)]
    con.execute("COMMIT")
    assert con.execute("SELECT id FROM sessions").fetchall() == [("s-1",)]


def test_marks_end_with_the_table(con):
    kept_open(con)
    con.execute("BEGIN")
    con.execute("UPDATE memory SET content = 'x' WHERE id = 99")
    con.execute("SAVEPOINT a")
    con.execute("DROP TABLE memory")
    con.execute("COMMIT")
    con.execute("BEGIN")
    con.execute(CREATE.format("memory"))
    con.execute("INSERT INTO memory(content) VALUES ('new')")
    with pytest.raises(sqlite3.IntegrityError):
        con.execute("INSERT INTO memory(id, content) VALUES (7, 'x'), (1, 'taken')")
    con.execute("COMMIT")
    assert con.execute("SELECT content FROM memory ORDER BY id").fetchall() == [("old",), ("new",)]


def test_what_was_undone_before_the_drop_keeps_no_lock(con, connect):
    kept_open(con)
    con.execute("SAVEPOINT b")
    con.execute("INSERT INTO memory(content) VALUES ('undone')")
    con.execute("ROLLBACK TO b")
    con.execute("SAVEPOINT a")
    con.execute("DROP TABLE memory")
    con.execute("ROLLBACK TO a")
    con.execute("RELEASE b")
    assert stored(connect) == ["old"]
    con.execute("SAVEPOINT b")
    con.execute("INSERT INTO memory(content) VALUES ('undone')")
    con.execute("ROLLBACK TO b")
    con.execute("DROP TABLE memory")
    con.execute("RELEASE b")
    assert dropped(con) and stored(connect) == ["old"]
