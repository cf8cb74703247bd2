-- Words: whatever a user types is a valid query.
CREATE VIRTUAL TABLE memory USING h5mem('words.h5', dim=3, context=0);
INSERT INTO memory(id, content, timestamp, session, tags) VALUES
    (1, 'I prefer dark mode in the evening',               10, 'a', 'preferences'),
    (2, 'The C++ compiler on the build server is too old', 20, 'a', 'work'),
    (3, 'My sister''s cat doesn''t like the vet',          30, 'b', 'cat'),
    (4, '"Quoted" words, (brackets) and a dash-word',      40, 'b', NULL),
    (5, '猫が好きです',                                     50, 'c', 'cat'),
    (6, 'Crème brûlée at the café',                        60, 'c', NULL),
    (7, 'dark dark dark',                                  70, 'd', NULL),
    (8, '',                                                80, 'd', NULL),
    (9, NULL,                                              90, 'd', 'dark');

.print stems, case and accents do not matter
SELECT id FROM memory WHERE content MATCH 'PREFERS';
SELECT id FROM memory WHERE content MATCH 'creme brulee';
SELECT id FROM memory WHERE content MATCH 'CAFÉ';
.print any of the words
SELECT id FROM memory WHERE content MATCH 'sister compiler nosuchword' ORDER BY id;
.print a whole question
SELECT id FROM memory WHERE content MATCH 'what''s my sister''s cat afraid of?' ORDER BY score DESC LIMIT 1;
SELECT id FROM memory WHERE content MATCH 'Which C++ compiler is old?' ORDER BY score DESC LIMIT 1;
.print signs of every kind
SELECT id FROM memory WHERE content MATCH 'C++' ORDER BY id;
SELECT id FROM memory WHERE content MATCH '"quoted';
SELECT id FROM memory WHERE content MATCH '(brackets';
SELECT id FROM memory WHERE content MATCH 'brackets) OR AND NOT NEAR(' ORDER BY rank LIMIT 1;
SELECT id FROM memory WHERE content MATCH 'dash-word';
SELECT id FROM memory WHERE content MATCH 'compiler:';
SELECT id FROM memory WHERE content MATCH '{content}: ^compiler';
SELECT id FROM memory WHERE content MATCH '* * compiler \ % _ '' " ` ~ # @ $ &';
.print other scripts
SELECT id FROM memory WHERE content MATCH '猫が好きです';
SELECT count(*) FROM memory WHERE content MATCH '犬';
.print nothing to look for gives no rows
SELECT count(*) FROM memory WHERE content MATCH '';
SELECT count(*) FROM memory WHERE content MATCH '   ';
SELECT count(*) FROM memory WHERE content MATCH '?!...';
SELECT count(*) FROM memory WHERE content MATCH NULL;
SELECT count(*) FROM memory WHERE content MATCH 'nosuchword';
.print rank and score: the same number with two signs, rows that hold the word more often first
SELECT id, rank < 0, score = -rank, distance FROM memory WHERE content MATCH 'dark';
SELECT id FROM memory WHERE content MATCH 'dark' ORDER BY rank;
SELECT id FROM memory WHERE content MATCH 'dark' ORDER BY rank DESC;
SELECT id FROM memory WHERE content MATCH 'dark' ORDER BY score DESC LIMIT 1 OFFSET 1;
SELECT id FROM memory WHERE content MATCH 'dark' AND k = 1;
.print with filters
SELECT id FROM memory WHERE content MATCH 'the dark cat' AND session = 'a' AND timestamp < 15;
SELECT id FROM memory WHERE content MATCH 'dark' AND session IN ('a', 'b') ORDER BY rank;
SELECT id FROM memory WHERE content MATCH 'dark' AND NOT (session = 'd') ORDER BY score DESC LIMIT 1;
SELECT id FROM memory WHERE content MATCH 'dark' AND score > 0 AND rank < 0 ORDER BY id;
.print the table's own name and the function form find the same
SELECT id FROM memory WHERE memory MATCH 'compiler';
SELECT id FROM memory('compiler');
SELECT id FROM memory WHERE memory = 'compiler';
.print a query from another table
CREATE TABLE asked(n INTEGER, words TEXT);
INSERT INTO asked VALUES (1, 'dark mode?'), (2, 'the vet!'), (3, '');
SELECT n, (SELECT id FROM memory WHERE content MATCH words ORDER BY score DESC LIMIT 1) FROM asked ORDER BY n;
.print words follow an update and a delete
UPDATE memory SET content = 'I prefer bright mode now' WHERE id = 1;
SELECT id FROM memory WHERE content MATCH 'dark';
SELECT id FROM memory WHERE content MATCH 'bright';
UPDATE memory SET importance = 1 WHERE id = 1;
SELECT id FROM memory WHERE content MATCH 'bright';
DELETE FROM memory WHERE id = 7;
SELECT count(*) FROM memory WHERE content MATCH 'dark';
.print and a flush changes nothing
SELECT h5mem_flush('memory') > 0;
SELECT id FROM memory WHERE content MATCH 'bright vet' ORDER BY id;
INSERT INTO memory(id, content, timestamp) VALUES (10, 'The vet is bright', 100);
SELECT id FROM memory WHERE content MATCH 'bright vet' ORDER BY id;
SELECT id FROM memory WHERE content MATCH 'bright vet' LIMIT 1;
.print a tokenizer of one's own: trigrams find parts of words
CREATE VIRTUAL TABLE parts USING h5mem('parts.h5', dim=3, tokenize='trigram');
INSERT INTO parts(id, content) VALUES (1, 'unbelievable'), (2, 'ordinary');
SELECT id FROM parts WHERE content MATCH 'liev';
CREATE VIRTUAL TABLE plain USING h5mem('plain.h5', dim=3, tokenize='unicode61');
INSERT INTO plain(id, content) VALUES (1, 'running shoes'), (2, 'a long run');
SELECT id FROM plain WHERE content MATCH 'run';
