"""Golden SQL: each NN_topic.sql beside this file, run through the sqlite3 shell, prints what
NN_topic.out holds.

The shell starts in a fresh temp folder with a `:memory:` host and the module loaded; statements
come from standard input, so that messages name the line of the .sql file. Output and messages
arrive in order: the shell writes to a pseudo-terminal, which it does not buffer by blocks. The temp
folder's path reads $TMP in what is compared.

SPDX-License-Identifier: MIT
"""
import difflib
import os
import pathlib
import pty
import shutil
import subprocess
import termios

import pytest

HERE = pathlib.Path(__file__).parent
SCRIPTS = sorted(HERE.glob("[0-9][0-9]_*.sql"))


def terminal():
    """Two ends of a pseudo-terminal that leaves newlines alone; None where the system has none to give."""
    try:
        ours, theirs = pty.openpty()
    except OSError:
        return None
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


def in_order(command, stdin, cwd):
    """Output of a command, stdout and stderr interleaved as they were written."""
    ends = terminal()
    if ends is None:  # a bare chroot, say: stdbuf of the GNU tools does it too
        if shutil.which("stdbuf") is None:
            pytest.skip("neither a pseudo-terminal nor stdbuf, so messages would be out of place")
        command, ends = ["stdbuf", "-oL", *command], os.pipe()
    ours, theirs = ends
    child = subprocess.Popen(command, stdin=stdin, stdout=theirs, stderr=theirs, cwd=cwd)
    os.close(theirs)
    chunks = []
    try:
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # a terminal on Linux says EIO when the last writer has gone
                break
            if not chunk:
                break
            chunks.append(chunk)
        child.wait()
    finally:
        os.close(ours)
        child.kill()
        child.wait()
    assert child.returncode >= 0, f"the shell died of signal {-child.returncode}"
    return b"".join(chunks).decode()


def run_script(script, so, tmp):
    exe = shutil.which("sqlite3")
    if exe is None:
        pytest.skip("no sqlite3 shell on PATH")
    command = [exe, "-batch", "-cmd", f".load '{so.with_suffix('')}'", ":memory:"]
    with open(script, "rb") as stdin:
        out = in_order(command, stdin, tmp)
    return out.replace(str(tmp), "$TMP")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_golden(script, so, tmp_path):
    expected = script.with_suffix(".out").read_text()
    got = run_script(script, so, tmp_path)
    if got != expected:
        diff = difflib.unified_diff(expected.splitlines(True), got.splitlines(True), "expected", "got")
        pytest.fail("".join(diff), pytrace=False)


def test_every_out_has_its_sql():
    outs = {p.stem for p in HERE.glob("*.out")}
    assert outs == {p.stem for p in SCRIPTS}


def test_a_wrong_line_is_seen(so, tmp_path):
    """The comparison is no formality: output, errors and their order are all in what is compared."""
    script = tmp_path / "x.sql"
    script.write_text("SELECT 1;\nSELECT nosuch;\nSELECT 'two';\n")
    lines = run_script(script, so, tmp_path).splitlines()
    assert lines[0] == "1" and lines[-1] == "two"
    assert any("line 2" in line and "nosuch" in line for line in lines[1:-1])
