"""An HTTP session whose answers are bounded in size and time."""

import io
import time
from typing import Any

import requests
import urllib3


class AnswerTooLarge(requests.RequestException):
    """The body went on beyond the limit."""


class AnswerTooSlow(requests.Timeout):
    """The body was not complete in time. A socket's timeout alone bounds only the wait between two bytes."""


class BoundedSession(requests.Session):
    """limit: bytes of a body, unpacked. seconds: for a body, from its head to its end."""

    def __init__(self, limit: int, seconds: float) -> None:
        super().__init__()
        self._limit = limit
        self._seconds = seconds

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        response = super().send(request, **{**options, "stream": True})
        try:
            body = self._body(response)
        finally:
            response.close()
        response.raw = io.BytesIO(body)
        return response

    def _body(self, response: requests.Response) -> bytes:
        deadline = time.monotonic() + self._seconds
        body = bytearray()
        try:
            while chunk := response.raw.read1(65536, decode_content=True):
                body += chunk
                if len(body) > self._limit:
                    raise AnswerTooLarge(f"the answer is larger than {self._limit} bytes")
                if time.monotonic() > deadline:
                    raise AnswerTooSlow(f"the answer took longer than {self._seconds:g} seconds")
        except urllib3.exceptions.TimeoutError as error:
            raise AnswerTooSlow(str(error)) from error
        except (OSError, urllib3.exceptions.HTTPError) as error:
            raise requests.ConnectionError(str(error)) from error
        return bytes(body)
