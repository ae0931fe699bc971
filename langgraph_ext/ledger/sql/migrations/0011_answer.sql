-- 0011 answer
--
-- Adds     interrupt.answer_type, answer, answered_us, answered_by: the answer to a question, before its task takes it;
--          an index of questions by their id.
-- Why      who answers and who goes on with the run are not the same process, and of two answers the first one counts.
-- Locks    new columns without defaults; the index reads every question once.
-- Safe     before the code that uses it: yes (older code ignores the columns; it gives nobody a stored answer).
-- Undo     DROP INDEX interrupt_named; ALTER TABLE interrupt DROP COLUMN answer_type; … answer; … answered_us; … answered_by;
-- oldest_reader: 1
--
-- answer_type, answer  as value_type, value; null where the answer went to the task by another way than the ledger
-- answered_us          when it was stored. A question with an answer stays `pending` here until its task has taken that:
--                      its run waits as long
-- answered_by          who answered, in the words of who did
ALTER TABLE interrupt ADD COLUMN answer_type TEXT;

ALTER TABLE interrupt ADD COLUMN answer BLOB;

ALTER TABLE interrupt ADD COLUMN answered_us INTEGER;

ALTER TABLE interrupt ADD COLUMN answered_by TEXT;

-- Whoever answers names nothing but the question.
CREATE INDEX interrupt_named ON interrupt (interrupt_id, thread_id);
