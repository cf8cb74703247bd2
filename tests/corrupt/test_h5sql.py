"""Damaged files through SQL: an error that names the file, or rows; never a crash, two seconds or 256 MiB.

Everything that SQL can ask of a file is asked of each: its objects, attributes, values, whole datasets and the `hdf5`
table. The damaged files of the data folder, and good ones of which bits are flipped; H5MEM_LONG=1 flips ten times as
many.

SPDX-License-Identifier: MIT
"""
import itertools
import os
import random
import re
import sqlite3
import time

import pytest

from test_h5foreign import good  # noqa: F401, a fixture

LONG = bool(os.environ.get("H5MEM_LONG"))
ROWS = 500  # of each dataset that are looked at
READ_MAX = 4 << 20  # bytes of a dataset that is read whole


def memory(what):
    """MiB of this process, 'VmRSS' now or 'VmHWM' at most."""
    return int(re.search(what + r":\s*(\d+) kB", open("/proc/self/status").read())[1]) / 1024


def reset_peak():
    try:
        open("/proc/self/clear_refs", "w").write("5")
    except OSError:
        pytest.skip("no /proc/self/clear_refs here")


class Asker:
    """Asks all that SQL can ask of one file; counts rows and errors."""

    def __init__(self, con):
        self.con, self.rows, self.errors = con, 0, 0

    def ask(self, sql, *args):
        """The first rows of a statement, or none where it fails, with a message of ours."""
        try:
            found = list(itertools.islice(self.con.execute(sql, args), ROWS))
        except sqlite3.Error as e:
            assert "h5mem: " in str(e), (sql, args, e)
            self.errors += 1
            return []
        self.rows += len(found)
        return found

    def table(self, path, name):
        quoted = [x.replace("'", "''") for x in (str(path), name)]
        self.ask("CREATE VIRTUAL TABLE t USING hdf5('{}', '{}')".format(*quoted))
        if self.con.execute("SELECT 1 FROM sqlite_schema WHERE name = 't'").fetchone():
            self.ask("SELECT * FROM t")
            self.ask("SELECT rowid FROM t WHERE rowid BETWEEN 3 AND 20")
            self.con.execute("DROP TABLE t")

    def file(self, path):
        path = str(path)
        self.ask("SELECT * FROM hdf5_attributes(?)", path)
        for name, kind, size in self.ask("SELECT path, kind, bytes FROM hdf5_objects(?)", path):
            self.ask("SELECT * FROM hdf5_attributes(?, ?)", path, name)
            if kind == "dataset" and isinstance(name, str):
                self.ask("SELECT * FROM hdf5_values(?, ?)", path, name)
                self.table(path, name)
                if size is not None and size <= READ_MAX:
                    self.ask("SELECT hdf5_read(?, ?)", path, name)


def limits(ask, path):
    """Seconds and MiB more than before that one file took, which are within bounds but under a sanitizer."""
    reset_peak()
    before, start = memory("VmRSS"), time.process_time()
    ask.file(path)
    took = time.process_time() - start, memory("VmHWM") - before
    assert took[0] < 2 and took[1] < 256 or os.environ.get("H5MEM_SAN"), (path, took)
    return took


def summary(what, ask, took):
    return (f"{what} through SQL: {len(took)}, {ask.rows} rows, {ask.errors} errors, none took more than "
            f"{max(t[0] for t in took):.1f} s and {max(t[1] for t in took):.0f} MiB")


def test_damaged_files(connect, data, report):
    files = sorted(p for p in (data("h5corpus") / "corrupt/dev").rglob("*") if p.is_file() and p.suffix != ".jsonl")
    ask = Asker(connect())
    took = [limits(ask, p) for p in files]
    assert len(files) > 300 and ask.rows > 1000 and ask.errors > 300
    report(summary("damaged foreign files", ask, took))


def test_flipped_bits(connect, good, in_tmp, report):  # noqa: F811
    rng = random.Random(5)
    ask, took = Asker(connect()), []
    for path in good:
        whole = path.read_bytes()
        for _ in range(100 if LONG else 10):
            at = rng.randrange(len(whole))
            (in_tmp / "x.h5").write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1:])
            took.append(limits(ask, in_tmp / "x.h5"))
    assert ask.rows > 1000 and ask.errors > 50
    report(summary("good files with a bit flipped", ask, took))
