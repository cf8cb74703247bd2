"""test_windows.py - windows of time and orders by time, against a plain table.

Rows in the log, in the file, in the open transaction; in order, out of order, many of one time; deleted, moved to
another time, compacted; and a file without /index/time, as older ones are.

SPDX-License-Identifier: MIT
"""

import random

import h5py
import pytest

WINDOWS = ["timestamp BETWEEN {a} AND {b}", "timestamp >= {a}", "timestamp < {b}", "timestamp = {a}",
           "timestamp > {a} AND timestamp <= {b}", "timestamp > {b} AND timestamp < {a}", "timestamp IS NOT NULL",
           "timestamp >= {a}.5", "timestamp IN ({a}, {b})", "timestamp <> {a}", "timestamp > 1e300",
           "timestamp < -9e999", "timestamp >= 9007199254740993", "1"]
OTHERS = ["", " AND session = 's1'", " AND content LIKE 'row 1%'", " AND importance > 0.5", " AND id % 3 = 0"]
ORDERS = ["timestamp, id", "timestamp DESC, id", "timestamp DESC, id DESC", "id", "id DESC"]


class Pair:
    """The same rows in an h5mem table and in a plain one."""

    def __init__(self, con, kind, seed):
        self.con, self.kind, self.rng, self.last = con, kind, random.Random(seed), 0
        con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
        con.execute("CREATE TABLE plain(id INTEGER PRIMARY KEY, content, timestamp REAL, session, importance REAL)")

    def time(self):
        self.last += self.rng.randint(0, 3)
        return {"in order": self.last, "almost": self.last - (self.rng.random() < 0.05) * 50,
                "ties": self.last // 40, "any": self.rng.randint(-200, 600)}[self.kind]

    def both(self, sql, values=()):
        for name in ("memory", "plain"):
            self.con.execute(sql.format(name), values)

    def fill(self, n):
        for _ in range(n):
            row_id = self.con.execute("SELECT coalesce(max(id), 0) + 1 FROM plain").fetchone()[0]
            row_id += self.rng.choice([0, 0, 0, 2])
            self.both("INSERT INTO {}(id, content, timestamp, session, importance) VALUES (?, ?, ?, ?, ?)",
                      (row_id, f"row {row_id}", self.time(), f"s{self.rng.randrange(3)}", self.rng.random()))

    def change(self):
        low = self.rng.randrange(200)
        self.both(f"DELETE FROM {{}} WHERE id % 17 = {low % 17}")
        self.both(f"UPDATE {{}} SET timestamp = timestamp + {low - 100} WHERE id % 13 = {low % 13}")
        self.both(f"UPDATE {{}} SET session = 's1' WHERE id % 11 = {low % 11}")

    def check(self, n=60):
        for _ in range(n):
            a, b = sorted(self.rng.randint(-250, 700) if self.kind == "any" else self.rng.randint(-5, self.last + 5)
                          for _ in range(2))
            where = self.rng.choice(WINDOWS).format(a=a, b=b) + self.rng.choice(OTHERS)
            order, limit = self.rng.choice(ORDERS), self.rng.choice(["", " LIMIT 10", " LIMIT 3 OFFSET 5"])
            sql = f"SELECT id, timestamp FROM {{}} WHERE {where} ORDER BY {order}{limit}"
            assert self.con.execute(sql.format("memory")).fetchall() == self.con.execute(
                sql.format("plain")).fetchall(), sql
            sql = f"SELECT count(*), sum(id), min(timestamp), max(timestamp) FROM {{}} WHERE {where}"
            assert self.con.execute(sql.format("memory")).fetchall() == self.con.execute(
                sql.format("plain")).fetchall(), sql


@pytest.mark.parametrize("kind", ["in order", "almost", "ties", "any"])
@pytest.mark.parametrize("seed", [1, 2])
def test_as_a_plain_table(connect, in_tmp, kind, seed):
    con = connect("host.db")
    pair = Pair(con, kind, seed)
    pair.check(5)
    for step in range(12):
        con.execute("BEGIN")
        pair.fill(pair.rng.choice([1, 5, 60]))
        if step % 3 == 1:
            pair.change()
        pair.check(8)
        con.execute("ROLLBACK" if pair.rng.random() < 0.2 else "COMMIT")
        pair.check(8)
        if pair.rng.random() < 0.7:
            con.execute("SELECT h5mem_flush('memory')").fetchall()
            pair.check(20)
        assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)
    for how in ("optimize", "compact"):
        con.execute(f"SELECT h5mem_{how}('memory')").fetchall()
        assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)
        pair.check()
    con.close()
    pair.con = connect("host.db")
    pair.check()


def test_many_runs(connect, in_tmp):
    """More runs than are merged as they are read: the rows are sorted instead."""
    con = connect("host.db")
    pair = Pair(con, "any", 3)
    for n in (2000, 300, 300, 40, 40, 40, 5, 5, 5, 1, 1, 1, 1):
        con.execute("BEGIN")
        pair.fill(n)
        con.execute("COMMIT")
        con.execute("SELECT h5mem_flush('memory')").fetchall()
        pair.check(6)
    with h5py.File("m.h5") as f:
        assert len(f["/index/time/runs"]) > 8
    pair.check()


def test_a_long_filtered_walk_in_order_of_time(connect, in_tmp):
    con = connect("host.db")
    pair = Pair(con, "almost", 4)
    con.execute("BEGIN")
    pair.fill(3000)
    con.execute("COMMIT")
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    for where in ("content = 'row 1500'", "session = 's2' AND importance < 0.01", "timestamp > 100 AND content = 'x'"):
        for order in ("timestamp, id", "timestamp DESC, id"):
            sql = f"SELECT id FROM {{}} WHERE {where} ORDER BY {order} LIMIT 4"
            assert con.execute(sql.format("memory")).fetchall() == con.execute(sql.format("plain")).fetchall()


def test_a_file_without_the_index_reads_and_gets_one(connect, in_tmp):
    con = connect("host.db")
    pair = Pair(con, "any", 5)
    pair.fill(200)
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    con.close()
    with h5py.File("m.h5", "r+") as f:
        del f["/index/time"]
    pair.con = con = connect("host.db")
    pair.check()
    pair.fill(5)
    pair.check()
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    with h5py.File("m.h5") as f:
        assert sum(row[1] for row in f["/index/time/runs"]) == 205
    assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)
    pair.check()
