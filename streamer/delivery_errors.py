"""What can go wrong behind the decoder: the broker, its topics, the records, the service's own ports."""

from __future__ import annotations

from streamer.errors import HeadraceError


class BrokerUnreachableError(HeadraceError):
    """No broker answers; it may come up."""

    kind = "broker_unreachable"
    retryable = True


class BrokerRefusedError(HeadraceError):
    """The broker answers, and says no: rights, settings, a request it does not know."""

    kind = "broker_refused"


class TopicError(HeadraceError):
    """A topic that would lose data if it were used as it is."""

    kind = "topic"


class RecordTooLargeError(HeadraceError):
    kind = "record_too_large"


class DeliveryError(HeadraceError):
    """The broker gave a record up for good."""

    kind = "delivery"


class TransactionLostError(HeadraceError):
    """A Kafka transaction came to nothing: the run begins anew at the last checkpoint, and what it held is sent
    again."""

    kind = "transaction_lost"


class TransactionTooLongError(HeadraceError):
    """One of the source's transactions takes longer than the broker lets a Kafka transaction be open."""

    kind = "transaction_too_long"


class FencedError(HeadraceError):
    """Another streamer of the pipeline took over, and the broker takes nothing more from this one."""

    kind = "fenced"


class DeposedError(HeadraceError):
    """This streamer was the active one, and another was elected."""

    kind = "deposed"


class StuckError(HeadraceError):
    """The waiting queue's head does not move while the broker answers."""

    kind = "stuck"


class AwayError(HeadraceError):
    """A place of records or of the position that cannot be reached now; it is tried again."""

    kind = "away"
    retryable = True


class SinkError(HeadraceError):
    """A place for records that takes no more, until a person mends it."""

    kind = "sink"


class CheckpointError(HeadraceError):
    """The durable position cannot be read as this pipeline's, or not be kept."""

    kind = "checkpoint"


class SchemasLostError(HeadraceError):
    """Records were sent, but the topic of their schemas holds none."""

    kind = "schemas_lost"


class UnknownSchemaError(HeadraceError):
    """A table, or a version, that the schema topic does not have."""

    kind = "unknown_schema"


class WrongServerError(HeadraceError):
    """The checkpoint is of another server than the one that answers."""

    kind = "wrong_server"


class BehindError(HeadraceError):
    """Another server that lacks streamed transactions, and replicates: it may catch up."""

    kind = "behind"
    retryable = True


class FirstStartError(HeadraceError):
    """No checkpoint, but topics that hold records: a person decides."""

    kind = "first_start"


class OtherFormError(HeadraceError):
    """The topics hold records of another form than the pipeline file asks for now."""

    kind = "other_form"


class StartError(HeadraceError):
    """streamer.start names no place of the server's binlog at which a stream can begin."""

    kind = "start"


class PortInUseError(HeadraceError):
    kind = "port_in_use"


class TokenError(HeadraceError):
    """The token of the streamer's own port cannot be had."""

    kind = "token"


class NotRunningError(HeadraceError):
    """No streamer of the pipeline answers on its port."""

    kind = "not_running"


class CutShortError(HeadraceError):
    """A oneshot run was stopped before its end."""

    kind = "cut_short"


class OversizedStoreError(HeadraceError):
    """A record too large for Kafka cannot be put where the pipeline file says."""

    kind = "oversized_store"


class TransformError(HeadraceError):
    """A transform of the pipeline file that cannot be used, or failed on a change and is to stop."""

    kind = "transform"
