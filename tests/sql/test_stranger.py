"""A database made by a stranger: opening it, listing what it holds and asking its tables changes nothing on the disk.

The stranger writes sqlite_schema as he likes: h5mem and hdf5 tables over any path, views, triggers, defaults, checks,
generated columns and expression indexes that call the functions of this module. All files of the folder are compared,
bytes and times, before and after.

SPDX-License-Identifier: MIT
"""
import os
import sqlite3
import stat

import pytest

VICTIM_ROWS = [(1, "in the file"), (2, "in the log")]


def tree(folder):
    """All below a folder: kind, bytes, time of the last change."""
    found = {}
    for path in sorted(folder.rglob("*")):
        s = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(s.st_mode) else None
        found[str(path.relative_to(folder))] = (stat.S_IFMT(s.st_mode), content, s.st_mtime_ns)
    return found


@pytest.fixture
def place(connect, tmp_path):
    """home/ has a store whose log holds a row, a store of HDF5 data, a text and a pipe; the stranger's base is beside
    it. Gives (home, the base's path)."""
    home = tmp_path / "home"
    home.mkdir()
    pid = os.fork()
    if pid == 0:  # dies with the row in the log
        con = connect(home / "host.db", isolation_level=None)
        con.execute("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=2)")
        con.execute("INSERT INTO memory(content) VALUES ('in the file')")
        con.execute("SELECT h5mem_flush('memory')").fetchall()
        con.execute("INSERT INTO memory(content) VALUES ('in the log')")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    (home / "secret.txt").write_text("not an HDF5 file")
    os.mkfifo(home / "pipe")
    (home / "folder").mkdir()
    (home / "link.h5").symlink_to("agent.h5")
    return home, tmp_path / "stranger.db"


PATHS = ["home/agent.h5", "home/link.h5", "home/new.h5", "home/secret.txt", "home/pipe", "home/folder", "home/nosuch/x",
         "/dev/zero", "/proc/self/mem", "home/agent.h5-wal", "home/host.db", "", "stranger.db",
         "../" * 40 + "etc/passwd"]


FUNCTIONS = ("h5mem_backup", "h5mem_flush", "h5mem_compact", "h5mem_config", "h5mem_export", "h5mem_import",
             "h5mem_verify", "h5mem_stats", "hdf5_read")


def forge(path, schema):
    """A database whose schema says what it is told to; made where the functions are harmless and deterministic."""
    con = sqlite3.connect(path, isolation_level=None)
    for name in FUNCTIONS:
        con.create_function(name, -1, lambda *values: 1, deterministic=True)
    con.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
    con.execute("INSERT INTO notes VALUES (1, 'one')")
    direct = [row for row in schema if row[0] == "index" or (row[0] == "table" and "VIRTUAL" not in row[2])]
    for _, _, sql in direct:
        con.execute(sql)
    con.execute("PRAGMA writable_schema = 1")
    for kind, name, sql in (row for row in schema if row not in direct):
        con.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, 0, ?)",
                    (kind, name, "notes" if kind == "trigger" else name, sql))
    con.execute("PRAGMA writable_schema = 0")
    con.close()


def tables(paths):
    for i, path in enumerate(paths):
        yield "table", f"m{i}", f"CREATE VIRTUAL TABLE m{i} USING h5mem('{path}', dim=2)"
        yield "table", f"h{i}", f"CREATE VIRTUAL TABLE h{i} USING hdf5('{path}', '/x')"


def attempt(con, sql):
    try:
        return con.execute(sql).fetchall()
    except sqlite3.Error as error:
        assert str(error), sql
        return None


def ask(con, name):
    """What looks at a table without writing to it."""
    for sql in (f"PRAGMA table_info({name})", f"PRAGMA table_xinfo({name})", f"SELECT * FROM {name}",
                f"SELECT count(*) FROM {name}", f"SELECT * FROM {name} WHERE rowid = 1",
                f"PRAGMA foreign_key_list({name})", f"EXPLAIN QUERY PLAN SELECT * FROM {name}",
                f"SELECT 1 FROM {name} WHERE 0"):
        attempt(con, sql)


def list_all(con):
    for sql in ("SELECT * FROM sqlite_schema", "PRAGMA table_list", "PRAGMA database_list", "PRAGMA integrity_check",
                "PRAGMA quick_check", "SELECT name FROM pragma_table_list", "PRAGMA foreign_key_check",
                "ANALYZE notes"):
        attempt(con, sql)


@pytest.mark.parametrize("trusted", [0, 1])
def test_tables_over_any_path_create_and_change_nothing(connect, place, trusted):
    home, base = place
    forge(base, list(tables(PATHS)))
    before = tree(home)
    outside = set(base.parent.iterdir())
    con = connect(base, isolation_level=None)
    con.execute(f"PRAGMA trusted_schema = {trusted}")
    list_all(con)
    for i in range(len(PATHS)):
        ask(con, f"m{i}")
        ask(con, f"h{i}")
    con.close()
    assert tree(home) == before
    assert set(base.parent.iterdir()) == outside


def test_tables_over_any_path_can_be_dropped(connect, place):
    home, base = place
    forge(base, list(tables(PATHS)))
    before = tree(home)
    con = connect(base, isolation_level=None)
    for i, path in enumerate(PATHS):
        if path:
            con.execute(f"DROP TABLE m{i}")
        attempt(con, f"DROP TABLE h{i}")
    con.close()
    assert tree(home) == before


def test_the_owner_still_has_all_his_rows(connect, place):
    """After a stranger's look the log is as it was, and its owner finds every row."""
    home, base = place
    forge(base, list(tables(["home/agent.h5"])))
    con = connect(base, isolation_level=None)
    ask(con, "m0")
    con.close()
    con = connect(home / "host.db", isolation_level=None)
    assert con.execute("SELECT id, content FROM memory ORDER BY id").fetchall() == VICTIM_ROWS
    assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)


def calls(home):
    """Calls that would write, read a file or run long, if a schema could make them."""
    return [f"h5mem_backup('m0', '{home}/copy.h5')", "h5mem_flush('m0')", "h5mem_compact('m0')",
            "h5mem_config('m0', 'synchronous', 'off')", f"h5mem_import('m0', '{home}/agent.h5', 'h5mem')",
            f"h5mem_export('m0', '{home}/copy.h5', 'jsonl')", f"h5mem_export('m0', '{home}/', 'markdown')",
            "h5mem_verify('m0')", "h5mem_stats('m0')", f"hdf5_read('{home}/agent.h5', '/memory/id')"]


@pytest.mark.parametrize("where", ["view", "trigger", "default", "check", "generated", "index"])
def test_a_schema_calls_nothing_that_has_effects(connect, place, where):
    home, base = place
    for number, call in enumerate(calls(home)):
        base.unlink(missing_ok=True)
        forge(base, [*tables(["home/agent.h5"]), {
            "view": ("view", "v", f"CREATE VIEW v AS SELECT {call} AS x"),
            "trigger": ("trigger", "t", f"CREATE TRIGGER t AFTER INSERT ON notes BEGIN SELECT {call}; END"),
            "default": ("table", "d", f"CREATE TABLE d(x DEFAULT ({call}), y)"),
            "check": ("table", "d", f"CREATE TABLE d(x CHECK ({call} IS NULL), y)"),
            "generated": ("table", "d", f"CREATE TABLE d(x AS ({call}), y)"),
            "index": ("index", "i", f"CREATE INDEX i ON notes({call})")}[where]])
        before = tree(home)
        for trusted in (0, 1):
            con = connect(base, isolation_level=None)
            con.execute(f"PRAGMA trusted_schema = {trusted}")
            list_all(con)
            for sql in ("SELECT * FROM v", "INSERT INTO notes VALUES (9, 'nine')", "INSERT INTO d(y) VALUES (1)",
                        "SELECT * FROM d", "SELECT * FROM notes", "REINDEX"):
                rows = attempt(con, sql)
                if "v" in sql or (" d" in sql and where != "view"):
                    assert not rows, f"{call} in a {where} gave {rows}"
            con.close()
        assert tree(home) == before, f"{number}: {call} in a {where}"


def test_untrusted_views_and_triggers_do_not_reach_the_tables(connect, place):
    """Virtual tables of the default kind work in views, unless the schema is not trusted."""
    home, base = place
    forge(base, [*tables(["home/agent.h5"]), ("view", "v", "CREATE VIEW v AS SELECT id, content FROM m0"),
                          ("trigger", "t", "CREATE TRIGGER t AFTER INSERT ON notes BEGIN"
                                           " INSERT INTO m0(content) VALUES (new.text); END")])
    before = tree(home)
    con = connect(base, isolation_level=None)
    con.execute("PRAGMA trusted_schema = 0")
    for sql in ("SELECT * FROM v", "INSERT INTO notes VALUES (9, 'nine')"):
        with pytest.raises(sqlite3.OperationalError, match="unsafe use of virtual table"):
            con.execute(sql).fetchall()
    con.close()
    assert tree(home) == before
