"""How rows age: h5mem_consolidate, h5mem_tick, h5mem_touch, h5mem_importance, and their options.

SPDX-License-Identifier: MIT
"""
import json
import math
import random
import sqlite3
import struct

import pytest

from conftest import open_connection

DAY = 86400.0
T0 = 1.7e9
TIERS = ("working", "episodic", "semantic")


def connect(path, **options):
    con = open_connection(path / "host.db")
    con.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS m USING h5mem('{path}/m.h5', dim=4)")
    for name, value in options.items():
        config(con, name, value)
    return con


def one(con, sql, *values):
    return con.execute(sql, values).fetchone()[0]


def config(con, name, *value):
    return one(con, f"SELECT h5mem_config('m', ?{', ?' * len(value)})", name, *value)


def consolidate(con, now, *more):
    return json.loads(one(con, f"SELECT h5mem_consolidate('m', ?{', ?' * len(more)})", now, *more))


def vector(*x):
    return struct.pack("4f", *x)


def rows(con, columns="id, tier"):
    return con.execute(f"SELECT {columns} FROM m ORDER BY id").fetchall()


def put(con, content, embedding=None, **columns):
    names = ["content", "embedding", *columns]
    con.execute(f"INSERT INTO m({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
                (content, embedding, *columns.values()))


# ------------------------------------------------------------------------------------- consolidation


def strength(row, now, half_life, access_weight):
    last = row["last_access"] if row["last_access"] is not None else row["timestamp"]
    return (math.log2(max(row["importance"], 2.0 ** -20) * (1 + access_weight * row["access_count"]))
            - max(0.0, now - last) / half_life)


def naive_pass(table, now, o):
    """What a pass leaves of {id: row}: (promoted, evicted), rows changed in place."""
    promoted = evicted = 0
    for row in table.values():
        often = 0 < o["promote_access"] <= row["access_count"]
        if row["tier"] == "working" and (row["importance"] >= o["promote_importance"] or often):
            row["tier"] = "episodic"
            promoted += 1
        if row["tier"] == "episodic" and 0 < o["semantic_access"] <= row["access_count"]:
            row["tier"] = "semantic"
            promoted += 1
    for tier in TIERS:
        held = [i for i, row in table.items() if row["tier"] == tier]
        free = sorted((i for i in held if not table[i]["pinned"]),
                      key=lambda i: (strength(table[i], now, o[f"half_life_{tier}"], o["access_weight"]), i))
        capacity = o[f"{tier}_capacity"]
        for i in free[:max(0, len(held) - capacity) if capacity >= 0 else 0]:
            del table[i]
            evicted += 1
    return promoted, evicted


COLUMNS = ("tier", "importance", "access_count", "last_access", "timestamp", "pinned")


@pytest.mark.parametrize("seed", range(6))
def test_passes_do_as_a_naive_model_does(tmp_path, seed):
    rng = random.Random(seed)
    o = {"working_capacity": rng.choice([0, 3, 20]), "episodic_capacity": rng.choice([0, 5, 30]),
         "semantic_capacity": rng.choice([-1, 0, 4]), "promote_importance": 0.7, "semantic_access": 3,
         "promote_access": rng.choice([0, 2]),
         "half_life_working": 5 * DAY, "half_life_episodic": 11 * DAY, "half_life_semantic": 100 * DAY,
         "access_weight": 0.4, "merge_distance": 0, "auto_importance": "off"}
    con = connect(tmp_path, **o)
    now = T0
    for turn in range(12):
        now += rng.choice([DAY, -DAY, 40 * DAY])
        con.execute("BEGIN")
        for _ in range(rng.randrange(12)):
            put(con, "turn", importance=rng.choice([0, 0.1, 0.5, 0.7, 0.9, 1]), pinned=int(rng.random() < 0.15),
                timestamp=now + rng.choice([0, -50 * DAY, 9e9]), access_count=rng.randrange(5),
                tier=rng.choice(["working", "working", "episodic", "semantic"]),
                last_access=rng.choice([None, now - rng.random() * 30 * DAY]))
        con.execute("COMMIT")
        if turn % 3 == 1:
            one(con, "SELECT h5mem_flush('m')")
        table = {r[0]: dict(zip(COLUMNS, r[1:])) for r in rows(con, f"id, {', '.join(COLUMNS)}")}
        dry = consolidate(con, now, "dry")
        assert [r[0] for r in rows(con)] == sorted(table)
        promoted, evicted = naive_pass(table, now, o)
        done = consolidate(con, now)
        counts = {tier: sum(row["tier"] == tier for row in table.values()) for tier in TIERS}
        assert done == {"promoted": promoted, "evicted": evicted, "merged": 0, **counts}
        moves = dry.pop("moves")
        assert dry == done and len(moves) == promoted + evicted
        assert rows(con) == [(i, row["tier"]) for i, row in sorted(table.items())]
    assert one(con, "SELECT h5mem_verify('m')") == "ok"


def test_what_matters_stays_and_chatter_goes(tmp_path):
    """With one place, a short fact and chatter that came after it."""
    con = connect(tmp_path, working_capacity=1)
    put(con, "Allergic: penicillin", timestamp=T0, source="user")
    for i, text in enumerate(("ok, see you then", "how are you?", "good morning")):
        put(con, text, timestamp=T0 + 1 + i)
    done = consolidate(con, T0 + 10)
    assert (done["promoted"], done["evicted"], done["working"], done["episodic"]) == (1, 2, 1, 1)
    assert rows(con, "content, tier")[0] == ("Allergic: penicillin", "episodic")


def test_a_pass_is_part_of_the_transaction(tmp_path):
    con = connect(tmp_path, working_capacity=2)
    for i in range(9):
        put(con, f"turn {i}", timestamp=T0 + i)
    before = rows(con, "id, tier, importance")
    con.execute("BEGIN")
    assert consolidate(con, T0 + 99)["evicted"] == 7
    assert len(rows(con)) == 2
    con.execute("SAVEPOINT s")
    config(con, "working_capacity", 0)
    assert consolidate(con, T0 + 99)["evicted"] == 2
    con.execute("ROLLBACK TO s")
    assert len(rows(con)) == 2 and config(con, "working_capacity") == 2
    con.execute("ROLLBACK")
    assert rows(con, "id, tier, importance") == before
    assert config(con, "last_consolidation") == 0 and config(con, "consolidated_id") == 0


def test_survives_a_restart(tmp_path):
    con = connect(tmp_path, working_capacity=3, half_life_working=12345.5, track_access="off")
    for i in range(9):
        put(con, f"turn {i}", timestamp=T0 + i)
    consolidate(con, T0 + 99)
    kept = rows(con, "id, tier, importance")
    con.close()
    con = connect(tmp_path)
    assert rows(con, "id, tier, importance") == kept and len(kept) == 3
    assert config(con, "half_life_working") == 12345.5 and config(con, "consolidated_id") == 9
    assert config(con, "last_consolidation") == T0 + 99


def test_every_option_of_ageing_is_kept_in_the_file(tmp_path):
    con = connect(tmp_path)
    names = [n for n in re_options() if isinstance(config(con, n), (int, float))]
    assert len(names) > 20
    for at, name in enumerate(names):
        try:
            config(con, name, at + 1)
        except sqlite3.OperationalError:
            config(con, name, 0.25)
    want = {name: config(con, name) for name in names}
    con.close()
    con = connect(tmp_path)
    assert {name: config(con, name) for name in names} == want
    assert one(con, "SELECT h5mem_verify('m')") == "ok"


def re_options():
    """The names of ageing that a wrong one's error lists."""
    con = open_connection()
    with pytest.raises(sqlite3.OperationalError, match="known are") as e:
        con.execute("CREATE VIRTUAL TABLE m USING h5mem('/nosuch/m.h5', dim=2, nosuch=1)")
    known = str(e.value).split("known are ")[1].replace(" and ", ", ").split(", ")
    return known[known.index("track_access"):known.index("consolidated_id") + 1]


@pytest.mark.parametrize("call, message", [
    ("h5mem_consolidate('m', 'soon')", "takes Unix seconds or ISO 8601"),
    ("h5mem_consolidate('m', 9e999)", "now is Inf"),
    ("h5mem_consolidate('m', NULL, 'wet')", "the third argument is 'wet'; known is 'dry'"),
    ("h5mem_consolidate('nosuch')", "nosuch"),
    ("h5mem_tick('m', x'00')", "takes Unix seconds"),
    ("h5mem_touch('m', 'one')", "the id is 'one'; it takes an integer"),
    ("h5mem_importance('m', 'x', '[1, 2]', NULL)", "dim 4|dim is 4|\\b4\\b"),
    ("h5mem_importance('m', 'x', NULL, 'nobody')", "source is 'nobody'; known are user"),
    ("h5mem_config('m', 'working_capacity', -1)", "working_capacity is '-1'"),
    ("h5mem_config('m', 'half_life_working', 'nan')", "half_life_working is 'nan'"),
    ("h5mem_config('m', 'auto_importance', 'maybe')", "known are off, on"),
])
def test_wrong_values_are_errors_that_name_them(tmp_path, call, message):
    con = connect(tmp_path)
    put(con, "x", timestamp=T0)
    with pytest.raises(sqlite3.OperationalError, match=message):
        con.execute(f"SELECT {call}").fetchone()
    assert len(rows(con)) == 1


def test_two_passes_at_once_are_busy_and_lose_nothing(tmp_path):
    a = connect(tmp_path, working_capacity=2)
    for i in range(9):
        put(a, f"turn {i}", timestamp=T0 + i)
    b = connect(tmp_path)
    b.execute("PRAGMA busy_timeout = 1")
    a.execute("BEGIN")
    consolidate(a, T0 + 99)
    with pytest.raises(sqlite3.OperationalError, match="locked|busy|writing"):
        consolidate(b, T0 + 99)
    assert len(rows(b)) == 9
    a.execute("COMMIT")
    assert consolidate(b, T0 + 99)["evicted"] == 0
    assert len(rows(b)) == 2


def test_after_so_many_rows_a_pass_comes_by_itself(tmp_path):
    con = connect(tmp_path, working_capacity=4, consolidate_every=10)
    for i in range(35):
        put(con, f"turn {i}", timestamp=T0 + i)
    assert config(con, "consolidated_id") == 30 and len(rows(con)) == 4 + 5
    con.execute("BEGIN")
    for i in range(6):
        put(con, f"turn {i}", timestamp=T0 + i)
    assert len(rows(con)) == 5
    con.execute("ROLLBACK")
    assert len(rows(con)) == 9


def test_verbs(tmp_path):
    con = connect(tmp_path, working_capacity=1)
    for i in range(3):
        put(con, f"turn {i}", timestamp=T0 + i)
    con.execute("INSERT INTO m(m) VALUES('consolidate')")
    assert len(rows(con)) == 1
    con.execute("INSERT INTO m(m) VALUES('tick')")
    assert config(con, "last_tick") > T0


# ---------------------------------------------------------------------------------------- activation


def test_activation_fades_by_time_and_not_by_calls(tmp_path):
    con = connect(tmp_path, activation_half_life=10 * DAY, consolidate_after=1e9)
    put(con, "a", timestamp=T0)
    put(con, "b", timestamp=T0 + 5 * DAY)
    activation = "id, round(activation, 6)"
    one(con, "SELECT h5mem_tick('m', ?)", T0)
    assert rows(con, activation) == [(1, 1.0), (2, 1.0)]
    for _ in range(3):
        one(con, "SELECT h5mem_tick('m', ?)", T0 + 10 * DAY)
    assert rows(con, activation) == [(1, 0.5), (2, round(0.5 ** 0.5, 6))]
    one(con, "SELECT h5mem_tick('m', ?)", T0 + 9 * DAY)  # a clock that went back
    assert rows(con, activation)[0] == (1, 0.5)
    put(con, "c", timestamp=T0)  # 1 at first, whenever it happened
    assert rows(con, activation)[2] == (3, 1.0)
    one(con, "SELECT h5mem_tick('m', ?)", T0 + 20 * DAY)
    assert rows(con, activation) == [(1, 0.25), (2, round(0.5 ** 1.5, 6)), (3, 0.5)]
    assert con.execute("SELECT id FROM m WHERE activation > 0.3 ORDER BY id").fetchall() == [(2,), (3,)]
    con.execute("UPDATE m SET activation = 0.75 WHERE id = 1")
    con.execute("UPDATE m SET last_access = ? WHERE id = 2", (T0 + 20 * DAY,))
    con.execute("UPDATE m SET content = 'new', timestamp = ? WHERE id = 3", (T0 + 1,))
    want = [(1, 0.75), (2, round(0.5 ** 1.5, 6)), (3, 0.5)]
    assert rows(con, activation) == want
    one(con, "SELECT h5mem_flush('m')")
    assert rows(con, activation) == want
    assert con.execute("SELECT id FROM m WHERE activation > 0.4 ORDER BY id").fetchall() == [(1,), (3,)]
    con.execute("BEGIN")
    one(con, "SELECT h5mem_tick('m', ?)", T0 + 30 * DAY)
    assert rows(con, activation)[0] == (1, 0.375)
    con.execute("ROLLBACK")
    assert rows(con, activation) == want


def test_touch_is_bounded_and_counts(tmp_path):
    con = connect(tmp_path, activation_half_life=10 * DAY, activation_boost=0.5, activation_max=2)
    put(con, "a", timestamp=T0, importance=0.2)
    touch = "SELECT h5mem_touch('m', 1, ?)"
    assert one(con, touch, T0) == 1.5
    assert one(con, touch, T0 + 10 * DAY) == 1.25
    assert [one(con, touch, T0 + 10 * DAY) for _ in range(3)] == [1.75, 2.0, 2.0]
    assert one(con, touch, T0) == 2.0  # a clock that went back
    assert rows(con, "activation, access_count, last_access") == [(2.0, 6, T0 + 10 * DAY)]
    assert 0.2 < rows(con, "importance")[0][0] < 0.5
    assert one(con, "SELECT h5mem_touch('m', 2)") is None
    con.execute("BEGIN")
    one(con, touch, T0 + 20 * DAY)
    con.execute("ROLLBACK")
    assert rows(con, "activation, access_count") == [(2.0, 6)]


def test_a_tick_consolidates_when_it_is_due(tmp_path):
    con = connect(tmp_path, working_capacity=1, consolidate_after=DAY)
    put(con, "a", timestamp=T0)
    tick = "SELECT h5mem_tick('m', ?)"
    assert json.loads(one(con, tick, T0))["consolidated"]["working"] == 1
    put(con, "b", timestamp=T0)
    assert json.loads(one(con, tick, T0 + 100)) == {"elapsed": 100.0, "consolidated": None}
    assert len(rows(con)) == 2
    assert json.loads(one(con, tick, T0 + DAY + 1))["consolidated"]["evicted"] == 1


# ---------------------------------------------------------------------------------------- importance


def test_importance_rises_with_what_speaks_for_keeping(tmp_path):
    con = connect(tmp_path)
    put(con, "we talked about tea", vector(1, 0, 0, 0), timestamp=T0, tier="semantic")

    def rate(text, embedding=vector(1, 0.1, 0, 0), source=None):
        return one(con, "SELECT h5mem_importance('m', ?, ?, ?)", text, embedding, source)

    plain = rate("we went for tea")
    assert 0 < plain < 1
    assert rate("we went for tea", vector(0, 0, 1, 0)) > plain > rate("we went for tea", vector(1, 0, 0, 0))
    assert rate("we went for tea", source="correction") > rate("we went for tea", source="user") > plain
    assert rate("we went for tea at 1745 with Anna") > plain
    assert rate("we went for tea and cake in the garden behind the old library, all of us") > plain
    assert rate("we went for tea?") < plain
    assert rate(None, None) < 0.5 and rate("", None) < 0.5
    assert rate("\u6211\u4eec\u53bb\u559d\u8336 1745", None) > rate("\u6211\u4eec\u53bb\u559d\u8336", None)
    # a correction lies near what it corrects, and is kept before it
    put(con, "his name is Milo", vector(0, 1, 0, 0), timestamp=T0, tier="semantic")
    right = rate("That's wrong, his name is Miles", vector(0, 1, 0.01, 0), "correction")
    assert right > config(con, "promote_importance") and right > rate("his name is Milo", vector(0, 0, 0, 1), "user")
    for text in ("lol", "ok thanks", "好的", "!!!"):  # small talk, however new
        assert rate(text, vector(0, 0, 0, 1), "user") == 0
    assert rate("Allergic: penicillin", vector(0, 0, 0, 1), "user") > 0.5
    for weight in ("surprise", "facts", "length", "words", "question", "correction", "source"):
        config(con, f"importance_{weight}", 0)
    config(con, "importance_base", 0)
    assert rate("anything 1 2 3?", source="correction") == 0.5001  # 0.5 means that nobody has rated the row


@pytest.mark.parametrize("note", [
    "Allergic: penicillin", "Bob's birthday: 3 May", "My PIN is 4471", "Blood type: AB", "Flight LH 2041 at 7:30",
    "WLAN: hunter2", "\u8fc7\u654f: \u9752\u9709\u7d20"])
def test_short_key_facts_can_be_promoted(tmp_path, note):
    con = connect(tmp_path)
    assert one(con, "SELECT h5mem_importance('m', ?, NULL, 'user')", note) >= config(con, "promote_importance")


def test_rows_that_nobody_rated_are_rated_by_the_next_pass(tmp_path):
    con = connect(tmp_path)
    put(con, "Flight LH 2041 leaves on Friday at 7:30", vector(1, 0, 0, 0), timestamp=T0)
    put(con, "well, well", vector(1, 0, 0.1, 0), timestamp=T0)
    put(con, "rated", vector(0, 0, 1, 0), timestamp=T0, importance=0.125)
    assert rows(con, "importance") == [(0.5,), (0.5,), (0.125,)]
    consolidate(con, T0)
    (first,), (second,), (third,) = rows(con, "importance")
    assert first > 0.6 > 0.2 > second and third == 0.125
    con.execute("INSERT INTO m(id, content) VALUES (-5, 'a lower id than the last pass has seen')")
    consolidate(con, T0)
    assert rows(con, "importance")[0][0] != 0.5
    con.execute("DELETE FROM m WHERE id = -5")
    config(con, "auto_importance", "off")
    put(con, "not rated", vector(0, 1, 0, 0), timestamp=T0)
    consolidate(con, T0)
    assert rows(con, "importance")[3] == (0.5,)


# ------------------------------------------------------------------------------------------- merging


def test_the_newer_of_near_duplicates_supersedes(tmp_path):
    con = connect(tmp_path)
    put(con, "likes tea", vector(1, 0, 0, 0), timestamp=T0, importance=0.9)
    consolidate(con, T0)
    put(con, "does not like tea", vector(1, 0.02, 0, 0), timestamp=T0 + DAY)
    put(con, "likes the sea", vector(0, 1, 0, 0), timestamp=T0 + DAY)
    assert consolidate(con, T0 + DAY, "dry")["merged"] == 1
    assert consolidate(con, T0 + DAY)["merged"] == 1
    assert rows(con, "id, valid_from, valid_to, superseded_by, tier") == [
        (1, None, T0 + DAY, 2, "episodic"), (2, T0 + DAY, None, None, "episodic"), (3, None, None, None, "working")]
    search = "SELECT id FROM m WHERE embedding MATCH '[1, 0, 0, 0]' AND k = 1"
    assert con.execute(search).fetchall() == [(2,)]
    assert con.execute(search + " AND as_of = ?", (T0 + 10,)).fetchall() == [(1,)]
    assert con.execute(search + " AND as_of = ?", (T0 + 2 * DAY,)).fetchall() == [(2,)]
    assert consolidate(con, T0 + DAY)["merged"] == 0


def test_what_is_put_right_is_worth_what_it_replaces(tmp_path):
    """Near to what is known, it is no surprise; still it must not go before it is merged."""
    con = connect(tmp_path, working_capacity=2)
    put(con, "Allergic: penicillin", vector(1, 0, 0, 0), timestamp=T0)
    put(con, "we walked along the river", vector(0, 1, 0, 0), timestamp=T0)
    put(con, "the wind was cold that day", vector(0, 0, 1, 0), timestamp=T0)
    consolidate(con, T0)
    put(con, "not allergic: penicillin", vector(1, 0.01, 0, 0), timestamp=T0 + 1)
    assert consolidate(con, T0 + 2)["merged"] == 1
    assert rows(con, "tier, superseded_by")[0] == ("episodic", 4) and rows(con)[3] == (4, "episodic")


@pytest.mark.parametrize("older, newer, source, merged", [
    ("the rent is 900", "the rent is 950", None, 0),
    ("the rent is 900", "the rent is 950", "correction", 1),
    ("she met Anna there", "she met Berta there", None, 0),
    ("she met Anna there", "there she met Anna", None, 1),
    ("My flight is at 7:30", "my flight is at 7:30!", None, 1),
    ("\u6211\u559c\u6b22\u8336", "\u6211\u4e0d\u559c\u6b22\u8336", None, 0)])
def test_other_names_and_numbers_are_other_facts(tmp_path, older, newer, source, merged):
    con = connect(tmp_path)
    put(con, older, vector(1, 0, 0, 0), timestamp=T0)
    put(con, newer, vector(1, 0, 0, 0), timestamp=T0 + 1, source=source)
    assert consolidate(con, T0 + 2)["merged"] == merged
    assert len(rows(con)) == 2


@pytest.mark.parametrize("older, newer, merged", [
    ({"user_id": "ann"}, {"user_id": "bob"}, 0),
    ({"user_id": "ann"}, {"user_id": "ann"}, 1),
    ({"user_id": "ann"}, {}, 0),
    ({"n": 1}, {"n": 2}, 0),
    ({"x": 1.5, "b": b"1"}, {"x": 1.5, "b": b"1"}, 1),
    ({"b": b"1"}, {"b": b"2"}, 0),
    ({"source": "user"}, {"source": "tool"}, 0),
    ({"source": "user"}, {"source": "assistant"}, 0),
    ({"source": "user"}, {}, 0),
    ({"source": "tool"}, {"source": "tool"}, 1),
    ({"source": "correction"}, {"source": "user"}, 1),
    ({"source": "assistant"}, {"source": "correction"}, 1),
    ({"source": "correction"}, {"source": "tool"}, 0)])
def test_no_row_is_hidden_by_another_user_or_source(tmp_path, older, newer, merged):
    con = open_connection(tmp_path / "host.db")
    con.execute(f"CREATE VIRTUAL TABLE m USING h5mem('{tmp_path}/m.h5', dim=4,"
                " user_id TEXT, n INTEGER, x REAL, b BLOB)")
    put(con, "likes tea", vector(1, 0, 0, 0), timestamp=T0, **older)
    put(con, "likes tea", vector(1, 0, 0, 0), timestamp=T0 + 1, **newer)
    assert consolidate(con, T0 + 2)["merged"] == merged
    assert rows(con, "superseded_by") == [(2 if merged else None,), (None,)]


def test_repeats_end_in_one_chain(tmp_path):
    con = connect(tmp_path)
    for i in range(5):
        put(con, "the same again", vector(1, 0, 0, 0), timestamp=T0 + i, access_count=1)
        if i == 2:
            consolidate(con, T0 + i)
    consolidate(con, T0 + 9)
    assert rows(con, "superseded_by") == [(2,), (3,), (4,), (5,), (None,)]
    assert rows(con, "access_count")[4] == (5,)
    put(con, "another", vector(1, 0, 0, 0), timestamp=T0 - 50)  # said before all of these
    consolidate(con, T0 + 9)
    assert rows(con, "superseded_by, valid_to")[5] == (5, T0 + 4)


def test_what_is_pinned_is_not_superseded_nor_evicted(tmp_path):
    con = connect(tmp_path, working_capacity=0, promote_importance=2)
    put(con, "the same", vector(1, 0, 0, 0), timestamp=T0, pinned=1)
    put(con, "the same", vector(1, 0, 0, 0), timestamp=T0 + 1)
    done = consolidate(con, T0 + 9)
    assert (done["evicted"], done["merged"], done["working"]) == (1, 0, 1)
    assert rows(con, "id, valid_to") == [(1, None)]


# ------------------------------------------------------------------------------------- track_access


def test_searches_count_when_track_access_is_on(tmp_path):
    con = connect(tmp_path, promote_importance=2)
    for i in range(30):
        put(con, f"turn {i} tea", vector(1, i, 0, 0), timestamp=T0 + i)
    search = "SELECT id FROM m WHERE content MATCH 'tea' LIMIT ?"
    counts = "sum(access_count), count(last_access)"

    def sequence():
        return json.loads(one(con, "SELECT h5mem_stats('m')"))["sequence"]

    con.execute(search, (5,)).fetchall()
    consolidate(con, T0)
    assert rows(con, counts) == [(0, 0)]
    config(con, "track_access", "on")
    before = sequence()
    for _ in range(3):
        assert len(con.execute(search, (5,)).fetchall()) == 5
    con.execute("SELECT id FROM m WHERE id = 7").fetchall()
    con.execute("SELECT id FROM m WHERE importance < 2").fetchall()
    assert sequence() == before and rows(con, counts) == [(0, 0)]  # a search writes nothing
    con.execute("BEGIN")
    one(con, "SELECT h5mem_tick('m')")
    touched = con.execute("SELECT access_count, activation FROM m WHERE last_access IS NOT NULL").fetchall()
    con.execute("COMMIT")
    assert len(touched) >= 5 and max(touched) == (3, pytest.approx(0.45)) and sequence() > before
    assert json.loads(one(con, "SELECT h5mem_stats('m')"))["touch_bytes"] > 0
    con.execute(search, (30,)).fetchall()
    put(con, "the next write", timestamp=T0)
    assert rows(con, counts)[0][0] == sum(t[0] for t in touched) + 20
    con.close()
    reader = open_connection(tmp_path / "host.db")
    reader.execute(f"CREATE VIRTUAL TABLE temp.r USING h5mem('{tmp_path}/m.h5', readonly=1)")
    reader.execute("SELECT id FROM r WHERE content MATCH 'tea' LIMIT 5").fetchall()
    reader.close()


# ------------------------------------------------------------------------------------------- events


def test_a_first_flush_of_very_many_events(tmp_path):
    """So many that their columns have large chunks at once."""
    con = connect(tmp_path, working_capacity=0, promote_importance=2, auto_importance="off")
    con.execute("INSERT INTO m(content, timestamp) WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s"
                " WHERE i < 12000) SELECT 'turn ' || i, i FROM s")
    assert consolidate(con, T0)["evicted"] == 12000
    one(con, "SELECT h5mem_flush('m')")
    assert one(con, "SELECT h5mem_verify('m')") == "ok"
    con.close()
    con = connect(tmp_path)
    assert one(con, "SELECT h5mem_verify('m')") == "ok" and rows(con) == []


@pytest.mark.parametrize("seed", range(4))
def test_activation_does_as_a_naive_model_does(tmp_path, seed):
    """Any order of INSERT, UPDATE, touch, tick, flush and ROLLBACK: what is read comes of the writes and the ticks."""
    rng = random.Random(seed)
    half, boost, most = 10 * DAY, 0.4, 3.0
    con = connect(tmp_path, activation_half_life=half, activation_boost=boost, activation_max=most,
                  consolidate_after=1e9)
    seen, own, last_tick, now, known = {}, {}, 0, T0, 0

    def fade(value, since, until):
        return value * 0.5 ** (max(0, until - since) / half)

    for _ in range(120):
        now += rng.choice([0, DAY, 3 * DAY, -DAY])
        what, key = rng.random(), rng.randint(1, max(1, known))
        undo = rng.random() < 0.2
        before = dict(seen), dict(own), last_tick, known
        con.execute("BEGIN")
        if what < 0.3 or not known:
            known += 1
            own[known] = now + rng.choice([0, -40 * DAY, 2 * DAY])
            seen[known] = rng.choice([1.0, 0.25, 2.5])
            con.execute("INSERT INTO m(id, content, timestamp, activation) VALUES (?, 'x', ?, ?)",
                        (known, own[known], seen[known]))
        elif what < 0.5:
            then = now + rng.choice([0, -DAY])
            seen[key] = fade(seen[key], max(last_tick, own[key]), then)
            seen[key] = max(seen[key], min(seen[key] + boost, most))
            had = con.execute("SELECT last_access FROM m WHERE id = ?", (key,)).fetchone()[0]
            own[key] = then if had is None else max(had, then)
            assert one(con, "SELECT h5mem_touch('m', ?, ?)", key, then) == pytest.approx(seen[key])
        elif what < 0.6:
            seen[key] = rng.random()
            con.execute("UPDATE m SET activation = ? WHERE id = ?", (seen[key], key))
        elif what < 0.7:
            con.execute("UPDATE m SET content = 'y' || id WHERE id = ?", (key,))
        else:
            for i in seen if now > last_tick else ():
                seen[i] = fade(seen[i], max(last_tick, own[i]), now)
            one(con, "SELECT h5mem_tick('m', ?)", now)
            last_tick = max(last_tick, now)
        con.execute("ROLLBACK" if undo else "COMMIT")
        if undo:
            seen, own, last_tick, known = before
        if rng.random() < 0.1:
            one(con, "SELECT h5mem_flush('m')")
        assert dict(rows(con, "id, activation")) == pytest.approx(seen)
