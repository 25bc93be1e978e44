"""A binlog file -> what a stream would make of it: `headrace decode`.

In: a file as the server keeps it, and whose rows are asked for. Out: a JSON object a line: each change as its record's
value has it, `op: ddl` for a statement, `op: commit` for a transaction's end. No server is asked: what the file alone
does not tell raises the errors that stop a stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import IO, Any

from contract.gtid_places import gtid_of
from contract.patterns import any_matches, may_match
from contract.sequence import file_number
from streamer import VERSION
from streamer.by_place import FileDecoder
from streamer.ddl.secrets import without_secrets
from streamer.ddl.statement import ANY, change
from streamer.envelope import Envelope
from streamer.errors import CorruptEventError, HeadraceError
from streamer.protocol import events as ev
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Commit, Ddl, RowsBatch
from streamer.protocol.packets import FULL
from streamer.protocol.position import FIRST
from streamer.protocol.server import writer

MAGIC, ENCRYPTED = b"\xfebin", b"\xfdbin"
OPEN = ".part"  # behind the name of a file that `headrace archive` has not ended yet
CHUNK = 1 << 18  # bytes of events that are decoded at once
NAME = "file"  # in place of a pipeline's
NO_SCHEMA = 0  # a file has no schema topic, whose versions records name
pack_header = Struct("<IBIIIH").pack
KIND, FLAGS = 4, 17  # where an event's header has them
IN_USE = 1  # of a file's first event while the server writes it, set without regard to the checksum
read_size = Struct("<9xI").unpack_from
WHOLE = "Take a whole copy of the file, once the server has begun the next one (FLUSH BINARY LOGS)"


class BinlogFileError(HeadraceError):
    """The file cannot be read, or is no binlog file."""

    kind = "binlog_file"


class BinlogFile:
    """`patterns`: of tables; without any, all are asked for. `open_xa`: XA transactions that are prepared in what was
    read, and do not end in it: their rows are not given."""

    def __init__(self, path: Path, patterns: Sequence[str] = ()) -> None:
        self._path = path
        self._patterns = patterns
        self._name = path.name.removesuffix(OPEN)
        self._prepared = PreparedXa()
        self._decoder = FileDecoder(self._wanted, self._prepared, statements=True)
        self._connector = "mysql"
        self._is_cut = False
        self._has_told = False  # something of the transaction that is being read
        self._envelopes: dict[tuple[str, str, bool], Envelope] = {}

    @property
    def open_xa(self) -> int:
        return len(self._prepared.open)

    def lines(self) -> Iterator[bytes]:
        """Without line ends. Raises BinlogFileError, DecodeError; what stands before is given before."""
        try:
            with self._path.open("rb") as file:
                for chunk in self._chunks(file):
                    for item in self._decoder.feed(chunk):
                        yield from self._told(item)
        except OSError as error:
            raise self._wrong(error.strerror or str(error), "Name a file that you may read") from None
        if self._is_cut or not self._decoder.between_transactions:
            raise self._cut("an event" if self._is_cut else "a transaction")

    def _chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        """The events as a server would send them."""
        self._refuse(file.read(len(MAGIC)))
        yield packets(_rotate(self._name))
        first, waiting = True, bytearray()
        for event in self._events(file):
            if first:
                first = False
                event = event[:FLAGS] + bytes([event[FLAGS] & ~IN_USE]) + event[FLAGS + 1 :]
                self._connector = "mariadb" if writer(event, ev.HEADER).mariadb else "mysql"
            waiting += packets(event)
            if len(waiting) >= CHUNK:
                yield bytes(waiting)
                waiting.clear()
        yield bytes(waiting)

    def _refuse(self, magic: bytes) -> None:
        if magic == ENCRYPTED:
            raise self._encrypted()
        if magic != MAGIC:
            raise self._wrong("it is no binlog file", "Name a file of those that SHOW BINARY LOGS lists, or a copy")
        try:
            file_number(self._name)
        except ValueError:
            hint = "Name the copy as the server does, such as binlog.000012: places in it are told by the number"
            raise self._wrong("its name does not end in a number", hint) from None

    def _events(self, file: IO[bytes]) -> Iterator[bytes]:
        """Whole ones; what is left behind the last of them is refused once that is decoded."""
        while head := file.read(ev.HEADER):
            size = read_size(head)[0] if len(head) == ev.HEADER else 0
            event = head + file.read(max(0, size - ev.HEADER))
            if size < ev.HEADER or len(event) < size:
                self._is_cut = True
                return
            kind, flags = event[KIND], int.from_bytes(event[ev.HEADER - 2 : ev.HEADER], "little")
            if kind == ev.START_ENCRYPTION and not flags & ev.MAY_BE_IGNORED:  # MariaDB's, whose beginning is clear
                raise self._encrypted()
            if (
                kind != ev.ROTATE or flags & ev.ARTIFICIAL
            ):  # to the next file, whatever this copy's name has for a number
                yield event

    def _wanted(self, db: str, table: str) -> bool:
        return not self._patterns or any_matches(self._patterns, db, table)

    def _concerns(self, item: Ddl) -> bool:
        """Whether a statement is of a table that is asked for. Of one that cannot be read nobody knows: so it is
        told. Names in it may have other capitals than the table."""
        if not self._patterns:
            return True
        kind, tables = change(item.statement, item.db, item.escapes)
        if kind == "unknown" and not tables:
            return True
        return any(
            any(may_match(one, {"db": db}) for one in self._patterns)
            if table == ANY
            else any_matches(self._patterns, db, table, ignore_case=True)
            for db, table in tables
        )

    def _told(self, item: object) -> Iterator[bytes]:
        """Of the ends, where tables are asked for, those of transactions that have something of them."""
        if isinstance(item, RowsBatch):
            self._has_told = True
            yield from self._envelope(item).records(item)[1]
        elif isinstance(item, Ddl) and self._concerns(item):
            self._has_told = True
            source = self._source(item) | {"db": item.db, "thread": item.thread, "temporary": item.temporary}
            yield _json({"op": "ddl", "statement": without_secrets(item.statement, item.escapes), "source": source})
        elif isinstance(item, Commit):
            if self._has_told or not self._patterns:
                yield _json({"op": "commit", "source": self._source(item) | {"xid": item.xid}})
            self._has_told = False

    def _source(self, item: Ddl | Commit) -> dict[str, Any]:
        """`pos`: where a statement's transaction begins; behind a transaction's end."""
        gtid = gtid_of(item.gtid)
        return {"ts_ms": item.ts_ms, "server_id": item.server_id, "gtid": gtid, "file": item.file, "pos": item.pos}

    def _envelope(self, item: RowsBatch) -> Envelope:
        db, table, has_gtid = item.table.db, item.table.table, gtid_of(item.gtid) is not None
        known = self._envelopes.get((db, table, has_gtid))
        if known is None:
            known = Envelope(VERSION, NAME, _json(db), _json(table), NO_SCHEMA, 0, self._connector)
            self._envelopes[db, table, has_gtid] = known
        return known

    def _wrong(self, cause: str, hint: str) -> BinlogFileError:
        return BinlogFileError("decoding", str(self._path), cause, hint)

    def _encrypted(self) -> BinlogFileError:
        hint = "Read it through the server: mysqlbinlog --read-from-remote-server --raw, which decrypts it"
        return self._wrong("it is encrypted", hint)

    def _cut(self, within: str) -> CorruptEventError:
        at = f"{self._path} ({self._decoder.file}:{self._decoder.pos})"
        return CorruptEventError("decoding", at, f"the file ends in the middle of {within}", WHOLE)


def packets(event: bytes) -> bytes:
    """An event in the packets of a dump: behind an OK byte, in as many parts as its length takes."""
    payload = b"\x00" + event
    parts = (payload[at : at + FULL] for at in range(0, len(payload) + 1, FULL))
    return b"".join(len(part).to_bytes(3, "little") + b"\x00" + part for part in parts)


def _rotate(name: str) -> bytes:
    """The event by which a server says which file the ones that follow are of."""
    body = FIRST.to_bytes(8, "little") + name.encode()
    return pack_header(0, ev.ROTATE, 0, ev.HEADER + len(body), 0, ev.ARTIFICIAL) + body


def _json(value: dict[str, Any] | str) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
