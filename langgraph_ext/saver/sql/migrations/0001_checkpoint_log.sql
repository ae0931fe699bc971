-- 0001 checkpoint_log
--
-- Adds     checkpoint_log: one row for each put and each put_writes, in the order of their commits (seq).
-- Why      LangGraph commits in steps; one row a call is one page to sync, and its order is the order of what happened.
-- Locks    new table; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the table).
-- Undo     DROP TABLE checkpoint_log;
-- oldest_reader: 1
--
-- A row of a put holds metadata, places, the checkpoint's own fields (body) and the values it was the first to carry
-- (data). A row of a call, made by put_writes, lists its writes in order (body) and holds their values (data).
--
-- seq         the order of the commits (SQLite's one writer). The highest may come again after its row was deleted
-- listed      in puts: 1; 0 when prune took it out of sight but a DeltaChannel below still needs it. Null exactly in calls
-- answers     how many answers (LangGraph's __resume__ list) a task says it was given; null in calls without such a list
-- partial     1 in a call of a failing task whose other writes are stored and not shown (saver/writes.py)
-- run_id      metadata's run_id of a put that belongs to a run (a copied thread's rows belong to none)
-- places      of a put: where each channel's value lies (saver/values.py)
-- body        of a put: saver/fields.py; of a call: saver/writes.py
-- data        encoded values, end to end
CREATE TABLE checkpoint_log (
    seq           INTEGER PRIMARY KEY,
    listed        INTEGER,
    thread_id     TEXT    NOT NULL,
    checkpoint_ns TEXT    NOT NULL,
    checkpoint_id TEXT    NOT NULL,
    parent_id     TEXT,
    task_id       TEXT,
    task_path     TEXT,
    answers       INTEGER,
    partial       INTEGER,
    run_id        TEXT,
    stored_us     INTEGER NOT NULL,
    metadata      BLOB,
    places        BLOB,
    body          BLOB    NOT NULL,
    data          BLOB    NOT NULL,
    CHECK ((task_id IS NULL) = (listed IS NOT NULL))
) STRICT;

-- Puts and calls share it, so that the two rows of a step touch one page of it. In SQLite it holds what a filtered listing
-- looks at, so that it passes over checkpoints without reading their rows; a checkpoint's calls stand in it by seq.
-- One put for each checkpoint id: see put_insert.
CREATE INDEX checkpoint_log_place ON checkpoint_log (
    thread_id, checkpoint_ns, checkpoint_id, listed /*sqlite , metadata */
);

CREATE INDEX checkpoint_log_answers ON checkpoint_log (thread_id, seq)
    WHERE answers IS NOT NULL;

CREATE INDEX checkpoint_log_run ON checkpoint_log (run_id)
    WHERE run_id IS NOT NULL;
