"""Two requests that the client lacks: what is allowed on topics (Metadata, version 8) and on groups (DescribeGroups, version 3).

The client's own DescribeGroups reads version 3 as version 2; Metadata it knows up to version 5.
"""

from collections.abc import Sequence

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Bytes, Int16, Int32, Schema, String


class TopicsAnswer(Response):  # type: ignore[misc]  # aiokafka ships no annotations
    """Topics with the operations that are allowed on each, as bits."""

    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node_id", Int32), ("host", String("utf-8")), ("port", Int32), ("rack", String("utf-8")))),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16), ("partition", Int32), ("leader", Int32), ("leader_epoch", Int32),
                        ("replicas", Array(Int32)), ("isr", Array(Int32)), ("offline", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )  # fmt: skip


class TopicsQuestion(RequestStruct):  # type: ignore[misc]  # the same
    """Version 8 on the wire."""

    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = TopicsAnswer
    SCHEMA = Schema(("topics", Array(String("utf-8"))), ("create", Boolean), ("cluster_operations", Boolean), ("topic_operations", Boolean))


class AskTopics(Request[TopicsQuestion]):  # type: ignore[misc]  # the same
    """Metadata of topics with what is allowed on each; creates none."""

    API_KEY = 3

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def build(self, request_struct_class: type[TopicsQuestion]) -> TopicsQuestion:
        """The request in the negotiated version: names, create, operations of the cluster, operations of topics."""
        return request_struct_class(self._names, False, False, True)


class GroupsAnswer(Response):  # type: ignore[misc]  # the same
    """Groups with the operations that are allowed on each, as bits."""

    API_KEY = 15
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            Array(
                ("error_code", Int16), ("group", String("utf-8")), ("state", String("utf-8")), ("protocol_type", String("utf-8")),
                ("protocol", String("utf-8")),
                (
                    "members",
                    Array(
                        ("member_id", String("utf-8")), ("client_id", String("utf-8")), ("client_host", String("utf-8")),
                        ("metadata", Bytes), ("assignment", Bytes),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
    )  # fmt: skip


class GroupsQuestion(RequestStruct):  # type: ignore[misc]  # the same
    """Version 3 on the wire."""

    API_KEY = 15
    API_VERSION = 3
    RESPONSE_TYPE = GroupsAnswer
    SCHEMA = Schema(("groups", Array(String("utf-8"))), ("operations", Boolean))


class AskGroups(Request[GroupsQuestion]):  # type: ignore[misc]  # the same
    """Description of groups with what is allowed on each."""

    API_KEY = 15

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def build(self, request_struct_class: type[GroupsQuestion]) -> GroupsQuestion:
        """The request in the negotiated version: names, operations."""
        return request_struct_class(self._names, True)
