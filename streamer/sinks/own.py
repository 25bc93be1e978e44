"""What a sink of the user's raises that is no error of ours: it ends the stream like one, by its class and its place in
the code. Not by its own words, which may hold rows' data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import PurePath
from traceback import extract_tb
from typing import Any

from streamer.delivery_errors import SinkError
from streamer.errors import HeadraceError

METHODS = ("send", "send_one", "send_everywhere", "partitions", "poll", "flush", "hasten", "probe", "close")
HINT = (
    "Mend the class and start again: the stream goes on from the last checkpoint. It raises AwayError for what a retry "
    "mends, and SinkError where the words of an error are to be told."
)


def failed(title: str, error: BaseException) -> SinkError:
    last = extract_tb(error.__traceback__)[-1]
    cause = f"{type(error).__name__} at {PurePath(last.filename).name}:{last.lineno}"
    return SinkError("writing to", title, cause, HINT)


def guarded(sink: Any, title: str) -> Any:
    """The same sink, whose methods raise no error but ours."""
    for name in METHODS:
        if (method := getattr(sink, name, None)) is not None:
            with suppress(AttributeError):  # one of slots takes none
                setattr(sink, name, _guarded(method, title))
    return sink


def _guarded(method: Callable[..., Any], title: str) -> Callable[..., Any]:
    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return method(*given, **named)
        except HeadraceError:
            raise
        except (Exception, SystemExit) as error:
            raise failed(title, error) from None

    return call
