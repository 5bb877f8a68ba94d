"""A run of three real compaction boundaries, and playing it as an agent runtime would."""
