-- Queries of the engine's contexts (see migrations/0015_agent_context.sql).

-- name: agent_message_append
-- sealed: agent_message (agent_task_id = context_id)
INSERT INTO agent_message (
    agent_task_id, seq, root_id, kind, operation_id, ordinal, message, message_id, said, tokens, total, covers,
    created_us
)
VALUES (
    :context_id, :seq, :root_id, :kind, :operation_id, :ordinal, :message, :message_id, :said, :tokens, :total, :covers,
    :now_us
);

-- name: agent_message_count
SELECT count(*) AS n FROM agent_message
WHERE agent_task_id = :context_id AND seq <= :upto AND kind <> 'summary';

-- name: agent_message_last
SELECT seq, total FROM agent_message WHERE agent_task_id = :context_id ORDER BY seq DESC LIMIT 1;

-- name: agent_message_total
-- Of the rows up to one of them.
SELECT total FROM agent_message WHERE agent_task_id = :context_id AND seq = :seq;

-- name: agent_message_sizes
-- Where a window may be cut, without what stands in it.
SELECT seq, kind, tokens FROM agent_message
WHERE agent_task_id = :context_id AND seq > :covers AND kind <> 'summary'
ORDER BY seq;

-- name: agent_message_names
-- sealed: agent_message (agent_task_id = context_id)
-- How they are known again.
SELECT seq, kind, message_id, said FROM agent_message
WHERE agent_task_id = :context_id AND seq > :after AND seq <= :upto AND kind <> 'summary'
ORDER BY seq;

-- name: agent_messages
-- sealed: agent_message (agent_task_id = context_id)
-- sealed: agent_operation.outcome
-- sealed: agent_member.result (batch_id = operation_id)
-- sealed: agent_member.decision (batch_id = operation_id)
-- sealed: agent_operation.outcome as tool_outcome (operation_id = tool_operation_id)
-- With what holds each: an operation's outcome, of a tool call's result by the member whose it is.
SELECT
    own.seq, own.kind, own.operation_id, own.ordinal, own.message, own.created_us, held.outcome, member.call_id,
    member.name, member.result, member.decision, member.operation_id AS tool_operation_id, called.outcome AS tool_outcome
FROM agent_message AS own
LEFT JOIN agent_operation AS held ON held.operation_id = own.operation_id AND own.ordinal IS NULL
LEFT JOIN agent_member AS member ON member.batch_id = own.operation_id AND member.ordinal = own.ordinal
LEFT JOIN agent_operation AS called ON called.operation_id = member.operation_id
WHERE own.agent_task_id = :context_id AND own.seq > :after AND own.seq <= :upto
ORDER BY own.seq
LIMIT :size;

-- name: agent_message_summary
-- The newest summary.
SELECT seq, tokens, covers FROM agent_message
WHERE agent_task_id = :context_id AND kind = 'summary'
ORDER BY seq DESC
LIMIT 1;

-- name: agent_steering_open
-- sealed: inbox
-- Messages that nobody has claimed, and those that an operation has.
SELECT entry, run, kind, value_type, value, attempt_id, requested_us FROM inbox
WHERE run = :run AND kind = 'steer' AND (consumed_us IS NULL OR attempt_id = :operation_id)
ORDER BY entry;
