-- 0004 effect
--
-- Adds     effect, effect_use: actions on the outside world, and which attempts asked for them.
-- Why      an effect is on record before its call runs, so that none is repeated blindly and none is forgotten.
-- Locks    new tables; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the tables; it deletes no effects with their threads).
-- Undo     DROP TABLE effect_use; DROP TABLE effect;
-- oldest_reader: 1
--
-- attempt_id, epoch   the attempt that called last; the next columns, to iteration_path, are its place
-- ordinal             which attempt-bearing part of its task
-- iteration_path      the ordinals of the enclosing visits and of its own, joined by '/', outermost first
-- part                tells effects of one name in one attempt apart
-- key                 the idempotency key. Who did not happen leaves it free; nobody else does
-- business            whether the caller gave the key, in full or as a base
-- payload_digest      of what the call was given; the payload itself is not stored
-- status              see ledger/effects.py for the moves
-- tries               how often it was called, as far as is known: 1 + retries
-- receipt_type, receipt  what the outside answered: type 'json' and its text, or as the saver's serde encodes it
-- compensate          the importable name of the function that undoes it
-- calling_us          when the call that may still be running began; NULL if none is
CREATE TABLE effect (
    effect_id      TEXT    PRIMARY KEY,
    attempt_id     TEXT    NOT NULL,
    run            INTEGER NOT NULL,
    thread_id      TEXT    NOT NULL,
    checkpoint_ns  TEXT    NOT NULL,
    checkpoint_id  TEXT    NOT NULL,
    task_id        TEXT    NOT NULL,
    ordinal        INTEGER NOT NULL,
    node_path      TEXT    NOT NULL,
    iteration_path TEXT    NOT NULL,
    epoch          INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    part           TEXT,
    key            TEXT    NOT NULL,
    business       INTEGER NOT NULL CHECK (business IN (0, 1)),
    payload_digest TEXT    NOT NULL,
    status         TEXT    NOT NULL CHECK (status IN (
        'started', 'committed', 'unknown', 'not_happened', 'compensated'
    )),
    tries          INTEGER NOT NULL CHECK (tries > 0),
    compensate     TEXT,
    started_us     INTEGER NOT NULL,
    calling_us     INTEGER,
    ended_us       INTEGER,
    receipt_type   TEXT,
    receipt        BLOB,
    CHECK ((receipt IS NULL) = (receipt_type IS NULL)),
    CHECK ((receipt IS NOT NULL) = (status IN ('committed', 'compensated'))),
    CHECK ((ended_us IS NOT NULL) = (status IN ('committed', 'not_happened', 'compensated'))),
    CHECK (calling_us IS NOT NULL OR status <> 'started'),
    CHECK (calling_us IS NULL OR status IN ('started', 'unknown'))
) STRICT;

CREATE UNIQUE INDEX effect_key ON effect (key)
    WHERE status <> 'not_happened';

CREATE INDEX effect_run ON effect (run, started_us, effect_id);

CREATE INDEX effect_visit ON effect (thread_id, checkpoint_id, task_id, ordinal);

CREATE INDEX effect_status ON effect (status, started_us, effect_id);

-- Whose outcome is open when their attempt ends: looked at by each admission.
CREATE INDEX effect_calling ON effect (attempt_id)
    WHERE calling_us IS NOT NULL;

-- One use of a name in one go at an attempt (a paused attempt goes on under another epoch, its body from the beginning).
-- part        '' for none
-- asked_id    the effect id that this use brought along; effect_id is the one it was given
CREATE TABLE effect_use (
    attempt_id     TEXT    NOT NULL,
    epoch          INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    part           TEXT    NOT NULL,
    asked_id       TEXT    NOT NULL,
    effect_id      TEXT    NOT NULL,
    asked_us       INTEGER NOT NULL,
    PRIMARY KEY (attempt_id, epoch, name, part)
) STRICT;
