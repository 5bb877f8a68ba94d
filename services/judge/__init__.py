"""evidence -> a source probability for each entry."""
