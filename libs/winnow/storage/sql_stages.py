"""The statements of `stages`: one a stage, whatever the size of the batch.

Each begins by locking, in key order, the boundaries that have no answer of this stage yet. Everything else is inserted for those alone,
with the anchor's own `boundary_at`; so of two workers with the same boundary one stores and the other stores nothing. `ord` is the number
of the answer in the batch, by which the rows of all arrays find their boundary.

Columns of numbers, names and keys travel as the text of an array (`$1::text::int[]`), those of free text as the driver's arrays: the
driver asks of each element whether it is an array itself, and a boundary has some two thousand.
"""


def _locked(stage_column: str, more: str = "") -> str:
    """Boundaries of the batch without an answer. After waiting for another transaction, PostgreSQL checks the condition again."""
    return f"""asked AS (SELECT * FROM unnest($1::int[], $2::text[], $3::uuid[]) AS a(ord, fleet, boundary_id)),
locked AS (
    SELECT a.ord, b.fleet, b.boundary_id, b.boundary_at, b.run{more}
    FROM boundaries b JOIN asked a ON a.fleet = b.fleet AND a.boundary_id = b.boundary_id
    WHERE b.{stage_column} IS NULL ORDER BY b.fleet, b.boundary_id FOR UPDATE OF b
)"""  # noqa: S608  the columns are constants of this module


def _output(stage: str, first: int) -> str:
    """The stage's record; `first` is the number of its first parameter, `$4` the time."""
    p = [f"${first + i}" for i in range(8)]
    return f"""put_output AS (
    INSERT INTO stage_outputs (fleet, boundary_id, boundary_at, stage, event_type, event_id, record_key, body, encoding, claim, traceparent,
        created_at)
    SELECT l.fleet, l.boundary_id, l.boundary_at, '{stage}', o.event_type, o.event_id, o.record_key, o.body, o.encoding, o.claim,
        o.traceparent, $4
    FROM unnest({p[0]}::int[], {p[1]}::text[], {p[2]}::uuid[], {p[3]}::text[], {p[4]}::bytea[], {p[5]}::text[], {p[6]}::bool[],
        {p[7]}::text[]) AS o(ord, event_type, event_id, record_key, body, encoding, claim, traceparent)
    JOIN locked l ON l.ord = o.ord
)"""  # noqa: S608  the same


#: $4 now; $5-$12 outputs; $13-$18 boundaries; $19-$39 entries; $40-$47 passages; $48-$52 links.
EVIDENCE = f"""
WITH {_locked("evidence_at")},
stamped AS (
    UPDATE boundaries b SET evidence_at = $4, operating_point = v.operating_point, profile = v.profile, entries = v.entries,
        user_turns_survive = v.survive, warnings = v.warnings::text[]
    FROM locked l JOIN unnest($13::int[], $14::bigint[], $15::text[], $16::int[], $17::bool[], $18::text[])
        AS v(ord, operating_point, profile, entries, survive, warnings) ON v.ord = l.ord
    WHERE b.fleet = l.fleet AND b.boundary_id = l.boundary_id
),
{_output("evidence", 5)},
put_entries AS (
    INSERT INTO entries (fleet, boundary_id, boundary_at, n, section, section_class, text, text_key, span_start, span_end, pinned_by,
        truncated, provenance, sources, previous_entry, previous_similarity, origins, features, entry_key, parent, lead_in, previous_key,
        findings)
    SELECT l.fleet, l.boundary_id, l.boundary_at, e.n, e.section, e.section_class, e.text, e.text_key, e.span_start, e.span_end,
        e.pinned_by, e.truncated, e.provenance, e.sources::text[], e.previous_entry, e.previous_similarity, e.origins::jsonb,
        e.features::jsonb, e.entry_key, e.parent, e.lead_in, e.previous_key, e.findings::jsonb
    FROM unnest($19::text::int[], $20::text::int[], $21::text[], $22::text::text[], $23::text[], $24::text::text[], $25::text::int[],
        $26::text::int[], $27::text::text[], $28::text::bool[], $29::text::text[], $30::text::text[], $31::text::int[],
        $32::text::float8[], $33::text[], $34::text[], $35::text::text[], $36::text::int[], $37::text::int[], $38::text::text[],
        $39::text[])
        AS e(ord, n, section, section_class, text, text_key, span_start, span_end, pinned_by, truncated, provenance, sources,
            previous_entry, previous_similarity, origins, features, entry_key, parent, lead_in, previous_key, findings)
    JOIN locked l ON l.ord = e.ord
),
put_passages AS (
    INSERT INTO evidence_passages (fleet, boundary_id, boundary_at, passage, message, tool, origin, start_at, end_at, text)
    SELECT l.fleet, l.boundary_id, l.boundary_at, p.passage, p.message, p.tool, p.origin, p.start_at, p.end_at, p.text
    FROM unnest($40::text::int[], $41::text::int[], $42::text::int[], $43::text::text[], $44::text::text[], $45::text::int[],
        $46::text::int[], $47::text[])
        AS p(ord, passage, message, tool, origin, start_at, end_at, text)
    JOIN locked l ON l.ord = p.ord
),
put_links AS (
    INSERT INTO entry_evidence (fleet, boundary_id, boundary_at, n, rank, passage, bm25)
    SELECT l.fleet, l.boundary_id, l.boundary_at, x.n, x.rank, x.passage, x.bm25
    FROM unnest($48::text::int[], $49::text::int[], $50::text::int[], $51::text::int[], $52::text::float8[])
        AS x(ord, n, rank, passage, bm25)
    JOIN locked l ON l.ord = x.ord
)
SELECT fleet, boundary_id FROM locked
"""  # noqa: S608  the same

#: $4 now; $5-$12 outputs; $13-$16 boundaries; $17-$28 scores.
SCORES = f"""
WITH {_locked("scored_at")},
stamped AS (
    UPDATE boundaries b SET scored_at = $4, judge = v.judge, judge_version = v.judge_version, fallback_for = v.fallback_for
    FROM locked l JOIN unnest($13::int[], $14::text[], $15::text[], $16::text[])
        AS v(ord, judge, judge_version, fallback_for) ON v.ord = l.ord
    WHERE b.fleet = l.fleet AND b.boundary_id = l.boundary_id
),
{_output("scores", 5)},
put_scores AS (
    INSERT INTO scores (fleet, boundary_id, boundary_at, n, judge, judge_version, model, p, score, verdict, provenance, explanation,
        passages, flags)
    SELECT l.fleet, l.boundary_id, l.boundary_at, s.n, s.judge, s.judge_version, s.model, s.p, s.score, s.verdict, s.provenance,
        s.explanation, s.passages::int[], s.flags::text[]
    FROM unnest($17::text::int[], $18::text::int[], $19::text::text[], $20::text::text[], $21::text::text[], $22::text::float8[],
        $23::text::float8[], $24::text::text[], $25::text::text[], $26::text[], $27::text::text[], $28::text::text[])
        AS s(ord, n, judge, judge_version, model, p, score, verdict, provenance, explanation, passages, flags)
    JOIN locked l ON l.ord = s.ord
)
SELECT fleet, boundary_id FROM locked
"""  # noqa: S608  the same

#: $4 now; $5-$12 outputs; $13-$26 boundaries; $27-$36 decisions. NOTIFY is sent when the transaction commits, once a boundary.
COMMITTED = f"""
WITH {_locked("committed_at")},
stamped AS (
    UPDATE boundaries b SET committed_at = $4, outcome = v.outcome, reason = v.reason, effective_mode = v.mode, held = v.held,
        held_because = v.held_because, late = v.late, pruned = v.pruned,
        tau = CASE WHEN v.outcome <> 'rejected' THEN v.tau END, profile = coalesce(b.profile, v.profile),
        committed_sha256 = v.committed_sha256, parent_boundary_id = v.parent,
        operating_point = coalesce(b.operating_point, nullif(v.operating_point, 0)),
        warnings = (SELECT coalesce(array_agg(DISTINCT w), '{{}}') FROM unnest(b.warnings || v.warnings::text[]) AS w)
    FROM locked l JOIN unnest($13::int[], $14::text[], $15::text[], $16::text[], $17::bool[], $18::text[], $19::bool[], $20::int[],
        $21::float8[], $22::text[], $23::text[], $24::uuid[], $25::bigint[], $26::text[])
        AS v(ord, outcome, reason, mode, held, held_because, late, pruned, tau, profile, committed_sha256, parent, operating_point,
            warnings)
        ON v.ord = l.ord
    WHERE b.fleet = l.fleet AND b.boundary_id = l.boundary_id
),
{_output("committed", 5)},
put_decisions AS (
    INSERT INTO decisions (fleet, boundary_id, boundary_at, n, decision, reason, score, verdict, provenance, root_source, explanation,
        pinned_by)
    SELECT l.fleet, l.boundary_id, l.boundary_at, d.n, d.decision, d.reason, d.score, d.verdict, d.provenance, d.root_source, d.explanation,
        d.pinned_by
    FROM unnest($27::text::int[], $28::text::int[], $29::text::text[], $30::text::text[], $31::text::float8[], $32::text::text[],
        $33::text::text[], $34::text::text[], $35::text[], $36::text::text[])
        AS d(ord, n, decision, reason, score, verdict, provenance, root_source, explanation, pinned_by)
    JOIN locked l ON l.ord = d.ord
)
SELECT fleet, boundary_id, pg_notify('winnow_committed', encode(sha256(convert_to(fleet || '/' || boundary_id, 'UTF8')), 'hex')) FROM locked
"""  # noqa: S608  the same
