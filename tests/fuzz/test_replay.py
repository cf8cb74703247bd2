"""The fuzz targets over their corpora, and over each file changed a few hundred times.

SPDX-License-Identifier: MIT
"""
import subprocess

import pytest

from harness.cprog import ROOT, environment, program

TARGETS = sorted(path.stem for path in (ROOT / "tests/fuzz").glob("fuzz_*.c"))


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(target):
    corpus = ROOT / "tests/fuzz/corpus" / target
    if not corpus.is_dir():
        pytest.skip(f"no seeds in tests/fuzz/corpus/{target}")
    files = [p for p in corpus.iterdir() if p.is_file()]
    done = subprocess.run([program(f"fuzz/{target}"), "-m", "300", corpus], text=True, capture_output=True,
                          env=environment())
    assert done.returncode == 0, (done.stdout[-500:], done.stderr[-5000:])
    assert done.stdout.endswith(f"\n{len(files)} files\n") and files
