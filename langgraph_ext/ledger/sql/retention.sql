-- Queries of what must stay of a thread, and of events that are gone (see open_ends.py, retained.py and horizon.py).

-- name: agent_open_of_tree
-- Whether a tree of agent runs that has not ended asks a person, or does not know what came of a call.
SELECT
    EXISTS (SELECT 1 FROM agent_request WHERE agent_request.root_id = :root_id AND agent_request.state = 'open') AS asks,
    EXISTS (
        SELECT 1 FROM agent_operation
        WHERE agent_operation.root_id = :root_id AND agent_operation.state = 'unknown' AND consumed_us IS NULL
            AND on_unknown IN ('ask', 'reconcile')
    ) AS doubts
FROM agent_run WHERE agent_run_id = :root_id AND status IN ('running', 'closing');

-- name: attempts_running_at
-- Where the attempts of a thread stand that may be running.
SELECT checkpoint_ns, checkpoint_id FROM attempt WHERE thread_id = :thread_id AND status = 'running';

-- name: attempt_result_forget
-- sealed: attempt
UPDATE attempt SET writes = :writes WHERE attempt_id = :attempt_id;

-- name: attempts_succeeded_at
SELECT attempt_id FROM attempt
WHERE thread_id = :thread_id AND checkpoint_id = :checkpoint_id AND status = 'succeeded';

-- name: effect_in_doubt
SELECT effect_id FROM effect WHERE thread_id = :thread_id AND status IN ('started', 'unknown') LIMIT 1;

-- name: effects_open_at
-- Where the effects of a thread stand of which nobody knows yet whether they happened.
SELECT checkpoint_ns, checkpoint_id FROM effect
WHERE thread_id = :thread_id AND status IN ('started', 'unknown');

-- name: event_delete
DELETE FROM checkpoint_log WHERE seq = :seq;

-- name: horizon_get
SELECT seq, upto FROM event_horizon WHERE one = 1;

-- name: horizon_put
INSERT INTO event_horizon (one, seq, upto) VALUES (1, :seq, :upto)
ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, upto = excluded.upto;

-- name: interrupt_pending
SELECT interrupt_id FROM interrupt WHERE thread_id = :thread_id AND status = 'pending' LIMIT 1;

-- name: interrupts_pending_at
-- Where the open questions of a thread were asked.
SELECT root_id, checkpoint_ns, checkpoint_id FROM interrupt WHERE thread_id = :thread_id AND status = 'pending';

-- name: run_events_gone
UPDATE run SET gone_upto = :gone_upto, events_gone = :events_gone WHERE run = :run;

-- name: run_life_forget
-- What is left of the own life of a run that has ended, up to some row.
DELETE FROM checkpoint_log
WHERE run = :run AND listed IS NULL AND seq < :seq AND substr(event, 1, 4) = 'run.'
    AND EXISTS (SELECT 1 FROM run WHERE run.run = :run AND ended_us IS NOT NULL);
