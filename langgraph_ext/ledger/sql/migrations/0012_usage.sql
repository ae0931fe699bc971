-- 0012 usage
--
-- Adds     call: model and tool calls, with what they may use and what they used; budget: what a run may use;
--          budget_slice: what of a run's budget a child run was given.
-- Why      what a call may use is on record before it is made, so that what was spent is counted over crashes.
-- Locks    new tables; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the tables; it records no calls, and heeds no budget).
-- Undo     DROP TABLE call; DROP TABLE budget; DROP TABLE budget_slice;
-- oldest_reader: 1
--
-- Costs are whole billionths of a US dollar (_nusd), so that sums are exact; times are microseconds.
--
-- run             null until it is known: under durability async and exit, a call may come before its run's first checkpoint
-- epoch, held_us  the lease it was made under: its fencing epoch, and since when it was held
-- checkpoint_ns, checkpoint_id, task_id  the visit that made it, as the saver is told it; null where that is not known
-- attempt_id      the attempt that made it; null in a plain node
-- ordinal         which call of its attempt (in a plain node: of its task, under this epoch), from 1
-- prompt_bytes    of the last message; context_bytes of those before it
-- status          open -> settled | interrupted (no answer came, or its owner is gone)
-- bound_*         what it may use at most, as it was reckoned before; null where nothing was
-- tokens_in, …    what the provider reported; null where it did not
-- *_held          what stays reserved for it: all of its bound while it is open, what was not reported afterwards
CREATE TABLE call (
    call_id         TEXT    PRIMARY KEY,
    run             INTEGER,
    thread_id       TEXT    NOT NULL,
    epoch           INTEGER NOT NULL,
    held_us         INTEGER NOT NULL,
    checkpoint_ns   TEXT,
    checkpoint_id   TEXT,
    task_id         TEXT,
    node            TEXT    NOT NULL,
    attempt_id      TEXT,
    ordinal         INTEGER NOT NULL CHECK (ordinal > 0),
    kind            TEXT    NOT NULL CHECK (kind IN ('model', 'tool')),
    role            TEXT,
    provider        TEXT,
    model           TEXT,
    prompt_bytes    INTEGER,
    context_bytes   INTEGER,
    status          TEXT    NOT NULL CHECK (status IN ('open', 'settled', 'interrupted')),
    bound_tokens    INTEGER CHECK (bound_tokens >= 0),
    bound_cost_nusd INTEGER CHECK (bound_cost_nusd >= 0),
    tokens_held     INTEGER NOT NULL CHECK (tokens_held >= 0),
    cost_held_nusd  INTEGER NOT NULL CHECK (cost_held_nusd >= 0),
    tokens_in       INTEGER CHECK (tokens_in >= 0),
    tokens_out      INTEGER CHECK (tokens_out >= 0),
    cache_read      INTEGER CHECK (cache_read >= 0),
    cache_written   INTEGER CHECK (cache_written >= 0),
    cost_nusd       INTEGER CHECK (cost_nusd >= 0),
    tool_calls      INTEGER CHECK (tool_calls >= 0),
    error_type      TEXT,
    started_us      INTEGER NOT NULL,
    ended_us        INTEGER,
    CHECK ((ended_us IS NULL) = (status = 'open')),
    CHECK (status = 'settled' OR (
        tokens_in IS NULL AND tokens_out IS NULL AND cache_read IS NULL AND cache_written IS NULL
        AND cost_nusd IS NULL AND tool_calls IS NULL
    ))
) STRICT;

CREATE INDEX call_run ON call (run, started_us, call_id);

CREATE INDEX call_thread ON call (thread_id, epoch, task_id);

-- Whose owner may be gone: looked at by whoever takes the thread next.
CREATE INDEX call_open ON call (thread_id, epoch)
    WHERE status = 'open';

-- Those whose run is not known yet.
CREATE INDEX call_early ON call (thread_id, epoch)
    WHERE run IS NULL;

-- A run's limits; null for a dimension that is not bounded. They are only ever raised.
CREATE TABLE budget (
    run       INTEGER PRIMARY KEY,
    turns     INTEGER CHECK (turns >= 0),
    tokens    INTEGER CHECK (tokens >= 0),
    cost_nusd INTEGER CHECK (cost_nusd >= 0),
    wall_us   INTEGER CHECK (wall_us >= 0),
    spawns    INTEGER CHECK (spawns >= 0),
    set_us    INTEGER NOT NULL,
    raised_us INTEGER
) STRICT;

-- run           the parent's
-- slice_id      the child run's own name
-- turns, …      what it was given; null for nothing, where the parent is not bounded either
-- used_*        what it used, once it is settled; more than it was given is a breach, and stands here all the same
CREATE TABLE budget_slice (
    slice_id       TEXT    PRIMARY KEY,
    run            INTEGER NOT NULL,
    status         TEXT    NOT NULL CHECK (status IN ('open', 'settled')),
    turns          INTEGER CHECK (turns >= 0),
    tokens         INTEGER CHECK (tokens >= 0),
    cost_nusd      INTEGER CHECK (cost_nusd >= 0),
    spawns         INTEGER CHECK (spawns >= 0),
    used_turns     INTEGER NOT NULL CHECK (used_turns >= 0),
    used_tokens    INTEGER NOT NULL CHECK (used_tokens >= 0),
    used_cost_nusd INTEGER NOT NULL CHECK (used_cost_nusd >= 0),
    used_spawns    INTEGER NOT NULL CHECK (used_spawns >= 0),
    started_us     INTEGER NOT NULL,
    ended_us       INTEGER,
    CHECK ((ended_us IS NULL) = (status = 'open'))
) STRICT;

CREATE INDEX budget_slice_run ON budget_slice (run, started_us, slice_id);
