"""What happens to an open store when somebody else cuts, removes, replaces or links its files, or forks.

No process may die of it, nothing confirmed may be lost without an error, and no file of another store may change.

SPDX-License-Identifier: MIT
"""
import errno
import os
import shutil

import pytest

from crash import pairs
from crash.kit import server  # noqa: F401, a fixture
from harness.jobs import Remote

NOBODY = 65534


@pytest.fixture
def remote(server):
    started = []

    def go(path, **arguments):
        started.append(Remote(server, path, **arguments))
        return started[-1]

    yield go
    for one in started:
        if one.child.status is None:
            one.child.kill()


def make(folder):
    """A host with a store that flushes only when it is told to."""
    pairs.make(folder / "host.db", "agent.h5", "wal", ", autoflush=10000000")
    return folder / "host.db"


def fill(con, first, count):
    con("BEGIN")
    for key in range(first, first + count):
        con("INSERT INTO memory(id, content, embedding) VALUES (?, ?, '[1,2,3,4]')", key, f"amber {key} " + "x" * 300)
    con("COMMIT")


def rows(con):
    return [row[0] for row in con("SELECT id FROM memory ORDER BY id")]


LOOKS = ("SELECT id, content, embedding FROM memory", "SELECT id FROM memory WHERE content MATCH 'amber'",
         "SELECT id FROM memory WHERE embedding MATCH '[1,2,3,4]' AND k = 9", "SELECT h5mem_verify('memory')",
         "SELECT h5mem_stats('memory')", "SELECT id, tags, session FROM memory WHERE id = 7",
         "INSERT INTO memory(content) VALUES ('more')", "UPDATE memory SET importance = 1 WHERE id < 9",
         "SELECT h5mem_flush('memory')", "SELECT h5mem_compact('memory')", "SELECT h5mem_backup('memory', :copy)",
         "DELETE FROM memory WHERE id = 3")


CUTS = [(name, size) for name in ("agent.h5", "agent.h5-wal") for size in (0, 1, 48, 4095, 4096, 8192, 30000, -1)]


@pytest.mark.parametrize("name,size", CUTS)
def test_a_file_that_is_cut_under_open_stores(remote, tmp_path, name, size):
    """Readers and writers get rows or an error; none of them dies."""
    path = make(tmp_path)
    con = remote(path)
    fill(con, 1, 60)
    con("SELECT h5mem_flush('memory')")
    fill(con, 61, 20)
    others = [remote(path) for _ in range(3)]
    others[0]("SELECT id, content, embedding FROM memory")
    others[1]("SELECT count(*) FROM memory")
    victim = tmp_path / name
    os.truncate(victim, victim.stat().st_size + size if size < 0 else min(size, victim.stat().st_size))
    for one in (*others, con):
        for sql in LOOKS:
            one.ask(sql, {"copy": str(tmp_path / "copy.h5")} if ":copy" in sql else ())
            assert one.error is None or one.error.startswith("SQLITE_"), f"{sql}: {one.error}"
        one.close()


def test_a_log_that_is_removed_under_open_stores(remote, tmp_path):
    """What is confirmed after that is there for everybody."""
    path = make(tmp_path)
    one, two = remote(path), remote(path)
    fill(one, 1, 5)
    one("SELECT h5mem_flush('memory')")
    assert rows(two) == [1, 2, 3, 4, 5]
    os.unlink(tmp_path / "agent.h5-wal")
    confirmed = {1, 2, 3, 4, 5}
    for number, con in enumerate((one, two, remote(path), one, two)):
        con.ask("INSERT INTO memory(id, content) VALUES (?, 'after')", (100 + number,))
        if con.error is None:
            confirmed.add(100 + number)
    assert set(rows(remote(path))) >= confirmed
    for con in (one, two):
        con.ask("SELECT id FROM memory", ())
        con.close()
    con = remote(path)
    assert set(rows(con)) >= confirmed and con("SELECT h5mem_verify('memory')") == [("ok",)]


def test_a_store_that_is_replaced(remote, tmp_path):
    """Another store put in its place, with its log: an error, or its own rows; the other one stays whole."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    path, other = make(tmp_path / "a"), make(tmp_path / "b")
    con = remote(other)
    fill(con, 500, 20)
    con.close()
    one, two = remote(path), remote(path)
    fill(one, 1, 20)
    assert len(rows(two)) == 20
    before = {p.name: p.read_bytes() for p in (tmp_path / "b").glob("agent.h5*")}
    for end in ("", "-wal"):
        os.replace(tmp_path / f"b/agent.h5{end}", tmp_path / f"a/agent.h5{end}")
    for con in (one, two, remote(path)):
        for sql in LOOKS:
            con.ask(sql, {"copy": str(tmp_path / "copy.h5")} if ":copy" in sql else ())
            assert con.error is None or con.error.startswith("SQLITE_"), f"{sql}: {con.error}"
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"a/agent.h5{end}", tmp_path / f"b/agent.h5{end}")
    con = remote(other)
    assert set(rows(con)) >= set(range(504, 520)), before.keys()
    assert con("SELECT h5mem_verify('memory')") == [("ok",)]


def test_a_store_with_two_names(remote, tmp_path):
    """Two hard links have two logs: one name or the other may refuse, but confirmed rows are there."""
    path = make(tmp_path)
    one = remote(path)
    fill(one, 1, 10)
    one("SELECT h5mem_flush('memory')")
    os.link(tmp_path / "agent.h5", tmp_path / "second.h5")
    two = remote(tmp_path / "second.db")
    confirmed = set(range(1, 11))
    two.ask("CREATE VIRTUAL TABLE memory USING h5mem('second.h5')", ())
    for number in range(6):
        con = (one, two)[number % 2]
        con.ask("INSERT INTO memory(id, content) VALUES (?, 'linked')", (100 + number,))
        if con.error is None:
            confirmed.add(100 + number)
        con.ask("SELECT h5mem_flush('memory')", ())
    assert set(rows(one)) >= confirmed
    for con in (one, two):
        con.ask("close")
    con = remote(path)
    assert set(rows(con)) >= confirmed
    assert con("SELECT h5mem_verify('memory')") == [("ok",)]


def forked(channel, path):
    """A job: forks with an open store; the child closes what it has inherited; the parent goes on."""
    from conftest import open_connection
    con = open_connection(path)
    con.execute("INSERT INTO memory(id, content) VALUES (1, 'before')")
    for how in range(3):
        pid = os.fork()
        if pid == 0:
            if how == 0:
                con.close()
            elif how == 1:
                try:
                    con.execute("SELECT count(*) FROM memory").fetchall()
                except Exception:
                    pass
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, f"the child of fork {how} has died"
        con.execute("INSERT INTO memory(id, content) VALUES (?, 'after')", (2 + how,))
    seen = [row[0] for row in con.execute("SELECT id FROM memory ORDER BY id")]
    con.execute("SELECT h5mem_flush('memory')").fetchall()
    con.close()
    channel.send(seen)


def test_a_fork_with_an_open_store(server, remote, tmp_path):
    path = make(tmp_path)
    assert server.run("crash.test_outside", "forked", path=str(path)) == [1, 2, 3, 4]
    con = remote(path)
    assert rows(con) == [1, 2, 3, 4] and con("SELECT h5mem_verify('memory')") == [("ok",)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("what", ["files", "folder", "all"])
@pytest.mark.parametrize("logged", [0, 5])
def test_files_and_folders_that_cannot_be_written(remote, tmp_path, what, logged):
    """They can be read, by one who may not write; a write is an error, and nothing is made or changed."""
    folder = tmp_path / "home"
    folder.mkdir()
    for parent in list(folder.parents)[:3]:
        if parent.stat().st_mode & 0o7777 == 0o700:  # pytest's own
            parent.chmod(0o711)
    if not all(parent.stat().st_mode & 1 for parent in folder.parents):
        pytest.skip("nobody else can reach the folder for tests")
    path = folder / "host.db"
    pairs.make(path, "agent.h5", "delete")
    con = remote(path)
    fill(con, 1, 10)
    con("SELECT h5mem_flush('memory')")
    if logged:
        fill(con, 11, logged)
    con.kill()
    if what != "folder":
        for file in folder.iterdir():
            file.chmod(0o444)
    else:
        for file in folder.iterdir():
            file.chmod(0o666)
    folder.chmod(0o777 if what == "files" else 0o555)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    con = remote(path, user=NOBODY)
    assert rows(con) == list(range(1, 11 + logged))
    assert len(con("SELECT id FROM memory WHERE content MATCH 'amber'")) == 10 + logged
    if what != "folder":
        for sql in ("INSERT INTO memory(content) VALUES ('x')", "DELETE FROM memory", "SELECT h5mem_compact('memory')"):
            assert "SQLITE_" in con.fails(sql), sql
    con.close()
    if what != "folder":
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_file_system_without_locks(tmp_path, remote):
    """As some network file systems are: nothing is made, written or read; nothing is lost when they are back."""
    path = make(tmp_path)
    con = remote(path)
    fill(con, 1, 5)
    con.ask("close")
    con = remote(path)
    for error in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):
        con.ask("locks", error)
        for sql in ("INSERT INTO memory(content) VALUES ('more')", "SELECT id FROM memory"):
            assert "agent.h5: the file system cannot lock the log" in con.fails(sql), sql
        said = con.fails(f"CREATE VIRTUAL TABLE other USING h5mem('other{error}.h5', dim=2)")
        assert f"other{error}.h5: the file system cannot lock the log" in said
        assert not [name for name in os.listdir(tmp_path) if name.startswith("other")]
    con.ask("locks", 0)
    con("INSERT INTO memory(id, content) VALUES (6, 'more')")
    assert rows(con) == [1, 2, 3, 4, 5, 6]
    for when in ("INSERT INTO memory(id, content) VALUES (7, 'lost')", "BEGIN"):  # it goes while the store is open
        con.ask("locks", errno.ENOLCK)
        con.ask(when, ())
        assert "cannot lock" in con.fails("INSERT INTO memory(id, content) VALUES (7, 'lost')")
        con.ask("ROLLBACK", ())
        con.ask("locks", 0)
        assert rows(con) == [1, 2, 3, 4, 5, 6]
    assert con("SELECT h5mem_verify('memory')") == [("ok",)]
