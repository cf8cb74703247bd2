"""The root README's tour: its ```sql blocks, run in order in one shell, print what its ```text blocks say.

Also held to the truth: the options, columns and functions that the README lists are those that there are.

SPDX-License-Identifier: MIT
"""
import re

from test_golden import run_script


def blocks(root, *kinds):
    text = (root / "README.md").read_text()
    return [body for kind, body in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S) if kind in kinds]


def section(root, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", (root / "README.md").read_text(), re.M | re.S)[1]


def names(text):
    return set(re.findall(r"`(\w+)[`(]", text))


def test_the_tour(root, so, tmp_path):
    script = tmp_path / "tour.sql"
    sql = "".join(blocks(root, "sql"))
    assert ".load ./h5mem" in sql  # which run_script has done
    script.write_text(sql.replace(".load ./h5mem", ""))
    assert run_script(script, so, tmp_path) == "".join(blocks(root, "text"))


def test_columns_are_as_listed(root, connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2)")
    there = {name for _, name, *_ in con.execute("PRAGMA table_xinfo(m)")} - {"m"}
    listed = names(section(root, "Columns, options, functions").split("\n\n")[0])
    assert listed == there


def test_options_are_as_listed(root, connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2)")
    try:
        con.execute("SELECT h5mem_config('m', 'nosuch')")
        message = ""
    except Exception as e:  # the message lists what is known
        message = str(e)
    there = set(re.search("known are (.*)", message)[1].split(", "))
    assert names(section(root, "Columns, options, functions").split("\n\n")[1]) - {"h5mem_config"} == there


def test_functions_are_as_listed(root, connect):
    there = {name for name, in connect().execute("SELECT name FROM pragma_function_list WHERE name GLOB 'h5mem*'")}
    listed = names(section(root, "Columns, options, functions").split("\n\n")[2])
    assert listed - {"h5mem_info"} == there
