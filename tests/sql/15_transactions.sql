-- Transactions and savepoints: the store takes part in SQLite's own.
CREATE VIRTUAL TABLE memory USING h5mem('txn.h5', dim=2);
CREATE TABLE plain(x);
INSERT INTO memory(id, content, embedding, timestamp) VALUES (1, 'one', '[1, 0]', 1), (2, 'two', '[0, 1]', 2);

.print rolled back, with what a plain table got
BEGIN;
INSERT INTO memory(id, content, embedding) VALUES (3, 'three', '[1, 1]');
INSERT INTO plain VALUES (3);
UPDATE memory SET content = 'changed', embedding = '[0, -1]' WHERE id = 1;
DELETE FROM memory WHERE id = 2;
SELECT id, content FROM memory ORDER BY id;
SELECT id FROM memory WHERE embedding MATCH '[0, -1]' AND k = 1;
SELECT id FROM memory WHERE content MATCH 'changed';
ROLLBACK;
SELECT id, content FROM memory ORDER BY id;
SELECT count(*) FROM plain;
SELECT id FROM memory WHERE embedding MATCH '[0, 1]' AND k = 1;
SELECT id FROM memory WHERE content MATCH 'changed';

.print committed
BEGIN;
INSERT INTO memory(id, content, timestamp) VALUES (3, 'three', 3);
INSERT INTO plain VALUES (3);
COMMIT;
SELECT count(*), (SELECT count(*) FROM plain) FROM memory;

.print savepoints in each other
BEGIN;
INSERT INTO memory(id, content, timestamp) VALUES (4, 'four', 4);
SAVEPOINT a;
INSERT INTO memory(id, content, timestamp) VALUES (5, 'five', 5);
SAVEPOINT b;
DELETE FROM memory WHERE id = 4;
UPDATE memory SET content = 'FIVE' WHERE id = 5;
SELECT group_concat(id || ' ' || content, ', ') FROM (SELECT * FROM memory WHERE id > 3 ORDER BY id);
ROLLBACK TO b;
SELECT group_concat(id || ' ' || content, ', ') FROM (SELECT * FROM memory WHERE id > 3 ORDER BY id);
DELETE FROM memory WHERE id = 5;
RELEASE b;
ROLLBACK TO a;
SELECT group_concat(id || ' ' || content, ', ') FROM (SELECT * FROM memory WHERE id > 3 ORDER BY id);
INSERT INTO memory(id, content, timestamp) VALUES (6, 'six', 6);
RELEASE a;
COMMIT;
SELECT group_concat(id) FROM (SELECT id FROM memory ORDER BY id);

.print a savepoint without BEGIN, older than the first write
SAVEPOINT outer_one;
INSERT INTO memory(id, content) VALUES (7, 'seven');
ROLLBACK TO outer_one;
INSERT INTO memory(id, content, timestamp) VALUES (8, 'eight', 8);
RELEASE outer_one;
SELECT group_concat(id) FROM (SELECT id FROM memory ORDER BY id);

.print many rows that meet others
CREATE TABLE several(id INTEGER, content TEXT);
INSERT INTO several VALUES (20, 'twenty'), (21, 'twenty-one'), (8, 'there already'), (22, 'twenty-two');
BEGIN;
INSERT INTO memory(id, content) VALUES (19, 'nineteen');
INSERT OR IGNORE INTO memory(id, content) SELECT id, content FROM several WHERE id = 8;
SELECT changes();
INSERT OR REPLACE INTO memory(id, content, timestamp) SELECT id, content, id FROM several;
SELECT id, content FROM memory WHERE id >= 8 ORDER BY id;
ROLLBACK;
SELECT id, content FROM memory WHERE id >= 8 ORDER BY id;

.print ids that a rollback gave back
BEGIN;
INSERT INTO memory(content) VALUES ('lost');
ROLLBACK;
INSERT INTO memory(content, timestamp) VALUES ('kept', 9);
SELECT count(*), max(id) > 8 FROM memory WHERE content = 'kept';
DELETE FROM memory WHERE content = 'kept';

.print a flush in between changes nothing
SELECT h5mem_flush('memory') > 0;
BEGIN;
DELETE FROM memory;
SELECT count(*) FROM memory;
ROLLBACK;
SELECT group_concat(id) FROM (SELECT id FROM memory ORDER BY id);
BEGIN;
UPDATE memory SET session = 'new' WHERE id < 3;
COMMIT;
SELECT h5mem_flush('memory') > 0;
SELECT id, session FROM memory WHERE session = 'new' ORDER BY id;
SELECT h5mem_flush('memory');
