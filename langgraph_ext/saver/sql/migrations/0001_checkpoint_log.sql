-- 0001 checkpoint_log
--
-- Adds     checkpoint_log: one row for each put, each put_writes and each event of their own, in the order of their
--          commits (seq).
-- Why      LangGraph commits in steps; one row a call is one page to sync, and its order is the order of what happened.
-- Locks    new table; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the table).
-- Undo     DROP TABLE checkpoint_log;
-- oldest_reader: 1
--
-- Three kinds of rows:
--
--   put    (listed is not null)                 metadata, places, the checkpoint's own fields (body), and the values it
--                                               was the first to carry (data)
--   call   (task_id is not null)                made by put_writes: its writes in order (body), their values (data).
--                                               A task's call is also an event of the ledger: how its visit went
--   event  (neither; event and run are not)     what happened to a run besides: run.started, interrupt.requested, …
--
-- seq         the order of the commits (SQLite's one writer), and the cursor of whoever reads events. What deletes rows
--             leaves an event behind them, so that no number comes again
-- listed      in puts: 1; 0 when prune took it out of sight but a DeltaChannel below still needs it
-- answers     how many answers (LangGraph's __resume__ list) a task says it was given; null in calls without such a list
-- partial     1 in a call of a failing task whose other writes are stored and not shown (saver/writes.py)
-- run_id      metadata's run_id of a put that belongs to a run (a copied thread's rows belong to none)
-- run         of a root graph's put, and of an event: the run it belongs to (0002_run.sql)
-- root_id     of a subgraph's put: the root checkpoint that its run was executing
-- inside      of a subgraph's put: the task that runs the subgraph
-- sends       of a put with scheduled tasks (LangGraph's Send): the names of their nodes, a JSON list
-- event       what the row is an event of: `noun.verb`; null in puts, and in calls that no task made (an answer, an input)
-- details     of an event: a JSON object; of a failed visit its error
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
    run           INTEGER,
    root_id       TEXT,
    inside        TEXT,
    sends         TEXT,
    event         TEXT,
    details       TEXT,
    stored_us     INTEGER NOT NULL,
    metadata      BLOB,
    places        BLOB,
    body          BLOB    NOT NULL,
    data          BLOB    NOT NULL,
    CHECK (listed IS NULL OR task_id IS NULL),
    CHECK (listed IS NOT NULL OR task_id IS NOT NULL OR event IS NOT NULL)
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

CREATE INDEX checkpoint_log_root ON checkpoint_log (thread_id, root_id)
    WHERE root_id IS NOT NULL;

CREATE INDEX checkpoint_log_events ON checkpoint_log (run, seq)
    WHERE listed IS NULL AND run IS NOT NULL;
