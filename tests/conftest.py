"""Fixtures that every pytest of the project shares.

What:   the module's path, connections and shells that have it loaded, the data folder, reports.
Where:  environment H5MEM_SO names the module (default: h5mem.so or h5mem.dylib at the root);
        H5MEM_DATA names the folder of data that is not part of the project (default: ../shared/data
        beside the root).
Hosts:  tests/run sets the environment; a plain `/usr/bin/python3 -m pytest tests/...` works as
well.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def module_path():
    name = "h5mem.dylib" if sys.platform == "darwin" else "h5mem.so"
    return pathlib.Path(os.environ.get("H5MEM_SO", ROOT / name)).resolve()


def open_connection(path=":memory:", **kwargs):
    """A connection in autocommit mode (BEGIN and COMMIT are the test's own) with the module loaded."""
    kwargs.setdefault("isolation_level", None)
    con = sqlite3.connect(str(path), **kwargs)
    con.enable_load_extension(True)
    con.load_extension(str(module_path()))
    con.enable_load_extension(False)
    return con


def run_shell(sql, db=":memory:", cwd=None, load=True, check=True, timeout=120):
    """Run `sql` (also dot commands) through the sqlite3 shell; gives the CompletedProcess with text
    output.

    With check, any message on the error stream or a nonzero exit fails the test.
    """
    exe = shutil.which("sqlite3")
    if exe is None:
        pytest.skip("no sqlite3 shell on PATH")
    head = f".load '{module_path().with_suffix('')}'\n" if load else ""
    done = subprocess.run([exe, "-batch", str(db)], input=head + sql + "\n", cwd=cwd, text=True,
                          capture_output=True, timeout=timeout)
    if check and (done.returncode != 0 or done.stderr):
        raise AssertionError(f"sqlite3 ended with {done.returncode}: {done.stderr}\n{done.stdout}")
    return done


@pytest.fixture(scope="session")
def root():
    """The project's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def so():
    """Path of the module under test, with its suffix."""
    path = module_path()
    assert path.is_file(), f"{path} is missing: run make"
    return path


@pytest.fixture
def connect(so):
    """connect(path=':memory:', **sqlite3_arguments) -> connection; closed when the test ends."""
    opened = []

    def go(path=":memory:", **kwargs):
        con = open_connection(path, **kwargs)
        opened.append(con)
        return con

    yield go
    for con in opened:
        con.close()


@pytest.fixture
def shell(so, tmp_path):
    """shell(sql, db=':memory:', cwd=tmp_path, check=True) -> CompletedProcess of the sqlite3 shell."""

    def go(sql, db=":memory:", **kwargs):
        kwargs.setdefault("cwd", tmp_path)
        return run_shell(sql, db, **kwargs)

    return go


@pytest.fixture
def in_tmp(tmp_path, monkeypatch):
    """A fresh temp folder that is also the working folder; gives its path."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def data_root():
    """The folder of outside data; a skip where there is none."""
    path = pathlib.Path(os.environ.get("H5MEM_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no data folder {path.name!r} (set H5MEM_DATA)")
    return path.resolve()


@pytest.fixture(scope="session")
def data(data_root):
    """data('locomo') -> path of that part of the data folder; a skip where it is missing."""

    def go(name):
        path = data_root / name
        if not path.exists():
            pytest.skip(f"no {name!r} in the data folder")
        return path

    return go


@pytest.fixture
def report(record_property):
    """report('text') prints a line in the run's output even though the test passes."""

    def go(text):
        record_property("report", str(text))
        print(text)

    return go
