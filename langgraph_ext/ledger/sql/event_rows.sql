-- Events of their own in checkpoint_log (see the saver's migrations/0001_checkpoint_log.sql).

-- name: event_append
INSERT INTO checkpoint_log (run, thread_id, checkpoint_ns, checkpoint_id, event, details, stored_us, body, data)
VALUES (:run, :thread_id, :checkpoint_ns, :checkpoint_id, :event, :details, :stored_us, :empty, :empty);
