"""What the module shows to its host: the two entry points, and nothing that the host would have to
bring.

SPDX-License-Identifier: MIT
"""
import os
import shutil
import subprocess
import sys

import pytest

ENTRIES = {"sqlite3_h5mem_init", "sqlite3_hmem_init"}


@pytest.fixture(scope="module")
def nm():
    exe = shutil.which("nm")
    if exe is None:
        pytest.skip("no nm on PATH")
    return exe


def exported(nm, path):
    flags = ["-gU"] if sys.platform == "darwin" else ["-D", "--defined-only"]
    out = subprocess.run([nm, *flags, str(path)], text=True, capture_output=True, check=True).stdout
    return {line.split()[-1].lstrip("_") for line in out.splitlines() if line.strip()}


def undefined(nm, path):
    flags = ["-gu"] if sys.platform == "darwin" else ["-D", "--undefined-only"]
    out = subprocess.run([nm, *flags, str(path)], text=True, capture_output=True, check=True).stdout
    return {line.split()[-1].split("@")[0].lstrip("_") for line in out.splitlines() if line.strip()}


def test_only_the_entry_points(nm, so):
    assert exported(nm, so) == ENTRIES


def test_sqlite_comes_through_the_api_table(nm, so):
    assert [s for s in undefined(nm, so) if s.startswith("sqlite3_")] == []


def test_a_leak_is_seen(nm, tmp_path):
    compiler = shutil.which(os.environ.get("CC", "gcc").split()[0])
    if compiler is None:
        pytest.skip("no compiler on PATH")
    source = tmp_path / "x.c"
    source.write_text("int sqlite3_open(void);\nint leaked(void);\n"
                      "int leaked(void)\n{\n    return sqlite3_open();\n}\n")
    library = tmp_path / "x.so"
    lazy = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    subprocess.run([compiler, "-shared", "-fPIC", *lazy, "-o", str(library), str(source)], check=True)
    assert "leaked" in exported(nm, library)
    assert "sqlite3_open" in undefined(nm, library)
