"""h5mem_gate and h5mem_gate_reason: gate_messages.txt, with precision and recall; arguments.

SPDX-License-Identifier: MIT
"""
import collections
import pathlib
import sqlite3

import pytest

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def con(connect):
    return connect()


def one(con, sql, *values):
    return con.execute(sql, values).fetchone()[0]


def messages():
    for line in (HERE / "gate_messages.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            yield tuple(line.split("\t"))


# Small talk dropped: of what was dropped, how much was small talk (precision); of the small talk, how much was dropped.
FLOORS = {"tune": (0.995, 0.95), "check": (0.98, 0.8)}


def test_labelled_messages(con, report):
    count, wrong = collections.Counter(), []
    for part, language, label, text in messages():
        dropped = one(con, "SELECT h5mem_gate(?)", text) == 0
        count[part, label, dropped] += 1
        count[part] += 1
        if dropped and label == "keep":
            wrong.append((language, text))
    assert len({language for _, language, _, _ in messages()}) >= 16 and sum(1 for _ in messages()) >= 500
    for part, (precision, recall) in FLOORS.items():
        right, lost, left = (count[part, "chatter", True], count[part, "keep", True], count[part, "chatter", False])
        got = right / (right + lost), right / (right + left)
        report(f"gate, {part}: {count[part]} messages, small talk dropped with precision {got[0]:.3f}, "
               f"recall {got[1]:.3f}")
        assert got[0] >= precision and got[1] >= recall, (part, got, wrong)


@pytest.mark.parametrize("text", [
    "Allergic: penicillin", "Bob's birthday?", "Will", "Grace", "17", "at noon", "Tuesday", "rm -rf /tmp/x", "/remind",
    "https://example.org", "我对青霉素过敏", "明日の九時", "кота зовут Барсик", "where is it parked?", "no nuts"])
def test_never_dropped(con, text):
    assert one(con, "SELECT h5mem_gate(?)", text) == 1
    assert one(con, "SELECT h5mem_gate(?, 'search')", text) == 1


def test_conversations(con, data, report):
    """Of real turns hardly any are dropped, and those are short."""
    import json
    turns = []

    def walk(o):
        if isinstance(o, dict):
            if isinstance(o.get("text"), str) and "speaker" in o:
                turns.append(o["text"])
            for v in o.values():
                walk(v)
        elif isinstance(o, list):
            for v in o:
                walk(v)
    for path in sorted(data("locomo").glob("conv-*.json")):
        walk(json.loads(path.read_text(encoding="utf-8")))
    dropped = [t for t in turns if one(con, "SELECT h5mem_gate(?)", t) == 0]
    report(f"gate: {len(dropped)} of {len(turns)} turns of real conversations dropped, the longest of "
           f"{max(len(t.split()) for t in dropped)} words")
    assert len(turns) > 1000 and len(dropped) < 0.03 * len(turns)


def test_arguments(con):
    assert one(con, "SELECT h5mem_gate(NULL)") is None and one(con, "SELECT h5mem_gate_reason(NULL)") is None
    assert one(con, "SELECT h5mem_gate(5)") == 1 and one(con, "SELECT h5mem_gate_reason(5.5)") == "number"
    assert one(con, "SELECT h5mem_gate('')") == 0 and one(con, "SELECT h5mem_gate_reason('')") == "empty"
    assert one(con, "SELECT h5mem_gate(x'')") == 0 and one(con, "SELECT h5mem_gate_reason(x'ff')") == "unreadable"
    assert one(con, "SELECT h5mem_gate(x'6f6b00')") == 0 and one(con, "SELECT h5mem_gate(?)", "ok\0rent") == 1
    assert one(con, "SELECT h5mem_gate_reason('thanks!')") == "chatter"
    assert one(con, "SELECT h5mem_gate_reason('who am I?', 'SAVE')") == "filler"
    assert one(con, "SELECT h5mem_gate_reason('who am I?', 'search')") == "question"
    for value in ("keep", None, 5):
        with pytest.raises(sqlite3.OperationalError, match="h5mem: h5mem_gate's purpose is .*'save' or 'search'"):
            one(con, "SELECT h5mem_gate('x', ?)", value)


def test_in_a_view_and_an_index(con):
    con.execute("CREATE TABLE said(t)")
    con.executemany("INSERT INTO said VALUES(?)", [("ok",), ("rent is due",), (None,)])
    con.execute("CREATE INDEX worth ON said(h5mem_gate(t))")
    con.execute("CREATE VIEW kept AS SELECT t FROM said WHERE h5mem_gate(t)")
    assert con.execute("SELECT t FROM kept").fetchall() == [("rent is due",)]
