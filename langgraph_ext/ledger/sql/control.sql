-- Queries of what is asked of runs (see migrations/0006_control.sql).

-- name: inbox_add
INSERT INTO inbox (run, thread_id, kind, reason, requested_us)
VALUES (:run, :thread_id, :kind, :reason, :now_us);

-- name: inbox_consume
UPDATE inbox SET consumed_us = :now_us WHERE run = :run AND kind = :kind AND consumed_us IS NULL;

-- name: inbox_consumed
-- Whether a run has done what was asked.
SELECT entry, reason FROM inbox WHERE run = :run AND kind = :kind AND consumed_us IS NOT NULL ORDER BY entry LIMIT 1;

-- name: inbox_delete
DELETE FROM inbox WHERE run IN (SELECT run FROM run WHERE thread_id = :thread_id);

-- name: inbox_of_run
SELECT entry, thread_id, kind, reason, requested_us, consumed_us FROM inbox WHERE run = :run ORDER BY entry;

-- name: inbox_of_run_delete
DELETE FROM inbox WHERE run = :run;

-- name: inbox_waiting
-- The oldest entry that nobody has seen to of a run, or of the one that a root checkpoint belongs to.
SELECT entry, kind, reason FROM inbox
WHERE thread_id = :thread_id AND consumed_us IS NULL AND run = coalesce(:run, (
    SELECT place.run FROM checkpoint_log AS place
    WHERE place.thread_id = :thread_id AND place.checkpoint_ns = '' AND place.checkpoint_id = :root_id
        AND place.listed IS NOT NULL
))
ORDER BY entry
LIMIT 1;
