-- Queries of leases (see migrations/0003_lease.sql). A thread has one row, which is never deleted.

-- name: lease_cap
-- Compare-and-set; nothing changes when it ends soon enough.
UPDATE lease SET expires_us = :now_us + ttl_us
WHERE thread_id = :thread_id AND released_us IS NULL AND expires_us > :now_us + ttl_us;

-- name: lease_get
SELECT * FROM lease WHERE thread_id = :thread_id;

-- name: lease_give_back
-- As lease_release, if no attempt and no call runs under it.
UPDATE lease SET released_us = :now_us
WHERE thread_id = :thread_id AND epoch = :epoch AND released_us IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM attempt
        WHERE attempt.thread_id = :thread_id AND attempt.status = 'running' AND attempt.epoch = :epoch
    )
    AND NOT EXISTS (
        SELECT 1 FROM effect
        WHERE effect.thread_id = :thread_id AND effect.epoch = :epoch AND effect.calling_us IS NOT NULL
    );

-- name: lease_insert
INSERT INTO lease (thread_id, epoch, owner, ttl_us, acquired_us, expires_us, whole)
VALUES (:thread_id, 1, :owner, :ttl_us, :now_us, :now_us + :ttl_us, :whole);

-- name: lease_release
-- Compare-and-set: only the holder's.
UPDATE lease SET released_us = :now_us
WHERE thread_id = :thread_id AND epoch = :epoch AND released_us IS NULL;

-- name: lease_renew
-- Compare-and-set: only the holder's.
UPDATE lease SET expires_us = :now_us + ttl_us
WHERE thread_id = :thread_id AND epoch = :epoch AND released_us IS NULL;

-- name: lease_take
-- Compare-and-set: the next epoch, if :epoch is still the last one.
UPDATE lease SET
    epoch = epoch + 1, owner = :owner, ttl_us = :ttl_us, acquired_us = :now_us, expires_us = :now_us + :ttl_us,
    released_us = NULL, whole = :whole
WHERE thread_id = :thread_id AND epoch = :epoch;
