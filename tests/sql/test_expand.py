"""h5mem_expand and h5mem_has_tag.

SPDX-License-Identifier: MIT
"""
import random
import sqlite3

import pytest

WEIGHTS = {"acronym": 0.8, "synonym": 0.7, "temporal": 0.6, "morphology": 0.5}


@pytest.fixture
def expand(connect):
    con = connect()

    def go(query, kind=None):
        rows = con.execute("SELECT text, kind, weight FROM h5mem_expand(?)", (query,)).fetchall()
        assert all(weight == WEIGHTS[k] for _, k, weight in rows)
        assert [w for _, _, w in rows] == sorted((w for _, _, w in rows), reverse=True)
        texts = [text.lower() for text, _, _ in rows]
        assert len(set(texts)) == len(texts) and str(query).lower() not in texts
        return [text for text, k, _ in rows if kind in (None, k)]

    return go


def test_a_table_beside_the_query(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    rows = con.execute("SELECT text, kind, weight FROM h5mem_expand('the api', 'memory')").fetchall()
    assert rows == con.execute("SELECT * FROM h5mem_expand('the api')").fetchall() and rows
    assert con.execute("SELECT * FROM h5mem_expand('the api', NULL)").fetchall() == []
    for table, words in (("'nosuch'", "nosuch"), ("7", "table is 7")):
        with pytest.raises(sqlite3.OperationalError, match=words):
            con.execute(f"SELECT * FROM h5mem_expand('the api', {table})")


def test_acronyms_both_ways(expand):
    assert expand("the api", "acronym") == ["the Application Programming Interface"]
    assert expand("application  programming\ninterface?", "acronym") == ["API?"]
    assert expand("DB", "acronym") == ["database"] and expand("Database", "acronym") == ["DB"]
    assert expand("CI/CD now", "acronym") == ["Continuous Integration / Continuous Deployment now"]
    assert expand("continuous integration / continuous deployment", "acronym") == ["CI/CD"]
    assert expand("NoSQL", "acronym") == ["Not only SQL"] and expand("not only sql", "acronym") == ["NoSQL"]
    assert expand("AI and ML", "acronym") == ["Artificial Intelligence and ML", "AI and Machine Learning"]


@pytest.mark.parametrize("query", ["email", "cost", "problem", "api_key", "éAI", "AIé", "AI2", "os9", "dbs", "prs",
                                   "xdb", "日本AI語", "İAI"])
def test_no_acronym_inside_a_word(expand, query):
    assert expand(query, "acronym") == []


def test_synonyms(expand):
    assert expand("Find it", "synonym") == ["search it", "look for it", "query it", "retrieve it"]
    assert expand("look  for it", "synonym") == ["search it", "find it", "query it", "retrieve it"]
    # the first occurrence is inside a word, the second is one
    assert expand("research: search", "synonym")[0] == "research: find"
    assert len(expand("fast and fast", "synonym")) == 8
    assert expand("breakfast", "synonym") == expand("error_code", "synonym") == expand("look fort", "synonym") == []


def test_times(expand):
    assert expand("today", "temporal") == ["now", "current", "this moment"]
    assert expand("seen Last Week", "temporal") == ["seen this week", "seen recent", "seen recently"]
    assert expand("now", "temporal") == [] and expand("yesterdays", "temporal") == []


FORMS = [
    "run runs ran running", "stop stops stopped stopping", "make makes made making", "try tries tried trying",
    "die dies died dying", "agree agrees agreed agreeing", "play plays played playing", "fix fixes fixed fixing",
    "prefer prefers preferred preferring", "visit visits visited visiting", "debug debugs debugged debugging",
    "watch watches watched watching", "create creates created creating", "develop develops developed developing",
    "go goes went gone going", "memory memories", "box boxes", "child children", "city cities", "day days",
    "church churches", "analysis analyses", "photo photos", "knife knives", "class classes", "queue",
    "cry cries cried crying", "listen listens listened listening", "study studies studied studying",
]


@pytest.mark.parametrize("forms", FORMS)
def test_forms(expand, forms):
    forms = forms.split()
    for word in forms:
        assert sorted(expand(word, "morphology")) == sorted(set(forms) - {word})


@pytest.mark.parametrize("word", ["news", "string", "bed", "bus's", "this", "his", "always", "thing", "sing2",
                                  "run_time", "don't", "ran'", "boxé", "lens", "red", "king", "during", "as", "is'",
                                  "a" * 100])
def test_no_forms_of_other_words(expand, word):
    assert expand(word, "morphology") == []


def test_case_is_kept(expand):
    assert expand("Cities", "morphology") == ["City"] and expand("CITIES", "morphology") == ["CITY"]
    assert expand("re-Boxes", "morphology") == ["re-Box"]


def test_nothing(expand, connect):
    con = connect()
    for query in ("", "  ", "xyzzy", "日本語", "…", "search " * 1000):
        assert expand(query) == []
    for call in ("h5mem_expand(NULL)", "h5mem_expand", "h5mem_expand(x'6462')", "h5mem_expand(5)"):
        assert con.execute(f"SELECT * FROM {call}").fetchall() == []


def test_bounds(expand):
    assert len(expand("find " * 800)) == 64
    one = "find " + "x" * 4091
    assert len(expand(one)) == 7 and expand(one + "x") == []


def test_any_bytes(connect):
    con = connect()
    pick = random.Random(8)
    parts = [b"AI", b"find", b"last week", b"boxes", b" ", b"\xff", b"\xc3", "é".encode(), "İ".encode(), b"'", b"/",
             b"ci/cd", b"\0", b"_", b"look for"]
    for _ in range(3000):
        query = b"".join(pick.choice(parts) for _ in range(pick.randrange(9)))
        rows = con.execute("SELECT CAST(text AS BLOB) FROM h5mem_expand(CAST(? AS TEXT))", (query,)).fetchall()
        assert query not in [text for text, in rows]


def test_same_every_time(expand):
    query = "find the API errors that I remembered yesterday"
    assert expand(query) == expand(query) and len(expand(query)) > 10


def test_innocuous(connect):
    con = connect()
    con.execute("CREATE VIEW v AS SELECT text, h5mem_has_tag('a,b', 'b') AS t FROM h5mem_expand('ML')")
    con.execute("PRAGMA trusted_schema = off")
    assert con.execute("SELECT * FROM v").fetchall() == [("Machine Learning", 1)]
    con.execute("CREATE TABLE k(tags)")
    con.execute("CREATE INDEX i ON k(h5mem_has_tag(tags, 'x'))")  # deterministic


@pytest.mark.parametrize("tags, tag, want", [
    ("a,b,c", "b", 1), ("a, b ,c", "b", 1), ("\ta\n,b", "a", 1), ("a,bb", "b", 0), ("bb,a", "b", 0), ("A", "a", 0),
    ("two words, x", "two words", 1), ("two words, x", "two", 0), (None, "a", 0), ("a", None, 0), (None, None, 0),
    ("", "", 0), ("a,,b", "", 0), ("a", "", 0), ("a,b", "a,b", 0), ("a", " a", 0), ("é,ü", "ü", 1), ("1,2", 2, 1),
    (12, 12, 1),    ("a,b", "abc", 0), (",a,", "a", 1), ("x" * 100000 + ",y", "y", 1)])
def test_has_tag(connect, tags, tag, want):
    assert connect().execute("SELECT h5mem_has_tag(?, ?)", (tags, tag)).fetchone() == (want,)
