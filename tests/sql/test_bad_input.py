"""Bad places: paths that are no files, files of others, no right to write, no space, files that went away.

Each time: an error that names the table, the file and what is wrong; nothing is changed and nothing left over; and
the store works again as soon as the cause is gone. Bad values are in test_errors.py.

SPDX-License-Identifier: MIT
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from crash.kit import server  # noqa: F401, a fixture
from harness.jobs import Remote

NOBODY = 65534
CREATE = "CREATE VIRTUAL TABLE memory USING h5mem('{}', dim=3)"
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def remote(server):
    """remote(path, user=None) -> Remote; its process is killed when the test ends"""
    started = []

    def go(path, **arguments):
        started.append(Remote(server, path, **arguments))
        return started[-1]

    yield go
    for one in started:
        one.child.kill()


@pytest.fixture
def folder():
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="h5mem-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def names(message, *words):
    missing = [word for word in ("memory", *words) if word not in message]
    assert not missing, f"{message!r} lacks {missing}"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command[:3])} does not work here: {done.stderr.strip()}")


@contextlib.contextmanager
def small_disk(path, size):
    """A file system of that many KiB."""
    path.mkdir(exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", f"size={size}k,mode=777", "tmpfs", str(path))
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def contents(con):
    return [row[0] for row in con("SELECT content FROM memory ORDER BY id")]


# ---- what is no file, or somebody else's

def make_text(path):
    path.write_text("plain words, no HDF5\n" * 400)


def make_empty(path):
    path.write_bytes(b"")


def make_short(path):
    path.write_bytes(b"\x89HDF\r\n\x1a\n")


def make_zeros(path):
    path.write_bytes(bytes(8192))


def make_signature(path):
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(4096))


def make_link_loop(path):
    path.symlink_to(path)


def make_link_to_device(path):
    path.symlink_to("/dev/zero")


def as_is(path):
    """What must not change; the time of the last look may."""
    stat = os.lstat(path)
    return path.read_bytes() if path.is_file() else (stat.st_mode, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@pytest.mark.parametrize("make", [make_text, make_empty, make_short, make_zeros, make_signature, pathlib.Path.mkdir,
                                  os.mkfifo, make_link_loop, make_link_to_device], ids=lambda f: f.__name__)
def test_a_path_that_is_no_hdf5_file(remote, tmp_path, make):
    path = tmp_path / "bad.h5"
    make(path)
    before = as_is(path)
    con = remote(tmp_path / "host.db")
    message = con.fails(CREATE.format("bad.h5"))
    names(message, "/dev/zero" if make is make_link_to_device else "bad.h5")
    assert as_is(path) == before
    assert sorted(os.listdir(tmp_path)) == ["bad.h5", "host.db"]
    con(CREATE.format("good.h5"))
    con("INSERT INTO memory(content) VALUES ('one')")
    names(con.fails("SELECT h5mem_import('memory', ?, 'h5mem')", str(path)))
    assert contents(con) == ["one"]
    assert as_is(path) == before


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "nosuchfolder/a.h5", "a" * 300 + ".h5", "", ".", "/"])
def test_a_path_that_cannot_be(remote, tmp_path, path):
    con = remote(tmp_path / "host.db")
    names(con.fails(CREATE.format(path)), path[:200].split("/")[-1])
    assert sorted(os.listdir(tmp_path)) == ["host.db"]
    con(CREATE.format("good.h5"))


@pytest.mark.parametrize("make", [pathlib.Path.mkdir, os.mkfifo, make_link_loop], ids=lambda f: f.__name__)
def test_a_log_that_is_no_file(remote, tmp_path, make):
    con = remote(tmp_path / "host.db")
    make(tmp_path / "agent.h5-wal")
    names(con.fails(CREATE.format("agent.h5")), "agent.h5-wal")
    assert not (tmp_path / "agent.h5").exists()


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("kind", ["plain", "like", "almost"])
def test_an_hdf5_file_of_somebody_else(remote, tmp_path, kind, libver):
    """Untouched byte for byte, and no log beside it."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "theirs.h5"
    with h5py.File(path, "w", libver=libver) as file:
        if kind == "plain":
            file["data"] = [1, 2, 3]
        else:
            file.attrs["format"] = "h5mem" if kind == "like" else b"h5mem"
            file.create_group("memory")
            file.create_group("meta")
        if kind == "almost":
            file.attrs["format_version"] = 3
            file["memory/id"] = [1, 2, 3]
            file["meta"].attrs["dim"] = 3
    before = path.read_bytes()
    con = remote(tmp_path / "host.db")
    names(con.fails(CREATE.format("theirs.h5")), "theirs.h5")
    con(CREATE.format("good.h5"))
    con.fails("SELECT h5mem_import('memory', ?, 'h5mem')", str(path))
    assert path.read_bytes() == before
    con.close()
    assert sorted(os.listdir(tmp_path)) == ["good.h5", "good.h5-wal", "host.db", "theirs.h5"]


# ---- files that may not be written

def make_store(remote, host, path):
    """One row in the file, one in the log."""
    con = remote(host)
    con("CREATE TABLE notes(text)")
    con(CREATE.format(path))
    con("INSERT INTO memory(content) VALUES ('in the file')")
    con("SELECT h5mem_flush('memory')")
    con("INSERT INTO memory(content) VALUES ('in the log')")
    con.kill()


ROWS = ["in the file", "in the log"]
WRITES = ["INSERT INTO memory(content) VALUES ('x')", "UPDATE memory SET content = 'x'", "DELETE FROM memory",
          "UPDATE memory SET importance = 0", "SELECT h5mem_flush('memory')", "SELECT h5mem_compact('memory')",
          "SELECT h5mem_config('memory', 'agent', 'x')"]


def by_rights(paths):
    for path in paths:
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    yield NOBODY if os.geteuid() == 0 else None
    for path in paths:
        os.chmod(path, 0o755 if path.is_dir() else 0o644)


def by_flag(paths):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    run("chattr", "+i", *map(str, paths))
    yield None
    subprocess.run(["chattr", "-i", *map(str, paths)], check=True)


WAYS = [contextlib.contextmanager(by_rights), contextlib.contextmanager(by_flag)]


@pytest.fixture(params=WAYS, ids=["rights", "flag"])
def protected(request):
    return request.param


@pytest.fixture
def place(remote, folder):
    """(host, folder of the store); the host can be written by all."""
    store = folder / "store"
    store.mkdir()
    make_store(remote, folder / "host.db", store / "agent.h5")
    return folder / "host.db", store


def open_to_all(*paths):
    for path in paths:
        os.chmod(path, 0o777 if path.is_dir() else 0o666)


def reads_and_does_not_write(con, store, before):
    assert contents(con) == ROWS
    assert con("SELECT id FROM memory WHERE content MATCH 'file log' ORDER BY id") == [(1,), (2,)]
    for sql in WRITES:
        names(con.fails(sql), "agent.h5")
    con("BEGIN")
    con("INSERT INTO notes VALUES ('x')")
    names(con.fails("INSERT INTO memory(content) VALUES ('x')"), "agent.h5")
    con("COMMIT")
    assert contents(con) == ROWS
    con.close()
    assert {path.name: path.read_bytes() for path in store.iterdir()} == before


@pytest.mark.parametrize("what", ["all", "file", "log"])
def test_no_right_to_write(remote, place, protected, what):
    host, store = place
    open_to_all(host.parent, host, store, *store.iterdir())
    before = {path.name: path.read_bytes() for path in store.iterdir()}
    paths = {"all": [*store.iterdir(), store], "file": [store / "agent.h5"], "log": [store / "agent.h5-wal"]}[what]
    with protected(paths) as user:
        reads_and_does_not_write(remote(host, user=user), store, before)
    con = remote(host)
    con("INSERT INTO memory(content) VALUES ('again')")
    con("SELECT h5mem_flush('memory')")
    assert contents(con) == ROWS + ["again"]


def test_a_folder_without_the_right_to_write(remote, place, protected):
    """No new store in it; an existing one works but for compact, which needs a new file."""
    host, store = place
    open_to_all(host.parent, host, store, *store.iterdir())
    with protected([store]) as user:
        con = remote(host, user=user)
        message = con.fails(f"CREATE VIRTUAL TABLE other USING h5mem('{store}/new.h5', dim=3)")
        names(message.replace("other", "memory"), "new.h5")
        con("INSERT INTO memory(content) VALUES ('more')")
        con("SELECT h5mem_flush('memory')")
        names(con.fails("SELECT h5mem_compact('memory')"), "agent.h5")
        con("INSERT INTO memory(content) VALUES ('and more')")
        assert contents(con) == ROWS + ["more", "and more"]
        con.close()
        assert sorted(os.listdir(store)) == ["agent.h5", "agent.h5-wal"]
    con = remote(host)
    con("SELECT h5mem_compact('memory')")
    con(f"CREATE VIRTUAL TABLE other USING h5mem('{store}/new.h5', dim=3)")
    assert contents(con) == ROWS + ["more", "and more"]


def test_a_folder_without_the_right_to_write_and_no_log(remote, place, protected):
    host, store = place
    con = remote(host)
    con("SELECT h5mem_flush('memory')")
    con.close()
    (store / "agent.h5-wal").unlink()
    open_to_all(host.parent, host, store, *store.iterdir())
    before = {path.name: path.read_bytes() for path in store.iterdir()}
    with protected([store]) as user:
        con = remote(host, user=user)
        assert contents(con) == ROWS
        names(con.fails("INSERT INTO memory(content) VALUES ('x')"), "agent.h5")
        assert contents(con) == ROWS
        con.close()
    assert {path.name: path.read_bytes() for path in store.iterdir()} == before
    con = remote(host)
    con("INSERT INTO memory(content) VALUES ('x')")
    assert contents(con) == ROWS + ["x"]


@ROOT_ONLY
def test_a_file_system_without_the_right_to_write(remote, folder):
    with small_disk(folder / "disk", 1024) as disk:
        make_store(remote, folder / "host.db", disk / "agent.h5")
        before = {path.name: path.read_bytes() for path in disk.iterdir()}
        run("mount", "-o", "remount,ro", str(disk))
        con = remote(folder / "host.db")
        names(con.fails(f"CREATE VIRTUAL TABLE other USING h5mem('{disk}/new.h5', dim=3)").replace("other", "memory"),
              "new.h5")
        reads_and_does_not_write(con, disk, before)
        run("mount", "-o", "remount,rw", str(disk))
        con = remote(folder / "host.db")
        con("INSERT INTO memory(content) VALUES ('again')")
        assert contents(con) == ROWS + ["again"]
        con.close()


# ---- no space

def fill(disk, keep):
    """Takes all but about `keep` bytes of the disk; gives the file to remove."""
    path = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    path.write_bytes(bytes(max(0, free - keep)))
    return path


def stats(con):
    return json.loads(con("SELECT h5mem_stats('memory')")[0][0])


@ROOT_ONLY
@pytest.mark.parametrize("keep", [0, 4096, 8192, 12288])
def test_no_space_for_a_store(remote, folder, keep):
    with small_disk(folder / "disk", 256) as disk:
        filler = fill(disk, keep)
        con = remote(folder / "host.db")
        if keep < 12288:
            message = con.fails(CREATE.format(disk / "agent.h5"))
            names(message, "agent.h5")
            assert message.startswith("SQLITE_FULL"), message
            assert os.listdir(disk) == ["filler"]
            assert con("SELECT name FROM sqlite_schema") == []
        filler.unlink()
        con(CREATE.format(disk / "agent.h5"))
        con("INSERT INTO memory(content) VALUES ('one')")
        assert contents(con) == ["one"]
        con.close()


@ROOT_ONLY
def test_no_space_for_rows(remote, folder):
    """The transaction is undone in both files; reading goes on; with space all goes on."""
    with small_disk(folder / "disk", 1024) as disk:
        make_store(remote, folder / "host.db", disk / "agent.h5")
        con = remote(folder / "host.db")
        filler = fill(disk, 8192)
        for _ in range(2):
            con("BEGIN")
            con("INSERT INTO notes VALUES ('x')")
            con("INSERT INTO memory(content) VALUES (?)", "x" * 50000)
            message = con.fails("COMMIT")
            names(message, "agent.h5")
            assert message.startswith("SQLITE_FULL"), message
            con.ask("ROLLBACK", ())
            assert contents(con) == ROWS and con("SELECT * FROM notes") == []
        con("INSERT INTO memory(content) VALUES ('small')")
        filler.unlink()
        con("INSERT INTO memory(content) VALUES (?)", "x" * 50000)
        assert contents(con) == ROWS + ["small", "x" * 50000]
        con.close()
        assert contents(remote(folder / "host.db")) == ROWS + ["small", "x" * 50000]


@ROOT_ONLY
@pytest.mark.parametrize("how", ["flush", "autoflush", "close", "compact"])
def test_no_space_for_a_flush(remote, folder, how):
    """What is committed stays in the log, and counts."""
    with small_disk(folder / "disk", 1024) as disk:
        make_store(remote, folder / "host.db", disk / "agent.h5")
        con = remote(folder / "host.db")
        if how == "autoflush":
            con("SELECT h5mem_config('memory', 'autoflush', 50000)")
        for i in range(8):
            con("INSERT INTO memory(content) VALUES (?)", f"{i}" * 4000)
        wanted = contents(con)
        filler = fill(disk, 40960 if how == "autoflush" else 24576)
        size = (disk / "agent.h5").stat().st_size
        if how in ("flush", "compact"):
            message = con.fails(f"SELECT h5mem_{how}('memory')")
            names(message, "agent.h5")
            assert message.startswith("SQLITE_FULL"), message
        elif how == "autoflush":
            con("INSERT INTO memory(content) VALUES (?)", "z" * 12000)
            wanted.append("z" * 12000)
            assert "No space" in stats(con)["flush_error"]
        else:
            con.close()
            con = remote(folder / "host.db")
        assert contents(con) == wanted
        assert stats(con)["base_rows"] == 1
        assert sorted(os.listdir(disk)) == ["agent.h5", "agent.h5-wal", "filler"]
        filler.unlink()
        con("SELECT h5mem_flush('memory')")
        con("INSERT INTO memory(content) VALUES ('more')")
        assert contents(con) == wanted + ["more"] and stats(con)["base_rows"] == len(wanted)
        assert stats(con)["flush_error"] is None
        assert (disk / "agent.h5").stat().st_size > size
        con.close()


def test_a_limit_on_the_size_of_files(remote, tmp_path):
    """Every file stops at a given size, a higher one each time: the write that fails is an ever later one."""
    con = remote(tmp_path / "host.db")
    con("CREATE TABLE notes(text)")
    con(CREATE.format("agent.h5"))
    rows, met, done = [], set(), 0
    size = max(path.stat().st_size for path in tmp_path.iterdir())
    for number in range(90):
        for sql in ([("BEGIN",), ("INSERT INTO notes VALUES (?)", str(number)),
                     ("INSERT INTO memory(content) VALUES (?)", f"{number} " + "x" * 900), ("COMMIT",)],
                    [("UPDATE memory SET content = content || 'y' WHERE id % 3 = ?", number % 3)],
                    [("SELECT h5mem_flush('memory')",)], [("SELECT h5mem_compact('memory')",)]):
            con.ask("limit", size + 700 * number)
            failed = None
            for text, *values in sql:
                con.ask(text, values)
                if con.error is not None:
                    failed = text
                    assert con.error.startswith(("SQLITE_FULL", "SQLITE_IOERR")), con.error
                    break
            con.ask("limit", None)
            if failed:
                met.add(failed.split()[0] + failed.split("(")[0][-8:])
                con.ask("ROLLBACK", ())
            else:
                done += 1
                if sql[0][0] == "BEGIN":
                    rows.append((str(number), f"{number} " + "x" * 900))
                elif sql[0][0].startswith("UPDATE"):
                    rows = [(note, text + "y" * (key % 3 == number % 3)) for key, (note, text) in
                            zip([row[0] for row in con("SELECT id FROM memory ORDER BY id")], rows)]
            assert contents(con) == [text for _, text in rows], (number, sql, failed)
            assert [row[0] for row in con("SELECT text FROM notes ORDER BY rowid")] == [note for note, _ in rows]
    assert len(met) >= 3 and done > 20, (met, done)
    con.close()
    assert contents(remote(tmp_path / "host.db")) == [text for _, text in rows]


# ---- files that went away or were exchanged

@pytest.fixture
def con(remote, tmp_path):
    con = remote(tmp_path / "host.db")
    con(CREATE.format("agent.h5"))
    con("INSERT INTO memory(content) VALUES ('one')")
    con("SELECT h5mem_flush('memory')")
    return con


@pytest.mark.parametrize("damage", ["gone", "cut", "zeros", "folder", "text"])
def test_drop_works_whatever_became_of_the_file(con, remote, tmp_path, damage):
    con.close()
    path = tmp_path / "agent.h5"
    data = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes({"cut": data[:1000], "zeros": bytes(len(data)), "text": b"words\n" * 999}[damage])
    before = sorted(os.listdir(tmp_path))
    con = remote(tmp_path / "host.db")
    names(con.fails("SELECT * FROM memory"), "agent.h5")
    names(con.fails("INSERT INTO memory(content) VALUES ('x')"), "agent.h5")
    con("ALTER TABLE memory RENAME TO thoughts")
    con("DROP TABLE thoughts")
    assert con("SELECT name FROM sqlite_schema") == []
    assert sorted(os.listdir(tmp_path)) == before


def test_an_idle_log_may_go(con, remote, tmp_path):
    """Reading makes no new one, the first writer does."""
    con.close()
    log = tmp_path / "agent.h5-wal"
    assert log.stat().st_size == 4096
    log.unlink()
    con = remote(tmp_path / "host.db")
    assert contents(con) == ["one"]
    assert not log.exists()
    con("INSERT INTO memory(content) VALUES ('two')")
    assert contents(con) == ["one", "two"] and log.exists()
    assert contents(remote(tmp_path / "host.db")) == ["one", "two"]


@pytest.mark.parametrize("size", [0, 100, 4095])
def test_a_log_that_was_never_filled(con, remote, tmp_path, size):
    """What a process leaves that dies while it makes one."""
    con.close()
    (tmp_path / "agent.h5-wal").write_bytes(bytes(size))
    con = remote(tmp_path / "host.db")
    assert contents(con) == ["one"]
    con("INSERT INTO memory(content) VALUES ('two')")
    assert contents(con) == ["one", "two"]


@pytest.mark.parametrize("data", [bytes(4096), b"x" * 5000])
def test_a_log_of_other_bytes(con, remote, tmp_path, data):
    con.close()
    (tmp_path / "agent.h5-wal").write_bytes(data)
    con = remote(tmp_path / "host.db")
    for sql in ("SELECT * FROM memory", "INSERT INTO memory(content) VALUES ('x')"):
        names(con.fails(sql), "agent.h5", "log")
    assert (tmp_path / "agent.h5-wal").read_bytes() == data
    (tmp_path / "agent.h5-wal").unlink()
    assert contents(con) == ["one"]


def test_the_log_of_another_store(con, remote, tmp_path):
    con("CREATE VIRTUAL TABLE other USING h5mem('other.h5', dim=3)")
    con("INSERT INTO other(content) VALUES ('theirs')")
    con.kill()
    shutil.copy(tmp_path / "other.h5-wal", tmp_path / "agent.h5-wal")
    con = remote(tmp_path / "host.db")
    for sql in ("SELECT * FROM memory", "INSERT INTO memory(content) VALUES ('x')"):
        names(con.fails(sql), "agent.h5", "another store")
    assert con("SELECT content FROM other") == [("theirs",)]
    (tmp_path / "agent.h5-wal").unlink()
    assert contents(con) == ["one"]


def test_a_log_that_goes_while_it_is_used(con, remote, tmp_path):
    """Nothing is written to a log that others cannot find."""
    assert contents(con) == ["one"]
    (tmp_path / "agent.h5-wal").unlink()
    for sql in ("INSERT INTO memory(content) VALUES ('x')", "SELECT h5mem_flush('memory')"):
        names(con.fails(sql), "agent.h5", "log")
    assert contents(con) == ["one"]
    other = remote(tmp_path / "host.db")
    other("INSERT INTO memory(content) VALUES ('two')")
    con.close()
    assert contents(other) == ["one", "two"]


def test_a_file_that_goes_while_it_is_used(con, remote, tmp_path):
    """The rows in the log are not folded into a file that nobody can find."""
    path = tmp_path / "agent.h5"
    con("INSERT INTO memory(content) VALUES ('two')")
    path.rename(tmp_path / "away.h5")
    assert contents(con) == ["one", "two"]
    for sql in ("INSERT INTO memory(content) VALUES ('x')", "SELECT h5mem_flush('memory')",
                "SELECT h5mem_compact('memory')"):
        names(con.fails(sql), "agent.h5", "removed")
    con.close()
    con = remote(tmp_path / "host.db")
    names(con.fails("SELECT * FROM memory"), "agent.h5")
    names(con.fails(CREATE.format("agent.h5").replace("memory", "other")).replace("other", "memory"), "log")
    (tmp_path / "away.h5").rename(path)
    assert contents(con) == ["one", "two"]
    con("INSERT INTO memory(content) VALUES ('three')")
    assert contents(con) == ["one", "two", "three"]


def test_another_store_in_its_place(con, remote, tmp_path):
    con("CREATE VIRTUAL TABLE other USING h5mem('other.h5', dim=3)")
    con("INSERT INTO other(content) VALUES ('theirs')")
    con("SELECT h5mem_flush('other')")
    shutil.copy(tmp_path / "other.h5", tmp_path / "copy.h5")
    os.replace(tmp_path / "copy.h5", tmp_path / "agent.h5")
    names(con.fails("INSERT INTO memory(content) VALUES ('x')"), "agent.h5")
    con.close()
    con = remote(tmp_path / "host.db")
    names(con.fails("SELECT * FROM memory"), "agent.h5", "another store")
    (tmp_path / "agent.h5-wal").unlink()
    for sql in ("SELECT * FROM memory", "INSERT INTO memory(content) VALUES ('x')"):
        names(con.fails(sql), "agent.h5", "another store")
    con("DROP TABLE memory")
    con("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5')")
    assert contents(con) == ["theirs"]


@pytest.mark.parametrize("in_log", [False, True], ids=["log-empty", "rows-in-log"])
def test_an_older_copy_in_its_place(con, remote, tmp_path, in_log):
    """Beside an empty log it is read; rows of a log go only into the file that they continue."""
    shutil.copy(tmp_path / "agent.h5", tmp_path / "old.h5")
    con("INSERT INTO memory(content) VALUES ('two')")
    con("SELECT h5mem_flush('memory')")
    if in_log:
        con("INSERT INTO memory(content) VALUES ('three')")
    con.kill()
    os.replace(tmp_path / "old.h5", tmp_path / "agent.h5")
    con = remote(tmp_path / "host.db")
    if in_log:
        names(con.fails("SELECT * FROM memory"), "agent.h5", "log", "generation")
    else:
        assert contents(con) == ["one"]
    names(con.fails("INSERT INTO memory(content) VALUES ('x')"), "agent.h5")
    con.close()
    (tmp_path / "agent.h5-wal").unlink()
    con = remote(tmp_path / "host.db")
    con("INSERT INTO memory(content) VALUES ('x')")
    assert contents(con) == ["one", "x"]


# ---- limits of the layout

def appended(con, path, first, rng):
    """Bytes that a flush of 100 new rows appends."""
    before = path.stat().st_size
    con.execute("BEGIN")
    con.executemany("INSERT INTO memory(content, embedding, session) VALUES (?, ?, 's')", hundred(rng, first, 100))
    con.execute("COMMIT")
    assert con.execute("SELECT h5mem_flush('memory')").fetchone() == (100,)
    return path.stat().st_size - before


def hundred(rng, first, n):
    """Rows of 384 floats and 200 characters."""
    words = "amber brook cedar delta ember fjord grove heath inlet jetty knoll ledge marsh notch oasis".split()
    vectors = rng.standard_normal((n, 384)).astype("<f4")
    for i in range(n):
        text = f"row {first + i} " + " ".join(rng.choice(words, 40))
        yield text[:200], vectors[i].tobytes()


def test_the_limits_of_the_layout(connect, in_tmp, report):
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(1)
    con = connect("host.db")
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('agent.h5', dim=384)")
    path = in_tmp / "agent.h5"
    empty = path.stat().st_size
    assert empty < 64 * 1024
    first = appended(con, path, 0, rng)
    hundred_rows = path.stat().st_size
    assert hundred_rows < 320 * 1024
    means, worst, stored = {}, first, 100
    for target in (1000, 100000):
        while stored < target:
            n = min(5000, target - stored)
            con.execute("BEGIN")
            con.executemany("INSERT INTO memory(content, embedding, session) VALUES (?, ?, 's')",
                            hundred(rng, stored, n))
            con.execute("COMMIT")
            stored += n
        con.execute("SELECT h5mem_flush('memory')").fetchall()
        sizes = [appended(con, path, stored + 100 * i, rng) for i in range(10)]
        stored += 1000
        means[target], worst = sum(sizes) / 10, max(worst, *sizes)
        assert means[target] <= 4 * 173600 + 65536, sizes
    assert means[100000] <= 2 * means[1000]
    assert worst <= 4 << 20
    report(f"empty store {empty} bytes, with 100 rows {hundred_rows}; a flush of 100 rows appends {means[1000]:.0f} at"
           f" 1,000 and {means[100000]:.0f} at 100,000 stored rows (mean of ten), at most {worst}")
