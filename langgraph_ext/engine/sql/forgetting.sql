-- Taking away the agent runs of a graph's thread.

-- name: agent_roots_of_thread
-- Those that its visits have driven under its lease, and those that had leases of their own, whose keys begin so.
SELECT agent_run_id FROM agent_run
WHERE agent_run_id = root_id AND (thread_id = :thread_id OR (key >= :beginning AND key < :end));

-- name: agent_requests_forget
DELETE FROM agent_request WHERE root_id = :root_id;

-- name: agent_members_forget
DELETE FROM agent_member WHERE batch_id IN (SELECT batch_id FROM agent_batch WHERE root_id = :root_id);

-- name: agent_batches_forget
DELETE FROM agent_batch WHERE root_id = :root_id;

-- name: agent_messages_forget
DELETE FROM agent_message WHERE root_id = :root_id;

-- name: agent_calls_forget
DELETE FROM agent_call WHERE operation_id IN (SELECT operation_id FROM agent_operation WHERE root_id = :root_id);

-- name: agent_tickets_forget
DELETE FROM agent_ticket WHERE root_id = :root_id;

-- name: agent_operations_forget
DELETE FROM agent_operation WHERE root_id = :root_id;

-- name: agent_tasks_forget
DELETE FROM agent_task WHERE root_id = :root_id;

-- name: agent_commits_forget
DELETE FROM agent_commit WHERE root_id = :root_id;

-- name: agent_runs_forget
DELETE FROM agent_run WHERE root_id = :root_id;
