-- What opening a session, a turn and a compaction look up, so that their cost does not grow with the log or the store.
-- The conditions are SAID and TODO_RESULT of nca.sessions.sql, in the same words: SQLite compares them as text.
CREATE INDEX messages_said ON messages (session, seq) WHERE role = 'user' AND iif(json_valid(body), body ->> 'is_synthetic', 0) IS NULL;
CREATE INDEX messages_of_todo ON messages (session, seq) WHERE role = 'tool' AND instr(body, '"name":"todo"') > 0;
CREATE INDEX usage_session ON usage (session);
CREATE INDEX summaries_size ON summaries (session, length(body));
CREATE INDEX sessions_directory ON sessions (directory, touched);
