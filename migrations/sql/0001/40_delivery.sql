-- What runtimes report, what waits to be published, what could not be handled.

CREATE TABLE runtime_events (
    fleet       text NOT NULL,
    event_id    uuid NOT NULL,
    run         text NOT NULL,
    kind        text NOT NULL,
    at          timestamptz NOT NULL,
    boundary_id uuid,
    adopted     text,
    handle      text,
    because     text,
    received_at timestamptz NOT NULL,
    CONSTRAINT runtime_events_pkey PRIMARY KEY (fleet, event_id)
);
CREATE INDEX runtime_events_run ON runtime_events (fleet, run, at);
CREATE INDEX runtime_events_boundary ON runtime_events (fleet, boundary_id, at) WHERE boundary_id IS NOT NULL;
COMMENT ON TABLE runtime_events IS 'What agent runtimes reported: adopted, bypassed, recovered, run_ended.';
COMMENT ON COLUMN runtime_events.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN runtime_events.event_id IS 'The event; a repetition is stored once.';
COMMENT ON COLUMN runtime_events.run IS 'The run.';
COMMENT ON COLUMN runtime_events.kind IS 'adopted, bypassed, recovered or run_ended.';
COMMENT ON COLUMN runtime_events.at IS 'When, by the host''s clock.';
COMMENT ON COLUMN runtime_events.boundary_id IS 'The boundary concerned.';
COMMENT ON COLUMN runtime_events.adopted IS 'committed or candidate.';
COMMENT ON COLUMN runtime_events.handle IS 'What was asked back.';
COMMENT ON COLUMN runtime_events.because IS 'Why, in the runtime''s words.';
COMMENT ON COLUMN runtime_events.received_at IS 'When Winnow stored it.';

CREATE TABLE outbox (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    fleet       text NOT NULL,
    run         text,
    boundary_id uuid,
    topic       text NOT NULL,
    key         text NOT NULL,
    body        bytea NOT NULL,
    encoding    text NOT NULL,
    event_id    uuid NOT NULL,
    headers     jsonb NOT NULL,
    traceparent text,
    created_at  timestamptz NOT NULL,
    sent_at     timestamptz,
    attempts    integer NOT NULL DEFAULT 0,
    last_error  text,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_event UNIQUE (fleet, topic, event_id)
) WITH (fillfactor = 75);
CREATE INDEX outbox_waiting ON outbox (id) WHERE sent_at IS NULL;
CREATE INDEX outbox_boundary ON outbox (fleet, boundary_id);
COMMENT ON TABLE outbox IS 'Records that wait to be published: what starts from HTTP, the command line or a timer.';
COMMENT ON COLUMN outbox.id IS 'Order of insertion.';
COMMENT ON COLUMN outbox.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN outbox.run IS 'The run that it belongs to.';
COMMENT ON COLUMN outbox.boundary_id IS 'The boundary that it belongs to.';
COMMENT ON COLUMN outbox.topic IS 'Topic, without prefix.';
COMMENT ON COLUMN outbox.key IS 'Record key.';
COMMENT ON COLUMN outbox.body IS 'Body, encoded as encoding says.';
COMMENT ON COLUMN outbox.encoding IS 'raw or zlib.';
COMMENT ON COLUMN outbox.event_id IS 'CloudEvents id; the same event is written once.';
COMMENT ON COLUMN outbox.headers IS 'Record headers.';
COMMENT ON COLUMN outbox.traceparent IS 'W3C trace context.';
COMMENT ON COLUMN outbox.created_at IS 'When it was written.';
COMMENT ON COLUMN outbox.sent_at IS 'When the broker acknowledged it; NULL: it waits.';
COMMENT ON COLUMN outbox.attempts IS 'Attempts to publish that failed.';
COMMENT ON COLUMN outbox.last_error IS 'What the last failed attempt said.';

CREATE TABLE dead_letters (
    id          bigint GENERATED ALWAYS AS IDENTITY,
    topic       text NOT NULL,
    partition   integer NOT NULL,
    "offset"    bigint NOT NULL,
    key         bytea,
    value       bytea,
    encoding    text NOT NULL,
    headers     jsonb NOT NULL,
    reason      text NOT NULL,
    error       text NOT NULL,
    service     text NOT NULL,
    attempts    integer NOT NULL DEFAULT 1,
    fleet       text,
    run         text,
    record_at   timestamptz,
    created_at  timestamptz NOT NULL,
    replayed_at timestamptz,
    replays     integer NOT NULL DEFAULT 0,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (id),
    -- A log has one record with one time at an offset. A log that was made anew (the embedded broker's, at each start) counts from 0
    -- again: the time tells its records from those of the log before.
    CONSTRAINT dead_letters_record UNIQUE NULLS NOT DISTINCT (topic, partition, "offset", record_at)
);
CREATE INDEX dead_letters_fleet ON dead_letters (fleet, run);
COMMENT ON TABLE dead_letters IS 'Records that could not be handled: original bytes and headers, and why.';
COMMENT ON COLUMN dead_letters.id IS 'Number of the dead letter.';
COMMENT ON COLUMN dead_letters.topic IS 'Topic that it came from.';
COMMENT ON COLUMN dead_letters.partition IS 'Partition that it came from.';
COMMENT ON COLUMN dead_letters."offset" IS 'Offset that it came from.';
COMMENT ON COLUMN dead_letters.key IS 'Record key as it arrived.';
COMMENT ON COLUMN dead_letters.value IS 'Record body as it arrived, encoded as encoding says; NULL: a tombstone.';
COMMENT ON COLUMN dead_letters.encoding IS 'raw or zlib.';
COMMENT ON COLUMN dead_letters.headers IS 'Record headers: a list of [name, base64 of the value].';
COMMENT ON COLUMN dead_letters.reason IS 'Reason code.';
COMMENT ON COLUMN dead_letters.error IS 'What is wrong, without quoting content.';
COMMENT ON COLUMN dead_letters.service IS 'Service that gave it up.';
COMMENT ON COLUMN dead_letters.attempts IS 'How often that service tried.';
COMMENT ON COLUMN dead_letters.fleet IS 'Fleet, where it could be read.';
COMMENT ON COLUMN dead_letters.run IS 'Run, where it could be read.';
COMMENT ON COLUMN dead_letters.record_at IS 'Time stamp of the record.';
COMMENT ON COLUMN dead_letters.created_at IS 'When it was given up.';
COMMENT ON COLUMN dead_letters.replayed_at IS 'When it was last published to its topic again.';
COMMENT ON COLUMN dead_letters.replays IS 'How often it was published again.';
