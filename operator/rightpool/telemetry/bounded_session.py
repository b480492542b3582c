"""An HTTP session whose answers are bounded in size and time."""

import io
import time
from collections.abc import Callable
from typing import Any, Final

import requests
import urllib3

_CHUNK: Final = 2**18  # bytes


class AnswerTooLarge(requests.RequestException):
    """The body went on beyond the limit."""


class AnswerTooSlow(requests.Timeout):
    """The body was not complete in time. A socket's timeout alone bounds only the wait between two bytes."""


class BoundedResponse(requests.Response):
    """A response whose body is here already."""

    def __init__(self, response: requests.Response, body: io.BytesIO, decode: Callable[[bytes], Any]) -> None:
        super().__init__()
        self.__dict__.update(response.__dict__)
        self.raw = self._body = body
        self._decode = decode

    def json(self, **_: Any) -> Any:
        """By the session's decoder. Raises ValueError for what it can't decode."""
        return self._decode(self._body.getvalue())


class BoundedSession(requests.Session):
    """For Prometheus, which is trusted and may still be slow, or answer with more than is asked for."""

    def __init__(self, limit: int, seconds: float, decode: Callable[[bytes], Any]) -> None:
        """limit: bytes of a body, unpacked. seconds: for a body, from its head to its end. decode: what its JSON is."""
        super().__init__()
        self._limit = limit
        self._seconds = seconds
        self._decode = decode

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        response = super().send(request, **{**options, "stream": True})
        try:
            body = self._body(response)
        finally:
            response.close()
        return BoundedResponse(response, body, self._decode)

    def _body(self, response: requests.Response) -> io.BytesIO:
        """Gives its bytes out without a copy: of ten thousand jobs there are 12 MB in an answer."""
        deadline = time.monotonic() + self._seconds
        body = io.BytesIO()
        try:
            while chunk := response.raw.read1(_CHUNK, decode_content=True):
                body.write(chunk)
                if body.tell() > self._limit:
                    raise AnswerTooLarge(f"the answer is larger than {self._limit} bytes")
                if time.monotonic() > deadline:
                    raise AnswerTooSlow(f"the answer took longer than {self._seconds:g} seconds")
        except urllib3.exceptions.TimeoutError as error:
            raise AnswerTooSlow(str(error)) from error
        except (OSError, urllib3.exceptions.HTTPError) as error:
            raise requests.ConnectionError(str(error)) from error
        body.seek(0)
        return body
