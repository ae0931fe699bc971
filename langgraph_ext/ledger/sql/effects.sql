-- Queries of effects (see migrations/0004_effect.sql).

-- name: effect_begin
-- sealed: effect
INSERT INTO effect (
    effect_id, attempt_id, run, thread_id, checkpoint_ns, checkpoint_id, task_id, ordinal, node_path, iteration_path,
    epoch, name, part, key, business, payload_digest, status, tries, compensate, started_us, calling_us
) VALUES (
    :effect_id, :attempt_id, :run, :thread_id, :checkpoint_ns, :checkpoint_id, :task_id, :ordinal, :node_path,
    :iteration_path, :epoch, :name, :part, :key, :business, :payload_digest, 'started', 1, :compensate, :now_us, :now_us
);

-- name: effect_doubt
-- Compare-and-set: the call that was running is over, and nobody knows what it did.
UPDATE effect SET status = 'unknown', calling_us = NULL
WHERE effect_id = :effect_id AND status = :expected AND calling_us IS NOT NULL;

-- name: effect_get
-- sealed: effect
SELECT * FROM effect WHERE effect_id = :effect_id;

-- name: effect_move
-- sealed: effect
-- Compare-and-set.
UPDATE effect SET
    status = :target, receipt_type = :receipt_type, receipt = :receipt, calling_us = NULL, ended_us = :ended_us
WHERE effect_id = :effect_id AND status = :expected;

-- name: effect_of_key
-- sealed: effect
-- The one that holds a key.
SELECT * FROM effect WHERE key = :key AND status <> 'not_happened';

-- name: effect_record
-- sealed: effect
SELECT effect.*, run.run_id, attempt.status AS attempt_status, attempt.epoch AS attempt_epoch,
    (SELECT before_id FROM effect_fork WHERE effect_fork.key = effect.key) AS again_of
FROM effect LEFT JOIN run ON run.run = effect.run LEFT JOIN attempt ON attempt.attempt_id = effect.attempt_id
WHERE effect.effect_id = :effect_id;

-- name: effect_retry
-- Compare-and-set. It is the calling attempt's from here on.
UPDATE effect SET
    attempt_id = :attempt_id, run = :run, thread_id = :thread_id, checkpoint_ns = :checkpoint_ns,
    checkpoint_id = :checkpoint_id, task_id = :task_id, ordinal = :ordinal, node_path = :node_path,
    iteration_path = :iteration_path, epoch = :epoch, tries = tries + 1, calling_us = :now_us
WHERE effect_id = :effect_id AND status = 'unknown' AND calling_us IS NULL;

-- name: effect_use_get
SELECT
    asked_id,
    EXISTS (
        SELECT 1 FROM effect WHERE effect.effect_id = effect_use.effect_id AND effect.status = 'not_happened'
    ) AS came_to_nothing
FROM effect_use
WHERE attempt_id = :attempt_id AND epoch = :epoch AND name = :name AND part = :part;

-- name: effect_use_put
INSERT INTO effect_use (attempt_id, epoch, name, part, asked_id, effect_id, asked_us)
VALUES (:attempt_id, :epoch, :name, :part, :asked_id, :effect_id, :now_us)
ON CONFLICT (attempt_id, epoch, name, part) DO UPDATE
SET asked_id = excluded.asked_id, effect_id = excluded.effect_id, asked_us = excluded.asked_us;

-- name: effect_uses_delete
DELETE FROM effect_use WHERE attempt_id IN (SELECT attempt_id FROM attempt WHERE thread_id = :thread_id);

-- name: effect_uses_of_go_delete
DELETE FROM effect_use WHERE attempt_id = :attempt_id AND epoch = :epoch;

-- name: effect_uses_of_run_delete
DELETE FROM effect_use WHERE attempt_id IN (SELECT attempt_id FROM attempt WHERE run = :run);

-- name: effects_calling
-- sealed: effect
-- Those of an attempt whose outcome is open.
SELECT * FROM effect
WHERE attempt_id = :attempt_id AND calling_us IS NOT NULL
ORDER BY started_us, effect_id;

-- name: effects_delete
DELETE FROM effect WHERE thread_id = :thread_id;

-- name: effects_in_doubt_of_run
-- sealed: effect
-- Unknown or started, and no call of it can be running any more.
SELECT * FROM effect
WHERE run = :run AND status IN ('started', 'unknown')
    AND (calling_us IS NULL OR NOT EXISTS (
        SELECT 1 FROM attempt
        WHERE attempt.attempt_id = effect.attempt_id AND attempt.status = 'running' AND attempt.epoch = effect.epoch
    ))
ORDER BY started_us, effect_id;

-- name: effects_in_doubt_of_visit
-- sealed: effect
SELECT * FROM effect
WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id AND ordinal = :ordinal
    AND status IN ('started', 'unknown')
    AND (calling_us IS NULL OR NOT EXISTS (
        SELECT 1 FROM attempt
        WHERE attempt.attempt_id = effect.attempt_id AND attempt.status = 'running' AND attempt.epoch = effect.epoch
    ))
ORDER BY started_us, effect_id;

-- name: effects_of_run_delete
DELETE FROM effect WHERE run = :run;

-- name: effects_page
-- sealed: effect
-- Oldest first. A rare listing: it looks at every effect.
SELECT effect.*, run.run_id, attempt.status AS attempt_status, attempt.epoch AS attempt_epoch,
    (SELECT before_id FROM effect_fork WHERE effect_fork.key = effect.key) AS again_of
FROM effect JOIN run ON run.run = effect.run LEFT JOIN attempt ON attempt.attempt_id = effect.attempt_id
WHERE (effect.started_us, effect.effect_id) > (:started_us, :effect_id)
ORDER BY effect.started_us, effect.effect_id
LIMIT :size;

-- name: effects_page_of_run
-- sealed: effect
SELECT effect.*, run.run_id, attempt.status AS attempt_status, attempt.epoch AS attempt_epoch,
    (SELECT before_id FROM effect_fork WHERE effect_fork.key = effect.key) AS again_of
FROM effect JOIN run ON run.run = effect.run LEFT JOIN attempt ON attempt.attempt_id = effect.attempt_id
WHERE effect.run = :run AND (effect.started_us, effect.effect_id) > (:started_us, :effect_id)
    AND (:status IS NULL OR effect.status = :status)
ORDER BY effect.started_us, effect.effect_id
LIMIT :size;

-- name: effects_page_of_thread
-- sealed: effect
SELECT effect.*, run.run_id, attempt.status AS attempt_status, attempt.epoch AS attempt_epoch,
    (SELECT before_id FROM effect_fork WHERE effect_fork.key = effect.key) AS again_of
FROM effect JOIN run ON run.run = effect.run LEFT JOIN attempt ON attempt.attempt_id = effect.attempt_id
WHERE effect.thread_id = :thread_id AND (effect.started_us, effect.effect_id) > (:started_us, :effect_id)
    AND (:status IS NULL OR effect.status = :status)
ORDER BY effect.started_us, effect.effect_id
LIMIT :size;

-- name: effects_page_with_status
-- sealed: effect
SELECT effect.*, run.run_id, attempt.status AS attempt_status, attempt.epoch AS attempt_epoch,
    (SELECT before_id FROM effect_fork WHERE effect_fork.key = effect.key) AS again_of
FROM effect JOIN run ON run.run = effect.run LEFT JOIN attempt ON attempt.attempt_id = effect.attempt_id
WHERE effect.status = :status AND (effect.started_us, effect.effect_id) > (:started_us, :effect_id)
ORDER BY effect.started_us, effect.effect_id
LIMIT :size;
