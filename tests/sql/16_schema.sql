-- The table among the rest of a database: views, triggers, ATTACH, RENAME, DROP, long WHERE clauses.
CREATE VIRTUAL TABLE memory USING h5mem('main.h5', dim=2, context=0, user_id TEXT, priority INTEGER, weight REAL, raw BLOB);
INSERT INTO memory(id, content, embedding, timestamp, session, channel, source, user_id, priority, weight, raw) VALUES
    (1, 'roof', '[1, 0]', 10, 's-1', 'chat',  'user',      'u1', 5,    0.5,  x'01'),
    (2, 'rain', '[0, 1]', 20, 's-1', 'voice', 'assistant', 'u1', NULL, 2,    x''),
    (3, 'cat',  '[1, 1]', 30, 's-2', 'chat',  'user',      'u2', -1,   NULL, NULL),
    (4, 'dog',  NULL,     40, NULL,  NULL,    NULL,        NULL, 5,    1.5,  x'0102');

.print a view over it
CREATE VIEW chat AS SELECT id, content, embedding FROM memory WHERE channel = 'chat';
SELECT id, content FROM chat ORDER BY id;
SELECT id FROM chat WHERE embedding MATCH '[1, 1]' ORDER BY id;
SELECT id FROM chat WHERE content MATCH 'cat rain';

.print triggers on another table write here
CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT);
CREATE TRIGGER note_added AFTER INSERT ON note BEGIN
    INSERT INTO memory(id, content, timestamp, source) VALUES (new.id + 100, new.body, new.id, 'tool');
END;
CREATE TRIGGER note_changed AFTER UPDATE ON note BEGIN
    UPDATE memory SET content = new.body WHERE id = new.id + 100;
END;
CREATE TRIGGER note_gone AFTER DELETE ON note BEGIN
    DELETE FROM memory WHERE id = old.id + 100;
END;
INSERT INTO note(body) VALUES ('buy bread'), ('buy milk');
SELECT last_insert_rowid();
UPDATE note SET body = 'buy oat milk' WHERE id = 2;
DELETE FROM note WHERE id = 1;
SELECT id, content, source FROM memory WHERE id > 100;
BEGIN;
INSERT INTO note(body) VALUES ('not yet');
SELECT count(*) FROM memory WHERE id > 100;
ROLLBACK;
SELECT count(*) FROM memory WHERE id > 100;
DELETE FROM note;

.print user columns are filters like the others
SELECT id FROM memory WHERE priority = 5 ORDER BY id;
SELECT id FROM memory WHERE priority IS NULL;
SELECT id FROM memory WHERE weight BETWEEN 1 AND 2 ORDER BY weight DESC;
SELECT id FROM memory WHERE raw = x'01';
SELECT id FROM memory WHERE raw >= x'01' ORDER BY raw;
SELECT id FROM memory WHERE user_id IN ('u2', 'u1') AND embedding MATCH '[1, 1]' AND k = 2;
SELECT id FROM memory WHERE priority > '4' ORDER BY id;
SELECT typeof(weight), typeof(priority), typeof(user_id), hex(raw) FROM memory WHERE id = 2;

.print twenty and more constraints in one WHERE
SELECT id, round(score, 4) FROM memory
 WHERE embedding MATCH '[1, 0]' AND content MATCH 'roof rain cat'
   AND timestamp >= 5 AND timestamp <= 35 AND timestamp > 6 AND timestamp < 34
   AND session = 's-1' AND session >= 's' AND session < 't' AND session IN ('s-1', 's-9') AND session IS NOT NULL
   AND channel IN ('chat', 'voice') AND channel > 'a' AND channel IS NOT NULL AND tags IS NULL
   AND source >= 'a' AND source <= 'z' AND tier = 'working' AND importance = 0.5 AND activation >= 0
   AND access_count = 0 AND last_access IS NULL AND valid_from IS NULL AND superseded_by IS NULL
   AND pinned = 0 AND user_id = 'u1' AND user_id < 'v' AND id BETWEEN 1 AND 3 AND id <> 9 AND id > 0
   AND k = 5 AND rrf_k = 60 AND vector_weight = 1 AND text_weight = 1
 ORDER BY score DESC;

.print joins with an ordinary table
CREATE TABLE person(user_id TEXT PRIMARY KEY, city TEXT);
INSERT INTO person VALUES ('u1', 'Lisbon'), ('u2', 'Porto'), ('u3', 'Faro');
SELECT city, count(id) FROM person LEFT JOIN memory USING (user_id) GROUP BY city ORDER BY city;
SELECT city, id FROM person JOIN memory USING (user_id) WHERE embedding MATCH '[1, 0]' ORDER BY distance LIMIT 2;
SELECT city, m.id FROM person LEFT JOIN memory m ON m.user_id = person.user_id AND m.content MATCH 'cat' ORDER BY city;
SELECT id FROM memory WHERE user_id IN (SELECT user_id FROM person WHERE city = 'Porto');
SELECT a.id, b.id FROM memory a JOIN memory b ON b.session = a.session AND b.id > a.id;

.print ATTACH: a table of the same name in another database, with a store of its own
ATTACH 'other.db' AS aux;
CREATE VIRTUAL TABLE aux.memory USING h5mem('aux.h5', dim=3);
INSERT INTO aux.memory(id, content, embedding) VALUES (1, 'elsewhere', '[1, 2, 3]');
SELECT (SELECT count(*) FROM main.memory), (SELECT count(*) FROM aux.memory);
SELECT content FROM aux.memory WHERE embedding MATCH '[1, 2, 3]';
BEGIN;
INSERT INTO aux.memory(content) VALUES ('both');
INSERT INTO main.memory(content) VALUES ('both');
ROLLBACK;
SELECT (SELECT count(*) FROM main.memory), (SELECT count(*) FROM aux.memory);
SELECT h5mem_flush('aux.memory');
DETACH aux;
ATTACH 'other.db' AS again;
SELECT content FROM again.memory WHERE content MATCH 'elsewhere';
DETACH again;

.print RENAME
DROP VIEW chat;
DROP TRIGGER note_added;
DROP TRIGGER note_changed;
DROP TRIGGER note_gone;
ALTER TABLE memory RENAME TO recollection;
SELECT count(*) FROM recollection;
SELECT id FROM recollection WHERE recollection MATCH 'roof';
INSERT INTO recollection(id, content) VALUES (9, 'after the rename');
SELECT h5mem_flush('recollection') > 0;
SELECT name FROM sqlite_schema WHERE name LIKE '%memory%';

.print DROP leaves the store; CREATE finds it again, user columns and all
DROP TABLE recollection;
SELECT count(*) FROM sqlite_schema WHERE name LIKE '%recollection%';
CREATE VIRTUAL TABLE memory USING h5mem('main.h5');
SELECT id, content, user_id, priority FROM memory ORDER BY id;
SELECT id FROM memory WHERE embedding MATCH '[1, 1]' AND k = 1;
DROP TABLE memory;

.print a DROP and a CREATE, rolled back
CREATE VIRTUAL TABLE memory USING h5mem('main.h5');
BEGIN;
DROP TABLE memory;
ROLLBACK;
SELECT count(*) FROM memory;
BEGIN;
CREATE VIRTUAL TABLE young USING h5mem('young.h5', dim=2);
INSERT INTO young(content) VALUES ('gone');
ROLLBACK;
SELECT count(*) FROM sqlite_schema WHERE name LIKE 'young%';
CREATE VIRTUAL TABLE young USING h5mem('young.h5', dim=2);
SELECT count(*) FROM young;

.print two tables over one store see the same rows
CREATE VIRTUAL TABLE twin USING h5mem('main.h5');
INSERT INTO twin(id, content) VALUES (77, 'by the twin');
SELECT content FROM memory WHERE id = 77;
DELETE FROM memory WHERE id = 77;
SELECT count(*) FROM twin WHERE id = 77;
