-- 0010 memo
--
-- Adds     memo: small values that a durable node keeps between its attempts and its rounds.
-- Why      what was found out, or paid for, in one attempt is there in the next.
-- Locks    new table; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the table; it deletes no memos with their threads).
-- Undo     DROP TABLE memo;
-- oldest_reader: 1
--
-- scope, place, node_path  whose it is, as in visit (0009_visit.sql): all visits of a node there share it
-- value_type, value        type 'json' and its text, or as the saver's serde encodes it
-- attempt_id               the attempt that wrote it last
CREATE TABLE memo (
    run        INTEGER NOT NULL,
    scope      TEXT    NOT NULL,
    place      INTEGER NOT NULL,
    node_path  TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    thread_id  TEXT    NOT NULL,
    value_type TEXT    NOT NULL,
    value      BLOB    NOT NULL,
    attempt_id TEXT    NOT NULL,
    written_us INTEGER NOT NULL,
    PRIMARY KEY (run, scope, place, node_path, key)
) STRICT;
