-- Time: numbers and SQLite's own functions bound a window; an ISO text on input means UTC.
CREATE VIRTUAL TABLE memory USING h5mem('time.h5', dim=2);
INSERT INTO memory(id, content, embedding, timestamp, session) VALUES
    (1, 'october',    '[1, 0]', '2026-10-31T23:59:59Z', 's-1'),
    (2, 'first',      '[1, 0]', '2026-11-01T00:00:00Z', 's-1'),
    (3, 'afternoon',  '[0, 1]', '2026-11-15 16:30',     's-2'),
    (4, 'last',       '[1, 1]', '2026-11-30',           's-2'),
    (5, 'december',   '[1, 0]', '2026-12-01T00:00:00Z', 's-2'),
    (6, 'long ago',   '[1, 0]', '1970-01-01T00:00:00Z', 's-0'),
    (7, 'before that','[1, 0]', '1969-12-31T23:59:59.5Z','s-0');

.print a window, ends included
SELECT id FROM memory WHERE timestamp BETWEEN unixepoch('2026-11-01') AND unixepoch('2026-11-30') ORDER BY timestamp;
.print half open
SELECT id FROM memory WHERE timestamp >= unixepoch('2026-11-01') AND timestamp < unixepoch('2026-12-01') ORDER BY timestamp DESC;
.print before, after, latest
SELECT id FROM memory WHERE timestamp < 0;
SELECT id FROM memory WHERE timestamp <= 0 ORDER BY timestamp;
SELECT id FROM memory WHERE timestamp > unixepoch('2026-11-30') ORDER BY id;
SELECT id FROM memory ORDER BY timestamp DESC LIMIT 2;
SELECT content, datetime(timestamp, 'unixepoch') FROM memory WHERE timestamp = unixepoch('2026-11-15 16:30');
.print an empty window, and one upside down
SELECT count(*) FROM memory WHERE timestamp BETWEEN 5 AND 6;
SELECT count(*) FROM memory WHERE timestamp BETWEEN 6 AND 5;
SELECT count(*) FROM memory WHERE timestamp > NULL;
.print fractions
SELECT id, timestamp FROM memory WHERE timestamp BETWEEN -0.75 AND -0.25;
.print with a session, nearest first
SELECT id FROM memory WHERE embedding MATCH '[1, 0]' AND session = 's-2'
    AND timestamp BETWEEN unixepoch('2026-11-01') AND unixepoch('2026-12-31') ORDER BY distance;
.print with words
SELECT id FROM memory WHERE content MATCH 'first last december' AND timestamp < unixepoch('2026-12-01') ORDER BY id;
.print grouped by month
SELECT strftime('%Y-%m', timestamp, 'unixepoch') AS month, count(*) FROM memory WHERE timestamp > 0 GROUP BY month;
.print a timestamp moves
UPDATE memory SET timestamp = '2026-11-02T12:00:00Z' WHERE id = 1;
SELECT id, timestamp FROM memory WHERE timestamp BETWEEN unixepoch('2026-11-01') AND unixepoch('2026-11-30')
 ORDER BY timestamp LIMIT 2;
.print and after a flush
SELECT h5mem_flush('memory') > 0;
SELECT id, timestamp FROM memory WHERE timestamp BETWEEN unixepoch('2026-11-01') AND unixepoch('2026-11-30')
 ORDER BY timestamp LIMIT 2;
.print as of then: superseded rows are skipped by searches, and seen by scans
UPDATE memory SET valid_to = unixepoch('2026-11-20'), superseded_by = 5 WHERE id = 2;
SELECT id FROM memory WHERE embedding MATCH '[1, 0]' AND session = 's-1' ORDER BY id;
SELECT id FROM memory WHERE content MATCH 'first';
SELECT id FROM memory WHERE content MATCH 'first' AND as_of = unixepoch('2026-11-19');
SELECT id FROM memory WHERE content MATCH 'first' AND as_of = unixepoch('2026-11-21');
SELECT id, superseded_by FROM memory WHERE id = 2;
SELECT count(*) FROM memory WHERE valid_to IS NULL;
