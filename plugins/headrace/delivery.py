"""Who is told of an alert: the pipeline's `quality.webhook` or `quality.notifier`; and the alert in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contract.pipeline import Pipeline
from headrace import notifier, webhook
from headrace.standing import LEFT, UNSEEN

TABLES = 20  # that a text names
TEXT = 4_000  # characters of a text, as Slack asks for


def took(log: Any, pipeline: Pipeline, alert: dict[str, Any], context: Any) -> bool | None:
    """Whether they did, else the log says why not; None where the file names neither. `context`: that of the task."""
    told = {**alert, "text": text(alert)}
    if chosen := pipeline.quality.notifier:
        # A template ends with an error where it asks for what is not there.
        known = {"clear": False, "next_step": "", "data_docs": "", "title": title(alert), **told}
        return notifier.took(log, pipeline, chosen, known, context)
    if url := pipeline.quality.webhook:
        return webhook.took(log, url, told)
    return None


def title(alert: dict[str, Any]) -> str:
    """One line."""
    task = f"{alert['dag']} {alert['task']}"
    if "clear" not in alert:
        return f"{task} failed"
    return f"{task}: all clear" if alert["clear"] else f"{task}: some tables are still at fault"


def text(alert: dict[str, Any]) -> str:
    """The alert in words, as a person reads it in a chat or a mail."""
    return _cut("\n".join(_failure(alert) if "clear" not in alert else _clear(alert)), TEXT)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _failure(alert: dict[str, Any]) -> Iterator[str]:
    """What to do and where to look first: a chat may cut the rest."""
    yield f"{title(alert)}: {_cut(alert['message'], TEXT // 2)}"
    for words in ("next_step", "log", "data_docs"):
        if found := alert.get(words):
            yield f"{words.replace('_', ' ')}: {found}"
    yield from _tables(alert, alert.get("since") or {})
    for words, ended in (("well again", alert.get("mended")), (LEFT, alert.get("left"))):
        if ended:
            yield f"{words}: {_some(ended)}"


def _clear(alert: dict[str, Any]) -> Iterator[str]:
    yield title(alert)
    yield from _tables(alert, {})
    if not alert["clear"]:
        yield f"{UNSEEN}: {_some([f'{table} ({at})' for table, at in alert['since'].items()])}"


def _tables(alert: dict[str, Any], since: dict[str, str]) -> Iterator[str]:
    """`since`: told behind what does not say it itself, as rows that differ do."""
    dated = {table: f" (since {at})" for table, at in since.items() if at not in alert["tables"].get(table, "")}
    told = [f"{table}: {found}{dated.get(table, '')}" for table, found in alert["tables"].items()]
    yield from told[:TABLES]
    if len(told) > TABLES:
        yield f"and {len(told) - TABLES} more"


def _some(names: list[str]) -> str:
    more = [f"and {len(names) - TABLES} more"] if len(names) > TABLES else []
    return ", ".join([*names[:TABLES], *more])
