-- Exact bytes and the handles that give them back.

CREATE TABLE originals (
    fleet      text NOT NULL,
    sha256     text NOT NULL,
    data       bytea NOT NULL,
    encoding   text NOT NULL,
    size       bigint NOT NULL,
    created_at timestamptz NOT NULL,
    touched_at timestamptz NOT NULL,
    CONSTRAINT originals_pkey PRIMARY KEY (fleet, sha256)
);
COMMENT ON TABLE originals IS 'Exact bytes of tasks, histories, candidates, previous and committed summaries, once a fleet by content.';
COMMENT ON COLUMN originals.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN originals.sha256 IS 'SHA-256 of the exact bytes, lower-case hex.';
COMMENT ON COLUMN originals.data IS 'The bytes, encoded as encoding says.';
COMMENT ON COLUMN originals.encoding IS 'raw or zlib.';
COMMENT ON COLUMN originals.size IS 'Length of the exact bytes.';
COMMENT ON COLUMN originals.created_at IS 'When they were first stored.';
COMMENT ON COLUMN originals.touched_at IS 'When they were last stored again, to ten minutes; keeps collection away.';

CREATE TABLE handles (
    handle      text NOT NULL,
    fleet       text NOT NULL,
    sha256      text,
    kind        text NOT NULL,
    boundary_id uuid,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    erased_at   timestamptz,
    CONSTRAINT handles_pkey PRIMARY KEY (handle)
);
CREATE INDEX handles_boundary ON handles (fleet, boundary_id);
CREATE INDEX handles_original ON handles (fleet, sha256);
COMMENT ON TABLE handles IS 'Random names that give originals back, bound to their fleet.';
COMMENT ON COLUMN handles.handle IS '192 random bits.';
COMMENT ON COLUMN handles.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN handles.sha256 IS 'The original; NULL once erased.';
COMMENT ON COLUMN handles.kind IS 'task, history, candidate, previous, committed or event.';
COMMENT ON COLUMN handles.boundary_id IS 'The boundary that it belongs to.';
COMMENT ON COLUMN handles.created_at IS 'When it was made.';
COMMENT ON COLUMN handles.expires_at IS 'After it the handle answers Gone; NULL: never.';
COMMENT ON COLUMN handles.erased_at IS 'When its content was erased.';

CREATE TABLE recoveries (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    fleet       text NOT NULL,
    handle      text NOT NULL,
    kind        text,
    boundary_id uuid,
    run         text,
    via         text NOT NULL,
    event_id    uuid,
    at          timestamptz NOT NULL,
    CONSTRAINT recoveries_pkey PRIMARY KEY (id),
    CONSTRAINT recoveries_event UNIQUE (fleet, event_id)
);
CREATE INDEX recoveries_boundary ON recoveries (fleet, boundary_id);
COMMENT ON TABLE recoveries IS 'Originals that were given back, and to whom.';
COMMENT ON COLUMN recoveries.id IS 'Number of the recovery.';
COMMENT ON COLUMN recoveries.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN recoveries.handle IS 'The handle that was used.';
COMMENT ON COLUMN recoveries.kind IS 'What the original is.';
COMMENT ON COLUMN recoveries.boundary_id IS 'The boundary that it belongs to.';
COMMENT ON COLUMN recoveries.run IS 'The run that asked, where it is known.';
COMMENT ON COLUMN recoveries.via IS 'gateway, runtime or cli.';
COMMENT ON COLUMN recoveries.event_id IS 'The runtime event that reported it.';
COMMENT ON COLUMN recoveries.at IS 'When.';
