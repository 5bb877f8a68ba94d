-- Streams of losses, the monitor's ledger and state, alerts and certificates.

CREATE TABLE streams (
    fleet         text NOT NULL,
    stream        text NOT NULL,
    config        jsonb NOT NULL DEFAULT '{}',
    weight        double precision,
    last_seq      bigint NOT NULL DEFAULT 0,
    registered_at timestamptz NOT NULL,
    closed_at     timestamptz,
    CONSTRAINT streams_pkey PRIMARY KEY (fleet, stream),
    CONSTRAINT streams_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
) WITH (fillfactor = 75);
COMMENT ON TABLE streams IS 'Streams of losses that the drift monitor watches.';
COMMENT ON COLUMN streams.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN streams.stream IS 'Name of the stream.';
COMMENT ON COLUMN streams.config IS 'Budget, error level, bets and missing policy, as registered.';
COMMENT ON COLUMN streams.weight IS 'Share of the fleet''s error budget, fixed at registration.';
COMMENT ON COLUMN streams.last_seq IS 'Last sequence number given.';
COMMENT ON COLUMN streams.registered_at IS 'When it was registered or first seen.';
COMMENT ON COLUMN streams.closed_at IS 'When it was closed; NULL: open.';

CREATE TABLE observation_keys (
    fleet       text NOT NULL,
    stream      text NOT NULL,
    unit        text NOT NULL,
    seq         bigint,
    observed_at timestamptz,
    early_grade jsonb,
    CONSTRAINT observation_keys_pkey PRIMARY KEY (fleet, stream, unit),
    CONSTRAINT observation_keys_seq UNIQUE (fleet, stream, seq)
);
COMMENT ON TABLE observation_keys IS 'Each unit of a stream once: gives the sequence number and finds the unit''s partition.';
COMMENT ON COLUMN observation_keys.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN observation_keys.stream IS 'The stream.';
COMMENT ON COLUMN observation_keys.unit IS 'The run that is graded.';
COMMENT ON COLUMN observation_keys.seq IS 'Place in sampling order; NULL: a grade arrived before the sample.';
COMMENT ON COLUMN observation_keys.observed_at IS 'Partition time of the observation: when the sample was stored; for an early grade, when that was.';
COMMENT ON COLUMN observation_keys.early_grade IS 'A grade that arrived before its sample.';

CREATE TABLE observations (
    fleet           text NOT NULL,
    stream          text NOT NULL,
    seq             bigint NOT NULL,
    observed_at     timestamptz NOT NULL,
    unit            text NOT NULL,
    boundary_id     uuid,
    probability     double precision NOT NULL,
    sampled_at      timestamptz NOT NULL,
    loss            double precision,
    lo              double precision,
    grader          text,
    graded_at       timestamptz,
    grade_stored_at timestamptz,
    fate            text,
    decided_at      timestamptz,
    CONSTRAINT observations_pkey PRIMARY KEY (fleet, stream, seq, observed_at)
) PARTITION BY RANGE (observed_at);
COMMENT ON TABLE observations IS 'Units sampled and graded, in sampling order: the ledger of the drift monitor. Partitioned by month.';
COMMENT ON COLUMN observations.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN observations.stream IS 'The stream.';
COMMENT ON COLUMN observations.seq IS 'Place in sampling order, from 1 in each stream.';
COMMENT ON COLUMN observations.observed_at IS 'When the sample was stored; the month of it is the partition.';
COMMENT ON COLUMN observations.unit IS 'The run that is graded.';
COMMENT ON COLUMN observations.boundary_id IS 'The boundary of the run that it rests on.';
COMMENT ON COLUMN observations.probability IS 'Probability with which the unit was drawn.';
COMMENT ON COLUMN observations.sampled_at IS 'When it was drawn, by the host''s clock.';
COMMENT ON COLUMN observations.loss IS 'Loss in [lo, 1]; NULL: not graded.';
COMMENT ON COLUMN observations.lo IS 'Smallest possible loss: 0, or -1 for paired differences.';
COMMENT ON COLUMN observations.grader IS 'Who graded.';
COMMENT ON COLUMN observations.graded_at IS 'When, by the grader''s clock.';
COMMENT ON COLUMN observations.grade_stored_at IS 'When the grade was stored.';
COMMENT ON COLUMN observations.fate IS 'folded, late or missing; NULL: not decided yet.';
COMMENT ON COLUMN observations.decided_at IS 'When the monitor decided its fate.';

CREATE TABLE monitor_states (
    fleet        text NOT NULL,
    stream       text NOT NULL,
    epoch        integer NOT NULL,
    state        text NOT NULL,
    last_seq     bigint NOT NULL,
    log_evidence double precision,
    status       text NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT monitor_states_pkey PRIMARY KEY (fleet, stream),
    CONSTRAINT monitor_states_streams_fkey FOREIGN KEY (fleet, stream) REFERENCES streams (fleet, stream)
) WITH (fillfactor = 75);
COMMENT ON TABLE monitor_states IS 'State of each stream''s e-process, exactly as the monitor wrote it.';
COMMENT ON COLUMN monitor_states.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN monitor_states.stream IS 'The stream.';
COMMENT ON COLUMN monitor_states.epoch IS 'Epoch of the stream; a change of configuration starts a new one.';
COMMENT ON COLUMN monitor_states.state IS 'JSON text; kept as text, so that a replay is identical to the bit.';
COMMENT ON COLUMN monitor_states.last_seq IS 'Last sequence number folded.';
COMMENT ON COLUMN monitor_states.log_evidence IS 'Natural log of the e-value.';
COMMENT ON COLUMN monitor_states.status IS 'ok, warn, alarm, held, uncertified or insufficient.';
COMMENT ON COLUMN monitor_states.updated_at IS 'When it was written.';

CREATE TABLE monitor_heartbeats (
    monitor text NOT NULL,
    at      timestamptz NOT NULL,
    CONSTRAINT monitor_heartbeats_pkey PRIMARY KEY (monitor)
) WITH (fillfactor = 50);
COMMENT ON TABLE monitor_heartbeats IS 'Signs of life of drift monitors.';
COMMENT ON COLUMN monitor_heartbeats.monitor IS 'Name of the monitor process.';
COMMENT ON COLUMN monitor_heartbeats.at IS 'Its last sign of life.';

CREATE TABLE alerts (
    alert_id     uuid NOT NULL,
    fleet        text NOT NULL,
    stream       text,
    kind         text NOT NULL,
    at           timestamptz NOT NULL,
    log_evidence double precision,
    change_from  bigint,
    change_to    bigint,
    because      text NOT NULL,
    done         text NOT NULL,
    CONSTRAINT alerts_pkey PRIMARY KEY (alert_id)
);
CREATE INDEX alerts_fleet ON alerts (fleet, at);
COMMENT ON TABLE alerts IS 'What operators were told, with the evidence.';
COMMENT ON COLUMN alerts.alert_id IS 'The alert.';
COMMENT ON COLUMN alerts.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN alerts.stream IS 'Stream that alarmed.';
COMMENT ON COLUMN alerts.kind IS 'raised, held, released, certificate_revoked, judge_unpaid or judge_unauthorised.';
COMMENT ON COLUMN alerts.at IS 'When.';
COMMENT ON COLUMN alerts.log_evidence IS 'Natural log of the e-value at the alarm.';
COMMENT ON COLUMN alerts.change_from IS 'Likely change: first sequence number of the window.';
COMMENT ON COLUMN alerts.change_to IS 'Likely change: last sequence number of the window.';
COMMENT ON COLUMN alerts.because IS 'Why, in plain words.';
COMMENT ON COLUMN alerts.done IS 'What Winnow did about it.';

CREATE TABLE certificates (
    certificate_id  uuid NOT NULL,
    fleet           text NOT NULL,
    compressor      text NOT NULL,
    judge           text NOT NULL,
    judge_version   text NOT NULL,
    tau             double precision NOT NULL,
    grader          text NOT NULL,
    data_sha256     text NOT NULL,
    method          text NOT NULL,
    alpha           double precision NOT NULL,
    delta           double precision NOT NULL,
    n               integer NOT NULL,
    losses          double precision NOT NULL,
    denominator     text NOT NULL,
    bound           double precision NOT NULL,
    record          jsonb NOT NULL,
    issued_at       timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    revoked_at      timestamptz,
    revoked_because text,
    CONSTRAINT certificates_pkey PRIMARY KEY (certificate_id),
    CONSTRAINT certificates_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
);
CREATE INDEX certificates_fleet ON certificates (fleet, judge, tau);
COMMENT ON TABLE certificates IS 'Certificates: a risk bound for a judge and threshold of a fleet; they expire, and an alarm revokes them.';
COMMENT ON COLUMN certificates.certificate_id IS 'The certificate.';
COMMENT ON COLUMN certificates.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN certificates.compressor IS 'Compressor that it is bound to.';
COMMENT ON COLUMN certificates.judge IS 'Judge that it is bound to.';
COMMENT ON COLUMN certificates.judge_version IS 'Version of that judge.';
COMMENT ON COLUMN certificates.tau IS 'Threshold that it is bound to.';
COMMENT ON COLUMN certificates.grader IS 'Grader that it is bound to.';
COMMENT ON COLUMN certificates.data_sha256 IS 'Fingerprint of the data.';
COMMENT ON COLUMN certificates.method IS 'Statistical method, with its guarantee class.';
COMMENT ON COLUMN certificates.alpha IS 'Risk budget.';
COMMENT ON COLUMN certificates.delta IS 'Error budget.';
COMMENT ON COLUMN certificates.n IS 'Units graded.';
COMMENT ON COLUMN certificates.losses IS 'Sum of their losses.';
COMMENT ON COLUMN certificates.denominator IS 'What the risk is a share of.';
COMMENT ON COLUMN certificates.bound IS 'Upper bound of the risk.';
COMMENT ON COLUMN certificates.record IS 'The whole certificate: every p-value, the ladder, registration.';
COMMENT ON COLUMN certificates.issued_at IS 'When it was issued.';
COMMENT ON COLUMN certificates.expires_at IS 'When it expires.';
COMMENT ON COLUMN certificates.revoked_at IS 'When it was revoked.';
COMMENT ON COLUMN certificates.revoked_because IS 'Why it was revoked.';
