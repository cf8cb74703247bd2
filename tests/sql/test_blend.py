"""test_blend.py - the score with neighbours, dates, fusion and factors, beside the formula in Python

Parts are taken from the table itself (`rank` and `distance`, which other tests hold against naive
models); everything that makes a score of them is computed here a second time, for every row, and
the two must agree in order and value: with rows in and out of the file, sessions out of order,
filters, deleted and superseded rows.

SPDX-License-Identifier: MIT
"""
import json
import math
import random

import pytest

WORDS = "dark mode editor theme light colour window evening garden tomato".split()
ENOUGH, SHORT_ADD, SHORT_TURN = 0.75, 50, 100
FADES, SPEAKER, COUNTED = (1, 1 / 3), 2.0, 100
SPEAKERS = ("", "", "Ann: ", "[Bob] ", "bob ", "Zoe Ann: ")


def fill(con, rng, first, count):
    for row_id in range(first, first + count):
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 9))]
        text = rng.choice(SPEAKERS) + " ".join(words) + rng.choice(["", ".", "?", "? "])
        text = None if rng.random() < 0.05 else text
        vector = None if rng.random() < 0.1 else json.dumps([rng.randint(-3, 3) for _ in range(3)] + [1])
        con.execute(
            "INSERT INTO memory(id, content, embedding, timestamp, session, importance) VALUES (?, ?, ?, ?, ?, ?)",
            (row_id, text, vector, 1683500000 + rng.randint(0, 9) * 86400 * 11, rng.choice(["a", "b", "c", None]),
             rng.choice([0, 0.25, 1])))


@pytest.fixture
def con(connect, in_tmp):
    con, rng = connect("host.db"), random.Random(7)
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=4)")
    fill(con, rng, 1, 60)
    con.execute("SELECT h5mem_flush('memory')").fetchone()
    fill(con, rng, 100, 25)
    con.execute("DELETE FROM memory WHERE id % 9 = 0")
    con.execute("UPDATE memory SET valid_to = 5 WHERE id % 13 = 0")
    return con


class Naive:
    def __init__(self, con, text, vector, dates=()):
        self.con, self.text = con, text
        rows = con.execute("SELECT id, content, timestamp, session, importance FROM memory WHERE valid_to IS NULL")
        self.rows = {row[0]: row[1:] for row in rows}
        self.order = sorted(self.rows, key=lambda i: (self.rows[i][2] or "", self.rows[i][1], i))
        self.rank = dict(con.execute("SELECT id, rank FROM memory WHERE content MATCH ? AND context = 0", (text,))) \
            if text else {}
        self.distance = dict(con.execute("SELECT id, distance FROM memory WHERE embedding MATCH ?", (vector,))) \
            if vector else {}
        self.dates = dates
        self.most = sum(weight for _, weight in dates)
        self.ideal = 0
        if text:
            # idf of each word, out of how many rows have it
            everything = con.execute("SELECT count(*) FROM memory").fetchone()[0]
            for word in set(text.lower().replace("?", "").split()) - {"in", "did"}:
                having = con.execute("SELECT count(*) FROM memory WHERE content MATCH ? AND as_of = 0", (word,))
                df = having.fetchone()[0]
                self.ideal += math.log(1 + (everything - df + 0.5) / (df + 0.5))
            self.ideal *= ENOUGH

    def weight(self, i):
        content, _, session, _ = self.rows[i]
        size = len(content.encode()) if content is not None else None
        return 1 if size is None or session is None else (size + SHORT_ADD) / (size + SHORT_ADD + SHORT_TURN)

    def part(self, which, i, context):
        if which == "text":
            if i not in self.rank:
                return 0
            when = self.rows[i][1]
            more = sum(weight for holds, weight in self.dates if holds(when)) if context else 0
            own = ((-self.rank[i] + more) / (self.ideal + (self.most if context else 0))) ** 2
        else:
            own = (1 - self.distance[i] / 2) ** 8 if i in self.distance else 0
        return own * (self.weight(i) if context else 1)

    def around(self, i):
        """(neighbour, how much it counts)"""
        session, place = self.rows[i][2], self.order.index(i)
        near = [(place + side * (n + 1), fade) for n, fade in enumerate(FADES) for side in (-1, 1)]
        return [(self.order[p], fade) for p, fade in near
                if 0 <= p < len(self.order) and session is not None and self.rows[self.order[p]][2] == session]

    def speaks(self, i):
        """Does the turn begin with a word of the query?"""
        first = (self.rows[i][0] or "").lower().lstrip("[").translate(str.maketrans(":]?", "   ")).split()
        words = set((self.text or "").lower().replace("?", "").split()) - {"in", "did"}
        return bool(first) and self.rows[i][2] is not None and first[0].rstrip(".") in words

    def ring(self, which, i, context, asks):
        content, _, session, _ = self.rows[i]
        sum_ = self.part(which, i, context) + context * sum(
            fade * self.part(which, j, context) for j, fade in self.around(i))
        sum_ *= SPEAKER if context and self.speaks(i) else 1
        return sum_ * (0.5 if context and asks and session and content and content.rstrip().endswith("?") else 1)

    def scores(self, ids, context=0.3, fusion="rrf", importance=0, weights=(1, 1)):
        parts = [(w, p) for w, p, has in zip(weights, ("vector", "text"), (self.distance, self.rank)) if has]
        asks = bool(self.text) and self.text.rstrip().endswith("?")
        whole = sum(w for w, _ in parts)
        rings = {p: {i: self.ring(p, i, context, asks) for i in ids} for _, p in parts}
        out = {}
        for i in ids:
            score = sum(w * rings[p][i] for w, p in parts) / whole
            if fusion == "rrf" and len(parts) == 2:
                share = 0
                for w, p in parts:
                    before = sum(x > rings[p][i] for x in rings[p].values()) if rings[p][i] > 0 else COUNTED
                    share += w / whole * 61 / (61 + min(before, COUNTED))
                score *= share
            out[i] = score * (1 - importance + importance * self.rows[i][3])
        return out


def agree(got, want):
    assert {i for i, _ in got} == set(want)
    for i, score in got:
        assert score == pytest.approx(want[i], rel=1e-9, abs=1e-12), i
    assert [score for _, score in got] == sorted((score for _, score in got), reverse=True)


VECTOR = "[1, -2, 0, 1]"
MAY = [(lambda t: 1682899200 <= t < 1685577600, math.log(12))]


@pytest.mark.parametrize("text, dates", [("dark garden", ()), ("dark garden?", ()), ("evening tomato in May?", MAY),
                                         ("nosuchword editor?", ()), ("did Ann garden?", ()),
                                         ("Bob dark", ())])
@pytest.mark.parametrize("context", [0.3, 1])
def test_text_with_neighbours(con, text, dates, context):
    con.execute("SELECT h5mem_config('memory', 'context', ?)", (str(context),)).fetchall()
    for where, keep in (("1", lambda r: True), ("session = 'b'", lambda r: r[2] == "b"),
                        ("timestamp < 1683900000", lambda r: r[1] < 1683900000)):
        naive = Naive(con, text, None, dates)
        ids = [i for i in naive.rank if keep(naive.rows[i])]
        got = con.execute(f"SELECT id, score FROM memory WHERE content MATCH ? AND {where} ORDER BY score DESC",
                          (text,)).fetchall()
        agree(got, naive.scores(ids, context))
        best = f"SELECT id, score FROM memory WHERE content MATCH ? AND {where} ORDER BY score DESC LIMIT 5"
        page = con.execute(best, (text,)).fetchall()
        assert page == got[:5]
        worst = con.execute(f"SELECT id, score FROM memory WHERE content MATCH ? AND {where} ORDER BY score", (text,))
        assert [score for _, score in worst] == sorted(score for _, score in got)
        by_rank = con.execute(f"SELECT id, score FROM memory WHERE content MATCH ? AND {where} ORDER BY rank", (text,))
        by_rank = by_rank.fetchall()
        assert sorted(by_rank) == sorted(got)
        assert [i for i, _ in by_rank] == sorted(ids, key=lambda i: (naive.rank[i], i))


@pytest.mark.parametrize("fusion", ["rrf", "weighted"])
@pytest.mark.parametrize("context", [0.3, 1])
def test_both_parts_with_neighbours(con, fusion, context):
    con.execute("SELECT h5mem_config('memory', 'context', ?)", (str(context),)).fetchall()
    for text in ("dark garden?", "light window", "bob tomato"):
        naive = Naive(con, text, VECTOR)
        for where, keep in (("1", lambda r: True), ("session IN ('a', 'c')", lambda r: r[2] in ("a", "c"))):
            ids = [i for i in naive.rows if (i in naive.rank or i in naive.distance) and keep(naive.rows[i])]
            got = con.execute(
                f"SELECT id, score FROM memory WHERE embedding MATCH ? AND content MATCH ? AND {where}"
                " AND fusion = ? AND importance_weight = 0.5 ORDER BY score DESC", (VECTOR, text, fusion)).fetchall()
            agree(got, naive.scores(ids, context, fusion, 0.5))


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("sessions", [True, False])
def test_bounds_give_what_all_distances_give(connect, in_tmp, metric, sessions):
    """A page is made of bounds on distances, k = 10^6 of the distances themselves: the same bits."""
    con, rng = connect(), random.Random(11)
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('b.h5', dim=40, metric={metric})")

    def some(first, count):
        con.execute("BEGIN")
        for i in range(first, first + count):
            centre = i % 17
            x = [rng.gauss(0, 1) + (3 if k % 17 == centre else 0) for k in range(40)]
            vector = None if rng.random() < 0.05 else json.dumps([0] * 40 if i % 301 == 0 else x)
            text = rng.choice(SPEAKERS) + " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 20)))
            con.execute("INSERT INTO memory(id, content, embedding, timestamp, session) VALUES (?, ?, ?, ?, ?)",
                        (i, text, vector, rng.randint(0, 400), rng.choice([f"s{i // 40}", "all", None])
                         if sessions else None))
        con.execute("COMMIT")

    some(1, 1500)
    con.execute("SELECT h5mem_flush('memory')").fetchone()
    some(5000, 60)
    con.execute("DELETE FROM memory WHERE id % 50 = 7")
    for text in ("dark garden?", "ann window", "nosuchword"):
        vector = json.dumps([rng.gauss(0, 1) for _ in range(40)])
        for where in ("1", "timestamp < 30", "session = 's3'", "fusion = 'weighted'", "importance_weight = 0.5",
                      "context = 1", "recency = 0.5"):
            asked = ("SELECT id, score FROM memory WHERE embedding MATCH ? AND content MATCH ?"
                     f" AND {where} {{}} ORDER BY score DESC")
            every = con.execute(asked.format("AND k = 1000000"), (vector, text)).fetchall()
            assert con.execute(asked.format(""), (vector, text)).fetchall() == every
            assert con.execute(asked.format("") + " LIMIT 10", (vector, text)).fetchall() == every[:10]
            worst = con.execute(asked.format("").replace(" DESC", ""), (vector, text)).fetchall()
            assert sorted(worst) == sorted(every)


def test_a_vector_alone_is_asked_for_neighbours_only_by_its_query(con):
    naive = Naive(con, None, VECTOR)
    plain = con.execute("SELECT id, score FROM memory WHERE embedding MATCH ? ORDER BY score DESC", (VECTOR,))
    plain = plain.fetchall()
    agree(plain, {i: 1 / (1 + d) for i, d in naive.distance.items()})
    near = con.execute("SELECT id, score FROM memory WHERE embedding MATCH ? AND context = 0.5 ORDER BY score DESC",
                       (VECTOR,)).fetchall()
    scored = naive.scores(list(naive.rows), 0.5)
    assert {i for i, _ in near} >= set(naive.distance)
    for i, score in near:
        assert score == pytest.approx(scored[i], rel=1e-9, abs=1e-12), i


def test_context_in_the_query_brings_in_the_line_after(connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('k.h5', dim=2)")
    con.executemany("INSERT INTO memory(id, content, session, timestamp) VALUES (?, ?, ?, ?)",
                    [(1, "Where is the spare key", "a", 1), (2, "Under the blue pot", "a", 2), (3, "Fine", "a", 3),
                     (4, "The key to success", None, 4), (5, "Nothing", None, 5)])
    asked = "SELECT id, score FROM memory WHERE content MATCH 'spare key' {} ORDER BY score DESC"
    assert {i for i, _ in con.execute(asked.format(""))} == {1, 4}
    near = dict(con.execute(asked.format("AND context = 0.5")))
    assert set(near) == {1, 2, 4} and near[2] == pytest.approx(near[1] / 2)
    assert dict(con.execute(asked.format("AND context = 0"))).keys() == {1, 4}


def test_naming_what_is_in_force_changes_nothing(con):
    for value in ("0.3", "0.7"):
        con.execute("SELECT h5mem_config('memory', 'context', ?)", (value,)).fetchall()
        for where in ("content MATCH 'dark garden'", f"content MATCH 'dark' AND embedding MATCH '{VECTOR}'",
                      f"embedding MATCH '{VECTOR}'"):
            names = ("context", "fusion", "recency", "mmr", "dedup", "min_score", "expand")
            bare = f"SELECT id, score, {', '.join(names)} FROM memory WHERE {where}"
            rows = con.execute(bare).fetchall()
            named = " AND ".join(f"{name} = ?" for name in names)
            assert con.execute(f"{bare} AND {named}", rows[0][2:]).fetchall() == rows


def test_factors_move_and_never_replace(con):
    plain = dict(con.execute("SELECT id, score FROM memory WHERE content MATCH 'dark' AND context = 0"))
    for setting in ("recency", "importance_weight", "activation_weight"):
        for w in (0.25, 1):
            where = f"content MATCH 'dark' AND context = 0 AND {setting} = ?"
            moved = con.execute(f"SELECT id, score FROM memory WHERE {where} ORDER BY score DESC", (w,)).fetchall()
            assert [s for _, s in moved] == sorted((s for _, s in moved), reverse=True)
            assert {i for i, _ in moved} == set(plain)
            assert all((1 - w) * plain[i] - 1e-12 <= s <= plain[i] + 1e-12 for i, s in moved)


def test_a_lone_match_is_not_nothing_and_junk_not_much(connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('w.h5', dim=2)")
    con.execute("INSERT INTO memory(id, content, embedding) VALUES (1, 'the wifi password is on the door', '[1, 0]'),"
                " (2, 'tomatoes like sun', '[0, 1]')")
    asked = "SELECT id, score FROM memory WHERE content MATCH ? AND embedding MATCH ? AND fusion = 'weighted' LIMIT 1"
    assert con.execute(asked, ("wifi password", "[1, 0]")).fetchone()[1] > 0.5
    assert con.execute(asked, ("submarine", "[-1, -1]")).fetchone()[1] < 0.1
    rejected = "SELECT count(*) FROM memory WHERE content MATCH ? AND embedding MATCH ? AND fusion = 'weighted'"
    assert con.execute(f"{rejected} AND min_score = 0.2", ("submarine", "[-1, -1]")).fetchone() == (0,)
    assert con.execute(f"{rejected} AND min_score = 0.2", ("wifi password", "[1, 0]")).fetchone() == (1,)


def test_dedup_folds_what_says_the_same(connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('d.h5', dim=2)")
    con.executemany("INSERT INTO memory(id, content) VALUES (?, ?)",
                    [(1, "I prefer dark mode"), (2, "i prefer DARK mode!"), (3, "dark chocolate is what I prefer"),
                     (4, "I prefer dark mode")])
    found = "SELECT id FROM memory WHERE content MATCH 'prefer dark mode' {} ORDER BY score DESC"
    assert len(con.execute(found.format("")).fetchall()) == 4
    assert con.execute(found.format("AND dedup = 1")).fetchall() == [(1,), (3,)]
    assert con.execute(found.format("AND dedup = 1") + " LIMIT 1 OFFSET 1").fetchall() == [(3,)]
    by_rank = "SELECT id FROM memory WHERE content MATCH 'prefer dark mode' AND dedup = 1 ORDER BY rank"
    assert con.execute(by_rank).fetchall() == [(1,), (3,)]


def likeness(a, b):
    a, b = (set(x.lower().replace("?", "").replace(".", "").split()) for x in (a, b))
    return len(a & b) / len(a | b) if a and b else 0


@pytest.mark.parametrize("m", [0.2, 0.7, 1])
def test_mmr_is_that_of_the_formula(connect, in_tmp, m):
    con, rng = connect(), random.Random(3)
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('r.h5', dim=2, context=0)")
    rows = {i: " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 6))) for i in range(1, 50)}
    con.executemany("INSERT INTO memory(id, content) VALUES (?, ?)", rows.items())
    score = dict(con.execute("SELECT id, score FROM memory WHERE content MATCH 'dark garden'"))
    best, left, given = max(score.values()), set(score), []
    while left:
        def value(i):
            alike = max((likeness(rows[i], rows[j]) for j in given), default=0)
            return (1 - m) * score[i] / best - m * alike

        given.append(min(left, key=lambda i: (-round(value(i), 12), i)))
        left.discard(given[-1])
    got = [i for i, in con.execute("SELECT id FROM memory WHERE content MATCH 'dark garden' AND mmr = ?", (m,))]
    assert got == given


def test_explain_adds_up(con):
    for where in ("content MATCH 'dark garden in May?'", f"content MATCH 'dark' AND embedding MATCH '{VECTOR}'",
                  f"embedding MATCH '{VECTOR}' AND recency = 0.5", "content MATCH 'dark' AND context = 0",
                  f"content MATCH 'dark' AND embedding MATCH '{VECTOR}' AND context = 0 AND importance_weight = 1"):
        rows = con.execute(f"SELECT score, h5mem_explain(memory) FROM memory WHERE {where}").fetchall()
        assert rows
        for score, text in rows:
            why = json.loads(text)
            assert why["score"] == pytest.approx(score)
            shares = why["shares"]
            assert why["sum"] == pytest.approx(sum(v for k, v in shares.items() if k != "date"))
            assert math.prod(why["factors"].values()) * why["sum"] == pytest.approx(score)
    assert con.execute("SELECT h5mem_explain(memory) FROM memory LIMIT 1").fetchone() == (None,)


def test_expand_finds_other_words_and_ranks_them_lower(connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('e.h5', dim=2)")
    con.executemany("INSERT INTO memory(id, content) VALUES (?, ?)",
                    [(1, "a bug in the parser"), (2, "an error in the parser"), (3, "the database is down"),
                     (4, "he went home")])
    found = "SELECT id FROM memory WHERE content MATCH ? {} ORDER BY score DESC"
    assert con.execute(found.format(""), ("error",)).fetchall() == [(2,)]
    assert con.execute(found.format("AND expand = 1"), ("error",)).fetchall() == [(2,), (1,)]
    assert con.execute(found.format("AND expand = 1"), ("DB",)).fetchall() == [(3,)]
    assert con.execute(found.format("AND expand = 1"), ("did he go",)).fetchall() == [(4,)]
    assert con.execute("SELECT h5mem_config('memory', 'expand', '1')").fetchone() == (1,)
    assert con.execute(found.format(""), ("error",)).fetchall() == [(2,), (1,)]


@pytest.mark.parametrize("setting, message", [
    ("fusion = 'best'", "fusion is 'best'; known are 'rrf' and 'weighted'"),
    ("mmr = 2", "mmr is 2; it is at most 1"),
    ("recency = -1", "recency is -1; it cannot be negative"),
    ("dedup = 'all'", "dedup is 'all'; it takes a number"),
    ("context = 11", "context is 11; it is at most 10"),
])
def test_a_bad_setting_names_itself(con, setting, message):
    with pytest.raises(Exception, match=message):
        con.execute(f"SELECT id FROM memory WHERE content MATCH 'dark' AND {setting}").fetchall()


def test_rows_by_time_come_as_sqlite_would_sort_them(con):
    rows = con.execute("SELECT id, timestamp, session FROM memory").fetchall()
    for where, keep in (("1", lambda r: True), ("session = 'b'", lambda r: r[2] == "b"),
                        ("id < 70", lambda r: r[0] < 70)):
        kept = [row for row in rows if keep(row)]
        for order, key in (("timestamp", lambda r: (r[1], r[0])), ("timestamp DESC, id", lambda r: (-r[1], r[0]))):
            want = [row[0] for row in sorted(kept, key=key)]
            assert [i for i, in con.execute(f"SELECT id FROM memory WHERE {where} ORDER BY {order}")] == want
            page = con.execute(f"SELECT id FROM memory WHERE {where} ORDER BY {order} LIMIT 7 OFFSET 3").fetchall()
            assert [i for i, in page] == want[3:10]
        back = con.execute(f"SELECT id FROM memory WHERE {where} ORDER BY timestamp DESC, id DESC")
        assert [i for i, in back] == [row[0] for row in sorted(kept, key=lambda r: (r[1], r[0]), reverse=True)]
