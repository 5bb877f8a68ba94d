"""View models of the console: pure functions from stored values to what a template writes."""
