-- Queries of visits (see migrations/0009_visit.sql).

-- name: places_above
-- sealed: checkpoint
-- A checkpoint and its ancestors, :size of them, each with the visits of one kind at it: the round on record, and what the
-- log has seen. (The calls of a copied thread are no events.)
WITH RECURSIVE found (depth, checkpoint_id, parent_id, run, root_id, sends, metadata) AS (
    SELECT 1, checkpoint_id, parent_id, run, root_id, sends, metadata FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
        AND listed IS NOT NULL
    UNION ALL
    SELECT found.depth + 1, place.checkpoint_id, place.parent_id, place.run, place.root_id, place.sends, place.metadata
    FROM found CROSS JOIN checkpoint_log AS place
    WHERE place.thread_id = :thread_id AND place.checkpoint_ns = :checkpoint_ns
        AND place.checkpoint_id = found.parent_id AND place.listed IS NOT NULL AND found.depth < :size
)
SELECT
    depth, checkpoint_id, parent_id, run, root_id, sends, metadata,
    (
        SELECT visit.iteration_path FROM visit
        WHERE visit.thread_id = :thread_id AND visit.checkpoint_id = found.checkpoint_id AND visit.kind = :kind
            AND visit.node_path = :node_path AND visit.scope = :scope AND visit.place = :place
        LIMIT 1
    ) AS iteration_path,
    EXISTS (
        SELECT 1 FROM checkpoint_log AS call
        WHERE call.thread_id = :thread_id AND call.checkpoint_ns = :checkpoint_ns
            AND call.checkpoint_id = found.checkpoint_id AND call.listed IS NULL AND call.metadata IS NULL
            AND call.task_id IS NOT NULL AND call.task_path = :task_path
    ) AS called,
    EXISTS (
        SELECT 1 FROM checkpoint_log AS call
        WHERE call.thread_id = :thread_id AND call.checkpoint_ns = :checkpoint_ns
            AND call.checkpoint_id = found.checkpoint_id AND call.listed IS NULL AND call.metadata IS NULL
            AND call.task_id IS NOT NULL AND call.task_path = :task_path AND call.event IS NULL
    ) AS copied,
    EXISTS (
        SELECT 1 FROM checkpoint_log AS call
        WHERE call.thread_id = :thread_id AND call.checkpoint_ns = :checkpoint_ns
            AND call.checkpoint_id = found.checkpoint_id AND call.listed IS NULL AND call.metadata IS NULL
            AND call.task_id IS NOT NULL AND call.task_path = :task_path
            AND (call.event IS NULL OR call.event = 'visit.succeeded')
    ) AS succeeded
FROM found;

-- name: visit_before
-- The newest of those that are counted together, at another checkpoint than this.
SELECT checkpoint_id FROM visit
WHERE run = :run AND node_path = :node_path AND scope = :scope AND kind = :kind AND place = :place
    AND checkpoint_id <> :checkpoint_id
ORDER BY ordinal DESC
LIMIT 1;

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
SELECT checkpoint_id, task_id, ordinal, iteration_path FROM visit
WHERE run = :run AND node_path = :node_path AND scope = :scope AND kind = :kind AND place = :place
ORDER BY ordinal DESC
LIMIT 1;

-- name: visit_success
SELECT seq FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = '' AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND task_id = :task_id AND event = 'visit.succeeded'
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
