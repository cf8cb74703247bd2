"""engines.py - the two sides of the comparison, as objects that answer a question with ids

Both get their rows once and are asked as a user would ask them: FTS5 with the words of the question,
quoted and OR-ed, since it takes no sentence; h5mem with the question as it stands.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import sqlite3

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORTER = "porter unicode61 remove_diacritics 2"
PLAIN = "unicode61 remove_diacritics 2"


def stop_words():
    """The product's own list, out of its source."""
    text = (ROOT / "ext/sql/sql_stop.c").read_text(encoding="utf-8")
    return set(re.findall(r'"([a-z]+)"', text.partition("words[] = {")[2].partition("};")[0]))


def connect(path=":memory:"):
    con = sqlite3.connect(str(path), isolation_level=None)
    con.enable_load_extension(True)
    con.load_extension(os.environ.get("H5MEM_SO", str(ROOT / "h5mem")))
    return con


def fts5_words(text, stop=frozenset()):
    """The question as FTS5 words: every run of letters and digits that is no stop word, quoted, joined by OR."""
    words = re.findall(r"\w+", text.lower())
    kept = [word for word in words if word not in stop] or words
    return " OR ".join(f'"{word}"' for word in kept)


class Fts5:
    def __init__(self, rows, tokenizer=PORTER, stop=frozenset()):
        self.stop = stop
        self.con = sqlite3.connect(":memory:")
        self.con.execute(f"CREATE VIRTUAL TABLE words USING fts5(content, tokenize='{tokenizer}')")
        self.con.executemany("INSERT INTO words(rowid, content) VALUES (?, ?)", [row[:2] for row in rows])

    def ask(self, text, _vector=None):
        found = self.con.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT 10",
                                 (fts5_words(text, self.stop),))
        return [row[0] for row in found]

    def close(self):
        self.con.close()


class H5mem:
    """settings: more terms of the WHERE; parts: 'text', 'vector' or 'both'. spoken=False: a number before each row
    hides who speaks."""

    def __init__(self, folder, rows, vectors=None, tokenizer=PORTER, dated=True, spoken=True):
        self.path = pathlib.Path(folder) / f"store-{len(list(pathlib.Path(folder).iterdir()))}.h5"
        self.con = connect()
        self.con.execute(f"CREATE VIRTUAL TABLE memory USING h5mem('{self.path}', dim=384, tokenize='{tokenizer}')")
        self.con.execute("BEGIN")
        self.con.executemany(
            "INSERT INTO memory(id, content, timestamp, session, embedding) VALUES (?, ?, ?, ?, ?)",
            [(row_id, content if spoken else f"00000 {content}", when if dated else float(place), session,
              None if vectors is None else vectors[place].tobytes())
             for place, (row_id, content, when, session) in enumerate(rows)])
        self.con.execute("COMMIT")
        self.con.execute("SELECT h5mem_flush('memory')").fetchone()

    def ask(self, text, vector=None, settings="", parts="text"):
        where, values = [], []
        if parts != "vector":
            where, values = ["content MATCH ?"], [text]
        if parts != "text":
            where, values = [*where, "embedding MATCH ?"], [*values, vector.tobytes()]
        sql = f"SELECT id FROM memory WHERE {' AND '.join(where)} {settings} ORDER BY score DESC LIMIT 10"
        return [row[0] for row in self.con.execute(sql, values)]

    def close(self):
        self.con.close()
