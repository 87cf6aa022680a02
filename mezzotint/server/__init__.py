"""HTTP before one engine: what a client may ask, how it is answered, and what goes wrong; no decoding, no tensors."""

from mezzotint.server.app import make_app
from mezzotint.server.backend import Backend
from mezzotint.server.config import ServerConfig

__all__ = ["Backend", "ServerConfig", "make_app"]
