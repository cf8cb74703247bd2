-- Rows come in, change, and go; what is left out gets its default.
CREATE VIRTUAL TABLE memory USING h5mem('rows.h5', dim=3, user_id TEXT, priority INTEGER);

.print an id is assigned, or given
INSERT INTO memory(content, embedding, timestamp) VALUES ('first', '[1, 0, 0]', 100);
SELECT last_insert_rowid();
INSERT INTO memory(id, content, embedding, timestamp, session, user_id, priority)
VALUES (10, 'tenth', x'0000003f000000000000803f', '2026-11-01T12:00:00Z', 's-1', 'u1', 7);
SELECT last_insert_rowid();
INSERT INTO memory(content, timestamp) VALUES ('no vector', '2026-11-01 12:00:00.5');
SELECT last_insert_rowid();
SELECT id, content, hex(embedding), timestamp, session, user_id, priority FROM memory ORDER BY id;

.print defaults
SELECT typeof(id), typeof(content), typeof(embedding), typeof(timestamp), typeof(session),
       typeof(channel), typeof(tags), typeof(source), tier, importance, activation, access_count,
       typeof(last_access), typeof(valid_from), typeof(valid_to), typeof(superseded_by), pinned,
       typeof(user_id), typeof(priority)
  FROM memory WHERE id = 1;
INSERT INTO memory(content) VALUES ('now');
SELECT count(*) FROM memory WHERE abs(timestamp - unixepoch()) < 60;
DELETE FROM memory WHERE content = 'now';

.print timestamps in several spellings
INSERT INTO memory(id, timestamp) VALUES
    (20, '2026-11-01'), (21, '2026-11-01T14:00:00+02:00'), (22, '2026-11-01 12:00'), (23, 1793534400),
    (24, 1793534400.25), (25, '1969-12-31 23:59:59');
SELECT id, timestamp, typeof(timestamp) FROM memory WHERE id >= 20 ORDER BY id;
SELECT count(*) FROM memory WHERE timestamp = unixepoch('2026-11-01 12:00:00');
DELETE FROM memory WHERE id BETWEEN 20 AND 25;

.print vectors in several spellings
INSERT INTO memory(id, embedding) VALUES
    (30, '[1e0, -2.5E-1, 0.125]'), (31, ' [ 1 ,' || char(10) || ' -0.25 , 125e-3 ] '),
    (32, x'0000803f000080be0000003e'), (33, NULL);
SELECT id, hex(embedding), length(embedding) FROM memory WHERE id >= 30 ORDER BY id;
SELECT count(*) FROM memory WHERE embedding IS NULL;
DELETE FROM memory WHERE id >= 30;

.print update: one column leaves the others alone
UPDATE memory SET content = 'tenth, changed' WHERE id = 10;
SELECT changes();
SELECT id, content, hex(embedding), timestamp, session, user_id, priority FROM memory WHERE id = 10;
UPDATE memory SET embedding = '[0, 1, 0]', importance = 0.9 WHERE id = 1;
UPDATE memory SET priority = priority + 1 WHERE priority IS NOT NULL;
UPDATE memory SET embedding = NULL, session = NULL, user_id = NULL WHERE id = 10;
SELECT id, content, hex(embedding), session, importance, user_id, priority FROM memory ORDER BY id;
UPDATE memory SET content = 'nobody' WHERE id = 999;
SELECT changes();

.print an update may give a new id
UPDATE memory SET id = 50 WHERE id = 10;
SELECT rowid, id, content FROM memory ORDER BY id;

.print an id is never assigned again
DELETE FROM memory WHERE id = 50;
INSERT INTO memory(content, timestamp) VALUES ('after fifty', 0);
SELECT last_insert_rowid() > 50, count(*) FROM memory;

.print or ignore, or replace
INSERT OR IGNORE INTO memory(id, content) VALUES (1, 'ignored');
SELECT changes(), content FROM memory WHERE id = 1;
INSERT OR REPLACE INTO memory(id, content, timestamp) VALUES (1, 'replaced', 5);
SELECT id, content, hex(embedding), timestamp, importance FROM memory WHERE id = 1;
INSERT OR REPLACE INTO memory(id, content, timestamp) VALUES (2, 'new by replace', 6);
REPLACE INTO memory(id, content, timestamp) VALUES (2, 'replaced again', 7);
SELECT id, content, timestamp FROM memory WHERE id < 3 ORDER BY id;

.print many rows at once, and from a query
INSERT INTO memory(id, content, timestamp) SELECT 100 + value, 'row ' || value, value FROM json_each('[1,2,3]');
INSERT INTO memory(id, content, timestamp) SELECT id + 100, content || ' again', timestamp FROM memory WHERE id > 100;
SELECT id, content, timestamp FROM memory WHERE id > 100 ORDER BY id DESC;

.print delete
DELETE FROM memory WHERE id > 100 AND content LIKE '%again';
SELECT changes();
DELETE FROM memory;
SELECT count(*) FROM memory;
