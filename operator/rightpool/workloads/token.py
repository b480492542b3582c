"""The bearer token of a Revision's sidecars.

The operator derives it whenever it needs it, and stores it nowhere. The pod holds the digest alone: who can read the
pod, the user's program included, can't use it to command another pod's profiler.
"""

import hashlib
import hmac


def revision_token(key: bytes, uid: str, revision: int) -> str:
    """The token that the operator sends. `key` is the installation's secret, `uid` the ProfiledJob's."""
    return hmac.new(key, f"{uid}/{revision}".encode(), hashlib.sha256).hexdigest()


def token_digest(token: str) -> str:
    """The SHA-256 of the token in hex, with which the sidecar compares."""
    return hashlib.sha256(token.encode()).hexdigest()
