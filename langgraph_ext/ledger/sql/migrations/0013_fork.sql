-- 0013 fork
--
-- Adds     effect_fork: effects that a fork came to and the run it was forked from had committed, and what was chosen.
-- Why      a node may say that its forks ask first, or give the old receipt back; what was chosen is never chosen again.
-- Locks    new table; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the table, and lets forks act).
-- Undo     DROP TABLE effect_fork;
-- oldest_reader: 1
--
-- key             the one that the fork's own effect has, or would have
-- run             the fork's number
-- task_part       which attempt-bearing part of its task has met it
-- ordinal         which question of this sort it is in its task, from 0; null if nobody is asked
-- node_path, iteration_path  of the fork's visit; the latter is the rounds of the enclosing visits and its own, joined by '/'
-- payload_digest  of what the call would be given
-- before_id       the effect of the run that was forked
-- choice          null until it is known
-- receipt_type, receipt  what is given back, if that was chosen
CREATE TABLE effect_fork (
    key            TEXT    PRIMARY KEY,
    run            INTEGER NOT NULL,
    thread_id      TEXT    NOT NULL,
    checkpoint_id  TEXT    NOT NULL,
    task_id        TEXT    NOT NULL,
    task_part      INTEGER NOT NULL,
    ordinal        INTEGER CHECK (ordinal >= 0),
    node_path      TEXT    NOT NULL,
    iteration_path TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    part           TEXT,
    payload_digest TEXT    NOT NULL,
    before_id      TEXT    NOT NULL,
    choice         TEXT    CHECK (choice IN ('act', 'reuse', 'stop')),
    receipt_type   TEXT,
    receipt        BLOB,
    found_us       INTEGER NOT NULL,
    chosen_us      INTEGER,
    CHECK ((choice IS NULL) = (chosen_us IS NULL)),
    CHECK ((receipt IS NULL) = (receipt_type IS NULL)),
    CHECK ((receipt IS NOT NULL) = (choice IS NOT NULL AND choice = 'reuse'))
) STRICT;

CREATE INDEX effect_fork_run ON effect_fork (run, before_id);

CREATE INDEX effect_fork_task ON effect_fork (thread_id, checkpoint_id, task_id, ordinal);
