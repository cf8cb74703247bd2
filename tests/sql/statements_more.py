"""statements_more.py - what test_model_statements.py draws beside plain statements

LIFE      h5mem_consolidate, _tick, _touch, _restore, _forget and _record run on ours; the plain host does the same in
          SQL, with what was evicted in a table `gone`. How rows are chosen is asked in test_life.py: a dry pass tells.
SESSIONS  the companion table `sessions` beside a plain one.
HOSTS     another connection of the same host writes; a copy of the host's file, made in mid-life, writes to the same
          store (the plain side takes another connection for it).
HOOK      veto.c refuses a COMMIT.
NAMES     ALTER TABLE ... RENAME, also inside what is rolled back.

Functions leave changes() and last_insert_rowid() as their nested statements do: after one both sides run the same plain
statement, and from then on total_changes() is compared by the difference.

SPDX-License-Identifier: MIT
"""
import json
import shutil

LIFE = (", working_capacity=12, episodic_capacity=18, auto_importance=off, importance_access=0, merge_distance=0,"
        " consolidate_after=1000000000, autocompact=1")
MORE_PLAIN = ("CREATE TABLE gone AS SELECT * FROM memory WHERE 0; CREATE UNIQUE INDEX gone_id ON gone(id);"
              "CREATE TABLE sessions(id TEXT PRIMARY KEY, parent TEXT, start REAL, \"end\" REAL, channel TEXT,"
              " summary TEXT) WITHOUT ROWID")
NAMES = ("memory", "renamed")
LATER = 5000


class More:
    """Mixed into Twins."""

    def agree(self):
        """After what differs in its counts: the same statement on both, and the difference of totals from now on."""
        for side in self.sides:
            side.con.execute("INSERT INTO log VALUES (0)")
        self.offset = 0
        a, b = self.ours.counts(), self.plain.counts()
        self.offset = a[1] - b[1]
        if a != (b[0], b[1] + self.offset, *b[2:]):
            self.wrong(f"then changes, total_changes, last_insert_rowid, in transaction are {a}, not {b}")

    def function(self, sql, *values):
        self.number += 1
        self.tail.append(f"{sql}  {values}")
        got = self.ours.run(sql, values)
        if isinstance(got, tuple):
            self.wrong(f"{got}")
        return got[0][0]

    def plainly(self, *statements):
        """On the plain side, as one."""
        self.plain.con.execute("SAVEPOINT function")
        for sql, *values in statements:
            self.plain.con.execute(sql.replace("memory", self.name), values)
        self.plain.con.execute("RELEASE function")

    def ask_plain(self, sql, *values):
        return [row[0] for row in self.plain.con.execute(sql.replace("memory", self.name), values)]

    # ---- life

    def consolidate(self):
        now = LATER + self.rng.randrange(1000)
        dry = json.loads(self.function("SELECT h5mem_consolidate(?, ?, 'dry')", self.name, now))
        done = json.loads(self.function("SELECT h5mem_consolidate(?, ?)", self.name, now))
        moves = dry.pop("moves")
        if dry != done:
            self.wrong(f"a pass did {done}, a dry one {dry}")
        todo = []
        for move in moves:
            if move["do"] == "promote":
                todo.append(("UPDATE memory SET tier = ? WHERE id = ?", move["to"], move["id"]))
            else:
                todo += [("INSERT OR REPLACE INTO gone SELECT * FROM memory WHERE id = ?", move["id"]),
                         ("DELETE FROM memory WHERE id = ?", move["id"])]
                if not self.ours.con.in_transaction:
                    self.written.discard(move["id"])
        self.plainly(*todo)

    def touch(self):
        for key in self.ask_plain(f"SELECT id FROM memory WHERE id >= {self.key()} ORDER BY id LIMIT 1"):
            self.function("SELECT h5mem_touch(?, ?, ?)", self.rng.choice((self.name, "twin")), key, LATER)
            self.plainly(("UPDATE memory SET access_count = access_count + 1 WHERE id = ?", key))

    def tick(self):
        self.now = getattr(self, "now", 100) + self.rng.randrange(9)
        self.function("SELECT h5mem_tick(?, ?)", self.name, self.now)

    def restore(self):
        old = self.ask_plain("SELECT id FROM gone")
        key = self.rng.choice(old) if old and self.rng.random() < 0.9 else self.key()
        want = key in old and not self.ask_plain("SELECT 1 FROM memory WHERE id = ?", key)
        got = self.function("SELECT h5mem_restore(?, ?)", self.rng.choice((self.name, "twin")), key)
        if got != want and not (want and key in self.written):
            self.wrong(f"restored {got}, not {want}")
        if got:
            self.plainly(("INSERT INTO memory SELECT * FROM gone WHERE id = ?", key),
                         ("DELETE FROM gone WHERE id = ?", key))

    def forget(self):
        key = self.key()
        old = self.ask_plain("SELECT 1 FROM gone WHERE id = ?", key) and key not in self.written
        lives = self.ask_plain("SELECT 1 FROM memory WHERE id = ?", key)
        got = self.function("SELECT h5mem_forget(?, 'id', ?)", self.name, key)
        if got != bool(lives or old) and key not in self.written:
            self.wrong(f"forgot {got}, not {bool(lives or old)}")
        self.plainly(("DELETE FROM memory WHERE id = ?", key), ("DELETE FROM gone WHERE id = ?", key))

    def record(self):
        texts = [f"amber {self.rng.randrange(1000)} brook", self.rng.choice((None, f"cedar {self.rng.randrange(99)}"))]
        said = json.loads(self.function("SELECT h5mem_record(?, ?, ?, 's-9', 77.0, NULL, NULL)", self.name, *texts))
        insert = "INSERT INTO memory(id, content, session, timestamp, importance) VALUES (?, ?, 's-9', 77.0, 0.5)"
        self.plainly(*((insert, key, text) for key, text in zip(said["saved"], texts)))
        if len(said["saved"]) != 2 - (texts[1] is None):
            self.wrong(f"recorded {said}")

    def life(self):
        if not self.ours.con.execute("PRAGMA query_only").fetchone()[0]:
            self.rng.choice((self.consolidate, self.touch, self.tick, self.restore, self.restore, self.forget,
                             self.record))()
            self.agree()

    # ---- sessions

    def sessions(self):
        rng = self.rng
        clause = rng.choice(("", "", "OR REPLACE", "OR IGNORE", "OR FAIL", "OR ABORT", "OR ROLLBACK"))
        key = rng.choice("defghijk")
        kind = rng.randrange(6)
        if kind < 3:
            rows = [(rng.choice("defghijk"), rng.choice((None, "a", "b")), float(rng.randrange(9)),
                     rng.choice((None, 9.5)), rng.choice((None, "mail")), self.text())
                    for _ in range(rng.choice((1, 3)))]
            self.same(f"INSERT {clause} INTO sessions VALUES {', '.join(['(?, ?, ?, ?, ?, ?)'] * len(rows))}",
                      sum(rows, ()))
        elif kind < 5:
            what = rng.choice(("\"end\" = start + 1", "summary = id || 'x'", "channel = NULL", "parent = 'c'"))
            self.same(f"UPDATE {clause} sessions SET {what} WHERE id {rng.choice(('=', '>', '<='))} '{key}'")
        else:
            self.same(f"DELETE FROM sessions WHERE id {rng.choice(('=', '='))} '{key}'")

    # ---- other hosts

    def elsewhere(self, ours, plain, steps):
        """Some statements through other connections."""
        keep = self.ours.con, self.plain.con, self.offset, self.points
        self.ours.con, self.plain.con, self.offset, self.points, self.away = ours, plain, 0, [], True
        try:
            kept_out = [side.run("SELECT 0 FROM sqlite_schema WHERE 0") for side in self.sides]
            if kept_out != [[], []]:  # by a COMMIT that was busy
                if kept_out[0] != kept_out[1]:
                    self.wrong(f"another connection: {kept_out}")
                return
            self.find_name()
            for side in self.sides:
                side.con.execute("PRAGMA synchronous = OFF")
            for _ in range(steps):
                self.rng.choice((self.insert, self.insert, self.update, self.delete, self.move, self.begin, self.end,
                                 self.savepoint, self.sessions, self.check_here))()
            if self.ours.con.in_transaction:
                self.same("COMMIT")
            if self.ours.con.in_transaction:
                self.same("ROLLBACK")
        finally:
            for side in self.sides:
                side.con.close()
            self.ours.con, self.plain.con, self.offset, self.points = keep
            self.away = False
            self.find_name()

    def check_here(self):
        self.same(f"SELECT count(*), max(id) FROM {self.table()}")

    def other_connection(self):
        """Of the same host. When a transaction is open here it has written, so that both are refused alike."""
        if self.ours.con.in_transaction:
            self.same("UPDATE notes SET n = n WHERE id = -1")
            if not self.ours.con.in_transaction:
                return
        self.tail.append("-- another connection")
        self.elsewhere(*(side.another() for side in self.sides), steps=self.rng.randint(1, 4))
        self.tail.append("-- back")

    def copied_host(self):
        """A copy of the host's file goes on with the same store."""
        if self.ours.con.in_transaction:
            return
        # A COMMIT that failed at its end stays in doubt until this host writes again, and only this host may settle it.
        self.ours.con.execute("SELECT h5mem_flush('twin'), h5mem_flush('spare')").fetchall()
        if self.ours.con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return
        copy = self.ours.folder / "ours-copy.db"
        for suffix in ("", "-wal", "-shm", "-journal"):
            (self.ours.folder / f"ours-copy.db{suffix}").unlink(missing_ok=True)
        shutil.copy(self.ours.folder / "ours-main.db", copy)
        self.tail.append("-- a copy of the host")
        self.elsewhere(self.ours.another(copy), self.plain.another(), steps=self.rng.randint(1, 5))
        self.tail.append("-- back")

    # ---- the rest

    def hook(self):
        self.same("SELECT veto(1)")
        self.rng.choice((self.insert, self.update, self.delete, self.note, self.end, self.sessions))()
        self.same("SELECT veto(0)")

    def rename(self):
        self.same(f"ALTER TABLE {self.name} RENAME TO {NAMES[self.name == NAMES[0]]}")

    def find_name(self):
        """The table's name now: a ROLLBACK may have brought back another. False: there is none."""
        row = self.plain.con.execute("SELECT name FROM sqlite_schema WHERE name IN (?, ?) AND type = 'table'",
                                     NAMES).fetchone()
        self.name = row[0] if row else self.name
        return row is not None
