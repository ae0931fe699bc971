-- 0006 control
--
-- Adds     inbox: what others ask of a run, from any process; run.active_us: for how long attached invocations have run it.
-- Why      who asks and who sees to it are not the same process, and what nobody has seen to must stay in sight.
-- Locks    a new table; a new column without a default; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores both; it does not see what is asked).
-- Undo     DROP TABLE inbox; ALTER TABLE run DROP COLUMN active_us;
-- oldest_reader: 1
--
-- entry        in the order in which they were asked
-- kind         cancel: end; steer: take a message into account
-- mode         of a cancel: see CancelMode in ledger/records.py
-- at_id        the root checkpoint at the head of the thread when it was asked
-- reason       of a cancel, in the words of who asked
-- value_type, value  of a steer: the message; type 'json' and its text, or as the saver's serde encodes it
-- attempt_id   of a steer: the attempt that has claimed it
-- consumed_us  when the run did what was asked; null while it waits, and for good if the run ended otherwise first
CREATE TABLE inbox (
    entry        INTEGER PRIMARY KEY,
    run          INTEGER NOT NULL,
    thread_id    TEXT    NOT NULL,
    kind         TEXT    NOT NULL CHECK (kind IN ('cancel', 'steer')),
    mode         TEXT             CHECK (mode IN ('now', 'after_call', 'after_batch')),
    at_id        TEXT    NOT NULL,
    reason       TEXT,
    value_type   TEXT,
    value        BLOB,
    attempt_id   TEXT,
    requested_us INTEGER NOT NULL,
    consumed_us  INTEGER,
    CHECK ((mode IS NOT NULL) = (kind = 'cancel')),
    CHECK ((value IS NOT NULL) = (kind = 'steer') AND (value_type IS NOT NULL) = (kind = 'steer'))
) STRICT;

CREATE INDEX inbox_run ON inbox (run, entry);

CREATE INDEX inbox_attempt ON inbox (attempt_id, entry)
    WHERE attempt_id IS NOT NULL;

-- Looked at by each checkpoint of an attached graph.
CREATE INDEX inbox_waiting ON inbox (thread_id, entry)
    WHERE consumed_us IS NULL;

ALTER TABLE run ADD COLUMN active_us INTEGER;
