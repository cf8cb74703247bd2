-- Functions and commands.
CREATE VIRTUAL TABLE memory USING h5mem('fn.h5', dim=3, agent='tester');
INSERT INTO memory(id, content, embedding, timestamp) VALUES (1, 'one', '[1, 0, 0]', 1), (2, 'two', '[0, 1, 0]', 2);

.print version and info
SELECT h5mem_version() GLOB '[0-9]*.[0-9]*.[0-9]*';
SELECT count(*) > 3, sum(name = 'version'), sum(value IS NULL) FROM h5mem_info;
SELECT value = h5mem_version() FROM h5mem_info WHERE name = 'version';

.print vectors: to a blob, to JSON, and how far apart
SELECT hex(h5mem_vector('[1, -2, 0.5]'));
SELECT group_concat(printf('%g', value)) FROM json_each(h5mem_vector_json(x'0000803f000000c00000003f'));
SELECT group_concat(printf('%g', value)) FROM json_each(h5mem_vector_json(h5mem_vector('[0.1, 1e10, -3]')));
SELECT h5mem_vector(h5mem_vector_json(embedding)) = embedding FROM memory WHERE id = 1;
SELECT h5mem_distance(h5mem_vector('[1, 0]'), h5mem_vector('[0, 1]'));
SELECT h5mem_distance(h5mem_vector('[0, 0]'), h5mem_vector('[3, 4]'), 'l2');
SELECT h5mem_distance(h5mem_vector('[1, 2]'), h5mem_vector('[3, 4]'), 'ip');
SELECT h5mem_distance(h5mem_vector('[0, 0]'), h5mem_vector('[3, 4]'), 'cosine');
SELECT id FROM memory ORDER BY h5mem_distance(embedding, h5mem_vector('[0, 1, 0]')) LIMIT 1;

.print flush, as a function and as a command
SELECT h5mem_flush('memory');
SELECT h5mem_flush('memory');
INSERT INTO memory(id, content) VALUES (3, 'three');
INSERT INTO memory(memory) VALUES ('flush');
SELECT h5mem_flush('main.memory');
SELECT count(*) FROM memory;

.print config: read, set, kept in the file
SELECT h5mem_config('memory', 'dim'), h5mem_config('memory', 'metric'), h5mem_config('memory', 'agent');
SELECT h5mem_config('memory', 'tokenize');
SELECT h5mem_config('memory', 'autoflush');
SELECT h5mem_config('memory', 'agent', 'somebody');
SELECT h5mem_config('memory', 'autoflush', 100000);
BEGIN;
SELECT h5mem_config('memory', 'agent', 'nobody');
ROLLBACK;
SELECT h5mem_config('memory', 'agent'), h5mem_config('memory', 'autoflush');
DROP TABLE memory;
CREATE VIRTUAL TABLE memory USING h5mem('fn.h5');
SELECT h5mem_config('memory', 'agent'), h5mem_config('memory', 'autoflush'), h5mem_config('memory', 'dim');

.print stats is JSON
SELECT json_valid(h5mem_stats('memory')), json_type(h5mem_stats('memory'));

.print import: ids are kept, all or nothing
CREATE VIRTUAL TABLE copy USING h5mem('copy.h5', dim=3);
SELECT h5mem_import('copy', 'fn.h5', 'h5mem');
SELECT id, content, hex(embedding), timestamp FROM copy WHERE id < 3 ORDER BY id;
SELECT id FROM copy WHERE embedding MATCH '[0, 1, 0]' AND k = 1;
SELECT id FROM copy WHERE content MATCH 'three';
BEGIN;
DELETE FROM copy;
SELECT h5mem_import('copy', 'fn.h5', 'h5mem');
SELECT count(*) FROM copy;
ROLLBACK;
SELECT count(*) FROM copy;
.print import again: what is there is left alone
SELECT h5mem_import('copy', 'fn.h5', 'h5mem');
SELECT count(*), count(DISTINCT id), sum(content = 'two') FROM copy;

.print compressed stores answer the same
CREATE VIRTUAL TABLE z USING h5mem('z.h5', dim=3, compression=zstd:3);
CREATE VIRTUAL TABLE d USING h5mem('d.h5', dim=3, compression='deflate:6');
SELECT h5mem_import('z', 'fn.h5', 'h5mem'), h5mem_import('d', 'fn.h5', 'h5mem');
SELECT h5mem_flush('z'), h5mem_flush('d');
SELECT z.id, z.content, z.embedding IS d.embedding FROM z JOIN d USING (id) ORDER BY 1;
