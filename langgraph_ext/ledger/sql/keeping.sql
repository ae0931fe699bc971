-- Queries of what is kept of the ledger of a deleted thread (see migrations/0020_tombstone.sql and keeping.py).

-- name: kept_add
INSERT INTO kept_thread (kept_id, thread_id, seq) VALUES (:kept_id, :thread_id, :seq);

-- name: kept_calls_empty
-- Of those that are events, the writes go.
UPDATE checkpoint_log SET thread_id = :kept_id, answers = NULL, partial = NULL, body = :empty, data = :empty
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :thread_id) AND seq < :seq
    AND task_id IS NOT NULL AND event IS NOT NULL;

-- name: kept_calls_other
DELETE FROM checkpoint_log
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :thread_id) AND seq < :seq
    AND task_id IS NOT NULL AND event IS NULL;

-- name: kept_delete
DELETE FROM kept_thread WHERE kept_id = :kept_id;

-- name: kept_details
-- sealed: event
SELECT seq, checkpoint_ns, checkpoint_id, event, details, stored_us FROM checkpoint_log
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :thread_id) AND seq < :seq
    AND details IS NOT NULL;

-- name: kept_details_put
UPDATE checkpoint_log SET details = :details WHERE seq = :seq;

-- name: kept_events
UPDATE checkpoint_log SET thread_id = :kept_id
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :thread_id) AND seq < :seq
    AND listed IS NULL AND task_id IS NULL;

-- name: kept_expired
-- One whose events are not shown any more.
SELECT kept_id FROM kept_thread WHERE seq <= :seq ORDER BY seq LIMIT 1;

-- name: kept_ids
SELECT kept_id FROM kept_thread WHERE thread_id = :thread_id;

-- name: kept_model_calls
UPDATE call SET thread_id = :kept_id WHERE thread_id = :thread_id;

-- name: kept_model_calls_close
UPDATE call SET status = 'interrupted', error_type = 'thread_deleted', ended_us = :now_us
WHERE thread_id = :thread_id AND status = 'open';

-- name: kept_name
SELECT thread_id FROM kept_thread WHERE kept_id = :kept_id;

-- name: kept_put_empty
-- sealed: checkpoint (thread_id = kept_id)
-- What tells to which run a task belongs stays, out of everybody's sight.
UPDATE checkpoint_log SET
    thread_id = :kept_id, listed = 0, run_id = NULL, places = :nothing, body = :empty, data = :empty,
    metadata = :metadata
WHERE seq = :seq AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id;

-- name: kept_puts
-- sealed: checkpoint
-- Those of subgraphs have a root_id, and where they stand says which nodes enclose theirs.
SELECT seq, checkpoint_ns, checkpoint_id, root_id, metadata FROM checkpoint_log
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :thread_id) AND seq < :seq
    AND listed IS NOT NULL;

-- name: kept_rows_delete
DELETE FROM checkpoint_log
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :kept_id LIMIT :size);

-- name: kept_runs
UPDATE run SET
    thread_id = :kept_id, deleted_thread = coalesce(deleted_thread, :thread_id), error_message = NULL
WHERE thread_id = :thread_id;

-- name: kept_visits
UPDATE visit SET thread_id = :kept_id WHERE thread_id = :thread_id;

-- name: runs_open_of_thread
SELECT run, last_id FROM run WHERE thread_id = :thread_id AND ended_us IS NULL ORDER BY run;
