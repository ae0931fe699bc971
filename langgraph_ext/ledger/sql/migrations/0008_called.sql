-- 0008 called
--
-- Adds     attempt.function, attempt.arguments: which call in its task an attempt executes.
-- Why      a task may make several durable calls side by side, in another order each time; told apart by their order
--          alone, one would be given what another has done.
-- Locks    new columns with defaults; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code makes no attempts).
-- Undo     ALTER TABLE attempt DROP COLUMN function; … arguments;
-- oldest_reader: 1
--
-- function   module and qualified name
-- arguments  the digest of what it was called with; '' for the task's own function, of which there is one
ALTER TABLE attempt ADD COLUMN function TEXT NOT NULL DEFAULT '';

ALTER TABLE attempt ADD COLUMN arguments TEXT NOT NULL DEFAULT '';

-- Calls that run under an epoch: its lease is not given back before they are over.
CREATE INDEX effect_calling_epoch ON effect (thread_id, epoch)
    WHERE calling_us IS NOT NULL;
