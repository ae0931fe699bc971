-- 0017 child_run
--
-- Adds     run.parent_id, run.parent_attempt: of a run that an attempt of another run has started, such as an agent's.
-- Why      a run shows the runs that it is made of, and one of those whose it is.
-- Locks    run, for as long as a column without a default takes.
-- Safe     before the code that uses it: yes (older code ignores the columns).
-- Undo     DROP INDEX run_parent; ALTER TABLE run DROP COLUMN parent_id; ALTER TABLE run DROP COLUMN parent_attempt;
-- oldest_reader: 1
--
-- parent_id       the run_id of the run whose attempt has started it
-- parent_attempt  that attempt
ALTER TABLE run ADD COLUMN parent_id TEXT;

ALTER TABLE run ADD COLUMN parent_attempt TEXT;

CREATE INDEX run_parent ON run (parent_id, run)
    WHERE parent_id IS NOT NULL;
