"""A proxy for hosts without a hook: `winnow proxy`. Passes everything on byte for byte, and acts on compactions of known hosts alone."""

from winnow.client.proxy.app import Proxy

__all__ = ["Proxy"]
