-- 0003 lease
--
-- Adds     lease: who holds a thread, and until when. One row a thread, from its first lease on.
-- Why      one invocation at a time runs a thread; what another one still writes is refused by its epoch.
-- Locks    new table; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the table).
-- Undo     DROP TABLE lease;
-- oldest_reader: 1
--
-- epoch        the fencing token: each hold of a thread has the next one. So that none comes again, the row stays when the
--              lease is released, and when the thread is deleted
-- owner        canonical JSON (ledger/owners.py)
-- ttl_us       for how long it holds if it is not renewed
-- acquired_us  by the clock of who acquired it, renewed or shortened it; so are the next two
-- expires_us   from then on anybody may take it over; until somebody does, its owner may renew it
-- released_us  when its owner gave it back; null while it is held
CREATE TABLE lease (
    thread_id   TEXT    PRIMARY KEY,
    epoch       INTEGER NOT NULL CHECK (epoch > 0),
    owner       TEXT    NOT NULL,
    ttl_us      INTEGER NOT NULL CHECK (ttl_us > 0),
    acquired_us INTEGER NOT NULL,
    expires_us  INTEGER NOT NULL,
    released_us INTEGER
) STRICT;
