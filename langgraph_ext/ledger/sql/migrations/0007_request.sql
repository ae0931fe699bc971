-- 0007 request
--
-- Adds     request: names that callers give to their requests; definition: what graphs were; of a run, what it was begun
--          with.
-- Why      the same request, sent again, must not run again; and who goes on with a run by another graph is to know it.
-- Locks    new tables; new columns without defaults; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores them; its runs have none).
-- Undo     DROP TABLE request; DROP TABLE definition; ALTER TABLE run DROP COLUMN run_key; … graph; … definition_digest;
--          … input_digest; … made_by;
-- oldest_reader: 1
--
-- input_digest  of the input that the request came with
-- run           the run that it began; null while an invocation that holds the thread under :epoch is about to begin it
CREATE TABLE request (
    run_key      TEXT    PRIMARY KEY,
    input_digest TEXT    NOT NULL,
    thread_id    TEXT    NOT NULL,
    epoch        INTEGER,
    run          INTEGER,
    requested_us INTEGER NOT NULL
) STRICT;

CREATE INDEX request_thread ON request (thread_id);

CREATE INDEX request_run ON request (run)
    WHERE run IS NOT NULL;

-- body  canonical JSON (ledger/definitions.py)
CREATE TABLE definition (
    digest TEXT PRIMARY KEY,
    body   BLOB NOT NULL
) STRICT;

-- run_key, input_digest  of its request
-- graph                  the graph's name
-- definition_digest      of what it was when somebody last began, or went on with, the run
-- made_by                versions of this package and of LangGraph, as it began
ALTER TABLE run ADD COLUMN run_key TEXT;

ALTER TABLE run ADD COLUMN graph TEXT;

ALTER TABLE run ADD COLUMN definition_digest TEXT;

ALTER TABLE run ADD COLUMN input_digest TEXT;

ALTER TABLE run ADD COLUMN made_by TEXT;
