-- Where SQLite reads a column out of a summary's JSON, one wrong byte there fails each check of the whole store. Nothing
-- reads these columns.
ALTER TABLE summaries DROP COLUMN id;
ALTER TABLE summaries DROP COLUMN rank;
ALTER TABLE summaries DROP COLUMN ranges;
ALTER TABLE summaries DROP COLUMN made_by;
