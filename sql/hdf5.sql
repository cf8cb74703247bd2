-- hdf5.sql: plain HDF5 files from SQL.  From the project's root, after make:
--
--     sqlite3 < sql/hdf5.sql
--
-- sql/station.h5 is a small file as instruments write them (hdf5_build.py made it); put your own in its place.
.load ./h5mem

-- 1. What is in a file?
SELECT path, kind, dtype, shape, filters, target FROM hdf5_objects('sql/station.h5');

-- 2. Every attribute of every object
SELECT o.path, a.name, a.value
  FROM hdf5_objects('sql/station.h5') AS o, hdf5_attributes('sql/station.h5', o.path) AS a
 WHERE o.attrs > 0;

-- 3. How much room do the datasets take before compression, the largest first?
SELECT path, bytes FROM hdf5_objects('sql/station.h5') WHERE kind = 'dataset' ORDER BY bytes DESC LIMIT 3;

-- 4. A range of indices: only the chunks that it touches are read
SELECT i0, round(value, 1) FROM hdf5_values('sql/station.h5', '/readings/temperature') WHERE i0 BETWEEN 30 AND 33;

-- 5. Every 24th value from the 12th on: noon of each day
SELECT i0 / 24 AS day, round(value, 1) FROM hdf5_values('sql/station.h5', '/readings/temperature', 12, NULL, 24);

-- 6. Two datasets side by side, by day; NaN is NULL, which aggregates leave out
CREATE VIRTUAL TABLE temp.time USING hdf5('sql/station.h5', '/readings/time');
CREATE VIRTUAL TABLE temp.rain USING hdf5('sql/station.h5', '/readings/rain');
SELECT date(time.value, 'unixepoch') AS day, count(rain.value) AS readings, round(sum(rain.value), 1) AS mm
  FROM time JOIN rain ON rain.rowid = time.rowid
 GROUP BY day;

-- 7. A compound dataset is a table: a column a field, enums by name, inner arrays as JSON
CREATE VIRTUAL TABLE temp.events USING hdf5('sql/station.h5', '/events');
SELECT hour, text, sensors ->> 0 AS sensor FROM events WHERE kind <> 'NOTE' ORDER BY hour;

-- 8. ... and joins with tables of your own
CREATE TEMP TABLE sensor(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO sensor VALUES (2, 'wind vane'), (4, 'rain gauge'), (7, 'anemometer'), (9, 'battery');
SELECT sensor.name, count(*) FROM events, json_each(events.sensors) AS s JOIN sensor ON sensor.id = s.value
 GROUP BY sensor.name;

-- 9. A matrix is a table with the columns c0, c1, ...; or element by element
CREATE VIRTUAL TABLE temp.image USING hdf5('sql/station.h5', '/image');
SELECT rowid, c0, c7 FROM image WHERE rowid < 2;
SELECT i1, max(value) FROM hdf5_values('sql/station.h5', '/image') WHERE i1 IN (0, 7) GROUP BY i1;

-- 10. Variable-length values are JSON, references the path of what they point to
SELECT n.value AS word, group_concat(o.value) AS synonyms
  FROM hdf5_values('sql/station.h5', '/words/name') AS n
  JOIN hdf5_values('sql/station.h5', '/words/synonyms') AS s ON s.i0 = n.i0,
       json_each(s.value) AS j
  JOIN hdf5_values('sql/station.h5', '/words/name') AS o ON o.i0 = j.value
 GROUP BY n.i0;
SELECT value FROM hdf5_values('sql/station.h5', '/main');

-- 11. Rows as BLOBs for the vector functions: what is nearest to storm?
SELECT value AS word,
       round(h5mem_distance(hdf5_read('sql/station.h5', '/words/vector', json_array(i0, 0), '[1,4]'),
                            hdf5_read('sql/station.h5', '/words/vector', '[2,0]', '[1,4]')), 3) AS distance
  FROM hdf5_values('sql/station.h5', '/words/name') ORDER BY distance LIMIT 3;

-- 12. A store of memories is an HDF5 file too
SELECT count(*) > 100 FROM hdf5_values('sql/demo.h5', '/memory/id');
