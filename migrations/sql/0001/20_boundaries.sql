-- Runs, boundaries and what each stage adds to them.

CREATE TABLE runs (
    fleet      text NOT NULL,
    run        text NOT NULL,
    agent      text NOT NULL,
    host       text,
    boundaries integer NOT NULL DEFAULT 0,
    first_at   timestamptz NOT NULL,
    last_at    timestamptz NOT NULL,
    ended_at   timestamptz,
    CONSTRAINT runs_pkey PRIMARY KEY (fleet, run)
) WITH (fillfactor = 80);
CREATE INDEX runs_recent ON runs (fleet, last_at, run);
COMMENT ON TABLE runs IS 'Runs: sessions or trajectories of agents, as boundaries and runtime events tell of them.';
COMMENT ON COLUMN runs.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN runs.run IS 'Name of the run, as the host gives it.';
COMMENT ON COLUMN runs.agent IS 'The agent within the fleet.';
COMMENT ON COLUMN runs.host IS 'The agent runtime.';
COMMENT ON COLUMN runs.boundaries IS 'Boundaries stored for the run.';
COMMENT ON COLUMN runs.first_at IS 'Time of its first boundary or event.';
COMMENT ON COLUMN runs.last_at IS 'Time of its last boundary or event.';
COMMENT ON COLUMN runs.ended_at IS 'When the runtime reported run_ended; NULL: not reported.';

CREATE TABLE boundaries (
    fleet                text NOT NULL,
    boundary_id          uuid NOT NULL,
    run                  text NOT NULL,
    agent                text NOT NULL,
    boundary_index       integer NOT NULL,
    boundary_at          timestamptz NOT NULL,
    request_sha256       text NOT NULL,
    host                 text,
    profile              text,
    trigger              text NOT NULL,
    mode                 text NOT NULL,
    effective_mode       text,
    rules                text NOT NULL,
    deadline             timestamptz,
    operating_point      bigint,
    task_sha256          text NOT NULL,
    history_sha256       text NOT NULL,
    previous_sha256      text,
    candidate_sha256     text NOT NULL,
    committed_sha256     text,
    previous_boundary_id uuid,
    parent_boundary_id   uuid,
    user_turns_survive   boolean,
    compressor           text,
    tokens_before        integer,
    tokens_after         integer,
    outcome              text,
    reason               text,
    held                 boolean NOT NULL DEFAULT false,
    held_because         text,
    late                 boolean NOT NULL DEFAULT false,
    entries              integer,
    pruned               integer,
    tau                  double precision,
    judge                text,
    judge_version        text,
    fallback_for         text,
    received_at          timestamptz NOT NULL,
    evidence_at          timestamptz,
    scored_at            timestamptz,
    committed_at         timestamptz,
    swept_at             timestamptz,
    sweeps               integer NOT NULL DEFAULT 0,
    traceparent          text,
    warnings             text[] NOT NULL DEFAULT '{}',
    CONSTRAINT boundaries_pkey PRIMARY KEY (fleet, boundary_id),
    CONSTRAINT boundaries_fleets_fkey FOREIGN KEY (fleet) REFERENCES fleets (fleet)
) WITH (fillfactor = 75);
CREATE INDEX boundaries_time ON boundaries (fleet, boundary_at, boundary_id);
CREATE INDEX boundaries_run ON boundaries (fleet, run, boundary_at, boundary_id);
CREATE INDEX boundaries_committed_text ON boundaries (fleet, run, committed_sha256);
CREATE INDEX boundaries_candidate_text ON boundaries (fleet, run, candidate_sha256);
CREATE INDEX boundaries_open ON boundaries (received_at) WHERE committed_at IS NULL;
COMMENT ON TABLE boundaries IS 'Compaction boundaries: the anchor of entries, evidence, scores and decisions. One row a boundary, with its stage times.';
COMMENT ON COLUMN boundaries.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN boundaries.boundary_id IS 'Unique within the fleet; UUIDv5 of fleet, run, index and candidate hash unless the host gives one.';
COMMENT ON COLUMN boundaries.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN boundaries.agent IS 'The agent within the fleet.';
COMMENT ON COLUMN boundaries.boundary_index IS 'Number of the boundary in the run, as the host counts.';
COMMENT ON COLUMN boundaries.boundary_at IS 'Anchor time, fixed by the first insert: the host''s clock, or the receive time where that is missing or absurd.';
COMMENT ON COLUMN boundaries.request_sha256 IS 'Hash of what was asked; the same id with another hash is a conflict.';
COMMENT ON COLUMN boundaries.host IS 'The agent runtime.';
COMMENT ON COLUMN boundaries.profile IS 'Summary format that was used to parse.';
COMMENT ON COLUMN boundaries.trigger IS 'Why the host compacted: threshold, overflow, manual, api.';
COMMENT ON COLUMN boundaries.mode IS 'Mode that the event asked for.';
COMMENT ON COLUMN boundaries.effective_mode IS 'Mode that applied: the mildest of the event''s, the fleet''s, and annotate while held.';
COMMENT ON COLUMN boundaries.rules IS 'Which system judged: winnow or published.';
COMMENT ON COLUMN boundaries.deadline IS 'After it the agent went on with its own candidate.';
COMMENT ON COLUMN boundaries.operating_point IS 'Operating point stamped by the retriever.';
COMMENT ON COLUMN boundaries.task_sha256 IS 'Hash of the task prompt.';
COMMENT ON COLUMN boundaries.history_sha256 IS 'Hash of the stored messages H and R.';
COMMENT ON COLUMN boundaries.previous_sha256 IS 'Hash of the previous summary; NULL at the first boundary.';
COMMENT ON COLUMN boundaries.candidate_sha256 IS 'Hash of the candidate summary.';
COMMENT ON COLUMN boundaries.committed_sha256 IS 'Hash of the committed summary; NULL until committed, and for rejected boundaries.';
COMMENT ON COLUMN boundaries.previous_boundary_id IS 'Previous boundary as the host names it.';
COMMENT ON COLUMN boundaries.parent_boundary_id IS 'Boundary whose committed or candidate text the previous summary is, found by hash.';
COMMENT ON COLUMN boundaries.user_turns_survive IS 'Whether user turns stay visible after compaction, as the host says; NULL: the profile''s default.';
COMMENT ON COLUMN boundaries.compressor IS 'Model that wrote the candidate.';
COMMENT ON COLUMN boundaries.tokens_before IS 'Tokens of the context before compaction, by the host''s count.';
COMMENT ON COLUMN boundaries.tokens_after IS 'Tokens after it.';
COMMENT ON COLUMN boundaries.outcome IS 'judged, judged_partial, unjudged, not_a_summary or rejected; NULL until committed.';
COMMENT ON COLUMN boundaries.reason IS 'Reason code of every outcome but judged.';
COMMENT ON COLUMN boundaries.held IS 'The fleet was held when this boundary was committed.';
COMMENT ON COLUMN boundaries.held_because IS 'Why it was held.';
COMMENT ON COLUMN boundaries.late IS 'Committed after the deadline: stored, never applied.';
COMMENT ON COLUMN boundaries.entries IS 'Entries of the candidate.';
COMMENT ON COLUMN boundaries.pruned IS 'Entries left out of the committed summary.';
COMMENT ON COLUMN boundaries.tau IS 'Threshold that was applied.';
COMMENT ON COLUMN boundaries.judge IS 'Judge that answered.';
COMMENT ON COLUMN boundaries.judge_version IS 'Version of that judge.';
COMMENT ON COLUMN boundaries.fallback_for IS 'Judge that should have answered and did not.';
COMMENT ON COLUMN boundaries.received_at IS 'When Winnow first stored the boundary.';
COMMENT ON COLUMN boundaries.evidence_at IS 'When the retriever''s answer was stored.';
COMMENT ON COLUMN boundaries.scored_at IS 'When the judge''s answer was stored.';
COMMENT ON COLUMN boundaries.committed_at IS 'When the pruner''s answer was stored.';
COMMENT ON COLUMN boundaries.swept_at IS 'When the sweeper last published it again.';
COMMENT ON COLUMN boundaries.sweeps IS 'How often the sweeper published it again.';
COMMENT ON COLUMN boundaries.traceparent IS 'W3C trace context of the candidate.';
COMMENT ON COLUMN boundaries.warnings IS 'What parser, retriever and pruner had to say.';

CREATE TABLE entries (
    fleet               text NOT NULL,
    boundary_id         uuid NOT NULL,
    boundary_at         timestamptz NOT NULL,
    n                   integer NOT NULL,
    section             text NOT NULL,
    section_class       text NOT NULL,
    text                text NOT NULL,
    text_key            text NOT NULL,
    entry_key           text NOT NULL,
    parent              integer,
    lead_in             integer,
    span_start          integer NOT NULL,
    span_end            integer NOT NULL,
    pinned_by           text,
    truncated           boolean NOT NULL,
    provenance          text NOT NULL,
    sources             text[] NOT NULL,
    previous_entry      integer,
    previous_key        text,
    previous_similarity double precision NOT NULL,
    origins             jsonb NOT NULL,
    features            jsonb NOT NULL,
    CONSTRAINT entries_pkey PRIMARY KEY (fleet, boundary_id, n, boundary_at)
) PARTITION BY RANGE (boundary_at);
COMMENT ON TABLE entries IS 'Entries of candidate summaries, with provenance and features. Partitioned by month.';
COMMENT ON COLUMN entries.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN entries.boundary_id IS 'The boundary, unique within the fleet.';
COMMENT ON COLUMN entries.boundary_at IS 'Copy of the boundary''s anchor time; the month of it is the partition.';
COMMENT ON COLUMN entries.n IS 'Number of the entry in the candidate summary, from 1.';
COMMENT ON COLUMN entries.section IS 'Heading that it stands under.';
COMMENT ON COLUMN entries.section_class IS 'What such a section holds in this host''s format.';
COMMENT ON COLUMN entries.text IS 'The entry with its marker; U+0000 is stored as U+FFFD, exact bytes are in originals.';
COMMENT ON COLUMN entries.text_key IS 'Identity of the wording: hash of the text without marker, case and spacing.';
COMMENT ON COLUMN entries.entry_key IS 'Identity in its summary: section path, text and occurrence, hashed; a child boundary finds the root by it.';
COMMENT ON COLUMN entries.parent IS 'Entry that it is nested under; it stays while this one is kept.';
COMMENT ON COLUMN entries.lead_in IS 'Line that introduces its list; it stays while one of the list is kept.';
COMMENT ON COLUMN entries.span_start IS 'First byte of the entry in the candidate (UTF-8).';
COMMENT ON COLUMN entries.span_end IS 'End of it, exclusive.';
COMMENT ON COLUMN entries.pinned_by IS 'profile or host where it must not be pruned.';
COMMENT ON COLUMN entries.truncated IS 'Cut by a limit of compressor or host.';
COMMENT ON COLUMN entries.provenance IS 'Where its information was first said: environment, previous, derived, user, task, agent, nowhere.';
COMMENT ON COLUMN entries.sources IS 'All classes that support it.';
COMMENT ON COLUMN entries.previous_entry IS 'Entry number of the previous summary that it rests on.';
COMMENT ON COLUMN entries.previous_key IS 'entry_key of that entry of the previous summary.';
COMMENT ON COLUMN entries.previous_similarity IS 'How much of it that entry covers, 0 to 1.';
COMMENT ON COLUMN entries.origins IS 'Its values and where each was first said.';
COMMENT ON COLUMN entries.features IS 'Features that need the whole span.';

CREATE TABLE evidence_passages (
    fleet       text NOT NULL,
    boundary_id uuid NOT NULL,
    boundary_at timestamptz NOT NULL,
    passage     integer NOT NULL,
    message     integer NOT NULL,
    tool        text,
    origin      text NOT NULL,
    start_at    integer NOT NULL,
    end_at      integer NOT NULL,
    text        text NOT NULL,
    CONSTRAINT evidence_passages_pkey PRIMARY KEY (fleet, boundary_id, passage, boundary_at)
) PARTITION BY RANGE (boundary_at);
COMMENT ON TABLE evidence_passages IS 'Environment outputs pooled as evidence for a boundary. Partitioned by month.';
COMMENT ON COLUMN evidence_passages.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN evidence_passages.boundary_id IS 'The boundary, unique within the fleet.';
COMMENT ON COLUMN evidence_passages.boundary_at IS 'Copy of the boundary''s anchor time; the month of it is the partition.';
COMMENT ON COLUMN evidence_passages.passage IS 'Number in the boundary''s pool; explanations cite it as e{passage}.';
COMMENT ON COLUMN evidence_passages.message IS 'Number of the message that it stands in.';
COMMENT ON COLUMN evidence_passages.tool IS 'Tool of the output.';
COMMENT ON COLUMN evidence_passages.origin IS 'What the output really is.';
COMMENT ON COLUMN evidence_passages.start_at IS 'Offset in the message, in characters.';
COMMENT ON COLUMN evidence_passages.end_at IS 'End offset, exclusive.';
COMMENT ON COLUMN evidence_passages.text IS 'The text; U+0000 is stored as U+FFFD.';

CREATE TABLE entry_evidence (
    fleet       text NOT NULL,
    boundary_id uuid NOT NULL,
    boundary_at timestamptz NOT NULL,
    n           integer NOT NULL,
    rank        integer NOT NULL,
    passage     integer NOT NULL,
    bm25        double precision NOT NULL,
    CONSTRAINT entry_evidence_pkey PRIMARY KEY (fleet, boundary_id, n, rank, boundary_at)
) PARTITION BY RANGE (boundary_at);
COMMENT ON TABLE entry_evidence IS 'Which passages were retrieved for which entry. Partitioned by month.';
COMMENT ON COLUMN entry_evidence.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN entry_evidence.boundary_id IS 'The boundary, unique within the fleet.';
COMMENT ON COLUMN entry_evidence.boundary_at IS 'Copy of the boundary''s anchor time; the month of it is the partition.';
COMMENT ON COLUMN entry_evidence.n IS 'Number of the entry in the candidate summary, from 1.';
COMMENT ON COLUMN entry_evidence.rank IS '1 is the best of the entry''s passages.';
COMMENT ON COLUMN entry_evidence.passage IS 'Number in the boundary''s pool.';
COMMENT ON COLUMN entry_evidence.bm25 IS 'BM25 score; not comparable between boundaries.';

CREATE TABLE scores (
    fleet         text NOT NULL,
    boundary_id   uuid NOT NULL,
    boundary_at   timestamptz NOT NULL,
    n             integer NOT NULL,
    judge         text NOT NULL,
    judge_version text NOT NULL,
    model         text,
    p             double precision,
    score         double precision,
    verdict       text NOT NULL,
    provenance    text NOT NULL,
    explanation   text NOT NULL,
    passages      int[] NOT NULL,
    CONSTRAINT scores_pkey PRIMARY KEY (fleet, boundary_id, n, judge, judge_version, boundary_at)
) PARTITION BY RANGE (boundary_at);
COMMENT ON TABLE scores IS 'What judges said of entries; several judges an entry. Partitioned by month.';
COMMENT ON COLUMN scores.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN scores.boundary_id IS 'The boundary, unique within the fleet.';
COMMENT ON COLUMN scores.boundary_at IS 'Copy of the boundary''s anchor time; the month of it is the partition.';
COMMENT ON COLUMN scores.n IS 'Number of the entry in the candidate summary, from 1.';
COMMENT ON COLUMN scores.judge IS 'The judge.';
COMMENT ON COLUMN scores.judge_version IS 'Its version; scores are never compared across versions.';
COMMENT ON COLUMN scores.model IS 'Remote model that answered.';
COMMENT ON COLUMN scores.p IS 'Probability that the entry has a source; NULL where there was no usable answer.';
COMMENT ON COLUMN scores.score IS 'p after caps; compared with the threshold.';
COMMENT ON COLUMN scores.verdict IS 'sourced, unsourced, user_sourced, contradicted, stale or unscored.';
COMMENT ON COLUMN scores.provenance IS 'Provenance class as the judge used it.';
COMMENT ON COLUMN scores.explanation IS 'One line that a person can check.';
COMMENT ON COLUMN scores.passages IS 'Pool numbers that the explanation rests on.';

CREATE TABLE decisions (
    fleet       text NOT NULL,
    boundary_id uuid NOT NULL,
    boundary_at timestamptz NOT NULL,
    n           integer NOT NULL,
    decision    text NOT NULL,
    reason      text NOT NULL,
    score       double precision,
    verdict     text NOT NULL,
    provenance  text NOT NULL,
    root_source text NOT NULL,
    explanation text NOT NULL,
    pinned_by   text,
    CONSTRAINT decisions_pkey PRIMARY KEY (fleet, boundary_id, n, boundary_at)
) PARTITION BY RANGE (boundary_at);
COMMENT ON TABLE decisions IS 'What was decided for each entry. In shadow and annotate mode pruned means: would have been. Partitioned by month.';
COMMENT ON COLUMN decisions.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN decisions.boundary_id IS 'The boundary, unique within the fleet.';
COMMENT ON COLUMN decisions.boundary_at IS 'Copy of the boundary''s anchor time; the month of it is the partition.';
COMMENT ON COLUMN decisions.n IS 'Number of the entry in the candidate summary, from 1.';
COMMENT ON COLUMN decisions.decision IS 'kept or pruned.';
COMMENT ON COLUMN decisions.reason IS 'score, pinned, scaffold, unscored, user_sourced, inherited_unsourced or not_judged.';
COMMENT ON COLUMN decisions.score IS 'Score that was compared with the threshold.';
COMMENT ON COLUMN decisions.verdict IS 'Verdict that was used.';
COMMENT ON COLUMN decisions.provenance IS 'Provenance class.';
COMMENT ON COLUMN decisions.root_source IS 'Where its support entered the run, followed through previous summaries: environment, derived, user, none, previous_unknown.';
COMMENT ON COLUMN decisions.explanation IS 'One line that a person can check.';
COMMENT ON COLUMN decisions.pinned_by IS 'profile or host where it must not be pruned.';

CREATE TABLE judge_calls (
    fleet         text NOT NULL,
    boundary_id   uuid NOT NULL,
    boundary_at   timestamptz NOT NULL,
    call_id       uuid NOT NULL,
    judge         text NOT NULL,
    judge_version text NOT NULL,
    model         text,
    started_at    timestamptz NOT NULL,
    finished_at   timestamptz,
    latency_ms    double precision,
    requests      integer,
    input_tokens  bigint,
    output_tokens bigint,
    cost_usd      numeric,
    error         text,
    CONSTRAINT judge_calls_pkey PRIMARY KEY (fleet, boundary_id, call_id, boundary_at)
) PARTITION BY RANGE (boundary_at);
COMMENT ON TABLE judge_calls IS 'Calls to judges: a row before the call, completed after it. Partitioned by month.';
COMMENT ON COLUMN judge_calls.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN judge_calls.boundary_id IS 'The boundary, unique within the fleet.';
COMMENT ON COLUMN judge_calls.boundary_at IS 'Copy of the boundary''s anchor time; the month of it is the partition.';
COMMENT ON COLUMN judge_calls.call_id IS 'The call.';
COMMENT ON COLUMN judge_calls.judge IS 'The judge.';
COMMENT ON COLUMN judge_calls.judge_version IS 'Its version.';
COMMENT ON COLUMN judge_calls.model IS 'Model that answered, as it names itself.';
COMMENT ON COLUMN judge_calls.started_at IS 'When the call was announced.';
COMMENT ON COLUMN judge_calls.finished_at IS 'When it ended; NULL: it did not, or the process died in the middle.';
COMMENT ON COLUMN judge_calls.latency_ms IS 'How long it took, in milliseconds.';
COMMENT ON COLUMN judge_calls.requests IS 'Requests that it took.';
COMMENT ON COLUMN judge_calls.input_tokens IS 'Tokens sent.';
COMMENT ON COLUMN judge_calls.output_tokens IS 'Tokens received.';
COMMENT ON COLUMN judge_calls.cost_usd IS 'Cost in US dollars, as the provider prices it.';
COMMENT ON COLUMN judge_calls.error IS 'What went wrong; NULL: answered.';

CREATE TABLE stage_outputs (
    fleet       text NOT NULL,
    boundary_id uuid NOT NULL,
    boundary_at timestamptz NOT NULL,
    stage       text NOT NULL,
    event_type  text NOT NULL,
    event_id    uuid NOT NULL,
    record_key  text NOT NULL,
    body        bytea NOT NULL,
    encoding    text NOT NULL,
    claim       boolean NOT NULL,
    traceparent text,
    created_at  timestamptz NOT NULL,
    CONSTRAINT stage_outputs_pkey PRIMARY KEY (fleet, boundary_id, stage, boundary_at)
) PARTITION BY RANGE (boundary_at);
COMMENT ON TABLE stage_outputs IS 'The exact record of each stage''s stored answer, so that every repetition publishes the same bytes. Partitioned by month.';
COMMENT ON COLUMN stage_outputs.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN stage_outputs.boundary_id IS 'The boundary, unique within the fleet.';
COMMENT ON COLUMN stage_outputs.boundary_at IS 'Copy of the boundary''s anchor time; the month of it is the partition.';
COMMENT ON COLUMN stage_outputs.stage IS 'evidence, scores or committed.';
COMMENT ON COLUMN stage_outputs.event_type IS 'CloudEvents type.';
COMMENT ON COLUMN stage_outputs.event_id IS 'CloudEvents id.';
COMMENT ON COLUMN stage_outputs.record_key IS 'Key of the record.';
COMMENT ON COLUMN stage_outputs.body IS 'Body of the record, encoded as encoding says.';
COMMENT ON COLUMN stage_outputs.encoding IS 'raw or zlib.';
COMMENT ON COLUMN stage_outputs.claim IS 'The body is a claim check for the real one, which is an original.';
COMMENT ON COLUMN stage_outputs.traceparent IS 'W3C trace context.';
COMMENT ON COLUMN stage_outputs.created_at IS 'When it was stored; the event''s time.';
