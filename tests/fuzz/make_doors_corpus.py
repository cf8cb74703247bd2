"""Makes the seeds of the corpus of fuzz_doors: the first byte says what the others are.

    /usr/bin/python3 tests/fuzz/make_doors_corpus.py

SPDX-License-Identifier: MIT
"""
import pathlib
import sys
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus" / "fuzz_doors"
sys.path[:0] = [str(CORPUS.parents[2]), str(CORPUS.parents[2] / "sql")]

JSON = b"""\xef\xbb\xbf{"id":7,"content":"a \\u00e9\\ud83d\\ude00\\n","embedding":[0.25,-1e-3],"timestamp":"2026-11-01"}
{"id":7,"tags":null,"n":-9223372036854775808,"x":9e999,"label":{"base64":"/w=="},"raw":{"base64":"AAEC"}}

{"embedding":{"base64":"AACAPwAAAEA="},"pinned":true,"source":"user","superseded_by":7,"importance":0.1}
"""
MARKDOWN = b"""---
date: 2026-11-03
---
intro
# A #
- ```
  # no
  ```

Title
===
~~~
# no
~~~
## 14:30 b
<!--
# no
-->\r
### c
"""
LOG = b"""<!-- h5mem rows -->

# 1970-01-01

## 00:00:00 s (user)
<!-- h5mem row 7 f5671f08 {"id":7,"timestamp":0.0,"session":"s","source":"user","superseded_by":9} -->

# in it

# 1970-01-02

## 00:00:00
<!-- h5mem row - {"id":9,"timestamp":86400.0,"tags":"a,b"} -->

## 00:00:01
<!-- h5mem row 4 00000000 {} -->

edited
"""
STATEMENTS = [b"CREATE VIRTUAL TABLE f USING vec0(k integer primary key, embedding float[2] "
              b"distance_metric=l2, +tags text)",
              b"CREATE VIRTUAL TABLE IF NOT EXISTS \"f\" USING [fts5]('content', embedding UNINDEXED, tags, tokenize = "
              b"\"unicode61 tokenchars '()'\", content = \"t\")"]


def main():
    from test_stores_out import ROWS, claw
    CORPUS.mkdir(parents=True, exist_ok=True)
    for old in CORPUS.glob("seed_*"):
        old.unlink()
    (CORPUS / "seed_jsonl").write_bytes(b"\0" + JSON)
    (CORPUS / "seed_markdown").write_bytes(b"\1" + MARKDOWN)
    (CORPUS / "seed_log").write_bytes(b"\1" + LOG)
    with tempfile.TemporaryDirectory() as tmp:
        claw(tmp + "/c.h5", [(t, v[:2], *rest) for t, v, *rest in ROWS[:3]], dim=2)
        (CORPUS / "seed_claw").write_bytes(b"\2" + pathlib.Path(tmp, "c.h5").read_bytes())
    for i, sql in enumerate(STATEMENTS):
        (CORPUS / f"seed_statement_{i}").write_bytes(b"\3" + sql)


if __name__ == "__main__":
    main()
