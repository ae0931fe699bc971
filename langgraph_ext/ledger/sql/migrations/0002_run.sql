-- 0002 run
--
-- Adds     run, interrupt, attempt: what the ledger compares and sets. Visits and most events are rows of checkpoint_log.
-- Why      who was first to end a run, to answer a question, to settle an attempt is decided here, by compare-and-set.
-- Locks    new tables; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the tables).
-- Undo     DROP TABLE run; DROP TABLE interrupt; DROP TABLE attempt;
-- oldest_reader: 1
--
-- run         its number, in the order of their beginnings; rows of checkpoint_log carry it
-- run_id      its name: metadata's run_id of its first checkpoint, or else that checkpoint's id
-- first_id    the root checkpoint it began with
-- last_id     the root checkpoint at which its status changed last
-- fork_of     the run_id of the run whose checkpoint it branched off
CREATE TABLE run (
    run           INTEGER NOT NULL PRIMARY KEY,
    run_id        TEXT    NOT NULL UNIQUE,
    thread_id     TEXT    NOT NULL,
    first_id      TEXT    NOT NULL,
    last_id       TEXT    NOT NULL,
    fork_of       TEXT,
    status        TEXT    NOT NULL CHECK (status IN (
        'running', 'paused', 'idle', 'failed', 'recovery_required', 'succeeded', 'cancelled', 'budget_exhausted',
        'compensating', 'reconciliation_required'
    )),
    error_type    TEXT,
    error_message TEXT,
    started_us    INTEGER NOT NULL,
    changed_us    INTEGER NOT NULL,
    ended_us      INTEGER,
    CHECK ((ended_us IS NOT NULL) = (status IN ('succeeded', 'cancelled', 'budget_exhausted')))
) STRICT;

CREATE INDEX run_thread ON run (thread_id, run);

CREATE INDEX run_status ON run (status, run);

-- interrupt_id  LangGraph's public id: one for each question of a task
-- ordinal       which question of its task, from 0
-- root_id       the root checkpoint that was being executed
-- kind          the payload's own "kind", if it is an object that has one
-- value_type, value  the payload: type 'json' and its text, or as the saver's serde encodes it
-- status        pending -> answered | superseded (the run went on without an answer)
CREATE TABLE interrupt (
    thread_id     TEXT    NOT NULL,
    interrupt_id  TEXT    NOT NULL,
    run           INTEGER NOT NULL,
    checkpoint_ns TEXT    NOT NULL,
    checkpoint_id TEXT    NOT NULL,
    root_id       TEXT    NOT NULL,
    task_id       TEXT    NOT NULL,
    task_path     TEXT    NOT NULL,
    ordinal       INTEGER NOT NULL,
    kind          TEXT,
    value_type    TEXT    NOT NULL,
    value         BLOB    NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'answered', 'superseded')),
    requested_us  INTEGER NOT NULL,
    closed_us     INTEGER,
    PRIMARY KEY (thread_id, interrupt_id),
    CHECK ((closed_us IS NULL) = (status = 'pending'))
) STRICT;

CREATE INDEX interrupt_run ON interrupt (run, requested_us, interrupt_id);

CREATE INDEX interrupt_pending ON interrupt (thread_id, root_id, requested_us, interrupt_id)
    WHERE status = 'pending';

-- checkpoint_ns, checkpoint_id, task_id  the visit, as the saver is told it
-- ordinal     which attempt-bearing part of its task, from 0 (a task may call several durable functions)
-- number      which attempt of its visit, from 1
-- epoch       the fencing epoch of the lease it runs under
-- status      see ledger/attempts.py for the moves. Paused and succeeded only by a marker; a running one that has a
--             marker goes on after a pause; who ended otherwise has none
-- marker      its end: canonical JSON (ledger/settlement.py); digest is the marker's; writes stand beside it
CREATE TABLE attempt (
    attempt_id    TEXT    PRIMARY KEY,
    run           INTEGER NOT NULL,
    thread_id     TEXT    NOT NULL,
    checkpoint_ns TEXT    NOT NULL,
    checkpoint_id TEXT    NOT NULL,
    task_id       TEXT    NOT NULL,
    ordinal       INTEGER NOT NULL,
    number        INTEGER NOT NULL CHECK (number > 0),
    epoch         INTEGER NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN (
        'running', 'paused', 'succeeded', 'failed', 'cancelled', 'timed_out', 'interrupted'
    )),
    digest        TEXT,
    started_us    INTEGER NOT NULL,
    ended_us      INTEGER,
    marker        BLOB,
    writes        BLOB,
    UNIQUE (thread_id, checkpoint_id, task_id, ordinal, number),
    CHECK ((marker IS NULL) = (digest IS NULL) AND (marker IS NULL) = (writes IS NULL)),
    CHECK (marker IS NOT NULL OR status NOT IN ('paused', 'succeeded')),
    CHECK (marker IS NULL OR status IN ('running', 'paused', 'succeeded')),
    CHECK ((ended_us IS NOT NULL) = (status NOT IN ('running', 'paused')))
) STRICT;

CREATE INDEX attempt_run ON attempt (run);

-- Whose owner may be gone: looked at by each admission.
CREATE INDEX attempt_running ON attempt (thread_id, epoch)
    WHERE status = 'running';
