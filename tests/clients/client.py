"""client.py MODULE - the client script from Python's sqlite3, in the working folder

The same steps as client.mjs, and the same lines on standard output: expected.txt.

SPDX-License-Identifier: MIT
"""
import sqlite3
import struct
import sys


def connect():
    con = sqlite3.connect("client.db", isolation_level=None)
    con.enable_load_extension(True)
    con.load_extension(sys.argv[1])
    con.enable_load_extension(False)
    return con


def vector(*values):
    return struct.pack(f"<{len(values)}f", *values)


def show(con, sql, *values):
    for row in con.execute(sql, values):
        print("|".join("NULL" if value is None else str(value) for value in row))


HYBRID = """
    SELECT id, content, printf('%.6f', score), printf('%.4f', distance), rank IS NULL FROM memory
     WHERE embedding MATCH ? AND content MATCH ? AND timestamp >= ? ORDER BY score DESC LIMIT 3"""
INSERT = "INSERT INTO memory(id, content, embedding, timestamp, session) VALUES (?, ?, ?, ?, ?)"

con = connect()
con.execute("CREATE VIRTUAL TABLE memory USING h5mem('client.h5', dim=4, metric=l2)")

print("insert")
con.execute("BEGIN")
con.execute(INSERT, (1, "the roof leaks", vector(0, 0, 0, 0), 100.5, "s-1"))
con.execute(INSERT, (2, "the cat doesn't eat", vector(3, 4, 0, 0), 200, "s-1"))
con.execute(INSERT, (2**53, "Crème brûlée – 猫", vector(0, 0, 0, 2), 300, None))
con.execute("INSERT INTO memory(content, embedding, timestamp) VALUES (?, ?, ?)", ("no vector", None, 400))
con.execute("COMMIT")
show(con, "SELECT id, content, hex(embedding), timestamp, session FROM memory ORDER BY timestamp")

print("hybrid")
show(con, HYBRID, vector(0, 0, 0, 1), "does my cat eat?", 0)
print("in a time window")
show(con, HYBRID, vector(0, 0, 0, 1), "does my cat eat?", 250)

print("rollback")
con.execute("BEGIN")
con.execute("DELETE FROM memory WHERE id = 1")
con.execute("UPDATE memory SET embedding = ? WHERE id = 2", (vector(0, 0, 0, 1),))
show(con, "SELECT count(*) FROM memory")
show(con, "SELECT id FROM memory WHERE embedding MATCH ? AND k = 1", vector(0, 0, 0, 1))
con.execute("ROLLBACK")
show(con, "SELECT count(*) FROM memory")
show(con, "SELECT id FROM memory WHERE embedding MATCH ? AND k = 1", vector(0, 0, 0, 1))

print("a wrong vector")
try:
    con.execute(INSERT, (9, "short", vector(1, 2, 3), 1, None))
except sqlite3.Error as error:
    print("error names the table and the file:", "memory" in str(error) and "client.h5" in str(error))
show(con, "SELECT count(*) FROM memory")

print("reopen")
con.close()
con = connect()
show(con, "SELECT id, content, hex(embedding), timestamp, session FROM memory ORDER BY timestamp")
show(con, HYBRID, vector(0, 0, 0, 1), "does my cat eat?", 0)
show(con, "SELECT h5mem_flush('memory') >= 0")
con.close()
