"""The service processes of `winnow up`: two unless one is asked for, so that a boundary is judged while the next is retrieved."""

import signal
import sys
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path

from winnow.contracts.errors import WinnowError
from winnow.embedded import Deadline, StartFailedError, ports
from winnow.embedded.child import Child
from winnow.embedded.instance import START_TRIES, Instance

#: Where the gateway listens unless told otherwise.
DEFAULT_GATEWAY_PORT = 8484
#: What runs together. Retrieving takes more of a boundary's processor time than everything else: beside it, in one interpreter, a judge
#: waits for whole batches of it (median from published to committed at five a second, in turn on a busy machine of two cores: 405 and
#: 896 ms in one process, 218 and 553 ms in two, 284 and 408 ms in a process a service, which takes 200 MB more than two).
PROCESSES: Mapping[str, tuple[str, ...]] = {"services": ("gateway", "judge", "pruner", "drift_monitor"), "retriever": ("retriever",)}
#: Everything in one, for a machine that is short of memory.
ONE_PROCESS: Mapping[str, tuple[str, ...]] = {"services": (*PROCESSES["services"], "retriever")}
#: Seconds until the services answer. They need 2 to 4 s; a machine under load may need many times that.
READY_TIMEOUT_S = 90.0
#: Seconds that one question may take; the checks behind it give themselves 3 s.
ASK_TIMEOUT_S = 5.0
#: SIGTERM: drain. The services end themselves after 28 s whatever hangs (WINNOW_HARD_EXIT_S).
STOP_STEPS = ((signal.SIGTERM, 35.0),)


class ServicesEnded(WinnowError):
    """A service process ended by itself; see its log."""


class Processes:
    """Some processes, as one. Methods block and are for one thread."""

    def __init__(self, directory: Path, processes: Mapping[str, tuple[str, ...]], *, gateway_port: int | None, temporary: bool) -> None:
        """Describe them; nothing is touched before `start`.

        Args:
            directory: where logs and remembered ports lie; a process but the first has a folder of its own in it.
            processes: the services of each by its name, the one with the gateway first: `PROCESSES` or `ONE_PROCESS`.
            gateway_port: None: 8484 if it is free, else the one of the last time, else a free one.
            temporary: 8484 is left to those that stay.
        """
        first, *others = processes
        self._processes = processes
        self._instances = {first: Instance(directory, first)} | {name: Instance(directory / name, name) for name in others}
        self._first = self._instances[first]
        self._wanted, self._temporary = gateway_port, temporary

    @property
    def log_file(self) -> Path:
        """What the process with the gateway has to say."""
        return self._first.log_file

    def start(self, settings: Mapping[str, str], at_exit: Callable[[], None]) -> int:
        """Start all, wait until all of them are ready, and return the gateway's port. `at_exit` is called when this interpreter ends.

        Raises:
            AlreadyRunningError: another process has the folder.
            StartFailedError: one ended or was not ready in time; call `stop` then.
        """
        for instance in self._instances.values():
            instance.claim(at_exit)
        deadline = Deadline.after(READY_TIMEOUT_S)
        for _ in range(START_TRIES):
            port = self._gateway_port()
            ready: dict[str, Readiness] = {}
            taken = [port]
            for name, instance in self._instances.items():
                status_port = instance.port("status-port", None, avoid=taken)
                taken.append(status_port)
                ready[name] = Readiness(status_port)
                environment = {**settings, "WINNOW_GATEWAY_PORT": str(port), "WINNOW_STATUS_PORT": str(status_port)}
                instance.launch([sys.executable, "-m", "services", *self._processes[name]], env=environment)
            if all(instance.settle(ready[name], deadline=deadline) for name, instance in self._instances.items()):
                return port
            self._end()
        msg = f"another process took each port that was free a moment before; see {self.log_file}"
        raise StartFailedError(msg)

    def check(self) -> None:
        """Raise `ServicesEnded` where one has ended by itself, with the end of its log."""
        for instance in self._instances.values():
            if not instance.alive:
                msg = f"the services ended by themselves; their log is {instance.log_file}\n{instance.child.output()}"
                raise ServicesEnded(msg)

    def stop(self, at_exit: Callable[[], None]) -> None:
        """Let them drain and end, the one with the gateway first: nothing new comes in then."""
        self._end()
        for instance in self._instances.values():
            if instance.claimed:
                instance.release(at_exit)

    def hurry(self) -> None:
        """End them at once, where they are still draining. For a signal handler."""
        for instance in self._instances.values():
            if instance.alive:
                instance.child.send(signal.SIGKILL)

    def _end(self) -> None:
        for instance in self._instances.values():
            instance.stop(*STOP_STEPS)

    def _gateway_port(self) -> int:
        """The port that was asked for; else the stock one, else the one of the last time or a new one."""
        if self._wanted is None and not self._temporary and ports.is_free(DEFAULT_GATEWAY_PORT):
            return DEFAULT_GATEWAY_PORT
        return self._first.port("gateway-port", self._wanted)


class Readiness:
    """Whether a process has said that it can serve. Once it has, that stands: a rebalance may interrupt it again any time."""

    def __init__(self, port: int) -> None:
        """Ask the status server on this port."""
        self._url = f"http://127.0.0.1:{port}/readyz"
        self._said = False

    def __call__(self, child: Child) -> bool:
        """Ask once, unless it was said before or there is nobody to ask."""
        if not self._said and child.alive:
            try:
                with urllib.request.urlopen(self._url, timeout=ASK_TIMEOUT_S) as answer:  # noqa: S310  our own URL on this machine
                    self._said = answer.status == HTTPStatus.OK
            except OSError:  # URLError is one: refused, reset, timed out, or 503 because something is not ready
                self._said = False
        return self._said
