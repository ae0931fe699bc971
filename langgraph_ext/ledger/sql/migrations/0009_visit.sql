-- 0009 visit
--
-- Adds     visit: the visits in which a durable body began, and those around them, each with its place among the others.
-- Why      what a body does is told apart by the round it stands in (L3, L29), which must be known before its task has
--          written anything, and be the same whenever the body is entered again.
-- Locks    new table; nothing to rewrite.
-- Safe     before the code that uses it: yes (older code ignores the table; it deletes no visits with their threads).
-- Undo     DROP TABLE visit;
-- oldest_reader: 1
--
-- checkpoint_id, task_id  the visit, as the saver is told it
-- kind            node | task | error_handler
-- node_path       names of the nodes from the root graph to this one, joined by '/'
-- scope           the task of the enclosing visit; '' in the root graph
-- place           its number in a fan-out; -1 in none
-- ordinal         counts the visits of one node path in one scope and place of one run, from 1
-- iteration_path  the ordinals of the enclosing visits and of its own, joined by '/', outermost first
CREATE TABLE visit (
    thread_id      TEXT    NOT NULL,
    checkpoint_id  TEXT    NOT NULL,
    task_id        TEXT    NOT NULL,
    run            INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    node_path      TEXT    NOT NULL,
    scope          TEXT    NOT NULL,
    place          INTEGER NOT NULL,
    ordinal        INTEGER NOT NULL CHECK (ordinal > 0),
    iteration_path TEXT    NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_id, task_id)
) STRICT;

CREATE UNIQUE INDEX visit_counted ON visit (run, node_path, scope, kind, place, ordinal);
