"""Judging: the port, the local judge, and in `adapters` the remote ones."""
