"""The benchmark itself: a wrong answer fails its row, figures come as JSON, its list of rows is the one in the README.

SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/peers")]
import clawhdf5
import compare
import table

BENCH = pathlib.Path(os.environ.get("H5MEM_BUILD", ROOT / ".build/gcc")) / "bench/bench"

GOOD = """--! subsystem try
--! repeat a,3 b,5
--! row sum_$1 per 2 rows
--! answers nothing at all
--! timed 10
SELECT :run, $2 + 0.5;
--! same 0
--! truth 5 1
SELECT :run, $2.5;
--! check
SELECT 1;
--! facts
SELECT 7 AS bytes, 'x' AS kind;
--! end
"""


def run(tmp_path, script, so, *options, name="try.sql"):
    path = tmp_path / name
    path.write_text(script)
    out = tmp_path / "out.json"
    done = subprocess.run([str(BENCH), "--module", str(so), "--form", "short", *options, str(path)], text=True,
                          env={**os.environ, "BENCH_OUT": str(out), "TMPDIR": str(tmp_path)}, check=False,
                          capture_output=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return done, lines


def test_a_row_has_its_figures(tmp_path, so):
    done, (machine, a, b) = run(tmp_path, GOOD, so, "--about", "a test")
    assert done.returncode == 0, done.stdout + done.stderr
    assert machine["run"] == "a test" and machine["cores"] > 0
    assert [a["row"], b["row"]] == ["sum_a", "sum_b"] and a["n"] == 10 and a["check"] is True
    assert len(a["parts"]) == 5 and a["facts"] == {"bytes": 7, "kind": "x"} and a["unit"] == "rows"
    assert a["rate"] == pytest.approx(2e9 / a["mean"], rel=1e-3)
    assert table.names_of(done.stdout) == ["sum_a", "sum_b"]
    assert "bytes 7, kind x" in done.stdout


@pytest.mark.parametrize("old,new", [
    ("SELECT 1;", "SELECT 0;"),
    ("SELECT :run, $2.5;", "SELECT :run, $2.4;"),
    ("SELECT :run, $2.5;", "SELECT :run + 1, $2.5;"),
    ("SELECT :run, $2 + 0.5;", "SELECT :run, $2 + 0.5 WHERE :run <> 3;"),
])
def test_a_wrong_answer_fails_the_row(tmp_path, so, old, new):
    done, lines = run(tmp_path, GOOD.replace(old, new), so)
    assert done.returncode == 1 and "2 failed" in done.stdout and done.stdout.count("FAILED") == 2
    assert [line["check"] for line in lines[1:]] == [False, False]


@pytest.mark.parametrize("script,what", [
    ("--! subsystem x\n--! row a\n--! timed 3\nSELECT 1;\n", "neither check nor truth"),
    ("--! subsystem x\n--! row a\n--! timed\n", "number of runs"),
    ("--! subsystem x\n--! row a\n--! soon 3\n", "unknown directive"),
    ("--! subsystem x\n--! repeat a b\n--! row $1\n", "a repeat without end"),
    ("--! row a\n--! timed 3\nSELECT 1;\n--! check\nSELECT 1;\n", "no subsystem"),
    ("SELECT 1;\n", "SQL outside a section"),
])
def test_a_bad_script_is_an_error(tmp_path, so, script, what):
    done, _ = run(tmp_path, script, so)
    assert done.returncode == 1 and what in done.stderr


def test_forms_leave_rows_out(tmp_path, so):
    script = GOOD.replace("--! answers", "--! from long\n--! answers")
    assert len(run(tmp_path, script, so)[1]) == 1
    (tmp_path / "out.json").unlink()
    assert len(run(tmp_path, script, so, "--form", "normal")[1]) == 1
    (tmp_path / "out.json").unlink()
    assert len(run(tmp_path, script, so, "--form", "long")[1]) == 3


def test_what_changes_nothing_runs_longer_than_asked(tmp_path, so):
    times = [line["n"] for line in run(tmp_path, GOOD, so, "--form", "normal")[1][1:]]
    assert min(times) > 1000
    (tmp_path / "out.json").unlink()
    writes = GOOD.replace("--! timed 10\n",
                          "--! setup\nCREATE TABLE t$1(x);\n--! timed 10\nINSERT INTO t$1 VALUES (1);\n")
    assert [line["n"] for line in run(tmp_path, writes, so, "--form", "normal")[1][1:]] == [10, 10]


def test_a_call_without_sql_gives_the_same_answer(tmp_path, so):
    script = """--! subsystem try
--! row near
--! setup
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=8);
INSERT INTO m(embedding, content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 300)
  SELECT bench_vec(i, 8), bench_words(i, 9), i FROM s;
--! bind :q vec 8
--! core CALL 20
--! load
SELECT id, embedding FROM m ORDER BY id;
--! same 1e-5
--! truth 20 1
SELECT id, distance FROM m WHERE embedding MATCH :q AND k = 10;
"""
    for call in ("near", "scan:best", "scan:scalar"):
        done, _ = run(tmp_path, script.replace("CALL", call), so)
        assert done.returncode == 0, done.stdout + done.stderr
    wrong = script.replace("CALL", "near").replace("FROM m ORDER", "FROM m WHERE id > 150 ORDER")
    assert run(tmp_path, wrong, so)[0].returncode == 1
    assert run(tmp_path, script.replace("CALL", "nothing"), so)[0].returncode == 1


def test_the_table_in_the_readme_has_the_rows_of_the_list():
    rows = table.listed(("short", "normal", "long"))
    assert len(rows) == len(set(rows)) > 100, "two rows of one name"
    assert table.names_of(table.shown()) == table.listed()


def row(name, parts, **more):
    return {"row": name, "parts": parts, "p50": sorted(parts)[2], "check": True, **more}


def test_compare_tells_change_from_noise(tmp_path):
    steady, up = row("r", [100, 101, 102, 103, 104]), row("r", [120, 121, 122, 123, 124])
    assert compare.verdict(steady, steady) == ""
    assert compare.verdict(steady, up) == "slower" and compare.verdict(up, steady) == "faster"
    assert compare.verdict(steady, row("r", [100, 121, 122, 123, 124])) == ""       # one part is no slower
    assert compare.verdict(steady, row("r", [105, 105.1, 105.2, 105.3, 105.4])) == ""  # apart, but by too little
    pair = {"row": "p", "ratio": 3.0, "low": 2.9, "high": 3.1}
    assert compare.verdict(pair, {**pair, "ratio": 3.05, "low": 3.0, "high": 3.2}) == ""
    assert compare.verdict(pair, {**pair, "ratio": 2.0, "low": 1.9, "high": 2.1}) == "slower"
    for name, rows in (("a", [steady, row("gone", [1] * 5)]), ("b", [up])):
        (tmp_path / name).write_text("\n".join(json.dumps(r) for r in [{"machine": "m", "run": name}] + rows))
    done = subprocess.run([sys.executable, str(ROOT / "bench/compare.py"), str(tmp_path / "a"), str(tmp_path / "b")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "MISSING" in done.stdout and "1 slower" in done.stdout
    assert "1 differ by 10% or more and called themselves steady: r" in done.stdout


def test_figures_of_criterion():
    text = """vector_search_1k        time:   [54.1 µs 54.3 µs 54.6 µs]
                        change: [-1% +0% +1%] (p = 0.5 > 0.05)
ivf_search_100k_nprobe10
                        time:   [1.30 ms 1.32 ms 1.40 ms]
Found 3 outliers among 100 measurements (3.00%)
"""
    assert clawhdf5.parse(text) == {"vector_search_1k": pytest.approx(54300), "ivf_search_100k_nprobe10": 1320000}
