-- Queries of memos (see migrations/0010_memo.sql).

-- name: memo_get
-- sealed: memo
SELECT value_type, value, attempt_id FROM memo
WHERE run = :run AND scope = :scope AND place = :place AND node_path = :node_path AND key = :key;

-- name: memo_put
-- sealed: memo
INSERT INTO memo (run, scope, place, node_path, key, thread_id, value_type, value, attempt_id, written_us)
VALUES (:run, :scope, :place, :node_path, :key, :thread_id, :value_type, :value, :attempt_id, :now_us)
ON CONFLICT (run, scope, place, node_path, key) DO UPDATE SET
    value_type = excluded.value_type, value = excluded.value, attempt_id = excluded.attempt_id,
    written_us = excluded.written_us;

-- name: memos_delete
DELETE FROM memo WHERE run IN (SELECT run FROM run WHERE thread_id = :thread_id);

-- name: memos_of_run
-- sealed: memo
SELECT * FROM memo WHERE run = :run ORDER BY scope, place, node_path, key;

-- name: memos_of_run_delete
DELETE FROM memo WHERE run = :run;

-- name: visit_around
-- The visit of a task, if it is one of this node path.
SELECT scope, place, node_path FROM visit
WHERE run = :run AND node_path = :node_path AND task_id = :task_id;
