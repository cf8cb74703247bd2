-- BM25 over 10,000 turns of 8 to 40 words: six words a query by the same law as the text, no stop list.
--! subsystem text

--! row bm25_top10_10k
--! setup
CREATE VIRTUAL TABLE m USING h5mem('m.h5', dim=384);
INSERT INTO m(content, timestamp)
  WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 10000)
  SELECT bench_text(i), i FROM s;
SELECT h5mem_flush('m');
-- the definition: the same tokens as fts5vocab shows them, k1 1.2, b 0.75, idf ln(1 + (N - df + .5) / (df + .5))
CREATE VIRTUAL TABLE temp.f USING fts5(content, content='', tokenize='porter unicode61 remove_diacritics 2');
INSERT INTO f(rowid, content) SELECT id, content FROM m;
CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(temp, f, 'instance');
CREATE TEMP TABLE token AS SELECT term, doc, count(*) AS tf FROM vocabulary GROUP BY term, doc;
CREATE INDEX temp.token_term ON token(term);
CREATE TEMP TABLE length AS SELECT doc, sum(tf) AS n FROM token GROUP BY doc;
CREATE UNIQUE INDEX temp.length_doc ON length(doc);
CREATE VIRTUAL TABLE temp.asked USING fts5(content, tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE temp.asked_vocabulary USING fts5vocab(temp, asked, 'row');
--! bind :words words 6
--! timed 500
SELECT id, score FROM m WHERE content MATCH :words ORDER BY score DESC LIMIT 10;
--! check
DELETE FROM asked;
INSERT INTO asked VALUES (:words);
WITH
  corpus AS (SELECT count(*) AS docs, avg(n) AS mean FROM length),
  df AS (SELECT term, count(*) AS df FROM token WHERE term IN (SELECT term FROM asked_vocabulary) GROUP BY term),
  scored AS (SELECT doc, sum(bench_ln(1 + (docs - df + 0.5) / (df + 0.5)) *
                             tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length.n / mean))) AS score
               FROM token JOIN df USING (term) JOIN length USING (doc), corpus GROUP BY doc),
  best AS (SELECT row_number() OVER (ORDER BY score DESC, doc) AS place, score FROM scored LIMIT 10),
  ours AS (SELECT row_number() OVER (ORDER BY score DESC, id) AS place, score
             FROM (SELECT id, score FROM m WHERE content MATCH :words ORDER BY score DESC LIMIT 10))
SELECT count(*) = 10 AND max(abs(ours.score - best.score)) < 1e-4 FROM ours JOIN best USING (place);
