-- Meaning and words in one query: reciprocal rank fusion over both full rankings.
CREATE VIRTUAL TABLE memory USING h5mem('both.h5', dim=2, metric=l2, context=0);
INSERT INTO memory(id, content, embedding, timestamp, session) VALUES
    (1, 'roof and rain',        '[0, 0]', 10, 'a'),
    (2, 'rain',                 '[5, 0]', 20, 'a'),
    (3, 'cat',                  '[1, 0]', 30, 'b'),
    (4, 'a roof over the rain', NULL,     40, 'b'),
    (5, 'dog',                  '[2, 0]', 50, 'b');

.print a row comes if either part finds it; what a part did not find is NULL
SELECT id, printf('%.6f', score), round(distance, 4), rank IS NULL FROM memory
 WHERE embedding MATCH '[0, 0]' AND content MATCH 'roof';
.print in either order, and in pages
SELECT group_concat(id) FROM (SELECT id FROM memory
    WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' ORDER BY score DESC LIMIT 9);
SELECT group_concat(id) FROM (SELECT id FROM memory
    WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' ORDER BY score LIMIT 9);
SELECT group_concat(id) FROM (SELECT id FROM memory
    WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' ORDER BY score DESC LIMIT 2 OFFSET 2);
.print k
SELECT id FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' AND k = 2;
.print both parts wanted
SELECT id FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain'
    AND rank IS NOT NULL AND distance IS NOT NULL;
.print only what words alone found
SELECT id FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' AND distance IS NULL;
.print a filter comes first: places are counted among the rows that pass
SELECT id, printf('%.6f', score) FROM memory
 WHERE embedding MATCH '[0, 0]' AND content MATCH 'roof' AND session = 'b';
.print a time window
SELECT id FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' AND timestamp BETWEEN 15 AND 45
 ORDER BY score DESC;
.print a filter that SQLite keeps still fills the page
SELECT id FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' AND NOT (session = 'a')
 ORDER BY score DESC LIMIT 2;
.print no word found: the vectors decide
SELECT id, printf('%.6f', score) FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'nosuchword' AND k = 2;
.print rrf_k for one query
SELECT id, printf('%.6f', score) FROM memory
 WHERE embedding MATCH '[0, 0]' AND content MATCH 'roof' AND rrf_k = 1 AND k = 2;
.print weights for one query
SELECT id FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' AND vector_weight = 0
    AND text_weight = 1 AND k = 1;
SELECT id FROM memory WHERE embedding MATCH '[5, 0]' AND content MATCH 'roof' AND vector_weight = 1
    AND text_weight = 0 AND k = 1;
.print before and after a flush
SELECT h5mem_flush('memory') > 0;
INSERT INTO memory(id, content, embedding, timestamp) VALUES (6, 'rain rain', '[0, 0]', 60);
SELECT id FROM memory WHERE embedding MATCH '[0, 0]' AND content MATCH 'rain' ORDER BY score DESC LIMIT 2;
