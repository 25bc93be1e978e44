"""The OpenAPI document as a page for people: each operation, what it takes and what it answers. It needs no script, and
nothing of any other host."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headrace: REST API</title><link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; }
body { max-width:980px; margin:0 auto; padding:24px 20px 48px; font:15px/1.5 system-ui, sans-serif; }
section { border-top:1px solid #8886; padding:10px 0; } h2 { margin:28px 0 6px; font-size:18px; }
h3 { margin:0; font-size:15px; font-family:ui-monospace, monospace; overflow-wrap:anywhere; }
table { border-collapse:collapse; margin:6px 0; } td { padding:2px 16px 2px 0; vertical-align:top; }
code { overflow-wrap:anywhere; } .soft { opacity:.7; } p { margin:6px 0; }
</style></head><body>
"""
METHODS = ("get", "post", "put", "delete")
LINK = "#/components/schemas/"


def page(document: dict[str, Any]) -> str:
    info = document["info"]
    parts = [HEAD, f"<h1>{escape(info['title'])} {escape(info['version'])}: REST API</h1>", _text(info["description"])]
    parts.append('<p>For programs: <a href="openapi.json">openapi.json</a>. <a href="./">The pipelines</a></p>')
    tags: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if (operation := methods.get(method)) is not None:
                tags.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    for tag, operations in tags.items():
        parts += [f"<h2>{escape(tag)}</h2>", *operations]
    parts.append("<h2>What is sent and answered</h2>")
    parts += [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    return "\n".join([*parts, "</body></html>\n"])


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = [(one["name"], one["schema"], one["required"]) for one in operation.get("parameters", ())]
    body = operation.get("requestBody", {}).get("content", {})
    told = [f"<section><h3>{method.upper()} {escape(path)}</h3>{_text(operation.get('description', ''))}"]
    told.append(_table(_field(name, schema, needed) for name, schema, needed in parameters))
    told += [f"<p>Body: {_content(kind, one)}</p>" for kind, one in body.items()]
    good = {status: one for status, one in operation["responses"].items() if status.startswith("2")}
    for status, answer in good.items():
        what = ", ".join(_content(kind, one) for kind, one in answer.get("content", {}).items()) or "nothing"
        told.append(f"<p>Answers {status}: {what}</p>")
    if refusals := [status for status in operation["responses"] if status not in good]:
        told.append(f'<p class="soft">or a <a href="#Problem">Problem</a>: {", ".join(refusals)}</p>')
    return "".join(told) + "</section>"


def _schema(name: str, schema: dict[str, Any]) -> str:
    fields = schema.get("properties", {}).items()
    rows = (_field(field, one, field in schema.get("required", ())) for field, one in fields)
    return f'<section id="{name}"><h3>{name}</h3>{_text(schema.get("description", ""))}{_table(rows)}</section>'


def _field(name: str, schema: dict[str, Any], needed: bool) -> str:
    more = [] if needed or "default" not in schema else [f"left out: {json.dumps(schema['default'])}"]
    more += [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    told = escape("; ".join(filter(None, (schema.get("description"), *more))))
    return f"<tr><td><code>{escape(name)}</code></td><td>{_type(schema)}</td><td>{_marked(told)}</td></tr>"


def _content(kind: str, content: dict[str, Any]) -> str:
    schema = content.get("schema", {})
    note = f" ({escape(schema['description'])})" if "description" in schema else ""
    return f"{escape(kind)} {_type(schema)}{note}"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(LINK))
        return f'<a href="#{name}">{name}</a>'
    if choices := schema.get("anyOf"):
        return " or ".join(_type(one) for one in choices)
    if "enum" in schema:
        return " | ".join(escape(str(one)) for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(schema.get("type", ""))


def _table(rows: Iterator[str]) -> str:
    found = "".join(rows)
    return f"<table>{found}</table>" if found else ""


def _text(text: str) -> str:
    return f"<p>{_marked(escape(text))}</p>" if text else ""


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
