""".ci/deps on machines that lack things: what it asks of the package manager, and what it tells a person.

The machines are folders that stand for PATH: a few tools, and stand-ins for package managers that write down their
arguments and install nothing.

SPDX-License-Identifier: MIT
"""
import os
import shutil
import subprocess

import pytest

from sources import ROOT

TOOLS = "sh tr id mktemp rm cat mkdir env".split()
EVERYTHING = {"apt-get": "gcc libc6-dev libsqlite3-dev zlib1g-dev libzstd-dev sqlite3",
              "dnf": "gcc glibc-devel sqlite-devel zlib-devel libzstd-devel sqlite",
              "apk": "gcc musl-dev sqlite-dev zlib-dev zstd-dev sqlite",
              "brew": "gcc sqlite zlib zstd sqlite"}


@pytest.fixture
def machine(tmp_path):
    """machine(manager or None, *wants) -> (CompletedProcess, what the manager was asked for)"""
    def go(manager, *wants, is_root=True):
        path = tmp_path / "bin"
        path.mkdir()
        for tool in TOOLS:
            os.symlink(shutil.which(tool), path / tool)
        if not is_root:
            (path / "id").unlink()
            (path / "id").write_text("#!/bin/sh\necho 1000\n")
            (path / "id").chmod(0o755)
        log = tmp_path / "asked"
        if manager:
            (path / manager).write_text(f'#!/bin/sh\necho "$@" >>{log}\n')
            (path / manager).chmod(0o755)
        done = subprocess.run(["/bin/sh", str(ROOT / ".ci/deps"), *wants], env={"PATH": str(path)}, cwd=tmp_path,
                              text=True, capture_output=True, stdin=subprocess.DEVNULL)
        return done, log.read_text() if log.exists() else ""

    return go


@pytest.mark.parametrize("manager", EVERYTHING)
def test_a_manager_is_asked_for_all_that_is_missing(machine, manager):
    done, asked = machine(manager, "build", "demo")
    words = asked.split("\n")[-2].split()
    assert " ".join(words[-len(EVERYTHING[manager].split()):]) == EVERYTHING[manager]
    # this one installs nothing, and that does not pass for success
    assert done.returncode == 1
    assert EVERYTHING[manager] in done.stderr


def test_no_manager(machine):
    done, _ = machine(None, "build", "demo")
    assert done.returncode == 1
    for packages in EVERYTHING.values():
        assert packages in done.stderr


def test_no_rights(machine):
    done, asked = machine("apt-get", "build", is_root=False)
    assert done.returncode == 1 and asked == ""
    assert "as root with apt: gcc libc6-dev libsqlite3-dev" in done.stderr


def test_nothing_is_missing_here(tmp_path):
    """This test runs, so the tests' needs are met: not a word, not an error."""
    done = subprocess.run(["/bin/sh", str(ROOT / ".ci/deps"), "build", "demo", "test"], text=True, cwd=ROOT,
                          capture_output=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
