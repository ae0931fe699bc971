-- Queries of what is asked of runs (see migrations/0006_control.sql).

-- name: inbox_add
-- sealed: inbox (requested_us = now_us)
-- :at_id is the newest checkpoint that is being executed, be it the root graph's or a subgraph's.
INSERT INTO inbox (run, thread_id, kind, mode, at_id, reason, value_type, value, requested_us)
VALUES (:run, :thread_id, :kind, :mode, :at_id, :reason, :value_type, :value, :now_us);

-- name: inbox_claim
-- What nobody has claimed yet is claimed by an attempt.
UPDATE inbox SET attempt_id = :attempt_id, consumed_us = :now_us
WHERE run = :run AND kind = 'steer' AND consumed_us IS NULL;

-- name: inbox_claimed
-- sealed: inbox
-- By the attempts of a visit's part, all of them.
SELECT inbox.entry, inbox.run, inbox.kind, inbox.value_type, inbox.value, inbox.requested_us
FROM attempt JOIN inbox ON inbox.attempt_id = attempt.attempt_id
WHERE attempt.thread_id = :thread_id AND attempt.checkpoint_id = :checkpoint_id AND attempt.task_id = :task_id
    AND attempt.ordinal = :ordinal
ORDER BY inbox.entry;

-- name: inbox_consume
UPDATE inbox SET consumed_us = :now_us WHERE run = :run AND kind = :kind AND consumed_us IS NULL;

-- name: inbox_consumed
-- sealed: inbox
-- Whether a run has done what was asked.
SELECT entry, reason, requested_us FROM inbox WHERE run = :run AND kind = :kind AND consumed_us IS NOT NULL ORDER BY entry LIMIT 1;

-- name: inbox_delete
DELETE FROM inbox WHERE run IN (SELECT run FROM run WHERE thread_id = :thread_id);

-- name: inbox_of_run
-- sealed: inbox
SELECT entry, thread_id, kind, mode, reason, value_type, value, attempt_id, requested_us, consumed_us
FROM inbox
WHERE run = :run
ORDER BY entry;

-- name: inbox_of_run_delete
DELETE FROM inbox WHERE run = :run;

-- name: inbox_waiting
-- sealed: inbox
-- The oldest cancel that nobody has seen to of a run, or of the one that a root checkpoint belongs to.
SELECT entry, run, kind, mode, at_id, reason, requested_us FROM inbox
WHERE thread_id = :thread_id AND consumed_us IS NULL AND kind = 'cancel' AND run = coalesce(:run, (
    SELECT place.run FROM checkpoint_log AS place
    WHERE place.thread_id = :thread_id AND place.checkpoint_ns = '' AND place.checkpoint_id = :root_id
        AND place.listed IS NOT NULL
))
ORDER BY entry
LIMIT 1;
