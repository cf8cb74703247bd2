"""test_aux.py - bm25(memory), highlight(memory, ...), snippet(memory, ...)

Held against an FTS5 table with the same texts and the same tokenizer; in joins, subqueries, sorts, OR and UNION,
where the row that a value stands for could be lost; and in what is refused.

SPDX-License-Identifier: MIT
"""

import random
import sqlite3

import pytest

TEXTS = [
    "I like dark mode in every editor",
    "light mode is fine",
    "Nothing here: dark. Really dark, and so it is all over the place",
    None,
    "",
    "... --- ...",
]
H = "highlight(memory, 0, '[', ']')"
DARK = [
    "I like [dark] [mode] in every editor",
    "light [mode] is fine",
    "Nothing here: [dark]. Really [dark], and so it is all over the place",
]


def fill(con):
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    for i, text in enumerate(TEXTS, 1):
        con.execute(
            "INSERT INTO memory(id, content, embedding) VALUES (?, ?, ?)",
            (i, text, f"[{i}, 1]"),
        )


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    fill(con)
    return con


def rows(con, sql, *values):
    return con.execute(sql, values).fetchall()


def column(con, sql, *values):
    return [row[0] for row in con.execute(sql, values)]


# ---- against FTS5

SYLLABLES = "dark mode Darks running runs été ETE naïve x1 a the straße don't".split()
GAPS = [" ", " ", " ", " ", "  ", ", ", ". ", ": ", ".", "\n", ".\t", "-", "_", " … "]


def make_text(rnd):
    text = rnd.choice(["", "", " ", "- "])
    for _ in range(rnd.randrange(0, rnd.choice([5, 20, 80]))):
        text += rnd.choice(SYLLABLES) + rnd.choice(GAPS)
    return text


@pytest.mark.parametrize("tokenizer", ["unicode61", "porter unicode61 remove_diacritics 2", "ascii", "trigram"])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_as_fts5(connect, in_tmp, tokenizer, encoding):
    con = connect("host.db")
    con.execute(f"PRAGMA encoding = '{encoding}'")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, tokenize='{tokenizer}')")
    con.execute(f"CREATE VIRTUAL TABLE f USING fts5(content, tokenize='{tokenizer}')")
    rnd = random.Random(7)
    texts = [make_text(rnd) for _ in range(150)]
    con.execute("BEGIN")
    for i, text in enumerate(texts, 1):
        con.execute("INSERT INTO memory(id, content) VALUES (?, ?)", (i, text))
        con.execute("INSERT INTO f(rowid, content) VALUES (?, ?)", (i, text))
    con.execute("COMMIT")
    stem = {"Darks": "dark", "runs": "run", "running": "run", "ETE": "été"}
    # with trigrams one word of three letters, since FTS5 takes a longer one as a phrase
    sure = ["run", "dar"] if tokenizer == "trigram" else [s for s in SYLLABLES if s not in ("don't", "a", "the")]
    compared = 0
    for n in range(40):
        words = rnd.sample(sure, 1 if tokenizer == "trigram" else rnd.randrange(1, 4))
        # the same word twice would be two phrases to FTS5
        words = list({stem.get(w, w): w for w in words}.values())
        query = " OR ".join(f'"{w}"' for w in words)
        length = rnd.choice([2, 3, 5, 8, 13, 30, 64])  # not 1: at the first word FTS5 3.40 then shows more
        calls = f"highlight(%s, 0, '<b>', '</b>'), snippet(%s, 0, '[', ']', '…', {length})"
        want = dict(
            (i, (h, s)) for i, h, s in rows(con, f"SELECT rowid, {calls % ('f', 'f')} FROM f WHERE f MATCH ?", query)
        )
        for source in ("memory(?)", "memory WHERE content MATCH ?", "memory WHERE memory MATCH ?"):
            got = rows(con, f"SELECT id, {calls % ('memory', 'memory')} FROM {source}", " ".join(words))
            # FTS5 3.40 gives trigrams that overlap marks of their own
            assert {i for i, *_ in got} == set(want)
            if tokenizer == "trigram":
                got = [(i, *pair) for i, *pair in got if "><" not in want[i][0]]
            for i, *pair in got:
                assert (texts[i - 1], words, length, tuple(pair)) == (texts[i - 1], words, length, want[i])
                compared += 1
    assert compared > 1000


def test_operators_as_fts5(connect, in_tmp):
    """A word that is there, but no part of why the row is found, is not marked: a OR (b AND c)."""
    con, rnd = connect("host.db"), random.Random(11)
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    con.execute("CREATE VIRTUAL TABLE f USING fts5(content, tags, tokenize='porter unicode61 remove_diacritics 2')")
    for i in range(1, 120):
        row = [" ".join(rnd.choices("abcdef", k=rnd.randrange(6))) for _ in range(2)]
        con.execute("INSERT INTO memory(id, content, tags) VALUES (?, ?, ?)", (i, *row))
        con.execute("INSERT INTO f(rowid, content, tags) VALUES (?, ?, ?)", (i, *row))

    def make(depth, left):
        kind = rnd.random()
        if depth == 0 or kind < 0.3:
            return rnd.choice(["", "", "", "tags: ", "content: "]) + left.pop()
        if kind < 0.4:
            return f"NEAR({left.pop()} {left.pop()}, 1)"
        op = rnd.choice(["OR", "OR", "AND"])  # FTS5 marks some words on the right of a NOT
        return f"({make(depth - 1, left)} {op} {make(depth - 1, left)})"

    calls, compared = "highlight({0}, 0, '[', ']'), highlight({0}, 1, '[', ']')", 0
    for n in range(150):
        query = make(2, rnd.sample("abcdefgh", 8))  # each letter once: twice would be two phrases to FTS5
        want = rows(con, f"SELECT rowid, {calls.format('f')} FROM f WHERE f MATCH ? ORDER BY 1", query)
        got = rows(con, f"SELECT id, {calls.format('memory')} FROM memory WHERE memory MATCH ? AND syntax = 'fts5'"
                   " ORDER BY 1", query)
        assert (query, got) == (query, want)
        compared += len(got)
    assert compared > 1000


@pytest.mark.parametrize("query, want", [
    ("a OR (x NOT y)", ["[a] x y", "[a] [x]"]), ("a NOT (b NOT y)", ["[a] x y", "[a] x"]),
    ("a OR (b AND NEAR(x y))", ["[a] x y", "[a] x"]), ("(a AND x) OR (x AND q)", ["[a] [x] y", "[a] [x]"]),
])
def test_what_is_no_part_of_the_match_is_not_marked(connect, in_tmp, query, want):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    con.execute("INSERT INTO memory(id, content) VALUES (1, 'a x y'), (2, 'a x')")
    found = "FROM memory WHERE content MATCH ? AND syntax = 'fts5' ORDER BY id"
    assert column(con, f"SELECT {H} {found}", query) == want
    assert column(con, f"SELECT snippet(memory, 0, '[', ']', '..', 9) {found}", query) == want


def test_trigrams_that_overlap_are_one_mark(connect, in_tmp):
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, tokenize='trigram')")
    con.execute("INSERT INTO memory(content) VALUES ('a dark mode editor')")
    assert column(con, f"SELECT {H} FROM memory('dark mo')") == ["a [dark mo]de editor"]
    assert column(con, f"SELECT {H} FROM memory('dark ode')") == ["a [dark ]m[ode] editor"]


def test_a_long_text_takes_one_pass(con):
    """400,000 matches: as many windows, which no pass over each could look at."""
    con.execute("INSERT INTO memory(id, content) VALUES (90, ?)", ("filler " * 50 + "tick tock " * 200_000 + "end",))
    got = column(con, "SELECT snippet(memory, 0, '[', ']', '..', 3) FROM memory('tick end')")
    assert got == ["..[tick] tock [end]"]


# ---- where the row comes from


def test_each_kind_of_query(con):
    assert column(con, f"SELECT {H} FROM memory('dark mode')") == DARK
    assert column(con, f"SELECT {H} FROM memory WHERE memory = 'dark mode'") == DARK
    assert column(con, f"SELECT {H} FROM memory WHERE memory MATCH 'dark mode'") == DARK
    assert column(con, f"SELECT {H} FROM memory WHERE content MATCH 'dark mode'") == DARK
    assert rows(con, "SELECT id FROM memory('dark mode') WHERE bm25(memory) IS NOT rank") == []
    assert column(con, "SELECT bm25(memory, 1, 1.0, 1) < 0 FROM memory('dark mode')") == [1, 1, 1]


def test_without_words_nothing_is_marked(con):
    calls = "highlight(memory, -1, '[', ']'), snippet(memory, -1, '[', ']', '..', 2), bm25(memory)"
    want = [
        (TEXTS[0], "I like..", None),
        (TEXTS[1], "light mode..", None),
        (TEXTS[2], "Nothing here..", None),
        (None, None, None),
        ("", "", None),
        ("... --- ...", "... --- ...", None),
    ]
    assert rows(con, f"SELECT {calls} FROM memory") == want
    assert rows(con, f"SELECT {calls} FROM memory WHERE id = 3") == want[2:3]
    assert sorted(rows(con, f"SELECT {calls} FROM memory WHERE embedding MATCH '[1, 1]' AND k = 2")) == want[:2]


def test_a_hybrid_row_without_the_words(con):
    got = rows(
        con,
        f"SELECT id, {H}, bm25(memory) IS rank, rank IS NULL FROM memory"
        " WHERE embedding MATCH '[2, 1]' AND content MATCH 'like' ORDER BY id LIMIT 2",
    )
    assert got == [(1, "I [like] dark mode in every editor", 1, 0), (2, "light mode is fine", 1, 1)]


def test_tags_and_session_are_marked_where_they_are_searched(con):
    con.execute("INSERT INTO memory(id, content, tags, session) VALUES (50, 'dark wood', 'dark, ui', 's-1 dark')")
    calls = f"{H}, highlight(memory, 1, '[', ']'), snippet(memory, 2, '[', ']', '..', 1)"
    everywhere = [("[dark] [wood]", "[dark], ui", "..[dark]")]
    assert rows(con, f"SELECT {calls} FROM memory('dark wood') LIMIT 1") == everywhere
    assert rows(con, f"SELECT {calls} FROM memory WHERE memory MATCH 'dark wood' LIMIT 1") == everywhere
    content = rows(con, f"SELECT {calls} FROM memory WHERE content MATCH 'dark wood' LIMIT 1")
    assert content == [("[dark] [wood]", "dark, ui", "s..")]


def test_phrases_and_prefixes_are_marked_as_they_match(con):
    def marks(query):
        return column(con, f"SELECT {H} FROM memory WHERE id IN (1, 3) AND content MATCH ? ORDER BY id", query)

    assert marks('"dark mode"') == ["I like [dark mode] in every editor"]
    assert marks('"really dark" place') == ["Nothing here: dark. [Really dark], and so it is all over the [place]"]
    assert marks("ev*") == ["I like dark mode in [every] editor"]
    assert marks("+like -place ever") == ["I [like] dark mode in every editor"]
    assert marks('"mode in every" "every editor"') == ["I like dark [mode in every editor]"]
    snip = "SELECT snippet(memory, 0, '[', ']', '..', 3) FROM memory WHERE content MATCH ?"
    assert column(con, snip, '"in every editor"') == ["..[in every editor]"]
    assert column(con, snip, '"in every"') in (["..[in every] editor"], ["..mode [in every].."])


def test_sorted_by_sqlite(con):
    order = sorted(DARK, key=lambda s: len(s))
    assert column(con, f"SELECT {H} FROM memory('dark mode') ORDER BY length(content)") == order
    page = "ORDER BY length(content) LIMIT 1 OFFSET 1"
    assert column(con, f"SELECT {H} FROM memory WHERE content MATCH 'dark mode' {page}") == order[1:2]
    assert column(con, f"SELECT {H} AS h FROM memory('dark mode') ORDER BY h DESC") == sorted(DARK, reverse=True)
    assert column(con, f"SELECT DISTINCT {H} FROM memory('dark mode') ORDER BY id DESC") == DARK[::-1]


def test_in_subqueries(con):
    dark = f"SELECT id, {H} AS h FROM memory('dark mode')"
    assert column(con, f"SELECT h FROM ({dark}) ORDER BY id DESC") == DARK[::-1]
    assert column(con, f"WITH t AS MATERIALIZED ({dark}) SELECT max(h) FROM t") == [max(DARK)]
    words = "(SELECT 'fine' AS word UNION ALL SELECT 'like')"
    assert column(con, f"SELECT (SELECT {H} FROM memory(word) LIMIT 1) FROM {words}") == [
        "light mode is [fine]",
        "I [like] dark mode in every editor",
    ]
    like = "SELECT highlight(memory, 0, '<', '>') FROM memory('like')"
    assert column(con, f"SELECT {H} FROM memory('dark') UNION {like} ORDER BY 1") == [
        "I <like> dark mode in every editor",
        "I like [dark] mode in every editor",
        DARK[2],
    ]
    con.execute(f"CREATE VIEW found AS SELECT id, {H} AS h FROM memory WHERE content MATCH 'dark mode'")
    assert column(con, "SELECT h FROM found WHERE id = 2") == [DARK[1]]
    con.execute(f"CREATE TABLE copy AS SELECT {H} AS h FROM memory('dark mode')")
    assert column(con, "SELECT h FROM copy") == DARK


def test_in_joins(con):
    two = "highlight(a.memory, 0, '[', ']'), highlight(b.memory, 0, '<', '>')"
    pairs = "memory('dark') a JOIN memory('fine') b ON b.id < a.id"
    got = rows(con, f"SELECT {two} FROM {pairs} ORDER BY a.content || b.content")
    assert got == [(DARK[2], "light mode is <fine>")]
    con.execute("CREATE TABLE asked(x, words)")
    con.execute("INSERT INTO asked VALUES (1, 'dark'), (2, 'dark'), (99, 'dark'), (3, 'place nothing')")
    outer = f"SELECT {H} FROM asked LEFT JOIN memory ON id = x"
    assert column(con, f"{outer} AND memory MATCH words ORDER BY asked.rowid") == [
        "I like [dark] mode in every editor",
        None,
        None,
        "[Nothing] here: dark. Really dark, and so it is all over the [place]",
    ]
    assert column(con, f"{outer} ORDER BY asked.rowid") == [TEXTS[0], TEXTS[1], None, TEXTS[2]]


def test_in_an_or(con):
    """SQLite then compares the table's own column itself."""
    some = "(id = 1 OR (id = 3 AND content LIKE 'Nothing%'))"
    for sql in (f"memory('dark mode') WHERE {some}", f"memory WHERE memory = 'dark mode' AND {some}"):
        assert sorted(column(con, f"SELECT {H} FROM {sql}")) == sorted([DARK[0], DARK[2]])
    either = "content MATCH 'fine' OR embedding MATCH '[1, 1]' AND k = 1"
    assert column(con, f"SELECT {H} FROM memory WHERE {either}") == [
        "light mode is [fine]",
        TEXTS[0],
    ]
    assert column(con, "SELECT id FROM memory WHERE memory = 'dark' AND memory = 'mode'") == []
    with pytest.raises(sqlite3.OperationalError, match="h5mem: memory: m.h5: MATCH must be a term of its own"):
        rows(con, f"SELECT id FROM memory WHERE memory MATCH 'dark mode' AND {some}")


def test_past_the_sixteenth_constraint(con):
    many = " AND ".join(f"importance < {i}" for i in range(10, 30))
    assert column(con, f"SELECT {H} FROM memory('dark mode') WHERE {many}") == DARK


def test_several_in_one_statement_and_several_statements(con):
    one = con.execute(f"SELECT {H}, {H} || {H} FROM memory('dark mode')")
    two = con.execute(f"SELECT {H} FROM memory WHERE content MATCH 'like fine'")
    assert one.fetchone() == (DARK[0], DARK[0] * 2)
    assert two.fetchone() is not None
    con.execute("UPDATE memory SET content = 'other dark words' WHERE id = 3")
    assert one.fetchall() == [(h, h * 2) for h in DARK[1:]]  # its own view
    assert column(con, f"SELECT {H} FROM memory('words')") == ["other dark [words]"]
    two.close()


def test_beside_fts5_and_after_a_rename(con):
    con.execute("CREATE VIRTUAL TABLE f USING fts5(content)")
    con.execute("INSERT INTO f VALUES ('dark is fts5')")
    assert column(con, "SELECT highlight(f, 0, '[', ']') FROM f('dark')") == ["[dark] is fts5"]
    con.execute("ALTER TABLE memory RENAME TO kept")
    assert column(con, "SELECT highlight(kept, 0, '[', ']') FROM kept('dark mode')") == DARK


def test_the_column_itself(con):
    assert rows(con, "SELECT memory, typeof(memory) FROM memory('like')") == [("like", "text")]
    assert rows(con, "SELECT memory, typeof(memory) FROM memory WHERE content MATCH 'like'") == [(None, "null")]


# ---- what is refused


@pytest.mark.parametrize(
    "sql, message",
    [
        ("SELECT highlight(memory.content, 0, '', '') FROM memory('dark')",
         "h5mem: memory: m.h5: highlight.. takes the table's own column"),
        ("SELECT bm25(id) FROM memory('dark')", "bm25.. takes the table's own column"),
        ("SELECT snippet(memory, 0, '', '', '', 3) FROM memory WHERE memory = 5", "the query's words must be text"),
        (f"SELECT {H} FROM memory('dark') GROUP BY id", "unable to use function highlight"),
        (f"SELECT max({H}) FROM memory('dark')", "unable to use function highlight"),
        ("SELECT highlight(x, 0, '[', ']') FROM (SELECT 1 AS x)", "unable to use function highlight"),
        ("SELECT highlight(memory, 3, '[', ']') FROM memory('dark')", "highlight.. is 3; it takes 0 content"),
        ("SELECT highlight(memory, '0', '[', ']') FROM memory('dark')", "the column of highlight.. is '0'"),
        ("SELECT snippet(memory, -2, '[', ']', '', 5) FROM memory('dark')", "the column of snippet.. is -2"),
        ("SELECT snippet(memory, 0, '[', ']', '', 0) FROM memory('dark')", "the length of snippet.. is 0"),
        ("SELECT snippet(memory, 0, '[', ']', '', -5) FROM memory('dark')", "the length of snippet.. is -5"),
        ("SELECT snippet(memory, 0, '[', ']', '', NULL) FROM memory('dark')", "the length of snippet.. is NULL"),
        ("SELECT snippet(memory, 0, '[', ']', '') FROM memory('dark')", "wrong number of arguments.*snippet"),
        ("SELECT highlight(memory, 0) FROM memory('dark')", "wrong number of arguments to function highlight"),
        ("SELECT bm25(memory, 1, 1, 1, 1) FROM memory('dark')", "wrong number of arguments to function bm25"),
        ("SELECT bm25(memory, -2.0) FROM memory('dark')", "the weight of content in bm25.. is -2.0; it takes a number"),
        ("SELECT bm25(memory, 1, '3') FROM memory('dark')", "the weight of tags in bm25.. is '3'"),
        ("SELECT bm25(memory, 1, 1, NULL) FROM memory('dark')", "the weight of session in bm25.. is NULL"),
    ],
)
def test_refused(con, sql, message):
    con.execute("INSERT INTO memory(content) VALUES ('number 5')")
    with pytest.raises(sqlite3.OperationalError, match=message):
        rows(con, sql)


def test_null_texts_are_empty_and_lengths_are_free(con):
    got = column(con, "SELECT highlight(memory, 0, NULL, '*') FROM memory('like')")
    assert got == ["I like* dark mode in every editor"]
    assert column(con, "SELECT snippet(memory, 0, NULL, NULL, NULL, 2) FROM memory('editor')") == ["every editor"]
    assert column(con, "SELECT snippet(memory, 0, '[', ']', '..', 9223372036854775807) FROM memory('like')") == [
        "I [like] dark mode in every editor"
    ]


def test_the_length_limit_of_the_host(con):
    if not hasattr(con, "setlimit"):
        pytest.skip("this Python has no Connection.setlimit")
    con.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 200)
    with pytest.raises((sqlite3.DataError, sqlite3.OperationalError), match="too big"):
        rows(con, f"SELECT highlight(memory, 0, '{'[' * 90}', '{']' * 90}') FROM memory('dark mode')")
