-- Taking away the agent runs of a graph's thread.

-- name: agent_roots_of_thread
-- Those that its visits have driven under its lease, and those that had leases of their own, whose keys begin so.
SELECT agent_run_id FROM agent_run
WHERE agent_run_id = root_id AND (thread_id = :thread_id OR (key >= :beginning AND key < :end));

-- name: agent_request_forget
DELETE FROM agent_request WHERE root_id = :root_id;

-- name: agent_member_forget
DELETE FROM agent_member WHERE batch_id IN (SELECT batch_id FROM agent_batch WHERE root_id = :root_id);

-- name: agent_batch_forget
DELETE FROM agent_batch WHERE root_id = :root_id;

-- name: agent_message_forget
DELETE FROM agent_message WHERE agent_task_id IN (SELECT agent_task_id FROM agent_task WHERE root_id = :root_id);

-- name: agent_call_forget
DELETE FROM agent_call WHERE operation_id IN (SELECT operation_id FROM agent_operation WHERE root_id = :root_id);

-- name: agent_ticket_forget
DELETE FROM agent_ticket WHERE root_id = :root_id;

-- name: agent_operation_forget
DELETE FROM agent_operation WHERE root_id = :root_id;

-- name: agent_task_forget
DELETE FROM agent_task WHERE root_id = :root_id;

-- name: agent_commit_forget
DELETE FROM agent_commit WHERE root_id = :root_id;

-- name: agent_run_forget
DELETE FROM agent_run WHERE root_id = :root_id;
