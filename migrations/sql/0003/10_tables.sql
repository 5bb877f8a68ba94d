-- The drift monitor at work: families and epochs of streams, runs that it watches and closes, what it learned, and webhooks.

ALTER TABLE streams ADD COLUMN family text NOT NULL DEFAULT 'risk', ADD COLUMN position integer,
    ADD CONSTRAINT streams_position UNIQUE (fleet, family, position);
COMMENT ON COLUMN streams.family IS 'Streams that share an error budget: risk or label_free.';
COMMENT ON COLUMN streams.position IS 'Place in the order in which the family''s streams were first folded, from 1; gives the weight.';

ALTER TABLE observations ADD COLUMN epoch integer;
COMMENT ON COLUMN observations.epoch IS 'Epoch of the stream under which its fate was decided.';
COMMENT ON COLUMN observations.fate IS 'folded, missing, late (missing and graded afterwards) or refused; NULL: not decided yet.';
-- Partitions take their comments when they are made; those that are there get them here.
DO $$
DECLARE
    child regclass;
    what text;
BEGIN
    FOR child IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'observations'::regclass LOOP
        FOREACH what IN ARRAY ARRAY['epoch', 'fate'] LOOP
            EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', child, what, col_description('observations'::regclass,
                (SELECT attnum FROM pg_attribute WHERE attrelid = 'observations'::regclass AND attname = what)));
        END LOOP;
    END LOOP;
END
$$;

ALTER TABLE monitor_states ADD COLUMN folded bigint NOT NULL DEFAULT 0, ADD COLUMN missing bigint NOT NULL DEFAULT 0,
    ADD COLUMN refused bigint NOT NULL DEFAULT 0, ADD COLUMN late bigint NOT NULL DEFAULT 0,
    ADD COLUMN due_at timestamptz, ADD COLUMN recertification text;
COMMENT ON COLUMN monitor_states.last_seq IS 'Last sequence number decided.';
COMMENT ON COLUMN monitor_states.folded IS 'Units folded, over all epochs.';
COMMENT ON COLUMN monitor_states.missing IS 'Units that were not graded in time, over all epochs.';
COMMENT ON COLUMN monitor_states.refused IS 'Units of an earlier operating point, compressor or grader, or outside what the stream declared.';
COMMENT ON COLUMN monitor_states.late IS 'Missing units whose grade came afterwards.';
COMMENT ON COLUMN monitor_states.due_at IS 'When the time of the unit that holds up those behind it has passed; NULL: nothing waits.';
COMMENT ON COLUMN monitor_states.recertification IS 'State of the test on fresh data that may end a hold; NULL: none is under way.';
CREATE INDEX monitor_states_due ON monitor_states (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE monitor_epochs (
    fleet          text NOT NULL,
    stream         text NOT NULL,
    epoch          integer NOT NULL,
    from_seq       bigint NOT NULL,
    config         jsonb NOT NULL,
    missing        text NOT NULL,
    signature      jsonb NOT NULL,
    error_share    double precision NOT NULL,
    started_at     timestamptz NOT NULL,
    because        text NOT NULL,
    alarm_seq      bigint,
    alarm_at       timestamptz,
    alarm_rule     text,
    alarm_level    double precision,
    alarm_evidence double precision,
    alert_id       uuid,
    CONSTRAINT monitor_epochs_pkey PRIMARY KEY (fleet, stream, epoch),
    CONSTRAINT monitor_epochs_streams_fkey FOREIGN KEY (fleet, stream) REFERENCES streams (fleet, stream)
);
COMMENT ON TABLE monitor_epochs IS 'Epochs of streams: under which terms units are folded, what each may spend of the error budget, and how it ended.';
COMMENT ON COLUMN monitor_epochs.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN monitor_epochs.stream IS 'The stream.';
COMMENT ON COLUMN monitor_epochs.epoch IS 'Number of the epoch, from 1.';
COMMENT ON COLUMN monitor_epochs.from_seq IS 'First sequence number that belongs to it.';
COMMENT ON COLUMN monitor_epochs.config IS 'Parameters of the monitor: alpha, delta, lo, mode, method, weight and the rest.';
COMMENT ON COLUMN monitor_epochs.missing IS 'What becomes of a unit that is not graded in time: fold or skip.';
COMMENT ON COLUMN monitor_epochs.signature IS 'What its units have in common: operating point, compressor, grader.';
COMMENT ON COLUMN monitor_epochs.error_share IS 'Chance of a false alarm that this epoch may spend of its family''s budget.';
COMMENT ON COLUMN monitor_epochs.started_at IS 'When it was opened.';
COMMENT ON COLUMN monitor_epochs.because IS 'Why it was opened, in plain words.';
COMMENT ON COLUMN monitor_epochs.alarm_seq IS 'Last sequence number folded before its state was frozen by an alarm; NULL: none.';
COMMENT ON COLUMN monitor_epochs.alarm_at IS 'When it alarmed.';
COMMENT ON COLUMN monitor_epochs.alarm_rule IS 'Which level was reached: own, e-bh or fleet.';
COMMENT ON COLUMN monitor_epochs.alarm_level IS 'Evidence that was enough for it.';
COMMENT ON COLUMN monitor_epochs.alarm_evidence IS 'Natural log of the evidence then.';
COMMENT ON COLUMN monitor_epochs.alert_id IS 'The alert that told of it.';

CREATE TABLE open_runs (
    fleet    text NOT NULL,
    run      text NOT NULL,
    seen_at  timestamptz NOT NULL,
    ended_at timestamptz,
    due_at   timestamptz NOT NULL,
    slot     timestamptz NOT NULL,
    in_slot  integer NOT NULL DEFAULT 0,
    CONSTRAINT open_runs_pkey PRIMARY KEY (fleet, run),
    CONSTRAINT open_runs_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
) WITH (fillfactor = 70);
CREATE INDEX open_runs_due ON open_runs (due_at);
COMMENT ON TABLE open_runs IS 'Runs of which something was heard and that are not closed: run_ended or idle time closes them.';
COMMENT ON COLUMN open_runs.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN open_runs.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN open_runs.seen_at IS 'When something was last heard of it, by the monitor''s clock.';
COMMENT ON COLUMN open_runs.ended_at IS 'When the monitor heard that it ended; NULL: it did not yet.';
COMMENT ON COLUMN open_runs.due_at IS 'When it is closed, if nothing more is heard.';
COMMENT ON COLUMN open_runs.slot IS 'The ten minutes in which it last had a boundary.';
COMMENT ON COLUMN open_runs.in_slot IS 'Boundaries that it had in them: many are a loop.';

CREATE TABLE fleet_activity (
    fleet      text NOT NULL,
    slot       timestamptz NOT NULL,
    boundaries integer NOT NULL,
    not_judged integer NOT NULL,
    CONSTRAINT fleet_activity_pkey PRIMARY KEY (fleet, slot),
    CONSTRAINT fleet_activity_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
) WITH (fillfactor = 50);
COMMENT ON TABLE fleet_activity IS 'Boundaries of a fleet in each ten minutes, as the drift monitor counted them.';
COMMENT ON COLUMN fleet_activity.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN fleet_activity.slot IS 'Begin of the ten minutes, by the monitor''s clock.';
COMMENT ON COLUMN fleet_activity.boundaries IS 'Boundaries that ended.';
COMMENT ON COLUMN fleet_activity.not_judged IS 'Those of them that were not judged.';

CREATE TABLE run_units (
    fleet           text NOT NULL,
    run             text NOT NULL,
    closed_at       timestamptz NOT NULL,
    because         text NOT NULL,
    boundaries      integer NOT NULL,
    boundary_id     uuid,
    coin            double precision NOT NULL,
    probability     double precision,
    unjudged        boolean,
    fallback        boolean,
    recovered       boolean,
    CONSTRAINT run_units_pkey PRIMARY KEY (fleet, run),
    CONSTRAINT run_units_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
);
CREATE INDEX run_units_closed ON run_units (fleet, closed_at);
COMMENT ON TABLE run_units IS 'Closed runs, the boundary of each that a coin picked, and what it says: one value a run for the streams that nobody grades.';
COMMENT ON COLUMN run_units.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN run_units.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN run_units.closed_at IS 'When it was closed.';
COMMENT ON COLUMN run_units.because IS 'run_ended or idle.';
COMMENT ON COLUMN run_units.boundaries IS 'Committed boundaries that it had.';
COMMENT ON COLUMN run_units.boundary_id IS 'The boundary that the coin picked; NULL: there was none.';
COMMENT ON COLUMN run_units.coin IS 'The coin: a number in [0, 1), whose product with boundaries says which one, in the order of their time.';
COMMENT ON COLUMN run_units.probability IS 'Probability with which this boundary was picked.';
COMMENT ON COLUMN run_units.unjudged IS 'It was not judged.';
COMMENT ON COLUMN run_units.fallback IS 'Another judge answered than the one that should have, or the runtime went past Winnow.';
COMMENT ON COLUMN run_units.recovered IS 'The agent asked back something of it; NULL: not observable, the runtime did not say that the agent can.';

CREATE TABLE prune_profiles (
    fleet              text NOT NULL,
    judge              text NOT NULL,
    judge_version      text NOT NULL,
    later              boolean NOT NULL,
    learned_boundaries bigint NOT NULL DEFAULT 0,
    learned_rate       double precision NOT NULL DEFAULT 0,
    learned_spread     double precision NOT NULL DEFAULT 0,
    recent_boundaries  bigint NOT NULL DEFAULT 0,
    recent_rate        double precision NOT NULL DEFAULT 0,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT prune_profiles_pkey PRIMARY KEY (fleet, judge, judge_version, later),
    CONSTRAINT prune_profiles_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
) WITH (fillfactor = 50);
COMMENT ON TABLE prune_profiles IS 'What share of entries a fleet''s judge finds unsupported: learned from its first boundaries, and lately. An estimate without guarantee.';
COMMENT ON COLUMN prune_profiles.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN prune_profiles.judge IS 'The judge.';
COMMENT ON COLUMN prune_profiles.judge_version IS 'Its version.';
COMMENT ON COLUMN prune_profiles.later IS 'Later boundaries of their runs; false: first ones.';
COMMENT ON COLUMN prune_profiles.learned_boundaries IS 'Boundaries that the profile was learned from.';
COMMENT ON COLUMN prune_profiles.learned_rate IS 'Mean share of entries pruned, or that would have been.';
COMMENT ON COLUMN prune_profiles.learned_spread IS 'Sum of squared differences from the mean.';
COMMENT ON COLUMN prune_profiles.recent_boundaries IS 'Boundaries since it was learned.';
COMMENT ON COLUMN prune_profiles.recent_rate IS 'Exponentially weighted mean share since then.';
COMMENT ON COLUMN prune_profiles.updated_at IS 'When it last changed.';

ALTER TABLE boundaries ADD COLUMN watched_at timestamptz;
COMMENT ON COLUMN boundaries.watched_at IS 'When the drift monitor counted it; NULL: not yet.';

ALTER TABLE runtime_events ADD COLUMN recovery_tool boolean;
COMMENT ON COLUMN runtime_events.recovery_tool IS 'Whether the agent can ask back what was pruned; NULL: not said.';

ALTER TABLE alerts ADD COLUMN guarantee text, ADD COLUMN details jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN alerts.guarantee IS 'How far it may be trusted: anytime, arl or none; NULL: it tells of an act.';
COMMENT ON COLUMN alerts.details IS 'The evidence in numbers: level, rates before and after, attribution, what was revoked.';
COMMENT ON COLUMN alerts.kind IS 'raised, warned, held, released, certificate_revoked, judge_unpaid or judge_unauthorised.';

CREATE TABLE webhook_deliveries (
    delivery_id  bigint GENERATED ALWAYS AS IDENTITY,
    alert_id     uuid NOT NULL,
    fleet        text NOT NULL,
    body         text NOT NULL,
    created_at   timestamptz NOT NULL,
    next_at      timestamptz,
    attempts     integer NOT NULL DEFAULT 0,
    delivered_at timestamptz,
    dead_at      timestamptz,
    last_status  integer,
    last_error   text,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (delivery_id),
    CONSTRAINT webhook_deliveries_alert UNIQUE (alert_id)
) WITH (fillfactor = 70);
CREATE INDEX webhook_deliveries_next ON webhook_deliveries (next_at) WHERE next_at IS NOT NULL;
COMMENT ON TABLE webhook_deliveries IS 'Alerts that go to the webhook: written with the alert, sent at least once, given up in plain sight.';
COMMENT ON COLUMN webhook_deliveries.delivery_id IS 'Number of the delivery.';
COMMENT ON COLUMN webhook_deliveries.alert_id IS 'The alert.';
COMMENT ON COLUMN webhook_deliveries.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN webhook_deliveries.body IS 'What is sent: the alert as JSON, byte for byte the same at each attempt.';
COMMENT ON COLUMN webhook_deliveries.created_at IS 'When the alert was raised.';
COMMENT ON COLUMN webhook_deliveries.next_at IS 'When it is tried next; NULL: it was delivered or given up.';
COMMENT ON COLUMN webhook_deliveries.attempts IS 'Attempts so far.';
COMMENT ON COLUMN webhook_deliveries.delivered_at IS 'When the other side took it.';
COMMENT ON COLUMN webhook_deliveries.dead_at IS 'When it was given up.';
COMMENT ON COLUMN webhook_deliveries.last_status IS 'HTTP status of the last answer.';
COMMENT ON COLUMN webhook_deliveries.last_error IS 'What went wrong at the last attempt, without content.';

INSERT INTO locks (name) VALUES ('families');
COMMENT ON COLUMN locks.name IS 'What is done: relay, partitions, retention, families.';
