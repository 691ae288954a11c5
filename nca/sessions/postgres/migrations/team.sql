-- One's own sessions by default, those of the whole team where `nca.scope` asks for them, and changes only to one's own.
-- It may run any number of times.
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'nca_team') THEN CREATE ROLE nca_team NOLOGIN; END IF;
END $$;
GRANT USAGE ON SCHEMA nca TO nca_team;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA nca TO nca_team;
REVOKE INSERT, UPDATE, DELETE ON schema_version FROM nca_team;

DO $$
DECLARE part text;
BEGIN
    FOREACH part IN ARRAY ARRAY['sessions', 'messages', 'views', 'summaries', 'compactions', 'pins', 'usage', 'partials', 'passages']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', part);
        EXECUTE format('DROP POLICY IF EXISTS own ON %I', part);
        EXECUTE format('DROP POLICY IF EXISTS team ON %I', part);
        EXECUTE format('CREATE POLICY own ON %I USING (%s)', part, CASE part WHEN 'sessions' THEN 'owner = current_user'
            ELSE 'EXISTS (SELECT 1 FROM sessions WHERE number = session AND owner = current_user)' END);
        -- With a condition the index of the words could not be used: `@@` is not leakproof. A search asks for the sessions.
        EXECUTE format('CREATE POLICY team ON %I FOR SELECT USING (%s)', part, CASE part WHEN 'passages' THEN 'true'
            ELSE 'current_setting(''nca.scope'', true) = ''team''' END);
    END LOOP;
END $$;

-- The statistics of a table with policies are hidden from all for whom these hold. Here they hold for all but its owner.
ALTER TABLE passages NO FORCE ROW LEVEL SECURITY;
CREATE OR REPLACE FUNCTION common_words(OUT words text[], OUT shares real[], OUT total real) RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
    SELECT CAST(CAST(most_common_elems AS text) AS text[]), most_common_elem_freqs, reltuples
    FROM pg_stats JOIN pg_class ON oid = CAST('nca.passages' AS regclass)
    WHERE schemaname = 'nca' AND tablename = 'passages' AND attname = 'lexemes' AND most_common_elems IS NOT NULL
$$;
