"""Records read back from JSON lines, as the contract suite of sinks asks for them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import zstandard

from streamer.contract_suites.sink import Stored

UNPACK = {".gz": gzip.decompress, ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)}


def plain(name: str, data: bytes) -> bytes:
    return UNPACK.get(Path(name).suffix, bytes)(data)


def parsed(data: bytes) -> list[Stored]:
    """Key and value cut out of the lines as they are."""
    assert data == b"" or data.endswith(b"\n"), "half a record"
    return [_stored(line) for line in data.split(b"\n")[:-1]]


def _stored(line: bytes) -> Stored:
    record = json.loads(line)
    assert list(record) == ["topic", "key", "value"]
    begin = b'{"topic":' + json.dumps(record["topic"], ensure_ascii=False).encode() + b',"key":'
    rest = line.removeprefix(begin).removesuffix(b"}")
    for at in range(len(rest)):
        if rest.startswith(b',"value":', at) and json.loads(rest[:at]) == record["key"]:
            key, value = rest[:at], rest[at + len(b',"value":') :]
            return record["topic"], None if key == b"null" else key, value
    raise AssertionError(line)


def of_folder(root: Path) -> list[Stored]:
    """What a reader of the closed files finds."""
    return of_files({str(path.relative_to(root)): path.read_bytes() for path in root.glob("*/[!.]*.jsonl*")})


def of_files(files: dict[str, bytes]) -> list[Stored]:
    found = (parsed(plain(name, files[name])) for name in sorted(files))
    return [record for records in found for record in records]


def values(records: Iterable[Stored]) -> list[int]:
    return [json.loads(value) for *_, value in records]
