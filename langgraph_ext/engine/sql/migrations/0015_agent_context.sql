-- 0015 agent_context
--
-- Adds     agent_message: the private histories of roles; agent_batch, agent_member: the tool calls of a decision, and what
--          came of each; of operations what is done when nobody knows their end, and whether they are consumed; of agent
--          runs their limits, what they have used, and since when they wait for a person; of calls what they have used.
-- Why      a ReAct agent is gone on with from rows alone, and a turn stores and reads no more late in a run than early.
-- Locks    agent_run, agent_operation and agent_call, for as long as a column without a default takes.
-- Safe     before the code that uses it: yes (older code ignores the tables; the columns are null, or 0).
-- Undo     DROP TABLE agent_message; DROP TABLE agent_batch; DROP TABLE agent_member; DROP INDEX agent_operation_live;
--          DROP INDEX agent_ticket_waiting; ALTER TABLE … DROP COLUMN …, each of those below.
-- oldest_reader: 1
--
-- agent_message, one row a message, in their order
--   kind          input; steering: from the inbox; decision: of the model; result: of a tool call; feedback: on an answer
--                 that is none; summary: stands for all rows up to `covers`, which stay
--   operation_id  whose outcome holds it; with `ordinal`: the decision, whose member of that ordinal has this result
--   message       itself, if no operation holds it: plain, as langchain-core writes messages
--   tokens        estimated; total: of all rows up to this one, without summaries
-- agent_batch     the tool calls of one decision, whose operation's id is its own
--   state         open -> settled (all members are) -> consumed
--   serial        1 if a member begins when the one before it is settled
-- agent_member
--   state         queued -> admitting (approvals, later) -> admitted -> settled; a rejected one is settled at once
--   arguments     of a queued one
--   operation_id  null if it was rejected, whose result is `result`
-- agent_operation.on_unknown   a person is asked, the model is told (error), or a function finds out (reconcile)
-- agent_operation.consumed_us  when what came of it had its effect on its task: nothing reads it again to go on
-- agent_run.limits             the most that it may use: {"model_calls", "tool_calls", "tokens"}; null: any amount
-- agent_run.paused_us          since when nothing but a person is waited for; its clocks stand
-- agent_call.usage             {"tokens_in", "tokens_out", "estimated"}
CREATE TABLE agent_message (
    agent_task_id TEXT    NOT NULL,
    seq           INTEGER NOT NULL,
    root_id       TEXT    NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN (
        'input', 'steering', 'decision', 'result', 'feedback', 'summary'
    )),
    operation_id  TEXT,
    ordinal       INTEGER,
    message       BLOB,
    tokens        INTEGER NOT NULL CHECK (tokens >= 0),
    total         INTEGER NOT NULL CHECK (total >= 0),
    covers        INTEGER,
    created_us    INTEGER NOT NULL,
    PRIMARY KEY (agent_task_id, seq),
    CHECK ((message IS NULL) = (operation_id IS NOT NULL)),
    CHECK ((covers IS NOT NULL) = (kind = 'summary'))
) STRICT;

-- Looked at behind each commit: without it, a long history without a summary would be walked through.
CREATE INDEX agent_message_summary ON agent_message (agent_task_id, seq)
    WHERE kind = 'summary';

CREATE TABLE agent_batch (
    batch_id      TEXT    PRIMARY KEY,
    agent_task_id TEXT    NOT NULL,
    root_id       TEXT    NOT NULL,
    size          INTEGER NOT NULL CHECK (size > 0),
    settled       INTEGER NOT NULL CHECK (settled >= 0),
    serial        INTEGER NOT NULL CHECK (serial IN (0, 1)),
    state         TEXT    NOT NULL CHECK (state IN ('open', 'settled', 'consumed')),
    created_us    INTEGER NOT NULL,
    CHECK (settled <= size),
    CHECK ((settled = size) = (state <> 'open'))
) STRICT;

CREATE INDEX agent_batch_tree ON agent_batch (root_id, created_us, batch_id);

CREATE TABLE agent_member (
    batch_id     TEXT    NOT NULL,
    ordinal      INTEGER NOT NULL,
    call_id      TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('queued', 'admitting', 'admitted', 'settled')),
    purpose      TEXT    NOT NULL,
    policy       TEXT,
    on_unknown   TEXT,
    arguments    BLOB,
    operation_id TEXT,
    result       BLOB,
    PRIMARY KEY (batch_id, ordinal),
    UNIQUE (batch_id, call_id)
) STRICT;

CREATE UNIQUE INDEX agent_member_operation ON agent_member (operation_id)
    WHERE operation_id IS NOT NULL;

ALTER TABLE agent_operation ADD COLUMN on_unknown TEXT;

ALTER TABLE agent_operation ADD COLUMN consumed_us INTEGER;

CREATE INDEX agent_operation_live ON agent_operation (root_id, agent_run_id, agent_task_id, operation_id)
    WHERE consumed_us IS NULL;

CREATE INDEX agent_ticket_waiting ON agent_ticket (root_id, requested_seq)
    WHERE state = 'waiting';

ALTER TABLE agent_run ADD COLUMN limits TEXT;

ALTER TABLE agent_run ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agent_run ADD COLUMN tokens_in INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agent_run ADD COLUMN tokens_out INTEGER NOT NULL DEFAULT 0;

ALTER TABLE agent_run ADD COLUMN paused_us INTEGER;

ALTER TABLE agent_call ADD COLUMN usage TEXT;
