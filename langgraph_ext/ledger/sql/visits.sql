-- Queries of visits (see migrations/0009_visit.sql).

-- name: visit_get
SELECT run, kind, node_path, scope, place, ordinal, iteration_path FROM visit
WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND task_id = :task_id;

-- name: visit_insert
INSERT INTO visit (
    thread_id, checkpoint_id, task_id, run, kind, node_path, scope, place, ordinal, iteration_path
) VALUES (
    :thread_id, :checkpoint_id, :task_id, :run, :kind, :node_path, :scope, :place, :ordinal, :iteration_path
);

-- name: visit_last
-- The newest of those that are counted together.
SELECT checkpoint_id, ordinal FROM visit
WHERE run = :run AND node_path = :node_path AND scope = :scope AND kind = :kind AND place = :place
ORDER BY ordinal DESC
LIMIT 1;

-- name: visits_delete
DELETE FROM visit WHERE thread_id = :thread_id;

-- name: visits_of_run_delete
DELETE FROM visit WHERE run = :run;

-- name: visits_of_run
SELECT checkpoint_id, task_id, node_path, ordinal, iteration_path FROM visit WHERE run = :run;

-- name: visits_plain
-- The root checkpoints of a run, between two, at which a task of this path has made a call that is an event.
SELECT place.sends FROM checkpoint_log AS place
WHERE place.thread_id = :thread_id AND place.checkpoint_ns = '' AND place.checkpoint_id >= :from_id
    AND place.checkpoint_id < :checkpoint_id AND place.checkpoint_id <> :after_id AND place.listed IS NOT NULL
    AND place.run = :run
    AND EXISTS (
        SELECT 1 FROM checkpoint_log AS call
        WHERE call.thread_id = place.thread_id AND call.checkpoint_ns = ''
            AND call.checkpoint_id = place.checkpoint_id AND call.listed IS NULL AND call.metadata IS NULL
            AND call.task_id IS NOT NULL AND call.event IS NOT NULL AND call.task_path = :task_path
    );

-- name: visits_plain_nested
-- As visits_plain, of the subgraphs that one task runs.
SELECT place.sends FROM checkpoint_log AS place
WHERE place.thread_id = :thread_id AND place.root_id = :root_id AND place.inside = :scope
    AND place.checkpoint_id > :after_id AND place.checkpoint_id < :checkpoint_id AND place.listed IS NOT NULL
    AND EXISTS (
        SELECT 1 FROM checkpoint_log AS call
        WHERE call.thread_id = place.thread_id AND call.checkpoint_ns = place.checkpoint_ns
            AND call.checkpoint_id = place.checkpoint_id AND call.listed IS NULL AND call.metadata IS NULL
            AND call.task_id IS NOT NULL AND call.event IS NOT NULL AND call.task_path = :task_path
    );
