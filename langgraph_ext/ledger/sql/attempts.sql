-- Queries of attempts and their ends (see migrations/0002_run.sql). Markers and writes may be large: only who needs them
-- reads them.

-- name: attempt_authorize
UPDATE attempt SET authorized_us = :now_us WHERE attempt_id = :attempt_id AND authorized_us IS NULL;

-- name: attempt_before
-- The one before :number of its visit.
SELECT authorized_us FROM attempt
WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id AND ordinal = :ordinal
    AND number = :number - 1;

-- name: attempt_end
-- Compare-and-set. Who ends without a marker keeps none, not even that of a pause.
UPDATE attempt SET status = :target, marker = NULL, digest = NULL, writes = NULL, ended_us = :ended_us
WHERE attempt_id = :attempt_id AND status = :expected;

-- name: attempt_get
-- sealed: attempt
SELECT
    attempt_id, run, thread_id, checkpoint_ns, checkpoint_id, task_id, ordinal, number, epoch, status, digest, node, kind,
    effect, started_us, ended_us, authorized_us, function, arguments
FROM attempt WHERE attempt_id = :attempt_id;

-- name: attempt_go_on
-- Compare-and-set: a paused one runs again, under another epoch. Its marker stays until it ends otherwise.
UPDATE attempt SET status = 'running', epoch = :epoch
WHERE attempt_id = :attempt_id AND status = 'paused';

-- name: attempt_last
-- sealed: attempt
-- The newest attempt of a visit.
SELECT
    attempt_id, run, thread_id, checkpoint_ns, checkpoint_id, task_id, ordinal, number, epoch, status, digest, node, kind,
    effect, started_us, ended_us, authorized_us, function, arguments
FROM attempt
WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id AND ordinal = :ordinal
ORDER BY number DESC
LIMIT 1;

-- name: attempt_parts
-- sealed: attempt
-- The attempts of a task, part by part. One holds something if it would matter that another call is taken for it.
SELECT
    attempt_id, ordinal, function, arguments,
    authorized_us IS NULL AND (
        status IN ('succeeded', 'paused')
        OR (effect = 'opaque' AND status IN ('running', 'interrupted'))
        OR EXISTS (
            SELECT 1 FROM effect AS act
            WHERE act.thread_id = attempt.thread_id AND act.checkpoint_id = attempt.checkpoint_id
                AND act.task_id = attempt.task_id AND act.ordinal = attempt.ordinal AND act.status <> 'not_happened'
        )
    ) AS holds
FROM attempt
WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id
ORDER BY ordinal, number;

-- name: attempt_settle
-- sealed: attempt
-- Compare-and-set.
UPDATE attempt SET status = :target, marker = :marker, digest = :digest, writes = :writes, ended_us = :ended_us
WHERE attempt_id = :attempt_id AND status = :expected AND epoch = :epoch;

-- name: attempt_start
-- sealed: attempt
-- No row changes when this very attempt is there already.
INSERT INTO attempt (
    attempt_id, run, thread_id, checkpoint_ns, checkpoint_id, task_id, ordinal, number, epoch, status, node, kind, effect,
    started_us, function, arguments
) SELECT
    :attempt_id, :run, :thread_id, :checkpoint_ns, :checkpoint_id, :task_id, :ordinal,
    (
        SELECT coalesce(max(number), 0) + 1 FROM attempt
        WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id AND ordinal = :ordinal
    ),
    :epoch, 'running', :node, :kind, :effect, :started_us, :function, :arguments
WHERE NOT EXISTS (SELECT 1 FROM attempt WHERE attempt_id = :attempt_id);

-- name: attempt_timed_out
-- Compare-and-set. It has ended when it was cancelled; only why is known better now.
UPDATE attempt SET status = 'timed_out' WHERE attempt_id = :attempt_id AND status = 'cancelled';

-- name: attempt_writes
-- sealed: attempt
SELECT writes FROM attempt WHERE attempt_id = :attempt_id;

-- name: attempts_delete
DELETE FROM attempt WHERE thread_id = :thread_id;

-- name: attempts_left
-- sealed: attempt
-- Running under an epoch that is over.
SELECT
    attempt_id, run, thread_id, checkpoint_ns, checkpoint_id, task_id, ordinal, number, epoch, status, digest, node, kind,
    effect, started_us, ended_us, authorized_us, function, arguments
FROM attempt
WHERE thread_id = :thread_id AND status = 'running' AND epoch < :epoch
ORDER BY epoch;

-- name: attempts_of_node
-- sealed: attempt
-- In a run: of every visit of one node path, kind and place.
SELECT
    attempt.attempt_id, attempt.run, attempt.thread_id, attempt.checkpoint_ns, attempt.checkpoint_id, attempt.task_id,
    attempt.ordinal, attempt.number, attempt.epoch, attempt.status, attempt.digest, attempt.node, attempt.kind,
    attempt.effect, attempt.started_us, attempt.ended_us, attempt.authorized_us, attempt.function, attempt.arguments
FROM visit CROSS JOIN attempt
WHERE visit.run = :run AND visit.node_path = :node_path AND visit.kind = :kind AND visit.place = :place
    AND attempt.thread_id = visit.thread_id AND attempt.checkpoint_id = visit.checkpoint_id
    AND attempt.task_id = visit.task_id;

-- name: attempts_of_run
-- sealed: attempt
SELECT
    attempt_id, run, thread_id, checkpoint_ns, checkpoint_id, task_id, ordinal, number, epoch, status, digest, node, kind,
    effect, started_us, ended_us, authorized_us, function, arguments
FROM attempt WHERE run = :run;

-- name: attempts_paused
-- sealed: attempt
SELECT
    attempt_id, run, thread_id, checkpoint_ns, checkpoint_id, task_id, ordinal, number, epoch, status, digest, node, kind,
    effect, started_us, ended_us, authorized_us, function, arguments
FROM attempt WHERE run = :run AND status = 'paused';

-- name: attempts_of_run_delete
DELETE FROM attempt WHERE run = :run;
