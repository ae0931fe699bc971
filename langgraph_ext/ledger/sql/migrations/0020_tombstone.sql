-- 0020 tombstone
--
-- Adds     tombstone: what was deleted, so that it does not come again; kept_thread: deleted threads of which the ledger was
--          kept; event_horizon: up to where events were taken away; of a run, how many of its events are gone.
-- Why      who still writes to a thread that was deleted is refused, in any process; who reads events by a stored cursor is
--          told when some of them are gone.
-- Locks    new tables; columns with defaults; the index reads every effect once.
-- Safe     before the code that uses it: yes (older code ignores them; what it deletes leaves no tombstone, and what it
--          writes late is not refused).
-- Undo     DROP TABLE tombstone; DROP TABLE kept_thread; DROP TABLE event_horizon; DROP INDEX run_deleted;
--          DROP INDEX effect_open; ALTER TABLE run DROP COLUMN deleted_thread; … events_gone; … gone_upto;
-- oldest_reader: 1
--
-- newest_id   the greatest checkpoint id that was ever deleted with the thread
-- deletions   how often it was deleted: which life it is in
-- The row stays when the thread begins anew.
CREATE TABLE tombstone (
    thread_id  TEXT    PRIMARY KEY,
    newest_id  TEXT    NOT NULL,
    deletions  INTEGER NOT NULL CHECK (deletions > 0),
    deleted_us INTEGER NOT NULL
) STRICT;

-- kept_id     the name under which the rows of a deleted thread stand that were kept; nobody else has it
-- thread_id   the name that the thread had
-- seq         the row of the log that says that it was deleted: all that was kept stands before it
CREATE TABLE kept_thread (
    kept_id   TEXT    PRIMARY KEY,
    thread_id TEXT    NOT NULL,
    seq       INTEGER NOT NULL
) STRICT;

CREATE INDEX kept_thread_of ON kept_thread (thread_id);

CREATE INDEX kept_thread_seq ON kept_thread (seq);

-- One row, from the first time on that events were taken away because of their age.
-- seq   the last row of the log whose events are not shown any more
-- upto  the cursor of the last event that is not
CREATE TABLE event_horizon (
    one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    seq  INTEGER NOT NULL,
    upto INTEGER NOT NULL
) STRICT;

-- deleted_thread  of a run whose thread was deleted, and which was kept: the name that the thread had
-- gone_upto       the cursor of its last event that is not shown any more; 0 if all of them are
-- events_gone     how many of its events there were up to there
ALTER TABLE run ADD COLUMN deleted_thread TEXT;

ALTER TABLE run ADD COLUMN gone_upto INTEGER NOT NULL DEFAULT 0;

ALTER TABLE run ADD COLUMN events_gone INTEGER NOT NULL DEFAULT 0;

CREATE INDEX run_deleted ON run (deleted_thread, run)
    WHERE deleted_thread IS NOT NULL;

-- Looked at by whoever takes history away.
CREATE INDEX effect_open ON effect (thread_id)
    WHERE status IN ('started', 'unknown');
