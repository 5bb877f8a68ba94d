"""PostgreSQL, the truth of Winnow: tables and repositories. The only place that knows SQL.

Every repository is a module of async functions that take an `AsyncConnection` (`tx`) inside the caller's transaction: batch in, batch out.
"""
