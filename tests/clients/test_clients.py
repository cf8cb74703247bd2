"""test_clients.py - the same script from Python's sqlite3 and from Node's better-sqlite3, the same output

Node's package bundles a newer SQLite than Debian's. It is installed once, into .build/clients, and compiled
there where no prebuilt binary is to be had; where Node, npm or the installation is missing, the test is
skipped and says why.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "better-sqlite3@12"
NODE_MAJOR = 20


def run(command, cwd, timeout=300, **environment):
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True,
                          timeout=timeout)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def same_as_expected(result):
    code, out, err = result
    assert code == 0, err
    assert out.splitlines() == (HERE / "expected.txt").read_text(encoding="utf-8").splitlines()


def runs(node, package):
    """Whether the package answers a query."""
    script = "new (require(process.argv[1]))(':memory:').prepare('SELECT 1').get()"
    return run([node, "-e", script, str(package)], HERE)[0] == 0


def install(node, npm, home):
    """Installs into a folder aside and renames it to `home`, so that no run sees half of one."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as aside:
        prefix = pathlib.Path(node).resolve().parent.parent
        headers = {"npm_config_nodedir": str(prefix)} if (prefix / "include/node/node.h").is_file() else {}
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", f"{aside}/new", PACKAGE]
        pathlib.Path(aside, "new").mkdir()
        code, out, err = run(command, aside, timeout=900, **headers)
        if code != 0:
            pytest.skip(f"npm cannot install {PACKAGE}: {(err or out).strip().splitlines()[-1:]}")
        if not runs(node, pathlib.Path(aside, "new", "node_modules", "better-sqlite3")):
            pytest.skip(f"{PACKAGE} is installed and does not run: its binary could not be built")
        shutil.rmtree(home, ignore_errors=True)
        os.rename(f"{aside}/new", home)


@pytest.fixture(scope="module")
def better_sqlite3(root):
    """Folder of the installed package, after it has run one query."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not both on PATH")
    version = run([node, "--version"], root)[1].strip()
    match = re.match(r"v(\d+)\.", version)
    if match is None or int(match.group(1)) < NODE_MAJOR:
        pytest.skip(f"better-sqlite3 12 needs Node {NODE_MAJOR}, this is {version}")
    if os.environ.get("H5MEM_SAN"):
        pytest.skip("a sanitized module needs its runtime preloaded, which Node does not stand")
    home = root / ".build" / "clients" / f"node-{match.group(1)}"
    package = home / "node_modules" / "better-sqlite3"
    if not runs(node, package):
        install(node, npm, home)
    return package


def test_python(so, tmp_path):
    same_as_expected(run([sys.executable, str(HERE / "client.py"), str(so)], tmp_path))


def test_node(so, tmp_path, better_sqlite3):
    command = [shutil.which("node"), str(HERE / "client.mjs"), str(so)]
    same_as_expected(run(command, tmp_path, BETTER_SQLITE3=str(better_sqlite3)))


def test_one_writes_and_the_other_reads(so, tmp_path, better_sqlite3):
    """Node fills a store; Python opens the same host database and finds every row."""
    command = [shutil.which("node"), str(HERE / "client.mjs"), str(so)]
    assert run(command, tmp_path, BETTER_SQLITE3=str(better_sqlite3))[0] == 0
    script = (HERE / "client.py").read_text(encoding="utf-8")
    tail = script[: script.index("con = connect()")] + "con = connect()" + script.split("con = connect()")[-1]
    code, out, err = run([sys.executable, "-c", tail, str(so)], tmp_path)
    assert code == 0, err
    expected = (HERE / "expected.txt").read_text(encoding="utf-8").split("reopen\n")[1]
    assert out.splitlines() == expected.splitlines()
