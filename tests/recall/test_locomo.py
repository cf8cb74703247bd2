"""test_locomo.py - long conversations that people wrote, asked through `content MATCH`, beside FTS5

Each conversation of the data folder's locomo part is one store and, in the same run, one FTS5 table
with the same tokenizer. FTS5 gets the words of the question quoted and joined by OR, h5mem the
question as it is. No figure of h5mem may be below FTS5's; both lines are printed. After a flush and
a reopen every ranking must be the same again.

SPDX-License-Identifier: MIT
"""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/quality"))
import engines
import figures
import locomo

TOKENIZER = "porter unicode61 remove_diacritics 2"
ASK = "SELECT id FROM memory WHERE content MATCH ? ORDER BY score DESC LIMIT 10"
ASK_FTS5 = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT 10"


@pytest.fixture(scope="module")
def talks(data):
    files = sorted(data("locomo").glob("conv-*.json"))
    assert files, "the locomo folder holds no conversation"
    return [(path.stem, *locomo.load(path)) for path in files]


def fill(con, store, rows):
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{store}', dim=384)")
    con.execute("BEGIN")
    con.executemany("INSERT INTO memory(id, content, timestamp, session) VALUES (?, ?, ?, ?)", rows)
    con.execute("COMMIT")
    con.execute(f"CREATE VIRTUAL TABLE temp.words USING fts5(content, tokenize='{TOKENIZER}')")
    con.executemany("INSERT INTO words(rowid, content) VALUES (?, ?)", [row[:2] for row in rows])


def ids(cursor):
    return [row[0] for row in cursor]


def test_the_questions_are_those_of_the_readme(talks):
    """Five known files give 782 questions, the README's count; other files may lie beside them."""
    known = {"conv-26", "conv-41", "conv-43", "conv-47", "conv-49"}
    count = sum(len(questions) for name, _, questions in talks if name in known)
    if known <= {name for name, _, _ in talks}:
        assert count == 782
    for name, rows, questions in talks:
        assert rows and questions, name


def test_not_below_fts5_and_the_same_after_flush_and_reopen(talks, connect, in_tmp, report):
    ours, theirs = figures.Figures(), figures.Figures()
    for name, rows, questions in talks:
        con = connect(f"{name}.db")
        fill(con, f"{name}.h5", rows)
        before = []

        def again():
            return [ids(con.execute(ASK, (question,))) for question, *_ in questions]

        for question, wanted, _ in questions:
            before.append(ids(con.execute(ASK, (question,))))
            ours.add(before[-1], wanted)
            theirs.add(ids(con.execute(ASK_FTS5, (engines.fts5_words(question),))), wanted)
        assert con.execute("SELECT h5mem_flush('memory')").fetchone()[0] == len(rows)
        assert again() == before, "after the flush"
        con.close()
        con = connect(f"{name}.db")
        assert again() == before, "after the reopen"
        con.close()
    report(ours.line("h5mem"))
    report(theirs.line("FTS5"))
    pairs = {name: (ours.values()[name], value) for name, value in theirs.values().items()}
    low = {name: pair for name, pair in pairs.items() if pair[0] < pair[1]}
    assert not low, f"below FTS5: {low}"


def test_a_question_as_typed_is_a_valid_query(talks, connect, in_tmp):
    """Questions as typed hold apostrophes and question marks, which FTS5 refuses."""
    name, rows, questions = talks[0]
    con = connect()
    fill(con, f"{name}.h5", rows)
    odd = [question for question, *_ in questions if "'" in question or "?" in question]
    assert odd
    for question in odd:
        assert con.execute(ASK, (question,)).fetchall(), question
