"""test_model.py - random data and random questions: an h5mem table against a plain copy and naive.py

Filters: the same WHERE on the h5mem table and on an ordinary SQLite table with the same rows must give
the same rows, whatever is pushed down. Order: nearest, BM25 and their fusion must be those of
naive.py, with every mixture of k, LIMIT, OFFSET, direction and filter. State: random writes,
transactions, savepoints, flushes and reopens must leave both tables equal. Every failure names its
seed; H5MEM_SEED runs another one.

SPDX-License-Identifier: MIT
"""
import os
import random
import sqlite3

import numpy as np
import pytest

import naive

DIM = 8
SEEDS = [int(s) for s in os.environ.get("H5MEM_SEED", "1 2 3").split()]
COLUMNS = ["id", "content", "embedding", "timestamp", "session", "channel", "tags", "source", "tier",
           "importance", "user_id", "priority", "weight", "raw"]
USER = "user_id TEXT, priority INTEGER, weight REAL, raw BLOB"
COPY = ("id INTEGER PRIMARY KEY, content TEXT, embedding BLOB, timestamp REAL, session TEXT,"
        f" channel TEXT, tags TEXT, source TEXT, tier TEXT, importance REAL, {USER}")
WORDS = ("roof rain cat tablet trip lisbon train flight dentist crown invoice server run knee soup pumpkin"
         " sister teapot garlic storm running rains cats trains soups").split()


def some_text(rng, low=1, high=14):
    return " ".join(rng.choices(WORDS, k=rng.randint(low, high)))


def some_vector(rng):
    """Small whole numbers, so that distances tie and every kernel gets the same sums."""
    return np.array([rng.randint(-3, 3) for _ in range(DIM)], "<f4")


def some_row(rng, row_id):
    return {
        "id": row_id,
        "content": some_text(rng),
        "embedding": None if rng.random() < 0.1 else some_vector(rng).tobytes(),
        "timestamp": rng.choice([0.0, -86400.5, 1.5e9, float(rng.randint(1, 40)), rng.random() * 1e3]),
        "session": rng.choice([None, "", "s-1", "s-2", "s-10", "S-1", "s-é", "10", "7"]),
        "channel": rng.choice([None, "chat", "voice", "Chat"]),
        "tags": rng.choice([None, "a", "a,b", "b,c", "trip"]),
        "source": rng.choice([None, "user", "assistant", "tool"]),
        "tier": rng.choice(["working", "episodic", "semantic"]),
        "importance": rng.choice([0.0, 0.25, 0.5, 1.0, rng.random()]),  # NULL means the default
        "user_id": rng.choice([None, "", "u1", "u2", "U1", "12", "12.0"]),
        "priority": rng.choice([None, 0, 1, -1, 12, 2**53 + 1, -(2**62), rng.randint(-5, 5)]),
        "weight": rng.choice([None, 0.0, 1.0, 12.0, -2.5, 1e300, rng.random()]),
        "raw": rng.choice([None, b"", b"a", b"ab", bytes([0, 255]), b"12"]),
    }


class Pair:
    """An h5mem table `memory` and a plain table `copy` that get the same statements."""

    def __init__(self, connect, seed, host="host.db", options=""):
        self.connect, self.seed, self.host = connect, seed, host
        self.rng = random.Random(seed)
        self.con = connect(host)
        self.con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim={DIM}, context=0{options}, {USER})")
        self.con.execute(f"CREATE TABLE copy({COPY})")

    def both(self, sql, *values):
        """Runs a statement with {t} as either table; their results, or their kinds of failure."""
        results = []
        for table in ("memory", "copy"):
            try:
                results.append(self.con.execute(sql.format(t=table), values).fetchall())
            except sqlite3.IntegrityError:
                results.append("constraint")
        return results

    def same(self, sql, *values):
        ours, plain = self.both(sql, *values)
        assert ours == plain, f"seed {self.seed}: {sql} {values}"
        return ours

    def insert(self, row, verb="INSERT"):
        places = ", ".join("?" * len(COLUMNS))
        names = ", ".join(COLUMNS)
        return self.same(f"{verb} INTO {{t}}({names}) VALUES ({places})", *[row[c] for c in COLUMNS])

    def fill(self, count):
        self.con.execute("BEGIN")
        for row_id in range(1, count + 1):
            self.insert(some_row(self.rng, row_id * 3))
        self.con.execute("COMMIT")

    def check(self):
        self.same(f"SELECT {', '.join(COLUMNS)} FROM {{t}} ORDER BY id")

    def reopen(self):
        self.con.close()
        self.con = self.connect(self.host)

    def read(self, columns):
        """{id: value or tuple} of the plain copy: what the h5mem table is measured against."""
        return {row[0]: row[1] if len(row) == 2 else row[1:]
                for row in self.con.execute(f"SELECT id, {columns} FROM copy")}

    def vectors(self):
        return {row_id: None if blob is None else np.frombuffer(blob, "<f4")
                for row_id, blob in self.read("embedding").items()}

    def ids(self, where):
        return {row[0] for row in self.con.execute(f"SELECT id FROM copy WHERE {where}")}


# ---- random conditions


def literal(rng, column):
    """A value of the column's kind, now and then of another: SQLite's comparison rules must hold."""
    numbers = ["0", "1", "-1", "12", "12.0", "0.5", "1e300", "-86400.5", "9007199254740993", "NULL"]
    texts = ["''", "'s-1'", "'s-2'", "'S-1'", "'u1'", "'12'", "'12.0'", "'chat'", "'a'", "'working'",
             "'s-é'", "NULL"]
    blobs = ["x''", "x'61'", "x'6162'", "x'00ff'", "x'3132'"]
    own = {"id": numbers, "priority": numbers, "timestamp": numbers, "importance": numbers,
           "weight": numbers, "raw": blobs}.get(column, texts)
    if column != "timestamp" and rng.random() < 0.15:
        own = rng.choice([numbers, texts, blobs])
    if column in ("id", "timestamp") and rng.random() < 0.4:
        return str(rng.randint(0, 200))
    return rng.choice(own)


def condition(rng, depth=2):
    """A random WHERE clause over the columns both tables have."""
    if depth and rng.random() < 0.35:
        joined = rng.choice([" AND ", " OR "]).join(
            condition(rng, depth - 1) for _ in range(rng.randint(2, 3)))
        return f"NOT ({joined})" if rng.random() < 0.2 else f"({joined})"
    column = rng.choice([c for c in COLUMNS if c not in ("embedding", "content")])
    kind = rng.randrange(11)
    if kind == 10:
        tag = rng.choice(["a", "b", "trip", "A", "", "a,b", "s-1"])
        return f"h5mem_has_tag({rng.choice(['tags', 'tags', 'session', 'priority'])}, {tag!r})"
    if kind < 4:
        return f"{column} {rng.choice(['=', '<', '<=', '>', '>=', '<>'])} {literal(rng, column)}"
    if kind == 4:
        return f"{column} BETWEEN {literal(rng, column)} AND {literal(rng, column)}"
    if kind == 5:
        values = ", ".join(literal(rng, column) for _ in range(rng.randint(0, 4)))
        return f"{column} {rng.choice(['IN', 'NOT IN'])} ({values})"
    if kind == 6:
        return f"{column} {rng.choice(['IS', 'IS NOT'])} {literal(rng, column)}"
    if kind == 7:
        column = rng.choice(["session", "user_id", "channel", "content"])
        pattern = rng.choice(["s-%", "S%", "r%", "%a%", "_-1", "ro%", "chat", "%", "", "_", "S-É", "s-é%", "1_"])
        escape = " ESCAPE '-'" if rng.random() < 0.1 else ""
        if rng.random() < 0.5:
            return f"{column} LIKE '{pattern}'{escape}"
        sets = rng.choice(["[a-z]*", "[^s]*", "*[0-9]", "[]s]-*", "s[-x]1*", "*[é-ö]", "[s"])
        return f"{column} GLOB '{rng.choice([sets, pattern.replace('%', '*').replace('_', '?')])}'"
    if kind == 8:
        return rng.choice([
            "length(content) > 30", "priority + 1 > weight", "session = user_id", "coalesce(session, '') = ''",
            "id % 2 = 0", "content LIKE session || '%'", "abs(timestamp) < 100", "user_id = priority",
        ])
    return f"{column} IN (SELECT {column} FROM copy WHERE id % 7 = {rng.randint(0, 6)})"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("state", ["log", "file", "both"])
def test_filters(connect, in_tmp, seed, state):
    """1,500 random conditions, rows in the log, in the file, or in both."""
    pair = Pair(connect, seed)
    pair.fill(150)
    if state != "log":
        pair.con.execute("SELECT h5mem_flush('memory')").fetchall()
    if state == "both":
        pair.both("UPDATE {t} SET session = 's-2', weight = NULL WHERE id % 5 = 0")
        pair.both("DELETE FROM {t} WHERE id % 11 = 0")
        for row_id in range(1000, 1040):
            pair.insert(some_row(pair.rng, row_id))
    pair.check()
    for _ in range(500):
        where = condition(pair.rng)
        pair.same(f"SELECT id FROM {{t}} WHERE {where} ORDER BY id")
        pair.same(f"SELECT count(*), sum(priority IS NULL) FROM {{t}} WHERE {where}")
        order = ", ".join(f"{c} {d}" for c, d in zip(
            pair.rng.sample(["timestamp", "session", "importance", "weight", "raw"], 2),
            pair.rng.choices(["ASC", "DESC"], k=2)))
        page = f"LIMIT {pair.rng.randint(0, 20)} OFFSET {pair.rng.randint(0, 20)}"
        pair.same(f"SELECT id, weight FROM {{t}} WHERE {where} ORDER BY {order}, id {page}")


def test_joins_and_subqueries(connect, in_tmp):
    pair = Pair(connect, 7)
    pair.fill(80)
    for sql in (
        "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.session = b.user_id ORDER BY 1, 2",
        "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON b.id = a.id + 3 AND b.tier = a.tier ORDER BY 1, 2",
        "SELECT id, (SELECT count(*) FROM {t} i WHERE i.timestamp < o.timestamp) FROM {t} o ORDER BY 1",
        "SELECT tier, count(*), min(timestamp), max(weight) FROM {t} GROUP BY tier ORDER BY 1",
        "SELECT DISTINCT session FROM {t} ORDER BY 1",
        "SELECT id, row_number() OVER (PARTITION BY tier ORDER BY timestamp, id) FROM {t} ORDER BY 1",
        "SELECT id FROM {t} WHERE id IN (3, 9, 9, NULL, 'x', 12.0) ORDER BY id DESC",
        "SELECT id FROM {t} WHERE rowid = 9 UNION ALL SELECT rowid FROM {t} WHERE id = '12'",
        "SELECT o.id FROM copy o WHERE EXISTS (SELECT 1 FROM {t} i WHERE i.id = o.id AND i.priority > 0)"
        " ORDER BY 1",
    ):
        pair.same(sql)


# ---- random writes


def write(pair):
    """One random statement on both tables."""
    rng = pair.rng
    live = [row[0] for row in pair.con.execute("SELECT id FROM copy")] or [1]
    one = rng.choice(live)
    kind = rng.randrange(8)
    if kind < 2:
        pair.insert(some_row(rng, max(live) + rng.randint(1, 3)))
    elif kind == 2:
        verb = rng.choice(["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR ABORT"])
        pair.insert(some_row(rng, one), verb)
    elif kind == 3:
        pair.same("UPDATE {t} SET content = ?, embedding = ? WHERE id = ?", some_text(rng),
                  some_vector(rng).tobytes(), one)
    elif kind == 4:
        pair.same(f"UPDATE {{t}} SET importance = 0.75, session = ? WHERE {condition(rng, 1)}",
                  rng.choice([None, "s-3"]))
    elif kind == 5:
        pair.same("UPDATE {t} SET id = id + 100000 WHERE id = ?", one)
    elif kind == 6:
        pair.same("DELETE FROM {t} WHERE id = ?", one)
    else:
        pair.same(f"DELETE FROM {{t}} WHERE id % 13 = {rng.randint(0, 12)} AND {condition(rng, 0)}")


@pytest.mark.parametrize("seed", SEEDS)
def test_writes(connect, in_tmp, seed):
    """300 random writes in transactions with savepoints; now and then a flush or a reopen."""
    pair = Pair(connect, seed)
    pair.fill(40)
    rng = pair.rng
    for _ in range(60):
        pair.con.execute("BEGIN")
        for _ in range(rng.randint(1, 3)):
            write(pair)
        if rng.random() < 0.5:
            pair.con.execute("SAVEPOINT a")
            write(pair)
            if rng.random() < 0.5:
                pair.con.execute("SAVEPOINT b")
                write(pair)
                pair.con.execute(rng.choice(["RELEASE b", "ROLLBACK TO b"]))
            write(pair)
            pair.con.execute(rng.choice(["RELEASE a", "ROLLBACK TO a"]))
            pair.check()
        pair.con.execute(rng.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]))
        pair.check()
        if rng.random() < 0.2:
            pair.con.execute("SELECT h5mem_flush('memory')").fetchall()
            pair.check()
        if rng.random() < 0.1:
            pair.reopen()
            pair.check()


# ---- nearest


def vector_rows(pair, metric, query, where="1", tail="ORDER BY distance"):
    return pair.con.execute(
        f"SELECT id, distance FROM memory WHERE embedding MATCH ? AND {where} {tail}",
        (query.tobytes(),)).fetchall()


def same_order(ours, truth, what):
    """Equal ids in equal order; where two true distances are closer than rounding, either order."""
    assert [row[0] for row in ours] != [] or truth == [], what
    assert sorted(row[0] for row in ours) == sorted(row[0] for row in truth), what
    true = dict(truth)
    for (row_id, value), (_, expected) in zip(ours, truth):
        assert value == pytest.approx(true[row_id], rel=2e-6, abs=2e-6), (what, row_id)
        assert true[row_id] == pytest.approx(expected, rel=1e-6, abs=1e-6), (what, row_id)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("flushed", [False, True])
def test_nearest(connect, in_tmp, metric, flushed):
    pair = Pair(connect, 11, options=f", metric={metric}")
    pair.fill(120)
    pair.insert({**some_row(pair.rng, 9001), "embedding": np.zeros(DIM, "<f4").tobytes()})
    if flushed:
        pair.con.execute("SELECT h5mem_flush('memory')").fetchall()
    rng, vectors = pair.rng, pair.vectors()
    for number in range(60):
        query = some_vector(rng)
        while number > 3 and not query.any():
            query = some_vector(rng)
        where = condition(rng, 1) if number % 2 else "1"
        truth = naive.nearest(metric, vectors, query, pair.ids(where))
        what = (metric, query.tolist(), where)
        full = vector_rows(pair, metric, query, where)
        same_order(full, truth, what)
        exact = [row[0] for row in full]
        if metric != "cosine":  # whole numbers: the sums are exact, so ties must be broken by id
            assert exact == [row[0] for row in truth], what
        skip, size = rng.randint(0, 30), rng.randint(0, 30)
        page = vector_rows(pair, metric, query, where, f"ORDER BY distance LIMIT {size} OFFSET {skip}")
        assert [row[0] for row in page] == exact[skip : skip + size], what
        back = vector_rows(pair, metric, query, where, f"ORDER BY distance DESC LIMIT {size}")
        same_order(back, sorted(truth, key=lambda r: -r[1])[:size] and
                   [(i, dict(truth)[i]) for i, _ in back], what)
        assert [row[1] for row in back] == sorted((row[1] for row in full), reverse=True)[:size], what
        if where == "1":
            capped = vector_rows(pair, metric, query, f"k = {size}", "")
            assert [row[0] for row in capped] == exact[:size], what
            if full:
                edge = full[rng.randrange(len(full))][1]
                near = pair.con.execute(
                    "SELECT id FROM memory WHERE embedding MATCH ? AND distance < ? ORDER BY distance",
                    (query.tobytes(), edge)).fetchall()
                assert [r[0] for r in near] == [i for i, value in full if value < edge], what


def test_real_vectors(connect, in_tmp):
    """Real-valued vectors at the usual width: the order is that of double precision."""
    rng = np.random.default_rng(5)
    data = rng.standard_normal((600, 384)).astype("<f4")
    con = connect("wide.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('wide.h5', dim=384)")
    con.execute("BEGIN")
    con.executemany("INSERT INTO memory(id, embedding) VALUES (?, ?)",
                    [(n + 1, row.tobytes()) for n, row in enumerate(data)])
    con.execute("COMMIT")
    vectors = {n + 1: row for n, row in enumerate(data)}
    for flushed in (False, True):
        if flushed:
            con.execute("SELECT h5mem_flush('memory')").fetchall()
        for query in rng.standard_normal((20, 384)).astype("<f4"):
            ours = con.execute("SELECT id, distance FROM memory WHERE embedding MATCH ? AND k = 50",
                               (query.tobytes(),)).fetchall()
            same_order(ours, naive.nearest("cosine", vectors, query)[:50], "k = 50")


# ---- words, and both


# Conditions that SQL.md promises to hand down.
PUSHED = ["session = 's-1'", "session IN ('s-1', 's-2') AND timestamp >= 0", "user_id IS NULL", "priority > 0",
          "timestamp BETWEEN 0 AND 30", "tier = 'working' AND id > 100", "source IS NOT NULL", "weight <= 1.0",
          "id IN (3, 6, 9, 12, 3001, 3002)"]


def word_query(rng):
    """Different words, so that every reading of a repeated word gives the same sum."""
    stems = {"rains": "rain", "cats": "cat", "trains": "train", "soups": "soup", "running": "run"}
    seen, words = set(), []
    for word in rng.sample(WORDS + ["nosuchword", "zebra"], rng.randint(1, 5)):
        if stems.get(word, word) not in seen:
            seen.add(stems.get(word, word))
            words.append(word)
    return rng.choice([" ", ", ", "? ", " ... "]).join(words) + rng.choice(["", "?", "!"])


@pytest.mark.parametrize("seed", SEEDS)
def test_words(connect, in_tmp, seed):
    pair = Pair(connect, seed)
    pair.fill(120)
    rng = pair.rng
    for stage in range(4):
        if stage == 1:
            pair.con.execute("SELECT h5mem_flush('memory')").fetchall()
        if stage == 2:
            pair.both("DELETE FROM {t} WHERE id % 4 = 0")
            pair.both("UPDATE {t} SET content = 'roof rain ' || content WHERE id % 5 = 0")
            for row_id in range(2000, 2030):
                pair.insert(some_row(rng, row_id))
        if stage == 3:
            pair.con.execute("SELECT h5mem_flush('memory')").fetchall()
            pair.reopen()
        index = naive.Bm25(pair.read("content"))
        for number in range(40):
            query = word_query(rng)
            where = condition(rng, 1) if number % 2 else "1"
            truth = index.search(query, pair.ids(where))
            what = f"seed {seed}, stage {stage}: {query!r} WHERE {where}"
            ours = pair.con.execute(
                f"SELECT id, rank, score FROM memory WHERE content MATCH ? AND {where}"
                " ORDER BY score DESC", (query,)).fetchall()
            same_order([(i, -rank) for i, rank, _ in ours], truth, what)
            assert ours == sorted(ours, key=lambda row: (-row[2], row[0])), what
            assert all(row[2] == -row[1] for row in ours), what
            page = pair.con.execute(
                f"SELECT id FROM memory WHERE content MATCH ? AND {where} ORDER BY rank LIMIT 5 OFFSET 2",
                (query,)).fetchall()
            assert [row[0] for row in page] == [row[0] for row in ours[2:7]], what


@pytest.mark.parametrize("seed", SEEDS)
def test_both(connect, in_tmp, seed):
    """Each part alone is that of naive.py; together they are the fusion of the two, to the last place."""
    pair = Pair(connect, seed, options=", metric=l2")
    pair.fill(120)
    pair.con.execute("SELECT h5mem_flush('memory')").fetchall()
    for row_id in range(3000, 3040):
        pair.insert(some_row(pair.rng, row_id))
    pair.both("DELETE FROM {t} WHERE id % 10 = 0")
    rng, vectors = pair.rng, pair.vectors()
    index = naive.Bm25(pair.read("content"))
    for number in range(40):
        query, words = some_vector(rng), word_query(rng)
        where = rng.choice(PUSHED) if number % 3 else "1"
        only = pair.ids(where)
        what = f"seed {seed}: {query.tolist()} and {words!r} WHERE {where}"
        near = vector_rows(pair, "l2", query, where)
        text = pair.con.execute(f"SELECT id, score FROM memory WHERE content MATCH ? AND {where} ORDER BY score DESC",
                                (words,)).fetchall()
        same_order(near, naive.nearest("l2", vectors, query, only), what)
        same_order(text, index.search(words, only), what)
        truth = naive.fuse(near, text)
        if number % 2:  # a condition that SQLite keeps: places are counted before it
            where += " AND NOT (id % 3 = 0 AND length(content) > 20)"
            kept = pair.ids(where)
            truth, near, text = ([row for row in part if row[0] in kept] for part in (truth, near, text))
        ours = pair.con.execute(
            "SELECT id, score, distance, rank FROM memory WHERE embedding MATCH ? AND content MATCH ?"
            f" AND {where} ORDER BY score DESC", (query.tobytes(), words)).fetchall()
        assert sorted(row[0] for row in ours) == sorted(row[0] for row in truth), what
        assert {row[0] for row in ours if row[2] is not None} == {row[0] for row in near}, what
        assert {row[0] for row in ours if row[3] is not None} == {row[0] for row in text}, what
        assert [row[1] for row in ours] == pytest.approx([row[1] for row in truth], rel=1e-9), what
        assert [row[0] for row in ours] == [row[0] for row in truth], what


@pytest.mark.parametrize("step", (1, 3, -1))
def test_id_ranges_over_many_chunks(step, connect, in_tmp):
    """Where ids ascend with the rows a chunk is settled by its ends: ranges that end before, at, within and behind
    chunks, over rows in the file and behind them; ids in another order (step -1) take the other way."""
    con = connect()
    con.execute("CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2)")
    con.execute("CREATE TABLE plain(id INTEGER PRIMARY KEY)")
    ids = [20000 + step * i for i in range(5000)]
    con.executemany("INSERT INTO m(id, timestamp) VALUES (?, 0)", ((i,) for i in ids))
    con.execute("SELECT h5mem_flush('m')")
    con.executemany("INSERT INTO m(id, timestamp) VALUES (?, 0)", ((i,) for i in (5, 99999)))
    con.execute("DELETE FROM m WHERE id % 7 = 0")
    con.executemany("INSERT INTO plain VALUES (?)", ((i,) for i in ids + [5, 99999] if i % 7))
    rng = random.Random(5)
    ends = [ids[0], ids[-1], *(ids[k * 2048 + d] for k in (1, 2) for d in (-1, 0, 1)), 0, 10**6, 2**62, -2**63]
    for _ in range(150):
        lo, hi = (rng.choice(ends) + rng.choice((0, 0, 1, -1, rng.randrange(3000))) for _ in range(2))
        lo, hi = (max(-2**63, min(x, 2**63 - 1)) for x in (lo, hi))
        where = rng.choice((f"id >= {lo} AND id <= {hi}", f"id > {lo}", f"id < {hi}",
                            f"id BETWEEN {lo} AND {hi} AND id <> {lo}"))
        want = con.execute(f"SELECT count(*), min(id), max(id), total(id) FROM plain WHERE {where}").fetchone()
        got = con.execute(f"SELECT count(*), min(id), max(id), total(id) FROM m WHERE {where}").fetchone()
        assert got == want, where
