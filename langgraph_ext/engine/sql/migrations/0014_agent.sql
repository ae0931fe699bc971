-- 0014 agent
--
-- Adds     agent_release: definitions that runs are pinned to; agent_run, agent_task, agent_operation, agent_call,
--          agent_ticket: the state machines of the engine; agent_commit: what was committed, by its key.
-- Why      the inside of an agent is taken over by any worker, at any point, from rows alone.
-- Locks    new tables; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the tables).
-- Undo     DROP TABLE agent_release; DROP TABLE agent_run; DROP TABLE agent_task; DROP TABLE agent_operation;
--          DROP TABLE agent_call; DROP TABLE agent_ticket; DROP TABLE agent_commit;
-- oldest_reader: 1
--
-- Values (input, output, continuation, request, raw, outcome, …) are canonical JSON; times are microseconds, UTC.
-- Rows are locked in the order agent_run (the root first), agent_task, agent_operation, each by id (engine/commits.py).
--
-- agent_run
--   root_id        the root of its tree; itself, in the root
--   parent_id      the agent run that started it, by its operation parent_operation; both null in a root
--   run            the ledger's run, whose inbox, budget and events it shares; thread_id: under whose lease it is driven
--   key            the caller's name for a root; the same one with the same digest is the same run
--   status         running -> succeeded; running -> closing -> failed | cancelled | exhausted
--   reason         why it closed: the first one that was committed
--   loop_limit     tickets that may be consumed; consumed and reserved are counted here, under this row
--   model_calls    physical calls of models
--   deadline_us    when its active time is over
--   next_seq       of the root: ready_seq and requested_seq of its tree
-- agent_task
--   parent_operation  the operation that started it; null in the first task of its agent run
--   state          ready -> running -> ready | waiting | succeeded | failed; waiting -> ready; all of them -> cancelled
--   ready_seq      the order in which ready tasks run; given by commits
--   epoch          under which it was activated last
--   continuation   phase and references; null before the first Progress
--   condition      what a waiting task waits for
-- agent_operation
--   purpose        finds it again, one an agent task
--   state          prepared -> asked (for a ticket) -> ready -> dispatched -> raw -> completed; dispatched -> ready (another
--                  try); all of them -> cancelled; dispatched -> unknown
--   policy         of a call whose end nobody knows: repeatable | once | keyed
--   request        what is sent; frozen from `ready` on
--   before, after  decisions of hooks, null until they were asked
--   raw, outcome   what came back, and what counts after the hooks: {"value": …} or {"error": {"code", "message"}}
-- agent_call       one physical try of an operation, from 1
-- agent_ticket     one an operation: waiting -> reserved -> consumed | released; waiting -> released
CREATE TABLE agent_release (
    digest     TEXT    PRIMARY KEY,
    descriptor BLOB    NOT NULL,
    created_us INTEGER NOT NULL
) STRICT;

CREATE TABLE agent_run (
    agent_run_id     TEXT    PRIMARY KEY,
    root_id          TEXT    NOT NULL,
    parent_id        TEXT,
    parent_operation TEXT,
    run              INTEGER NOT NULL,
    thread_id        TEXT    NOT NULL,
    key              TEXT,
    release          TEXT    NOT NULL,
    input_digest     TEXT    NOT NULL,
    input            BLOB    NOT NULL,
    status           TEXT    NOT NULL CHECK (status IN (
        'running', 'closing', 'succeeded', 'failed', 'cancelled', 'exhausted'
    )),
    reason           TEXT,
    message          TEXT,
    output           BLOB,
    loop_limit       INTEGER NOT NULL CHECK (loop_limit >= 0),
    consumed         INTEGER NOT NULL CHECK (consumed >= 0),
    reserved         INTEGER NOT NULL CHECK (reserved >= 0),
    model_calls      INTEGER NOT NULL CHECK (model_calls >= 0),
    deadline_us      INTEGER,
    next_seq         INTEGER NOT NULL,
    revision         INTEGER NOT NULL,
    created_us       INTEGER NOT NULL,
    ended_us         INTEGER,
    CHECK (consumed + reserved <= loop_limit),
    CHECK ((ended_us IS NULL) = (status IN ('running', 'closing'))),
    CHECK ((reason IS NULL) = (status IN ('running', 'succeeded'))),
    CHECK ((parent_id IS NULL) = (root_id = agent_run_id))
) STRICT;

CREATE UNIQUE INDEX agent_run_key ON agent_run (key)
    WHERE key IS NOT NULL;

CREATE INDEX agent_run_tree ON agent_run (root_id, agent_run_id);

CREATE TABLE agent_task (
    agent_task_id TEXT    PRIMARY KEY,
    agent_run_id  TEXT    NOT NULL,
    root_id       TEXT    NOT NULL,
    parent_operation TEXT,
    role          TEXT    NOT NULL,
    behaviour     TEXT    NOT NULL,
    version       INTEGER NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN (
        'ready', 'running', 'waiting', 'succeeded', 'failed', 'cancelled'
    )),
    ready_seq     INTEGER NOT NULL,
    epoch         INTEGER,
    revision      INTEGER NOT NULL,
    input         BLOB    NOT NULL,
    continuation  BLOB,
    condition     TEXT,
    output        BLOB,
    error         TEXT,
    created_us    INTEGER NOT NULL,
    ended_us      INTEGER,
    CHECK ((ended_us IS NULL) = (state IN ('ready', 'running', 'waiting'))),
    CHECK ((condition IS NOT NULL) = (state = 'waiting')),
    CHECK ((output IS NOT NULL) = (state = 'succeeded'))
) STRICT;

CREATE INDEX agent_task_tree ON agent_task (root_id, agent_run_id, agent_task_id);

CREATE TABLE agent_operation (
    operation_id    TEXT    PRIMARY KEY,
    agent_task_id   TEXT    NOT NULL,
    agent_run_id    TEXT    NOT NULL,
    root_id         TEXT    NOT NULL,
    purpose         TEXT    NOT NULL,
    kind            TEXT    NOT NULL CHECK (kind IN ('model', 'tool', 'delegate', 'compaction')),
    name            TEXT    NOT NULL,
    policy          TEXT    NOT NULL CHECK (policy IN ('repeatable', 'once', 'keyed')),
    idempotency_key TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN (
        'prepared', 'asked', 'ready', 'dispatched', 'raw', 'completed', 'cancelled', 'unknown'
    )),
    revision        INTEGER NOT NULL,
    tries           INTEGER NOT NULL,
    request         BLOB    NOT NULL,
    before          TEXT,
    raw             BLOB,
    after           TEXT,
    outcome         BLOB,
    created_us      INTEGER NOT NULL,
    ended_us        INTEGER,
    UNIQUE (agent_task_id, purpose),
    CHECK ((ended_us IS NOT NULL) = (state IN ('completed', 'cancelled', 'unknown'))),
    CHECK ((outcome IS NOT NULL) = (state IN ('completed', 'cancelled', 'unknown')))
) STRICT;

CREATE INDEX agent_operation_tree ON agent_operation (root_id, agent_run_id, agent_task_id, operation_id);

CREATE TABLE agent_call (
    operation_id TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    epoch        INTEGER NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('open', 'settled', 'failed', 'interrupted')),
    answer       BLOB,
    started_us   INTEGER NOT NULL,
    ended_us     INTEGER,
    PRIMARY KEY (operation_id, number),
    CHECK ((ended_us IS NULL) = (state = 'open')),
    CHECK ((answer IS NOT NULL) = (state IN ('settled', 'failed')))
) STRICT;

CREATE TABLE agent_ticket (
    operation_id  TEXT    PRIMARY KEY,
    agent_run_id  TEXT    NOT NULL,
    root_id       TEXT    NOT NULL,
    state         TEXT    NOT NULL CHECK (state IN ('waiting', 'reserved', 'consumed', 'released')),
    reason        TEXT,
    requested_seq INTEGER NOT NULL,
    changed_us    INTEGER NOT NULL
) STRICT;

CREATE INDEX agent_ticket_tree ON agent_ticket (root_id, requested_seq);

CREATE TABLE agent_commit (
    root_id      TEXT    NOT NULL,
    commit_key   TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    result       BLOB    NOT NULL,
    epoch        INTEGER NOT NULL,
    committed_us INTEGER NOT NULL,
    PRIMARY KEY (root_id, commit_key)
) STRICT;
