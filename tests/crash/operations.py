"""Operations that test_kill.py interrupts, and the look at what they left. Jobs for harness.forks.

Each operation works on a copy of the same prepared folder: a store of ten rows, seven in the file, three in the
log, and a host with two notes. `other.db` is a second host of the same store.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import sqlite3

from conftest import open_connection
from harness.jobs import killer, open_host, rows_of, state_of, vector

BIG = "amber " * 2000  # one such row passes the autoflush of the prepared store
AUTOFLUSH = 8192

# name: statements, run one by one
OPERATIONS = {
    "insert": ["INSERT INTO memory(id, content, session) VALUES (20, 'amber', 's-2')"],
    "insert-trigger": ["INSERT INTO notes VALUES (30, 'both amber')"],
    "update-text": ["UPDATE memory SET content = 'delta', priority = 9 WHERE id IN (2, 9)"],
    "update-small": ["UPDATE memory SET importance = 0.25, priority = id WHERE id IN (1, 3, 8)"],
    "delete": ["DELETE FROM memory WHERE id IN (4, 10)"],
    "replace": ["INSERT OR REPLACE INTO memory(id, content, timestamp) VALUES (5, 'ember', 1.0)"],
    "move": ["UPDATE memory SET id = id + 100 WHERE id > 6"],
    "transaction": [
        "BEGIN",
        "INSERT INTO notes VALUES (3, 'three')",
        "INSERT INTO memory(id, content) VALUES (20, 'amber'), (21, 'brook')",
        "UPDATE memory SET content = 'fjord' WHERE id IN (1, 9)",
        "UPDATE memory SET priority = 77 WHERE id IN (2, 21)",
        "DELETE FROM memory WHERE id IN (3, 8)",
        "UPDATE notes SET text = 'changed' WHERE id = 1",
        "COMMIT"],
    "savepoint": [
        "BEGIN",
        "INSERT INTO memory(id, content) VALUES (20, 'amber')",
        "INSERT INTO notes VALUES (3, 'three')",
        "SAVEPOINT s",
        "INSERT INTO memory(id, content) VALUES (21, 'brook')",
        "INSERT INTO notes VALUES (4, 'four')",
        "DELETE FROM memory WHERE id < 5",
        "ROLLBACK TO s",
        "UPDATE memory SET priority = 1 WHERE id = 20",
        "COMMIT"],
    "rollback": [
        "BEGIN", "INSERT INTO memory(id, content) VALUES (20, 'amber')", "INSERT INTO notes VALUES (3, 'three')",
        "DELETE FROM memory WHERE id < 5", "ROLLBACK"],
    "full": [  # the store syncs at COMMIT
        "SELECT h5mem_config('memory', 'synchronous', 'full')",
        "INSERT INTO notes VALUES (30, 'both amber')"],
    "consolidate": [  # promotes, evicts and rates rows of the file and of the log, with their events
        "BEGIN",
        "SELECT h5mem_config('memory', 'working_capacity', 4), h5mem_config('memory', 'promote_importance', 0.3)",
        "INSERT INTO notes VALUES (3, 'three')",
        "SELECT h5mem_touch('memory', 2, 20), h5mem_consolidate('memory', 100), h5mem_tick('memory', 200)",
        "COMMIT"],
    "flush": ["SELECT h5mem_flush('memory')"],
    "compact": ["SELECT h5mem_compact('memory')"],
    "write-and-compact": ["INSERT INTO notes VALUES (30, 'both amber')", "DELETE FROM memory WHERE id = 2",
                          "SELECT h5mem_compact('memory')"],
    "backup": ["SELECT h5mem_backup('memory', 'copy.h5')"],
    "autoflush": [f"BEGIN; INSERT INTO notes VALUES (3, 'three'); INSERT INTO memory(id, content) VALUES (20, '{BIG}');"
                  " COMMIT"],
    "close": ["SELECT count(*) FROM memory", "close"],
    "write-and-close": ["INSERT INTO notes VALUES (30, 'both amber')", "close"],
    "create": ["CREATE VIRTUAL TABLE fresh USING h5mem('fresh.h5', dim=3)"],
    "create-and-insert": [
        "BEGIN", "CREATE VIRTUAL TABLE fresh USING h5mem('fresh.h5', dim=3)", "INSERT INTO notes VALUES (3, 'three')",
        "INSERT INTO fresh(id, content) VALUES (1, 'amber')", "INSERT INTO memory(id, content) VALUES (20, 'amber')",
        "COMMIT"],
    "create-again": ["CREATE VIRTUAL TABLE again USING h5mem('agent.h5')",
                     "INSERT INTO again(id, content) VALUES (20, 'amber')"],
    "rename-and-insert": ["BEGIN", "INSERT INTO notes VALUES (30, 'both amber')",
                          "ALTER TABLE notes ADD COLUMN more", "DELETE FROM memory WHERE id = 1", "COMMIT"],
    "drop": ["DROP TABLE memory"],
}
FILE_HOSTS_ONLY = ("create", "create-and-insert", "create-again", "rename-and-insert", "drop")


def connect(folder, mode):
    os.chdir(folder)
    return open_host(folder, mode)


def prepare(channel, folder, mode):
    """Makes the folder; ends without closing anything, so that the log keeps its rows."""
    killer().killer_sync(0)
    con = open_host(folder, mode, f", autoflush={AUTOFLUSH}")
    con.execute("INSERT INTO notes VALUES (1, 'one'), (2, 'two')")
    for key in range(1, 11):
        con.execute("INSERT INTO memory(id, content, session, embedding, timestamp) VALUES (?, ?, ?, ?, ?)",
                    (key, f"amber cedar {key}", f"s-{key % 2}", vector(1, key, 0, 1), key))
        if key == 7:
            con.execute("SELECT h5mem_flush('memory')").fetchall()
    other = open_connection(pathlib.Path(folder, "other.db"))
    other.execute("CREATE VIRTUAL TABLE other USING h5mem('agent.h5')")
    channel.send(None)
    os._exit(0)


def run(con, sql):
    if sql == "close":
        con.close()
    elif ";" in sql:
        con.executescript(sql)
    else:
        con.execute(sql).fetchall()


def interrupt(channel, folder, mode, name, at=0, moment=0, steps=None):
    """Runs an operation under the killer. Sends None after each statement, at the end its calls."""
    lib = killer()
    lib.killer_sync(0)
    con = connect(folder, mode)
    lib.killer_arm(at, moment)
    for sql in OPERATIONS[name][:steps]:
        run(con, sql)
        channel.send(None)
    channel.send(lib.killer_disarm().decode())
    os._exit(0)


def look(con, mode):
    """What there is: the tables, rows of memory without their times, an option, notes, rows of fresh."""
    there = [row[0] for row in con.execute("SELECT name FROM sqlite_schema WHERE name IN ('again', 'fresh',"
                                           " 'memory') ORDER BY name")]
    seen = {"tables": there}
    if "memory" in there:
        rows, notes = state_of(con)
        seen["rows"] = {key: row[:-1] for key, row in rows.items()}
        seen["synchronous"] = con.execute("SELECT h5mem_config('memory', 'synchronous')").fetchone()[0]
    if "again" in there:
        assert rows_of(con, "again") == rows, "two tables show one store differently"
    if "fresh" in there:
        seen["fresh"] = con.execute("SELECT id, content FROM fresh ORDER BY id").fetchall()
    if os.path.exists("copy.h5"):
        copy = open_connection()
        copy.execute("CREATE VIRTUAL TABLE copy USING h5mem('copy.h5')")
        seen["copy"] = {key: row[:-1] for key, row in rows_of(copy, "copy").items()}
        copy.close()
    if mode != "memory":
        seen["notes"] = dict(con.execute("SELECT id, text FROM notes"))
    return seen


def look_by_other():
    """The rows as a second host sees them, which knows nothing of the first one's transactions."""
    other = open_connection("other.db")
    rows = {key: row[:-1] for key, row in rows_of(other, "other").items()}
    other.close()
    return rows


def after_write(seen):
    """What inspect's write makes of a state."""
    seen = dict(seen)
    if "notes" in seen:
        seen["notes"] = {**seen["notes"], 2: "after"}
    if "rows" in seen:
        rows = seen["rows"] = dict(seen["rows"])
        if 6 in rows:
            rows[6] = (*rows[6][:3], 5, *rows[6][4:])
        rows[500] = ("after", None, 0.5, None, None)
    return seen


def write(con):
    """The write whose effect after_write tells."""
    con.execute("BEGIN")
    con.execute("UPDATE notes SET text = 'after' WHERE id = 2")
    if con.execute("SELECT 1 FROM sqlite_schema WHERE name = 'memory'").fetchone():
        # Not by one id: then SQLite keeps the reading cursor open while it writes.
        con.execute("UPDATE memory SET priority = 5 WHERE id BETWEEN 6 AND 6")
        con.execute("INSERT INTO memory(id, content) VALUES (500, 'after')")
    con.execute("COMMIT")


def go_on(con, mode, written):
    """Flushes, numbers rows, finds no fault, makes the copy or the table that a kill has prevented."""
    if "rows" in written:
        con.execute("SELECT h5mem_flush('memory')").fetchall()
        assert look(con, mode) == written, "a flush has changed the rows"
        con.execute("INSERT INTO memory(content) VALUES ('one more')")
        assert con.execute("SELECT max(id), count(*) FROM memory").fetchone() == (501, len(written["rows"]) + 1)
        con.execute("DELETE FROM memory WHERE id = 501")
        assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)
    if os.path.exists("agent.h5-new"):  # of a compact; the next one takes it away
        con.execute("SELECT h5mem_compact('memory')").fetchall()
        assert look(con, mode) == written, "a compact has changed the rows"
    if os.path.exists("copy.h5-wal") and not os.path.exists("copy.h5"):  # of a backup, whose next try names it
        try:
            con.execute(OPERATIONS["backup"][0]).fetchall()
            raise AssertionError("half a backup was written over")
        except sqlite3.Error as error:
            assert "copy.h5-wal" in str(error), error
        os.unlink("copy.h5-wal")
        con.execute(OPERATIONS["backup"][0]).fetchall()
        assert look(con, mode)["copy"] == written["rows"]
    if "fresh" not in written:
        con.execute(OPERATIONS["create"][0])
        assert con.execute("SELECT count(*) FROM fresh").fetchone() == (0,)
        con.execute("INSERT INTO fresh(content) VALUES ('ledge')")
        assert con.execute("SELECT max(content) FROM fresh WHERE content MATCH 'ledge'").fetchone() == ("ledge",)
    assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def inspect(channel, folder, mode, read_first):
    """Sends what a fresh process sees, what it sees after a write of its own, and what is left when all is closed."""
    lib = killer()
    lib.killer_sync(0)
    con = connect(folder, mode)
    by_other = look_by_other() if read_first else None
    found = look(con, mode) if read_first else None
    write(con)
    written = look(con, mode)
    go_on(con, mode, written)
    con.close()
    left = sorted(path.name for path in pathlib.Path(folder).iterdir())
    channel.send((by_other, found, written, look_by_other(), left))


def back_up(channel, folder, mode):
    """Sends what a fresh process sees, and what is in a backup that it makes before anything else is written."""
    killer().killer_sync(0)
    con = connect(folder, mode)
    found = look(con, mode)["rows"]
    con.execute("SELECT h5mem_backup('memory', 'later.h5')").fetchall()
    copy = open_connection()
    copy.execute("CREATE VIRTUAL TABLE copy USING h5mem('later.h5')")
    channel.send((found, {key: row[:-1] for key, row in rows_of(copy, "copy").items()}))
    os._exit(0)


# ---- two attached hosts, each with a store, or both with one

SIDES = ("main", "aux")
BOTH = ["BEGIN", "INSERT INTO main.notes VALUES (9, 'nine')",
        "INSERT INTO aux.memory(id, content) VALUES (20, 'amber')",
        "INSERT INTO main.memory(id, content) VALUES (30, 'brook')", "INSERT INTO aux.notes VALUES (9, 'nine')",
        "UPDATE aux.memory SET content = 'cedar' WHERE id = 1", "COMMIT"]


def prepare_attached(channel, folder, mode, stores):
    killer().killer_sync(0)
    for side, store in zip(SIDES, stores):
        con = open_connection(pathlib.Path(folder, f"{side}.db"))
        con.execute(f"PRAGMA journal_mode = {mode}")
        con.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
        con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{store}', dim=3)")
        con.execute("INSERT OR REPLACE INTO memory(id, content) VALUES (1, 'one')")
    channel.send(None)
    os._exit(0)


def attached(folder):
    os.chdir(folder)
    con = open_connection("main.db")
    con.execute("ATTACH 'aux.db' AS aux")
    return con


def interrupt_attached(channel, folder, at, moment):
    lib = killer()
    lib.killer_sync(0)
    con = attached(folder)
    lib.killer_arm(at, moment)
    for sql in BOTH:
        con.execute(sql)
    channel.send(lib.killer_disarm().decode())
    os._exit(0)


def inspect_attached(channel, folder, together):
    """For each side: is its note there, and the rows of its store; before and after a write. Apart: the side that
    wrote first comes first, since it alone can decide what is in doubt."""
    killer().killer_sync(0)
    both = attached(folder) if together else None
    cons = {side: both or open_connection(pathlib.Path(folder, f"{side}.db")) for side in SIDES}
    at = {side: f"{side}." if together else "" for side in SIDES}

    def look_at(side):
        return (cons[side].execute(f"SELECT count(*) FROM {at[side]}notes").fetchone()[0],
                cons[side].execute(f"SELECT id, content FROM {at[side]}memory ORDER BY id").fetchall())

    first = {}
    for side in ("aux", "main"):
        first[side] = look_at(side)
        cons[side].execute(f"UPDATE {at[side]}memory SET importance = 1 WHERE id < 100")
    second = {side: look_at(side) for side in SIDES}
    for con in cons.values():
        con.close()
    channel.send((first, second))
