-- 0018 agent_said
--
-- Adds     agent_message.message_id, agent_message.said: how a message is known again, without reading it.
-- Why      a chat's turn sees whether its history is the one on record by these alone.
-- Locks    agent_message, for as long as a column without a default takes.
-- Safe     before the code that uses it: yes (older code leaves both null; of such rows the message is read).
-- Undo     ALTER TABLE agent_message DROP COLUMN message_id; ALTER TABLE agent_message DROP COLUMN said;
-- oldest_reader: 1
--
-- message_id  its own; null: it has none, and is called by its row
-- said        a digest of what it says (engine/messages.py: said_of)
ALTER TABLE agent_message ADD COLUMN message_id TEXT;

ALTER TABLE agent_message ADD COLUMN said TEXT;
