-- Queries of the ledger over checkpoint_log (see the saver's migrations/0001_checkpoint_log.sql): puts, calls and events.
-- `call` is a row of put_writes, `nested` one of a subgraph's puts; a `place` is a put's row.
-- A CROSS JOIN keeps SQLite to the order in which the tables stand: from a run's puts to their calls.

-- name: call_of_task
-- The first call of a task. Only queries of checkpoint_log that a namespace and a checkpoint narrow down are cheap.
SELECT task_path FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND task_id = :task_id
ORDER BY seq
LIMIT 1;

-- name: calls_waiting
-- sealed: event
-- The calls of one checkpoint that are events and came before :before.
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, run, root_id, event, details, stored_us
FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND seq < :before AND task_id IS NOT NULL AND event IS NOT NULL
ORDER BY seq;

-- name: event_append
-- sealed: event
INSERT INTO checkpoint_log (run, thread_id, checkpoint_ns, checkpoint_id, event, details, stored_us, body, data)
VALUES (:run, :thread_id, :checkpoint_ns, :checkpoint_id, :event, :details, :stored_us, :empty, :empty);

-- name: failures_of_task
-- At most two calls in which a task failed.
SELECT seq FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND task_id = :task_id AND event IN ('visit.failed', 'visit.timed_out')
ORDER BY seq
LIMIT 2;

-- name: log_get
-- sealed: event
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, run, root_id, event, details, stored_us
FROM checkpoint_log WHERE seq = :seq;

-- name: log_last
SELECT max(seq) AS seq FROM checkpoint_log;

-- name: log_page
-- sealed: event
-- Puts too: with one of them, the calls that came before their checkpoint find their run.
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, run, root_id, event, details, stored_us
FROM checkpoint_log WHERE seq > :after
ORDER BY seq
LIMIT :size;

-- name: namespaces_of
-- At most :size of them. A loose scan: one index seek a namespace, however many rows it holds.
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

-- name: place_adopt
UPDATE checkpoint_log SET run = :run
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id = :checkpoint_id AND listed IS NOT NULL;

-- name: place_child
-- A child of :parent_id but :checkpoint_id. Ids sort by age, so it stands behind its parent.
SELECT checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id > :parent_id AND listed = 1
    AND parent_id = :parent_id AND checkpoint_id <> :checkpoint_id
ORDER BY checkpoint_id
LIMIT 1;

-- name: place_get
-- sealed: checkpoint
SELECT seq, parent_id, run, root_id, inside, sends, metadata FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NOT NULL;

-- name: place_newest
SELECT checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND listed = 1
ORDER BY checkpoint_id DESC
LIMIT 1;

-- name: place_newest_inside
-- In the subgraphs that run while a root checkpoint is executed.
SELECT max(checkpoint_id) AS checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND root_id = :root_id AND listed IS NOT NULL;

-- name: place_visit
-- A call of a task at a root checkpoint.
SELECT seq FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND task_id IS NOT NULL AND event IS NOT NULL
LIMIT 1;

-- name: places_of_step
-- A root checkpoint and its parent, as far as they are stored, each with the run it belongs to.
SELECT
    place.checkpoint_id, place.parent_id, place.run AS owner, run.run, run.run_id, run.status, run.last_id,
    EXISTS (SELECT 1 FROM interrupt WHERE interrupt.run = run.run AND interrupt.status = 'pending') AS asks,
    (
        SELECT newest.checkpoint_id FROM checkpoint_log AS newest
        WHERE newest.thread_id = :thread_id AND newest.checkpoint_ns = '' AND newest.listed = 1
        ORDER BY newest.checkpoint_id DESC
        LIMIT 1
    ) AS newest_id
FROM checkpoint_log AS place
LEFT JOIN run ON run.run = place.run AND run.thread_id = place.thread_id
WHERE place.thread_id = :thread_id AND place.checkpoint_ns = ''
    AND place.checkpoint_id IN (:checkpoint_id, :parent_id) AND place.listed IS NOT NULL;

-- name: places_nested_before
-- Puts of subgraphs that were stored before the root checkpoint they belong to.
SELECT seq, checkpoint_ns, checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND root_id = :root_id AND seq < :before AND listed IS NOT NULL;

-- name: run_calls
-- Of a run, or of the part of it from :first_id to :last_id: the calls at its root checkpoints and at those of its
-- subgraphs, at any depth; `placed` is the row from which on their run is known. (Materialized, or SQLite looks for each
-- put's calls in the whole range of checkpoints.)
WITH found AS MATERIALIZED (
    SELECT seq, thread_id, checkpoint_id FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id >= :first_id AND checkpoint_id <= :last_id
        AND listed IS NOT NULL AND run = :run
)
SELECT call.seq, found.seq AS placed, call.event
FROM found CROSS JOIN checkpoint_log AS call
WHERE call.thread_id = found.thread_id AND call.checkpoint_ns = '' AND call.checkpoint_id = found.checkpoint_id
    AND call.listed IS NULL AND call.metadata IS NULL AND call.task_id IS NOT NULL AND call.event IS NOT NULL
UNION ALL
SELECT call.seq, CASE WHEN nested.seq > found.seq THEN nested.seq ELSE found.seq END AS placed, call.event
FROM found CROSS JOIN checkpoint_log AS nested CROSS JOIN checkpoint_log AS call
WHERE nested.thread_id = found.thread_id AND nested.root_id = found.checkpoint_id AND nested.listed IS NOT NULL
    AND call.thread_id = nested.thread_id AND call.checkpoint_ns = nested.checkpoint_ns
    AND call.checkpoint_id = nested.checkpoint_id
    AND call.listed IS NULL AND call.metadata IS NULL AND call.task_id IS NOT NULL AND call.event IS NOT NULL;

-- name: run_transitions
-- How many visits a run has made or begun: tasks that have written, or that have an attempt.
WITH found AS MATERIALIZED (
    SELECT thread_id, checkpoint_id FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id >= :first_id
        AND listed IS NOT NULL AND run = :run
)
SELECT count(*) AS visits FROM (
    SELECT call.checkpoint_id, call.task_id
    FROM found CROSS JOIN checkpoint_log AS call
    WHERE call.thread_id = found.thread_id AND call.checkpoint_ns = '' AND call.checkpoint_id = found.checkpoint_id
        AND call.listed IS NULL AND call.metadata IS NULL AND call.task_id IS NOT NULL AND call.event IS NOT NULL
    UNION
    SELECT call.checkpoint_id, call.task_id
    FROM found CROSS JOIN checkpoint_log AS nested CROSS JOIN checkpoint_log AS call
    WHERE nested.thread_id = found.thread_id AND nested.root_id = found.checkpoint_id AND nested.listed IS NOT NULL
        AND call.thread_id = nested.thread_id AND call.checkpoint_ns = nested.checkpoint_ns
        AND call.checkpoint_id = nested.checkpoint_id
        AND call.listed IS NULL AND call.metadata IS NULL AND call.task_id IS NOT NULL AND call.event IS NOT NULL
    UNION
    SELECT checkpoint_id, task_id FROM attempt WHERE run = :run
);

-- name: run_events
SELECT seq, event FROM checkpoint_log
WHERE run = :run AND listed IS NULL
ORDER BY seq;

-- name: events_delete
-- Of a thread that has no checkpoints.
DELETE FROM checkpoint_log WHERE thread_id = :thread_id;

-- name: run_events_page
-- sealed: event
-- Those of a run that has no checkpoints, all of them.
SELECT * FROM checkpoint_log
WHERE run = :run AND listed IS NULL AND seq > :after
ORDER BY seq
LIMIT :size;

-- name: run_events_delete
DELETE FROM checkpoint_log WHERE run = :run AND listed IS NULL;

-- name: run_last_event
-- sealed: event
-- The last event of a name, of a run's own life.
SELECT thread_id, checkpoint_ns, checkpoint_id, details, stored_us FROM checkpoint_log
WHERE run = :run AND listed IS NULL AND event = :event
ORDER BY seq DESC
LIMIT 1;

-- name: run_place
-- A root checkpoint of a run.
SELECT place.checkpoint_id FROM checkpoint_log AS place JOIN run ON run.thread_id = place.thread_id
WHERE run.run = :run AND place.checkpoint_ns = '' AND place.checkpoint_id >= run.first_id AND place.listed = 1
    AND place.run = run.run
LIMIT 1;
