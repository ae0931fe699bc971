-- Queries of runs (see migrations/0002_run.sql).

-- name: head_id
-- A thread's newest root checkpoint; null if it has none.
SELECT max(checkpoint_id) AS checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND listed = 1;

-- name: run_at_head
-- The run of a thread's newest root checkpoint.
SELECT head.checkpoint_id, run.run, run.run_id, run.status
FROM checkpoint_log AS head JOIN run ON run.run = head.run
WHERE head.thread_id = :thread_id AND head.checkpoint_ns = '' AND head.listed = 1
    AND head.checkpoint_id = (
        SELECT max(checkpoint_id) FROM checkpoint_log
        WHERE thread_id = :thread_id AND checkpoint_ns = '' AND listed = 1
    );

-- name: run_count_active
-- Of the run at the head, unless it had ended before :since_us.
UPDATE run SET active_us = coalesce(active_us, 0) + :active_us
WHERE (ended_us IS NULL OR ended_us >= :since_us) AND run = (
    SELECT run FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = '' AND listed = 1
    ORDER BY checkpoint_id DESC
    LIMIT 1
);

-- name: run_children
-- sealed: run
-- The runs that a run's attempts have started, in the order in which they began.
SELECT * FROM run WHERE parent_id = :run_id ORDER BY run;

-- name: run_delete
DELETE FROM run WHERE run = :run;

-- name: run_get
-- sealed: run
SELECT * FROM run WHERE run = :run;

-- name: run_ids_beginning
-- A range of the unique index: LIKE would not use it.
SELECT run_id
FROM run
WHERE run_id >= :beginning AND run_id < :end
ORDER BY run_id
LIMIT :limit;

-- name: run_insert
INSERT INTO run (run, run_id, thread_id, first_id, last_id, fork_of, status, started_us, changed_us)
VALUES (:run, :run_id, :thread_id, :checkpoint_id, :checkpoint_id, :fork_of, 'running', :now_us, :now_us);

-- name: run_is_child
UPDATE run SET parent_id = :parent_id, parent_attempt = :parent_attempt WHERE run = :run;

-- name: run_last
-- The number of the newest run of all, that of the log's last row, and whether a run has a name.
SELECT
    (SELECT max(run) FROM run) AS run,
    (SELECT max(seq) FROM checkpoint_log) AS seq,
    EXISTS (SELECT 1 FROM run WHERE run_id = :run_id) AS taken;

-- name: run_move
-- sealed: run
-- Compare-and-set: no row changes when the run is not in :expected.
UPDATE run SET
    status = :target, last_id = :checkpoint_id, changed_us = :now_us, ended_us = :ended_us,
    error_type = coalesce(:error_type, error_type), error_message = coalesce(:error_message, error_message)
WHERE run = :run AND status = :expected;

-- name: run_named
-- sealed: run
SELECT * FROM run WHERE run_id = :run_id;

-- name: run_newest
-- The last checkpoint that any run of a thread had, whether it is stored or not. (An agent's own run has none.)
SELECT max(last_id) AS last_id FROM run WHERE thread_id = :thread_id AND first_id <> '';

-- name: run_of_thread
SELECT run FROM run WHERE thread_id = :thread_id LIMIT 1;

-- name: runs_delete
DELETE FROM run WHERE thread_id = :thread_id;

-- name: runs_page
-- sealed: run
SELECT * FROM run WHERE run < :before ORDER BY run DESC LIMIT :size;

-- name: runs_page_of_deleted
-- sealed: run
-- Those that were kept when their thread was deleted.
SELECT * FROM run
WHERE deleted_thread = :thread_id AND run < :before AND (:status IS NULL OR status = :status)
ORDER BY run DESC
LIMIT :size;

-- name: runs_page_of_thread
-- sealed: run
SELECT * FROM run WHERE thread_id = :thread_id AND run < :before ORDER BY run DESC LIMIT :size;

-- name: runs_page_of_thread_with_status
-- sealed: run
SELECT * FROM run WHERE thread_id = :thread_id AND status = :status AND run < :before ORDER BY run DESC LIMIT :size;

-- name: runs_page_with_status
-- sealed: run
SELECT * FROM run WHERE status = :status AND run < :before ORDER BY run DESC LIMIT :size;

-- name: runs_with_status
SELECT count(*) AS runs
FROM run
WHERE status = :status;
