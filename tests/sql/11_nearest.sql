-- Nearest vectors: cosine by default; L2 and inner product where asked for.
CREATE VIRTUAL TABLE memory USING h5mem('near.h5', dim=3);
INSERT INTO memory(id, content, embedding, timestamp, session) VALUES
    (1, 'east',       '[1, 0, 0]',  10, 'a'),
    (2, 'north',      '[0, 1, 0]',  20, 'a'),
    (3, 'east-north', '[4, 3, 0]',  30, 'b'),
    (4, 'west',       '[-2, 0, 0]', 40, 'b'),
    (5, 'far east',   '[9, 0, 0]',  50, 'b'),
    (6, 'nowhere',    '[0, 0, 0]',  60, 'c'),
    (7, 'no vector',  NULL,         70, 'c');

.print all of them: a tie goes to the lower id, a zero vector has distance 1, no vector is no hit
SELECT id, content, round(distance, 4), round(score, 4), rank FROM memory WHERE embedding MATCH '[1, 0, 0]';
.print k
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 2;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 0;
SELECT count(*) FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 1000000;
.print a blob finds the same
SELECT id FROM memory WHERE embedding MATCH x'0000803f0000000000000000' AND k = 2;
.print order and pages
SELECT group_concat(id) FROM (SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' ORDER BY distance LIMIT 3);
SELECT group_concat(id) FROM (SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' ORDER BY distance LIMIT 2 OFFSET 2);
SELECT group_concat(id) FROM (SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' ORDER BY distance LIMIT 9 OFFSET 5);
SELECT group_concat(id) FROM (SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' ORDER BY distance DESC LIMIT 3);
SELECT group_concat(id) FROM (SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' ORDER BY score DESC LIMIT 3);
SELECT group_concat(id) FROM (SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' ORDER BY id DESC LIMIT 3);
.print k, LIMIT, OFFSET and a descending order together: the four nearest, the farthest of them first
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 4 ORDER BY distance DESC LIMIT 2 OFFSET 1;
.print a distance bound, on either side
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND distance < 1 ORDER BY distance;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND distance > 0.5 AND distance <= 1 ORDER BY distance;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND score > 0.6 ORDER BY score;
.print filters that are handed down count before k
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 2 AND session = 'b';
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 2 AND timestamp BETWEEN 20 AND 40;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 2 AND id IN (2, 4, 6, 7);
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 2 AND session IN ('a', 'c');
.print filters that SQLite keeps for itself still fill a page
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND NOT (session = 'b') ORDER BY distance LIMIT 2;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND session NOT IN ('a') ORDER BY distance LIMIT 3;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND length(content) = 4 ORDER BY distance LIMIT 2;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND content LIKE '%north%' ORDER BY distance LIMIT 5;
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND content LIKE 'e%' ORDER BY distance LIMIT 5;
.print k counts before such a filter
SELECT id FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 3 AND NOT (session = 'b');
.print joins: a query vector from another table, one for each of its rows
CREATE TABLE question(name TEXT, vector TEXT);
INSERT INTO question VALUES ('east?', '[1, 0, 0]'), ('west?', '[-1, 0, 0]');
SELECT name, id FROM question JOIN memory ON embedding MATCH vector AND k = 2 ORDER BY name, distance;
SELECT name, (SELECT content FROM memory WHERE embedding MATCH vector AND k = 1) FROM question ORDER BY name;
WITH hit AS (SELECT id, distance FROM memory WHERE embedding MATCH '[0, 1, 0]' AND k = 2)
SELECT m.content, round(hit.distance, 4) FROM hit JOIN memory m ON m.id = hit.id ORDER BY hit.distance;
.print outside a search the search columns are NULL
SELECT id, distance, rank, score FROM memory WHERE id = 1;
.print either of two searches: their union
SELECT id FROM memory WHERE (embedding MATCH '[1, 0, 0]' AND distance < 0.1)
    OR (embedding MATCH '[-1, 0, 0]' AND distance < 0.1) ORDER BY id;
.print after an update and a delete
UPDATE memory SET embedding = '[-1, 0, 0]' WHERE id = 1;
DELETE FROM memory WHERE id = 5;
SELECT id, round(distance, 4) FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 3;
.print and the same after a flush
SELECT h5mem_flush('memory') > 0;
SELECT id, round(distance, 4) FROM memory WHERE embedding MATCH '[1, 0, 0]' AND k = 3;

CREATE VIRTUAL TABLE far USING h5mem('l2.h5', dim=2, metric=l2);
INSERT INTO far(id, embedding) VALUES (1, '[0, 0]'), (2, '[3, 4]'), (3, '[6, 8]'), (4, '[-3, -4]'), (5, NULL);
.print l2
SELECT id, distance, round(score, 4) FROM far WHERE embedding MATCH '[0, 0]';
SELECT id, distance FROM far WHERE embedding MATCH '[3, 4]' AND distance <= 5 ORDER BY distance DESC;

CREATE VIRTUAL TABLE inner_product USING h5mem('ip.h5', dim=2, metric=ip);
INSERT INTO inner_product(id, embedding) VALUES (1, '[1, 0]'), (2, '[2, 1]'), (3, '[-1, 5]'), (4, '[0, 0]');
.print inner product: the larger product is nearer
SELECT id, distance, score FROM inner_product WHERE embedding MATCH '[1, 0]';
