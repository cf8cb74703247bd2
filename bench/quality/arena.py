"""arena.py - one long memory of many sessions: what was said once, in two places, changed later, on a day

Two conversations:

  made here      250 sessions of 16 turns, written by rule from fixed lists with a fixed seed. 100 questions a type:
                 single (said once), multi (two facts, two sessions), update (a fact that a later session changes: only
                 the change is right), day (what is done on many days, and the question names one), date (a day, and
                 not a word of what was done). Other turns speak of the same things and say nothing of the matter, or
                 say it of somebody else's.
  ARENA_FILE     memory_arena.rs of clawhdf5: its sessions and its 35 questions, with the labels that name no session
                 mended (misc_24 is filler_24, misc_25 filler_25).

Labels are sets of turns, or of sessions where the file has no more. Asking changes nothing: every question is asked
twice, in the given order and in reverse, and a ranking that differs is an error. Hit: one wanted among the first k;
all@10: every one of them. A session's place is that of its best turn. Intervals: figures.py.

SPDX-License-Identifier: MIT
"""
import calendar
import pathlib
import random
import re
import tempfile
import time

import engines
import figures

SESSIONS, TURNS, EACH, POOL = 250, 16, 100, 100
THINGS = ("ladder lantern kettle compass tent drill saddle violin anchor telescope hammock toolbox sled canoe easel "
          "trunk lamp stove clock mirror basket rope saw chisel").split()
KINDS = "red brass old wooden folding spare small heavy green broken borrowed painted".split()
PLACES = ("attic cellar shed garage hallway pantry loft boathouse workshop greenhouse barn porch laundry study "
          "stable balcony").split()
DEEDS = ("repaired the fence;planted two pear trees;cycled to the quarry;sold the caravan;swam across the bay;"
         "baked rye bread;cleaned the gutters;visited the glass museum;sharpened every knife;painted the door;"
         "caught three perch;ordered new tyres;walked the ridge;pruned the vines;tuned the piano;stacked the firewood"
         ).split(";")
CHATTER = ("That sounds like a good plan.;I see, thank you for telling me.;Is there anything else on your mind?;"
           "Good to know.;How did that go?;I will keep that in mind.;Would you do it again?").split(";")
SMALL = ("The rain has not stopped all day;I slept badly again;Traffic was slow this morning;My tea went cold;"
         "The neighbours are loud today;I should call the bank;Lunch was nothing special").split(";")
SAID = ("I keep the {0} in the {1}.", "The {0} is in the {1}, by the way.", "You will find the {0} in the {1}.")
MOVED = ("I have moved the {0} to the {1}.", "The {0} went into the {1} yesterday.",
         "From now on the {0} lives in the {1}.")
OTHERS = ("My sister keeps her {0} in the {1}.", "Our landlord had a {0} in his {1} once.",
          "They sell a {0} near the {1}.")
IDLE = ("I nearly sold the {0} last week.", "Somebody asked about the {0} today.", "The {0} needs a coat of paint.",
        "What did I pay for the {0}, do you remember?")
ASKED = ("Where is my {0}?", "Where would I find the {0}?", "In which place do I keep the {0}?")
MONTHS = "January February March April May June July August September October November December".split()


class Memory:
    """Rows (id, content, timestamp, session) and questions (text, set of turn ids, set of sessions, type)."""

    def __init__(self, name, rows, questions):
        self.name, self.rows, self.questions = name, rows, questions


class Writer:
    """Puts turns into sessions, and what a question wants of them."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.talk = [[] for _ in range(SESSIONS)]  # (role's text, key or None)
        self.questions = []

    def free_session(self, low=0, high=SESSIONS):
        return self.rng.choice([s for s in range(low, high) if len(self.talk[s]) < TURNS - 2])

    def say(self, session, text, key=None):
        self.talk[session].append((text, key))
        self.talk[session].append((self.rng.choice(CHATTER), None))

    def fact(self, form, thing, key, low=0, high=SESSIONS):
        session = self.free_session(low, high)
        self.say(session, self.rng.choice(form).format(thing, self.rng.choice(PLACES)), key)
        return session


def made_here(seed=20):
    w = Writer(seed)
    things = [f"{kind} {thing}" for kind in KINDS for thing in THINGS]
    w.rng.shuffle(things)
    mine, changing = things[:EACH], things[EACH:2 * EACH]
    for thing in mine:
        w.fact(SAID, thing, thing)
    for thing in changing:
        before = w.fact(SAID, thing, None, 0, SESSIONS // 2)
        w.fact(MOVED, thing, thing, before + 1, SESSIONS)
    for thing in mine + changing:
        w.fact(OTHERS, thing, None)
        for form in w.rng.sample(IDLE, 2):
            w.fact((form,), thing, None)
    for session in range(SESSIONS):
        w.say(session, f"Today I {w.rng.choice(DEEDS)}.", ("day", session))
        while len(w.talk[session]) < TURNS:
            w.say(session, w.rng.choice(SMALL) + ".")
    rows, place = [], {}
    start = calendar.timegm((2024, 1, 1, 9, 0, 0))
    for session, talk in enumerate(w.talk):
        for number, (text, key) in enumerate(talk):
            rows.append((len(rows) + 1, text, start + session * 86400.0 + number * 60, f"s-{session:03d}"))
            if key is not None:
                place[key] = len(rows)
    return Memory("made here", rows, questions_of(w.rng, rows, place, mine, changing))


def questions_of(rng, rows, place, mine, changing):
    out = []

    def ask(text, wanted, kind):
        out.append((text, wanted, {rows[w - 1][3] for w in wanted}, kind))

    for thing in mine:
        ask(rng.choice(ASKED).format(thing), {place[thing]}, "single")
    for thing in changing:
        ask(rng.choice(ASKED).format(thing), {place[thing]}, "update")
    pairs = list(zip(mine, mine[1:] + mine[:1]))
    for one, other in pairs:
        ask(f"Which is nearer to the kitchen, the {one} or the {other}?", {place[one], place[other]}, "multi")
    for session in rng.sample(range(SESSIONS), EACH):
        when = rows[place[("day", session)] - 1][2]
        year, month, day = day_of(when)
        ask(f"What did I do on {day} {MONTHS[month - 1]} {year}?", {place[("day", session)]}, "date")
        deed = rows[place[("day", session)] - 1][1][len("Today I "):-1]
        ask(f"Who was with me when I {deed} on {day} {MONTHS[month - 1]}?", {place[("day", session)]}, "day")
    return out


def day_of(when):
    stamp = time.gmtime(when)
    return stamp.tm_year, stamp.tm_mon, stamp.tm_mday


TEXT = r'"((?:[^"\\]|\\.)*)"'


def from_file(path):
    """Sessions and questions of clawhdf5's memory_arena.rs."""
    source = pathlib.Path(path).read_text(encoding="utf-8")
    rows = []
    for block in re.split(r"\bSession \{", source)[1:]:
        name = re.match(r"\s*id:\s*" + TEXT, block)
        if not name:
            continue
        for content in re.findall(r"Turn\s*\{\s*role:\s*" + TEXT + r",\s*content:\s*" + TEXT, block):
            rows.append((len(rows) + 1, unescaped(content[1]), 1.7e9 + len(rows) * 60, name[1]))
    sessions = {row[3] for row in rows}
    questions = []
    for text, names, kind in re.findall(r"Query\s*\{\s*question:\s*" + TEXT + r",\s*expected_sessions:\s*&\[(.*?)\],"
                                        r"\s*query_type:\s*" + TEXT, source, re.S):
        wanted = {mended(name, sessions) for name in re.findall(TEXT, names)}
        questions.append((unescaped(text), set(), wanted, kind))
    return Memory("ARENA_FILE", rows, questions)


def unescaped(text):
    return text.replace('\\"', '"').replace("\\\\", "\\")


def mended(name, sessions):
    """The session that a label means: itself, or the one of the same number."""
    if name in sessions:
        return name
    same = sorted(s for s in sessions if s.rpartition("_")[2] == name.rpartition("_")[2])
    if len(same) != 1:
        raise ValueError(f"no session {name}")
    return same[0]


def ranked(engine, text, vector, settings, parts):
    if isinstance(engine, engines.Fts5):
        found = engine.con.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?",
                                   (engines.fts5_words(text, engine.stop), POOL))
    else:
        both = parts == "both"
        found = engine.con.execute(
            f"SELECT id FROM memory WHERE content MATCH ? {'AND embedding MATCH ?' if both else ''} {settings} "
            f"ORDER BY score DESC LIMIT {POOL}", (text, vector.tobytes()) if both else (text,))
    return [row[0] for row in found]


def rankings(engine, memory, vectors, settings, parts):
    """The ranking of every question; asking in another order must not change one."""
    asked = range(len(memory.questions))

    def ask(i):
        return ranked(engine, memory.questions[i][0], None if vectors is None else vectors[i], settings, parts)

    first = [ask(i) for i in asked]
    again = {i: ask(i) for i in reversed(asked)}
    if any(first[i] != again[i] for i in asked):
        raise AssertionError("asking has changed a later answer")
    return first


def chance(memory, rng):
    """A random ranking a question."""
    every = [row[0] for row in memory.rows]
    return [rng.sample(every, min(POOL, len(every))) for _ in memory.questions]


def score(memory, level, found):
    rows = []
    for (_, turns, sessions, _), ranking in zip(memory.questions, found):
        if level == "session":
            ranking = list(dict.fromkeys(memory.rows[row - 1][3] for row in ranking))
        rows.append(figures.of_question(ranking, turns if level == "turn" else sessions))
    return rows


def show(memory, level, kinds, name, rows, base):
    for kind in ["all"] + kinds:
        picked = [i for i, q in enumerate(memory.questions) if kind in ("all", q[3])]
        held = figures.Figures()
        held.rows = [rows[i] for i in picked]
        v = held.values()
        low, high = figures.interval(held.rows, "Hit@5")
        line = (f"{name:<24}{kind:<24}{len(picked):>5} {v['Hit@1']:6.1f} {v['Hit@5']:6.1f} {v['Hit@10']:6.1f} "
                f"{v['MRR@10']:7.3f} {v['all@10']:7.1f}   Hit@5 [{low:.1f} {high:.1f}]")
        if base and base is not rows:
            low, high = figures.interval(held.rows, "Hit@5", [base[i] for i in picked])
            line += f", beside FTS5 [{low:+.1f} {high:+.1f}]"
        print(line, flush=True)


def tables(memory, embedder):
    stop = engines.stop_words()
    sides = [("FTS5 porter, stop list", lambda folder: engines.Fts5(memory.rows, stop=stop), "", "text"),
             ("h5mem, no context", lambda folder: engines.H5mem(folder, memory.rows), "AND context = 0", "text"),
             ("h5mem", lambda folder: engines.H5mem(folder, memory.rows), "", "text")]
    vectors = None
    if embedder:
        row_vectors = embedder.embed([row[1] for row in memory.rows], f"the conversation {memory.name}")
        vectors = embedder.embed([q[0] for q in memory.questions], f"questions, {memory.name}")
        sides.append(("hybrid", lambda folder: engines.H5mem(folder, memory.rows, row_vectors), "", "both"))
    found = {"by chance": chance(memory, random.Random(1))}
    for name, make, settings, parts in sides:
        with tempfile.TemporaryDirectory() as folder:
            engine = make(folder)
            found[name] = rankings(engine, memory, vectors if parts == "both" else None, settings, parts)
            engine.close()
    kinds = sorted({q[3] for q in memory.questions})
    for level in ("turn", "session"):
        if level == "turn" and not all(q[1] for q in memory.questions):
            continue
        print(f"\nOne memory of many sessions, {memory.name}, {level} level: {len(memory.rows)} turns, "
              f"{len({row[3] for row in memory.rows})} sessions, {len(memory.questions)} questions")
        print(f"{'':<48}{'n':>5} {'Hit@1':>6} {'Hit@5':>6} {'Hit@10':>6} {'MRR@10':>7} {'all@10':>7}   "
              "95 % of resamplings")
        base = None
        for name, rows in found.items():
            scored = score(memory, level, rows)
            base = scored if name.startswith("FTS5") else base
            show(memory, level, kinds, name, scored, base)
