-- Queries of the saver, over checkpoint_log (see migrations/0001_checkpoint_log.sql).
-- `listed IS NOT NULL`: puts; `listed = 1`: puts that are not out of sight; `task_id IS NOT NULL`: calls of put_writes.
-- A call has no `listed` either: where both are named, the index finds it by the one, and the other leaves events out.

-- name: put_insert
-- No row changes when the checkpoint id is already there (only one transaction writes at a time).
INSERT INTO checkpoint_log (
    listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, run, root_id, inside, sends, stored_us, metadata,
    places, body, data
) SELECT
    1, :thread_id, :checkpoint_ns, :checkpoint_id, :parent_id, :run_id, :run, :root_id, :inside, :sends, :stored_us,
    :metadata, :places, :body, :data
WHERE NOT EXISTS (
    SELECT 1 FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
        AND listed IS NOT NULL
);

-- name: call_append
-- Not at a checkpoint that was deleted with its thread, and not from a life before (ledger/tombstones.py).
INSERT INTO checkpoint_log (
    listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, run, root_id, inside, sends, task_id, task_path,
    answers, partial, event, details, stored_us, metadata, places, body, data
)
WITH call (
    thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, answers, partial, event, details, life, stored_us, body,
    data
) AS (VALUES (
    :thread_id, :checkpoint_ns, :checkpoint_id, :task_id, :task_path, :answers, :partial, :event, :details, :life,
    :stored_us, :body, :data
))
SELECT
    NULL, thread_id, checkpoint_ns, checkpoint_id, NULL, NULL, NULL, NULL, NULL, NULL, task_id, task_path,
    answers, partial, event, details, stored_us, NULL, NULL, body, data
FROM call
WHERE NOT EXISTS (
    SELECT 1 FROM tombstone
    WHERE tombstone.thread_id = call.thread_id AND (
        deletions > call.life
        OR newest_id >= call.checkpoint_id AND NOT EXISTS (
            SELECT 1 FROM checkpoint_log AS place
            WHERE place.thread_id = call.thread_id AND place.checkpoint_ns = call.checkpoint_ns
                AND place.checkpoint_id = call.checkpoint_id AND place.listed IS NOT NULL
        )
    )
);

-- name: call_append_fenced
-- As call_append, if the thread is held under :epoch, too.
INSERT INTO checkpoint_log (
    listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, run, root_id, inside, sends, task_id, task_path,
    answers, partial, event, details, stored_us, metadata, places, body, data
)
WITH fenced (
    thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, answers, partial, event, details, epoch, life,
    stored_us, body, data
) AS (VALUES (
    :thread_id, :checkpoint_ns, :checkpoint_id, :task_id, :task_path, :answers, :partial, :event, :details, :epoch,
    :life, :stored_us, :body, :data
))
SELECT
    NULL, thread_id, checkpoint_ns, checkpoint_id, NULL, NULL, NULL, NULL, NULL, NULL, task_id, task_path,
    answers, partial, event, details, stored_us, NULL, NULL, body, data
FROM fenced
WHERE EXISTS (
    SELECT 1 FROM lease WHERE thread_id = fenced.thread_id AND epoch = fenced.epoch AND released_us IS NULL
)
AND NOT EXISTS (
    SELECT 1 FROM tombstone
    WHERE tombstone.thread_id = fenced.thread_id AND (
        deletions > fenced.life
        OR newest_id >= fenced.checkpoint_id AND NOT EXISTS (
            SELECT 1 FROM checkpoint_log AS place
            WHERE place.thread_id = fenced.thread_id AND place.checkpoint_ns = fenced.checkpoint_ns
                AND place.checkpoint_id = fenced.checkpoint_id AND place.listed IS NOT NULL
        )
    )
);

-- name: put_append
-- A put below the newest one of its namespace, if the values of that one lie where the caller says they do, and if the
-- thread is held under :epoch, or under none (0) by an invocation; anybody may put if that is null. Not while somebody
-- asks something of the thread, which is looked at then; and not from a life before (ledger/tombstones.py).
INSERT INTO checkpoint_log (
    listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, run, root_id, inside, sends, task_id, task_path,
    answers, partial, event, details, stored_us, metadata, places, body, data
)
WITH put (
    thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, run, root_id, inside, sends, stored_us, metadata,
    places, body, data, parent_places, epoch, life
) AS (VALUES (
    :thread_id, :checkpoint_ns, :checkpoint_id, :parent_id, :run_id, :run, :root_id, :inside, :sends, :stored_us,
    :metadata, :places, :body, :data, :parent_places, :epoch, :life
))
SELECT
    1, thread_id, checkpoint_ns, checkpoint_id, parent_id, run_id, run, root_id, inside, sends, NULL, NULL,
    NULL, NULL, NULL, NULL, stored_us, metadata, places, body, data
FROM put
WHERE checkpoint_id > parent_id
    AND (parent_id, parent_places) = (
        SELECT newest.checkpoint_id, newest.places FROM checkpoint_log AS newest
        WHERE newest.thread_id = put.thread_id AND newest.checkpoint_ns = put.checkpoint_ns AND newest.listed IS NOT NULL
        ORDER BY newest.checkpoint_id DESC
        LIMIT 1
    )
    AND (
        epoch IS NULL
        OR epoch = coalesce((
            SELECT lease.epoch FROM lease
            WHERE lease.thread_id = put.thread_id AND released_us IS NULL AND (whole = 1 OR put.epoch > 0)
        ), 0)
        AND NOT EXISTS (
            SELECT 1 FROM inbox
            WHERE put.epoch > 0 AND inbox.thread_id = put.thread_id AND consumed_us IS NULL AND kind = 'cancel'
        )
    )
    AND NOT EXISTS (
        SELECT 1 FROM tombstone WHERE tombstone.thread_id = put.thread_id AND deletions > put.life
    );

-- name: put_places
SELECT parent_id, places FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id AND listed IS NOT NULL;

-- name: puts_downwards
-- The puts of a namespace by falling id, from a checkpoint's on, :size of them at most.
SELECT checkpoint_id, parent_id, places FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id <= :checkpoint_id
    AND listed IS NOT NULL
ORDER BY checkpoint_id DESC
LIMIT :size;

-- name: writes_between
-- As writes_of, for all checkpoints from one to another; a checkpoint's are in order by seq.
SELECT checkpoint_id, seq, task_id, task_path, partial, body, data FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns
    AND checkpoint_id >= :first_id AND checkpoint_id <= :last_id
    AND listed IS NULL AND metadata IS NULL AND task_id IS NOT NULL;

-- name: lineage
-- A checkpoint and its ancestors, :size of them at most; by depth they are in order.
WITH RECURSIVE above (depth, checkpoint_id, parent_id, places) AS (
    SELECT 0, checkpoint_id, parent_id, places FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
        AND listed IS NOT NULL
    UNION ALL
    SELECT depth + 1, up.checkpoint_id, up.parent_id, up.places
    FROM above JOIN checkpoint_log AS up
        ON up.thread_id = :thread_id AND up.checkpoint_ns = :checkpoint_ns AND up.checkpoint_id = above.parent_id
            AND up.listed IS NOT NULL
    WHERE depth < :size
)
SELECT depth, checkpoint_id, parent_id, places FROM above;

-- name: writes_of_lineage
-- As writes_of, for a checkpoint and its ancestors; a checkpoint's are in order by seq. (CROSS JOIN: not by walking over
-- all calls of the namespace.)
WITH RECURSIVE above (depth, checkpoint_id, parent_id) AS (
    SELECT 0, checkpoint_id, parent_id FROM checkpoint_log
    WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
        AND listed IS NOT NULL
    UNION ALL
    SELECT depth + 1, up.checkpoint_id, up.parent_id
    FROM above JOIN checkpoint_log AS up
        ON up.thread_id = :thread_id AND up.checkpoint_ns = :checkpoint_ns AND up.checkpoint_id = above.parent_id
            AND up.listed IS NOT NULL
    WHERE depth < :size
)
SELECT call.checkpoint_id, seq, task_id, task_path, partial, body, data
FROM above CROSS JOIN checkpoint_log AS call
WHERE call.thread_id = :thread_id AND call.checkpoint_ns = :checkpoint_ns AND call.checkpoint_id = above.checkpoint_id
    AND call.listed IS NULL AND call.metadata IS NULL AND call.task_id IS NOT NULL;

-- name: put_get
-- sealed: checkpoint
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, metadata, places, body, data,
    (SELECT deletions FROM tombstone WHERE tombstone.thread_id = :thread_id) AS life
FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id AND listed IS NOT NULL;

-- name: put_latest
-- sealed: checkpoint
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, metadata, places, body, data,
    (SELECT deletions FROM tombstone WHERE tombstone.thread_id = :thread_id) AS life
FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed = 1
ORDER BY checkpoint_id DESC
LIMIT 1;

-- name: put_data
SELECT data FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id AND listed IS NOT NULL;

-- name: writes_of
-- Calls have no metadata; to say so lets the index give them in their order.
SELECT seq, task_id, task_path, partial, body, data FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND metadata IS NULL AND task_id IS NOT NULL
ORDER BY seq;

-- name: writes_same
-- The row of this very call, looked for when nobody knows whether an earlier try of it was committed.
SELECT seq FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND task_id = :task_id AND stored_us = :stored_us AND body = :body
LIMIT 1;

-- name: writes_at
-- The calls that a task made at a moment.
SELECT body FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND task_id = :task_id AND stored_us = :stored_us;

-- name: calls_of_namespace
-- Those whose body has :needle in it.
SELECT body FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed IS NULL AND task_id IS NOT NULL
    AND instr(body, :needle) > 0;

-- name: answer_taken
-- Whether a task has stored, after the answer at :seq, more answers than it had before it.
SELECT later.seq FROM checkpoint_log AS later
WHERE later.thread_id = :thread_id AND later.answers IS NOT NULL AND later.seq > :seq
    AND later.answers > (
        SELECT coalesce(max(earlier.answers), 0) FROM checkpoint_log AS earlier
        WHERE earlier.thread_id = later.thread_id AND earlier.checkpoint_ns = later.checkpoint_ns
            AND earlier.checkpoint_id = later.checkpoint_id AND earlier.task_id = later.task_id AND earlier.seq < :seq
    )
ORDER BY later.seq
LIMIT 1;

-- name: scan_namespace
-- Keyset page of one namespace, newest first; an empty :needle finds every row.
SELECT checkpoint_id, thread_id, checkpoint_ns FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed = 1
    AND checkpoint_id < :before AND instr(metadata, :needle) > 0
ORDER BY checkpoint_id DESC
LIMIT :size;

-- name: scan_namespace_from
-- As scan_namespace, behind a key that may be another namespace's: an equal id is behind it in a smaller namespace.
SELECT checkpoint_id, thread_id, checkpoint_ns FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed = 1
    AND checkpoint_id < :before AND instr(metadata, :needle) > 0
    AND checkpoint_id <= :last_id AND (checkpoint_id < :last_id OR :checkpoint_ns < :last_ns)
ORDER BY checkpoint_id DESC
LIMIT :size;

-- name: scan_thread
-- Sorts a thread of very many namespaces.
SELECT checkpoint_id, thread_id, checkpoint_ns FROM checkpoint_log
WHERE thread_id = :thread_id AND listed = 1
    AND checkpoint_id < :before AND instr(metadata, :needle) > 0
    AND (checkpoint_id, thread_id, checkpoint_ns) < (:last_id, :last_thread, :last_ns)
ORDER BY checkpoint_id DESC, thread_id DESC, checkpoint_ns DESC
LIMIT :size;

-- name: scan_all
-- As scan_thread, over every thread.
SELECT checkpoint_id, thread_id, checkpoint_ns FROM checkpoint_log
WHERE listed = 1
    AND checkpoint_id < :before AND instr(metadata, :needle) > 0
    AND (checkpoint_id, thread_id, checkpoint_ns) < (:last_id, :last_thread, :last_ns)
ORDER BY checkpoint_id DESC, thread_id DESC, checkpoint_ns DESC
LIMIT :size;

-- name: puts_of_namespace
-- sealed: checkpoint
SELECT seq, listed, checkpoint_id, run_id, run, root_id, inside, stored_us, metadata, places, body FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed IS NOT NULL
ORDER BY checkpoint_id;

-- name: places_of_namespace
SELECT places FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed IS NOT NULL;

-- name: namespaces_of_run
SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoint_log
WHERE run_id = :run_id AND listed IS NOT NULL;

-- name: namespace_touched
-- When something was last stored at the newest checkpoint of a namespace.
SELECT max(stored_us) AS stored_us FROM checkpoint_log
WHERE (listed IS NOT NULL OR task_id IS NOT NULL)
    AND thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = (
    SELECT max(newest.checkpoint_id) FROM checkpoint_log AS newest
    WHERE newest.thread_id = :thread_id AND newest.checkpoint_ns = :checkpoint_ns
        AND (newest.listed IS NOT NULL OR newest.task_id IS NOT NULL)
);

-- name: put_behind
-- The newest listed checkpoint of a namespace behind its :last newest ones.
SELECT checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed = 1
ORDER BY checkpoint_id DESC
LIMIT 1 OFFSET :last;

-- name: put_listed
SELECT checkpoint_id FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id AND listed = 1;

-- name: put_newest
SELECT checkpoint_id, root_id, inside, stored_us FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed = 1
ORDER BY checkpoint_id DESC
LIMIT 1;

-- name: put_oldest
SELECT checkpoint_id, stored_us FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND listed = 1
ORDER BY checkpoint_id
LIMIT 1;

-- name: puts_listed
SELECT count(*) AS puts FROM checkpoint_log WHERE thread_id = :thread_id AND listed = 1;

-- name: thread_behind
-- The next thread that has rows; one step of a loose scan.
SELECT min(thread_id) AS thread_id FROM checkpoint_log WHERE thread_id > :after;

-- name: thread_is_longer
-- Whether it has more than so many rows.
SELECT seq FROM checkpoint_log WHERE thread_id = :thread_id LIMIT 1 OFFSET :size;

-- name: threads_count
-- A loose scan: one index seek a thread, however many rows it holds.
WITH RECURSIVE found (thread_id) AS (
    SELECT min(thread_id) FROM checkpoint_log
    UNION ALL
    SELECT (SELECT min(thread_id) FROM checkpoint_log WHERE thread_id > found.thread_id)
    FROM found WHERE found.thread_id IS NOT NULL
)
SELECT count(thread_id) AS threads FROM found;

-- name: call_rewrite
UPDATE checkpoint_log SET body = :body, data = :data WHERE seq = :seq;

-- name: put_rewrite
UPDATE checkpoint_log SET places = :places, data = :data
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id AND listed IS NOT NULL;

-- name: put_hide
UPDATE checkpoint_log SET listed = 0, run_id = NULL, run = NULL WHERE seq = :seq;

-- name: put_delete
DELETE FROM checkpoint_log WHERE seq = :seq;

-- name: writes_delete
DELETE FROM checkpoint_log
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id
    AND listed IS NULL AND task_id IS NOT NULL;

-- name: writes_orphans
-- Calls for checkpoints that were never stored, older than the newest one that was.
SELECT DISTINCT call.checkpoint_id FROM checkpoint_log AS call
WHERE call.thread_id = :thread_id AND call.checkpoint_ns = :checkpoint_ns AND call.listed IS NULL
    AND call.task_id IS NOT NULL
    AND call.checkpoint_id < :newest
    AND NOT EXISTS (
        SELECT 1 FROM checkpoint_log AS put
        WHERE put.thread_id = call.thread_id AND put.checkpoint_ns = call.checkpoint_ns
            AND put.checkpoint_id = call.checkpoint_id AND put.listed IS NOT NULL
    );

-- name: thread_delete
-- What stood before the event that says so.
DELETE FROM checkpoint_log WHERE thread_id = :thread_id AND +seq < :seq;

-- name: thread_exists
-- Whether it has anything but events; one of its strands, if it has some.
SELECT (SELECT strand FROM strand WHERE strand.thread_id = checkpoint_log.thread_id LIMIT 1) AS strand
FROM checkpoint_log
WHERE thread_id = :thread_id AND (listed IS NOT NULL OR task_id IS NOT NULL)
ORDER BY checkpoint_ns, checkpoint_id
LIMIT 1;

-- name: thread_newest
SELECT max(checkpoint_id) AS checkpoint_id FROM checkpoint_log WHERE thread_id = :thread_id;

-- name: thread_copied
-- Whether every row of the target came with the copy of this moment.
SELECT count(*) AS others FROM checkpoint_log
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :target) AND stored_us <> :stored_us
    AND (listed IS NOT NULL OR task_id IS NOT NULL);

-- name: thread_rows
-- What a copy takes, in pages: behind :after, in the order in which it was stored. Metadata as they are stored.
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, task_id, task_path, answers, partial, sends,
    metadata AS sealed, places, body, data
FROM checkpoint_log
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :thread_id AND +seq > :after)
    AND (listed IS NOT NULL OR task_id IS NOT NULL)
ORDER BY seq
LIMIT :size;

-- name: row_copy
INSERT INTO checkpoint_log (
    listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, task_id, task_path, answers, partial, sends, stored_us,
    metadata, places, body, data
) VALUES (
    :listed, :thread_id, :checkpoint_ns, :checkpoint_id, :parent_id, :task_id, :task_path, :answers, :partial, :sends,
    :stored_us, :metadata, :places, :body, :data
);

-- name: thread_copy
-- Places are relative to the thread (values.py), so rows are copied as they are; what a ledger says of them is not.
INSERT INTO checkpoint_log (
    listed, thread_id, checkpoint_ns, checkpoint_id, parent_id, task_id, task_path, answers, partial, sends, stored_us,
    metadata, places, body, data
)
SELECT
    listed, :target, checkpoint_ns, checkpoint_id, parent_id, task_id, task_path, answers, partial, sends, :stored_us,
    metadata, places, body, data
FROM checkpoint_log
WHERE seq IN (SELECT seq FROM checkpoint_log WHERE thread_id = :source)
    AND (listed IS NOT NULL OR task_id IS NOT NULL)
ORDER BY seq;
