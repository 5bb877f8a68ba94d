"""Adapters: the remote judges, behind the port. The I/O shell of judging."""
