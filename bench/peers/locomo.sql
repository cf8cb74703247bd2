-- Questions that people ask, over turns that people wrote: LoCoMo, read where it lies (../shared/data, or H5MEM_DATA).
-- Beyond its turns, rows are halves of two turns. FTS5: the same tokenizer, the words OR-ed, ORDER BY rank LIMIT 10;
-- once with all words, once with those alone that our stop list leaves; ours also with sessions, where neighbours count, and
-- with vectors, beside FTS5's words alone.
-- The check: the page is what ranking every row gives, in the same order.
--! subsystem text
--! needs data

--! row locomo_10k
--! setup
CREATE TEMP TABLE raw AS
  SELECT bench_data('locomo/conv-' || value || '.json') AS j FROM json_each('[26, 41, 43, 47, 49]');
CREATE TEMP TABLE turn(n INTEGER PRIMARY KEY, text);
INSERT INTO turn(text)
  SELECT json_extract(t.value, '$.speaker') || ': ' || json_extract(t.value, '$.text')
    FROM raw, json_each(j, '$.conversation') s, json_each(s.value) t WHERE s.type = 'array';
CREATE TEMP TABLE question(n INTEGER PRIMARY KEY, text, words, ors, kept);
INSERT INTO question(text)
  SELECT replace(json_extract(q.value, '$.question'), '"', '') FROM raw, json_each(j, '$.qa') q
   WHERE json_extract(q.value, '$.category') < 5;
-- the words as a JSON array: letters and digits, what is between them made spaces
UPDATE question SET words = text;
CREATE TEMP TABLE mark AS SELECT char(value) AS c FROM json_each(
  '[33,35,36,37,38,39,40,41,42,43,44,45,46,47,58,59,63,64,91,93,95,8211,8212,8216,8217,8220,8221,8230]');
CREATE TEMP TRIGGER strip AFTER INSERT ON mark BEGIN
  UPDATE question SET words = replace(words, new.c, ' ');
END;
INSERT INTO mark SELECT c FROM mark;
UPDATE question SET words = trim(replace(replace(replace(words, '   ', ' '), '  ', ' '), '  ', ' '));
UPDATE question SET words = '["' || replace(words, ' ', '","') || '"]';
UPDATE question SET ors = (SELECT group_concat('"' || value || '"', ' OR ') FROM json_each(words));
CREATE TEMP TABLE word AS
  SELECT row_number() OVER () AS id, word FROM
    (SELECT DISTINCT w.value AS word FROM question, json_each(words) w);
CREATE UNIQUE INDEX temp.word_word ON word(word);
-- which words the stop list leaves: those that find themselves beside another word
CREATE VIRTUAL TABLE probe USING h5mem('probe.h5', dim=2);
INSERT INTO probe(id, content) SELECT id, word FROM word;
CREATE TEMP TABLE kept AS SELECT id FROM word WHERE EXISTS
  (SELECT 1 FROM probe WHERE content MATCH word || ' qqq' AND probe.id = word.id);
UPDATE question SET kept = coalesce(
  (SELECT group_concat('"' || word || '"', ' OR ') FROM json_each(words) w
     JOIN word ON word = w.value WHERE word.id IN (SELECT kept.id FROM kept)), ors);
CREATE TEMP TABLE counts AS SELECT (SELECT count(*) FROM turn) AS turns, (SELECT count(*) FROM question) AS questions;
CREATE TEMP VIEW rows AS
  WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 99999)
  SELECT i + 1 AS id, iif(i < turns, a.text,
         substr(a.text, 1, length(a.text) / 2) || ' ' || substr(b.text, length(b.text) / 2)) AS content
    FROM s, counts JOIN turn a ON a.n = 1 + i % turns JOIN turn b ON b.n = 1 + (i * 7919 + i / turns) % turns;
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=2);
INSERT INTO m(id, content) SELECT id, content FROM rows LIMIT 10000;
SELECT h5mem_flush('m');
CREATE VIRTUAL TABLE f USING fts5(content, tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO f(rowid, content) SELECT id, content FROM m;
INSERT INTO f(f) VALUES ('optimize');
--! target 60
--! ours 300
SELECT id, score FROM m WHERE content MATCH (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT ors FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY rank LIMIT 10;
--! check
WITH q AS (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
SELECT (SELECT group_concat(id) FROM
         (SELECT id FROM m WHERE content MATCH (SELECT text FROM q) ORDER BY score DESC LIMIT 10)) =
       (SELECT group_concat(id) FROM
         (SELECT id FROM m WHERE content MATCH (SELECT text FROM q) ORDER BY score * 1.0 DESC, id LIMIT 10));
-- the index takes no more bytes than FTS5's, its list of lengths with it
SELECT json_extract(h5mem_stats('m'), '$.text_index_bytes') <=
       (SELECT sum(length(block)) FROM f_data) + (SELECT sum(length(sz)) FROM f_docsize);

--! row locomo_10k_sessions
--! setup
CREATE VIRTUAL TABLE ms USING h5mem('ms.h5', dim=2);
INSERT INTO ms(id, content, session, timestamp)
  SELECT id, content, 's' || (id / 25), 1700000000 + id * 3600 FROM rows LIMIT 10000;
SELECT h5mem_flush('ms');
--! target 60
--! ours 300
SELECT id, score FROM ms WHERE content MATCH (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT ors FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY rank LIMIT 10;
--! check
WITH q AS (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
SELECT (SELECT group_concat(id) FROM
         (SELECT id FROM ms WHERE content MATCH (SELECT text FROM q) ORDER BY score DESC LIMIT 10)) =
       (SELECT group_concat(id) FROM
         (SELECT id FROM ms WHERE content MATCH (SELECT text FROM q) ORDER BY score * 1.0 DESC, id LIMIT 10));

--! row locomo_10k_hybrid
--! setup
CREATE VIRTUAL TABLE mh USING h5mem('mh.h5', dim=384);
INSERT INTO mh(id, content, session, timestamp, embedding)
  SELECT id, content, 's' || (id / 25), 1700000000 + id * 3600, bench_demo(id, 384) FROM rows LIMIT 10000;
SELECT h5mem_flush('mh');
--! bind :q demo 384
--! target 10
--! ours 200
SELECT id, score FROM mh WHERE content MATCH (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
   AND embedding MATCH :q ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT ors FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY rank LIMIT 10;
--! check
-- with k = 1,000,000 all distances are computed
WITH q AS (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
SELECT (SELECT group_concat(id) FROM (SELECT id FROM mh WHERE content MATCH (SELECT text FROM q)
                                         AND embedding MATCH :q ORDER BY score DESC LIMIT 10)) =
       (SELECT group_concat(id) FROM (SELECT id FROM mh WHERE content MATCH (SELECT text FROM q)
                                         AND embedding MATCH :q AND k = 1000000 ORDER BY score DESC LIMIT 10));

--! row locomo_10k_hybrid_no_sessions
--! setup
CREATE VIRTUAL TABLE mb USING h5mem('mb.h5', dim=384);
INSERT INTO mb(id, content, embedding) SELECT id, content, embedding FROM mh;
SELECT h5mem_flush('mb');
--! bind :q demo 384
--! target 10
--! ours 200
SELECT id, score FROM mb WHERE content MATCH (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
   AND embedding MATCH :q ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT ors FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY rank LIMIT 10;

--! row locomo_10k_no_stop_words
--! target 15
--! ours 300
SELECT id, score FROM m WHERE content MATCH (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT kept FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY rank LIMIT 10;

--! row locomo_10k_two_rare
--! setup
CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, f, 'row');
CREATE TEMP TABLE rare AS
  SELECT row_number() OVER (ORDER BY term) AS n, term FROM terms
   WHERE doc BETWEEN 3 AND 20 AND term NOT GLOB '*[^a-z]*' AND
         EXISTS (SELECT 1 FROM m WHERE content MATCH term || ' qqq') AND EXISTS (SELECT 1 FROM f WHERE f MATCH term);
CREATE UNIQUE INDEX temp.rare_n ON rare(n);
CREATE TEMP TABLE pair AS
  SELECT a.n, a.term AS x, b.term AS y FROM rare a JOIN rare b ON b.n = 1 + (a.n * 61) % (SELECT count(*) FROM rare);
CREATE UNIQUE INDEX temp.pair_n ON pair(n);
--! target 3
--! ours 500
SELECT id, score FROM m WHERE content MATCH (SELECT x || ' ' || y FROM pair WHERE n = 1 + :run)
 ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT '"' || x || '" OR "' || y || '"' FROM pair WHERE n = 1 + :run)
 ORDER BY rank LIMIT 10;

--! row locomo_100k
--! setup
INSERT INTO m(id, content) SELECT id, content FROM rows LIMIT -1 OFFSET 10000;
SELECT h5mem_flush('m');
SELECT h5mem_compact('m');
INSERT INTO f(rowid, content) SELECT id, content FROM rows LIMIT -1 OFFSET 10000;
INSERT INTO f(f) VALUES ('optimize');
--! warm 2
--! target 150
--! ours 60
SELECT id, score FROM m WHERE content MATCH (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT ors FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY rank LIMIT 10;
--! check
WITH q AS (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
SELECT (SELECT group_concat(id) FROM
         (SELECT id FROM m WHERE content MATCH (SELECT text FROM q) ORDER BY score DESC LIMIT 10)) =
       (SELECT group_concat(id) FROM
         (SELECT id FROM m WHERE content MATCH (SELECT text FROM q) ORDER BY score * 1.0 DESC, id LIMIT 10));
SELECT json_extract(h5mem_stats('m'), '$.text_index_bytes') <=
       (SELECT sum(length(block)) FROM f_data) + (SELECT sum(length(sz)) FROM f_docsize);

--! row locomo_100k_no_stop_words
--! warm 2
--! target 40
--! ours 100
SELECT id, score FROM m WHERE content MATCH (SELECT text FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY score DESC LIMIT 10;
--! peer
SELECT rowid, -rank FROM f WHERE f MATCH (SELECT kept FROM question, counts WHERE n = 1 + :run * 31 % questions)
 ORDER BY rank LIMIT 10;
