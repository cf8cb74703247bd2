"""longmemeval.py - LongMemEval's official JSON (S, M or oracle): sessions and turns that hold the answer

Each instance has a haystack of its own: one store an instance, a row a turn. Session level ranks
sessions by their best turn, turn level turns; both want what the instance names as evidence
(answer_session_ids; turns with has_answer). Instances whose id ends in _abs have no answer and are
left out, as in the official script, which also gives the measures: recall_any and recall_all at 5 and
10, and nDCG at 10. A random ranking's expected recall_any stands beside them, because an oracle
file's haystack holds little else than evidence.

SPDX-License-Identifier: MIT
"""
import calendar
import json
import math
import pathlib
import tempfile
import time

import engines

MEASURES = ("any@5", "any@10", "all@5", "all@10", "nDCG@10")
DATE = "%Y/%m/%d (%a) %H:%M"
POOL = 200  # turns read for a ranking of sessions


def seconds(text, place):
    try:
        return float(calendar.timegm(time.strptime(text, DATE)))
    except (TypeError, ValueError):
        return float(place * 86400)


def load(path):
    """Instances: type, question, rows (id, content, timestamp, session), wanted turns, wanted sessions."""
    out = []
    for item in json.loads(pathlib.Path(path).read_text(encoding="utf-8")):
        if item["question_id"].endswith("_abs"):
            continue
        rows, turns = [], set()
        dates = item.get("haystack_dates") or []
        for place, (session, talk) in enumerate(zip(item["haystack_session_ids"], item["haystack_sessions"])):
            start = seconds(dates[place] if place < len(dates) else None, place)
            for number, turn in enumerate(talk):
                rows.append((len(rows) + 1, turn["content"], start + number, session))
                if turn.get("has_answer"):
                    turns.add(len(rows))
        out.append((item["question_type"], item["question"], rows, turns, set(item["answer_session_ids"])))
    return out


def measure(ranking, wanted):
    gain = sum(1 / math.log2(n + 1) for n, x in enumerate(ranking[:10], 1) if x in wanted)
    most = sum(1 / math.log2(n + 1) for n in range(1, min(len(wanted), 10) + 1))
    hits = [len(wanted & set(ranking[:cut])) for cut in (5, 10)]
    return (*(float(h > 0) for h in hits), *(float(h == len(wanted)) for h in hits), gain / most)


def by_chance(total, wanted, cut):
    """How likely a random ranking of total has one of wanted among its first."""
    miss = 1.0
    for i in range(min(cut, total)):
        miss *= max(total - wanted - i, 0) / (total - i)
    return 1 - miss


def sessions_of(turns, rows):
    """Sessions in the order of their best turn."""
    return list(dict.fromkeys(rows[turn - 1][3] for turn in turns))


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


def answers(item, number, sides, embedder, held):
    kind, question, rows, turns, sessions = item
    row_vectors = question_vector = None
    if embedder:
        row_vectors = embedder.embed([row[1] for row in rows], f"instance {number}")
        question_vector = embedder.embed([question], f"question {number}")[0]
    totals = {"session": len({row[3] for row in rows}), "turn": len(rows)}
    for level, wanted in (("session", sessions), ("turn", turns)):
        if wanted:
            chance = [by_chance(totals[level], len(wanted), cut) for cut in (5, 10)]
            held.setdefault((level, "by chance", kind), []).append((*chance, *[math.nan] * 3))
    with tempfile.TemporaryDirectory() as folder:
        for name, make, parts in sides:
            engine = make(rows, folder, row_vectors)
            found = ranked(engine, question, question_vector, parts)
            engine.close()
            if sessions:
                held.setdefault(("session", name, kind), []).append(measure(sessions_of(found, rows), sessions))
            if turns:
                held.setdefault(("turn", name, kind), []).append(measure(found, turns))


def line(values):
    means = [sum(column) / len(values) for column in zip(*values)]
    return " ".join("      -" if math.isnan(mean) else f"{100 * mean:7.1f}" for mean in means)


def tables(path, embedder):
    stop = engines.stop_words()
    sides = [("FTS5 porter", lambda rows, folder, v: engines.Fts5(rows), "text"),
             ("FTS5 porter, stop list", lambda rows, folder, v: engines.Fts5(rows, stop=stop), "text"),
             ("h5mem", lambda rows, folder, v: engines.H5mem(folder, rows), "text")]
    if embedder:
        sides.append(("hybrid", lambda rows, folder, v: engines.H5mem(folder, rows, v), "both"))
    held, items = {}, load(path)
    for number, item in enumerate(items):
        answers(item, number, sides, embedder, held)
    kinds = sorted({item[0] for item in items})
    for level in ("session", "turn"):
        print(f"\nLongMemEval, {level} level: {len(items)} questions with an answer")
        print(f"{'':<52}{'n':>5} " + " ".join(f"{m:>7}" for m in MEASURES))
        for name in ["by chance"] + [side[0] for side in sides]:
            for kind in ["all"] + kinds:
                values = [v for k in (kinds if kind == "all" else [kind]) for v in held.get((level, name, k), [])]
                if values:
                    print(f"{name:<24}{kind:<28}{len(values):>5} {line(values)}")
