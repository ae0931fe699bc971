-- 0021 encryption
--
-- Adds     encryption_key: by which keys a database's payloads were sealed; of a piece of a strand that is sealed, how many
--          bytes it holds.
-- Why      who opens a database that is encrypted without a key, or a plain one with a key, is refused.
-- Locks    a new table; a column that is null.
-- Safe     before the code that uses it: yes. Of a database that is encrypted, this row's oldest_reader is raised to 21, for
--          older code cannot read it.
-- Undo     DROP TABLE encryption_key; ALTER TABLE strand_piece DROP COLUMN size; not of a database that is encrypted.
-- oldest_reader: 19
--
-- encryption_key, a row for each key that has ever sealed something here; none: the database is plain
--   name        the key's
--   proof       some bytes that it has sealed: another key of that name does not open them
--   converting  1 while a plain database is being encrypted; nothing but that may use it meanwhile
--   added_us    since when
-- strand_piece.size   null: its bytes are plain
CREATE TABLE encryption_key (
    name       TEXT    PRIMARY KEY,
    proof      BLOB    NOT NULL,
    converting INTEGER NOT NULL CHECK (converting IN (0, 1)),
    added_us   INTEGER NOT NULL
) STRICT;

ALTER TABLE strand_piece ADD COLUMN size INTEGER CHECK (size > 0);
