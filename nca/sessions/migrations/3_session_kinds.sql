-- `chat` or `run`. Sessions of an older nca may be either; they count as chats, so that nobody misses one.
ALTER TABLE sessions ADD COLUMN kind TEXT NOT NULL DEFAULT 'chat';
