-- Queries by which the ledger looks for what should not be so (see verify.py).

-- name: verify_attempts
-- sealed: attempt
SELECT
    attempt_id, marker, digest, writes, status,
    (SELECT run_id FROM run WHERE run.run = attempt.run) AS run_id,
    EXISTS (
        SELECT 1 FROM attempt AS other
        WHERE other.thread_id = attempt.thread_id AND other.checkpoint_id = attempt.checkpoint_id
            AND other.task_id = attempt.task_id AND other.ordinal = attempt.ordinal
            AND other.number < attempt.number AND other.status = 'succeeded'
    ) AS follows_success
FROM attempt WHERE attempt_id > :after
ORDER BY attempt_id
LIMIT :size;

-- name: verify_attempts_of_run
-- sealed: attempt
SELECT
    attempt_id, marker, digest, writes, status,
    (SELECT run_id FROM run WHERE run.run = attempt.run) AS run_id,
    EXISTS (
        SELECT 1 FROM attempt AS other
        WHERE other.thread_id = attempt.thread_id AND other.checkpoint_id = attempt.checkpoint_id
            AND other.task_id = attempt.task_id AND other.ordinal = attempt.ordinal
            AND other.number < attempt.number AND other.status = 'succeeded'
    ) AS follows_success
FROM attempt WHERE run = :run AND attempt_id > :after
ORDER BY attempt_id
LIMIT :size;

-- name: verify_effect_events
-- sealed: event
-- What was told of effects under a run, in order.
SELECT thread_id, checkpoint_ns, checkpoint_id, event, details, stored_us FROM checkpoint_log
WHERE run = :run AND listed IS NULL AND substr(event, 1, 7) = 'effect.'
ORDER BY seq;

-- name: verify_effects
-- Effects of runs that do not exist.
SELECT effect_id FROM effect
WHERE effect_id > :after AND NOT EXISTS (SELECT 1 FROM run WHERE run.run = effect.run)
ORDER BY effect_id
LIMIT :size;

-- name: verify_effects_of_run
SELECT
    effect_id, status, attempt_id,
    EXISTS (SELECT 1 FROM attempt WHERE attempt.attempt_id = effect.attempt_id) AS has_attempt
FROM effect WHERE run = :run
ORDER BY started_us, effect_id;

-- name: verify_interrupts
-- Questions of runs that do not exist.
SELECT thread_id, interrupt_id FROM interrupt
WHERE (thread_id, interrupt_id) > (:thread_id, :interrupt_id)
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.run = interrupt.run)
ORDER BY thread_id, interrupt_id
LIMIT :size;

-- name: verify_pending
SELECT count(*) AS number FROM interrupt WHERE run = :run AND status = 'pending';

-- name: verify_rows
-- Runs that do not exist, and have rows.
SELECT DISTINCT run FROM checkpoint_log
WHERE seq > :after AND seq <= :upto AND run IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.run = checkpoint_log.run);

-- name: verify_run_events
-- How often each event of a run's own life stands in the log, and where last.
SELECT event, count(*) AS number, max(seq) AS last FROM checkpoint_log
WHERE run = :run AND listed IS NULL AND substr(event, 1, 4) = 'run.'
GROUP BY event;

-- name: verify_runs
SELECT run, run_id, status, first_id, gone_upto, events_gone, deleted_thread FROM run WHERE run > :after ORDER BY run LIMIT :size;

-- name: verify_tasks
-- Tasks of a thread whose calls disagree about where they stood. Sorts the calls of the thread.
SELECT checkpoint_id, task_id, min(checkpoint_ns) AS checkpoint_ns, max(checkpoint_ns) AS other_ns,
    min(task_path) AS task_path, max(task_path) AS other_path
FROM checkpoint_log
WHERE thread_id = :thread_id AND listed IS NULL AND task_id IS NOT NULL AND event IS NOT NULL
GROUP BY checkpoint_id, task_id
HAVING min(checkpoint_ns) <> max(checkpoint_ns) OR min(task_path) <> max(task_path);

-- name: verify_thread_after
SELECT min(thread_id) AS thread_id FROM checkpoint_log WHERE thread_id > :after;

-- name: verify_visits
-- The next run that does not exist and has visits.
SELECT min(visit.run) AS run FROM visit
WHERE visit.run > :after AND NOT EXISTS (SELECT 1 FROM run WHERE run.run = visit.run);
