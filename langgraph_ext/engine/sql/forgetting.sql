-- Taking away the agent runs of a graph's thread.

-- name: agent_roots_of_thread
-- Those that its visits have driven under its lease, and those that had leases of their own, whose keys begin so.
SELECT agent_run_id FROM agent_run
WHERE agent_run_id = root_id AND (thread_id = :thread_id OR (key >= :beginning AND key < :end));

-- name: agent_roots_with_history
-- Those that go on with one history, or more, of a tree, the tree among them; and whether the run is there whose attempt
-- has started each. One comes as often as it has tasks in it.
SELECT own.run_id AS root_id, own.run, parent.run IS NOT NULL AS is_needed
FROM agent_task AS task
    CROSS JOIN agent_task AS other ON other.agent_task_id = coalesce(task.context, task.agent_task_id)
        OR other.context = coalesce(task.context, task.agent_task_id)
    JOIN run AS own ON own.run_id = other.root_id
    LEFT JOIN run AS parent ON parent.run_id = own.parent_id
WHERE task.root_id = :root_id;

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
