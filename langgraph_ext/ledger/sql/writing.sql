-- Queries by which the ledger records runs and questions, in the saver's transactions.

-- name: place_get
-- To which run a stored checkpoint belongs: by its number in the root graph, by the root's checkpoint in a subgraph.
SELECT parent_id, run, root_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id AND listed IS NOT NULL;

-- name: place_adopt
UPDATE checkpoint_log SET run = :run
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id = :checkpoint_id AND listed IS NOT NULL;

-- name: place_newest
SELECT checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND listed = 1
ORDER BY checkpoint_id DESC
LIMIT 1;

-- name: place_child
-- A child of :parent_id but :checkpoint_id. Ids sort by age, so it stands behind its parent.
SELECT checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id > :parent_id AND listed = 1
    AND parent_id = :parent_id AND checkpoint_id <> :checkpoint_id
ORDER BY checkpoint_id
LIMIT 1;

-- name: run_last
-- The number of the newest run of all.
SELECT max(run) AS run FROM run;

-- name: run_get
SELECT run, run_id, thread_id, status, last_id FROM run WHERE run = :run;

-- name: run_named
SELECT run, thread_id FROM run WHERE run_id = :run_id;

-- name: run_insert
INSERT INTO run (run, run_id, thread_id, first_id, last_id, fork_of, status, started_us, changed_us)
VALUES (:run, :run_id, :thread_id, :checkpoint_id, :checkpoint_id, :fork_of, 'running', :now_us, :now_us);

-- name: run_move
-- Compare-and-set: no row changes when the run is not in :expected.
UPDATE run SET
    status = :target, last_id = :checkpoint_id, changed_us = :now_us, ended_us = :ended_us,
    error_type = coalesce(:error_type, error_type), error_message = coalesce(:error_message, error_message)
WHERE run = :run AND status = :expected;

-- name: run_last_event
-- The last event of a run.
SELECT event, details FROM checkpoint_log
WHERE run = :run AND listed IS NULL
ORDER BY seq DESC
LIMIT 1;

-- name: run_places
-- A root checkpoint of a run.
SELECT place.checkpoint_id FROM checkpoint_log AS place JOIN run ON run.thread_id = place.thread_id
WHERE run.run = :run AND place.checkpoint_ns = '' AND place.checkpoint_id >= run.first_id AND place.listed = 1
    AND place.run = run.run
LIMIT 1;

-- name: run_delete
DELETE FROM run WHERE run = :run;

-- name: run_events_delete
DELETE FROM checkpoint_log WHERE run = :run AND listed IS NULL;

-- name: interrupts_of_run_delete
DELETE FROM interrupt WHERE run = :run;

-- name: attempts_of_run_delete
DELETE FROM attempt WHERE run = :run;

-- name: runs_delete
DELETE FROM run WHERE thread_id = :thread_id;

-- name: interrupts_delete
DELETE FROM interrupt WHERE thread_id = :thread_id;

-- name: attempts_delete
DELETE FROM attempt WHERE thread_id = :thread_id;

-- name: runs_of_thread
SELECT run FROM run WHERE thread_id = :thread_id LIMIT 1;

-- name: interrupt_insert
-- No row changes when the question is known.
INSERT INTO interrupt (
    thread_id, interrupt_id, run, checkpoint_ns, checkpoint_id, root_id, task_id, task_path, ordinal, kind, value_type,
    value, status, requested_us
) VALUES (
    :thread_id, :interrupt_id, :run, :checkpoint_ns, :checkpoint_id, :root_id, :task_id, :task_path, :ordinal, :kind,
    :value_type, :value, 'pending', :now_us
) ON CONFLICT (thread_id, interrupt_id) DO NOTHING;

-- name: interrupts_of_task
-- The open questions of a task that come before the :ordinal-th.
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id FROM interrupt
WHERE run = :run AND task_id = :task_id AND ordinal < :ordinal AND status = 'pending'
ORDER BY ordinal;

-- name: interrupts_open_at
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id FROM interrupt
WHERE thread_id = :thread_id AND root_id = :root_id AND status = 'pending'
ORDER BY requested_us, interrupt_id;

-- name: interrupts_open
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id FROM interrupt
WHERE run = :run AND status = 'pending'
ORDER BY requested_us, interrupt_id;

-- name: interrupt_close
UPDATE interrupt SET status = :status, closed_us = :now_us
WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id AND status = 'pending';

-- name: failures_of_task
-- At most two calls in which a task failed.
SELECT seq FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND task_id = :task_id AND event IN ('visit.failed', 'visit.timed_out')
ORDER BY seq
LIMIT 2;

-- name: call_of_task
-- The first call of a task. Only queries of checkpoint_log that a namespace and a checkpoint narrow down are cheap.
SELECT task_path FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND task_id = :task_id
ORDER BY seq
LIMIT 1;

-- name: namespaces_of
-- A loose scan: one index seek a namespace, however many rows it holds.
WITH RECURSIVE found (checkpoint_ns) AS (
    SELECT min(checkpoint_ns) FROM checkpoint_log WHERE thread_id = :thread_id
    UNION ALL
    SELECT (
        SELECT min(checkpoint_ns) FROM checkpoint_log
        WHERE thread_id = :thread_id AND checkpoint_ns > found.checkpoint_ns
    )
    FROM found WHERE found.checkpoint_ns IS NOT NULL
)
SELECT checkpoint_ns FROM found WHERE checkpoint_ns IS NOT NULL;

-- name: namespaces_some
-- As namespaces_of, a few of them.
WITH RECURSIVE found (checkpoint_ns) AS (
    SELECT min(checkpoint_ns) FROM checkpoint_log WHERE thread_id = :thread_id
    UNION ALL
    SELECT (
        SELECT min(checkpoint_ns) FROM checkpoint_log
        WHERE thread_id = :thread_id AND checkpoint_ns > found.checkpoint_ns
    )
    FROM found WHERE found.checkpoint_ns IS NOT NULL
)
SELECT checkpoint_ns FROM found WHERE checkpoint_ns IS NOT NULL
LIMIT :size;
