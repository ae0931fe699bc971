-- What people ask who look at a database from outside, by the command line.

-- name: run_ids_beginning
-- A range of the unique index: LIKE would not use it.
SELECT run_id
FROM run
WHERE run_id >= :beginning AND run_id < :end
ORDER BY run_id
LIMIT :limit;

-- name: runs_with_status
SELECT count(*) AS runs
FROM run
WHERE status = :status;
