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
    con = connect()
    con.execute("SELECT name FROM h5mem_info").fetchone()
    there = {name for name, in con.execute("SELECT name FROM pragma_function_list WHERE name GLOB 'h5mem*' OR name "
                                           "GLOB 'hdf5*' UNION SELECT name FROM pragma_module_list "
                                           "WHERE name GLOB 'hdf5*'")}
    paragraphs = section(root, "Columns, options, functions").split("\n\n")
    listed = names(paragraphs[2] + next(p for p in paragraphs if p.startswith("Any HDF5 file")))
    assert listed - {"h5mem_info"} == there


def test_functions_beside_a_query_are_as_listed(root, connect, in_tmp):
    con = connect()
    con.execute("CREATE VIRTUAL TABLE memory USING h5mem('m.h5', dim=2)")
    con.execute("INSERT INTO memory(content) VALUES ('some words')")
    calls = re.findall(r"`(\w+\(memory[^`]*)`", section(root, "Columns, options, functions").split("\n\n")[3])
    for call in calls:
        call = re.sub(r"\s+", " ", call)
        call = call.replace("open, close", "'<', '>'").replace("col", "0").replace("ellipsis, words", "'..', 1")
        assert con.execute(f"SELECT {call} FROM memory('words')").fetchone()[0]
    assert len(calls) == 3
