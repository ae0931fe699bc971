-- Queries of effects that a fork meets again (see migrations/0013_fork.sql).

-- name: effect_fork_choose
-- sealed: effect_fork
-- Compare-and-set: the first choice counts.
UPDATE effect_fork SET choice = :choice, receipt_type = :receipt_type, receipt = :receipt, chosen_us = :now_us
WHERE key = :key AND choice IS NULL;

-- name: effect_fork_get
-- sealed: effect_fork
SELECT * FROM effect_fork WHERE key = :key;

-- name: effect_fork_put
-- sealed: effect_fork
INSERT INTO effect_fork (
    key, run, thread_id, checkpoint_id, task_id, task_part, ordinal, node_path, iteration_path, name, part,
    payload_digest, before_id, found_us
) SELECT
    :key, :run, :thread_id, :checkpoint_id, :task_id, :task_part,
    CASE WHEN :asks = 1 THEN (
        SELECT count(*) FROM effect_fork
        WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id
            AND ordinal IS NOT NULL
    ) END,
    :node_path, :iteration_path, :name, :part, :payload_digest, :before_id, :now_us;

-- name: effect_forks_delete
DELETE FROM effect_fork WHERE thread_id = :thread_id;

-- name: effect_forks_of_run_delete
DELETE FROM effect_fork WHERE run = :run;

-- name: effect_forks_asked
-- sealed: effect_fork
-- The questions of a task, in their order.
SELECT * FROM effect_fork
WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id AND ordinal IS NOT NULL
ORDER BY ordinal;

-- name: effects_alike
-- sealed: effect
-- Committed effects of a run that may have done the same, the oldest first; but for those that another round of the fork has met.
SELECT * FROM effect
WHERE run = :run AND status = 'committed' AND node_path = :node_path AND name = :name
    AND coalesce(part, '') = coalesce(:part, '')
    AND NOT EXISTS (
        SELECT 1 FROM effect_fork
        WHERE effect_fork.run = :fork AND effect_fork.before_id = effect.effect_id
            AND effect_fork.iteration_path <> :iteration_path
    )
ORDER BY started_us, effect_id;
