"""test_demo.py - the demo runs, shows what it says, notices a lost promise, and its store is that of its text

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest


@pytest.fixture
def tree(root, so, tmp_path):
    """A copy of sql/ beside the module under test, as they lie in the project."""
    shutil.copytree(root / "sql", tmp_path / "project" / "sql")
    shutil.copy(so, tmp_path / "project" / so.name)
    return tmp_path / "project"


def demo(tree, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(["sh", str(tree / "sql/demo.sh")], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "TMPDIR": str(scratch)}, timeout=300)
    assert list(scratch.iterdir()) == [], "the demo leaves files behind"
    return done


def test_it_shows_what_it_says(tree, tmp_path):
    done = demo(tree, tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.stderr + done.stdout[-2000:]
    out = re.sub(r"[│\s]+", " ", done.stdout)
    for text in (
        "Screens off. My eyes burn.",  # glare
        "should be seen by a vet",  # feline illness
        "we move the holiday by a week",  # postponed vacation
        "The first roofer wants 2,400 euros, the second 2,150",  # words
        "The insurer will transfer 2,080",  # both
        "sage green", "Warm white, everything here", "the study gets pale blue",
        "The allergy test is booked for Thursday 3 December",
    ):
        assert text in out, text
    after = out[out.index("Opened again"):]
    assert "bright orange" in out and "bright orange" not in after
    assert re.search(r"All 398 committed rows are there", after)


@pytest.mark.parametrize("old,new,complaint", [
    (".output\n.system kill", "COMMIT;\n.output\n.system kill", "differ"),
    (".system kill -9 $PPID\n", "", "not by SIGKILL"),
    ("SELECT h5mem_flush('memory')", "SELECT h5mem_flush('nosuchtable')", "tour"),
])
def test_it_notices(tree, tmp_path, old, new, complaint):
    """Rows too many after the kill, a writer that was not killed, a step that fails: exit code 1."""
    script = tree / "sql/demo.sql"
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))
    done = demo(tree, tmp_path)
    assert done.returncode == 1
    assert complaint in done.stderr, done.stderr


def test_its_store_is_that_of_its_text(connect, root, in_tmp, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "sql"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import demo_build
    rows = demo_build.read_talk(root / "sql/demo.txt")
    shutil.copy(root / "sql/demo.h5", "demo.h5")
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('demo.h5')")
    names = [name for name in demo_build.COLUMNS if name != "embedding"]
    stored = con.execute(f"SELECT {', '.join(names)} FROM memory ORDER BY id").fetchall()
    assert stored == [tuple(row[name] for name in names) for row in rows], "run sql/demo_build.py"
    for row_id, blob in con.execute("SELECT id, embedding FROM memory").fetchall():
        values = struct.unpack("<384f", blob)
        assert sum(v * v for v in values) == pytest.approx(1, abs=1e-5), row_id


def test_its_store_is_small_and_plain_hdf5(connect, root, in_tmp):
    """h5py alone reads the same vectors out of it."""
    h5py = pytest.importorskip("h5py")
    shutil.copy(root / "sql/demo.h5", "demo.h5")
    assert pathlib.Path("demo.h5").stat().st_size < 900 * 1024
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('demo.h5')")
    with h5py.File("demo.h5", "r") as file:
        ids = file["memory/id"][:]
        vectors = file["memory/embedding"][:].astype("<f4")
        stored = {int(row_id): vector.tobytes() for row_id, vector in zip(ids, vectors)}
    assert stored == dict(con.execute("SELECT id, embedding FROM memory").fetchall())
