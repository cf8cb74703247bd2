"""test_quality.py - the tool behind `make quality`: its measures, its loaders, its tables on small files

The files have the form of the real ones and are written here.

SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "bench/quality"
sys.path.insert(0, str(TOOL))
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
    assert longmemeval.measure(list("abcdefghijkl"), {"a"}) == (1, 1, 1, 1, 1)
    any5, any10, all5, all10, gain = longmemeval.measure(list("abcdefghijkl"), {"b", "g"})
    assert (any5, any10, all5, all10) == (1, 1, 0, 1) and 0 < gain < 1
    assert longmemeval.measure([], {"a"}) == (0, 0, 0, 0, 0)
    assert longmemeval.by_chance(10, 1, 5) == pytest.approx(0.5)
    assert longmemeval.by_chance(3, 3, 5) == 1


def test_stop_words_are_the_products():
    stop = engines.stop_words()
    assert {"the", "what", "did"} <= stop and not stop & {"may", "like", "dark"}
    assert engines.fts5_words("What did the cat do?", stop) == '"cat"'
    assert engines.fts5_words("the?", stop) == '"the"'


def turn(role, content, answer=False):
    return {"role": role, "content": content, **({"has_answer": True} if answer else {})}


@pytest.fixture
def longmemeval_file(tmp_path):
    talk = [
        [turn("user", "I adopted a tortoise called Gustav yesterday", True), turn("assistant", "Congratulations!")],
        [turn("user", "The weather is mild"), turn("assistant", "Enjoy it while it lasts")],
        [turn("user", "Which bread keeps longest?"), turn("assistant", "Sourdough keeps for a week")],
    ]
    one = {"question_type": "single-session-user", "question": "What is the name of my tortoise?", "answer": "Gustav",
           "question_date": "2023/05/30 (Tue) 23:40", "haystack_session_ids": ["a", "b", "c"],
           "haystack_dates": ["2023/05/20 (Sat) 02:21"] * 3, "haystack_sessions": talk, "answer_session_ids": ["a"]}
    items = [{**one, "question_id": "q1"}, {**one, "question_id": "q1_abs"}]
    path = tmp_path / "longmemeval.json"
    path.write_text(json.dumps(items))
    return path


def test_longmemeval_instances(longmemeval_file):
    (kind, question, rows, turns, sessions), = longmemeval.load(longmemeval_file)
    assert (kind, question, turns, sessions) == ("single-session-user", "What is the name of my tortoise?", {1}, {"a"})
    assert rows[0] == (1, "I adopted a tortoise called Gustav yesterday", 1684549260.0, "a") and len(rows) == 6


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
    for level in ("session", "turn"):
        assert f"LongMemEval, {level} level: 1 questions" in done.stdout
    assert "by chance" in done.stdout and "single-session-user" in done.stdout
