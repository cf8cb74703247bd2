"""test_create.py - CREATE, its arguments, and the table's life without its store

What CREATE takes and refuses, agreement with an existing store, paths, listings and DROP of a table whose
file is gone, tampered state rows, read-only tables, loading twice.

SPDX-License-Identifier: MIT
"""

import os
import sqlite3

import pytest


@pytest.fixture
def con(connect, in_tmp):
    return connect("host.db")


def create(con, args, table="memory"):
    return con.execute(f"CREATE VIRTUAL TABLE {table} USING h5mem({args})")


def columns(con, table="memory"):
    return [(row[1], row[2]) for row in con.execute(f"PRAGMA table_info({table})")]


# ---- arguments


@pytest.mark.parametrize(
    "args, message",
    [
        ("", "the first argument is the file's path in quotes"),
        ("m.h5", "the first argument is the file's path in quotes"),
        ("dim=2", "the first argument is the file's path in quotes"),
        ("''", "the first argument is the file's path in quotes"),
        ("'m.h5' x, dim=2", "the first argument is the file's path in quotes"),
        ("'m.h5', dim=0", "m.h5: dim is '0'; it takes a whole number above 0"),
        ("'m.h5', dim=-1", "dim is '-1'"),
        ("'m.h5', dim=2.5", "dim is '2.5'"),
        ("'m.h5', dim=many", "dim is 'many'"),
        ("'m.h5', dim=1e30", "dim is '1e30'"),
        ("'m.h5', dim=", "option dim has no value"),
        ("'m.h5', dim=2, dim=2", "dim is given twice"),
        ("'m.h5', dim=2, metric=l2, METRIC=l2", "metric is given twice"),
        ("'m.h5', dim=2, tokenize=ascii, tokenize=ascii", "tokenize is given twice"),
        ("'m.h5', dim=2, metric=l3", "'l3'"),
        ("'m.h5', dim=2, dimension=3", "unknown option \"dimension\"; known are dim, metric,"),
        ("'m.h5', dim=2, readonly=perhaps", "readonly is 'perhaps'; known are on and off"),
        ("'m.h5', dim=2, threads=0", "threads is '0'; it takes 1 to 64"),
        ("'m.h5', dim=2, threads=many", "threads is 'many'; it takes 1 to 64"),
        ("'m.h5', dim=2, tokenize='nosuch'", "tokenize is 'nosuch', but this SQLite has no tokenizer 'nosuch'"),
        (
            "'m.h5', dim=2, tokenize='unicode61 nosuch 3'",
            "tokenize is 'unicode61 nosuch 3', which the tokenizer 'unicode61' refuses",
        ),
        ("'m.h5', dim=2, tokenize=\"unicode61 tokenchars '-\"", "cannot be read as words"),
        ("'m.h5', dim=2, x", "column \"x\" has type \"\"; use INTEGER, REAL, TEXT or BLOB"),
        ("'m.h5', dim=2, x NUMERIC", "column \"x\" has type \"NUMERIC\""),
        ("'m.h5', dim=2, x DATE", "column \"x\" has type \"DATE\""),
        (
            "'m.h5', dim=2, x TEXT NOT NULL",
            "column \"x\" has not: constraints and defaults on user columns are not supported",
        ),
        ("'m.h5', dim=2, x TEXT DEFAULT 'a'", "column \"x\" has default"),
        ("'m.h5', dim=2, x TEXT COLLATE NOCASE", "column \"x\" has collate"),
        ("'m.h5', dim=2, x TEXT, X INTEGER", "column \"X\" is declared twice"),
        ("'m.h5', dim=2, content TEXT", "column \"content\" is built in"),
        ("'m.h5', dim=2, Session TEXT", "column \"Session\" is built in"),
        ("'m.h5', dim=2, distance REAL", "\"distance\" is reserved"),
        ("'m.h5', dim=2, k INTEGER", "\"k\" is reserved"),
        ("'m.h5', dim=2, fusion TEXT", "\"fusion\" is reserved"),
        ("'m.h5', dim=2, rowid INTEGER", "\"rowid\" is reserved"),
        ("'m.h5', dim=2, memory TEXT", "column \"memory\" has the table's own name"),
        ("'m.h5', dim=2, \"\" TEXT", "is neither name=value nor a column"),
        ("'m.h5', dim=2, ?", "is neither name=value nor a column"),
        ("'m.h5', dim=2, " + "x" * 128 + " TEXT", "1 to 127 bytes are allowed"),
        ("'m.h5', dim=2, " + ", ".join(f"c{i} TEXT" for i in range(65)), "more than 64 user columns"),
        ("'nosuchfolder/m.h5', dim=2", "memory: m.h5: "),
        ("'m.h5'", "dim"),
    ],
)
def test_refused(con, in_tmp, args, message):
    with pytest.raises(sqlite3.OperationalError) as failure:
        create(con, args)
    file = "m.h5: " if args.startswith("'m.h5'") else ""
    assert str(failure.value).startswith(f"h5mem: memory: {file}")
    assert message.removeprefix("m.h5: ") in str(failure.value)
    assert con.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    assert sorted(os.listdir(in_tmp)) in ([], ["host.db"])


@pytest.mark.parametrize(
    "args, want",
    [
        ("user_id TEXT, priority INTEGER", [("user_id", "TEXT"), ("priority", "INTEGER")]),
        (
            "a int, b BIGINT, c Varchar(20), d clob, e BLOB, f double precision, g FLOAT, h real",
            [
                ("a", "INTEGER"),
                ("b", "INTEGER"),
                ("c", "TEXT"),
                ("d", "TEXT"),
                ("e", "BLOB"),
                ("f", "REAL"),
                ("g", "REAL"),
                ("h", "REAL"),
            ],
        ),
        (
            "\"quoted\" TEXT, [brackets] TEXT, `ticks` TEXT, 'single' TEXT, größe TEXT, \"select\" TEXT",
            [(name, "TEXT") for name in ("quoted", "brackets", "ticks", "single", "größe", "select")],
        ),
    ],
)
def test_user_columns(con, connect, args, want):
    create(con, f"'m.h5', dim=2, {args}")
    assert columns(con)[17:] == want
    names = ", ".join('"' + name.replace('"', '""') + '"' for name, _ in want)
    con.execute(f"INSERT INTO memory({names}) VALUES ({', '.join(['NULL'] * len(want))})")
    con.close()
    con = connect("host.db")
    assert columns(con)[17:] == want
    assert con.execute(f"SELECT {names} FROM memory").fetchone() == (None,) * len(want)
    # a table that names no columns gets the store's
    create(con, "'m.h5'", "other")
    assert columns(con, "other")[17:] == want
    con.close()
    assert columns(connect("host.db"), "other")[17:] == want


def test_values_in_any_spelling(con):
    create(
        con,
        """ 'it''s.h5' ,  dim = 3 , metric= 'l2',
            TOKENIZE = "unicode61 tokenchars '-_'", agent = "me, myself" , compression=zstd:3""",
    )
    got = dict(
        con.execute(
            "SELECT o.value, h5mem_config('memory', o.value) FROM json_each(?) o",
            ('["dim","metric","tokenize","agent","compression","readonly"]',),
        )
    )
    assert got == {
        "dim": 3,
        "metric": "l2",
        "tokenize": "unicode61 tokenchars '-_'",
        "agent": "me, myself",
        "compression": "zstd:3",
        "readonly": "off",
    }
    con.execute("INSERT INTO memory(content) VALUES ('left-hand snake_case')")
    assert con.execute("SELECT count(*) FROM memory('left')").fetchone() == (0,)
    assert con.execute("SELECT count(*) FROM memory('left-hand')").fetchone() == (1,)


def test_agreement_with_an_existing_store(con):
    create(con, "'m.h5', dim=2, metric=l2, tokenize=ascii, n INTEGER")
    create(con, "'m.h5'", "a")
    create(con, "'m.h5', dim=2, metric=l2, tokenize=ascii, n INT", "b")
    for args, words in (
        ("dim=3", ["2", "3"]),
        ("metric=cosine", ["l2", "cosine"]),
        ("tokenize=porter", ["ascii", "porter"]),
        ("m INTEGER", ["n", "m"]),
        ("n TEXT", ["n"]),
        ("n INTEGER, m TEXT", ["m"]),
    ):
        for more in ("", ", readonly=on"):
            with pytest.raises(sqlite3.OperationalError) as failure:
                create(con, f"'m.h5', {args}{more}", "c")
            assert str(failure.value).startswith("h5mem: c: m.h5: ")
            assert all(word in str(failure.value) for word in words), failure.value
    assert {row[0] for row in con.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE '%state'")} == {
        "memory",
        "a",
        "b",
    }


def test_names_that_clash(con):
    for name in ("content", "K", "score"):
        with pytest.raises(sqlite3.OperationalError, match="a table cannot have the name of its column"):
            create(con, "'m.h5', dim=2", name)
    create(con, "'m.h5', dim=2, other TEXT")
    with pytest.raises(sqlite3.OperationalError, match="a table cannot have the name of its column \"other\""):
        create(con, "'m.h5'", "other")
    con.execute("CREATE TABLE x_state(y)")
    with pytest.raises(sqlite3.OperationalError, match="x: x.h5: .*x_state"):
        create(con, "'x.h5', dim=2", "x")
    assert not os.path.exists("x.h5")


# ---- paths


def test_paths(connect, in_tmp, monkeypatch):
    (in_tmp / "sub").mkdir()
    con = connect("sub/host.db")
    create(con, "'m.h5', dim=2")
    assert (in_tmp / "sub" / "m.h5").exists()
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.close()
    (in_tmp / "sub").rename(in_tmp / "moved")  # both files together: the path is relative to the host's folder
    con = connect("moved/host.db")
    assert con.execute("SELECT content FROM memory").fetchall() == [("a",)]
    create(con, f"'{in_tmp}/absolute.h5', dim=2", "b")
    assert (in_tmp / "absolute.h5").exists()
    con = connect(":memory:")
    create(con, "'m.h5', dim=2")
    assert (in_tmp / "m.h5").exists()
    monkeypatch.chdir(in_tmp / "moved")  # a :memory: host keeps the folder it started from
    con.execute("CREATE TABLE reload(x)")
    con.execute("ALTER TABLE reload ADD COLUMN y")
    con.execute("INSERT INTO memory(content) VALUES ('b')")
    assert con.execute("SELECT content FROM memory").fetchall() == [("b",)]


def test_vacuum(con, connect):
    create(con, "'m.h5', dim=2")
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.execute("VACUUM")
    con.execute("INSERT INTO memory(content) VALUES ('b')")
    con.execute("VACUUM INTO 'copy.db'")
    con.execute("INSERT INTO memory(content) VALUES ('c')")
    for host in ("host.db", "copy.db"):
        other = connect(host)
        assert other.execute("SELECT count(*) FROM memory").fetchone() == (3,)
        other.execute("BEGIN")
        other.execute("INSERT INTO memory(content) VALUES ('no')")
        other.execute("ROLLBACK")
        other.close()


def test_one_store_by_several_paths(con, in_tmp):
    create(con, "'m.h5', dim=2")
    os.symlink("m.h5", "link.h5")
    create(con, "'./m.h5'", "a")
    create(con, f"'{in_tmp}/link.h5'", "b")
    con.execute("BEGIN")
    con.execute("INSERT INTO a(content) VALUES ('1')")
    con.execute("INSERT INTO b(content) VALUES ('2')")
    con.execute("INSERT INTO memory(content) VALUES ('3')")
    assert con.execute("SELECT count(*) FROM b").fetchone() == (3,)
    con.execute("SAVEPOINT s")
    con.execute("DELETE FROM b")
    con.execute("ROLLBACK TO s")
    con.execute("COMMIT")
    assert con.execute(
        "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM memory)"
    ).fetchone() == (3, 3, 3)


# ---- without the store


@pytest.fixture
def orphan(con, connect):
    create(con, "'m.h5', dim=2, n INTEGER")
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.close()
    os.remove("m.h5")
    os.remove("m.h5-wal")
    return connect("host.db")


def test_a_missing_store_stops_no_listing(orphan, connect):
    assert columns(orphan)[-1] == ("n", "INTEGER")
    assert len(orphan.execute("PRAGMA table_list").fetchall()) >= 2
    orphan.execute("EXPLAIN QUERY PLAN SELECT * FROM memory WHERE n = 3").fetchall()
    orphan.execute("ALTER TABLE memory RENAME TO m2")
    with pytest.raises(sqlite3.OperationalError, match="h5mem: m2: m.h5: "):
        orphan.execute("SELECT * FROM m2")
    with pytest.raises(sqlite3.OperationalError, match="h5mem: m2: m.h5: "):
        orphan.execute("INSERT INTO m2(content) VALUES ('b')")
    with pytest.raises(sqlite3.OperationalError, match="h5mem: m2: m.h5: "):
        orphan.execute("SELECT h5mem_flush('m2')")
    assert not os.path.exists("m.h5") and not os.path.exists("m.h5-wal")
    orphan.execute("DROP TABLE m2")
    assert orphan.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


@pytest.mark.parametrize("content", [b"", b"no HDF5 at all" * 100, b"\x89HDF\r\n\x1a\n" + bytes(500)])
def test_a_damaged_store_can_be_dropped(orphan, content):
    with open("m.h5", "wb") as file:
        file.write(content)
    with pytest.raises(sqlite3.DatabaseError, match="h5mem: memory: m.h5: "):
        orphan.execute("SELECT * FROM memory")
    orphan.execute("ALTER TABLE memory RENAME TO m2")
    orphan.execute("DROP TABLE m2")
    with open("m.h5", "rb") as file:
        assert file.read() == content


def test_another_store_under_the_path(orphan, connect):
    other = connect("other.db")
    create(other, "'m.h5', dim=2, n INTEGER")
    with pytest.raises(
        sqlite3.OperationalError, match="h5mem: memory: m.h5: another store than the one this table was created on"
    ):
        orphan.execute("SELECT * FROM memory")
    orphan.execute("DROP TABLE memory")
    create(orphan, "'m.h5'")
    assert orphan.execute("SELECT count(*) FROM memory").fetchone() == (0,)


@pytest.mark.parametrize(
    "tamper, message",
    [
        ("DELETE FROM memory_state", "the row of table \"memory_state\" that belongs to it is gone"),
        ("DROP TABLE memory_state", "the row of table \"memory_state\" that belongs to it is gone"),
        ("UPDATE memory_state SET store = randomblob(16)", "another store than the one"),
        ("UPDATE memory_state SET store = 5", "is gone"),
        ("UPDATE memory_state SET columns = '\"n\" TEXT'", "the user columns are not those that the state row lists"),
        ("UPDATE memory_state SET columns = ''", "the user columns are not those that the state row lists"),
        ("UPDATE memory_state SET columns = 'x); DROP'", "memory"),
        ("UPDATE memory_state SET columns = 'content TEXT'", "column \"content\" is built in"),
        ("UPDATE memory_state SET path = NULL", "memory"),
        ("UPDATE memory_state SET path = 'nosuch.h5'", "memory: nosuch.h5: "),
    ],
)
def test_a_tampered_state_row(con, connect, tamper, message):
    create(con, "'m.h5', dim=2, n INTEGER")
    con.execute(tamper)
    con.close()
    con = connect("host.db")
    for sql in ("SELECT * FROM memory", "INSERT INTO memory(content) VALUES ('x')"):
        with pytest.raises(sqlite3.DatabaseError) as failure:
            con.execute(sql).fetchall()
        assert message in str(failure.value)


# ---- read-only


def test_readonly_table(con, connect, in_tmp):
    with pytest.raises(sqlite3.OperationalError, match="h5mem: memory: m.h5: "):
        create(con, "'m.h5', dim=2, readonly=on")
    assert not os.path.exists("m.h5")
    create(con, "'m.h5', dim=2", "writer")
    con.execute("INSERT INTO writer(content) VALUES ('a')")
    create(con, "'m.h5', readonly=on")
    for again in range(2):
        assert con.execute("SELECT content FROM memory").fetchall() == [("a",)]
        assert con.execute(
            "SELECT h5mem_config('memory', 'readonly'), h5mem_config('writer', 'readonly')"
        ).fetchone() == ("on", "off")
        for sql in (
            "INSERT INTO memory(content) VALUES ('b')",
            "DELETE FROM memory",
            "UPDATE memory SET tier = 'semantic'",
            "INSERT INTO memory(memory) VALUES ('flush')",
            "SELECT h5mem_flush('memory')",
            "SELECT h5mem_config('memory', 'agent', 'x')",
        ):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                con.execute(sql).fetchall()
        con.execute("INSERT INTO writer(content) VALUES ('a')")  # the same store through a table that may write
        con.execute("DELETE FROM writer WHERE id > 1")
        con.close()
        con = connect("host.db")


def test_threads(con, connect, in_tmp):
    """The option is the table's: CREATE keeps it, h5mem_config sets it for the connection."""
    create(con, "'m.h5', dim=2, threads=4")
    assert con.execute("SELECT h5mem_config('memory', 'threads')").fetchone() == (4,)
    assert con.execute("SELECT h5mem_config('memory', 'threads', 2)").fetchone() == (2,)
    with pytest.raises(sqlite3.OperationalError, match="threads is '65'; it takes 1 to 64"):
        con.execute("SELECT h5mem_config('memory', 'threads', 65)")
    con.execute("CREATE VIRTUAL TABLE other USING h5mem('m.h5')")
    assert con.execute("SELECT h5mem_config('other', 'threads')").fetchone() == (1,)


def test_threads_find_the_same(con, in_tmp):
    """Rows enough for several threads to be used: the same rows in the same order."""
    create(con, "'m.h5', dim=8")
    con.execute(
        "INSERT INTO memory(embedding) WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s"
        " WHERE i < 40000) SELECT h5mem_vector(json_array(i % 101, i % 103, i % 107, i % 109,"
        " i % 113, i % 127, i % 131, i % 137)) FROM s"
    )
    con.execute("SELECT h5mem_flush('memory')")
    ask = "SELECT id, distance FROM memory WHERE embedding MATCH '[9,8,7,6,5,4,3,2]' AND exact = 1 LIMIT ?"
    for limit in (10, 2000):
        con.execute("SELECT h5mem_config('memory', 'threads', 1)")
        one = con.execute(ask, (limit,)).fetchall()
        con.execute("SELECT h5mem_config('memory', 'threads', 4)")
        assert con.execute(ask, (limit,)).fetchall() == one and len(one) == limit


def test_readonly_connection(con, connect):
    create(con, "'m.h5', dim=2")
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.execute("PRAGMA query_only = 1")
    for sql in (
        "INSERT INTO memory(content) VALUES ('b')",
        "SELECT h5mem_flush('memory')",
        "SELECT h5mem_config('memory', 'agent', 'x')",
        "SELECT h5mem_import('memory', 'm.h5', 'h5mem')",
    ):
        with pytest.raises(sqlite3.OperationalError):
            con.execute(sql).fetchall()
    assert con.execute("SELECT content FROM memory").fetchall() == [("a",)]
    con.close()
    con = connect("file:host.db?mode=ro", uri=True)
    assert con.execute("SELECT content FROM memory").fetchall() == [("a",)]
    for sql in ("INSERT INTO memory(content) VALUES ('b')", "SELECT h5mem_flush('memory')"):
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            con.execute(sql).fetchall()


# ---- hosts


def test_loading_twice_keeps_the_tables(con, so):
    create(con, "'m.h5', dim=2")
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('a')")
    con.enable_load_extension(True)
    con.load_extension(str(so))
    con.execute("INSERT INTO memory(content) VALUES ('b')")
    con.execute("COMMIT")
    assert con.execute("SELECT h5mem_flush('memory')").fetchone() == (2,)


@pytest.mark.parametrize("entry", ["", ", 'sqlite3_h5mem_init'", ", 'sqlite3_hmem_init'"])
def test_entry_points(so, in_tmp, entry):
    """By name, and by the name that SQLite derives from the file's."""
    con = sqlite3.connect(":memory:")
    con.enable_load_extension(True)
    con.execute(f"SELECT load_extension('{so.with_suffix('')}'{entry})")
    assert con.execute("SELECT h5mem_version()").fetchone()[0].count(".") == 2
    con.close()


def test_without_fts5(con, connect):
    """A host that lacks FTS5 has the default tokenizer all the same, with the same tokens; no others."""
    create(con, "'m.h5', dim=2")
    con.execute("CREATE VIRTUAL TABLE other USING h5mem('o.h5', dim=2, tokenize='trigram')")
    con.execute("INSERT INTO other(content) VALUES ('abc')")
    con.execute("INSERT INTO memory(content, embedding) VALUES ('a', '[1, 0]')")
    con.close()
    con = connect("host.db")
    con.set_authorizer(
        lambda action, a, b, *rest: sqlite3.SQLITE_DENY if action == 31 and b == "fts5" else sqlite3.SQLITE_OK
    )
    assert con.execute("SELECT value FROM h5mem_info WHERE name = 'text'").fetchone() == (
        "on: by its own tokenizer, since this SQLite has no FTS5",
    )
    assert con.execute("SELECT content FROM memory WHERE embedding MATCH '[1, 1]'").fetchall() == [("a",)]
    con.execute("INSERT INTO memory(embedding) VALUES ('[0, 1]')")
    con.execute("UPDATE memory SET tier = 'semantic' WHERE id = 1")
    con.execute("INSERT INTO memory(id, content) VALUES (7, 'Écoles running')")
    assert con.execute("SELECT id FROM memory('a')").fetchall() == [(1,)]
    marked = con.execute("SELECT snippet(memory, 0, '[', ']', '', 5) FROM memory(?)", ('ecole "runs"',))
    assert marked.fetchall() == [("[Écoles] [running]",)]
    refused = "h5mem: other: o.h5: tokenize is 'trigram', and this SQLite has no FTS5"
    for sql in ("SELECT * FROM other('abc')", "INSERT INTO other(content) VALUES ('b')"):
        with pytest.raises(sqlite3.OperationalError, match=refused):
            con.execute(sql).fetchall()
    with pytest.raises(sqlite3.OperationalError, match="h5mem: new: new.h5: .*no FTS5; without it there is 'porter"):
        create(con, "'new.h5', dim=2, tokenize='ascii'", "new")
    create(con, "'new.h5', dim=2", "new")
    con.close()
    con = connect("host.db")  # with FTS5 again, which takes the store for its own
    assert con.execute("SELECT id FROM memory('École')").fetchall() == [(7,)]
    con.execute("INSERT INTO memory(content) VALUES ('run')")
    assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)


def test_closing_in_any_order(so, in_tmp):
    """Cursors, transactions and tables left open when the connection closes: nothing dies, nothing is lost."""
    from conftest import open_connection

    con = open_connection("host.db")
    create(con, "'m.h5', dim=2")
    con.execute("INSERT INTO memory(content) VALUES ('a'), ('b')")
    cursor = con.execute("SELECT * FROM memory")
    cursor.fetchone()
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('c')")
    con.close()
    del cursor
    con = open_connection("host.db")
    assert con.execute("SELECT count(*) FROM memory").fetchone() == (2,)
    con.close()
