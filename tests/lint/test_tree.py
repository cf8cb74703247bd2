"""The tracked tree: its top level, its READMEs, and no path of anybody's machine in it.

SPDX-License-Identifier: MIT
"""
import re
import shutil
import subprocess

import pytest

from sources import ROOT

TOP = {"Makefile", "ext", "hdf5core", "vec", "tests", "bench", "sql", "README.md", "LICENSE"}
FOLDERS = ("ext", "hdf5core", "vec", "tests", "bench", "sql")
MACHINE = re.compile(r"/(?:work|root|Users|home/\w+)/\w")


def tracked(root):
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        pytest.skip("no git work tree")
    out = subprocess.run([git, "ls-files", "-z"], cwd=root, text=True, capture_output=True, check=True).stdout
    return [name for name in out.split("\0") if name]


def tree_faults(names):
    tops = {name.split("/")[0] for name in names}
    faults = [f"{top}: not a name of the top level" for top in sorted(tops) if top not in TOP and top[0] != "."]
    return faults + [f"{folder}: no README.md" for folder in FOLDERS
                     if folder in tops and f"{folder}/README.md" not in names]


def path_faults(root, names):
    faults = []
    for name in names:
        path = root / name
        if not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" in data[:8000]:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if MACHINE.search(line):
                faults.append(f"{name}:{number}: a path of one machine")
    return faults


def test_the_tree():
    assert tree_faults(tracked(ROOT)) == []


def test_no_machine_in_it():
    faults = path_faults(ROOT, tracked(ROOT))
    assert not faults, "\n" + "\n".join(faults)


def test_bad_trees_are_seen(tmp_path):
    assert tree_faults(["Makefile", ".ci/run", "vec/README.md", "vec/a.c"]) == []
    assert tree_faults(["src/a.c", "vec/a.c"]) == ["src: not a name of the top level", "vec: no README.md"]
    (tmp_path / "good").write_text("../shared/data and /usr/bin/python3 and /tmp/x")
    (tmp_path / "bad").write_text("one\n/ho" + "me/someone/x\n")
    assert path_faults(tmp_path, ["good", "bad", "gone"]) == ["bad:2: a path of one machine"]
