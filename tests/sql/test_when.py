"""test_when.py - questions that name a time and nothing else, beside those that name more

SPDX-License-Identifier: MIT
"""
import calendar
import json
import time

import pytest

DAYS = ["2022-05-03", "2023-04-30", "2023-05-03", "2023-05-03", "2023-05-08", "2023-06-01", "2024-05-08"]
TEXTS = ["we sold the boat", "rain all day", "Ann moved to Lyon", "the boat came back", "a quiet Monday",
         "may I have the key?", "nothing happened"]


def seconds(day):
    return calendar.timegm(time.strptime(day, "%Y-%m-%d")) + 3600 * 10


@pytest.fixture(params=["no sessions", "sessions", "in the log"])
def con(connect, in_tmp, request):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=3)")
    for i, (day, text) in enumerate(zip(DAYS, TEXTS), 1):
        con.execute("INSERT INTO memory(id, content, timestamp, session, embedding) VALUES (?, ?, ?, ?, '[1, 0, 0.5]')",
                    (i, text, seconds(day), None if request.param == "no sessions" else f"s{i // 3}"))
    if request.param != "in the log":
        con.execute("SELECT h5mem_flush('memory')").fetchone()
    return con


def ask(con, text, more="", table="memory"):
    sql = f"SELECT id FROM {table} WHERE content MATCH ? {more} ORDER BY score DESC"
    return [i for i, in con.execute(sql, (text,))]


@pytest.mark.parametrize("text, want", [
    ("What happened on 3 May 2023?", {3, 4}),
    ("what did we talk about on May 3rd?", {1, 3, 4}),
    ("2023-05-08", {5}),
    ("And in June 2023?", {6}),
    ("what happened in 2022", {1}),
    ("Which things were said in May?", {1, 3, 4, 5, 7}),
])
def test_rows_of_the_time_come_first(con, text, want):
    got = ask(con, text)
    assert set(got[:len(want)]) == want, got
    assert set(got[len(want):]) <= {5, 6, 7}  # what only has one of the words, as before


def test_with_a_vector_a_filter_and_the_worst_first(con):
    more = "AND embedding MATCH '[1, 0, 0.5]'"
    assert set(ask(con, "what happened on 3 May 2023?", more)[:2]) == {3, 4}
    assert ask(con, "what happened on 3 May 2023?", "AND id <> 4")[0] == 3
    rows = con.execute("SELECT id FROM memory WHERE content MATCH 'on 3 May 2023' ORDER BY score").fetchall()
    assert {i for i, in rows[-2:]} == {3, 4}
    assert ask(con, "on 3 May 2023", "AND k = 1") == ask(con, "on 3 May 2023")[:1]
    why = con.execute("SELECT score, h5mem_explain(memory) FROM memory WHERE content MATCH 'on 3 May 2023?'").fetchall()
    for score, text in why:
        assert json.loads(text)["score"] == pytest.approx(score)


@pytest.mark.parametrize("text", ["the boat in May", "Did Ann move in 2023?", '"happened" in May 2023', "-rain +May",
                                  "happened", "what did we say?", "may I?", "marches", "",
                                  "first", "monday", "2023", "may", "yesterday", "may june", "2023 08",
                                  "morning", "the last thing", "summer", "week", "day"])
def test_other_questions_find_what_their_words_find(con, text):
    words = con.execute("SELECT count(*) FROM memory WHERE content MATCH ? AND rank < 0", (text,)).fetchone()[0]
    shown = {i for i in ask(con, text)}
    assert len(shown) == words
    for i in shown:
        row = con.execute("SELECT lower(content) FROM memory WHERE id = ?", (i,)).fetchone()[0]
        assert any(word.strip('"+?').lower() in row for word in text.split())


def test_relative_times_go_by_the_clock(con):
    con.execute("UPDATE memory SET timestamp = unixepoch('now', '-1 day') WHERE id = 2")
    con.execute("UPDATE memory SET timestamp = unixepoch('now', '-3 years') WHERE id = 7")
    assert ask(con, "What happened yesterday?")[0] == 2
    assert 2 in ask(con, "what did we talk about in the last 3 days")[:1]
    first = ask(con, "anything since 2020?")
    assert set(first) >= set(range(1, 8))


def test_a_times_rows_are_all_there_is_of_a_naive_scan(connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('n.h5', dim=2)")
    con.execute("WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 2000)"
                " INSERT INTO memory(id, content, timestamp) SELECT i, 'word' || i % 7, 1640995200 + i * 43200 FROM s")
    con.execute("SELECT h5mem_flush('memory')").fetchone()
    want = [i for i, in con.execute("SELECT id FROM memory WHERE strftime('%m', timestamp, 'unixepoch') = '03'"
                                    " AND strftime('%w', timestamp, 'unixepoch') = '2' ORDER BY id")]
    assert len(want) > 20
    assert ask(con, "what happened on Tuesdays in March?") == want
