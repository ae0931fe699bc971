-- Queries of questions (see migrations/0002_run.sql).

-- name: interrupt_close
UPDATE interrupt SET status = :status, closed_us = :now_us
WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id AND status = 'pending';

-- name: interrupt_insert
-- No row changes when the question is known.
INSERT INTO interrupt (
    thread_id, interrupt_id, run, checkpoint_ns, checkpoint_id, root_id, task_id, task_path, ordinal, kind, value_type,
    value, status, requested_us
) VALUES (
    :thread_id, :interrupt_id, :run, :checkpoint_ns, :checkpoint_id, :root_id, :task_id, :task_path, :ordinal, :kind,
    :value_type, :value, 'pending', :now_us
) ON CONFLICT (thread_id, interrupt_id) DO NOTHING;

-- name: interrupt_named
-- No index serves it: for a page behind a question of which nothing but its id was given.
SELECT requested_us, interrupt_id, thread_id FROM interrupt
WHERE interrupt_id = :interrupt_id AND (:thread_id IS NULL OR thread_id = :thread_id)
ORDER BY thread_id
LIMIT 1;

-- name: interrupt_open
SELECT interrupt_id FROM interrupt WHERE run = :run AND status = 'pending' LIMIT 1;

-- name: interrupt_task
SELECT task_id, task_path FROM interrupt WHERE thread_id = :thread_id AND interrupt_id = :interrupt_id;

-- name: interrupts_delete
DELETE FROM interrupt WHERE thread_id = :thread_id;

-- name: interrupts_of_run_delete
DELETE FROM interrupt WHERE run = :run;

-- name: interrupts_of_task
-- The open questions of a task that come before the :ordinal-th.
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id FROM interrupt
WHERE run = :run AND task_id = :task_id AND ordinal < :ordinal AND status = 'pending'
ORDER BY ordinal;

-- name: interrupts_open
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id FROM interrupt
WHERE run = :run AND status = 'pending'
ORDER BY requested_us, interrupt_id;

-- name: interrupts_open_at
SELECT interrupt_id, run, checkpoint_ns, checkpoint_id FROM interrupt
WHERE thread_id = :thread_id AND root_id = :root_id AND status = 'pending'
ORDER BY requested_us, interrupt_id;

-- name: interrupts_page
-- Oldest first. A rare listing: it looks at every question, and so does interrupts_page_pending at every open one.
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind) AND (:pending IS NULL OR (interrupt.status = 'pending') = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: interrupts_page_of_run
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.run = :run
    AND (interrupt.requested_us, interrupt.interrupt_id) > (:requested_us, :interrupt_id)
    AND (:kind IS NULL OR interrupt.kind = :kind) AND (:pending IS NULL OR (interrupt.status = 'pending') = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id
LIMIT :size;

-- name: interrupts_page_of_thread
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.thread_id = :thread_id
    AND (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind) AND (:pending IS NULL OR (interrupt.status = 'pending') = (:pending = 1))
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;

-- name: interrupts_page_pending
SELECT interrupt.*, run.run_id FROM interrupt JOIN run ON run.run = interrupt.run
WHERE interrupt.status = 'pending'
    AND (interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id)
        > (:requested_us, :interrupt_id, :last_thread)
    AND (:kind IS NULL OR interrupt.kind = :kind)
ORDER BY interrupt.requested_us, interrupt.interrupt_id, interrupt.thread_id
LIMIT :size;
