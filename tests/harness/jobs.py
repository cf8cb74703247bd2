"""Jobs for harness.forks: use a store from processes that may die at any moment.

The store under test has a table `memory`; beside it the host database has an ordinary table `notes`, written
in the same transactions. A host is named by its mode: the journal mode of its file, or 'memory' for a host
without a file.

SPDX-License-Identifier: MIT
"""
import ctypes
import os
import pathlib
import random
import resource
import signal
import sqlite3
import struct
import traceback

from conftest import open_connection

DIM = 4
COLUMNS = "id, content, session, importance, priority, embedding, timestamp"
WORDS = "amber brook cedar delta ember fjord grove heath inlet jetty knoll ledge".split()
MODES = ("wal", "delete", "memory")
BEFORE, HALF, AFTER = range(3)  # moments of killer.c


def warm():
    """Called once before the first fork: the module is loaded, and stays."""
    warm.con = open_connection()


def vector(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def killer():
    """The functions of the preloaded killer.c."""
    lib = ctypes.CDLL(None)
    lib.killer_arm.argtypes = [ctypes.c_long, ctypes.c_int]
    lib.killer_disarm.restype = ctypes.c_char_p
    return lib


def open_host(folder, mode, options=""):
    """A connection to the host in `folder`, with its tables; made when it is not there."""
    folder = pathlib.Path(folder)
    con = open_connection(":memory:" if mode == "memory" else folder / "host.db")
    if mode != "memory":
        con.execute(f"PRAGMA journal_mode = {mode}")
        con.execute("PRAGMA synchronous = NORMAL")
    con.execute("BEGIN")
    if not con.execute("SELECT 1 FROM sqlite_schema WHERE name = 'notes'").fetchall():
        path = folder / "agent.h5" if mode == "memory" else "agent.h5"  # relative to the host's folder
        con.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
        con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{path}', dim={DIM}, user_id TEXT,"
                    f" priority INTEGER{options})")
        con.execute("CREATE TRIGGER both AFTER INSERT ON notes WHEN new.text LIKE 'both %' BEGIN"
                    " INSERT INTO memory(id, content, session) VALUES (new.id, new.text, 'trigger'); END")
    con.execute("COMMIT")
    return con


def rows_of(con, table="memory"):
    return {row[0]: row[1:] for row in con.execute(f"SELECT {COLUMNS} FROM {table}")}


def state_of(con):
    """(rows of the store, rows of the ordinary table); checked: every way to the rows shows the same ones."""
    rows = rows_of(con)
    notes = dict(con.execute("SELECT id, text FROM notes"))
    listed = [row[0] for row in con.execute("SELECT id FROM memory ORDER BY id")]
    assert listed == sorted(rows), "ids twice or out of order"
    assert con.execute("SELECT count(*) FROM memory").fetchone() == (len(rows),)
    found = {row[0] for row in con.execute("SELECT id FROM memory WHERE content MATCH ?", (" ".join(WORDS),))}
    wanted = {key for key, row in rows.items() if row[0] and set(row[0].split()) & set(WORDS)}
    assert found == wanted, f"by words {sorted(found ^ wanted)} differ"
    near = {row[0] for row in con.execute("SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0, 0]'")}
    wanted = {key for key, row in rows.items() if row[4] is not None}
    assert near == wanted, f"by vector {sorted(near ^ wanted)} differ"
    for key in listed[:3] + listed[-3:]:
        assert con.execute(f"SELECT {COLUMNS} FROM memory WHERE id = ?", (key,)).fetchone()[1:] == rows[key]
    return rows, notes


# ---- a writer that works until it is killed

class Writer:
    """Random transactions on both tables; `rows` and `notes` are what ought to be there."""

    def __init__(self, channel, folder, mode, seed, options=""):
        self.channel, self.rng = channel, random.Random(seed)
        self.folder, self.mode, self.options = folder, mode, options
        self.con = open_host(folder, mode, options)
        self.rows, self.notes = state_of(self.con)

    def text(self):
        words = self.rng.choices(WORDS, k=self.rng.choice((1, 2, 4, 8, 40)))
        return self.rng.choice((None, "", "\0", "é " + " ".join(words), " ".join(words), " ".join(words)))

    def values(self):
        rng = self.rng
        return [self.text(), rng.choice((None, "s-1", "s-2")), round(rng.random(), 3),
                rng.choice((None, 0, -1, 7, 1 << 40)),
                rng.choice((None, vector(0, 0, 0, 0), vector(*(rng.uniform(-1, 1) for _ in range(DIM))))),
                float(rng.randrange(1 << 20))]

    def some(self, table):
        return self.rng.choice(sorted(table)) if table else None

    def insert(self):
        given, values = self.rng.random() < 0.5, self.values()
        key = max([0, *self.rows]) + self.rng.randint(1, 3) if given else None
        key = self.con.execute(f"INSERT INTO memory({COLUMNS}) VALUES (?,?,?,?,?,?,?)", [key, *values]).lastrowid
        assert key not in self.rows, f"id {key} was given twice"
        self.rows[key] = tuple(values)

    def replace(self):
        key, values = self.some(self.rows), self.values()
        if key is not None:
            self.con.execute(f"INSERT OR REPLACE INTO memory({COLUMNS}) VALUES (?,?,?,?,?,?,?)", [key, *values])
            self.rows[key] = tuple(values)

    def change(self, numbers):
        """numbers: (index in a row of `rows`, column name)"""
        key, values = self.some(self.rows), self.values()
        if key is not None:
            row = list(self.rows[key])
            for i, _ in numbers:
                row[i] = values[i]
            self.con.execute(f"UPDATE memory SET {', '.join(f'{name} = ?' for _, name in numbers)} WHERE id = ?",
                             [*(values[i] for i, _ in numbers), key])
            self.rows[key] = tuple(row)

    def change_heavy(self):
        self.change(self.rng.choice(([(0, "content")], [(4, "embedding")], [(1, "session"), (2, "importance")])))

    def change_small(self):
        self.change(self.rng.choice(([(2, "importance")], [(3, "priority")], [(2, "importance"), (3, "priority")])))

    def move(self):
        key = self.some(self.rows)
        if key is not None:
            to = max(self.rows) + 1
            self.con.execute("UPDATE memory SET id = ? WHERE id = ?", (to, key))
            self.rows[to] = self.rows.pop(key)

    def remove(self):
        key = self.some(self.rows)
        if key is not None:
            self.con.execute("DELETE FROM memory WHERE id = ?", (key,))
            del self.rows[key]

    def remove_many(self):
        low = sorted(self.rows)[:len(self.rows) // 2]
        if len(low) > 100:
            self.con.execute("DELETE FROM memory WHERE id <= ?", (low[-1],))
            self.rows = {key: row for key, row in self.rows.items() if key > low[-1]}

    def refused(self):
        """A statement that fails at its second row, and takes the first one with it."""
        key = self.some(self.rows)
        if key is not None:
            try:
                self.con.execute("INSERT INTO memory(id, content) VALUES (?, 'amber'), (?, 'brook')",
                                 (max(self.rows) + 1, key))
                raise AssertionError(f"id {key} was taken twice")
            except sqlite3.IntegrityError:
                pass

    def note(self):
        key, text = self.rng.randrange(200), self.text()
        self.con.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (key, text))
        self.notes[key] = text

    def note_gone(self):
        key = self.some(self.notes)
        if key is not None:
            self.con.execute("DELETE FROM notes WHERE id = ?", (key,))
            del self.notes[key]

    def both(self):
        """One statement whose trigger writes to the store."""
        key = max([1000, *self.rows, *self.notes]) + 1
        text = "both " + self.rng.choice(WORDS)
        self.con.execute("INSERT INTO notes VALUES (?, ?)", (key, text))
        self.notes[key] = text
        row = self.con.execute(f"SELECT {COLUMNS} FROM memory WHERE id = ?", (key,)).fetchone()
        assert row[:3] == (key, text, "trigger")
        self.rows[key] = row[1:]

    OPS = (insert, insert, insert, replace, change_heavy, change_small, change_small, move, remove, remove_many,
           refused, note, note, note_gone, both)

    def some_ops(self, most):
        for _ in range(self.rng.randint(1, most)):
            self.rng.choice(self.OPS)(self)

    def saved(self, name):
        """Work under a savepoint that is kept or taken back."""
        rows, notes = dict(self.rows), dict(self.notes)
        self.con.execute(f"SAVEPOINT {name}")
        self.some_ops(3)
        if name == "a" and self.rng.random() < 0.4:
            self.saved("b")
        if self.rng.random() < 0.5:
            self.con.execute(f"ROLLBACK TO {name}")
            self.rows, self.notes = rows, notes
            if self.rng.random() < 0.5:
                self.some_ops(2)
        self.con.execute(f"RELEASE {name}")

    def promise(self, rows, notes):
        """Tells the test what the coming COMMIT is to change."""
        def difference(old, new):
            return {key: new[key] for key in new if old.get(key, ()) != new[key]}, old.keys() - new.keys()
        self.channel.send(("intent", difference(rows, self.rows), difference(notes, self.notes)))

    def transaction(self):
        rows, notes = dict(self.rows), dict(self.notes)
        self.con.execute(self.rng.choice(("BEGIN", "BEGIN IMMEDIATE")))
        for _ in range(self.rng.randint(1, 2)):
            self.some_ops(4)
            if self.rng.random() < 0.3:
                self.saved("a")
        if self.rng.random() < 0.15:
            self.con.execute("ROLLBACK")
            self.rows, self.notes = rows, notes
            return
        self.promise(rows, notes)
        self.con.execute("COMMIT")
        self.channel.send(("done",))

    def alone(self):
        """One statement that commits by itself: two rows, or one here and one there."""
        rows, notes = dict(self.rows), dict(self.notes)
        key = max([1000, *self.rows, *self.notes]) + 1
        if self.rng.random() < 0.5:
            self.rows[key] = ("amber", "s-1", 0.5, None, None, 1.0)
            self.rows[key + 1] = ("brook", "s-1", 0.5, 5, None, 2.0)
            self.promise(rows, notes)
            self.con.execute("INSERT INTO memory(id, content, session, priority, timestamp) VALUES"
                             " (?, 'amber', 's-1', NULL, 1.0), (?, 'brook', 's-1', 5, 2.0)", (key, key + 1))
        else:
            self.notes[key] = "gone with it"
            for old in self.rows:
                self.rows[old] = (*self.rows[old][:3], key, *self.rows[old][4:])
            self.promise(rows, notes)
            self.con.execute("CREATE TEMP TRIGGER IF NOT EXISTS mark AFTER INSERT ON notes WHEN new.text ="
                             " 'gone with it' BEGIN UPDATE memory SET priority = new.id; END")
            self.con.execute("INSERT INTO notes VALUES (?, 'gone with it')", (key,))
        self.channel.send(("done",))

    def upkeep(self):
        what = self.rng.randrange(6)
        if what == 0 and self.mode != "memory":
            self.con.execute("PRAGMA wal_checkpoint").fetchall()
        elif what == 1:
            self.con.execute("SELECT h5mem_config('memory', 'synchronous', ?)",
                             (self.rng.choice(("off", "normal", "full")),)).fetchall()
        elif what == 2 and self.mode != "memory":
            self.con.close()
            self.con = open_host(self.folder, self.mode, self.options)
        elif what == 3:
            self.con.execute("SELECT h5mem_compact('memory')").fetchall()
        else:
            self.con.execute("SELECT h5mem_flush('memory')").fetchall()


def writer(channel, sync, **arguments):
    """Sends ("ready", rows, notes), then for each transaction ("intent", ...) before COMMIT and ("done",) after."""
    killer().killer_sync(sync)
    w = Writer(channel, **arguments)
    channel.send(("ready", w.rows, w.notes))
    while True:
        what = w.rng.random()
        if what < 0.7:
            w.transaction()
        elif what < 0.85:
            w.alone()
        else:
            w.upkeep()


def reader(channel, folder, mode):
    con = open_host(folder, mode)
    channel.send(state_of(con))
    con.close()


# ---- a connection driven from the test

def remote(channel, path, user=None):
    """Opens the host at `path`, as the user of that number, and runs what it is sent: (SQL, values), ("close",),
    ("kill at", call, moment), ("locks", errno of those that fail),
    ("limit", bytes a file may have, or None). Answers (rows, None) or (None, message)."""
    if user is not None:
        os.setgroups([])
        os.setegid(user)
        os.seteuid(user)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    con = open_connection(path)
    while True:
        try:
            what, *arguments = channel.recv()
        except EOFError:
            return
        try:
            rows = None
            if what == "close":
                con.close()
            elif what == "locks":
                killer().killer_locks(*arguments)
            elif what == "kill at":
                killer().killer_arm(*arguments)
            elif what == "limit":
                most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
                resource.setrlimit(resource.RLIMIT_FSIZE, (most if arguments[0] is None else arguments[0], most))
            else:
                rows = con.execute(what, *arguments).fetchall()
            channel.send((rows, None))
        except sqlite3.Error as error:
            channel.send((None, f"{error.sqlite_errorname}: {error}"))
        except Exception:
            channel.send((None, traceback.format_exc()))


class Remote:
    """The test's end of `remote`: a connection in a process of its own."""

    def __init__(self, server, path, **arguments):
        self.child = server.start("harness.jobs", "remote", path=str(path), **arguments)

    def ask(self, *message):
        rows, self.error = self.child.ask(message)
        return rows

    def __call__(self, sql, *values):
        """The rows of a statement that must succeed."""
        rows = self.ask(sql, values)
        assert self.error is None, f"{sql}: {self.error}"
        return rows

    def fails(self, sql, *values):
        """The message, with SQLite's name for the code, of a statement that must fail."""
        self.ask(sql, values)
        assert self.error is not None, f"{sql} succeeded"
        return self.error

    def close(self):
        """Closes the connection; the process ends."""
        self.ask("close")
        assert self.error is None, self.error
        self.child.channel.close()
        assert self.child.wait() == 0

    def kill(self):
        self.child.kill()
        assert self.child.wait() == -9
