"""test_txn.py - the table inside SQLite's transactions

Savepoints, several tables on one store, schema reloads in mid-transaction, ATTACH, COMMIT that is BUSY,
DROP and CREATE that are rolled back. Each test reads the rows back on a second connection: that is what
was committed.

SPDX-License-Identifier: MIT
"""

import sqlite3

import pytest

CREATE = "CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)"


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute(CREATE)
    return con


def put(con, *words, table="memory"):
    for word in words:
        con.execute(f"INSERT INTO {table}(content) VALUES (?)", (word,))


def rows(con, table="memory"):
    return [r[0] for r in con.execute(f"SELECT content FROM {table} ORDER BY id")]


def stored(connect, table="memory", host="host.db"):
    """What another connection sees: the committed rows."""
    other = connect(host)
    got = rows(other, table)
    other.close()
    return got


def test_commit_and_rollback(con, connect):
    con.execute("BEGIN")
    put(con, "a", "b")
    assert rows(con) == ["a", "b"] and stored(connect) == []
    con.execute("COMMIT")
    assert stored(connect) == ["a", "b"]
    con.execute("BEGIN")
    con.execute("DELETE FROM memory")
    put(con, "c")
    assert rows(con) == ["c"]
    con.execute("ROLLBACK")
    assert rows(con) == stored(connect) == ["a", "b"]


def test_a_failing_row_undoes_the_statement_and_no_more(con, connect):
    con.execute("BEGIN")
    put(con, "a")
    with pytest.raises(sqlite3.IntegrityError):
        con.execute("INSERT INTO memory(id, content) VALUES (5, 'x'), (6, 'y'), (5, 'z')")
    assert rows(con) == ["a"]
    with pytest.raises(sqlite3.IntegrityError):
        con.execute("INSERT OR FAIL INTO memory(id, content) VALUES (5, 'x'), (6, 'y'), (5, 'z'), (7, 'u')")
    assert rows(con) == ["a", "x", "y"]
    con.execute("INSERT OR IGNORE INTO memory(id, content) VALUES (5, 'no'), (8, 'v')")
    con.execute("INSERT OR REPLACE INTO memory(id, content) VALUES (5, 'new')")
    assert rows(con) == ["a", "new", "y", "v"]
    with pytest.raises(sqlite3.IntegrityError):
        con.execute("INSERT OR ROLLBACK INTO memory(id, content) VALUES (5, 'x')")
    assert not con.in_transaction and rows(con) == stored(connect) == []


def test_savepoints(con, connect):
    con.execute("BEGIN")
    con.execute("SAVEPOINT a")
    put(con, "1")
    con.execute("SAVEPOINT b")
    put(con, "2")
    con.execute("SAVEPOINT c")
    put(con, "3")
    con.execute("ROLLBACK TO b")
    assert rows(con) == ["1"]
    put(con, "4")
    con.execute("ROLLBACK TO b")
    assert rows(con) == ["1"]
    put(con, "5")
    con.execute("RELEASE b")
    con.execute("SAVEPOINT b")
    put(con, "6")
    con.execute("ROLLBACK TO b")
    assert rows(con) == ["1", "5"]
    con.execute("ROLLBACK TO a")
    assert rows(con) == []
    put(con, "7")
    con.execute("COMMIT")
    assert stored(connect) == ["7"]


def test_savepoint_as_the_outermost(con, connect):
    con.execute("SAVEPOINT a")
    put(con, "1")
    con.execute("SAVEPOINT b")
    put(con, "2")
    con.execute("ROLLBACK TO a")
    put(con, "3")
    con.execute("RELEASE a")
    assert stored(connect) == ["3"]


def test_rollback_to_a_savepoint_older_than_the_first_write(con, connect):
    con.execute("BEGIN")
    con.execute("SAVEPOINT a")
    con.execute("SAVEPOINT b")
    put(con, "1")
    con.execute("RELEASE b")
    con.execute("ROLLBACK TO a")
    assert rows(con) == []
    put(con, "2")
    con.execute("COMMIT")
    assert stored(connect) == ["2"]


def test_a_second_table_joins_late(con, connect):
    """Its savepoint call comes after rows that the savepoint must undo."""
    con.execute("CREATE VIRTUAL TABLE again USING h5mem('./m.h5')")
    con.execute("BEGIN")
    con.execute("SAVEPOINT a")
    put(con, "1")
    put(con, "2", table="again")
    assert rows(con) == rows(con, "again") == ["1", "2"]
    con.execute("SAVEPOINT b")
    put(con, "3", table="again")
    con.execute("ROLLBACK TO b")
    assert rows(con) == ["1", "2"]
    con.execute("ROLLBACK TO a")
    assert rows(con) == rows(con, "again") == []
    put(con, "4", table="again")
    put(con, "5")
    con.execute("COMMIT")
    assert stored(connect) == stored(connect, "again") == ["4", "5"]


def test_two_tables_on_one_store_have_one_transaction(con, connect):
    con.execute("CREATE VIRTUAL TABLE again USING h5mem('m.h5', dim=2)")
    con.execute("BEGIN")
    put(con, "1")
    put(con, "2", table="again")
    con.execute("ROLLBACK")
    assert rows(con, "again") == []
    con.execute("BEGIN")
    put(con, "3", table="again")
    put(con, "4")
    con.execute("DROP TABLE memory")
    con.execute("COMMIT")
    assert stored(connect, "again") == ["3", "4"]


@pytest.mark.parametrize("writes_after", [False, True])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_schema_reload_in_mid_transaction(con, connect, writes_after, end):
    con.execute("CREATE TABLE other(x)")
    con.execute("BEGIN")
    put(con, "1")
    con.execute("ALTER TABLE other ADD COLUMN y")
    if writes_after:
        put(con, "2")
        con.execute("SAVEPOINT a")
        put(con, "3")
        con.execute("ALTER TABLE other ADD COLUMN z")
        con.execute("ROLLBACK TO a")
    expected = ["1", "2"] if writes_after else ["1"]
    assert rows(con) == expected
    con.execute(end)
    expected = expected if end == "COMMIT" else []
    assert rows(con) == stored(connect) == expected
    put(con, "more")
    assert stored(connect) == expected + ["more"]


def test_rename(con, connect):
    con.execute("BEGIN")
    put(con, "1")
    con.execute("ALTER TABLE memory RENAME TO m2")
    put(con, "2", table="m2")
    assert con.execute("SELECT id FROM m2('2')").fetchall() == [(2,)]
    con.execute("COMMIT")
    assert stored(connect, "m2") == ["1", "2"]
    con.execute("BEGIN")
    put(con, "3", table="m2")
    con.execute("SAVEPOINT a")
    con.execute("ALTER TABLE m2 RENAME TO m3")
    con.execute("ROLLBACK TO a")
    con.execute("COMMIT")
    assert stored(connect, "m2") == ["1", "2", "3"]
    con.execute("BEGIN")
    con.execute("ALTER TABLE m2 RENAME TO m4")
    put(con, "4", table="m4")
    con.execute("ROLLBACK")
    assert rows(con, "m2") == stored(connect, "m2") == ["1", "2", "3"]
    assert [r[0] for r in con.execute("SELECT name FROM sqlite_schema ORDER BY 1")] == ["m2", "m2_state"]
    with pytest.raises(sqlite3.OperationalError, match="m2.*column \"content\""):
        con.execute("ALTER TABLE m2 RENAME TO content")


def test_drop(con, connect, in_tmp):
    put(con, "1")
    con.execute("BEGIN")
    con.execute("DROP TABLE memory")
    con.execute("ROLLBACK")
    assert rows(con) == ["1"]
    con.execute("BEGIN")
    put(con, "2")
    con.execute("DROP TABLE memory")
    con.execute("COMMIT")
    assert con.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    con.execute(CREATE)
    assert rows(con) == ["1", "2"]


def test_create_rolled_back_leaves_an_empty_store(connect, in_tmp):
    con = connect("host.db")
    con.execute("BEGIN")
    con.execute(CREATE)
    put(con, "1")
    con.execute("SAVEPOINT a")
    put(con, "2")
    con.execute("ROLLBACK TO a")
    assert rows(con) == ["1"]
    con.execute("ROLLBACK")
    assert (in_tmp / "m.h5").exists()
    con.execute(CREATE)
    assert rows(con) == []
    put(con, "3")
    assert stored(connect) == ["3"]


@pytest.mark.parametrize("host", ["host.db", ":memory:"])
@pytest.mark.parametrize("again", [False, True])
def test_create_undone_by_a_savepoint(connect, in_tmp, host, again):
    """SQLite tells nobody about the rows of a table whose CREATE a ROLLBACK TO undoes."""
    con = connect(host)
    con.execute("BEGIN")
    con.execute("SAVEPOINT a")
    con.execute(CREATE)
    put(con, "1")
    con.execute("ROLLBACK TO a")
    if again:
        con.execute(CREATE)
        assert rows(con) == []
        put(con, "2")
    con.execute("COMMIT")
    if not again:
        con.execute(CREATE)
    expected = ["2"] if again else []
    assert rows(con) == expected
    con.close()
    con = connect("another.db")
    con.execute(CREATE)
    assert rows(con) == expected


@pytest.mark.parametrize("then", ["COMMIT", "ROLLBACK", "ROLLBACK TO a", "more"])
def test_commit_that_is_busy(con, connect, then):
    """A reader of the host in rollback-journal mode: xSync has come when COMMIT fails, the transaction lives on."""
    con.execute("CREATE TABLE plain(x)")
    put(con, "0")
    reader = connect("host.db")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM plain").fetchall()
    con.execute("PRAGMA busy_timeout = 0")
    con.execute("BEGIN")
    put(con, "1")
    con.execute("SAVEPOINT a")
    put(con, "2")
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            con.execute("COMMIT")
    assert rows(con) == ["0", "1", "2"]
    if then == "more":
        put(con, "3")
    elif then == "ROLLBACK TO a":
        con.execute(then)
    reader.execute("ROLLBACK")
    con.execute("ROLLBACK" if then == "ROLLBACK" else "COMMIT")
    expected = {
        "COMMIT": ["0", "1", "2"],
        "ROLLBACK": ["0"],
        "ROLLBACK TO a": ["0", "1"],
        "more": ["0", "1", "2", "3"],
    }[then]
    assert rows(con) == stored(connect) == expected


def test_attach(connect, in_tmp):
    (in_tmp / "sub").mkdir()
    con = connect("host.db")
    con.execute("ATTACH 'sub/other.db' AS aux")
    con.execute("CREATE VIRTUAL TABLE aux.memory USING h5mem('m.h5', dim=2)")
    assert (in_tmp / "sub" / "m.h5").exists() and not (in_tmp / "m.h5").exists()
    con.execute(CREATE)
    con.execute("BEGIN")
    put(con, "main")
    put(con, "aux", table="aux.memory")
    con.execute("COMMIT")
    assert rows(con) == rows(con, "main.memory") == ["main"] and rows(con, "aux.memory") == ["aux"]
    assert con.execute("SELECT h5mem_flush('memory'), h5mem_flush('aux.memory')").fetchone() == (1, 1)
    assert stored(connect, host="sub/other.db") == ["aux"]
    # two hosts over one store, in one transaction
    con.execute("CREATE VIRTUAL TABLE aux.same USING h5mem('../m.h5')")
    con.execute("BEGIN")
    put(con, "from aux", table="aux.same")
    put(con, "from main")
    assert rows(con) == ["main", "from aux", "from main"]
    con.execute("COMMIT")
    assert stored(connect) == ["main", "from aux", "from main"]
    con.execute("DETACH aux")
    put(con, "later")
    assert stored(connect) == ["main", "from aux", "from main", "later"]


def test_temp_and_memory_hosts(connect, in_tmp):
    con = connect(":memory:")
    con.execute("CREATE VIRTUAL TABLE temp.memory USING h5mem('m.h5', dim=2)")
    put(con, "1")
    con.execute("BEGIN")
    put(con, "2")
    con.execute("ROLLBACK")
    con.execute("SAVEPOINT a")
    put(con, "3")
    con.execute("RELEASE a")
    assert rows(con) == ["1", "3"]
    con.close()
    con = connect("host.db")
    con.execute(CREATE)
    assert rows(con) == ["1", "3"]


def test_counters_of_the_caller_stay(con):
    """CREATE, COMMIT and commands leave changes(), total_changes() and last_insert_rowid() as statements made them."""
    con.execute("CREATE TABLE plain(x)")
    con.execute("INSERT INTO plain VALUES (1), (2), (3)")
    con.execute("CREATE VIRTUAL TABLE more USING h5mem('more.h5', dim=2)")
    assert con.execute("SELECT last_insert_rowid()").fetchone() == (3,)
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(id, content) VALUES (70, 'a'), (71, 'b')")
    before = con.execute("SELECT total_changes()").fetchone()[0]
    con.execute("COMMIT")
    assert con.execute("SELECT changes(), total_changes() - ?, last_insert_rowid()", (before,)).fetchone() == (
        2,
        0,
        71,
    )
    con.execute("INSERT INTO memory(id, content) VALUES (80, 'c')")
    assert con.execute("SELECT changes(), total_changes() - ?, last_insert_rowid()", (before,)).fetchone() == (
        1,
        1,
        80,
    )
    con.execute("INSERT INTO memory(memory) VALUES ('flush')")
    assert con.execute("SELECT last_insert_rowid()").fetchone() == (80,)


def test_the_state_row_follows_the_store(con):
    def txid():
        return con.execute("SELECT hex(txid) FROM memory_state").fetchone()[0]

    first = txid()
    assert first == "0" * 16
    con.execute("BEGIN")
    put(con, "1")
    con.execute("COMMIT")
    second = txid()
    con.execute("BEGIN")
    put(con, "2")
    con.execute("ROLLBACK")
    assert second > first and txid() == second
    con.execute("SELECT * FROM memory").fetchall()
    assert txid() == second
    con.execute("BEGIN")
    put(con, "3")
    con.execute("COMMIT")
    assert txid() > second


def test_a_lost_state_row_is_an_error_not_a_loss(con, connect):
    con.execute("CREATE TABLE plain(x)")
    con.execute("BEGIN")
    put(con, "1")
    con.execute("UPDATE memory_state SET uuid = randomblob(16)")
    with pytest.raises(sqlite3.DatabaseError, match="h5mem: memory: m.h5: the state row of the transaction is gone"):
        con.execute("COMMIT")
    assert not con.in_transaction
    assert rows(con) == []


def test_one_writer_at_a_time(con, connect):
    other = connect("other.db")
    other.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5')")
    other.execute("PRAGMA busy_timeout = 0")
    con.execute("BEGIN")
    put(con, "1")
    with pytest.raises(sqlite3.OperationalError, match="h5mem: memory: m.h5: .* writing") as failure:
        put(other, "2")
    assert failure.value.sqlite_errorcode == sqlite3.SQLITE_BUSY
    assert rows(other) == []
    con.execute("COMMIT")
    put(other, "2")
    assert rows(other) == rows(con) == ["1", "2"]


def test_a_statement_keeps_its_snapshot(con, connect):
    put(con, "1", "2", "3")
    cursor = con.execute(
        "SELECT content, (SELECT count(*) FROM memory i WHERE i.id >= o.id) FROM memory o ORDER BY id"
    )
    first = cursor.fetchone()
    writer = connect("other.db")
    writer.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5')")
    put(writer, "4")
    assert [first, *cursor.fetchall()] == [("1", 3), ("2", 2), ("3", 1)]
    assert rows(con) == ["1", "2", "3", "4"]


def test_insert_select_from_itself(con, connect):
    put(con, "1", "2")
    con.execute("INSERT INTO memory(content) SELECT content || '+' FROM memory")
    with pytest.raises(sqlite3.IntegrityError, match="h5mem: memory: m.h5: id 2 "):
        con.execute("UPDATE memory SET id = id + 1")
    con.execute("UPDATE memory SET id = id + 10")
    con.execute("DELETE FROM memory WHERE content IN (SELECT content FROM memory WHERE content LIKE '1%')")
    assert con.execute("SELECT id, content FROM memory ORDER BY id").fetchall() == [(12, "2"), (14, "2+")]
    assert stored(connect) == ["2", "2+"]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_connections_that_share_a_cache(connect, in_tmp, mode):
    """They share the host's pages and locks; rows that are not committed stay with the one who wrote them."""
    name = f"file:{in_tmp}/shared.db?cache=shared"
    a = connect(name, uri=True, timeout=0)
    a.execute(f"PRAGMA journal_mode = {mode}")
    a.execute("CREATE VIRTUAL TABLE memory USING h5mem('shared.h5', dim=2)")
    b = connect(name, uri=True, timeout=0)
    a.execute("INSERT INTO memory(content) VALUES ('one')")
    look = "SELECT group_concat(content) FROM memory"
    a.execute("BEGIN")
    a.execute("INSERT INTO memory(content) VALUES ('two')")
    for uncommitted in (0, 1):
        b.execute(f"PRAGMA read_uncommitted = {uncommitted}")
        assert b.execute(look).fetchone() == ("one",)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        b.execute("INSERT INTO memory(content) VALUES ('no')")
    a.execute("COMMIT")
    assert b.execute(look).fetchone() == ("one,two",)
    b.execute("INSERT INTO memory(content) VALUES ('three')")
    a.execute("BEGIN")
    a.execute("DELETE FROM memory")
    a.execute("ROLLBACK")
    for con in (a, b):
        assert con.execute(look).fetchone() == ("one,two,three",)
        assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)
