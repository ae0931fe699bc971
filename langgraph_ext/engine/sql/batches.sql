-- Queries of the engine's batches (see migrations/0015_agent_context.sql).

-- name: agent_batch_consume
-- Compare-and-set: from settled.
UPDATE agent_batch SET state = 'consumed' WHERE batch_id = :batch_id AND state = 'settled';

-- name: agent_batch_get
SELECT * FROM agent_batch WHERE batch_id = :batch_id;

-- name: agent_batch_insert
INSERT INTO agent_batch (batch_id, agent_task_id, root_id, size, settled, serial, state, created_us)
VALUES (:batch_id, :agent_task_id, :root_id, :size, 0, :serial, 'open', :now_us);

-- name: agent_batch_settle
-- One more of its members is; it is settled with the last.
UPDATE agent_batch SET
    settled = settled + 1, state = CASE WHEN settled + 1 = size THEN 'settled' ELSE state END
WHERE batch_id = :batch_id AND state = 'open';

-- name: agent_batches_live
-- Those of a tree whose results have not had their effect.
SELECT * FROM agent_batch WHERE root_id = :root_id AND state <> 'consumed' ORDER BY created_us, batch_id;

-- name: agent_member_admit
UPDATE agent_member SET state = 'admitted', operation_id = :operation_id, arguments = NULL
WHERE batch_id = :batch_id AND ordinal = :ordinal AND state = 'queued';

-- name: agent_member_insert
-- sealed: agent_member
INSERT INTO agent_member (batch_id, ordinal, call_id, name, state, purpose, policy, on_unknown, arguments)
VALUES (:batch_id, :ordinal, :call_id, :name, :state, :purpose, :policy, :on_unknown, :arguments);

-- name: agent_member_next
-- sealed: agent_member
-- The first that is queued.
SELECT * FROM agent_member WHERE batch_id = :batch_id AND state = 'queued' ORDER BY ordinal LIMIT 1;

-- name: agent_member_of
-- sealed: agent_member
-- The one whose call an operation is.
SELECT * FROM agent_member WHERE operation_id = :operation_id;

-- name: agent_member_settle
-- sealed: agent_member
-- Compare-and-set: once.
UPDATE agent_member SET state = 'settled', result = :result, arguments = NULL
WHERE batch_id = :batch_id AND ordinal = :ordinal AND state <> 'settled';

-- name: agent_members
-- sealed: agent_member
SELECT * FROM agent_member WHERE batch_id = :batch_id ORDER BY ordinal;

-- name: agent_members_of_tree
-- sealed: agent_member
-- sealed: agent_operation.outcome
SELECT member.*, operation.outcome FROM agent_batch AS batch
CROSS JOIN agent_member AS member ON member.batch_id = batch.batch_id
LEFT JOIN agent_operation AS operation ON operation.operation_id = member.operation_id
WHERE batch.root_id = :root_id
ORDER BY batch.created_us, batch.batch_id, member.ordinal;

-- name: agent_operation_consume
UPDATE agent_operation SET consumed_us = :now_us WHERE operation_id = :operation_id AND consumed_us IS NULL;

-- name: agent_operation_doubt
-- Compare-and-set: a person is asked now, of what a function cannot find out.
UPDATE agent_operation SET on_unknown = 'ask', revision = revision + 1
WHERE operation_id = :operation_id AND state = :expected AND on_unknown = 'reconcile';

-- name: agent_operation_reopen
-- Compare-and-set: it is known that nothing was done, and it is called again.
UPDATE agent_operation SET state = 'ready', outcome = NULL, ended_us = NULL, revision = revision + 1
WHERE operation_id = :operation_id AND state = 'unknown';
