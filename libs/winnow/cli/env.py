"""`winnow env`: the variables of a running `winnow up`, for a shell."""

import shlex
import sys

from winnow.cli.connection import NotConnected, running


def env() -> None:
    """Print the running Winnow's addresses and key as shell variables: eval "$(winnow env)".

    They are secrets: the API key, and the password in the database URL.
    """
    found = running()
    if found is None:
        raise NotConnected("nothing runs in this state folder: start `winnow up` in another terminal")
    for name, value in (
        ("WINNOW_GATEWAY_URL", found.gateway_url),
        ("WINNOW_API_KEY", found.api_key),
        ("WINNOW_KAFKA_BOOTSTRAP_SERVERS", found.kafka_bootstrap_servers),
        ("WINNOW_TOPIC_PREFIX", found.topic_prefix),
        ("WINNOW_DATABASE_URL", found.database_url),
    ):
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")
