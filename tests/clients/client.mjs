// client.mjs MODULE - the client script from Node's better-sqlite3, in the working folder
//
// The same steps as client.py, and the same lines on standard output: expected.txt. The folder of the
// package comes in the environment variable BETTER_SQLITE3. Big ids are BigInts, as better-sqlite3 wants.
//
// SPDX-License-Identifier: MIT
import { createRequire } from "node:module";

const Database = createRequire(import.meta.url)(process.env.BETTER_SQLITE3);

function connect() {
    const con = new Database("client.db");
    con.loadExtension(process.argv[2]);
    con.defaultSafeIntegers(true);
    return con;
}

function vector(...values) {
    return Buffer.from(new Float32Array(values).buffer);
}

function text(value) {
    if (value === null) return "NULL";
    if (typeof value === "number" && Number.isInteger(value)) return value.toFixed(1);
    return String(value);
}

function show(con, sql, ...values) {
    for (const row of con.prepare(sql).raw().iterate(...values)) console.log(row.map(text).join("|"));
}

const HYBRID = `
    SELECT id, content, printf('%.6f', score), printf('%.4f', distance), rank IS NULL FROM memory
     WHERE embedding MATCH ? AND content MATCH ? AND timestamp >= ? ORDER BY score DESC LIMIT 3`;
const INSERT = "INSERT INTO memory(id, content, embedding, timestamp, session) VALUES (?, ?, ?, ?, ?)";

let con = connect();
con.exec("CREATE VIRTUAL TABLE memory USING h5mem('client.h5', dim=4, metric=l2)");

console.log("insert");
con.transaction(() => {
    const insert = con.prepare(INSERT);
    insert.run(1n, "the roof leaks", vector(0, 0, 0, 0), 100.5, "s-1");
    insert.run(2n, "the cat doesn't eat", vector(3, 4, 0, 0), 200, "s-1");
    insert.run(2n ** 53n, "Crème brûlée – 猫", vector(0, 0, 0, 2), 300, null);
    con.prepare("INSERT INTO memory(content, embedding, timestamp) VALUES (?, ?, ?)").run("no vector", null, 400);
})();
show(con, "SELECT id, content, hex(embedding), timestamp, session FROM memory ORDER BY timestamp");

console.log("hybrid");
show(con, HYBRID, vector(0, 0, 0, 1), "does my cat eat?", 0);
console.log("in a time window");
show(con, HYBRID, vector(0, 0, 0, 1), "does my cat eat?", 250);

console.log("rollback");
con.exec("BEGIN");
con.prepare("DELETE FROM memory WHERE id = 1").run();
con.prepare("UPDATE memory SET embedding = ? WHERE id = 2").run(vector(0, 0, 0, 1));
show(con, "SELECT count(*) FROM memory");
show(con, "SELECT id FROM memory WHERE embedding MATCH ? AND k = 1", vector(0, 0, 0, 1));
con.exec("ROLLBACK");
show(con, "SELECT count(*) FROM memory");
show(con, "SELECT id FROM memory WHERE embedding MATCH ? AND k = 1", vector(0, 0, 0, 1));

console.log("a wrong vector");
try {
    con.prepare(INSERT).run(9, "short", vector(1, 2, 3), 1, null);
} catch (error) {
    const named = error.message.includes("memory") && error.message.includes("client.h5");
    console.log("error names the table and the file:", named ? "True" : "False");
}
show(con, "SELECT count(*) FROM memory");

console.log("reopen");
con.close();
con = connect();
show(con, "SELECT id, content, hex(embedding), timestamp, session FROM memory ORDER BY timestamp");
show(con, HYBRID, vector(0, 0, 0, 1), "does my cat eat?", 0);
show(con, "SELECT h5mem_flush('memory') >= 0");
con.close();
