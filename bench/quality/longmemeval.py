"""longmemeval.py - LongMemEval's official JSON (S, M or oracle): are the sessions and turns found that hold the answer?

Each instance has a haystack of its own: one store an instance. Instances whose id ends in _abs have no answer and are
left out, as in the official scripts (470 of 500 remain). Four tables:

  sessions, official   a row a session, the user's turns joined; wanted: sessions named as answers that have
                       a user's turn with has_answer
  turns, official      a row a user's turn; wanted: those with has_answer
  turns, both          a row a turn of either speaker; wanted: those with has_answer; questions without any are left out
  sessions by turns    the same rows; sessions in the order of their best turn; wanted: answer_session_ids

Measures as in the official eval_utils: recall_any and recall_all at k, and nDCG whose discount begins at the third
place (1, 1, 1/log2 3, ...). A question that has no wanted row counts in the official tables as it does there: nothing
for any and nDCG, and full marks for all; "none" says how many of a line's n have none wanted.

By chance: the expectation of a random order, because an oracle file's haystack holds little else than evidence.

SPDX-License-Identifier: MIT
"""
import calendar
import json
import math
import pathlib
import tempfile
import time

import engines

MEASURES = ("any@1", "any@5", "any@10", "all@5", "all@10", "nDCG@5", "nDCG@10")
DATE = "%Y/%m/%d (%a) %H:%M"
POOL = 200  # turns read for a ranking of sessions


def seconds(text, place):
    try:
        return float(calendar.timegm(time.strptime(text, DATE)))
    except (TypeError, ValueError):
        return float(place * 86400)


class Corpus:
    """Rows (id, content, timestamp, session) of one instance, and which are wanted. by_session: sessions are."""

    def __init__(self, name, rows, wanted, official, by_session=False):
        self.name, self.rows, self.wanted, self.official, self.by_session = name, rows, wanted, official, by_session

    def ranking(self, found):
        return list(dict.fromkeys(self.rows[row - 1][3] for row in found)) if self.by_session else found

    @property
    def size(self):
        return len({row[3] for row in self.rows}) if self.by_session else len(self.rows)


def corpora_of(item):
    """The four corpora of one instance."""
    dates = item.get("haystack_dates") or []
    sessions, users, both = [], [], []
    wanted = {"sessions": set(), "users": set(), "both": set()}
    for place, (session, talk) in enumerate(zip(item["haystack_session_ids"], item["haystack_sessions"])):
        start = seconds(dates[place] if place < len(dates) else None, place)
        said = [turn["content"] for turn in talk if turn["role"] == "user"]
        sessions.append((len(sessions) + 1, " ".join(said), start, session))
        if session in item["answer_session_ids"] and any(t["role"] == "user" and t.get("has_answer") for t in talk):
            wanted["sessions"].add(len(sessions))
        for number, turn in enumerate(talk):
            both.append((len(both) + 1, turn["content"], start + number, session))
            if turn.get("has_answer"):
                wanted["both"].add(len(both))
            if turn["role"] == "user":
                users.append((len(users) + 1, turn["content"], start + number, session))
                if turn.get("has_answer"):
                    wanted["users"].add(len(users))
    return [Corpus("sessions, official", sessions, wanted["sessions"], True),
            Corpus("turns, official", users, wanted["users"], True),
            Corpus("turns, both", both, wanted["both"], False),
            Corpus("sessions by turns", both, set(item["answer_session_ids"]), False, True)]


def load(path):
    """Instances with an answer: (type, question, corpora)."""
    return [(item["question_type"], item["question"], corpora_of(item))
            for item in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
            if not item["question_id"].endswith("_abs")]


def discount(place):
    return 1.0 if place <= 2 else 1 / math.log2(place)


def gain(ranking, wanted, cut):
    most = sum(discount(n) for n in range(1, min(len(wanted), cut) + 1))
    return sum(discount(n) for n, x in enumerate(ranking[:cut], 1) if x in wanted) / most if most else 0.0


def measure(ranking, wanted):
    hits = {cut: len(wanted & set(ranking[:cut])) for cut in (1, 5, 10)}
    return (*(float(hits[cut] > 0) for cut in (1, 5, 10)), *(float(hits[cut] == len(wanted)) for cut in (5, 10)),
            gain(ranking, wanted, 5), gain(ranking, wanted, 10))


def by_chance(total, wanted):
    """What a random order of total rows is expected to reach, wanted of them being right."""
    def without(cut):
        return math.comb(total - wanted, cut) / math.comb(total, cut) if cut <= total else 0.0

    def whole(cut):
        return math.comb(total - wanted, cut - wanted) / math.comb(total, cut) if wanted <= cut <= total else float(
            cut > total or wanted == 0)

    def expected(cut):
        most = sum(discount(n) for n in range(1, min(wanted, cut) + 1))
        return sum(discount(n) for n in range(1, min(cut, total) + 1)) * wanted / total / most if most else 0.0

    any_of = [1 - without(min(cut, total)) if wanted else 0.0 for cut in (1, 5, 10)]
    return (*any_of, whole(5), whole(10), expected(5), expected(10))


def ranked(engine, text, vector, parts):
    if isinstance(engine, engines.Fts5):
        found = engine.con.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?",
                                   (engines.fts5_words(text, engine.stop), POOL))
    else:
        both = parts == "both"
        found = engine.con.execute(
            f"SELECT id FROM memory WHERE content MATCH ? {'AND embedding MATCH ?' if both else ''} "
            f"ORDER BY score DESC LIMIT {POOL}", (text, vector.tobytes()) if both else (text,))
    return [row[0] for row in found]


class Tables:
    """What was measured: values by (corpus, side, type), and the seconds that building and asking took by side."""

    def __init__(self, sides, embedder):
        self.sides, self.embedder = sides, embedder
        self.held, self.none, self.spent, self.asked = {}, {}, {}, 0

    def add(self, corpus, side, kind, values):
        self.held.setdefault((corpus.name, side, kind), []).append(values)

    def instance(self, number, kind, question, corpora):
        vectors, question_vector = {}, None
        if self.embedder:
            question_vector = self.embedder.embed([question], f"question {number}")[0]
        self.asked += 1
        for corpus in corpora:
            if not corpus.wanted and not corpus.official:
                continue
            self.none.setdefault((corpus.name, kind), []).append(not corpus.wanted)
            self.add(corpus, "by chance", kind, by_chance(corpus.size, len(corpus.wanted)))
            key = id(corpus.rows)
            if self.embedder and key not in vectors:
                vectors[key] = self.embedder.embed([row[1] for row in corpus.rows], f"instance {number}")
            with tempfile.TemporaryDirectory() as folder:
                for side, make, parts in self.sides:
                    start = time.perf_counter()
                    engine = make(corpus.rows, folder, vectors.get(key))
                    made = time.perf_counter()
                    found = ranked(engine, question, question_vector, parts)
                    end = time.perf_counter()
                    engine.close()
                    spent = self.spent.setdefault(side, [0.0, 0.0, 0])
                    spent[0], spent[1], spent[2] = spent[0] + made - start, spent[1] + end - made, spent[2] + 1
                    self.add(corpus, side, kind, measure(corpus.ranking(found), corpus.wanted))

    def show(self, name, kinds):
        n = {kind: self.none.get((name, kind), []) for kind in kinds}
        total = sum(map(len, n.values()))
        print(f"\nLongMemEval, {name}: {total} questions, {sum(map(sum, n.values()))} of them with nothing wanted")
        print(f"{'':<52}{'n':>5} {'none':>5} " + " ".join(f"{m:>7}" for m in MEASURES))
        for side in ["by chance"] + [side[0] for side in self.sides]:
            for kind in ["all"] + kinds:
                some = kinds if kind == "all" else [kind]
                values = [v for k in some for v in self.held.get((name, side, k), [])]
                if values:
                    means = [sum(column) / len(values) for column in zip(*values)]
                    print(f"{side:<24}{kind:<28}{len(values):>5} {sum(sum(n[k]) for k in some):>5} "
                          + " ".join(f"{100 * mean:7.1f}" for mean in means))


def tables(path, embedder):
    stop = engines.stop_words()
    sides = [("FTS5 porter", lambda rows, folder, v: engines.Fts5(rows), "text"),
             ("FTS5 porter, stop list", lambda rows, folder, v: engines.Fts5(rows, stop=stop), "text"),
             ("h5mem", lambda rows, folder, v: engines.H5mem(folder, rows), "text")]
    if embedder:
        sides.append(("hybrid", lambda rows, folder, v: engines.H5mem(folder, rows, v), "both"))
    held, items = Tables(sides, embedder), load(path)
    for number, (kind, question, corpora) in enumerate(items):
        held.instance(number, kind, question, corpora)
    kinds = sorted({item[0] for item in items})
    for corpus in items[0][2] if items else []:
        held.show(corpus.name, kinds)
    for side, (made, asked, count) in held.spent.items():
        print(f"{side:<24}a store made in {1e3 * made / count:.1f} ms, asked in {1e3 * asked / count:.2f} ms, "
              f"mean of {count}")
