-- 0019 strand
--
-- Adds     strand, strand_piece: the bytes of large channel values, so that a value that was appended to stores what is
--          new in it.
-- Why      a chat of n turns stored n versions of its list of messages, each as long as all before it.
-- Locks    new tables; values that are there stay where they are.
-- Safe     before the code that uses it: yes. Once a large value was stored, older code cannot read it, and may not open the
--          database any more: stop older workers first.
-- Undo     not once a large value was stored: its bytes stand nowhere else.
-- oldest_reader: 19
--
-- A strand is a row of bytes to which others are added at its end, one for each (thread, namespace, channel). Where in it
-- a value lies is said by the places of a put, and by the body of a call (saver/growing.py).
--
-- stamp   the log's number (seq) at which the strand was made, or copied, or bytes were last taken out of it. Under one
--         stamp, bytes that were seen at some place are still there
-- piece   some of its bytes: the strand's number times 2^32, plus where in it they begin. So a strand is read in one walk,
--         by one index, and a piece is added beside the last one
CREATE TABLE strand (
    strand        INTEGER PRIMARY KEY,
    thread_id     TEXT    NOT NULL,
    checkpoint_ns TEXT    NOT NULL,
    channel       TEXT    NOT NULL,
    stamp         INTEGER NOT NULL,
    CHECK (strand < 2147483648)
) STRICT;

CREATE UNIQUE INDEX strand_place ON strand (thread_id, checkpoint_ns, channel);

CREATE TABLE strand_piece (
    piece INTEGER NOT NULL PRIMARY KEY,
    data  BLOB    NOT NULL
) STRICT;
