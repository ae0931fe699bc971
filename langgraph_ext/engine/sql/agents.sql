-- Queries of the engine (see migrations/0014_agent.sql).

-- name: agent_call_close
-- sealed: agent_call
-- Compare-and-set: no row changes when it is open no more.
UPDATE agent_call SET state = :state, answer = :answer, usage = :usage, ended_us = :now_us
WHERE operation_id = :operation_id AND number = :number AND state = 'open';

-- name: agent_call_open
INSERT INTO agent_call (operation_id, number, epoch, state, started_us)
VALUES (:operation_id, :number, :epoch, 'open', :now_us);

-- name: agent_calls_of
-- sealed: agent_call
SELECT number, epoch, state, answer, usage, started_us, ended_us FROM agent_call
WHERE operation_id = :operation_id
ORDER BY number;

-- name: agent_commit_get
-- sealed: agent_commit
SELECT digest, result, epoch FROM agent_commit WHERE root_id = :root_id AND commit_key = :commit_key;

-- name: agent_commit_insert
-- sealed: agent_commit
INSERT INTO agent_commit (root_id, commit_key, digest, result, epoch, committed_us)
VALUES (:root_id, :commit_key, :digest, :result, :epoch, :now_us);

-- name: agent_operation_get
-- sealed: agent_operation
SELECT * FROM agent_operation WHERE operation_id = :operation_id;

-- name: agent_operation_insert
-- sealed: agent_operation
INSERT INTO agent_operation (
    operation_id, agent_task_id, agent_run_id, root_id, purpose, kind, name, policy, idempotency_key, state, revision,
    tries, request, on_unknown, created_us
)
VALUES (
    :operation_id, :agent_task_id, :agent_run_id, :root_id, :purpose, :kind, :name, :policy, :idempotency_key,
    'prepared', 0, 0, :request, :on_unknown, :now_us
);

-- name: agent_operation_move
-- sealed: agent_operation
-- Compare-and-set: no row changes when it is not in :expected. What is null stays as it is.
UPDATE agent_operation SET
    state = :target, revision = revision + 1, tries = coalesce(:tries, tries), request = coalesce(:request, request),
    before = coalesce(:before, before), raw = coalesce(:raw, raw), after = coalesce(:after, after),
    outcome = coalesce(:outcome, outcome), ended_us = :ended_us
WHERE operation_id = :operation_id AND state = :expected;

-- name: agent_operation_named
-- sealed: agent_operation
SELECT * FROM agent_operation WHERE agent_task_id = :agent_task_id AND purpose = :purpose;

-- name: agent_operations_live
-- sealed: agent_operation
-- Those of a tree that are not consumed.
SELECT * FROM agent_operation WHERE root_id = :root_id AND consumed_us IS NULL
ORDER BY agent_run_id, agent_task_id, operation_id;

-- name: agent_operations_driven
-- sealed: agent_operation
-- As the live ones, without what stands in those that have ended: a driver goes by how they stand.
SELECT
    operation_id, agent_task_id, agent_run_id, root_id, purpose, kind, name, policy, idempotency_key, state, revision,
    tries, CASE WHEN state NOT IN ('completed', 'cancelled') THEN request END AS request, before,
    CASE WHEN ended_us IS NULL THEN raw END AS raw, after, NULL AS outcome, on_unknown
FROM agent_operation WHERE root_id = :root_id AND consumed_us IS NULL
ORDER BY agent_run_id, agent_task_id, operation_id;

-- name: agent_operations_of_tree
-- sealed: agent_operation
SELECT * FROM agent_operation WHERE root_id = :root_id
ORDER BY agent_run_id, agent_task_id, operation_id;

-- name: agent_release_get
-- sealed: agent_release
SELECT descriptor FROM agent_release WHERE digest = :digest;

-- name: agent_release_insert
-- sealed: agent_release
INSERT INTO agent_release (digest, descriptor, created_us) VALUES (:digest, :descriptor, :now_us);

-- name: agent_run_close
-- sealed: agent_run
-- Compare-and-set: the first reason that is committed wins.
UPDATE agent_run SET status = 'closing', reason = :reason, message = :message, revision = revision + 1
WHERE agent_run_id = :agent_run_id AND status = 'running';

-- name: agent_run_count
-- Tickets, counted under the agent run's row.
UPDATE agent_run SET consumed = consumed + :consumed, reserved = reserved + :reserved, revision = revision + 1
WHERE agent_run_id = :agent_run_id;

-- name: agent_run_raise
UPDATE agent_run SET loop_limit = :loop_limit, limits = :limits, revision = revision + 1
WHERE agent_run_id = :agent_run_id;

-- name: agent_run_use
-- Calls and tokens, counted as tickets are.
UPDATE agent_run SET
    model_calls = model_calls + :model_calls, tool_calls = tool_calls + :tool_calls,
    tokens_in = tokens_in + :tokens_in, tokens_out = tokens_out + :tokens_out, revision = revision + 1
WHERE agent_run_id = :agent_run_id;

-- name: agent_run_pause
-- Its clocks stand: nothing but a person is waited for.
UPDATE agent_run SET paused_us = :now_us, revision = revision + 1
WHERE root_id = :root_id AND status = 'running' AND paused_us IS NULL;

-- name: agent_run_unpause
-- Its clocks go on, and what it has waited for a person is no time of its own.
UPDATE agent_run SET
    deadline_us = deadline_us + (:now_us - paused_us), paused_us = NULL, revision = revision + 1
WHERE root_id = :root_id AND paused_us IS NOT NULL;

-- name: agent_run_end
-- sealed: agent_run
-- Compare-and-set: no row changes when it has ended.
UPDATE agent_run SET
    status = :target, reason = :reason, message = :message, output = :output, ended_us = :now_us,
    revision = revision + 1
WHERE agent_run_id = :agent_run_id AND status = :expected;

-- name: agent_run_visit
-- What has become of the attempt that has started an agent run, and of its run.
SELECT attempt.status AS attempt, attempt.checkpoint_ns, attempt.checkpoint_id, parent.status AS parent
FROM run AS own
LEFT JOIN attempt ON attempt.attempt_id = own.parent_attempt
LEFT JOIN run AS parent ON parent.run_id = own.parent_id
WHERE own.run = :run;

-- name: agent_run_before
-- sealed: agent_run
-- The newest of a node, in a thread of a graph.
SELECT * FROM agent_run
WHERE thread_id = :thread_id AND substr(key, 1, length(:beginning)) = :beginning
ORDER BY agent_run_id DESC
LIMIT 1;

-- name: agent_run_beginning
-- sealed: agent_run
-- The newest whose key begins so.
SELECT * FROM agent_run
WHERE agent_run_id = (SELECT max(agent_run_id) FROM agent_run WHERE key >= :beginning AND key < :end);

-- name: agent_run_rehome
-- It goes on under another thread's lease: its graph saves otherwise than before.
UPDATE agent_run SET thread_id = :thread_id, revision = revision + 1 WHERE agent_run_id = :agent_run_id;

-- name: agent_run_get
-- sealed: agent_run
SELECT * FROM agent_run WHERE agent_run_id = :agent_run_id;

-- name: agent_run_insert
-- sealed: agent_run
INSERT INTO agent_run (
    agent_run_id, root_id, parent_id, parent_operation, run, thread_id, key, release, input_digest, input, status,
    loop_limit, consumed, reserved, model_calls, limits, deadline_us, next_seq, revision, created_us
)
VALUES (
    :agent_run_id, :root_id, :parent_id, :parent_operation, :run, :thread_id, :key, :release, :input_digest, :input,
    'running', :loop_limit, 0, 0, 0, :limits, :deadline_us, 1, 0, :now_us
);

-- name: agent_run_keyed
-- sealed: agent_run
SELECT * FROM agent_run WHERE key = :key;

-- name: agent_run_next_seq
UPDATE agent_run SET next_seq = next_seq + 1 WHERE agent_run_id = :agent_run_id;

-- name: agent_runs_of_tree
-- sealed: agent_run
SELECT * FROM agent_run WHERE root_id = :root_id ORDER BY agent_run_id;

-- name: agent_runs_page
-- sealed: agent_run
SELECT * FROM agent_run WHERE agent_run_id < :before ORDER BY agent_run_id DESC LIMIT :size;

-- name: agent_steering_claim
-- A frozen request holds these messages: its operation has claimed them.
UPDATE inbox SET attempt_id = :operation_id, consumed_us = :now_us
WHERE run = :run AND kind = 'steer' AND consumed_us IS NULL AND entry <= :upto;

-- name: agent_steering_of
-- sealed: inbox
SELECT entry, run, kind, value_type, value, attempt_id, requested_us FROM inbox
WHERE run = :run AND kind = 'steer'
ORDER BY entry;

-- name: agent_task_activate
-- Compare-and-set: from ready. One that an older epoch's worker was running is abandoned first.
UPDATE agent_task SET state = 'running', epoch = :epoch, revision = revision + 1
WHERE agent_task_id = :agent_task_id AND state = 'ready';

-- name: agent_task_end
-- sealed: agent_task
-- Compare-and-set: no row changes when it has ended.
UPDATE agent_task SET
    state = :target, condition = NULL, continuation = coalesce(:continuation, continuation), output = :output,
    error = :error, ended_us = :now_us, revision = revision + 1
WHERE agent_task_id = :agent_task_id AND state IN ('ready', 'running', 'waiting');

-- name: agent_task_get
-- sealed: agent_task
SELECT * FROM agent_task WHERE agent_task_id = :agent_task_id;

-- name: agent_task_go_on
-- sealed: agent_task
-- Compare-and-set: from running.
UPDATE agent_task SET
    state = :target, condition = :condition, continuation = :continuation, ready_seq = :ready_seq,
    revision = revision + 1
WHERE agent_task_id = :agent_task_id AND state = 'running';

-- name: agent_task_insert
-- sealed: agent_task
INSERT INTO agent_task (
    agent_task_id, agent_run_id, root_id, role, behaviour, version, state, ready_seq, revision, input, context,
    context_from, created_us
)
VALUES (
    :agent_task_id, :agent_run_id, :root_id, :role, :behaviour, :version, 'ready', :ready_seq, 0, :input, :context,
    :context_from, :now_us
);

-- name: agent_task_wake
-- Compare-and-set: a second notice finds it ready, or further.
UPDATE agent_task SET state = 'ready', condition = NULL, ready_seq = :ready_seq, revision = revision + 1
WHERE agent_task_id = :agent_task_id AND state = 'waiting';

-- name: agent_task_behind
-- Where the next one begins that goes on with a history.
SELECT context_from FROM agent_task WHERE context = :context_id AND agent_task_id > :agent_task_id
ORDER BY agent_task_id
LIMIT 1;

-- name: agent_tasks_of_tree
-- sealed: agent_task
SELECT * FROM agent_task WHERE root_id = :root_id ORDER BY agent_run_id, agent_task_id;

-- name: agent_ticket_get
SELECT * FROM agent_ticket WHERE operation_id = :operation_id;

-- name: agent_ticket_insert
INSERT INTO agent_ticket (operation_id, agent_run_id, root_id, state, requested_seq, changed_us)
VALUES (:operation_id, :agent_run_id, :root_id, :state, :requested_seq, :now_us);

-- name: agent_ticket_move
-- Compare-and-set: no row changes when it is not in :expected.
UPDATE agent_ticket SET state = :target, reason = coalesce(:reason, reason), changed_us = :now_us
WHERE operation_id = :operation_id AND state = :expected;

-- name: agent_tickets_waiting
SELECT * FROM agent_ticket WHERE root_id = :root_id AND state = 'waiting' ORDER BY requested_seq;

-- name: agent_tickets_of_tree
SELECT * FROM agent_ticket WHERE root_id = :root_id ORDER BY requested_seq;

-- name: agent_task_abandon
-- Compare-and-set: an activation that nobody goes on with.
UPDATE agent_task SET state = 'ready', ready_seq = :ready_seq, revision = revision + 1
WHERE agent_task_id = :agent_task_id AND state = 'running';
