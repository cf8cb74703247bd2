#!/usr/bin/env python3
"""real.py FOLDER - embeds the LoCoMo conversations for the benchmarks, once, and prints the folder

rows.f32 and queries.f32 get 384 floats a turn and a question, by all-MiniLM-L6-v2 (sql/minilm.py
says where the model comes from; MINILM may name its folder). The conversations are read where they
are, in $H5MEM_DATA/locomo; nothing of their text is kept. Exit code 1, with the reason, where
something is missing.

SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "sql"))


def sentences(folder):
    turns, questions = [], []
    for path in sorted(folder.glob("conv-*.json")):
        talk = json.loads(path.read_text(encoding="utf-8"))
        for name, part in talk["conversation"].items():
            if name.startswith("session_") and isinstance(part, list):
                turns += [f"{turn['speaker']}: {turn['text']}" for turn in part]
        questions += [item["question"] for item in talk["qa"]]
    return turns, questions


def main():
    target = pathlib.Path(sys.argv[1]).resolve()
    if not (target / "queries.f32").is_file():
        data = pathlib.Path(os.environ.get("H5MEM_DATA", ROOT.parent / "shared" / "data"))
        turns, questions = sentences(data / "locomo")
        if not turns:
            raise FileNotFoundError("no conversations in $H5MEM_DATA/locomo")
        from minilm import MiniLM
        model = MiniLM(os.environ.get("MINILM"))
        target.mkdir(parents=True, exist_ok=True)
        model.embed(turns).astype("<f4").tofile(target / "rows.f32")
        model.embed(questions).astype("<f4").tofile(target / "queries.f32")
    print(target)


if __name__ == "__main__":
    try:
        main()
    except (ImportError, OSError) as error:
        sys.exit(f"no real embeddings: {error}")
