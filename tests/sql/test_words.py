"""test_words.py - what a text query means: plain words, FTS5's language, fields, before and after a flush

FTS5's language is held against an FTS5 table with the same columns; scores against BM25 counted from the tokens that
FTS5 shows.

SPDX-License-Identifier: MIT
"""

import collections
import math
import random
import sqlite3

import pytest

TOKENIZER = "porter unicode61 remove_diacritics 2"
COLUMNS = ("content", "tags", "session")


def make(connect, tokenizer=TOKENIZER):
    con = connect("host.db")
    con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2, context=0, tokenize='{tokenizer}')")
    con.execute(f"CREATE VIRTUAL TABLE f USING fts5(content, tags, session, tokenize='{tokenizer}')")
    return con


def ids(con, query, column="content", more=""):
    return sorted(row[0] for row in con.execute(f"SELECT id FROM memory WHERE {column} MATCH ? {more}", (query,)))


# ---- plain words

PLAIN = {
    1: "the dark mode of the editor",
    2: "a light mode, not dark at all",
    3: "mode dark",
    4: "darkroom falls over C++ and e-mail",
    5: "don't say what's up",
    6: "the of and",
    7: "version 2023 runs 5* hotels",
}


@pytest.fixture
def plain(connect, in_tmp):
    con = make(connect)
    for i, text in PLAIN.items():
        con.execute("INSERT INTO memory(id, content) VALUES (?, ?)", (i, text))
    return con


@pytest.mark.parametrize(
    "query, want",
    [
        ("dark", [1, 2, 3]),
        ("dark editor", [1, 2, 3]),
        ('"dark mode"', [1]),
        ('"mode dark"', [3]),
        ('"dark mode" light', [1, 2]),
        ('"Dark, MODES!"', [1]),  # tokens, not characters
        ("dark*", [1, 2, 3, 4]),
        ("dar* light", [1, 2, 3, 4]),
        ("+dark +light", [2]),
        ("+dark light", [1, 2, 3]),
        ("dark -light", [1, 3]),
        ('dark -"dark mode"', [2, 3]),
        ('+"dark mode" light', [1]),
        ("+dark -light -editor", [3]),
        ("+dar* -light", [1, 3, 4]),
        ("+e-mail", [4]),  # e, then mail
        ("mode -e-mail", [1, 2, 3]),
        # a sign counts only with a positive term, at the start of a word
        ("-dark", [1, 2, 3]),
        ("-dark -editor", [1, 2, 3]),
        ("+dark", [1, 2, 3]),
        ("light-dark", [1, 2, 3]),
        ("editor - dark", [1, 2, 3]),
        ("editor + dark", [1, 2, 3]),
        ("editor --dark", [1, 2, 3]),
        ("editor\n-dark", []),
        # a star only directly after a letter at a word's end
        ("dark *", [1, 2, 3]),
        ("*dark", [1, 2, 3]),
        ("da*rk", []),
        ("202*", []),
        ("5*", [7]),
        ("dark**", [1, 2, 3]),
        # quotes that do not make a phrase
        ('"dark mode', [1, 2, 3]),
        ('5" dark 3"', [1, 2, 3, 7]),
        ('""', []),
        ('"" dark', [1, 2, 3]),
        ('"?!" -dark', [1, 2, 3]),
        # punctuation
        ("dark!?", [1, 2, 3]),
        ("dark AND editor", [1, 2, 3]),
        ("NOT dark", [1, 2, 3]),
        ("content:dark", [1, 2, 3]),
        ("(dark) OR {editor}: ^x", [1, 2, 3]),
        ("C++", [4]),
        ("what's up", [5]),
        ("don't", [5]),
        # stop words count where nothing else is asked
        ("the", [1, 6]),
        ("the of", [1, 6]),
        ("the dark", [1, 2, 3]),
        ("+the dark", [1, 6]),
        ('"of the"', [1]),
        ("the*", [1, 6]),
        ("the -dark", [6]),
        ("", []),
        ("   ", []),
        ("+ - * \"", []),
    ],
)
def test_plain(plain, query, want):
    assert ids(plain, query) == want
    assert ids(plain, query, "memory") == want
    plain.execute("SELECT h5mem_flush('memory')")
    assert ids(plain, query) == want
    assert ids(plain, query, "memory") == want


def test_musts_and_nots_hold_for_the_vector_part(plain):
    plain.execute("UPDATE memory SET embedding = '[1, 0]'")

    def both(query, more=""):
        sql = f"SELECT id FROM memory WHERE embedding MATCH '[1, 0]' AND content MATCH ? {more}"
        return sorted(row[0] for row in plain.execute(sql, (query,)))

    everything = sorted(PLAIN)
    assert both("dark") == everything
    assert both("+dark") == [1, 2, 3]
    assert both("dark -light") == [i for i in everything if i != 2]
    assert both("dark AND light", "AND syntax = 'fts5'") == everything


def test_syntax_is_a_setting(plain):
    assert ids(plain, "dark AND light", more="AND syntax = 'fts5'") == [2]
    assert ids(plain, "dark AND light", more="AND syntax = 'plain'") == [1, 2, 3]
    assert plain.execute("SELECT syntax FROM memory('dark') WHERE syntax = 'FTS5' LIMIT 1").fetchone() == ("FTS5",)
    for value, shown in (("'sql'", "'sql'"), ("5", "5")):
        with pytest.raises(sqlite3.OperationalError, match=f"syntax is {shown}; it takes 'plain' or 'fts5'"):
            ids(plain, "dark", more=f"AND syntax = {value}")


# ---- FTS5's language

WORDS = "dark mode light editor run café one two three the".split()


def random_rows(rnd, n):
    for i in range(1, n + 1):
        texts = []
        for most in (12, 3, 2):
            words = [rnd.choice(WORDS) + rnd.choice(["", "", "s", ","]) for _ in range(rnd.randrange(most + 1))]
            texts.append(" ".join(words) if rnd.randrange(8) else None)
        yield i, texts


def random_string(rnd):
    kind = rnd.randrange(10)
    if kind < 6:
        word = rnd.choice(WORDS)
        return word if word.isascii() or rnd.randrange(2) else f'"{word}"'
    if kind < 7:
        return rnd.choice(WORDS)[: rnd.randrange(1, 4)] + " *"
    if kind == 7:
        return '"' + rnd.choice(["", "?!", '""']) + '"'
    return '"' + " ".join(rnd.choice(WORDS) for _ in range(rnd.randrange(1, 4))) + '"' + rnd.choice(["", "", "*"])


def random_phrase(rnd):
    return " + ".join(random_string(rnd) for _ in range(rnd.choice([1, 1, 1, 1, 2, 3])))


def random_columns(rnd):
    some = rnd.sample(COLUMNS, rnd.randrange(1, 4))
    minus = rnd.choice(["", "", "-", "- "])
    names = some[0] if len(some) == 1 and rnd.randrange(2) else "{" + " ".join(some) + "}"
    return minus + names + rnd.choice([":", " : "])


def random_near(rnd):
    near = random_columns(rnd) if rnd.randrange(4) == 0 else ""
    if rnd.randrange(6) == 0:
        phrases = " ".join(random_phrase(rnd) for _ in range(rnd.randrange(1, 4)))
        return f"{near}NEAR({phrases}{rnd.choice(['', ', 0', ',1', ', 3'])})"
    return near + ("^" if rnd.randrange(8) == 0 else "") + random_phrase(rnd)


def random_query(rnd, depth=0):
    kind = rnd.randrange(8 if depth < 4 else 3)
    if kind < 3:
        return " ".join(random_near(rnd) for _ in range(rnd.choice([1, 1, 2, 3])))
    if kind < 5:
        return f"{random_columns(rnd) if rnd.randrange(3) == 0 else ''}({random_query(rnd, depth + 1)})"
    op = rnd.choice([" AND ", " OR ", " NOT "])
    return random_query(rnd, depth + 1) + op + random_query(rnd, depth + 1)


def fill(con, rnd, n):
    con.execute("BEGIN")
    for i, texts in random_rows(rnd, n):
        con.execute("INSERT INTO memory(id, content, tags, session) VALUES (?, ?, ?, ?)", (i, *texts))
        con.execute("INSERT INTO f(rowid, content, tags, session) VALUES (?, ?, ?, ?)", (i, *texts))
    con.execute("COMMIT")


def change(con, rnd, n):
    """Rows go and change in both."""
    for i in rnd.sample(range(1, n + 1), n // 6):
        con.execute("DELETE FROM memory WHERE id = ?", (i,))
        con.execute("DELETE FROM f WHERE rowid = ?", (i,))
    for i in rnd.sample(range(1, n + 1), n // 6):
        column, text = rnd.choice(COLUMNS), rnd.choice(["dark two three", None, "light", "one two"])
        con.execute(f"UPDATE memory SET {column} = ? WHERE id = ?", (text, i))
        con.execute(f"UPDATE f SET {column} = ? WHERE rowid = ?", (text, i))


def answers(con, table, key, query, more=""):
    """The ids, or the error."""
    try:
        rows = con.execute(f"SELECT {key} FROM {table} WHERE {table} MATCH ? {more}", (query,))
        return sorted(row[0] for row in rows)
    except sqlite3.OperationalError as error:
        return str(error)


def same(con, query):
    want = answers(con, "f", "rowid", query)
    got = answers(con, "memory", "id", query, "AND syntax = 'fts5'")
    if isinstance(want, str):
        # FTS5 finds no column of ours less often than we do: the words are the same
        assert isinstance(got, str) and want in got, (query, want, got)
    else:
        assert got == want, query
    return want


@pytest.mark.parametrize("seed", range(4))
def test_the_language_of_fts5(connect, in_tmp, seed):
    con = make(connect)
    rnd = random.Random(seed)
    fill(con, rnd, 60)
    found = errors = 0
    for step in range(4):
        for _ in range(120):
            want = same(con, random_query(rnd))
            errors += isinstance(want, str)
            found += not isinstance(want, str) and len(want) > 0
        if step == 0:
            con.execute("SELECT h5mem_flush('memory')")
        elif step == 1:
            change(con, rnd, 60)
        else:
            con.execute("SELECT h5mem_flush('memory')")
    assert found > 200
    assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)


def test_bad_syntax_is_the_error_of_fts5(connect, in_tmp):
    con = make(connect)
    fill(con, random.Random(9), 20)
    rnd = random.Random(10)
    pieces = ["dark", "light", '"', '""', "AND", "OR", "NOT", "NEAR", "NEAR(", "(", ")", "{", "}", ":", ",", "+", "*"]
    pieces += ["-", "^", "content", "tags", "nope", "5", "'", ".", "é", " ", " ", '"a b"', ";", "%", "\\"]
    errors = 0
    for _ in range(2500):
        query = "".join(rnd.choice(pieces) + rnd.choice(["", " "]) for _ in range(rnd.randrange(1, 8)))
        if query.strip() == "" or query.strip()[0] == "*":  # FTS5's special queries
            continue
        errors += isinstance(same(con, query), str)
    assert errors > 1000
    for query, message in (
        ("dark AND", 'syntax error near ""'),
        ('"dark', "unterminated string"),
        ("nope: dark", "no such column: nope"),
    ):
        with pytest.raises(sqlite3.OperationalError, match=f"memory: .*m.h5: .*{message}.* in the query"):
            ids(con, query, more="AND syntax = 'fts5'")
    assert ids(con, "", more="AND syntax = 'fts5'") == ids(con, "  ", more="AND syntax = 'fts5'") == []
    deep = "(" * 400 + "dark" + ")" * 400
    with pytest.raises(sqlite3.OperationalError, match="too large .maximum depth 256."):
        ids(con, deep, more="AND syntax = 'fts5'")


def test_fields(connect, in_tmp):
    con = make(connect)
    con.execute("INSERT INTO memory(id, content, tags, session) VALUES (1, 'dark', 'light', 's-1')")
    con.execute("INSERT INTO memory(id, tags) VALUES (2, 'dark')")
    con.execute("INSERT INTO memory(id, session) VALUES (3, 'dark')")
    for _ in range(2):
        assert ids(con, "dark") == [1]
        assert ids(con, "light") == []
        assert ids(con, "dark", "memory") == [1, 2, 3]
        assert ids(con, "light", "memory") == [1]
        assert ids(con, "+light", "memory") == [1]
        assert ids(con, "tags: dark", "memory", "AND syntax = 'fts5'") == [2]
        assert ids(con, "tags: dark", "content", "AND syntax = 'fts5'") == []
        con.execute("SELECT h5mem_flush('memory')")
    con.execute("UPDATE memory SET tags = 'grey' WHERE id = 2")
    assert ids(con, "dark", "memory") == [1, 3]
    assert ids(con, "grey", "memory") == [2]


# ---- scripts without spaces

CJK = {
    1: "私は東京都に住んでいます",
    2: "京都の大学",
    3: "東 京",
    4: "我喜欢红色的汽车，不喜欢蓝色",
    5: "저는 서울에서 일합니다",
    6: "iPhone15を東京で買った",
    7: "東京tower",
}


@pytest.mark.parametrize("tokenizer", [TOKENIZER, "unicode61", "porter", "ascii"])
def test_chinese_japanese_korean(connect, in_tmp, tokenizer):
    con = make(connect, tokenizer)
    for i, text in CJK.items():
        con.execute("INSERT INTO memory(id, content) VALUES (?, ?)", (i, text))
    for _ in range(2):
        assert ids(con, "東京") == [1, 6, 7]
        assert ids(con, "東京都") == [1, 2, 6, 7]  # 東京 or 京都
        assert ids(con, '"東京都"') == [1]
        assert ids(con, "+東京都") == [1]
        assert ids(con, "京") == [1, 2, 3, 6, 7]
        assert ids(con, "都") == [1, 2]
        assert ids(con, "红色") == [4]
        assert ids(con, "颜色") == []
        assert ids(con, "서울") == [5]
        assert ids(con, "東京 -大学 -tower") == [1, 6]
        assert ids(con, "iphone15") == [6]
        assert ids(con, "tower") == [7]
        assert ids(con, "東京 NOT tower", more="AND syntax = 'fts5'") == [1, 6]
        mark = "SELECT highlight(memory, 0, '[', ']') FROM memory WHERE content MATCH ? ORDER BY id LIMIT 1"
        assert con.execute(mark, ("東京都",)).fetchone() == ("私は[東京都]に住んでいます",)
        assert con.execute(mark, ("红色",)).fetchone() == ("我喜欢[红色]的汽车，不喜欢蓝色",)
        con.execute("SELECT h5mem_flush('memory')")
    assert con.execute("SELECT h5mem_verify('memory')").fetchone() == ("ok",)


# ---- scores

def tokens_of(con):
    """{id: [tokens by position of each column]}, as FTS5 shows them."""
    con.execute("CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab(f, 'instance')")
    rows = collections.defaultdict(lambda: [{}, {}, {}])
    for term, doc, column, offset in con.execute("SELECT term, doc, col, offset FROM vocabulary"):
        rows[doc][COLUMNS.index(column)][offset] = term
    for (i,) in con.execute("SELECT rowid FROM f"):
        rows[i]
    return rows


def count(fields, phrase, columns, weights):
    """Occurrences of a list of tokens, the last a prefix if it ends with *."""
    total = 0.0
    for c in columns:
        for p in fields[c]:
            here = [fields[c].get(p + k) for k in range(len(phrase))]
            total += weights[c] * all(
                h is not None and (h.startswith(w[:-1]) if w.endswith("*") else h == w) for h, w in zip(here, phrase)
            )
    return total


def bm25(rows, phrases, columns, weights=(1, 1, 1)):
    long = (0, 1, 2) if tuple(columns) != (0,) else (0,)
    length = {i: sum(len(fields[c]) for c in long) for i, fields in rows.items()}
    mean = sum(length.values()) / len(rows)
    out = collections.Counter()
    for phrase in phrases:
        tf = {i: count(fields, phrase, columns, (1, 1, 1)) for i, fields in rows.items()}
        df = sum(n > 0 for n in tf.values())
        idf = math.log(1 + (len(rows) - df + 0.5) / (df + 0.5))
        for i, fields in rows.items():
            if tf[i]:
                n = count(fields, phrase, columns, weights)
                out[i] += idf * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length[i] / mean)) if n else 0
    return out


def test_scores_of_phrases_prefixes_and_fields(connect, in_tmp):
    con = make(connect)
    rnd = random.Random(3)
    fill(con, rnd, 80)
    cases = [
        ("dark light", [["dark"], ["light"]]),
        ('"dark mode" editor', [["dark", "mode"], ["editor"]]),
        ("da* run", [["da*"], ["run"]]),
        ('"one two" "two three" +one', [["one", "two"], ["two", "three"], ["on"]]),
    ]
    stem = {"one": "on", "three": "three"}
    for step in range(3):
        rows = tokens_of(con)
        for query, phrases in cases:
            phrases = [[stem.get(w, w) for w in p] for p in phrases]
            for column, fields in (("content", [0]), ("memory", [0, 1, 2])):
                want = bm25(rows, phrases, fields)
                if "+one" in query:
                    want = {i: s for i, s in want.items() if count(rows[i], ["on"], fields, (1, 1, 1))}
                scores = "score, bm25(memory), bm25(memory, 1, 1, 1)"
                matching = f"FROM memory WHERE {column} MATCH ?"
                got = con.execute(f"SELECT id, {scores} {matching}", (query,)).fetchall()
                assert [i for i, *_ in got] == sorted(want, key=lambda i: (-round(want[i], 9), i))
                for i, score, rank, same_rank in got:
                    assert score == -rank == -same_rank
                    assert math.isclose(score, want[i], rel_tol=1e-9)
                weights = (2, 0.5, 0)
                want = bm25(rows, phrases, fields, weights)
                for i, rank in con.execute(f"SELECT id, bm25(memory, 2, 0.5, 0) {matching}", (query,)):
                    assert math.isclose(-rank, want[i], rel_tol=1e-9, abs_tol=1e-12)
        if step == 0:
            con.execute("SELECT h5mem_flush('memory')")
        change(con, rnd, 80)


# ---- whatever comes

def test_any_bytes_are_a_plain_query(connect, in_tmp):
    con = make(connect)
    con.text_factory = bytes
    con.execute("INSERT INTO memory(id, content) VALUES (1, 'dark mode')")
    con.execute("INSERT INTO memory(id, content) VALUES (2, CAST(x'ff6461726b80' AS TEXT))")
    rnd = random.Random(4)
    alphabet = [b"dark", b"+", b"-", b'"', b"*", b" ", b"\xff", b"\xc3", b"\xe6\x9d\xb1", b"\x00", b"(", b"a", b"\t"]
    for flushed in range(2):
        for _ in range(2000):
            query = b"".join(rnd.choice(alphabet) for _ in range(rnd.randrange(12)))
            con.execute("SELECT id, highlight(memory, 0, '<', '>') FROM memory(CAST(? AS TEXT))", (query,)).fetchall()
        con.execute("SELECT h5mem_flush('memory')")


def test_large_texts_and_queries(connect, in_tmp):
    con = make(connect)
    word = "x" * 1_000_000
    many = " ".join(f"w{i}" for i in range(500_000))
    con.execute("INSERT INTO memory(id, content) VALUES (1, ?), (2, ?), (3, ?)", (word, "dark " * 200_000, many))
    for _ in range(2):
        assert ids(con, word) == [1]
        assert ids(con, "x" * 999_999 + "*") == [1]
        assert ids(con, "dark") == [2]
        assert ids(con, '"dark dark dark"') == [2]
        assert ids(con, "w499999") == [3]
        assert ids(con, '"w77 w78"') == [3]
        assert ids(con, "dark " * 200_000 + "w5") == [2, 3]
        assert ids(con, many) == [3]  # words past the 65,536th do not count
        assert ids(con, None) == []
        con.execute("SELECT h5mem_flush('memory')")
