"""locomo.py - the LoCoMo conversations as rows and questions

A conversation becomes one row a turn: id counts from 1 in reading order, content is the speaker,
the text and what a shared picture shows, the timestamp is the session's date plus one second a
turn. Questions are those of category 1 to 4 whose evidence names at least one turn that exists;
evidence that is malformed or empty is left out, as the data folder's README says.

SPDX-License-Identifier: MIT
"""
import calendar
import json
import pathlib
import re
import time

DIALOG_ID = re.compile(r"D(\d+):0*(\d+)")
SESSION_DATE = "%I:%M %p on %d %B, %Y"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


def load(path):
    """One file -> rows (id, content, timestamp, session) and questions (text, set of ids, category)."""
    data = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    talk = data["conversation"]
    matches = (re.fullmatch(r"session_(\d+)", key) for key in talk)
    numbers = sorted(int(match.group(1)) for match in matches if match)
    rows, ids = [], {}
    for number in numbers:
        start = calendar.timegm(time.strptime(talk[f"session_{number}_date_time"], SESSION_DATE))
        for place, turn in enumerate(talk[f"session_{number}"]):
            parts = (turn["speaker"], turn["text"], turn.get("blip_caption"))
            row_id = len(rows) + 1
            ids[turn["dia_id"]] = row_id
            content = " ".join(part for part in parts if part)
            rows.append((row_id, content, float(start + place), f"s-{number:02d}"))
    questions = []
    for qa in data["qa"]:
        if qa["category"] not in CATEGORIES:
            continue
        wanted = set()
        for evidence in qa.get("evidence") or []:
            whole = DIALOG_ID.fullmatch(evidence.strip())
            if whole:
                wanted.add(ids.get(f"D{whole.group(1)}:{whole.group(2)}"))
        wanted.discard(None)
        if wanted:
            questions.append((qa["question"], wanted, CATEGORIES[qa["category"]]))
    return rows, questions


def fts5_words(text):
    """The question as FTS5 words: every run of letters and digits, quoted, joined by OR."""
    return " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text.lower()))
