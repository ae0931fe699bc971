-- Queries of model and tool calls, and of budgets (see migrations/0012_usage.sql). A row of `call` is one physical call of
-- a model or a tool; the calls that LangGraph makes of the saver are rows of checkpoint_log.

-- name: budget_get
SELECT turns, tokens, cost_nusd, wall_us, spawns FROM budget WHERE run = :run;

-- name: budget_delete
DELETE FROM budget WHERE run IN (SELECT run FROM run WHERE thread_id = :thread_id);

-- name: budget_of_run_delete
DELETE FROM budget WHERE run = :run;

-- name: budget_raise
UPDATE budget SET
    turns = :turns, tokens = :tokens, cost_nusd = :cost_nusd, wall_us = :wall_us, spawns = :spawns, raised_us = :now_us
WHERE run = :run;

-- name: budget_set
-- No row changes when the run has one: what is on record counts.
INSERT INTO budget (run, turns, tokens, cost_nusd, wall_us, spawns, set_us)
VALUES (:run, :turns, :tokens, :cost_nusd, :wall_us, :spawns, :now_us)
ON CONFLICT (run) DO NOTHING;

-- name: model_call_close
-- Compare-and-set: no answer comes. What it may have used stays reserved.
UPDATE call SET status = 'interrupted', error_type = :error_type, ended_us = :now_us
WHERE call_id = :call_id AND status = 'open';

-- name: model_call_get
SELECT * FROM call WHERE call_id = :call_id;

-- name: model_call_settle
-- Compare-and-set.
UPDATE call SET
    status = 'settled', tokens_in = :tokens_in, tokens_out = :tokens_out, cache_read = :cache_read,
    cache_written = :cache_written, cost_nusd = :cost_nusd, tool_calls = :tool_calls, tokens_held = :tokens_held,
    cost_held_nusd = :cost_held_nusd, ended_us = :now_us
WHERE call_id = :call_id AND status = 'open';

-- name: model_call_start
INSERT INTO call (
    call_id, run, thread_id, epoch, held_us, checkpoint_ns, checkpoint_id, task_id, node, attempt_id, ordinal, kind, role,
    provider, model, prompt_bytes, context_bytes, status, bound_tokens, bound_cost_nusd, tokens_held, cost_held_nusd,
    started_us
) SELECT
    :call_id, :run, :thread_id, :epoch, :held_us, :checkpoint_ns, :checkpoint_id, :task_id, :node, :attempt_id,
    (
        SELECT coalesce(max(ordinal), 0) + 1 FROM call
        WHERE thread_id = :thread_id AND epoch = :epoch AND coalesce(task_id, '') = coalesce(:task_id, '')
            AND coalesce(attempt_id, '') = coalesce(:attempt_id, '')
    ),
    :kind, :role, :provider, :model, :prompt_bytes, :context_bytes, 'open', :bound_tokens, :bound_cost_nusd,
    coalesce(:bound_tokens, 0), coalesce(:bound_cost_nusd, 0), :now_us;

-- name: model_calls_adopt
-- Those made under an epoch before its run was known.
UPDATE call SET run = :run WHERE thread_id = :thread_id AND epoch = :epoch AND run IS NULL;

-- name: model_calls_close_left
-- Those that an earlier owner of the thread left open.
UPDATE call SET status = 'interrupted', error_type = 'owner_lost', ended_us = :now_us
WHERE thread_id = :thread_id AND epoch < :epoch AND status = 'open';

-- name: model_calls_delete
DELETE FROM call WHERE thread_id = :thread_id;

-- name: model_calls_early
-- The newest hold under which calls were made whose run is not known.
SELECT epoch, held_us FROM call
WHERE thread_id = :thread_id AND run IS NULL
ORDER BY epoch DESC
LIMIT 1;

-- name: model_calls_of_run
SELECT * FROM call WHERE run = :run AND (started_us, call_id) > (:started_us, :call_id)
ORDER BY started_us, call_id
LIMIT :size;

-- name: model_calls_of_run_delete
DELETE FROM call WHERE run = :run;

-- name: run_being_run
-- The run of a thread's newest root checkpoint, with what attached invocations have run of it.
SELECT run.run, run.run_id, run.status, run.started_us, run.active_us
FROM checkpoint_log AS head JOIN run ON run.run = head.run
WHERE head.thread_id = :thread_id AND head.checkpoint_ns = '' AND head.listed = 1
    AND head.checkpoint_id = (
        SELECT max(checkpoint_id) FROM checkpoint_log
        WHERE thread_id = :thread_id AND checkpoint_ns = '' AND listed = 1
    );

-- name: slice_get
SELECT * FROM budget_slice WHERE slice_id = :slice_id;

-- name: slice_settle
-- Compare-and-set.
UPDATE budget_slice SET
    status = 'settled', used_turns = :used_turns, used_tokens = :used_tokens, used_cost_nusd = :used_cost_nusd,
    used_spawns = :used_spawns, ended_us = :now_us
WHERE slice_id = :slice_id AND status = 'open';

-- name: slice_start
INSERT INTO budget_slice (
    slice_id, run, status, turns, tokens, cost_nusd, spawns, used_turns, used_tokens, used_cost_nusd, used_spawns,
    started_us
) VALUES (:slice_id, :run, 'open', :turns, :tokens, :cost_nusd, :spawns, 0, 0, 0, 0, :now_us);

-- name: slices_delete
DELETE FROM budget_slice WHERE run IN (SELECT run FROM run WHERE thread_id = :thread_id);

-- name: slices_of_run
-- What is reserved and used by the child runs of a run.
SELECT
    count(*) AS spawns,
    coalesce(sum(CASE WHEN status = 'open' THEN coalesce(turns, 0) ELSE 0 END), 0) AS turns_held,
    coalesce(sum(CASE WHEN status = 'open' THEN coalesce(tokens, 0) ELSE 0 END), 0) AS tokens_held,
    coalesce(sum(CASE WHEN status = 'open' THEN coalesce(cost_nusd, 0) ELSE 0 END), 0) AS cost_held,
    coalesce(sum(CASE WHEN status = 'open' THEN coalesce(spawns, 0) ELSE 0 END), 0) AS spawns_held,
    coalesce(sum(used_turns), 0) AS turns_used, coalesce(sum(used_tokens), 0) AS tokens_used,
    coalesce(sum(used_cost_nusd), 0) AS cost_used, coalesce(sum(used_spawns), 0) AS spawns_used
FROM budget_slice WHERE run = :run;

-- name: slices_of_run_delete
DELETE FROM budget_slice WHERE run = :run;

-- name: usage_early
-- As usage_of_run, of the calls made under an epoch before its run was known.
SELECT
    count(*) AS calls,
    coalesce(sum(CASE WHEN status = 'settled' THEN 1 ELSE 0 END), 0) AS settled,
    coalesce(sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END), 0) AS open,
    coalesce(sum(tokens_in), 0) AS tokens_in, coalesce(sum(tokens_out), 0) AS tokens_out,
    coalesce(sum(cache_read), 0) AS cache_read, coalesce(sum(cache_written), 0) AS cache_written,
    coalesce(sum(cost_nusd), 0) AS cost_nusd, coalesce(sum(tokens_held), 0) AS tokens_held,
    coalesce(sum(cost_held_nusd), 0) AS cost_held,
    coalesce(sum(CASE WHEN status <> 'open' AND (tokens_in IS NULL OR tokens_out IS NULL) THEN 1 ELSE 0 END), 0)
        AS tokens_unknown,
    coalesce(sum(CASE WHEN status <> 'open' AND cost_nusd IS NULL THEN 1 ELSE 0 END), 0) AS cost_unknown
FROM call WHERE thread_id = :thread_id AND epoch = :epoch AND run IS NULL;

-- name: usage_of_run
-- What the calls of a run used, as far as it was reported, and what is reserved for them.
SELECT
    count(*) AS calls,
    coalesce(sum(CASE WHEN status = 'settled' THEN 1 ELSE 0 END), 0) AS settled,
    coalesce(sum(CASE WHEN status = 'open' THEN 1 ELSE 0 END), 0) AS open,
    coalesce(sum(tokens_in), 0) AS tokens_in, coalesce(sum(tokens_out), 0) AS tokens_out,
    coalesce(sum(cache_read), 0) AS cache_read, coalesce(sum(cache_written), 0) AS cache_written,
    coalesce(sum(cost_nusd), 0) AS cost_nusd, coalesce(sum(tokens_held), 0) AS tokens_held,
    coalesce(sum(cost_held_nusd), 0) AS cost_held,
    coalesce(sum(CASE WHEN status <> 'open' AND (tokens_in IS NULL OR tokens_out IS NULL) THEN 1 ELSE 0 END), 0)
        AS tokens_unknown,
    coalesce(sum(CASE WHEN status <> 'open' AND cost_nusd IS NULL THEN 1 ELSE 0 END), 0) AS cost_unknown
FROM call WHERE run = :run;

-- name: verify_model_calls
-- Calls of runs that do not exist.
SELECT call_id FROM call
WHERE call_id > :after AND run IS NOT NULL AND NOT EXISTS (SELECT 1 FROM run WHERE run.run = call.run)
ORDER BY call_id
LIMIT :size;

-- name: verify_model_calls_of_run
SELECT
    call_id, status, tokens_in, tokens_out, cost_nusd, bound_tokens, bound_cost_nusd, tokens_held, cost_held_nusd,
    EXISTS (SELECT 1 FROM lease WHERE lease.thread_id = call.thread_id AND lease.epoch > call.epoch) AS left_behind
FROM call WHERE run = :run;

-- name: verify_slices_of_run
SELECT * FROM budget_slice WHERE run = :run ORDER BY started_us, slice_id;

-- name: visits_with_calls
-- How the visits of a run that made a model call were settled, the newest first.
SELECT visit.event FROM checkpoint_log AS visit
WHERE visit.listed IS NULL AND visit.metadata IS NULL AND visit.event IN (
        'visit.succeeded', 'visit.failed', 'visit.timed_out'
    )
    AND visit.seq IN (
        SELECT log.seq FROM call JOIN checkpoint_log AS log
            ON log.thread_id = call.thread_id AND log.checkpoint_ns = call.checkpoint_ns
            AND log.checkpoint_id = call.checkpoint_id AND log.listed IS NULL AND log.metadata IS NULL
            AND log.task_id = call.task_id
        WHERE call.run = :run AND call.kind = 'model'
    )
ORDER BY visit.seq DESC
LIMIT :size;
