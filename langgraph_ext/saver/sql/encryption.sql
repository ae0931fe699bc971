-- Queries of the keys that a database is encrypted with (see migrations/0021_encryption.sql).
--
-- added_us   since when it is, or was, the one that seals: an older key that is made current again is the newest again

-- name: encryption_keys
-- The newest last.
SELECT name, proof, converting, added_us FROM encryption_key ORDER BY added_us, name;

-- name: encryption_key_add
INSERT INTO encryption_key (name, proof, converting, added_us) VALUES (:name, :proof, :converting, :now_us);

-- name: encryption_key_use
UPDATE encryption_key SET added_us = :now_us WHERE name = :name;

-- name: encryption_key_forget
-- Nothing, if another one has become the newest meanwhile: who uses that one may have sealed with any of them since.
DELETE FROM encryption_key
WHERE name <> :current AND :current = (SELECT name FROM encryption_key ORDER BY added_us DESC, name DESC LIMIT 1);

-- name: encryption_converted
UPDATE encryption_key SET converting = 0;

-- name: encryption_needs_reader
-- From here on older code is refused.
UPDATE migration SET oldest_reader = :version WHERE number = :version AND oldest_reader < :version;

-- name: log_sealed
-- Rows of the log as they are stored.
SELECT
    seq, listed, thread_id, checkpoint_ns, checkpoint_id, task_id, event, details, stored_us, metadata, places, body, data
FROM checkpoint_log WHERE seq > :after AND seq <= :upto
ORDER BY seq
LIMIT :size;

-- name: last_sealed
-- Where a pass over them ends: what others add meanwhile is the next one's.
SELECT
    (SELECT coalesce(max(seq), 0) FROM checkpoint_log) AS log,
    (SELECT coalesce(max(piece), 0) FROM strand_piece) AS piece;

-- name: log_and_pieces
SELECT (SELECT count(*) FROM checkpoint_log) + (SELECT count(*) FROM strand_piece) AS number;

-- name: log_put
UPDATE checkpoint_log SET details = :details, metadata = :metadata, places = :places, body = :body, data = :data
WHERE seq = :seq;

-- name: pieces_sealed
-- Pieces of strands as they are stored.
SELECT piece, data, size, thread_id, checkpoint_ns, channel
FROM strand_piece JOIN strand ON strand.strand = piece / 4294967296
WHERE piece > :after AND piece <= :upto
ORDER BY piece
LIMIT :size;

-- name: piece_put
UPDATE strand_piece SET data = :data, size = :size WHERE piece = :piece;

-- name: database_is_empty
-- And always was: of what is deleted and swept, one row of the log stays.
SELECT NOT (
    EXISTS (SELECT 1 FROM checkpoint_log) OR EXISTS (SELECT 1 FROM run) OR EXISTS (SELECT 1 FROM request)
    OR EXISTS (SELECT 1 FROM agent_run) OR EXISTS (SELECT 1 FROM agent_release)
) AS is_empty;
