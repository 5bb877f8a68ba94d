"""What every test has: the harness, and a hypothesis profile that does not judge by the clock."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.harness.plugin"]

# Two cores shared by everything: how long an example takes says nothing about the code.
settings.register_profile("winnow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A failure in continuous integration must be there again when it is run again.
settings.register_profile("ci", settings.get_profile("winnow"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "winnow")
