"""What the sidecar does again and again. An error of one such task stops neither it nor the others."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

LONGEST_PAUSE: Final = 300.0
"""Seconds between two tries of what fails each time."""

_LONGEST_MESSAGE: Final = 300


async def repeated(
    what: str,
    work: Callable[[], Awaitable[None]],
    seconds: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> NoReturn:
    """Do the work, with so many seconds between. After an error the pause doubles, until the work is done again; the
    first error is told on stderr, and no other.

    what: names the work in that message.
    """
    reported, pause = False, seconds
    while True:
        try:
            await work()
            pause = seconds
        except Exception as error:
            pause = min(2 * pause, LONGEST_PAUSE)
            if not reported:
                why = "".join(letter for letter in str(error)[:_LONGEST_MESSAGE] if letter.isprintable())
                message = f"{what}: {type(error).__name__}: {why}; it is tried again, and further errors are not told"
                print(f"rightpool_profiler: {message}", file=sys.stderr, flush=True)
                reported = True
        await sleep(pause)
