"""Wraps of host libraries, in process: each module imports its host when it is used, so that the client stays light.

All of them go through one `Bridge`, which never lets a fault of Winnow or of the wrap reach the host.
"""

from winnow.client.hosts.bridge import Bridge, RunOf

__all__ = ["Bridge", "RunOf"]
