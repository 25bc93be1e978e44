"""Structured logs on standard error: JSON lines for machines, lines for people, coloured on a terminal
where NO_COLOR is not set."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Literal

import structlog

Format = Literal["auto", "json", "console"]


def for_people() -> structlog.dev.ConsoleRenderer:
    """`--log console` may go into a pipe or a file, which have no use for colours."""
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR"))


def configure(form: Format = "auto", level: str = "INFO", **fixed: Any) -> bool:
    """Returns whether people read it. `auto`: console on a terminal, else JSON. `fixed`: fields that every line
    carries. The standard library's loggers (uvicorn, librdkafka) go the same road."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: Any = for_people() if console else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**fixed)
    return console
