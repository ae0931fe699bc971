-- Queries of questions (see migrations/0002_run.sql and 0011_answer.sql). Pending, in the table, is every question whose
-- task has not taken an answer yet; with or without one on record.

-- name: interrupt_answer
-- sealed: interrupt
-- sealed: interrupt.answered_by as by
-- Compare-and-set: the first answer to an open question is the one.
UPDATE interrupt SET answer_type = :answer_type, answer = :answer, answered_us = :now_us, answered_by = :by
WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id AND status = 'pending' AND answered_us IS NULL;

-- name: interrupt_answered_last
-- sealed: interrupt
-- The newest question of a run whose answer is on record.
SELECT thread_id, interrupt_id, answered_us, answered_by FROM interrupt
WHERE run = :run AND answered_us IS NOT NULL
ORDER BY requested_us DESC, interrupt_id DESC
LIMIT 1;

-- name: interrupt_asked
-- sealed: interrupt
SELECT value_type, value FROM interrupt WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id;

-- name: interrupt_close
UPDATE interrupt SET status = :status, closed_us = :now_us
WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id AND status = 'pending';

-- name: interrupt_insert
-- sealed: interrupt
-- No row changes when the question is known.
INSERT INTO interrupt (
    thread_id, interrupt_id, run, checkpoint_ns, checkpoint_id, root_id, task_id, task_path, ordinal, kind, value_type,
    value, status, requested_us
) VALUES (
    :thread_id, :interrupt_id, :run, :checkpoint_ns, :checkpoint_id, :root_id, :task_id, :task_path, :ordinal, :kind,
    :value_type, :value, 'pending', :now_us
) ON CONFLICT (thread_id, interrupt_id) DO NOTHING;

-- name: interrupt_named
-- For a page behind a question of which nothing but its id was given.
SELECT requested_us, interrupt_id, thread_id FROM interrupt
WHERE interrupt_id = :interrupt_id AND (:thread_id IS NULL OR thread_id = :thread_id)
ORDER BY thread_id
LIMIT 1;

-- name: interrupt_open
SELECT interrupt_id FROM interrupt WHERE run = :run AND status = 'pending' LIMIT 1;

-- name: interrupt_task
SELECT task_id, task_path FROM interrupt WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id;

-- name: interrupt_ask_otherwise
-- sealed: interrupt
-- What its task asks now, under the same id, takes the place of what it asked before. Not when it has an answer: that is
-- the answer to what stands here.
UPDATE interrupt SET kind = :kind, value_type = :value_type, value = :value
WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id AND status = 'pending' AND answered_us IS NULL;

-- name: interrupts_delete
DELETE FROM interrupt WHERE thread_id = :thread_id;

-- name: interrupts_of_run_delete
DELETE FROM interrupt WHERE run = :run;

-- name: interrupts_of_task
-- The open questions of a task that come before the :ordinal-th.
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id, answered_us FROM interrupt
WHERE run = :run AND task_id = :task_id AND ordinal < :ordinal AND status = 'pending'
ORDER BY ordinal;

-- name: interrupts_open
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id, answered_us FROM interrupt
WHERE run = :run AND status = 'pending'
ORDER BY requested_us, interrupt_id;

-- name: interrupts_open_at
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id, answered_us FROM interrupt
WHERE thread_id = :thread_id AND root_id = :root_id AND status = 'pending'
ORDER BY requested_us, interrupt_id;

-- name: interrupts_page
-- sealed: interrupt
-- Oldest first. A rare listing: it looks at every question, and so does interrupts_page_pending at every open one.
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind)
    AND (:pending IS NULL OR (interrupt.status = 'pending' AND interrupt.answered_us IS NULL) = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: interrupts_page_of_run
-- sealed: interrupt
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.run = :run
    AND (interrupt.requested_us, interrupt.interrupt_id) > (:requested_us, :interrupt_id)
    AND (:kind IS NULL OR interrupt.kind = :kind)
    AND (:pending IS NULL OR (interrupt.status = 'pending' AND interrupt.answered_us IS NULL) = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id
LIMIT :size;

-- name: interrupts_page_of_thread
-- sealed: interrupt
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.thread_id = :thread_id
    AND (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind)
    AND (:pending IS NULL OR (interrupt.status = 'pending' AND interrupt.answered_us IS NULL) = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: interrupts_page_pending
-- sealed: interrupt
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.status = 'pending' AND interrupt.answered_us IS NULL
    AND (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind)
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: interrupts_untaken
-- sealed: interrupt
-- The open questions of a run, with the answers to them that are on record.
SELECT * FROM interrupt
WHERE run = :run AND status = 'pending'
ORDER BY requested_us, interrupt_id;

-- name: interrupts_with_id
-- sealed: interrupt
-- One in each thread that has it: a copied thread asks again what the first one asked, under the same id.
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.interrupt_id = :interrupt_id AND (:thread_id IS NULL OR interrupt.thread_id = :thread_id)
ORDER BY interrupt.thread_id;
