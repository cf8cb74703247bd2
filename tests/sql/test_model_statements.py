"""test_model_statements.py - random statements on two hosts, one with h5mem tables, one with plain tables of that name

Both get the same SQL. After each statement both must have given the same rows or the same code of failure, changes(),
total_changes(), last_insert_rowid() and state of the transaction; again and again all tables are compared, and the
stores verified. Drawn from: rows one by one and many at once under every conflict clause, triggers that write to the
tables and raise, views with INSTEAD OF triggers, savepoints in any nesting and order, an attached host, ALTER RENAME,
DROP that is rolled back, CREATE inside a transaction, query_only switched on in a transaction, a COMMIT that is busy
because somebody reads, flush, compact and reopening.

`twin` is a second table over the store of the first, `spare` one over another store; the plain host knows twin as the
first. What else is drawn stands in statements_more.py: functions by which memories age, sessions, other connections,
copies of the host, a commit hook that vetoes.

What differs by nature is not drawn: ids that are assigned (the plain table is told them), RETURNING, UPSERT, triggers
on the table itself.

H5MEM_STATEMENTS says how many (default 4,000), H5MEM_SEED the seed.

SPDX-License-Identifier: MIT
"""
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess

import pytest

import statements_more

STATEMENTS = int(os.environ.get("H5MEM_STATEMENTS", 4000))
SEED = int(os.environ.get("H5MEM_SEED", random.SystemRandom().getrandbits(32)))
COLUMNS = "id, content, embedding, timestamp, session, importance, priority, label"
ALL = COLUMNS + ", tier, access_count"
PLAIN = ("id INTEGER PRIMARY KEY, content TEXT, embedding BLOB, timestamp REAL, session TEXT, importance REAL,"
         " priority INTEGER, label TEXT, tier TEXT DEFAULT 'working', access_count INTEGER DEFAULT 0")
CLAUSES = ["", "", "", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT", "OR ROLLBACK"]
SHARED = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT UNIQUE, n INTEGER CHECK (n < 90));
    CREATE TABLE log(n INTEGER);
    CREATE TRIGGER on_insert AFTER INSERT ON notes WHEN new.n % 4 = 0 BEGIN
        INSERT INTO memory(id, content, timestamp, importance) VALUES (new.id, new.text, 1.0, 0.5);
        INSERT INTO log VALUES (new.id);
    END;
    CREATE TRIGGER on_delete AFTER DELETE ON notes WHEN old.n % 4 = 1 BEGIN
        DELETE FROM memory WHERE id BETWEEN old.id AND old.id + 2;
        UPDATE memory SET priority = coalesce(priority, 0) + 1 WHERE id % 5 = old.n % 5;
    END;
    CREATE TRIGGER on_update AFTER UPDATE ON notes BEGIN
        UPDATE memory SET content = new.text WHERE id = new.id;
        SELECT RAISE(ABORT, 'abort') WHERE new.n = 70;
        SELECT RAISE(FAIL, 'fail') WHERE new.n = 71;
        SELECT RAISE(ROLLBACK, 'rollback') WHERE new.n = 72;
        SELECT RAISE(IGNORE) WHERE new.n = 73;
        INSERT OR REPLACE INTO memory(id, content, timestamp, importance) VALUES (new.id + 40, 'after', 2.0, 0.5);
    END;
    CREATE VIEW seen AS SELECT id, content, session, priority FROM memory WHERE importance >= 0.25;
    CREATE TRIGGER through INSTEAD OF UPDATE ON seen BEGIN
        UPDATE memory SET content = new.content, session = new.session WHERE id = old.id;
    END;
    CREATE TRIGGER into_view INSTEAD OF INSERT ON seen BEGIN
        INSERT INTO memory(id, content, timestamp, importance) VALUES (new.id, new.content, 3.0, 0.5);
    END;
"""


class Side:
    """One host with what is attached to it, and a reader of it."""

    def __init__(self, connect, veto, folder, name, virtual, mode):
        self.connect, self.veto, self.folder, self.name = connect, veto, folder, name
        self.virtual, self.mode = virtual, mode
        self.con = self.reader = self.said = None
        for file, store in (("aux", "other"), ("main", "agent")):
            con = connect(folder / f"{name}-{file}.db", isolation_level=None)
            con.execute(f"PRAGMA journal_mode = {mode}")
            for table in ("memory", "spare")[:1 + (file == "main")]:
                if virtual:
                    con.execute(f"CREATE VIRTUAL TABLE {table} USING h5mem('{name}-{store}-{table}.h5', dim=2,"
                                f" autoflush=20000, priority INTEGER, label TEXT{statements_more.LIFE})")
                else:
                    con.execute(f"CREATE TABLE {table}({PLAIN})")
            if file == "main" and virtual:
                con.execute(f"CREATE VIRTUAL TABLE twin USING h5mem('{name}-{store}-memory.h5')")
                con.execute("CREATE VIRTUAL TABLE sessions USING h5mem_sessions(memory)")
                con.execute("SELECT h5mem_consolidate('memory', 1)")  # so that no tick finds one due
            elif file == "main":
                con.executescript(statements_more.MORE_PLAIN)
            if file == "main":
                con.executescript(SHARED)
            con.close()
        self.open()

    def another(self, path=None):
        """A connection more, to the host or to another file."""
        con = self.connect(path or self.folder / f"{self.name}-main.db", isolation_level=None, timeout=0)
        con.enable_load_extension(True)
        con.load_extension(str(self.veto))
        return con

    def open(self):
        self.close()
        self.con = self.another()
        self.con.execute("PRAGMA synchronous = OFF")
        self.con.execute(f"ATTACH '{self.folder / self.name}-aux.db' AS aux")
        self.reader = self.connect(self.folder / f"{self.name}-main.db", isolation_level=None, timeout=0)

    def close(self):
        for con in (self.con, self.reader):
            if con:
                con.close()

    def run(self, sql, values=()):
        try:
            return self.con.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            self.said = str(error)
            return ("failed", error.sqlite_errorcode & 255)

    def read(self):
        """The reader begins, unless a COMMIT that was busy keeps new ones out; the code of that."""
        try:
            self.reader.execute("BEGIN")
            self.reader.execute("SELECT count(*) FROM notes").fetchall()
        except sqlite3.Error as error:
            self.reader.execute("ROLLBACK")
            return error.sqlite_errorcode & 255
        return None

    def counts(self, offset=0):
        """What a statement leaves behind on the connection."""
        changes, total, rowid = self.con.execute("SELECT changes(), total_changes(), last_insert_rowid()").fetchone()
        return changes, total + offset, rowid, self.con.in_transaction


class Twins(statements_more.More):
    def __init__(self, connect, veto, folder, mode, seed):
        self.rng, self.seed, self.number = random.Random(seed), seed, 0
        self.ours, self.plain = (Side(connect, veto, folder, name, name == "ours", mode) for name in ("ours", "plain"))
        self.offset, self.away, self.written = 0, False, set()
        self.sides, self.name, self.points, self.tail = (self.ours, self.plain), "memory", [], []
        self.fails = 0

    def wrong(self, what):
        tail = "\n".join(self.tail[-40:])
        raise AssertionError(f"seed {self.seed}, {self.ours.mode}, statement {self.number}: {what}; last errors:"
                             f" {self.ours.said}, {self.plain.said}\nafter\n{tail}")

    def same(self, sql, values=(), plain_values=None):
        """Runs it on both; gives what ours gave."""
        self.number += 1
        self.tail.append(f"{sql}  {values}" if values else sql)
        got = self.ours.run(sql, values)
        if plain_values is None:
            plain_values = values
        else:
            plain_values = (self.ours.con.execute("SELECT last_insert_rowid()").fetchone()[0], *plain_values[1:])
        want = self.plain.run(re.sub(r"\btwin\b", self.name, sql), plain_values)
        if got != want:
            self.wrong(f"{got}, not {want}")
        if self.find_name():
            self.note_written()
        a, b = self.ours.counts(), self.plain.counts(self.offset)
        if sql.startswith("DROP TABLE"):  # a DROP of ours runs a DELETE, which sets changes() to 0
            for side in self.sides:
                side.run("DELETE FROM log WHERE 0")
            a, b = self.ours.counts(), self.plain.counts(self.offset)
        if a != b:
            self.wrong(f"changes, total_changes, last_insert_rowid, in transaction are {a}, not {b}")
        if not a[3]:
            self.points = []
        self.fails += isinstance(got, tuple)
        return got

    def check(self):
        for table in (self.name, "aux.memory", "spare", "twin"):
            self.same(f"SELECT {ALL} FROM {table} ORDER BY id")
            self.same(f"SELECT count(*), count(embedding), sum(priority), max(id) FROM {table}")
        self.same("SELECT * FROM notes ORDER BY id")
        self.same("SELECT * FROM sessions ORDER BY id")
        self.same("SELECT count(*), sum(n) FROM log")

    def note_written(self):
        """Ids that were evicted and live again: whether such a one can be restored later is not asked."""
        rows = self.plain.con.execute(f"SELECT id FROM gone WHERE id IN (SELECT id FROM {self.name})").fetchall()
        self.written.update(row[0] for row in rows)

    # ---- what is drawn

    def key(self):
        return self.rng.randrange(1, 60)

    def text(self):
        return self.rng.choice((None, "", "amber", f"brook {self.rng.randrange(9)}", "cedar \0 delta", "é" * 9))

    def row(self, key):
        rng = self.rng
        return (key, self.text(), rng.choice((None, struct.pack("<2f", rng.randrange(4), 1))),
                float(rng.randrange(99)), rng.choice((None, "s-1", "s-2")), rng.randrange(5) / 4,
                rng.choice((None, 0, 7, -1 << 40)), rng.choice((None, "x", "y")))

    def table(self):
        return self.rng.choice((self.name, self.name, "twin", "spare" if self.away else "aux.memory", "spare"))

    def insert(self):
        clause, table = self.rng.choice(CLAUSES), self.table()
        values = ", ".join("?" * 8)
        if self.rng.random() < 0.25:
            row = self.row(None)
            self.same(f"INSERT INTO {table}({COLUMNS}) VALUES ({values})", row, row)
            return
        rows = [self.row(self.key()) for _ in range(self.rng.choice((1, 1, 2, 4)))]
        self.same(f"INSERT {clause} INTO {table}({COLUMNS}) VALUES {', '.join([f'({values})'] * len(rows))}",
                  sum(rows, ()))

    def insert_select(self):
        clause, low = self.rng.choice(CLAUSES), self.key()
        source = self.rng.choice((self.name, "twin", "aux.memory", "spare"))
        self.same(f"INSERT {clause} INTO {self.table()}(id, content, timestamp, importance) SELECT id +"
                  f" {self.rng.randrange(9)}, content, timestamp, importance FROM {source} WHERE id BETWEEN {low} AND"
                  f" {low + 4} ORDER BY id")

    def update(self):
        clause, table, key = self.rng.choice(CLAUSES), self.table(), self.key()
        what = self.rng.choice((
            "importance = 0.75", "priority = id", "content = coalesce(content, '') || 'x', label = 'z'",
            "embedding = NULL", "session = 's-3', timestamp = timestamp + 1", "importance = importance",
            "content = (SELECT max(text) FROM notes)", "label = CASE WHEN id % 2 THEN NULL ELSE label END"))
        where = self.rng.choice((f"id = {key}", f"id > {key}", f"id % 7 = {key % 7}", "priority IS NULL", "1",
                                 "session = 's-1'", f"id IN (SELECT id FROM notes WHERE n < {key})"))
        self.same(f"UPDATE {clause} {table} SET {what} WHERE {where}")

    def move(self):
        """One row: with several the order of visit would decide which one meets which."""
        clause, to = self.rng.choice(CLAUSES), self.rng.choice((self.key(), self.key() + 60))
        self.same(f"UPDATE {clause} {self.table()} SET id = {to}, content = 'moved' WHERE id = {self.key()}")

    def update_from(self):
        self.same(f"UPDATE {self.name} SET priority = s.n FROM notes s WHERE s.id = {self.name}.id AND s.n >"
                  f" {self.key()}")

    def delete(self):
        key = self.key()
        where = self.rng.choice((f"id = {key}", f"id = {key}", f"id % 11 = {key % 11}", f"id > {key + 30}",
                                 f"id IN (SELECT n FROM log WHERE n > {key})", "label = 'x'"))
        self.same(f"DELETE FROM {self.table()} WHERE {where}")

    def note(self):
        key, n, clause = self.key(), self.rng.choice((self.rng.randrange(95), 70, 71, 72, 73)), self.rng.choice(CLAUSES)
        kind = self.rng.randrange(4)
        if kind < 2:
            self.same(f"INSERT {clause} INTO notes VALUES (?, ?, ?)", (key, f"note {self.key()}", n))
        elif kind == 2:
            self.same(f"UPDATE {clause} notes SET n = {n}, text = text || '!' WHERE id % 9 = {key % 9}")
        else:
            self.same(f"DELETE FROM notes WHERE id BETWEEN {key} AND {key + 3}")

    def view(self):
        key = self.key()
        self.same(self.rng.choice((
            f"UPDATE seen SET content = 'seen' WHERE id > {key} AND id < {key + 9}",
            f"INSERT INTO seen(id, content) VALUES ({key}, 'through')",
            f"SELECT id, content, session, priority FROM seen WHERE id > {key} ORDER BY id LIMIT 5",
            "SELECT session, count(*) FROM seen GROUP BY session ORDER BY 1")))

    def begin(self):
        self.same(self.rng.choice(("BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT a")))

    def end(self):
        self.same(self.rng.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK")))

    def savepoint(self):
        name = self.rng.choice("abcd")
        kind = self.rng.randrange(5)
        if kind < 2:
            self.same(f"SAVEPOINT {name}")
            self.points.append(name)
        elif kind < 4:
            self.same(f"ROLLBACK TO {self.rng.choice(self.points) if self.points else name}")
        else:
            self.same(f"RELEASE {self.rng.choice(self.points) if self.points else name}")

    def schema(self):
        """Changes the schema, mostly inside a transaction; takes a DROP of the table back."""
        kind = self.rng.randrange(5)
        if kind == 0:
            self.same("CREATE TABLE extra(x)")
            self.insert()
            self.same("DROP TABLE IF EXISTS extra")
        elif kind == 1:
            self.same("SAVEPOINT dropping")
            if self.rng.random() < 0.5:
                self.insert()
            if not self.ours.con.in_transaction:  # the INSERT has rolled all back
                return
            self.same(f"DROP TABLE {self.name}")
            self.same(f"SELECT count(*) FROM {self.name}")
            self.same("ROLLBACK TO dropping")
            self.same("RELEASE dropping")
        elif kind == 2 and self.rng.random() < 0.3:
            self.same("ALTER TABLE notes ADD COLUMN later" if self.rng.random() < 0.05 else
                      "CREATE INDEX IF NOT EXISTS by_n ON notes(n)")
        elif kind == 3:
            self.same("CREATE TEMP TABLE IF NOT EXISTS t AS SELECT 1 AS x")
            self.same("DROP TABLE temp.t")
        else:
            self.same("DROP INDEX IF EXISTS by_n")

    def query_only(self):
        self.same("PRAGMA query_only = 1")
        for _ in range(self.rng.randint(1, 3)):
            self.rng.choice((self.insert, self.update, self.savepoint, self.delete, self.end))()
        self.same("PRAGMA query_only = 0")

    def busy(self):
        """Somebody reads while COMMIT comes: with a rollback journal it is busy, and comes again or does not."""
        came = [side.read() for side in self.sides]
        if came[0] != came[1]:
            self.wrong(f"a reader: {came}")
        for _ in range(2):
            self.insert()
            self.same("COMMIT")
            if self.rng.random() < 0.5:
                self.update()
        for side in self.sides:
            if side.reader.in_transaction:
                side.reader.execute("COMMIT")
        if self.rng.random() < 0.5:
            self.same("COMMIT")

    def upkeep(self):
        if self.ours.con.in_transaction:
            return
        kind = self.rng.randrange(12)
        if kind == 0:
            for side in self.sides:
                side.open()
            self.offset = 0
        elif kind < 9:
            self.tail.append("flush")
            what = self.rng.choice(("flush", "flush", "compact"))
            table = self.rng.choice((self.name, "twin", "aux.memory"))
            self.ours.con.execute(f"SELECT h5mem_{what}('{table}')").fetchall()
            if what == "compact" and table != "aux.memory":
                self.plainly(("DELETE FROM gone",))
                self.agree()
        else:
            verdict = self.ours.con.execute(
                f"SELECT h5mem_verify('{self.name}'), h5mem_verify('aux.memory')").fetchone()
            if verdict != ("ok", "ok"):
                self.wrong(f"h5mem_verify: {verdict}")
        if self.ours.counts() != self.plain.counts(self.offset):
            self.wrong(f"upkeep has left {self.ours.counts()}, not {self.plain.counts()}")

    WEIGHTS = ((insert, 20), (insert_select, 5), (update, 16), (move, 6), (update_from, 3), (delete, 8), (note, 14),
               (view, 5), (begin, 7), (end, 6), (savepoint, 16), (schema, 3), (query_only, 1), (busy, 1), (upkeep, 3),
               (statements_more.More.life, 12), (statements_more.More.sessions, 8), (statements_more.More.hook, 2),
               (statements_more.More.rename, 2), (statements_more.More.other_connection, 2),
               (statements_more.More.copied_host, 1))

    def step(self):
        what, = self.rng.choices([w[0] for w in self.WEIGHTS], [w[1] for w in self.WEIGHTS])
        what(self)


@pytest.fixture(scope="module")
def veto(tmp_path_factory):
    cc = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if cc is None:
        pytest.skip("no C compiler for the commit hook")
    lib = tmp_path_factory.mktemp("veto") / "veto.so"
    source = os.path.join(os.path.dirname(__file__), "veto.c")
    subprocess.run([*cc.split(), "-shared", "-fPIC", "-O1", "-o", str(lib), source], check=True)
    return lib.with_suffix("")


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_statements(connect, veto, tmp_path, report, mode):
    twins = Twins(connect, veto, tmp_path, mode, SEED)
    while twins.number < STATEMENTS // 2:
        twins.step()
        if twins.rng.random() < 0.05:
            twins.check()
    if twins.ours.con.in_transaction:
        twins.same("COMMIT")
    twins.check()
    for side in twins.sides:
        side.open()
    twins.offset = 0
    twins.check()
    for side in twins.sides:
        side.close()
    report(f"{mode}, SQLite {sqlite3.sqlite_version}, seed {SEED}: {twins.number} statements, {twins.fails} failed"
           " alike")
