-- Queries of what agents ask people (see migrations/0016_agent_request.sql).

-- name: agent_member_decide
-- sealed: agent_member
-- Compare-and-set: a person has decided on it; other arguments, if they were edited.
UPDATE agent_member SET
    state = 'queued', decision = :decision, arguments = coalesce(:arguments, arguments)
WHERE batch_id = :batch_id AND ordinal = :ordinal AND state = 'admitting';

-- name: agent_request_answer
-- sealed: agent_request
-- Compare-and-set: the first answer counts.
UPDATE agent_request SET state = 'answered', answer = :answer, closed_us = :now_us
WHERE request_id = :request_id AND state = 'open';

-- name: agent_request_cancel
-- Compare-and-set.
UPDATE agent_request SET state = 'cancelled', closed_us = :now_us
WHERE request_id = :request_id AND state = 'open';

-- name: agent_request_get
-- sealed: agent_request
SELECT * FROM agent_request WHERE request_id = :request_id;

-- name: agent_request_insert
-- sealed: agent_request
INSERT INTO agent_request (
    request_id, root_id, agent_run_id, agent_task_id, kind, subject, payload, state, created_us
)
VALUES (:request_id, :root_id, :agent_run_id, :agent_task_id, :kind, :subject, :payload, 'open', :now_us);

-- name: agent_requests_of_tree
-- sealed: agent_request
SELECT * FROM agent_request WHERE root_id = :root_id ORDER BY created_us, request_id;

-- name: agent_requests_open
-- sealed: agent_request
SELECT * FROM agent_request WHERE root_id = :root_id AND state = 'open' ORDER BY created_us, request_id;
