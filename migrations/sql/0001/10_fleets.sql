-- Fleets, their operating points, keys and readers, and the audit log.

CREATE TABLE fleets (
    fleet           text NOT NULL,
    operating_point bigint,
    held_since      timestamptz,
    held_because    text,
    held_by         text,
    hold_alert      uuid,
    created_at      timestamptz NOT NULL,
    CONSTRAINT fleets_pkey PRIMARY KEY (fleet)
);
COMMENT ON TABLE fleets IS 'Fleets of agents: the tenants. One row a fleet, with its current operating point and hold.';
COMMENT ON COLUMN fleets.fleet IS 'Name of the fleet.';
COMMENT ON COLUMN fleets.operating_point IS 'Current operating point; earlier ones stay in operating_points.';
COMMENT ON COLUMN fleets.held_since IS 'Since when the fleet is held: nothing is pruned. NULL: not held.';
COMMENT ON COLUMN fleets.held_because IS 'Why it is held, in plain words.';
COMMENT ON COLUMN fleets.held_by IS 'Who held it: a person, or the drift monitor.';
COMMENT ON COLUMN fleets.hold_alert IS 'The alert that held it.';
COMMENT ON COLUMN fleets.created_at IS 'When the fleet was first seen.';

CREATE TABLE operating_points (
    id                    bigint GENERATED ALWAYS AS IDENTITY,
    fleet                 text NOT NULL,
    mode                  text NOT NULL,
    tau                   double precision NOT NULL,
    judge                 text NOT NULL,
    require_certificate   boolean NOT NULL,
    hold_if_monitor_stale boolean NOT NULL,
    created_at            timestamptz NOT NULL,
    created_by            text NOT NULL,
    because               text,
    CONSTRAINT operating_points_pkey PRIMARY KEY (id),
    CONSTRAINT operating_points_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet),
    CONSTRAINT operating_points_tau CHECK (tau >= 0 AND tau <= 1)
);
CREATE INDEX operating_points_fleet ON operating_points (fleet, id);
COMMENT ON TABLE operating_points IS 'Operating points: mode, threshold and judge of a fleet. Append-only; boundaries name the one they were judged under.';
COMMENT ON COLUMN operating_points.id IS 'Number of the operating point.';
COMMENT ON COLUMN operating_points.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN operating_points.mode IS 'The most that may happen to a candidate: shadow, annotate or enforce.';
COMMENT ON COLUMN operating_points.tau IS 'Threshold: an entry is kept if its score is at least this.';
COMMENT ON COLUMN operating_points.judge IS 'The judge that is asked.';
COMMENT ON COLUMN operating_points.require_certificate IS 'Hold the fleet while it has no valid certificate for this judge and threshold.';
COMMENT ON COLUMN operating_points.hold_if_monitor_stale IS 'Hold the fleet while the drift monitor gives no sign of life.';
COMMENT ON COLUMN operating_points.created_at IS 'When it became current.';
COMMENT ON COLUMN operating_points.created_by IS 'Who set it.';
COMMENT ON COLUMN operating_points.because IS 'Why it was set.';

CREATE TABLE api_keys (
    key_id        uuid NOT NULL,
    fleet         text NOT NULL,
    secret_sha256 text NOT NULL,
    name          text NOT NULL,
    role          text NOT NULL,
    created_at    timestamptz NOT NULL,
    created_by    text NOT NULL,
    revoked_at    timestamptz,
    last_used_at  timestamptz,
    CONSTRAINT api_keys_pkey PRIMARY KEY (key_id),
    CONSTRAINT api_keys_secret UNIQUE (secret_sha256),
    CONSTRAINT api_keys_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
);
COMMENT ON TABLE api_keys IS 'API keys of the gateway, hashed. A key belongs to one fleet.';
COMMENT ON COLUMN api_keys.key_id IS 'Public name of the key.';
COMMENT ON COLUMN api_keys.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN api_keys.secret_sha256 IS 'SHA-256 of the secret; the secret itself is nowhere.';
COMMENT ON COLUMN api_keys.name IS 'What its owner calls it.';
COMMENT ON COLUMN api_keys.role IS 'What it may do: runtime, grader or operator.';
COMMENT ON COLUMN api_keys.created_at IS 'When it was made.';
COMMENT ON COLUMN api_keys.created_by IS 'Who made it.';
COMMENT ON COLUMN api_keys.revoked_at IS 'When it was revoked; a revoked key stays revoked.';
COMMENT ON COLUMN api_keys.last_used_at IS 'Last use, to the minute.';

CREATE TABLE reader_roles (
    role       text NOT NULL,
    fleet      text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    CONSTRAINT reader_roles_pkey PRIMARY KEY (role),
    CONSTRAINT reader_roles_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
);
COMMENT ON TABLE reader_roles IS 'Which fleet an SQL login role sees through the views.';
COMMENT ON COLUMN reader_roles.role IS 'Login role of the database cluster.';
COMMENT ON COLUMN reader_roles.fleet IS 'The fleet that it sees.';
COMMENT ON COLUMN reader_roles.created_at IS 'When it was made.';
COMMENT ON COLUMN reader_roles.created_by IS 'Who made it.';

CREATE TABLE audit_log (
    id      bigint GENERATED ALWAYS AS IDENTITY,
    at      timestamptz NOT NULL,
    fleet   text,
    action  text NOT NULL,
    actor   text NOT NULL,
    because text,
    details jsonb NOT NULL DEFAULT '{}',
    CONSTRAINT audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_fleet ON audit_log (fleet, at);
COMMENT ON TABLE audit_log IS 'Who changed what, when and why. Append-only; holds no content and no secrets.';
COMMENT ON COLUMN audit_log.id IS 'Number of the entry.';
COMMENT ON COLUMN audit_log.at IS 'When.';
COMMENT ON COLUMN audit_log.fleet IS 'The fleet concerned; NULL: the installation.';
COMMENT ON COLUMN audit_log.action IS 'What was done, for example fleet.hold or erase.run.';
COMMENT ON COLUMN audit_log.actor IS 'Who did it: a person, a key or a service.';
COMMENT ON COLUMN audit_log.because IS 'Why, in the words of who did it.';
COMMENT ON COLUMN audit_log.details IS 'Counts and settings of the action.';
