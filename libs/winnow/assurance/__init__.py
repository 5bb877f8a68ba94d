"""The statistics of drift assurance: pure. Nothing here yet; the drift monitor stores what they will be computed from."""
