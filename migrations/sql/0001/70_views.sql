-- The SQL API. `unsupported` means: the judge found no source, or the entry was (or would have been) pruned.

CREATE VIEW boundary_history WITH (security_barrier = true) AS
SELECT b.fleet, b.run, b.boundary_index, b.boundary_at, b.boundary_id, b.agent, b.host, b.profile, b.trigger, b.rules,
    b.mode, b.effective_mode, b.outcome, b.reason, b.held, b.held_because, b.late, b.entries, b.pruned, b.tau, b.operating_point,
    b.judge, b.judge_version, b.fallback_for, b.compressor, b.tokens_before, b.tokens_after, b.parent_boundary_id,
    b.candidate_sha256, b.committed_sha256, r.adopted, r.at AS adopted_at, b.received_at, b.evidence_at, b.scored_at, b.committed_at,
    extract(epoch FROM b.committed_at - b.received_at)::double precision AS seconds, b.warnings
FROM boundaries b
-- Looked up and not copied: a runtime that did not wait may report before the boundary is stored.
LEFT JOIN LATERAL (SELECT x.adopted, x.at FROM runtime_events x WHERE x.fleet = b.fleet AND x.boundary_id = b.boundary_id
    AND x.kind = 'adopted' ORDER BY x.at DESC LIMIT 1) r ON true;
COMMENT ON VIEW boundary_history IS 'One row a boundary: what was asked, how it ended, what the agent used, and how long each stage took.';

CREATE VIEW entry_history WITH (security_barrier = true) AS
SELECT b.fleet, b.run, b.boundary_index, b.boundary_at, b.boundary_id, b.outcome, e.n, e.section, e.section_class, e.text, e.text_key,
    e.provenance, e.sources, coalesce(d.verdict, s.verdict) AS verdict, s.p, coalesce(d.score, s.score) AS score, b.tau,
    d.decision, d.reason, d.root_source, coalesce(d.explanation, s.explanation) AS explanation, e.pinned_by, e.previous_entry,
    e.previous_similarity, b.judge, b.judge_version,
    d.decision = 'pruned' OR coalesce(d.verdict, s.verdict) IN ('unsourced', 'contradicted', 'stale') AS unsupported,
    (SELECT string_agg(format('e%s (output #%s): %s', p.passage, p.message, p.text), E'\n\n' ORDER BY x.rank)
        FROM entry_evidence x
        JOIN evidence_passages p ON p.fleet = x.fleet AND p.boundary_id = x.boundary_id AND p.boundary_at = x.boundary_at
            AND p.passage = x.passage
        WHERE x.fleet = e.fleet AND x.boundary_id = e.boundary_id AND x.boundary_at = e.boundary_at AND x.n = e.n) AS evidence
FROM boundaries b
JOIN entries e ON e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
LEFT JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n
LEFT JOIN scores s ON s.fleet = e.fleet AND s.boundary_id = e.boundary_id AND s.boundary_at = e.boundary_at AND s.n = e.n
    AND s.judge = b.judge AND s.judge_version = b.judge_version;
COMMENT ON VIEW entry_history IS
    'One row an entry: its section and class, the score of the judge that decided, the decision, the root source and the evidence text.';

-- The reports below judge by decisions alone: they exist for every boundary that was judged, whichever judge it was.
CREATE VIEW unsupported_by_section WITH (security_barrier = true) AS
SELECT e.fleet, e.section_class, e.section, count(*) AS entries,
    count(*) FILTER (WHERE d.decision = 'pruned' OR d.verdict IN ('unsourced', 'contradicted', 'stale')) AS unsupported,
    avg((d.decision = 'pruned' OR d.verdict IN ('unsourced', 'contradicted', 'stale'))::int)::double precision AS share
FROM entries e
JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n
WHERE d.reason <> 'not_judged'
GROUP BY e.fleet, e.section_class, e.section;
COMMENT ON VIEW unsupported_by_section IS 'Share of judged entries without a source, by section of the summary.';

CREATE VIEW unsupported_by_boundary WITH (security_barrier = true) AS
SELECT b.fleet, b.boundary_index, count(DISTINCT b.boundary_id) AS boundaries, count(*) AS entries,
    count(*) FILTER (WHERE d.decision = 'pruned' OR d.verdict IN ('unsourced', 'contradicted', 'stale')) AS unsupported,
    avg((d.decision = 'pruned' OR d.verdict IN ('unsourced', 'contradicted', 'stale'))::int)::double precision AS share
FROM boundaries b
JOIN decisions d ON d.fleet = b.fleet AND d.boundary_id = b.boundary_id AND d.boundary_at = b.boundary_at
WHERE d.reason <> 'not_judged'
GROUP BY b.fleet, b.boundary_index;
COMMENT ON VIEW unsupported_by_boundary IS 'Share of judged entries without a source, by number of the boundary in its run: does it grow?';

CREATE VIEW entry_persistence WITH (security_barrier = true) AS
WITH wording AS (  -- each wording once a boundary, with whether it was supported
    SELECT b.fleet, b.run, b.boundary_index, e.text_key,
        bool_or(d.decision = 'pruned' OR d.verdict IN ('unsourced', 'contradicted', 'stale')) AS unsupported
    FROM boundaries b
    JOIN entries e ON e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
    LEFT JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n
    GROUP BY b.fleet, b.run, b.boundary_index, e.text_key
), fresh AS (
    SELECT w.* FROM wording w
    WHERE NOT EXISTS (SELECT FROM wording o WHERE o.fleet = w.fleet AND o.run = w.run AND o.boundary_index = w.boundary_index - 1
        AND o.text_key = w.text_key)
), later AS (
    SELECT DISTINCT b.fleet, b.run, b.boundary_index FROM boundaries b WHERE b.entries > 0
)
SELECT f.fleet, coalesce(f.unsupported, false) AS unsupported, l.boundary_index - f.boundary_index AS distance, count(*) AS entries,
    count(o.text_key) AS present, (count(o.text_key)::double precision / count(*)) AS share
FROM fresh f
JOIN later l ON l.fleet = f.fleet AND l.run = f.run AND l.boundary_index BETWEEN f.boundary_index + 1 AND f.boundary_index + 20
LEFT JOIN wording o ON o.fleet = f.fleet AND o.run = f.run AND o.boundary_index = l.boundary_index AND o.text_key = f.text_key
GROUP BY f.fleet, coalesce(f.unsupported, false), l.boundary_index - f.boundary_index;
COMMENT ON VIEW entry_persistence IS
    'How many entries, in the same wording, are still present a number of summaries after the one that first wrote them.';

CREATE VIEW fleet_daily WITH (security_barrier = true) AS
SELECT b.fleet, (b.boundary_at AT TIME ZONE 'UTC')::date AS day, count(*) AS boundaries, count(DISTINCT b.run) AS runs,
    count(*) FILTER (WHERE b.outcome = 'judged') AS judged,
    count(*) FILTER (WHERE b.outcome = 'judged_partial') AS judged_partial,
    count(*) FILTER (WHERE b.outcome = 'unjudged') AS unjudged,
    count(*) FILTER (WHERE b.outcome = 'not_a_summary') AS not_a_summary,
    count(*) FILTER (WHERE b.outcome = 'rejected') AS rejected,
    count(*) FILTER (WHERE b.outcome IS NULL) AS open,
    count(*) FILTER (WHERE b.held) AS held,
    count(*) FILTER (WHERE b.late) AS late,
    count(*) FILTER (WHERE r.adopted = 'committed') AS adopted_committed,
    count(*) FILTER (WHERE r.adopted = 'candidate') AS adopted_candidate,
    sum(b.entries) AS entries, sum(b.pruned) AS pruned,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM b.committed_at - b.received_at)::double precision) AS seconds_p50,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM b.committed_at - b.received_at)::double precision) AS seconds_p99
FROM boundaries b
LEFT JOIN LATERAL (SELECT x.adopted FROM runtime_events x WHERE x.fleet = b.fleet AND x.boundary_id = b.boundary_id
    AND x.kind = 'adopted' ORDER BY x.at DESC LIMIT 1) r ON true
GROUP BY b.fleet, (b.boundary_at AT TIME ZONE 'UTC')::date;
COMMENT ON VIEW fleet_daily IS 'One row a fleet and (UTC) day: boundaries by outcome, entries, pruned entries, adoption and latency.';

CREATE VIEW stream_status WITH (security_barrier = true) AS
SELECT s.fleet, s.stream, coalesce(m.status, 'insufficient') AS status, m.epoch, s.last_seq AS sampled, m.last_seq AS folded,
    m.log_evidence, s.weight, a.kind AS last_alert, a.at AS last_alert_at, f.held_since, f.held_because, m.updated_at,
    s.registered_at, s.closed_at
FROM streams s
JOIN fleets f ON f.fleet = s.fleet
LEFT JOIN monitor_states m ON m.fleet = s.fleet AND m.stream = s.stream
LEFT JOIN LATERAL (SELECT x.kind, x.at FROM alerts x WHERE x.fleet = s.fleet AND x.stream = s.stream ORDER BY x.at DESC LIMIT 1) a ON true;
COMMENT ON VIEW stream_status IS 'One row a stream: how much was sampled and folded, the evidence so far, the last alert and the hold of its fleet.';

CREATE VIEW judge_cost_daily WITH (security_barrier = true) AS
SELECT c.fleet, (c.started_at AT TIME ZONE 'UTC')::date AS day, c.judge, c.judge_version, c.model, count(*) AS calls,
    count(*) FILTER (WHERE c.error IS NOT NULL) AS failed, count(*) FILTER (WHERE c.finished_at IS NULL) AS unfinished,
    sum(c.requests) AS requests, sum(c.input_tokens)::bigint AS input_tokens, sum(c.output_tokens)::bigint AS output_tokens,
    sum(c.cost_usd) AS cost_usd,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY c.latency_ms) AS latency_ms_p50,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY c.latency_ms) AS latency_ms_p95
FROM judge_calls c
GROUP BY c.fleet, (c.started_at AT TIME ZONE 'UTC')::date, c.judge, c.judge_version, c.model;
COMMENT ON VIEW judge_cost_daily IS 'One row a fleet, (UTC) day, judge and model: calls, failures, tokens, cost and latency.';


COMMENT ON COLUMN boundary_history.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN boundary_history.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN boundary_history.boundary_index IS 'Number of the boundary in the run, as the host counts.';
COMMENT ON COLUMN boundary_history.boundary_at IS 'Anchor time, fixed by the first insert: the host''s clock, or the receive time where that is missing or absurd.';
COMMENT ON COLUMN boundary_history.boundary_id IS 'Unique within the fleet; UUIDv5 of fleet, run, index and candidate hash unless the host gives one.';
COMMENT ON COLUMN boundary_history.agent IS 'The agent within the fleet.';
COMMENT ON COLUMN boundary_history.host IS 'The agent runtime.';
COMMENT ON COLUMN boundary_history.profile IS 'Summary format that was used to parse.';
COMMENT ON COLUMN boundary_history.trigger IS 'Why the host compacted: threshold, overflow, manual, api.';
COMMENT ON COLUMN boundary_history.rules IS 'Which system judged: winnow or published.';
COMMENT ON COLUMN boundary_history.mode IS 'Mode that the event asked for.';
COMMENT ON COLUMN boundary_history.effective_mode IS 'Mode that applied: the mildest of the event''s, the fleet''s, and annotate while held.';
COMMENT ON COLUMN boundary_history.outcome IS 'judged, judged_partial, unjudged, not_a_summary or rejected; NULL until committed.';
COMMENT ON COLUMN boundary_history.reason IS 'Reason code of every outcome but judged.';
COMMENT ON COLUMN boundary_history.held IS 'The fleet was held when this boundary was committed.';
COMMENT ON COLUMN boundary_history.held_because IS 'Why it was held.';
COMMENT ON COLUMN boundary_history.late IS 'Committed after the deadline: stored, never applied.';
COMMENT ON COLUMN boundary_history.entries IS 'Entries of the candidate.';
COMMENT ON COLUMN boundary_history.pruned IS 'Entries left out of the committed summary.';
COMMENT ON COLUMN boundary_history.tau IS 'Threshold that was applied.';
COMMENT ON COLUMN boundary_history.operating_point IS 'Operating point stamped by the retriever.';
COMMENT ON COLUMN boundary_history.judge IS 'Judge that answered.';
COMMENT ON COLUMN boundary_history.judge_version IS 'Version of that judge.';
COMMENT ON COLUMN boundary_history.fallback_for IS 'Judge that should have answered and did not.';
COMMENT ON COLUMN boundary_history.compressor IS 'Model that wrote the candidate.';
COMMENT ON COLUMN boundary_history.tokens_before IS 'Tokens of the context before compaction, by the host''s count.';
COMMENT ON COLUMN boundary_history.tokens_after IS 'Tokens after it.';
COMMENT ON COLUMN boundary_history.parent_boundary_id IS 'Boundary whose committed or candidate text the previous summary is, found by hash.';
COMMENT ON COLUMN boundary_history.candidate_sha256 IS 'Hash of the candidate summary.';
COMMENT ON COLUMN boundary_history.committed_sha256 IS 'Hash of the committed summary; NULL until committed, and for rejected boundaries.';
COMMENT ON COLUMN boundary_history.adopted IS 'Which text the agent went on with, as its runtime reported: committed or candidate.';
COMMENT ON COLUMN boundary_history.adopted_at IS 'When, by the host''s clock.';
COMMENT ON COLUMN boundary_history.received_at IS 'When Winnow first stored the boundary.';
COMMENT ON COLUMN boundary_history.evidence_at IS 'When the retriever''s answer was stored.';
COMMENT ON COLUMN boundary_history.scored_at IS 'When the judge''s answer was stored.';
COMMENT ON COLUMN boundary_history.committed_at IS 'When the pruner''s answer was stored.';
COMMENT ON COLUMN boundary_history.seconds IS 'Seconds from received_at to committed_at.';
COMMENT ON COLUMN boundary_history.warnings IS 'What parser, retriever and pruner had to say.';

COMMENT ON COLUMN entry_history.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN entry_history.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN entry_history.boundary_index IS 'Number of the boundary in the run, as the host counts.';
COMMENT ON COLUMN entry_history.boundary_at IS 'Anchor time, fixed by the first insert: the host''s clock, or the receive time where that is missing or absurd.';
COMMENT ON COLUMN entry_history.boundary_id IS 'Unique within the fleet; UUIDv5 of fleet, run, index and candidate hash unless the host gives one.';
COMMENT ON COLUMN entry_history.outcome IS 'judged, judged_partial, unjudged, not_a_summary or rejected; NULL until committed.';
COMMENT ON COLUMN entry_history.n IS 'Number of the entry in the candidate summary, from 1.';
COMMENT ON COLUMN entry_history.section IS 'Heading that it stands under.';
COMMENT ON COLUMN entry_history.section_class IS 'What such a section holds in this host''s format.';
COMMENT ON COLUMN entry_history.text IS 'The entry with its marker; U+0000 is stored as U+FFFD, exact bytes are in originals.';
COMMENT ON COLUMN entry_history.text_key IS 'Identity of the wording: hash of the text without marker, case and spacing.';
COMMENT ON COLUMN entry_history.provenance IS 'Where its information was first said: environment, previous, derived, user, task, agent, nowhere.';
COMMENT ON COLUMN entry_history.sources IS 'All classes that support it.';
COMMENT ON COLUMN entry_history.verdict IS 'Verdict that was used; the judge''s while nothing is decided.';
COMMENT ON COLUMN entry_history.p IS 'Probability that the entry has a source; NULL where there was no usable answer.';
COMMENT ON COLUMN entry_history.score IS 'Score that was compared with the threshold.';
COMMENT ON COLUMN entry_history.tau IS 'Threshold that was applied.';
COMMENT ON COLUMN entry_history.decision IS 'kept or pruned.';
COMMENT ON COLUMN entry_history.reason IS 'score, pinned, scaffold, unscored, user_sourced, inherited_unsourced or not_judged.';
COMMENT ON COLUMN entry_history.root_source IS 'Where its support entered the run, followed through previous summaries: environment, derived, user, none, previous_unknown.';
COMMENT ON COLUMN entry_history.explanation IS 'One line that a person can check.';
COMMENT ON COLUMN entry_history.pinned_by IS 'profile or host where it must not be pruned.';
COMMENT ON COLUMN entry_history.previous_entry IS 'Entry number of the previous summary that it rests on.';
COMMENT ON COLUMN entry_history.previous_similarity IS 'How much of it that entry covers, 0 to 1.';
COMMENT ON COLUMN entry_history.judge IS 'Judge that answered.';
COMMENT ON COLUMN entry_history.judge_version IS 'Version of that judge.';
COMMENT ON COLUMN entry_history.unsupported IS 'No source was found, or the entry was (or would have been) pruned.';
COMMENT ON COLUMN entry_history.evidence IS 'The retrieved passages, best first, each with its number and the output that it stands in.';

COMMENT ON COLUMN unsupported_by_section.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN unsupported_by_section.section_class IS 'What such a section holds in this host''s format.';
COMMENT ON COLUMN unsupported_by_section.section IS 'Heading that it stands under.';
COMMENT ON COLUMN unsupported_by_section.entries IS 'Judged entries.';
COMMENT ON COLUMN unsupported_by_section.unsupported IS 'Those without a source.';
COMMENT ON COLUMN unsupported_by_section.share IS 'unsupported divided by entries.';

COMMENT ON COLUMN unsupported_by_boundary.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN unsupported_by_boundary.boundary_index IS 'Number of the boundary in the run, as the host counts.';
COMMENT ON COLUMN unsupported_by_boundary.boundaries IS 'Boundaries with that number.';
COMMENT ON COLUMN unsupported_by_boundary.entries IS 'Judged entries.';
COMMENT ON COLUMN unsupported_by_boundary.unsupported IS 'Those without a source.';
COMMENT ON COLUMN unsupported_by_boundary.share IS 'unsupported divided by entries.';

COMMENT ON COLUMN entry_persistence.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN entry_persistence.unsupported IS 'Whether the entry had no source where it was first written.';
COMMENT ON COLUMN entry_persistence.distance IS 'How many boundaries later, 1 to 20.';
COMMENT ON COLUMN entry_persistence.entries IS 'Entries whose run has a summary at that distance.';
COMMENT ON COLUMN entry_persistence.present IS 'Those that stand there in the same wording (marker, case and spacing aside).';
COMMENT ON COLUMN entry_persistence.share IS 'present divided by entries.';

COMMENT ON COLUMN fleet_daily.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN fleet_daily.day IS 'UTC day of boundary_at.';
COMMENT ON COLUMN fleet_daily.boundaries IS 'Boundaries of the day.';
COMMENT ON COLUMN fleet_daily.runs IS 'Runs with a boundary on that day.';
COMMENT ON COLUMN fleet_daily.judged IS 'Boundaries with that outcome.';
COMMENT ON COLUMN fleet_daily.judged_partial IS 'Boundaries with that outcome: some entries had no usable answer and were kept.';
COMMENT ON COLUMN fleet_daily.unjudged IS 'Boundaries with that outcome: no judge in time, the candidate was committed.';
COMMENT ON COLUMN fleet_daily.not_a_summary IS 'Boundaries with that outcome: error text, refusal, markup; nothing was pruned.';
COMMENT ON COLUMN fleet_daily.rejected IS 'Boundaries with that outcome: invalid, conflicting or too large.';
COMMENT ON COLUMN fleet_daily.open IS 'Boundaries that are not committed.';
COMMENT ON COLUMN fleet_daily.held IS 'Boundaries committed while the fleet was held.';
COMMENT ON COLUMN fleet_daily.late IS 'Boundaries committed after their deadline.';
COMMENT ON COLUMN fleet_daily.adopted_committed IS 'Boundaries whose agent went on with the committed text.';
COMMENT ON COLUMN fleet_daily.adopted_candidate IS 'Boundaries whose agent went on with its own candidate.';
COMMENT ON COLUMN fleet_daily.entries IS 'Entries of the day''s candidates.';
COMMENT ON COLUMN fleet_daily.pruned IS 'Entries left out of committed summaries.';
COMMENT ON COLUMN fleet_daily.seconds_p50 IS 'Median seconds from received_at to committed_at.';
COMMENT ON COLUMN fleet_daily.seconds_p99 IS '99th percentile of them.';

COMMENT ON COLUMN stream_status.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN stream_status.stream IS 'Name of the stream.';
COMMENT ON COLUMN stream_status.status IS 'ok, warn, alarm, held, uncertified or insufficient.';
COMMENT ON COLUMN stream_status.epoch IS 'Epoch of the stream; a change of configuration starts a new one.';
COMMENT ON COLUMN stream_status.sampled IS 'Units sampled.';
COMMENT ON COLUMN stream_status.folded IS 'Last sequence number folded.';
COMMENT ON COLUMN stream_status.log_evidence IS 'Natural log of the e-value.';
COMMENT ON COLUMN stream_status.weight IS 'Share of the fleet''s error budget, fixed at registration.';
COMMENT ON COLUMN stream_status.last_alert IS 'Kind of the last alert.';
COMMENT ON COLUMN stream_status.last_alert_at IS 'When it was raised.';
COMMENT ON COLUMN stream_status.held_since IS 'Since when the fleet is held: nothing is pruned. NULL: not held.';
COMMENT ON COLUMN stream_status.held_because IS 'Why it is held, in plain words.';
COMMENT ON COLUMN stream_status.updated_at IS 'When the state was last written.';
COMMENT ON COLUMN stream_status.registered_at IS 'When it was registered or first seen.';
COMMENT ON COLUMN stream_status.closed_at IS 'When it was closed; NULL: open.';

COMMENT ON COLUMN judge_cost_daily.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN judge_cost_daily.day IS 'UTC day on which the calls started.';
COMMENT ON COLUMN judge_cost_daily.judge IS 'The judge.';
COMMENT ON COLUMN judge_cost_daily.judge_version IS 'Its version.';
COMMENT ON COLUMN judge_cost_daily.model IS 'Model that answered, as it names itself.';
COMMENT ON COLUMN judge_cost_daily.calls IS 'Calls announced.';
COMMENT ON COLUMN judge_cost_daily.failed IS 'Calls that ended with an error.';
COMMENT ON COLUMN judge_cost_daily.unfinished IS 'Calls that were announced and never completed.';
COMMENT ON COLUMN judge_cost_daily.requests IS 'Requests that they took.';
COMMENT ON COLUMN judge_cost_daily.input_tokens IS 'Tokens sent.';
COMMENT ON COLUMN judge_cost_daily.output_tokens IS 'Tokens received.';
COMMENT ON COLUMN judge_cost_daily.cost_usd IS 'Cost in US dollars.';
COMMENT ON COLUMN judge_cost_daily.latency_ms_p50 IS 'Median latency in milliseconds.';
COMMENT ON COLUMN judge_cost_daily.latency_ms_p95 IS '95th percentile of it.';
