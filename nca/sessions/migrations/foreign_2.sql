-- Where to go on reading a file that only grows: all before this byte is in so many messages. The digest tells whether
-- it is still the same file.
ALTER TABLE files ADD COLUMN resume_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE files ADD COLUMN resume_messages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE files ADD COLUMN resume_digest BLOB NOT NULL DEFAULT x'';
