"""A writer dies while others have the same host open; one of them settles what is in doubt; then all die.

What a living connection sees of a WAL host is what the wal-index tells. A writer that has written its commit frame and
dies before the wal-index knows of it has committed, for whoever recovers the WAL later, and has not, for those who
live on. Whatever the living decide about the store, host and store must be alike when all are dead and the next one
comes.

SPDX-License-Identifier: MIT
"""
import pytest

from crash import pairs
from crash.kit import server  # noqa: F401, a fixture
from harness.jobs import AFTER, BEFORE, Remote

CALLS_MOST = 40


def by_rollback(con):
    con("BEGIN")
    con.ask("INSERT INTO memory(content) VALUES ('taken back')", ())
    con("ROLLBACK")


def by_flush(con):
    con.ask("SELECT h5mem_flush('memory')", ())


def by_compact(con):
    con.ask("SELECT h5mem_compact('memory')", ())


def by_reading(con):
    state(con)


def by_writing(con):
    con("UPDATE done SET session = session WHERE 0")
    con("INSERT INTO done VALUES ('host alone')")


def by_both(con):
    by_rollback(con)
    by_flush(con)


SETTLERS = [by_rollback, by_flush, by_compact, by_reading, by_writing, by_both]


def state(con):
    """(names in the host, names in the store): of committed pairs the same ones."""
    con("BEGIN")
    found = ([row[0] for row in con("SELECT session FROM done ORDER BY 1")],
             [row[0] for row in con("SELECT DISTINCT session FROM memory WHERE session IS NOT NULL ORDER BY 1")])
    con("COMMIT")
    return found


def write_pair(con, name):
    """Nothing when the writer dies in it."""
    try:
        con("BEGIN IMMEDIATE")
        con("INSERT INTO memory(content, session) VALUES ('amber', ?)", name)
        con("INSERT INTO done VALUES (?)", name)
        con("COMMIT")
    except EOFError:
        return False
    return True


@pytest.mark.parametrize("mode,settle", [("wal", settle) for settle in SETTLERS] + [("delete", by_both)])
def test_all_die_after_one_has_settled(server, tmp_path, mode, settle):
    """At every call of the writer: it dies, a living one settles, all die; the next one finds both files alike."""
    wrong, outcomes, ended = [], set(), False
    for call in range(1, CALLS_MOST):
        for moment in (BEFORE, AFTER) if call == 1 else (AFTER,):
            folder = tmp_path / f"{call}.{moment}"
            folder.mkdir()
            path = folder / "host.db"
            pairs.make(path, "agent.h5", mode)
            living = Remote(server, path)
            assert write_pair(living, "first")
            reader, writer = Remote(server, path), Remote(server, path)
            assert state(reader) == (["first"], ["first"])
            writer.ask("kill at", call, moment)
            ended |= write_pair(writer, "second")
            writer.kill()
            seen = state(reader)
            settle(living)
            for con in (living, reader):
                con.kill()
            con = Remote(server, path)
            last = state(con)
            con("INSERT INTO memory(content, session) VALUES ('after', NULL)")
            again = state(con)
            con.kill()
            host, store = ([name for name in names if name != "host alone"] for names in last)
            if host != store or again != last or (ended and "second" not in host):
                wrong.append(f"call {call}, moment {moment}: beside the living {seen}, then {last}, later {again}")
            outcomes.add(tuple(host))
        if ended:
            break
    assert not wrong, "\n".join(wrong)
    assert ended and call > 3 and outcomes == {("first",), ("first", "second")}
