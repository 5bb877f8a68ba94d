"""The batch recipe of Winnow, in one place that all services use."""
