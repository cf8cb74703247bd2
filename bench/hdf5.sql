-- Plain HDF5 files, read: by a call from C, from opening to closing, and by the SQL function or table beside it. The
-- file is in the page cache; `ram`: its bytes are in memory before; `map`: values are read where the file is mapped.
--! subsystem hdf5

--! repeat f32_1000,45.2~us~by~libhdf5,1000,4 f32_10000,47.8~us~by~libhdf5,10000,4 f32_100000,73.9~us~by~libhdf5,100000,4 f64_10000,from_disk~10K~10.1~us,10000,8 f64_100000,from_disk~100K~77.6~us,100000,8
--! row read_$1_c per $3 numbers
--! answers clawhdf5: sequential read, $2
--! setup
SELECT bench_h5('bench.h5') WHERE NOT EXISTS (SELECT 1 FROM sqlite_temp_master WHERE name = 'made');
CREATE TEMP TABLE IF NOT EXISTS made(n);
--! core h5:disk/$1 500
--! same 0
--! truth 1 1
SELECT $3, ($3 - 1) / 2.0;

--! row read_$1 per $3 numbers
--! answers the row above through SQL
--! timed 500
SELECT hdf5_read('bench.h5', '/$1');
--! check
SELECT bench_sum(hdf5_read('bench.h5', '/$1'), $4) = $3 * ($3 - 1.0) / 4 AND length(hdf5_read('bench.h5', '/$1')) = $3 * $4;
--! end

--! repeat f32_1000,634~ns,1000 f32_100000,24.5~us,100000
--! row ram_$1_c per $3 numbers
--! answers clawhdf5: sequential read, $2, the file's bytes in memory
--! core h5:ram/$1 500
--! same 0
--! truth 1 1
SELECT $3, ($3 - 1) / 2.0;
--! end

--! repeat f64_1000,7.86~us,1000 f64_10000,19.0~us,10000 f64_100000,112~us,100000
--! row map_$1_c per $3 numbers
--! answers clawhdf5: mapped read with all pages touched, $2; every number is added up here
--! core h5:map/$1 500
--! same 0
--! truth 1 1
SELECT $3, $3 * ($3 - 1.0) / 4;
--! end

--! repeat f64_10000,4.09~us,1000 f64_100000,50.1~us,10000
--! row tenth_$1_c per $3 numbers
--! answers clawhdf5: hyperslab 10 %, $2: it reads all and keeps a tenth
--! core h5:tenth/$1 500
--! same 0
--! truth 1 1
SELECT $3, ($3 - 1) / 2.0;
--! row tenth_$1 per $3 numbers
--! answers the row above through SQL
--! timed 500
SELECT hdf5_read('bench.h5', '/$1', 0, $3);
--! check
SELECT bench_sum(hdf5_read('bench.h5', '/$1', 0, $3), 8) = $3 * ($3 - 1.0) / 4;
--! end

--! repeat c64,6.39~us,4096 c256,41.7~us,65536 c512,176~us,262144 z512,(reading~it~is~not~published),262144
--! row chunked_$1_c per $3 numbers
--! answers clawhdf5: chunked read, $2
--! core h5:disk/$1 200
--! same 0
--! truth 1 1
SELECT $3, ($3 - 1) / 2.0;
--! row chunked_$1 per $3 numbers
--! answers the row above through SQL
--! timed 200
SELECT hdf5_read('bench.h5', '/$1');
--! check
SELECT bench_sum(hdf5_read('bench.h5', '/$1'), 4) = $3 * ($3 - 1.0) / 4;
--! end

--! repeat 4,1.06~us 16,3.64~us 64,15.7~us 128,31.3~us
--! row attributes_$1_c per $1 attributes
--! answers clawhdf5: attrs_read $1, $2, the file's bytes in memory
--! core h5:ram/a$1 500
--! same 0
--! truth 1 1
SELECT $1, $1 * ($1 - 1.0) / 2;
--! row attributes_$1 per $1 attributes
--! answers the row above through SQL, from the file
--! timed 300
SELECT count(*), sum(value) FROM hdf5_attributes('bench.h5', '/a$1');
--! same 0
--! truth 1 1
SELECT $1, $1 * ($1 - 1.0) / 2;
--! end

--! repeat 4,5.17~us 16,16.5~us 64,33.6~us~(of~32)
--! row strings_$1_c per $1 attributes
--! answers clawhdf5: string_attrs $1, $2, written and read in memory; here read
--! core h5:ram/s$1 500
--! same 0
--! truth 1 1
SELECT $1, 12 * $1;
--! row strings_$1 per $1 attributes
--! answers the row above through SQL, from the file
--! timed 300
SELECT count(*), sum(length(value)) FROM hdf5_attributes('bench.h5', '/s$1');
--! same 0
--! truth 1 1
SELECT $1, 12 * $1;
--! end

--! repeat 4,664~ns 16,3.55~us 64,10.6~us
--! row groups_$1_c per $1 groups
--! answers clawhdf5: groups_traverse $1, $2, names alone; here each is opened
--! core h5:ram/g$1 500
--! same 0
--! truth 1 1
SELECT $1, $1;
--! end

--! row datasets_64_c per 64 datasets
--! answers clawhdf5: multi_dataset_write 64, 104 us; here they are opened, which it has no row for
--! core h5:ram/d64 300
--! same 0
--! truth 1 1
SELECT 64, 6400;

--! row objects per 1 walks
--! answers no row: every object of the file, through SQL
--! timed 100
SELECT count(*), sum(kind = 'dataset') FROM hdf5_objects('bench.h5');
--! same 0
--! truth 1 1
SELECT 193, 94;
