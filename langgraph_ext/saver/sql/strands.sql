-- Queries of the saver, over strand and strand_piece (see migrations/0019_strand.sql). 4294967296 is 2^32.

-- name: strand_tail
-- The last pieces of a channel's strand, the last one first.
SELECT strand.strand, stamp, piece - strand.strand * 4294967296 AS start, coalesce(size, length(data)) AS size
FROM strand JOIN strand_piece
    ON piece >= strand.strand * 4294967296 AND piece < (strand.strand + 1) * 4294967296
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND channel = :channel
ORDER BY piece DESC
LIMIT :size;

-- name: strand_insert
INSERT INTO strand (thread_id, checkpoint_ns, channel, stamp) VALUES (:thread_id, :checkpoint_ns, :channel, :stamp);

-- name: strand_named
SELECT strand FROM strand
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND channel = :channel;

-- name: strands_of_namespace
SELECT strand, channel FROM strand
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns;

-- name: strand_restamp
UPDATE strand SET stamp = :stamp WHERE strand = :strand;

-- name: strand_delete
DELETE FROM strand WHERE strand = :strand;

-- name: strands_delete
DELETE FROM strand WHERE thread_id = :thread_id;

-- name: strands_copy
INSERT INTO strand (thread_id, checkpoint_ns, channel, stamp)
SELECT :target, checkpoint_ns, channel, :stamp FROM strand WHERE thread_id = :source;

-- name: pieces_between
-- Those with bytes between :start and :stop, of the strand that begins at :first.
SELECT piece, data, size FROM strand_piece
WHERE piece >= coalesce((SELECT max(piece) FROM strand_piece WHERE piece >= :first AND piece <= :start), :start)
    AND piece < :stop
ORDER BY piece;

-- name: piece_sizes
SELECT piece, coalesce(size, length(data)) AS size FROM strand_piece
WHERE piece >= :first AND piece < :stop
ORDER BY piece;

-- name: piece_insert
INSERT INTO strand_piece (piece, data, size) VALUES (:piece, :data, :size);

-- name: pieces_delete
DELETE FROM strand_piece WHERE piece >= :first AND piece < :stop;

-- name: pieces_delete_of_thread
DELETE FROM strand_piece WHERE piece IN (
    SELECT piece FROM strand JOIN strand_piece
        ON piece >= strand.strand * 4294967296 AND piece < (strand.strand + 1) * 4294967296
    WHERE thread_id = :thread_id
);

-- name: strands_of_thread
SELECT strand, checkpoint_ns, channel FROM strand WHERE thread_id = :thread_id ORDER BY strand;

-- name: pieces_copy
INSERT INTO strand_piece (piece, data)
SELECT piece + (copy.strand - strand.strand) * 4294967296, data
FROM strand
    JOIN strand AS copy ON copy.thread_id = :target
        AND copy.checkpoint_ns = strand.checkpoint_ns AND copy.channel = strand.channel
    JOIN strand_piece ON piece >= strand.strand * 4294967296 AND piece < (strand.strand + 1) * 4294967296
WHERE strand.thread_id = :source;
