-- 0016 agent_request
--
-- Adds     agent_request: what agents ask people, and what they were told; of a batch's members what a person decided;
--          of agent tasks whose history they go on with; an index of the agent runs that a graph's thread has.
-- Why      a question is asked once, whoever shows it; its answer is for it alone, and used once. A chat's turns add to one
--          history, and do not each store it anew.
-- Locks    a new table; agent_member and agent_task, for as long as a column takes.
-- Safe     before the code that uses it: yes (older code ignores both; it drives no agent that asks).
-- Undo     DROP TABLE agent_request; ALTER TABLE agent_member DROP COLUMN decision; DROP INDEX agent_run_thread;
--          DROP INDEX agent_task_context; ALTER TABLE agent_task DROP COLUMN context, and context_from;
-- oldest_reader: 1
--
-- request_id   approval:{batch}, or limit:{agent run}:{n}
-- subject      what it is about: the batch, or the limit
-- payload      what a person is shown
-- state        open -> answered | cancelled (its agent run ended)
-- agent_task.context       the task whose history (agent_message) it goes on with; null: its own
-- agent_task.context_from  the last row of that before its own
-- agent_member.state     admitting: a person decides on it
-- agent_member.decision  what they decided, as they said it; null if nobody was asked
CREATE TABLE agent_request (
    request_id    TEXT    PRIMARY KEY,
    root_id       TEXT    NOT NULL,
    agent_run_id  TEXT    NOT NULL,
    agent_task_id TEXT    NOT NULL,
    kind          TEXT    NOT NULL CHECK (kind IN ('approval', 'limit')),
    subject       TEXT    NOT NULL,
    payload       BLOB    NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('open', 'answered', 'cancelled')),
    answer        BLOB,
    created_us    INTEGER NOT NULL,
    closed_us     INTEGER,
    CHECK ((answer IS NOT NULL) = (state = 'answered')),
    CHECK ((closed_us IS NULL) = (state = 'open'))
) STRICT;

CREATE INDEX agent_request_tree ON agent_request (root_id, created_us, request_id);

CREATE INDEX agent_request_open ON agent_request (root_id, created_us, request_id)
    WHERE state = 'open';

ALTER TABLE agent_member ADD COLUMN decision TEXT;

ALTER TABLE agent_task ADD COLUMN context TEXT;

ALTER TABLE agent_task ADD COLUMN context_from INTEGER NOT NULL DEFAULT 0;

CREATE INDEX agent_task_context ON agent_task (context, agent_task_id)
    WHERE context IS NOT NULL;

-- The agent runs of a graph's thread, the newest first.
CREATE INDEX agent_run_thread ON agent_run (thread_id, agent_run_id);
