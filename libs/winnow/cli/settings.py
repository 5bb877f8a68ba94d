"""Settings from variables that need not be those of this process."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import ValidationError

from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from winnow.messaging.settings import KafkaSettings


class BadSetting(Permanent):
    """A WINNOW_ variable has a value that it cannot have."""


def kafka_settings(environment: Mapping[str, str]) -> "KafkaSettings":
    """Settings of the bus as `environment` has them. Raise `BadSetting`, which names the variable and not its value."""
    from winnow.messaging.settings import KafkaSettings

    fields = KafkaSettings.model_fields
    given = {name: environment[f"WINNOW_{name.upper()}"] for name in fields if f"WINNOW_{name.upper()}" in environment}
    try:
        return KafkaSettings.model_validate(given)
    except ValidationError as exc:
        error = exc.errors(include_input=False, include_url=False)[0]
        name = f"WINNOW_{'_'.join(str(part) for part in error['loc']).upper()}: " if error["loc"] else ""
        msg = f"{name}{error['msg']}"
        raise BadSetting(msg) from None
