-- Queries of the ledger's reading side, over checkpoint_log, run, interrupt and attempt.
-- `call` is a row of put_writes, `put` one of put, `nested` one of a subgraph's puts; see 0001_checkpoint_log.sql.
-- A CROSS JOIN keeps SQLite to the order in which the tables stand: from a run's puts to their calls.

-- name: read_run
SELECT * FROM run WHERE run_id = :run_id;

-- name: read_run_numbered
SELECT * FROM run WHERE run = :run;

-- name: read_runs
SELECT * FROM run WHERE run < :before ORDER BY run DESC LIMIT :size;

-- name: read_runs_with_status
SELECT * FROM run WHERE status = :status AND run < :before ORDER BY run DESC LIMIT :size;

-- name: read_runs_of_thread
SELECT * FROM run WHERE thread_id = :thread_id AND run < :before ORDER BY run DESC LIMIT :size;

-- name: read_runs_of_thread_with_status
SELECT * FROM run WHERE thread_id = :thread_id AND status = :status AND run < :before ORDER BY run DESC LIMIT :size;

-- name: read_place
SELECT seq, parent_id, run, root_id, inside, sends, metadata FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NOT NULL;

-- name: read_event
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, run, root_id, event, details, stored_us
FROM checkpoint_log WHERE seq = :seq;

-- name: read_log
-- Puts too: with one of them, the calls that came before their checkpoint find their run.
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, run, root_id, event, details, stored_us
FROM checkpoint_log WHERE seq > :after
ORDER BY seq
LIMIT :size;

-- name: read_last
SELECT max(seq) AS seq FROM checkpoint_log;

-- name: read_calls_at
-- The calls of one checkpoint that are events and came before :before.
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, run, root_id, event, details, stored_us
FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND seq < :before AND task_id IS NOT NULL AND event IS NOT NULL
ORDER BY seq;

-- name: read_nested_before
-- Puts of subgraphs that were stored before the root checkpoint they belong to.
SELECT seq, checkpoint_ns, checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND root_id = :root_id AND seq < :before AND listed IS NOT NULL;

-- name: read_event_rows
SELECT seq, event FROM checkpoint_log
WHERE run = :run AND listed IS NULL AND seq > :after
ORDER BY seq;

-- name: read_root_calls
-- Of a run, or of the part of it that ends with :last_id. (Materialized, or SQLite looks for each put's calls in the
-- whole range of checkpoints.)
WITH found AS MATERIALIZED (
    SELECT seq, thread_id, checkpoint_id FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id >= :first_id AND checkpoint_id <= :last_id
        AND listed IS NOT NULL AND run = :run
)
SELECT call.seq, found.seq AS placed, call.event
FROM found CROSS JOIN checkpoint_log AS call
WHERE call.thread_id = found.thread_id AND call.checkpoint_ns = '' AND call.checkpoint_id = found.checkpoint_id
    AND call.listed IS NULL AND call.metadata IS NULL AND call.task_id IS NOT NULL AND call.event IS NOT NULL;

-- name: read_nested_calls
-- The same of its subgraphs, at any depth.
WITH found AS MATERIALIZED (
    SELECT seq, thread_id, checkpoint_id FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id >= :first_id AND checkpoint_id <= :last_id
        AND listed IS NOT NULL AND run = :run
)
SELECT call.seq, CASE WHEN nested.seq > found.seq THEN nested.seq ELSE found.seq END AS placed, call.event
FROM found CROSS JOIN checkpoint_log AS nested CROSS JOIN checkpoint_log AS call
WHERE nested.thread_id = found.thread_id AND nested.root_id = found.checkpoint_id AND nested.listed IS NOT NULL
    AND call.thread_id = nested.thread_id AND call.checkpoint_ns = nested.checkpoint_ns
    AND call.checkpoint_id = nested.checkpoint_id
    AND call.listed IS NULL AND call.metadata IS NULL AND call.task_id IS NOT NULL AND call.event IS NOT NULL;

-- name: read_interrupt
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.thread_id = :thread_id AND interrupt.interrupt_id = :interrupt_id;

-- name: read_interrupt_named
-- No index serves it: for a page behind a question of which nothing but its id was given.
SELECT requested_us, interrupt_id, thread_id FROM interrupt
WHERE interrupt_id = :interrupt_id AND (:thread_id IS NULL OR thread_id = :thread_id)
ORDER BY thread_id
LIMIT 1;

-- name: read_interrupts
-- Oldest first. A rare listing: it looks at every question, and so does read_interrupts_pending at every open one.
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind) AND (:pending IS NULL OR (interrupt.status = 'pending') = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: read_interrupts_pending
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.status = 'pending'
    AND (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind)
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: read_interrupts_of_thread
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.thread_id = :thread_id
    AND (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind) AND (:pending IS NULL OR (interrupt.status = 'pending') = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: read_interrupts_of_run
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.run = :run
    AND (interrupt.requested_us, interrupt.interrupt_id) > (:requested_us, :interrupt_id)
    AND (:kind IS NULL OR interrupt.kind = :kind) AND (:pending IS NULL OR (interrupt.status = 'pending') = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id
LIMIT :size;

-- name: verify_runs
SELECT run, run_id, status FROM run WHERE run > :after ORDER BY run LIMIT :size;

-- name: verify_run_events
-- How often each event of a run's own life stands in the log, and where last.
SELECT event, count(*) AS number, max(seq) AS last FROM checkpoint_log
WHERE run = :run AND listed IS NULL AND substr(event, 1, 4) = 'run.'
GROUP BY event;

-- name: verify_pending
SELECT count(*) AS number FROM interrupt WHERE run = :run AND status = 'pending';

-- name: verify_rows
-- Rows of runs that do not exist.
SELECT run, min(seq) AS seq FROM checkpoint_log
WHERE seq > :after AND seq <= :upto AND run IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.run = checkpoint_log.run)
GROUP BY run;

-- name: verify_thread_after
SELECT min(thread_id) AS thread_id FROM checkpoint_log WHERE thread_id > :after;

-- name: verify_tasks
-- Tasks of a thread whose calls disagree about where they stood. Sorts the calls of the thread.
SELECT checkpoint_id, task_id, min(checkpoint_ns) AS checkpoint_ns, max(checkpoint_ns) AS other_ns,
    min(task_path) AS task_path, max(task_path) AS other_path
FROM checkpoint_log
WHERE thread_id = :thread_id AND listed IS NULL AND task_id IS NOT NULL AND event IS NOT NULL
GROUP BY checkpoint_id, task_id
HAVING min(checkpoint_ns) <> max(checkpoint_ns) OR min(task_path) <> max(task_path);

-- name: verify_interrupts
-- Questions of runs that do not exist.
SELECT thread_id, interrupt_id FROM interrupt
WHERE (thread_id, interrupt_id) > (:thread_id, :interrupt_id)
    AND NOT EXISTS (SELECT 1 FROM run WHERE run.run = interrupt.run)
ORDER BY thread_id, interrupt_id
LIMIT :size;

-- name: verify_attempts
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
