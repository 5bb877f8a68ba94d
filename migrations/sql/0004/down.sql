-- Back to the views of earlier revisions.

DROP VIEW composition_kept, composition_persistence, composition_by_boundary, composition_by_section, composition_entries;
