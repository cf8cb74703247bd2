"""Markdown in and out: the same bytes come back, headings are where CommonMark has them, what is read again is
brought up to date.

SPDX-License-Identifier: MIT
"""
import os
import random
import re

import pytest

from harness.doors import fails, one


@pytest.fixture
def con(connect, in_tmp):
    con = connect("host.db")
    con.execute("PRAGMA synchronous = off")
    con.text_factory = lambda b: b.decode("utf-8", "surrogateescape")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    return con


def write(name, text):
    folder = os.path.dirname(name)
    if folder:
        os.makedirs(folder, exist_ok=True)
    with open(name, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def read(name):
    with open(name, "rb") as f:
        return f.read()


def take(con, name):
    return one(con, "SELECT h5mem_import('memory', ?, 'markdown')", name)[0]


def give(con, name):
    return one(con, "SELECT h5mem_export('memory', ?, 'markdown')", name)[0]


def sections(con):
    """Rows in the order of their files."""
    rows = con.execute("SELECT channel, content, tags, id FROM memory").fetchall()
    return sorted(rows, key=lambda r: (r[0].split("::")[0], int(r[2].split("section-")[1].split(",")[0])))


def chains(con):
    return [r[0].partition("::")[2] for r in sections(con)]


# ---- the same bytes

NASTY = [
    b"", b"\n", b" ", b"\n\n\n", b"text", b"text\n", b"# A", b"# A\n", b"\n\n# A\n\n\n", b"#\n", b"# \n## \n###\n",
    b"# A\r\n\r\ntext\r\n## B\r\n", b"# A\rtext\r## B", b"\xef\xbb\xbf# A\ntext", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n# A",
    b"---\ntitle: x\ndate: 2026-11-03\n---\n# A\n## B", b"---\nnot closed\n# A\n", b"---\n---\n", b"---\n# in\n---",
    b"Title\n=====\ntext\nSub\n---\n", b"a\nb\nc\n===", b"===\n", b"---\n===\n", b"    # code\n", b"```\n# code\n",
    b"```\n# a\n~~~\n# b\n```\n# C\n", b"````\n```\n# x\n```\n````\n# C", b"~~~ x ~\n# a\n~~~\n", b"``` a`b\n# C\n",
    b"- item\n  ```\n  # code\n  ```\n# A\n", b"1. a\n\n   ```\n# out\n", b"> # quoted\n> ```\n# A\n",
    b"<!--\n# x\n-->\n# A\n",
    b"<div>\n# x\n\n# A\n", b"<pre>\n# x\n</pre>\n# A", b"# bad \xff utf8 \xc3\n\xfe\n", b"# nul \0 here\n\0\n# B\0\n",
    b"####### seven\n#nospace\n# yes #\n## yes ## \n# no#\n", b"# A\n# A\n# A\n", b"\t# tab\n", b"#\ttab\n",
    b"# A\n\x0c\n# B",
    b"# a::b\n## c::d\n", "# \u4e16\u754c\n\U0001f600\n".encode(), b"# " + b"x" * 3000 + b"\n## y\n",
    b"- [ ] # a\n- # b\n",
    b"<!-- h5mem rows -->\n# A\n", b"<!-- h5mem file a.md -->\n\n# A\n", b"# A\n" * 500,
    b"\n".join(b"#" * (i % 6 + 1) + b" h%d" % i for i in range(400)),
]


@pytest.mark.parametrize("number", range(len(NASTY)))
def test_nasty_files_come_back(con, number):
    write("in.md", NASTY[number])
    n = take(con, "in.md")
    assert n == one(con, "SELECT count(*) FROM memory")[0] == give(con, "out.md")
    assert read("out.md") == NASTY[number]
    before = sections(con)
    assert take(con, "in.md") == n and sections(con) == before, "again: nothing doubles or changes"
    os.mkdir("folder")
    assert give(con, "folder/") == n
    assert NASTY[number] == (read("folder/in.md") if n else b"")
    assert one(con, "SELECT h5mem_verify('memory')") == ("ok",)


PIECES = ["# A", "## B", "### C", "# A #", "text", "more text", "", "", "  ", "===", "---", "```", "~~~", "````",
          "- item",
          "  - sub", "    indented", "1. one", "> quote", "<!--", "-->", "<div>", "</div>", "\t# x", "#", "# \u00e9",
          "a | b",
          "  ```", "    ```", "- ```", "***", "date: 2026-01-01", "...", "## 14:30 standup", "\ufeff", "\0", "\x0b",
          "[x]: y"]


def some_file(rng):
    ends = rng.choice([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\r"]])
    text = "".join(rng.choice(PIECES) + rng.choice(ends) for _ in range(rng.randrange(40)))
    text = rng.choice(["", "", "\ufeff", "---\n"]) + text
    data = text.encode()
    if rng.random() < 0.2 and data:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at:]
    return data[:-1] if rng.random() < 0.3 else data


@pytest.mark.parametrize("seed", range(3))
def test_any_file_comes_back_and_is_brought_up_to_date(con, seed):
    """Whatever one file becomes: its rows are those of a table that reads it for the first time."""
    rng = random.Random(seed)
    con.execute("CREATE VIRTUAL TABLE fresh USING h5mem('f.h5', dim=2)")
    data = b""
    for _ in range(60):
        if rng.random() < 0.5:
            data = some_file(rng)
        else:  # an edit
            lines = data.splitlines(True)
            at = rng.randrange(len(lines) + 1)
            lines[at:at + rng.randrange(3)] = some_file(rng).splitlines(True)[:rng.randrange(4)]
            data = b"".join(lines)
        write("a.md", data)
        take(con, "a.md")
        if os.path.exists("out.md") and b"\0" in read("out.md"):
            os.remove("out.md")  # no text: it is not replaced
        give(con, "out.md")
        assert read("out.md") == data
        con.execute("DELETE FROM fresh")
        con.execute("SELECT h5mem_import('fresh', 'a.md', 'markdown')").fetchall()
        want, got = (con.execute(f"SELECT channel, content, tags, timestamp FROM {t} ORDER BY channel, content, tags"
                                 ).fetchall() for t in ("fresh", "memory"))
        assert [r[:3] for r in got] == [r[:3] for r in want]
    assert one(con, "SELECT h5mem_verify('memory')") == ("ok",)


# ---- where headings are

HEADINGS = [
    ("# A\n## B\n### C\n## D\n# E\n", ["A", "A::B", "A::B::C", "A::D", "E"]),
    ("intro\n# A\n", ["", "A"]),
    ("### C\n# A\n## B\n", ["C", "A", "A::B"]),
    ("Title\n===\nSub\ntitle\n---\nx\n\n---\n", ["Title", "Title::Sub title"]),
    ("- item\n---\n# A\n", ["", "A"]),
    ("> quote\nlazy\n===\n# A\n", ["", "A"]),
    ("   # three\n    # four\n", ["three"]),
    ("#hash\n####### 7\n# real ##\n", ["", "real"]),
    ("text\n```sh\n# not\n```\n# A\n~~~\n# not\n```\n# not\n~~~\n# B\n", ["", "A", "B"]),
    ("# A\n```\n# not closed\n# not\n", ["A"]),
    ("````\n# no\n```\n# no\n````\n# A\n", ["", "A"]),
    ("```\n# no\n    ```\n# no\n```\n# A\n", ["", "A"]),
    ("1. step\n\n   ```\n   # no\n   ```\n\n2. step\n# A\n", ["", "A"]),
    ("- ```\n  # no\n  ```\n# A\n", ["", "A"]),
    ("- a\n\n  ```\n  # no\n\n# A\n", ["", "A"]),
    ("- a\n\n  # inside the item\n\n# A\n", ["", "A"]),
    ("text\n``` a`b\n# A\n", ["", "A"]),
    ("<!-- a\n# no\n-->\n# A\n<!-- one line -->\n# B\n", ["", "A", "B"]),
    ("<details>\n# no\n\n# A\n</details>\n# no\n", ["", "A"]),
    ("<http://x.y>\n# A\n", ["", "A"]),
    ("---\ntitle: a\n# no\n---\n# A\n", ["", "A"]),
    ("a\n2026. not a list\n===\n# B\n", ["a 2026. not a list", "B"]),
    ("#\n## \n", ["", "::"]),
    ("[x]: there\n===\n\n[y]\n===\n", ["", "[y]"]),
    ("# A\r## B\r\n## C\r", ["A", "A::B", "A::C"]),
]


@pytest.mark.parametrize("text, want", HEADINGS, ids=range(len(HEADINGS)))
def test_headings(con, text, want):
    write("a.md", text)
    take(con, "a.md")
    assert chains(con) == want


def test_headings_as_another_reader_has_them(con):
    markdown_it = pytest.importorskip("markdown_it")
    rng = random.Random(1)
    apart = 0
    pieces = [p for p in PIECES if p not in ("\ufeff", "\0", "\x0b", "...", "date: 2026-01-01")]
    for n in range(300):
        text = "# first\n\n" + "".join(rng.choice(pieces) + "\n" for _ in range(rng.randrange(12)))
        write("a.md", text)
        take(con, "a.md")
        want = ["h"] * sum(t.type == "heading_open" and t.level == 0 for t in markdown_it.MarkdownIt().parse(text))
        apart += len(sections(con)) != len(want)
    assert apart <= 3, apart


# ---- dates

def times(con):
    return [t for t, in con.execute("SELECT timestamp FROM memory ORDER BY id")]


def test_a_daily_log(con):
    day = one(con, "SELECT unixepoch('2026-11-03')")[0]
    write("log/2026-11-03.md",
          "# Tuesday\n\nhello\n## 09:15 Stand-up\na\n## Lunch\nb\n### 2:30 pm walk\nc\n## 23:59:58\n")
    assert take(con, "log/2026-11-03.md") == 5
    assert chains(con) == ["", "09:15 Stand-up", "Lunch", "Lunch::2:30 pm walk", "23:59:58"]
    assert times(con) == [day, day + 33300, day + 33300, day + 52200, day + 86398]
    write("2026-11-03.md", "---\ndate: \"2026-11-04T06:00:00Z\"\n---\n## 7:00 x\n")
    con.execute("DELETE FROM memory")
    take(con, "2026-11-03.md")
    assert times(con) == [day + 86400 + 21600, day + 86400 + 25200]
    write("2026-11-03.md", "---\ndate: 2026-11-05\n---\n## 7:00 x\n")
    take(con, "2026-11-03.md")
    assert times(con) == [day + 2 * 86400, day + 2 * 86400 + 25200], "a new date moves all of it"


def test_elsewhere_a_row_is_as_old_as_its_file(con):
    write("2026-13-45.md", "# A\n## 12:00 B\n")
    os.utime("2026-13-45.md", (1000, 2000))
    take(con, "2026-13-45.md")
    assert times(con) == [2000, 2000] and chains(con) == ["A", "A::12:00 B"]


# ---- read again

def test_an_edit(con):
    write("n.md", "# A\none\n# B\ntwo\n# C\nthree\n")
    take(con, "n.md")
    con.execute("UPDATE memory SET embedding = '[1, 0]', importance = 0.9, tags = tags || ',mine', pinned = 1")
    ids = {r[0]: r[3] for r in sections(con)}
    write("n.md", "intro\n# C\nthree\n# B\ntwo, edited\n# D\nnew\n")
    assert take(con, "n.md") == 4
    rows = {r[0]: r for r in con.execute("SELECT channel, id, content, h5mem_vector_json(embedding), tags, pinned "
                                         "FROM memory")}
    assert rows["n.md::C"] == ("n.md::C", ids["n.md::C"], "# C\nthree\n", "[1,0]", "markdown,section-1,mine", 1)
    assert rows["n.md::B"] == ("n.md::B", ids["n.md::B"], "# B\ntwo, edited\n", None, "markdown,section-2,mine", 1)
    assert set(rows) == {"n.md", "n.md::C", "n.md::B", "n.md::D"}
    assert one(con, "SELECT count(*) FROM memory('one')") == (0,)
    write("n.md", "")
    assert take(con, "n.md") == 0 and one(con, "SELECT count(*) FROM memory") == (0,)


def test_a_section_that_moves_under_another_keeps_its_row(con):
    write("n.md", "# A\n## x\ntext\n# B\n")
    take(con, "n.md")
    (x,) = [r[3] for r in sections(con) if r[0].endswith("x")]
    write("n.md", "# A\n# B\n## x\ntext\n")
    take(con, "n.md")
    assert [r[3] for r in sections(con) if r[0] == "n.md::B::x"] == [x]


def test_other_rows_are_left_alone(con):
    con.execute("INSERT INTO memory(content, channel) VALUES ('mine', 'n.md'), ('mine', 'n.md::A')")
    write("n.md", "# A\n")
    write("n.md2", "# A\n")
    take(con, "n.md")
    take(con, "n.md2")
    write("n.md", "# B\n")
    take(con, "n.md")
    assert sorted(con.execute("SELECT channel, content FROM memory")) == [
        ("n.md", "mine"), ("n.md2::A", "# A\n"), ("n.md::A", "mine"), ("n.md::B", "# B\n")]


def test_names_for_one_file(con):
    write("d/n.md", "# A\n")
    for name in ("d/n.md", "./d/n.md", "d//n.md", "d/./n.md", ".//d/n.md"):
        assert take(con, name) == 1 and chains(con) == ["A"] and sections(con)[0][0] == "d/n.md::A"


# ---- folders

def test_a_folder_there_and_back(con):
    files = {"notes/a.md": b"# A\n", "notes/sub/b.markdown": b"x\n# B", "notes/sub/deep/C.MD": b"# C\r\n"}
    for name, data in files.items():
        write(name, data)
    for other in ("notes/a.txt", "notes/.hidden/x.md", "notes/.x.md"):
        write(other, "# no\n")
    os.symlink("../notes", "notes/loop")
    assert take(con, "notes/") == 4 == take(con, "notes")
    assert sorted({r[0].split("::")[0] for r in sections(con)}) == sorted(files)
    assert give(con, "out/") == 4
    for name, data in files.items():
        assert read(name.replace("notes", "out")) == data
    os.remove("notes/a.md")
    write("notes/sub/b.markdown", "# B\n")
    assert take(con, "notes") == 2 == one(con, "SELECT count(*) FROM memory")[0]


def test_the_working_folder(con):
    write("a.md", "# A\n")
    write("s/b.md", "# B\n")
    write("../elsewhere.md", "# E\n")
    take(con, "../elsewhere.md")
    assert take(con, ".") == 2
    os.remove("a.md")
    assert take(con, "./") == 1
    assert [r[0] for r in sections(con)] == ["../elsewhere.md::E", "s/b.md::B"]
    os.remove("../elsewhere.md")
    text = fails(con, "SELECT h5mem_export('memory', 'out/', 'markdown')")
    assert "leads out of the folder" in text


def test_absolute_paths(con):
    here = os.getcwd()
    write("a.md", "# A\n")
    write("s/b.md", "# B\n")
    assert take(con, f"{here}/s/b.md") == 1 and give(con, "one/") == 1 and read("one/b.md") == b"# B\n"
    assert take(con, "a.md") == 1 and give(con, "two/") == 2
    assert read("two/a.md") == b"# A\n" and read(f"two{here}/s/b.md") == b"# B\n"


def test_one_of_several_files_goes_back_alone(con):
    write("a.md", "# A\n")
    write("b.md", "# B\n")
    take(con, "a.md")
    take(con, "b.md")
    con.execute("UPDATE memory SET content = '# B, told anew' WHERE channel = 'b.md::B'")
    assert give(con, "./b.md") == 1 and read("b.md") == b"# B, told anew" and read("a.md") == b"# A\n"


# ---- rows from elsewhere

def test_rows_of_no_markdown_become_daily_logs(con):
    day = one(con, "SELECT unixepoch('2026-11-03')")[0]
    con.execute("INSERT INTO memory(content, timestamp, session, source) VALUES ('later', ?, 's 1', 'user'),"
                " ('first\n', ?, NULL, 'assistant'), (NULL, ?, 's2', NULL), ('next day', ?, NULL, NULL),"
                " ('no day', 1e300, NULL, NULL)", (day + 3600.5, day, day + 86399.9, day + 86400))
    log = ("<!-- h5mem rows -->\n\n# 2026-11-03\n\n## 00:00:00 (assistant)\n"
           '<!-- h5mem row 6 HASH {"id":2,"timestamp":1793664000.0,"source":"assistant"} -->\n\nfirst\n\n'
           "## 01:00:00 s 1 (user)\n"
           '<!-- h5mem row 5 HASH {"id":1,"timestamp":1793667600.5,"session":"s 1","source":"user"} -->\n\nlater\n\n'
           '## 23:59:59 s2\n<!-- h5mem row - {"id":3,"timestamp":1793750399.9,"session":"s2"} -->\n\n')
    rest = ('# 2026-11-04\n\n## 00:00:00\n<!-- h5mem row 8 HASH {"id":4,"timestamp":1793750400.0} -->\n\nnext day\n\n'
            '# No date\n\n## No date\n<!-- h5mem row 6 HASH {"id":5,"timestamp":1.0e+300} -->\n\nno day\n')
    assert give(con, "all.md") == 5
    def masked(name):
        return re.sub(r"(row \d+) [0-9a-f]{8} ", r"\1 HASH ", read(name).decode())
    assert masked("all.md") == log + rest
    write("out/2026-11-04.md", "mine\n")
    assert give(con, "out/") == 5 == give(con, "out")
    assert sorted(os.listdir("out")) == ["2026-11-03.md", "2026-11-04-memory-1.md", "2026-11-04.md", "No date.md"]
    assert masked("out/2026-11-03.md") == log and read("out/2026-11-04.md") == b"mine\n"
    assert take(con, "out") == 6 == take(con, "out") == one(con, "SELECT count(*) FROM memory")[0]


COLUMNS = ("id, content, timestamp, session, channel, tags, source, tier, importance, activation, access_count,"
           " last_access, valid_from, valid_to, superseded_by, pinned")


def rows(con, table="memory"):
    return con.execute(f"SELECT {COLUMNS} FROM {table} ORDER BY id").fetchall()


def some_text(rng):
    parts = ["word", "\n", "\n\n", "# 2026-11-03\n", "## 10:00:00 s (user)\n", "<!-- h5mem row 3 {} -->\n", "-->", "--",
             "<!-- h5mem rows -->\n", "\r\n", "```\n", "\0", "\u20ac", "\udcff", " ", "\t"]
    text = rng.choice([None, "", "".join(rng.choice(parts) for _ in range(rng.randrange(9)))])
    return text if text is None else text.encode("utf-8", "surrogateescape")


def fill(con, rng, n):
    for i in range(n):
        when = rng.choice([0, 1.5, 86399, 1e9]) + rng.randrange(5) * 43200
        con.execute("INSERT INTO memory(id, content, embedding, timestamp, session, channel, tags, source, tier,"
                    " importance, activation, access_count, last_access, valid_from, valid_to, superseded_by, pinned)"
                    " VALUES (?, CAST(? AS TEXT), '[1, 2]', ?, CAST(? AS TEXT), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (3 * i + 1, some_text(rng), when, some_text(rng), rng.choice([None, "c-->d"]),
                     rng.choice([None, "a,b"]), rng.choice([None, "user"]), rng.choice(["working", "semantic"]),
                     rng.choice([0.5, 0.1]), rng.choice([1, 0.25]), rng.randrange(2), rng.choice([None, 7.5]),
                     rng.choice([None, 1]), rng.choice([None, 2]), rng.choice([None, 3 * rng.randrange(n) + 1]),
                     rng.randrange(2)))


@pytest.mark.parametrize("seed", range(12))
def test_rows_of_no_markdown_come_back(con, seed):
    fill(con, random.Random(seed), seed * 3)
    before = rows(con)
    name = ["out/", "out.md"][seed % 2]
    assert give(con, name) == len(before) == take(con, name)
    assert rows(con) == before and one(con, "SELECT count(embedding) FROM memory") == (len(before),)
    con.execute("CREATE VIRTUAL TABLE other USING h5mem('o.h5', dim=2)")
    assert one(con, "SELECT h5mem_import('other', ?, 'markdown')", name) == (len(before),)
    assert rows(con, "other") == before
    con.execute("UPDATE other SET timestamp = timestamp + 1")
    one(con, "SELECT h5mem_import('other', ?, 'markdown')", name)
    again = rows(con, "other")
    moved = [row for row in again if row[0] > 3 * len(before) - 2]
    assert sorted(map(repr, (r[1:14] for r in moved))) == sorted(map(repr, (r[1:14] for r in before)))
    told = {row[0]: row[1:14] for row in again}
    assert sorted(repr((r[1:14], told.get(r[14]))) for r in moved) == sorted(
        repr((r[1:14], next((o[1:14] for o in before if o[0] == r[14]), None))) for r in before)


def test_an_edited_daily_log(con):
    con.execute("INSERT INTO memory(content, embedding, timestamp) VALUES ('one', '[1, 0]', 5), ('two', '[1, 0]', 6),"
                " ('three', '[1, 0]', 90000), (NULL, NULL, 90001)")
    give(con, "log.md")
    text = read("log.md").decode()
    edited = text.replace("one\n", "one and\n\n## a heading\n\nmore\n\n\n").replace("\nthree", "\n3")
    write("log.md", edited.replace("\n", "\r\n"))
    assert take(con, "log.md") == 4
    got = con.execute("SELECT content, embedding IS NULL, timestamp FROM memory ORDER BY id").fetchall()
    assert got == [("one and\r\n\r\n## a heading\r\n\r\nmore", 1, 5.0), ("two", 0, 6.0), ("3", 1, 90000.0),
                   (None, 1, 90001.0)]
    before = rows(con)
    longer = text.replace("# 1970-01-02", "my own words\n\n# 1970-01-02")
    for bad, words in ((longer, None),
                       (text.replace("rows -->", "rows -->\n\nmy own words"), "log.md: line 3: a text that belongs"),
                       (text.replace("row 3 ", "row x ", 1), "log.md: line 6: the comment of a row"),
                       (text.replace('{"id":2', '{"id":"two"', 1), "line 11: id is no whole number"),
                       (text.replace('"timestamp":6.0', '"nosuch":6.0', 1), "no column \"nosuch\"")):
        write("log.md", bad)
        if words:
            assert words in fails(con, "SELECT h5mem_import('memory', 'log.md', 'markdown')")
            assert rows(con) == before
        else:
            take(con, "log.md")
            assert one(con, "SELECT content FROM memory WHERE id = 2") == ("two\n\nmy own words",)
            before = rows(con)


def test_several_files_and_rows_in_one(con):
    write("a.md", "# A")
    write("b.md", "# B\n")
    take(con, "a.md")
    take(con, "b.md")
    con.execute("INSERT INTO memory(content, timestamp) VALUES ('loose', 0)")
    assert give(con, "all.md") == 3
    assert read("all.md") == (b"<!-- h5mem file a.md -->\n\n# A\n\n<!-- h5mem file b.md -->\n\n# B\n\n"
                              b"# 1970-01-01\n\n## 00:00:00\n\nloose\n")


def test_a_row_that_was_changed_stays_a_section(con):
    write("a.md", "# A\none\n# B\ntwo\n")
    take(con, "a.md")
    con.execute("UPDATE memory SET content = '# A\nshort' WHERE channel = 'a.md::A'")
    give(con, "out.md")
    assert read("out.md") == b"# A\nshort\n\n# B\ntwo\n"


# ---- refusals

def test_refusals(con):
    write("a::b.md", "# A\n")
    assert "'::' in a path" in fails(con, "SELECT h5mem_import('memory', 'a::b.md', 'markdown')")
    assert "nosuch.md: No such file" in fails(con, "SELECT h5mem_import('memory', 'nosuch.md', 'markdown')")
    write("n/a.md", "# A\n")
    os.mkfifo("n/pipe.md")
    assert take(con, "n") == 1
    con.execute("BEGIN")
    con.execute("INSERT INTO memory(content) VALUES ('x')")
    assert "uncommitted rows" in fails(con, "SELECT h5mem_export('memory', 'x/', 'markdown')")
    con.execute("ROLLBACK")
    assert not os.path.exists("x")


def test_it_is_the_callers_transaction(con):
    write("n.md", "# A\none\n# B\n")
    take(con, "n.md")
    before = sections(con)
    con.execute("BEGIN")
    write("n.md", "# C\n")
    take(con, "n.md")
    assert chains(con) == ["C"]
    take(con, "n.md")
    assert chains(con) == ["C"]
    con.execute("ROLLBACK")
    assert sections(con) == before
