"""The bearer token of a Revision's sidecars.

The operator derives it whenever it needs it, and stores it nowhere. The pod holds the digest alone: who can read the
pod, the user's program included, can't use it to command another pod's profiler.
"""

import hashlib
import hmac


def revision_token(key: bytes, uid: str, revision: int) -> str:
    """The token that the operator sends. key: the installation's secret. uid: of the ProfiledJob."""
    return hmac.new(key, f"{uid}/{revision}".encode(), hashlib.sha256).hexdigest()


def token_digest(token: str) -> str:
    """What the sidecar compares with: the SHA-256 of the token, in hex."""
    return hashlib.sha256(token.encode()).hexdigest()
