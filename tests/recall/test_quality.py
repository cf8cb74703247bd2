"""test_quality.py - the tool behind `make quality`: its measures, its loaders, its tables on small files

The files have the form of the real ones and are written here.

SPDX-License-Identifier: MIT
"""
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "bench/quality"
sys.path.insert(0, str(TOOL))
import arena
import engines
import figures
import longmemeval


def test_figures_of_one_question():
    assert figures.of_question([9, 8, 3, 7], {3, 7}) == (0, 1, 1, 1 / 3, 1, 1)
    assert figures.of_question([3], {3, 7}) == (1, 1, 1, 1, 0.5, 0)
    assert figures.of_question([], {3}) == (0, 0, 0, 0, 0, 0)
    assert figures.of_question(list(range(20)), {15}) == (0, 0, 0, 0, 0, 0)


def test_an_interval_holds_the_mean_and_a_pair_with_itself_differs_by_nothing():
    rows = [figures.of_question([i % 7], {0}) for i in range(140)]
    low, high = figures.interval(rows, "Hit@1")
    assert low < 100 / 7 < high
    assert figures.interval(rows, "Hit@1", rows) == (0, 0)


def test_measures_of_longmemeval():
    assert longmemeval.measure(list("abcdefghijkl"), {"a"}) == (1,) * 7
    any1, any5, any10, all5, all10, gain5, gain10 = longmemeval.measure(list("abcdefghijkl"), {"b", "g"})
    assert (any1, any5, any10, all5, all10) == (0, 1, 1, 0, 1)
    # the official discount: places 1 and 2 count whole, then 1 / log2(place)
    assert gain5 == pytest.approx(1 / 2) and gain10 == pytest.approx((1 + 1 / math.log2(7)) / 2)
    assert longmemeval.measure([], {"a"}) == (0,) * 7
    assert longmemeval.measure(["a"], set()) == (0, 0, 0, 1, 1, 0, 0)  # as the official script has it


def test_chance_is_what_random_orders_reach():
    rng = random.Random(7)
    for total, wanted in ((12, 1), (12, 3), (6, 2), (30, 11), (4, 0)):
        sums = [0.0] * 7
        for _ in range(4000):
            order = rng.sample(range(total), total)
            sums = [a + b for a, b in zip(sums, longmemeval.measure(order, set(range(wanted))))]
        assert [x / 4000 for x in sums] == pytest.approx(longmemeval.by_chance(total, wanted), abs=0.04)


def test_stop_words_are_the_products():
    stop = engines.stop_words()
    assert {"the", "what", "did"} <= stop and not stop & {"may", "like", "dark"}
    assert engines.fts5_words("What did the cat do?", stop) == '"cat"'
    assert engines.fts5_words("the?", stop) == '"the"'


def turn(role, content, answer=False):
    return {"role": role, "content": content, "has_answer": answer}


@pytest.fixture
def longmemeval_file(tmp_path):
    talk = [
        [turn("user", "I adopted a tortoise called Gustav yesterday", True), turn("assistant", "Congratulations!")],
        [turn("user", "The weather is mild"), turn("assistant", "Enjoy it while it lasts")],
        [turn("user", "Which bread keeps longest?"), turn("assistant", "Sourdough keeps for a week", True)],
    ]
    one = {"question_type": "single-session-user", "question": "What is the name of my tortoise?", "answer": "Gustav",
           "question_date": "2023/05/30 (Tue) 23:40", "haystack_session_ids": ["answer_a", "b", "answer_c"],
           "haystack_dates": ["2023/05/20 (Sat) 02:21"] * 3, "haystack_sessions": talk,
           "answer_session_ids": ["answer_a"]}
    two = {**one, "question_id": "q2", "question_type": "single-session-assistant", "answer_session_ids": ["answer_c"],
           "question": "How long did you say sourdough keeps?"}
    two["haystack_sessions"] = [[{**t, "has_answer": "Sourdough" in t["content"]} for t in s] for s in talk]
    one["haystack_sessions"] = [[{**t, "has_answer": "Gustav" in t["content"]} for t in s] for s in talk]
    items = [{**one, "question_id": "q1"}, two, {**one, "question_id": "q1_abs"}]
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(items))
    return path


def test_longmemeval_instances(longmemeval_file):
    (kind, question, one), (_, _, two) = longmemeval.load(longmemeval_file)
    assert (kind, question) == ("single-session-user", "What is the name of my tortoise?")
    sessions, users, both, by_turns = one
    assert [len(c.rows) for c in one] == [3, 3, 6, 6] and by_turns.size == 3
    assert users.rows[0] == (1, "I adopted a tortoise called Gustav yesterday", 1684549260.0, "answer_a")
    assert (sessions.wanted, users.wanted, both.wanted, by_turns.wanted) == ({1}, {1}, {1}, {"answer_a"})
    # what the assistant said is no row of the official corpora
    assert [c.wanted for c in two] == [set(), set(), {6}, {"answer_c"}]
    assert by_turns.ranking([6, 5, 1]) == ["answer_c", "answer_a"]


def test_the_tables_print(longmemeval_file, tmp_path, so):
    talk = {"speaker_a": "Ann", "speaker_b": "Bo", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a red kayak"},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Where will you paddle?"},
        {"speaker": "Ann", "dia_id": "D1:3", "text": "On the lake behind the mill"}]}
    qa = [{"question": "What did Ann buy in May 2023?", "evidence": ["D1:1"], "category": 2},
          {"question": "Where does Ann paddle?", "evidence": ["D1:3"], "category": 4},
          {"question": "Not asked", "evidence": ["D1:1"], "category": 5}]
    (tmp_path / "conv-1.json").write_text(json.dumps({"conversation": talk, "qa": qa}))
    done = subprocess.run(
        [sys.executable, str(TOOL / "quality.py"), "--no-vectors", "--locomo", str(tmp_path), "--longmemeval",
         str(longmemeval_file)], capture_output=True, text=True, env={**os.environ, "H5MEM_SO": str(so)}, check=False)
    assert done.returncode == 0, done.stderr
    assert "LoCoMo, one store a conversation: 3 turns, 2 questions" in done.stdout
    line, = [line for line in done.stdout.splitlines() if line.startswith("h5mem  ")][:1]
    assert line.split()[2] == "100.0"
    for name, n, none in (("sessions, official", 2, 1), ("turns, official", 2, 1), ("turns, both", 2, 0),
                          ("sessions by turns", 2, 0)):
        assert f"LongMemEval, {name}: {n} questions, {none} of them with nothing wanted" in done.stdout
    assert "by chance" in done.stdout and "single-session-user" in done.stdout
    both = done.stdout.partition("LongMemEval, turns, both")[2].partition("LongMemEval")[0]
    assert [line.split()[-7:] for line in both.splitlines() if line.startswith("h5mem ")][0] == ["100.0"] * 7


def test_the_conversation_made_here_has_right_labels():
    memory = arena.made_here()
    kinds = [q[3] for q in memory.questions]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == dict.fromkeys(
        ("single", "multi", "update", "day", "date"), 100)
    text = {row[0]: row[1] for row in memory.rows}
    for question, turns, sessions, kind in memory.questions:
        assert sessions == {memory.rows[turn - 1][3] for turn in turns} and len(turns) == (2 if kind == "multi" else 1)
        turn, = list(turns)[:1]
        if kind in ("single", "update"):
            thing = max((f"{k} {t}" for k in arena.KINDS for t in arena.THINGS if f"{k} {t}" in question), key=len)
            same = [i for i, said in text.items() if f"the {thing}" in said.lower()
                    and any(place in said for place in arena.PLACES)
                    and not said.startswith(("My sister", "Our landlord", "They sell"))]
            assert turn == max(same) and len(same) == (2 if kind == "update" else 1), question
        if kind == "day":
            deed = re.search(r"when I (.*) on \d", question)[1]
            assert deed in text[turn] and sum(deed in said for said in text.values()) > 1
    assert memory.rows == arena.made_here().rows


ARENA = r'''
const SESSIONS: &[Session] = &[
    Session { id: "misc_3", turns: &[
        Turn { role: "user", content: "I keep bees behind the \"old\" mill." },
        Turn { role: "assistant", content: "How many hives?" } ] },
    Session {
        id: "filler_24",
        turns: &[ Turn { role: "user", content: "My bicycle is green." }, ],
    },
];
const QUERIES: &[Query] = &[
    Query { question: "Where are the bees?", expected_sessions: &["misc_3"], query_type: "single-session" },
    Query {
        question: "What colour is the bicycle, and where are the bees?",
        expected_sessions: &["misc_24", "misc_3"],
        query_type: "multi-session",
    },
];
'''


def test_the_other_conversation_is_read_and_its_labels_mended(tmp_path):
    path = tmp_path / "memory_arena.rs"
    path.write_text(ARENA)
    memory = arena.from_file(path)
    assert [row[1] for row in memory.rows] == ['I keep bees behind the "old" mill.', "How many hives?",
                                               "My bicycle is green."]
    assert memory.rows[2][3] == "filler_24"
    assert memory.questions[0] == ("Where are the bees?", set(), {"misc_3"}, "single-session")
    assert memory.questions[1][2:] == ({"filler_24", "misc_3"}, "multi-session")
    path.write_text(ARENA.replace('"misc_24"', '"misc_9"'))
    with pytest.raises(ValueError, match="misc_9"):
        arena.from_file(path)


def test_asking_that_changes_answers_is_seen(tmp_path, monkeypatch):
    path = tmp_path / "memory_arena.rs"
    path.write_text(ARENA)
    memory = arena.from_file(path)
    asked = []
    monkeypatch.setattr(arena, "ranked", lambda engine, text, *rest: asked.append(text) or [len(asked)])
    with pytest.raises(AssertionError, match="asking has changed"):
        arena.rankings(None, memory, None, "", "text")
    monkeypatch.setattr(arena, "ranked", lambda engine, text, *rest: [len(text)])
    assert arena.rankings(None, memory, None, "", "text") == [[len(q[0])] for q in memory.questions]
