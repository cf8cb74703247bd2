"""tests/run itself: what it counts as passed, failed and skipped, and what it must not overlook.

SPDX-License-Identifier: MIT
"""
import importlib.machinery
import importlib.util
import re
import subprocess
import sys

import pytest

from sources import ROOT


def load_runner():
    loader = importlib.machinery.SourceFileLoader("run", str(ROOT / "tests/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    loader.exec_module(module)
    return module


RUN = load_runner()


def tap(output, code=0, data_there=False):
    result = RUN.Result("x")
    RUN.parse_tap(result, code, output, data_there)
    return result.passed, len(result.failures), len(result.skips)


@pytest.mark.parametrize("output,code,counts", [
    ("1..2\nok 1 - a\nok 2 - b\n", 0, (2, 0, 0)),
    ("1..2\nok 1 - a\nnot ok 2 - b\n# t.c:7: error\n", 1, (1, 1, 0)),
    ("1..2\nok 1 - a\n# no such tool\nnot ok 2 # SKIP b\n", 0, (1, 0, 1)),
    ("1..1\nok 1 - a\n1..1\nok 1 - second group\n", 0, (2, 0, 0)),
    ("1..3\nok 1 - a\n", 0, (1, 1, 0)),      # stopped half-way
    ("1..1\nok 1 - a\n", 1, (1, 1, 0)),      # a bad end after the last test, such as a leak
    ("1..1\nok 1 - a\n", -11, (1, 1, 0)),    # died
    ("1..1\nok 1 - a\n", None, (1, 1, 0)),   # timed out
    ("hello\n", 0, (0, 1, 0)),               # not a test program
])
def test_tap(output, code, counts):
    assert tap(output, code) == counts


def test_a_skip_for_data_that_exist_fails():
    output = "1..1\n# no 'x' in the data folder\nnot ok 1 # SKIP a\n"
    assert tap(output, data_there=False) == (0, 0, 1)
    assert tap(output, data_there=True) == (0, 1, 0)


@pytest.mark.parametrize("body,counts,code", [
    ("def test_a(): pass\ndef test_b(): pass\n", "2 passed, 0 failed", 0),
    ("def test_a(): pass\ndef test_b(): assert 0\n", "1 passed, 1 failed", 1),
    ("import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('why not')\n", "1 passed, 0 failed", 0),
    ("import pytest\ndef test_b(): pytest.skip('why not')\n", "0 passed, 0 failed", 1),
    ("import nosuchmodule\ndef test_a(): pass\n", "0 passed, 1 failed", 1),
    ("import os\ndef test_a(): os.kill(os.getpid(), 9)\n", "0 passed, 1 failed", 1),
    ("def helper(): pass\n", "0 passed, 1 failed", 1),
])
def test_a_whole_run(body, counts, code, tmp_path):
    """The runner in a tree of its own, which holds one test file."""
    (tmp_path / "tests").mkdir()
    runner = tmp_path / "tests/run"
    runner.write_text((ROOT / "tests/run").read_text())
    (tmp_path / "tests/test_x.py").write_text(body)
    done = subprocess.run([sys.executable, str(runner), "-j", "1"], text=True, capture_output=True)
    assert done.stdout.splitlines()[-1] == counts, done.stdout
    assert done.returncode == code
    assert ("why not" in body) == bool(re.search("^SKIP test_x.py: test_b: .*why not$", done.stdout, re.M))
