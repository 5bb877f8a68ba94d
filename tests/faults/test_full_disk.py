"""The disk of a whole Winnow is full: nothing that was accepted is lost, and it is said what is full."""

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from tests.harness import wait_for
from tests.harness.brokers import KAFKA
from tests.harness.plugin import usable
from tests.integration.cli.conftest import start_up
from winnow.cli.endpoints import Endpoints
from winnow.contracts.limits import KIB, MIB

pytestmark = [pytest.mark.long, pytest.mark.timeout(420)]

#: MiB. PostgreSQL takes 44 from the start.
DISK = 256
#: Answers that are refused before there is room again, and seconds until then at most: Apache Kafka ends sooner.
REFUSED, REFUSED_S = 8, 90.0


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small disk of this test's own, where `winnow up` keeps its state; only who may mount has one."""
    # Not below pytest's folder, which only root may enter: PostgreSQL runs as nobody then, and would take another place for its data.
    folder = Path(tempfile.mkdtemp(prefix="winnow-disk-"))
    folder.chmod(0o755)
    place = folder / "state"
    place.mkdir()
    try:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}m", "tmpfs", str(place)], capture_output=True, check=False)
        if mounted.returncode:
            pytest.skip("this user may not mount a small disk")
        try:
            yield place
        finally:
            subprocess.run(["umount", "-l", str(place)], check=True)
    finally:
        shutil.rmtree(folder)


class Agent:
    """Submits boundaries; remembers those that were accepted, and what the others were told."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.refused: list[str] = []

    def submit(self, found: Endpoints, run: str, index: int) -> None:
        """One boundary of about 200 KiB that nothing makes smaller than half: some of them fill whatever was written ahead."""
        noise = random.Random(f"{run} {index}").randbytes(100 * KIB).hex()
        body = {
            "run": run, "index": index, "mode": "enforce",
            "history": [{"i": 0, "kind": "environment", "tool": "search", "text": f"flight HAT136 {noise}"}],
            "candidate": f"## Decisions\n- Flight HAT136 was found\n- She will probably take it {run}-{index}\n",
        }  # fmt: skip
        try:
            with self._client(found) as client:
                answer = client.post("/v1/boundaries", json=body)
        except httpx.HTTPError as exc:
            self.refused.append(type(exc).__name__)
            return
        if answer.status_code == HTTPStatus.ACCEPTED:
            self.accepted.add(answer.json()["boundary_id"])
        else:
            self.refused.append(answer.text)

    def settled(self, found: Endpoints) -> bool:
        """Everything that was accepted is committed."""
        with self._client(found) as client:
            return all(client.get(f"/v1/boundaries/{one}").json().get("outcome") == "judged" for one in self.accepted)

    @staticmethod
    def _client(found: Endpoints) -> httpx.Client:
        return httpx.Client(base_url=found.gateway_url, headers={"Authorization": f"Bearer {found.api_key}"}, timeout=30)


def fill(file: Path) -> None:
    """Take all the room there is."""
    with file.open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"\0" * MIB)
        except OSError:
            return


@pytest.mark.parametrize("broker", ["mesh", KAFKA])
def test_nothing_accepted_is_lost_on_a_full_disk(disk: Path, broker: str, pytestconfig: pytest.Config) -> None:
    """With room again, in the same Winnow or the next one, all that was accepted is judged; meanwhile it is said what is full."""
    if broker == KAFKA and usable(pytestconfig).name != KAFKA:
        pytest.skip("Apache Kafka cannot run here")
    words, folder = ("--broker", broker), disk.parent
    up, agent = start_up(folder, *words), Agent()
    found = up.endpoints
    try:
        for index in range(1, 11):
            agent.submit(found, "before", index)
        assert len(agent.accepted) == 10
        fill(disk / "ballast")
        began, index = time.monotonic(), 0
        while up.child.alive and len(agent.refused) < REFUSED and time.monotonic() - began < REFUSED_S:
            index += 1
            agent.submit(found, "full", index)
        assert not up.child.alive or any("disk of the database is full" in said for said in agent.refused), agent.refused
        (disk / "ballast").unlink()
        if not up.child.alive:
            assert "its disk is full" in up.output
            up = start_up(folder, *words)
            found = up.endpoints
        for index in range(1, 4):
            agent.submit(found, "after", index)
        wait_for(lambda: agent.settled(found), 120, what="all that was accepted")
    finally:
        up.stop()
