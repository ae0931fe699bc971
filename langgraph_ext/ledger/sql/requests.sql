-- Queries of requests and definitions (see migrations/0007_request.sql).

-- name: definition_add
INSERT INTO definition (digest, body)
SELECT :digest, :body
WHERE NOT EXISTS (SELECT 1 FROM definition WHERE digest = :digest);

-- name: definition_get
SELECT body FROM definition WHERE digest = :digest;

-- name: request_add
-- sealed: request
INSERT INTO request (run_key, input_digest, thread_id, epoch, run, requested_us)
VALUES (:run_key, :input_digest, :thread_id, :epoch, NULL, :now_us);

-- name: request_begun
UPDATE request SET run = :run WHERE run_key = :run_key AND run IS NULL;

-- name: request_get
-- sealed: request
SELECT request.run_key, request.input_digest, request.thread_id, request.epoch, run.run_id, run.status
FROM request LEFT JOIN run ON run.run = request.run
WHERE request.run_key = :run_key;

-- name: request_take
-- From an invocation that came to nothing, or whose run was deleted.
UPDATE request SET thread_id = :thread_id, epoch = :epoch, run = NULL, requested_us = :now_us WHERE run_key = :run_key;

-- name: requests_delete
DELETE FROM request WHERE thread_id = :thread_id;

-- name: requests_of_run_delete
DELETE FROM request WHERE run = :run;

-- name: run_begun_with
-- sealed: run
UPDATE run SET
    run_key = :run_key, graph = :graph, definition_digest = :definition_digest, input_digest = :input_digest,
    made_by = :made_by
WHERE run = :run;

-- name: run_defined_anew
UPDATE run SET definition_digest = :definition_digest WHERE run = :run;
