-- Queries of tombstones (see migrations/0020_tombstone.sql).

-- name: tombstone_get
SELECT newest_id, deletions FROM tombstone WHERE thread_id = :thread_id;

-- name: tombstone_put
-- The newest id of all that was deleted: what a later deletion removes may be a copy, with older ids.
INSERT INTO tombstone (thread_id, newest_id, deletions, deleted_us) VALUES (:thread_id, :newest_id, 1, :now_us)
ON CONFLICT (thread_id) DO UPDATE SET
    newest_id = CASE
        WHEN tombstone.newest_id > excluded.newest_id THEN tombstone.newest_id ELSE excluded.newest_id
    END,
    deletions = tombstone.deletions + 1,
    deleted_us = excluded.deleted_us;
