-- The full-text index. Triggers keep it in the transaction that adds or deletes a message. `nca_passages` is
-- nca.sessions.passages.passages_of.
CREATE INDEX messages_of_users ON messages (session, seq) WHERE role = 'user';
CREATE VIRTUAL TABLE passages USING fts5 (
    text, extra, scope, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER messages_are_found AFTER INSERT ON messages
BEGIN
    INSERT INTO passages (rowid, text, extra, scope)
    SELECT NEW.id * 4096 + key, value ->> 0, value ->> 1, 's' || NEW.session FROM json_each(nca_passages(NEW.body));
END;
CREATE TRIGGER messages_are_forgotten AFTER DELETE ON messages
BEGIN DELETE FROM passages WHERE rowid BETWEEN OLD.id * 4096 AND OLD.id * 4096 + 4095; END;

INSERT INTO passages (rowid, text, extra, scope)
SELECT messages.id * 4096 + key, value ->> 0, value ->> 1, 's' || session
FROM messages, json_each(nca_passages(messages.body)) ORDER BY messages.id, key;
