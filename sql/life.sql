-- life.sql: a month of conversation ages in a second.  From the project's root, after make:
--
--     sqlite3 < sql/life.sql
--
-- The conversation is the first month of sql/demo.h5, with its real embeddings. It comes in week by week; at the end
-- of each week the store consolidates, at the time of the week's last turn. Nothing here depends on today's date.
.load ./h5mem

-- What will be said, and the table that remembers it: room for 40 turns in working memory and 60 behind it
CREATE VIRTUAL TABLE said USING h5mem('life-said.h5', dim=384);
SELECT h5mem_import('said', 'sql/demo.h5', 'h5mem');
CREATE VIRTUAL TABLE memory USING h5mem('life.h5', dim=384, working_capacity=40, episodic_capacity=60);
CREATE TABLE week(n INTEGER PRIMARY KEY, first REAL, last REAL);
INSERT INTO week
  SELECT row_number() OVER (ORDER BY min(timestamp)), min(timestamp), max(timestamp) FROM said
   WHERE channel IS NOT 'query' AND timestamp < unixepoch('2026-09-28')
   GROUP BY CAST((timestamp - unixepoch('2026-08-31')) / 604800 AS INT);
SELECT n, datetime(first, 'unixepoch'), datetime(last, 'unixepoch') FROM week;

-- 1. What is a sentence worth? It has a vector, so how new it is counts too
SELECT round(h5mem_importance('memory', s.content, s.embedding, s.source), 2) AS importance, substr(s.content, 1, 80)
  FROM said AS s WHERE id IN (3, 6, 9, 14, 22) ORDER BY 1 DESC;

-- 2. The first week comes in. Nobody rates the rows; the pass does. First dry: what would be done, and why?
INSERT INTO memory(id, content, embedding, timestamp, session, source)
  SELECT s.id, s.content, s.embedding, s.timestamp, s.session, s.source FROM said AS s, week
   WHERE week.n = 1 AND s.timestamp BETWEEN first AND last;
SELECT m.value ->> 'do' AS do, m.value ->> 'why' AS why, count(*), round(min(m.value ->> 'importance'), 2) AS least,
       round(max(m.value ->> 'importance'), 2) AS most
  FROM week, json_each(h5mem_consolidate('memory', last, 'dry'), '$.moves') AS m WHERE n = 1 GROUP BY 1, 2 ORDER BY 1 DESC;
SELECT 'still working: ' || count(*) FROM memory WHERE tier = 'working';

-- 3. The same, done: what matters is promoted before anything goes
SELECT h5mem_consolidate('memory', last) FROM week WHERE n = 1;
SELECT id, round(importance, 2), substr(content, 1, 90) FROM memory WHERE tier = 'episodic' ORDER BY importance DESC, id LIMIT 6;

-- 4. An access keeps a row: the weakest turn is asked about three times (option promote_access)
CREATE TABLE asked AS SELECT id FROM memory WHERE tier = 'working' ORDER BY importance, id LIMIT 1;
SELECT id, importance < 0.3, substr(content, 1, 90) FROM memory WHERE id = (SELECT id FROM asked);
SELECT round(h5mem_touch('memory', (SELECT id FROM asked), last + 3600 * i), 3) AS activation
  FROM week, (SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3) WHERE n = 1;

-- 5. What is pinned stays, whatever it is worth
UPDATE memory SET pinned = 1 WHERE id = (SELECT id FROM memory WHERE tier = 'working' ORDER BY importance, id LIMIT 1);

-- 6. The second week, with a fact that is said again in other words
INSERT INTO memory(id, content, embedding, timestamp, session, source)
  SELECT s.id, s.content, s.embedding, s.timestamp, s.session, s.source FROM said AS s, week
   WHERE week.n = 2 AND s.timestamp BETWEEN first AND last;
INSERT INTO memory(id, content, embedding, timestamp, session, source)
  SELECT 1001, 'And please, dark mode in every app you set up for me.', embedding, (SELECT last FROM week WHERE n = 2) - 1,
         'extra', 'user' FROM said WHERE id = 5;
SELECT m.value ->> 'do', m.value ->> 'id', m.value ->> 'why', m.value ->> 'by'
  FROM week, json_each(h5mem_consolidate('memory', last, 'dry'), '$.moves') AS m
 WHERE n = 2 AND (m.value ->> 'do' = 'supersede' OR m.value ->> 'why' = 'access');
SELECT h5mem_consolidate('memory', last) FROM week WHERE n = 2;
SELECT old.id, substr(old.content, 1, 40) AS before, new.id, new.content, new.tier
  FROM memory AS old JOIN memory AS new ON new.id = old.superseded_by;

-- 7. Searches find what holds now; as_of finds what held then
SELECT id FROM memory WHERE embedding MATCH (SELECT embedding FROM said WHERE id = 5) AND k = 1;
SELECT id FROM memory WHERE embedding MATCH (SELECT embedding FROM said WHERE id = 5) AND k = 1
   AND as_of = (SELECT last FROM week WHERE n = 1);

-- 8. Two more weeks. A tick ends each: activation fades to that time, and a pass comes when it is due
INSERT INTO memory(id, content, embedding, timestamp, session, source)
  SELECT s.id, s.content, s.embedding, s.timestamp, s.session, s.source FROM said AS s, week
   WHERE week.n = 3 AND s.timestamp BETWEEN first AND last;
SELECT json_extract(h5mem_tick('memory', last), '$.consolidated') FROM week WHERE n = 3;
INSERT INTO memory(id, content, embedding, timestamp, session, source)
  SELECT s.id, s.content, s.embedding, s.timestamp, s.session, s.source FROM said AS s, week
   WHERE week.n = 4 AND s.timestamp BETWEEN first AND last;
SELECT json_extract(h5mem_tick('memory', last), '$.consolidated') FROM week WHERE n = 4;

-- 9. A month later: what is left of each week, and of the facts that matter
SELECT n AS week, (SELECT count(*) FROM said WHERE channel IS NOT 'query' AND timestamp BETWEEN first AND last) AS said,
       count(m.id) AS kept, round(avg(m.importance), 2) AS importance, round(avg(m.activation), 2) AS activation
  FROM week LEFT JOIN (SELECT id, timestamp, importance, activation FROM memory) AS m ON m.timestamp BETWEEN first AND last
 GROUP BY n;
SELECT id, tier, substr(content, 1, 100) FROM memory WHERE content MATCH 'penicillin' LIMIT 2;
SELECT 'the row that was asked about: ' || count(*) FROM memory WHERE id = (SELECT id FROM asked);
SELECT 'pinned: ' || count(*) FROM memory WHERE pinned;

-- 10. Every step is an event with its reason; what went can be brought back until the store is compacted
SELECT kind, count(*) FROM h5mem_events('memory') GROUP BY kind;
CREATE TABLE gone AS SELECT id FROM h5mem_events('memory') WHERE kind = 'evict' ORDER BY json ->> 'importance' DESC LIMIT 1;
SELECT datetime(time, 'unixepoch'), json ->> 'reason', round(json ->> 'importance', 2), substr(json ->> 'content', 1, 70)
  FROM h5mem_events('memory') WHERE kind = 'evict' AND id = (SELECT id FROM gone);
SELECT h5mem_restore('memory', (SELECT id FROM gone));
SELECT tier, round(importance, 2), substr(content, 1, 70) FROM memory WHERE id = (SELECT id FROM gone);

-- 11. All of it is one transaction a pass: take the last one back
BEGIN;
SELECT h5mem_config('memory', 'working_capacity', 5);
SELECT h5mem_consolidate('memory', last + 86400) FROM week WHERE n = 4;
ROLLBACK;
SELECT tier, count(*) FROM memory GROUP BY tier;

DROP TABLE memory; DROP TABLE said;
SELECT h5mem_destroy('life.h5') + h5mem_destroy('life-said.h5');
