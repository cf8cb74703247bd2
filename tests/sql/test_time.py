"""h5mem_time from SQL: its arguments, and its arithmetic against Python's datetime from many nows.

The forms themselves are in tests/unit/t_sql_time.c.

SPDX-License-Identifier: MIT
"""
import calendar
import random
import sqlite3
from datetime import datetime, timedelta, timezone

import pytest


def utc(*args):
    return datetime(*args, tzinfo=timezone.utc)


def rows(con, *args):
    marks = ", ".join("?" * len(args))
    return con.execute(f"SELECT start, end FROM h5mem_time({marks})", args).fetchall()


def months(day, n):
    """day moved by n months, no further than the month's last day."""
    index = day.year * 12 + day.month - 1 + n
    year, month = divmod(index, 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def month_start(day, n=0):
    return months(day.replace(day=1), n)


def expected(now):
    """expression -> (start, end), by other means than the parser's."""
    day = now.replace(hour=0, minute=0, second=0)
    one, week = timedelta(days=1), timedelta(days=7)
    monday = day - day.weekday() * one
    quarter = month_start(day, -((day.month - 1) % 3))
    year = day.replace(month=1, day=1)
    out = {
        "today": (day, day + one), "yesterday": (day - one, day), "tomorrow": (day + one, day + 2 * one),
        "this week": (monday, monday + week), "last week": (monday - week, monday),
        "next week": (monday + week, monday + 2 * week), "this weekend": (monday + 5 * one, monday + week),
        "this month": (month_start(day), month_start(day, 1)), "last month": (month_start(day, -1), month_start(day)),
        "next month": (month_start(day, 1), month_start(day, 2)), "this quarter": (quarter, months(quarter, 3)),
        "last quarter": (months(quarter, -3), quarter), "this year": (year, months(year, 12)),
        "last year": (months(year, -12), year), "since last month": (month_start(day, -1), now),
    }
    for n in (1, 2, 5, 13, 20, 100):
        out[f"{n} days ago"] = (day - n * one, day - n * one + one)
        out[f"in {n} weeks"] = (day + n * week, day + n * week + one)
        out[f"{n} months ago"] = (months(day, -n), months(day, -n) + one)
        out[f"in {n} years"] = (months(day, 12 * n), months(day, 12 * n) + one)
        out[f"last {n} hours"] = (now - timedelta(hours=n), now)
        out[f"past {n} months"] = (months(now, -n), now)
        out[f"next {n} days"] = (now, now + n * one)
    for i, name in enumerate(calendar.day_name):
        back = (day.weekday() - i) % 7
        out[name] = (day - back * one, day - back * one + one)
        out[f"last {name}"] = (day - (back or 7) * one, day - (back or 7) * one + one)
        out[f"next {name}"] = (day + (7 - back) * one, day + (7 - back) * one + one)
    for i in range(1, 13):
        of = month_start(day.replace(day=1), i - day.month)
        out[f"in {calendar.month_name[i]}"] = (of, months(of, 1)) if of <= now else (months(of, -12), months(of, -11))
        out[f"next {calendar.month_name[i]}"] = (of, months(of, 1)) if of > day else (months(of, 12), months(of, 13))
    return out


def test_against_datetime(connect):
    con = connect()
    pick = random.Random(6)
    nows = [utc(2026, 3, 31, 14, 45, 30), utc(2024, 2, 29), utc(2023, 12, 31, 23, 59, 59), utc(2000, 1, 1),
            utc(1969, 12, 31, 12), utc(1900, 2, 28, 6)]
    nows += [utc(1700, 1, 1) + timedelta(seconds=pick.randrange(600 * 365 * 86400)) for _ in range(60)]
    for now in nows:
        for text, want in expected(now).items():
            seconds = tuple(round((t - utc(1970, 1, 1)).total_seconds()) for t in want)
            assert rows(con, text, round((now - utc(1970, 1, 1)).total_seconds())) == [seconds], (text, now)


def test_dates_against_datetime(connect):
    con = connect()
    pick = random.Random(7)
    for _ in range(400):
        day = utc(1, 1, 1) + timedelta(days=pick.randrange(3652058))
        start = round((day - utc(1970, 1, 1)).total_seconds())
        name, year = calendar.month_name[day.month], f"{day.year:04}"
        for text in (f"{day.day} {name} {year}", f"{name[:3]} {day.day}, {year}", f"{year}-{day:%m-%d}",
                     f"on {calendar.day_name[day.weekday()]}, {day.day} {name} {year}"):
            assert rows(con, text, 0) == [(start, start + 86400)], text
        wrong = calendar.day_name[(day.weekday() + 1) % 7]
        assert rows(con, f"{wrong}, {day.day} {name} {year}", 0) == []


def test_now(connect):
    con = connect()
    day = [(1774915200, 1775001600)]  # 2026-03-31
    assert rows(con, "today", 1774968330) == rows(con, "today", 1774968330.9) == day
    assert rows(con, "today", "2026-03-31T14:45:30Z") == rows(con, "today", "2026-03-31") == day
    assert rows(con, "now", -0.5) == [(-1, 0)]
    before = datetime.now(timezone.utc).timestamp()
    (start, end), = rows(con, "now")
    assert end == start + 1 and int(before) <= start <= datetime.now(timezone.utc).timestamp()
    for bad in ("soon", "", b"x"):
        with pytest.raises(sqlite3.OperationalError, match="h5mem_time's now is"):
            rows(con, "today", bad)
    for far in (1e300, -1e300, 2**63 - 1, -2**63, float("inf")):
        assert rows(con, "today", far) == []


def test_no_row(connect):
    con = connect()
    for args in ((None,), (None, 0), ("today", None), ("", 0), ("what is this", 0), (b"today", 0), (5, 0),
                 ("today " * 10000, 0), ("to\0day", 0)):
        assert rows(con, *args) == []
    assert con.execute("SELECT * FROM h5mem_time").fetchall() == []
    assert rows(con, 2023, 0) == [(1672531200, 1704067200)]  # a number is its text
    with pytest.raises(sqlite3.OperationalError, match="too many arguments"):
        rows(con, "today", 0, 0)


def test_in_queries(connect, in_tmp):
    """Joined, as a range of a search, from a view that is not trusted."""
    con = connect()
    con.execute("CREATE TABLE said(x)")
    con.executemany("INSERT INTO said VALUES (?)", [("in 2023",), ("nonsense",), (None,), ("2024-02-29",)])
    assert con.execute("SELECT x, t.start, expression, now FROM said, h5mem_time(x, 0) t ORDER BY 1").fetchall() == [
        ("2024-02-29", 1709164800, "2024-02-29", 0), ("in 2023", 1672531200, "in 2023", 0)]
    con.execute("CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2)")
    con.executemany("INSERT INTO m(id, timestamp) VALUES (?, ?)", [(1, 1683504000), (2, 1683590400), (3, 1683503999)])
    assert con.execute("SELECT id FROM m, h5mem_time('8 May 2023') t"
                       " WHERE timestamp >= t.start AND timestamp < t.end").fetchall() == [(1,)]
    con.execute("CREATE VIEW v AS SELECT start FROM h5mem_time('2023', 0)")
    con.execute("PRAGMA trusted_schema = off")
    assert con.execute("SELECT * FROM v").fetchall() == [(1672531200,)]
