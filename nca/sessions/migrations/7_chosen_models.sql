-- The model that the person chose with /model in this session, as it was typed; '' if the settings chose it.
ALTER TABLE sessions ADD COLUMN chosen_model TEXT NOT NULL DEFAULT '';
