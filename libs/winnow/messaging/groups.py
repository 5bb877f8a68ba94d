"""Who is in the consumer groups of Winnow's services."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code

from winnow.messaging.settings import KafkaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One consumer group."""

    #: The broker's word: Stable, Empty, Dead, PreparingRebalance, CompletingRebalance.
    state: str
    members: int


async def read(admin: AIOKafkaAdminClient, settings: KafkaSettings, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Group]:
    """The groups of these services on these topics (registry names), by both; one that never was is `Dead` and has nobody.

    Raises `KafkaError` where the broker does not answer or refuses.
    """
    found: dict[tuple[str, str], Group] = {}
    for service, topic in wanted:
        # One group a request: aiokafka reads version 3 of the answer as version 2, which ends well with the first group and not with two.
        for response in await admin.describe_consumer_groups([settings.group(service, topic)]):
            for group in response.to_object()["groups"]:
                if group["error_code"]:
                    raise for_code(group["error_code"])
                found[service, topic] = Group(state=group["state"], members=len(group["members"]))
    return found
