-- What summaries consist of, by judge. Candidates are told as they were written; runs in which a boundary was enforced stand apart.

CREATE VIEW composition_entries WITH (security_barrier = true) AS
WITH summaries AS (
    SELECT b.fleet, b.run, b.boundary_index, b.boundary_at, b.boundary_id, b.effective_mode, b.rules, b.compressor,
        row_number() OVER (PARTITION BY b.fleet, b.run ORDER BY b.boundary_index, b.boundary_at, b.boundary_id) AS summary,
        coalesce(bool_or(b.effective_mode = 'enforce') OVER (PARTITION BY b.fleet, b.run), false) AS enforced
    FROM boundaries b
    WHERE b.entries > 0
)
SELECT m.fleet, m.run, m.summary, m.boundary_index,
    CASE WHEN m.boundary_index <= 2 THEN m.boundary_index::text ELSE 'later' END AS boundary,
    m.boundary_at, m.boundary_id, m.enforced, m.effective_mode, m.rules, m.compressor, e.n, e.section, e.section_class,
    e.section_class IN ('mixed', 'forward') AND position('pending user asks' IN lower(e.section)) = 0 AS reasoning,
    e.section_class = 'forward' AS forward, e.text, e.text_key, s.judge, s.judge_version, s.score, s.score < 0.5 AS unsupported,
    d.root_source, CASE WHEN d.root_source = 'previous_unknown' THEN NULL ELSE d.root_source = 'none' END AS unrooted,
    CASE WHEN d.reason = 'not_judged' THEN NULL ELSE d.decision END AS decision, e.span_end - e.span_start AS bytes
FROM summaries m
JOIN entries e ON e.fleet = m.fleet AND e.boundary_id = m.boundary_id AND e.boundary_at = m.boundary_at
JOIN scores s ON s.fleet = e.fleet AND s.boundary_id = e.boundary_id AND s.boundary_at = e.boundary_at AND s.n = e.n
LEFT JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n
    AND d.reason <> 'not_judged';
COMMENT ON VIEW composition_entries IS
    'One row an entry of a candidate summary and a judge that scored it: section, score, root source and what was decided.';
COMMENT ON COLUMN composition_entries.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN composition_entries.run IS 'The agent''s session or trajectory.';
COMMENT ON COLUMN composition_entries.summary IS 'Place of the summary among those of its run, from 1.';
COMMENT ON COLUMN composition_entries.boundary_index IS 'Number of the boundary in the run, as the host counts.';
COMMENT ON COLUMN composition_entries.boundary IS 'The same in three groups: 1, 2, later.';
COMMENT ON COLUMN composition_entries.boundary_at IS 'Anchor time of the boundary.';
COMMENT ON COLUMN composition_entries.boundary_id IS 'Unique within the fleet.';
COMMENT ON COLUMN composition_entries.enforced IS 'Some boundary of the run was enforced: pruning changed later candidates.';
COMMENT ON COLUMN composition_entries.effective_mode IS 'Mode that applied to this boundary; NULL until committed.';
COMMENT ON COLUMN composition_entries.rules IS 'Which system judged: winnow or published.';
COMMENT ON COLUMN composition_entries.compressor IS 'Model that wrote the candidate.';
COMMENT ON COLUMN composition_entries.n IS 'Number of the entry in the candidate summary, from 1.';
COMMENT ON COLUMN composition_entries.section IS 'Heading that it stands under.';
COMMENT ON COLUMN composition_entries.section_class IS 'What such a section holds in this host''s format.';
COMMENT ON COLUMN composition_entries.reasoning IS 'A section of decisions and open work, without what the user asked for.';
COMMENT ON COLUMN composition_entries.forward IS 'A forward-looking section: plans and asks.';
COMMENT ON COLUMN composition_entries.text IS 'The entry with its marker; U+0000 is stored as U+FFFD.';
COMMENT ON COLUMN composition_entries.text_key IS 'Identity of the wording: hash of the text without marker, case and spacing.';
COMMENT ON COLUMN composition_entries.judge IS 'Judge that scored it; several give several rows.';
COMMENT ON COLUMN composition_entries.judge_version IS 'Its version; scores are never compared across versions.';
COMMENT ON COLUMN composition_entries.score IS 'Score after caps; NULL where the judge had no usable answer.';
COMMENT ON COLUMN composition_entries.unsupported IS 'The score is below 0.5, whatever threshold the fleet has.';
COMMENT ON COLUMN composition_entries.root_source IS 'Where its support entered the run, by the decision; NULL where nothing was decided.';
COMMENT ON COLUMN composition_entries.unrooted IS 'It has no root source; NULL where that is not known.';
COMMENT ON COLUMN composition_entries.decision IS 'kept or pruned, by the judge that decided; NULL where nothing was. In shadow and annotate mode: would have been.';
COMMENT ON COLUMN composition_entries.bytes IS 'Bytes of the entry in the candidate (UTF-8).';

CREATE VIEW composition_by_section WITH (security_barrier = true) AS
SELECT c.fleet, c.judge, c.judge_version, c.enforced, c.section, c.section_class, c.reasoning, c.forward,
    count(c.score) AS entries, count(*) FILTER (WHERE c.unsupported) AS unsupported,
    avg(c.unsupported::int)::double precision AS share, count(*) FILTER (WHERE c.unrooted) AS unrooted,
    avg(c.unrooted::int)::double precision AS unrooted_share
FROM composition_entries c
GROUP BY c.fleet, c.judge, c.judge_version, c.enforced, c.section, c.section_class, c.reasoning, c.forward;
COMMENT ON VIEW composition_by_section IS 'Unsupported entries of candidate summaries by section and judge, by score and by root source.';
COMMENT ON COLUMN composition_by_section.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN composition_by_section.judge IS 'Judge that scored.';
COMMENT ON COLUMN composition_by_section.judge_version IS 'Its version.';
COMMENT ON COLUMN composition_by_section.enforced IS 'Runs in which some boundary was enforced.';
COMMENT ON COLUMN composition_by_section.section IS 'Heading.';
COMMENT ON COLUMN composition_by_section.section_class IS 'What such a section holds in this host''s format.';
COMMENT ON COLUMN composition_by_section.reasoning IS 'A section of decisions and open work.';
COMMENT ON COLUMN composition_by_section.forward IS 'A forward-looking section.';
COMMENT ON COLUMN composition_by_section.entries IS 'Entries with a score.';
COMMENT ON COLUMN composition_by_section.unsupported IS 'Those with a score below 0.5.';
COMMENT ON COLUMN composition_by_section.share IS 'unsupported divided by entries.';
COMMENT ON COLUMN composition_by_section.unrooted IS 'Entries without a root source.';
COMMENT ON COLUMN composition_by_section.unrooted_share IS 'unrooted divided by the entries whose root is known.';

CREATE VIEW composition_by_boundary WITH (security_barrier = true) AS
SELECT c.fleet, c.judge, c.judge_version, c.enforced, c.boundary, count(DISTINCT c.boundary_id) AS summaries,
    count(c.score) AS entries, count(*) FILTER (WHERE c.unsupported) AS unsupported,
    avg(c.unsupported::int)::double precision AS share, avg(c.unrooted::int)::double precision AS unrooted_share,
    count(c.score) FILTER (WHERE c.reasoning) AS reasoning, count(*) FILTER (WHERE c.reasoning AND c.unsupported) AS reasoning_unsupported,
    (avg(c.unsupported::int) FILTER (WHERE c.reasoning))::double precision AS reasoning_share,
    (avg(c.unrooted::int) FILTER (WHERE c.reasoning))::double precision AS reasoning_unrooted_share,
    count(*) FILTER (WHERE c.reasoning AND c.unsupported)::double precision / count(DISTINCT c.boundary_id) AS reasoning_unsupported_mean
FROM composition_entries c
GROUP BY c.fleet, c.judge, c.judge_version, c.enforced, c.boundary;
COMMENT ON VIEW composition_by_boundary IS 'Unsupported entries of first, second and later summaries of runs, by judge, by score and by root source.';
COMMENT ON COLUMN composition_by_boundary.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN composition_by_boundary.judge IS 'Judge that scored.';
COMMENT ON COLUMN composition_by_boundary.judge_version IS 'Its version.';
COMMENT ON COLUMN composition_by_boundary.enforced IS 'Runs in which some boundary was enforced.';
COMMENT ON COLUMN composition_by_boundary.boundary IS '1, 2 or later, as the host counts boundaries.';
COMMENT ON COLUMN composition_by_boundary.summaries IS 'Summaries.';
COMMENT ON COLUMN composition_by_boundary.entries IS 'Entries with a score.';
COMMENT ON COLUMN composition_by_boundary.unsupported IS 'Those with a score below 0.5.';
COMMENT ON COLUMN composition_by_boundary.share IS 'unsupported divided by entries.';
COMMENT ON COLUMN composition_by_boundary.unrooted_share IS 'Share without a root source, of the entries whose root is known.';
COMMENT ON COLUMN composition_by_boundary.reasoning IS 'Reasoning entries with a score.';
COMMENT ON COLUMN composition_by_boundary.reasoning_unsupported IS 'Those with a score below 0.5.';
COMMENT ON COLUMN composition_by_boundary.reasoning_share IS 'reasoning_unsupported divided by reasoning.';
COMMENT ON COLUMN composition_by_boundary.reasoning_unrooted_share IS 'Share of reasoning entries without a root source, of those whose root is known.';
COMMENT ON COLUMN composition_by_boundary.reasoning_unsupported_mean IS 'Unsupported reasoning entries a summary.';

CREATE VIEW composition_persistence WITH (security_barrier = true) AS
WITH placed AS (  -- places among the summaries that this judge scored: a judge that came late skips none
    SELECT DISTINCT c.fleet, c.judge, c.judge_version, c.enforced, c.run, c.summary,
        dense_rank() OVER (PARTITION BY c.fleet, c.judge, c.judge_version, c.run ORDER BY c.summary) AS place,
        c.text_key, bool_or(c.reasoning) OVER wording AS reasoning, bool_or(c.unsupported) OVER wording AS unsupported,
        bool_or(c.unrooted) OVER wording AS unrooted
    FROM composition_entries c
    WINDOW wording AS (PARTITION BY c.fleet, c.judge, c.judge_version, c.run, c.summary, c.text_key)
), stretches AS (  -- a wording in summaries that follow one another
    SELECT p.*, p.place - row_number() OVER (PARTITION BY p.fleet, p.judge, p.judge_version, p.run, p.text_key ORDER BY p.place) AS stretch,
        max(p.place) OVER (PARTITION BY p.fleet, p.judge, p.judge_version, p.run) AS last_place
    FROM placed p
), chains AS (
    SELECT s.fleet, s.judge, s.judge_version, s.enforced, s.run, s.text_key, min(s.place) AS first_place, count(*) AS length,
        max(s.last_place) AS last_place, (array_agg(s.reasoning ORDER BY s.place))[1] AS reasoning,
        (array_agg(s.unsupported ORDER BY s.place))[1] AS unsupported, (array_agg(s.unrooted ORDER BY s.place))[1] AS unrooted
    FROM stretches s
    GROUP BY s.fleet, s.judge, s.judge_version, s.enforced, s.run, s.text_key, s.stretch
)
SELECT h.fleet, h.judge, h.judge_version, h.enforced, h.reasoning, b.basis, b.unsupported, d.distance, count(*) AS entries,
    count(*) FILTER (WHERE h.length > d.distance) AS present, avg((h.length > d.distance)::int)::double precision AS share
FROM chains h
CROSS JOIN LATERAL (VALUES ('score', h.unsupported), ('root', h.unrooted)) AS b (basis, unsupported)
JOIN generate_series(1, 3) AS d (distance) ON h.first_place + d.distance <= h.last_place
WHERE b.unsupported IS NOT NULL
GROUP BY h.fleet, h.judge, h.judge_version, h.enforced, h.reasoning, b.basis, b.unsupported, d.distance;
COMMENT ON VIEW composition_persistence IS
    'How many entries still stand one, two and three summaries after the first that has them, followed from summary to summary by their wording.';
COMMENT ON COLUMN composition_persistence.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN composition_persistence.judge IS 'Judge that scored.';
COMMENT ON COLUMN composition_persistence.judge_version IS 'Its version.';
COMMENT ON COLUMN composition_persistence.enforced IS 'Runs in which some boundary was enforced.';
COMMENT ON COLUMN composition_persistence.reasoning IS 'Entries of sections of decisions and open work, or the others.';
COMMENT ON COLUMN composition_persistence.basis IS 'What unsupported rests on: score (below 0.5) or root (no root source).';
COMMENT ON COLUMN composition_persistence.unsupported IS 'Whether they were unsupported where they first stood.';
COMMENT ON COLUMN composition_persistence.distance IS 'Summaries later: 1, 2 or 3.';
COMMENT ON COLUMN composition_persistence.entries IS 'Wordings that are new in a summary whose run has one at that distance.';
COMMENT ON COLUMN composition_persistence.present IS 'Those that every summary up to that distance has.';
COMMENT ON COLUMN composition_persistence.share IS 'present divided by entries.';

CREATE VIEW composition_kept WITH (security_barrier = true) AS
SELECT e.fleet, (b.effective_mode = 'enforce') AS enforced, e.section, e.section_class, b.boundary_index > 1 AS later, count(*) AS entries,
    count(*) FILTER (WHERE d.decision = 'kept') AS kept, avg((d.decision = 'kept')::int)::double precision AS share,
    sum(e.span_end - e.span_start)::bigint AS bytes,
    coalesce(sum(e.span_end - e.span_start) FILTER (WHERE d.decision = 'pruned'), 0)::bigint AS bytes_cut
FROM boundaries b
JOIN entries e ON e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n
WHERE d.reason <> 'not_judged'
GROUP BY e.fleet, (b.effective_mode = 'enforce'), e.section, e.section_class, b.boundary_index > 1;
COMMENT ON VIEW composition_kept IS 'Kept share and bytes cut by section, first and later boundaries; enforced boundaries apart.';
COMMENT ON COLUMN composition_kept.fleet IS 'The tenant''s fleet of agents.';
COMMENT ON COLUMN composition_kept.enforced IS 'Boundaries that were enforced; in the others, pruned means: would have been.';
COMMENT ON COLUMN composition_kept.section IS 'Heading.';
COMMENT ON COLUMN composition_kept.section_class IS 'What such a section holds in this host''s format.';
COMMENT ON COLUMN composition_kept.later IS 'After the first boundary of the run.';
COMMENT ON COLUMN composition_kept.entries IS 'Entries for which something was decided.';
COMMENT ON COLUMN composition_kept.kept IS 'Those that were kept, pinned ones and scaffold included.';
COMMENT ON COLUMN composition_kept.share IS 'kept divided by entries.';
COMMENT ON COLUMN composition_kept.bytes IS 'Bytes of the entries (UTF-8).';
COMMENT ON COLUMN composition_kept.bytes_cut IS 'Bytes of the pruned ones.';

DO $$
DECLARE
    t text;
BEGIN
    -- To own a view one must be able to create it; only for this moment.
    GRANT CREATE ON SCHEMA public TO winnow_view_owner;
    FOREACH t IN ARRAY ARRAY['composition_entries', 'composition_by_section', 'composition_by_boundary', 'composition_persistence',
        'composition_kept'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO winnow_reader, winnow_gateway, winnow_service', t);
        EXECUTE format('ALTER VIEW %I OWNER TO winnow_view_owner', t);
    END LOOP;
    REVOKE CREATE ON SCHEMA public FROM winnow_view_owner;
END
$$;
