"""`docs/configuration.md`, made from the settings classes: `python -m tests.contract.configuration > docs/configuration.md`."""

import json
import sys
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from services.__main__ import NAMES, settings_of
from services.gateway.console.settings import ConsoleSettings
from services.settings import ProcessSettings
from winnow.judging.adapters.specs import AnthropicSpec, EnsembleSpec, JevSpec, SelfSpec
from winnow.messaging.settings import KafkaSettings
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry.settings import TelemetrySettings

HEAD = """\
# Configuration

Every setting is an environment variable with the prefix `WINNOW_`. This page is made from the code
(`python -m tests.contract.configuration > docs/configuration.md`); a test fails when it drifts. A value that a setting cannot have ends the
start with the variable's name and what is wrong, never with the value. Unknown `WINNOW_` variables are ignored.

Where no default stands, the variable is unset. Values that are secret (the database URL, SASL passwords, API keys) are never logged.
"""

COMMANDS = """\
## Commands

Read by `winnow` itself, and by the embedded servers.

| variable | default | meaning |
|---|---|---|
| `WINNOW_STATE_DIR` | `$XDG_STATE_HOME/winnow`, else `~/.local/state/winnow` | Data of `winnow up`; other commands find it there. |
| `WINNOW_CACHE_DIR` | `$XDG_CACHE_HOME/winnow`, else `~/.cache/winnow` | What can be fetched again: Apache Kafka's jars. |
| `WINNOW_GATEWAY_URL` | that of the running `winnow up` | Gateway of `submit`, `watch`, `show` and `runs`. |
| `WINNOW_API_KEY` | that of the running `winnow up` | API key for it. |
| `WINNOW_FLEET` | that of the running `winnow up`, else `default` | Fleet of submitted boundaries; must be the key's. |
| `WINNOW_DATABASE_URL` | that of the running `winnow up` | Database of the operators' commands; `up` then starts none. |
| `WINNOW_KAFKA_BOOTSTRAP_SERVERS` | that of the running `winnow up` | Broker of the commands; `up` then starts none. |
| `WINNOW_PG_BIN` | the wheel's | Folder of the PostgreSQL programs that the embedded server uses. |
| `WINNOW_KAFKA_LIBS` | fetched by Maven | Folder of Apache Kafka's jars for `--broker kafka`. |
| `JAVA_HOME` | `java` on the path | Java 17 or later for `--broker kafka`. |
| `NO_COLOR` | | Set: no colours. |
"""

PARTS: tuple[tuple[str, str, type[BaseSettings]], ...] = (
    ("Process", "Every process that runs services.", ProcessSettings),
    ("Kafka", "Every process that runs services, and the commands that talk to the broker.", KafkaSettings),
    ("Database", "Every process that runs services.", DatabaseSettings),
    ("Telemetry", "Every process that runs services.", TelemetrySettings),
    ("Console", "The gateway, besides its own settings.", ConsoleSettings),
)


#: Kinds of judges that `WINNOW_JUDGES` may have.
JUDGES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("jev", JevSpec),
    ("anthropic", AnthropicSpec),
    ("self", SelfSpec),
    ("ensemble", EnsembleSpec),
)


def document() -> str:
    """The whole page."""
    sections = [HEAD]
    sections += [_section(title, text, settings) for title, text, settings in PARTS]
    sections += [_section(name.replace("_", " ").capitalize(), f"Service `{name}`.", settings_of(name)) for name in NAMES]
    sections += [_kind(name, spec) for name, spec in JUDGES]
    return "\n".join([*sections, COMMANDS])


def _section(title: str, text: str, settings: type[BaseSettings]) -> str:
    """One settings class."""
    fields = settings.model_fields.items()
    rows = [f"| `WINNOW_{name.upper()}` | {_default(field)} | {_choices(field)}{field.description} |" for name, field in fields]
    return "\n".join([f"## {title}", "", text, "", "| variable | default | meaning |", "|---|---|---|", *rows, ""])


def _kind(name: str, spec: type[BaseModel]) -> str:
    """The fields of one kind of judge."""
    rows = [f"| `{field}` | {_default(info)} | {_choices(info)}{info.description} |" for field, info in spec.model_fields.items()]
    head = [
        f"## Judge of kind `{name}`",
        "",
        f"{(spec.__doc__ or '').strip()} An entry of `WINNOW_JUDGES`; `docs/judges.md` has examples.",
        "",
    ]
    return "\n".join([*head, "| field | default | meaning |", "|---|---|---|", *rows, ""])


def _default(field: FieldInfo) -> str:
    """The default as one would write it into a variable."""
    value = field.default
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, tuple):
        value = json.dumps(value)
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if str(value) else "empty"


def _choices(field: FieldInfo) -> str:
    """The words that a closed list allows."""
    if get_origin(field.annotation) is Literal:
        return "One of " + ", ".join(f"`{word}`" for word in get_args(field.annotation)) + ". "
    return ""


if __name__ == "__main__":
    sys.stdout.write(document())
