"""Every failure the streamer can end with: a kind to act on, and one paragraph for the operator.

`str(error)` says what failed, on what, why, and the next step; it never holds a row's data or a secret.
`retryable` is true only for what time or a reconnect mends; everything else wants a person.
"""

from __future__ import annotations

from typing import ClassVar


class HeadraceError(Exception):
    """`operation`: what was being done; `object`: to what (a host, a file and position, a column);
    `cause`: why it failed; `hint`: the operator's next step."""

    kind: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, operation: str, object: str, cause: str, hint: str) -> None:
        super().__init__(operation, object, cause, hint)
        self.operation, self.object, self.cause, self.hint = operation, object, cause, hint

    def __str__(self) -> str:
        return f"{self.what}. {self.hint}".rstrip()

    @property
    def what(self) -> str:
        """Without the next step, for what shows that beside it."""
        return f"{self.operation} {self.object}: {self.cause.rstrip('.')}"


class UnreachableError(HeadraceError):
    """No connection could be made; the server may come up."""

    kind = "unreachable"
    retryable = True


class ConnectionLostError(HeadraceError):
    """A running dump was cut, or went silent for twice the heartbeat."""

    kind = "connection_lost"
    retryable = True


class AccessDeniedError(HeadraceError):
    kind = "access_denied"


class TlsError(HeadraceError):
    """The server and `source.tls` do not fit: no TLS, a certificate that is not trusted, files that cannot be used."""

    kind = "tls"


class PurgedError(HeadraceError):
    """The server no longer has binlogs that the start position needs."""

    kind = "purged"


class ServerIdInUseError(HeadraceError):
    """Another client dumps under our server id, and the server ended one of the two."""

    kind = "server_id_in_use"


class SourceRefusedError(HeadraceError):
    """The server answered with an error that none of the other kinds names."""

    kind = "source_refused"


class PreflightError(HeadraceError):
    """The server is not set up for a pipeline."""

    kind = "preflight"


class DecodeError(HeadraceError):
    """The binlog holds what must not be guessed at. Nothing after it is emitted."""

    kind = "decode"


class BegunAnewError(DecodeError):
    """The binlog is another one than before, under the same GTIDs: what comes takes a new epoch."""

    kind = "begun_anew"
    retryable = True


class CorruptEventError(DecodeError):
    """Bytes that are no whole, valid event."""

    kind = "corrupt_event"


class ChecksumError(CorruptEventError):
    kind = "checksum"


class UnknownEventError(DecodeError):
    """An event that this version does not know and that could carry data."""

    kind = "unknown_event"


class UnsupportedTypeError(DecodeError):
    """A column whose type has no exact wire value yet."""

    kind = "unsupported_type"


class RuleError(DecodeError):
    """A rule of the pipeline file that cannot hold for a table."""

    kind = "rule"


class UnclearTypeError(DecodeError):
    """A column whose type the binlog does not tell, and the table's definition not for certain."""

    kind = "unclear_type"


class MissingMetadataError(DecodeError):
    """Rows that do not say which columns they hold: row metadata or row image is not FULL."""

    kind = "missing_metadata"


class UnsupportedTransactionError(DecodeError):
    """A statement instead of rows, rows taken back that were given, XA rows that are not known or too many, or a
    transaction without GTID."""

    kind = "unsupported_transaction"


class AnonymousError(UnsupportedTransactionError):
    """A transaction without GTID, where the stream goes by GTID, or the server gives no such transaction. It begins
    again at its checkpoint, from where another way may be open (streamer/start/way.py)."""


class IncidentError(DecodeError):
    """The source wrote that it lost events."""

    kind = "incident"
