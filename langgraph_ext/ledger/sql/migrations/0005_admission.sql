-- 0005 admission
--
-- Adds     attempt.node, attempt.kind, attempt.effect: what a durable node declares; attempt.authorized_us: when somebody
--          took it on himself that the next attempt may act though nobody knows how this one ended.
-- Why      a visit never changes what it is (L2), and what an interrupted attempt may have done is asked about (L20).
-- Locks    new columns with defaults; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code makes no attempts).
-- Undo     ALTER TABLE attempt DROP COLUMN node; … kind; … effect; … authorized_us;
-- oldest_reader: 1
--
-- effect  none | write | opaque
ALTER TABLE attempt ADD COLUMN node TEXT NOT NULL DEFAULT '';

ALTER TABLE attempt ADD COLUMN kind TEXT;

ALTER TABLE attempt ADD COLUMN effect TEXT NOT NULL DEFAULT 'none' CHECK (effect IN ('none', 'write', 'opaque'));

ALTER TABLE attempt ADD COLUMN authorized_us INTEGER;

-- Whether the lease is an invocation's, and not one that an attempt took by itself: who is not attached keeps away.
ALTER TABLE lease ADD COLUMN whole INTEGER NOT NULL DEFAULT 0 CHECK (whole IN (0, 1));
