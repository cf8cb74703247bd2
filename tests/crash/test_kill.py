"""Killed processes: every committed row is there afterwards, and no other, in the store and in its host.

Random kills: a writer works until SIGKILL meets it. Before each COMMIT it says what is to change, after it that
COMMIT has returned. The next process must find all that was confirmed; what was announced and not confirmed
must be there wholly or not at all, in both files alike.

Chosen kills: the same operation over and over, killed before, in and after its first call that changes a file,
its second, and so on until it ends. Each time both files must be as before or as after.

More of the first with the environment variable H5MEM_KILLS (default 500).

SPDX-License-Identifier: MIT
"""
import os
import random
import shutil
import time

import pytest

from crash.kit import server  # noqa: F401, a fixture
from crash.operations import FILE_HOSTS_ONLY, OPERATIONS, after_write
from harness.forks import Failed
from harness.jobs import AFTER, BEFORE, HALF, MODES

KILLS = int(os.environ.get("H5MEM_KILLS", 500))
ROUND = 25  # kills of one store, which grows meanwhile


# ---- random kills

def changed(table, change):
    new, gone = change
    return {key: row for key, row in {**table, **new}.items() if key not in gone}


class Round:
    """One store and its writers, one after the other."""

    def __init__(self, server, folder, mode, rng):
        self.server, self.folder, self.mode, self.rng = server, folder, mode, rng
        self.options = f", autoflush={rng.choice((4096, 16384, 65536))}"
        self.options += rng.choice(("", ", compression='deflate:1'", ", compression='zstd:1'", ", synchronous=full"))
        self.states = [({}, {})]  # what may be there
        self.commits = self.open_ends = self.taken = 0

    def found(self, rows, notes):
        """Takes what a process has found; for a host without a file only the store lives on."""
        if self.mode == "memory":
            right = [i for i, state in enumerate(self.states) if state[0] == rows]
        else:
            right = [i for i, state in enumerate(self.states) if state == (rows, notes)]
        if not right:
            raise AssertionError("\n".join(["neither before nor after:", *(
                f"{name}: {key} should be {old.get(key, 'away')}, is {new.get(key, 'away')}"
                for name, old, new in (("memory", self.states[0][0], rows), ("notes", self.states[0][1], notes))
                for key in sorted(old.keys() | new.keys()) if old.get(key, ()) != new.get(key, ())),
                f"announced: {self.pending}" if len(self.states) > 1 else "nothing was announced"]))
        self.taken += len(self.states) > 1 and right[-1] == 1
        self.states = [(rows, {} if self.mode == "memory" else notes)]

    def kill(self):
        """A writer, from start to death."""
        child = self.server.start("harness.jobs", "writer", sync=self.rng.random() < 0.2, folder=str(self.folder),
                                  mode=self.mode, seed=self.rng.getrandbits(32), options=self.options)
        until = time.monotonic() + self.rng.uniform(0.005, 0.25)
        while time.monotonic() < until:
            if child.channel.poll(max(0, until - time.monotonic())):
                self.take(child.recv())
        child.kill()
        for message in child.rest():
            self.take(message)
        assert child.wait() == -9
        self.open_ends += len(self.states) > 1

    def take(self, message):
        if message[0] == "ready":
            self.found(*message[1:])
        elif message[0] == "intent":
            rows, notes = self.states[-1]
            self.pending = message[1:]
            self.states.append((changed(rows, message[1]), changed(notes, message[2])))
        else:
            del self.states[0]
            self.commits += 1


def run_round(server, folder, mode, kills, seed):
    rng = random.Random(seed)
    folder.mkdir()
    one = Round(server, folder, mode, rng)
    for number in range(kills):
        try:
            one.kill()
            if rng.random() < 0.2:
                one.found(*server.run("harness.jobs", "reader", folder=str(folder), mode=mode))
        except Exception as error:
            raise AssertionError(f"seed {seed}, {mode}{one.options}, kill {number}: {error}") from error
    one.found(*server.run("harness.jobs", "reader", folder=str(folder), mode=mode))
    return one


@pytest.mark.parametrize("mode", MODES)
def test_kills_at_random_moments(server, tmp_path, report, mode):
    kills = (KILLS + len(MODES) - 1) // len(MODES)
    seed = int(os.environ.get("T_SEED", random.SystemRandom().getrandbits(32)))
    rounds = []
    for at in range(0, kills, ROUND):
        folder = tmp_path / str(at)
        rounds.append(run_round(server, folder, mode, min(ROUND, kills - at), seed + at))
        shutil.rmtree(folder)
    commits, ends, taken = (sum(getattr(r, name) for r in rounds) for name in ("commits", "open_ends", "taken"))
    report(f"{mode} host, seed {seed}: {kills} kills, {commits} commits confirmed; {ends} kills between announcement"
           f" and confirmation, {taken} of these transactions were there")
    assert commits > kills


# ---- chosen kills

CASES = [(mode, name) for mode in MODES for name in OPERATIONS if mode != "memory" or name not in FILE_HOSTS_ONLY]
CHANGES_NOTHING = ("rollback", "flush", "close", "compact")
LEFT = {"agent.h5", "agent.h5-wal", "copy.h5", "copy.h5-wal", "fresh.h5", "fresh.h5-wal", "host.db", "other.db"}


@pytest.fixture(scope="module")
def prepared(server, tmp_path_factory):
    """prepared(mode) -> a folder to copy"""
    made = {}

    def go(mode):
        if mode not in made:
            made[mode] = tmp_path_factory.mktemp(mode)
            server.run("crash.operations", "prepare", folder=str(made[mode]), mode=mode)
        return made[mode]

    return go


class Operation:
    """One operation on copies of the prepared folder. states[i]: what is there after i statements."""

    def __init__(self, server, template, folder, mode, name):
        self.server, self.template, self.folder, self.mode, self.name = server, template, folder, mode, name
        self.states = []
        for steps in range(len(OPERATIONS[name]) + 1):
            self.calls = self.run(steps=steps)[1]
            self.states.append(self.inspect(True)[1])
        assert "w" in self.calls or name == "rollback"

    def run(self, **arguments):
        """(statements that were confirmed, the calls or None after a kill)"""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)
        child = self.server.start("crash.operations", "interrupt", folder=str(self.folder), mode=self.mode,
                                  name=self.name, **arguments)
        said = list(child.rest())
        status = child.wait()
        assert status == (0 if said and said[-1] is not None else -9), f"ended with {status}"
        return sum(word is None for word in said), said[-1] if status == 0 else None

    def inspect(self, read_first):
        return self.server.run("crash.operations", "inspect", folder=str(self.folder), mode=self.mode,
                               read_first=read_first)

    def kill(self, at, moment):
        """One kill; 1 when the statement that it met had happened, 0 when not, None when nothing tells."""
        confirmed, calls = self.run(at=at, moment=moment)
        assert calls is None, f"the operation made calls {calls}, not {self.calls}"
        allowed = self.states[confirmed:confirmed + 2]
        by_other, found, written, last, left = self.inspect(moment != AFTER)
        if found is not None:
            assert found in allowed, f"found {found}, allowed {allowed}"
            assert by_other in [state.get("rows", by_other) for state in allowed], f"another host sees {by_other}"
        now = [after_write(state) for state in ([found] if found is not None else allowed)]
        assert written in now, f"after a write {written}, allowed {now}"
        assert last == written.get("rows", last), f"another host sees {last}, not {written}"
        assert set(left) <= LEFT, f"left over: {sorted(set(left) - LEFT)}"
        return None if allowed[0] == allowed[-1] else int(written == after_write(allowed[-1]))


def moments(calls, at):
    """Only a write has a middle. What is stored in the log's header between two calls is stored after a write or a
    sync: after any other call all is as before the next one."""
    return (BEFORE, HALF, AFTER) if calls[at - 1] == "w" else (BEFORE, AFTER) if at == len(calls) else (BEFORE,)


@pytest.mark.parametrize("mode,name", CASES)
def test_kills_at_every_call(server, prepared, tmp_path, mode, name):
    one = Operation(server, prepared(mode), tmp_path / "store", mode, name)
    happened = set()
    for at in range(1, len(one.calls) + 1):
        for moment in moments(one.calls, at):
            try:
                happened.add(one.kill(at, moment))
            except Exception as error:
                raise AssertionError(f"killed {('before', 'in the middle of', 'after')[moment]} call {at} of"
                                     f" {one.calls}: {error}") from error
    wanted = set() if name in CHANGES_NOTHING else {0, 1}
    if mode == "memory" and name not in CHANGES_NOTHING:
        # a host without a file commits by a write to memory, behind the last call of a plain statement
        assert {0} <= happened - {None} <= wanted
    else:
        assert happened - {None} == wanted


@pytest.mark.parametrize("name", ["flush", "write-and-compact"])
def test_a_backup_after_each_kill(server, prepared, tmp_path, name):
    """It copies what readers see, whatever the log's header does not know yet."""
    one = Operation(server, prepared("wal"), tmp_path / "store", "wal", name)
    for at in range(1, len(one.calls) + 1):
        for moment in (BEFORE, AFTER):
            one.run(at=at, moment=moment)
            found, copied = server.run("crash.operations", "back_up", folder=str(one.folder), mode="wal")
            assert copied == found, f"call {at} of {one.calls}, {moment}: the copy has {copied}, not {found}"


# ---- kills of what comes after a kill

@pytest.mark.parametrize("mode", MODES)
def test_kills_of_the_recovery(server, prepared, tmp_path, mode):
    """An operation is killed, then the INSERT that would mend what it left, then the next one ..."""
    seed = int(os.environ.get("T_SEED", random.SystemRandom().getrandbits(32)))
    rng = random.Random(seed)
    names = ["insert-trigger", "update-text", "update-small", "delete", "flush", "write-and-close"]
    ops = [Operation(server, prepared(mode), tmp_path / "store", mode, name) for name in names]
    row = ("amber", "s-2", 0.5, None, None)
    for number in range(max(40, KILLS // 8)):
        one = rng.choice(ops)
        confirmed, _ = one.run(at=rng.randint(1, len(one.calls)), moment=rng.choice((BEFORE, HALF, AFTER)))
        allowed = one.states[confirmed:confirmed + 2]
        inserted = False
        for _ in range(rng.randint(1, 3)):
            child = server.start("crash.operations", "interrupt", folder=str(one.folder), mode=mode, name="insert",
                                 at=rng.randint(1, 8), moment=rng.choice((BEFORE, HALF, AFTER)))
            try:
                inserted |= child.recv() is None
            except EOFError:
                pass
            except Failed as error:
                assert "id 20 is taken" in str(error), f"seed {seed}, number {number}: {error}"
            child.wait()
        _, found, written, last, _ = one.inspect(True)
        with_row = [{**state, "rows": {**state["rows"], 20: row}} for state in allowed]
        allowed = with_row if inserted else allowed + with_row
        assert found in allowed, f"seed {seed}, number {number}, {one.name}: found {found}, allowed {allowed}"
        assert written == after_write(found) and last == written["rows"], f"seed {seed}, number {number}"


# ---- kills of a transaction over two databases

@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
@pytest.mark.parametrize("mode,stores", [
    # SQLite has no common transaction of several WAL databases, so one store could not follow both.
    pytest.param("wal", ("one.h5", "two.h5"), id="wal"),
    pytest.param("delete", ("one.h5", "two.h5"), id="delete"),
    pytest.param("delete", ("one.h5", "one.h5"), id="delete-one-store")])
def test_kills_of_attached_databases(server, tmp_path, mode, stores, together):
    """Each store is at its host's transaction; both hosts are at the same one where SQLite itself sees to that."""
    template, folder = tmp_path / "template", tmp_path / "store"
    template.mkdir()
    server.run("crash.operations", "prepare_attached", folder=str(template), mode=mode, stores=stores)
    one = stores[0] == stores[1]
    before, after = {20: None, 30: None, 1: "one"}, {20: "amber", 30: "brook", 1: "cedar"}
    happened, call, calls = set(), 0, None
    while calls is None:
        call += 1
        for moment in (BEFORE, HALF, AFTER):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(template, folder)
            child = server.start("crash.operations", "interrupt_attached", folder=str(folder), at=call, moment=moment)
            calls = next(iter(child.rest()), None)
            child.wait()
            first, second = server.run("crash.operations", "inspect_attached", folder=str(folder), together=together)
            what = f"killed {('before', 'in the middle of', 'after')[moment]} call {call}: {first}, later {second}"
            assert first == second, what
            for side, ids in (("main", (20, 30, 1) if one else (30,)), ("aux", (20, 30, 1) if one else (20, 1))):
                notes, rows = first[side]
                state = after if notes else before
                assert [dict(rows).get(key) for key in ids] == [state[key] for key in ids], what
            happened.add((first["main"][0], first["aux"][0]))
            if mode == "delete":
                assert happened <= {(0, 0), (1, 1)}, what
    assert {(0, 0), (1, 1)} <= happened and call > 10
