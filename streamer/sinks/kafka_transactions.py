"""The Kafka sink of exactly-once delivery: records become visible together, when their Kafka transaction is committed.

The broker knows the producer by its transactional id, and takes nothing more from one that another has followed. The
client's errors are of three kinds: what time mends (asked again), what ends the transaction (everything since the last
commit is read and sent again), and what ends the producer.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from contract import names
from contract.pipeline import Pipeline
from streamer.delivery_errors import BrokerUnreachableError, FencedError, TransactionLostError
from streamer.kafka import broker
from streamer.kafka.transaction_errors import FENCED, LOST
from streamer.sinks.kafka import KafkaSink

ABORT_SECONDS = 5.0


class TransactionalKafkaSink(KafkaSink):
    """A transaction is open from `begin` on; `commit` ends it and opens the next."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._fatal: Any = None
        super().__init__(
            pipeline,
            **{
                "transactional.id": names.transactional_id(pipeline),
                "transaction.timeout.ms": pipeline.kafka.transaction_timeout_seconds * 1000,
                # A record that is given up ends its transaction here, and nothing of that is ever visible.
                "enable.gapless.guarantee": False,
            },
        )

    def begin(self, seconds: float) -> None:
        """Fences off every producer before this one, and takes back what it did not commit. Raises
        BrokerUnreachableError where the broker has not answered by then: ask again; BrokerRefusedError,
        FencedError."""
        try:
            self._producer.init_transactions(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            fault = error.args[0]
            if fault.retriable() or fault.code() in broker.AWAY:
                raise BrokerUnreachableError(
                    "beginning a transaction at",
                    f"Kafka at {self._pipeline.kafka.bootstrap}",
                    f"its transaction coordinator does not answer ({fault.str()})",
                    "Start the broker. One that is alone needs transaction.state.log.replication.factor=1 and "
                    "transaction.state.log.min.isr=1; or set streamer.delivery to at_least_once.",
                ) from None
            if fault.code() in FENCED:
                raise self._lost(error) from None
            raise broker.typed(error, "beginning a transaction at", self._pipeline.kafka) from None

    def commit(self, seconds: float) -> bool:
        """Makes all that was sent since the last commit durable and visible. False where the broker has not answered
        by then: call again. Raises TransactionLostError: nothing of it is visible, nor will be."""
        try:
            self._producer.commit_transaction(seconds)
            self._producer.begin_transaction()
        except KafkaException as error:
            if error.args[0].retriable():
                self.last_error = error.args[0].str()
                return False
            raise self._lost(error) from None
        return True

    def abort(self) -> None:
        """Takes back what was not committed, as far as the broker answers now; else the next `begin` does."""
        with suppress(KafkaException):
            self._producer.abort_transaction(ABORT_SECONDS)

    def close(self) -> None:
        self.abort()
        super().close()

    def _refused(self, error: KafkaException, topic: str, size: int) -> Exception:
        fault = error.args[0]
        if fault.code() == KafkaError._STATE:
            error = self._reason(error)
            fault = error.args[0]
        if fault.code() in LOST or fault.txn_requires_abort() or fault.fatal():
            return self._lost(error)
        return super()._refused(error, topic, size)

    def _stopped(self, error: KafkaException) -> Exception:
        return self._lost(error)

    def _reason(self, error: KafkaException) -> KafkaException:
        """Why the transaction cannot go on: a commit of one that is to be aborted says it, and does nothing else."""
        try:
            self._producer.commit_transaction(ABORT_SECONDS)
        except KafkaException as reason:
            return reason
        return error

    def _on_error(self, error: Any) -> None:
        super()._on_error(error)
        if error.fatal():
            self._fatal = error

    def _cause(self, fault: Any) -> Any:
        """The client's reason to end for good, where it has one: what a call says then may be any word, also that the
        broker's answer was unknown."""
        if fault.code() not in FENCED | LOST | broker.AWAY and not fault.retriable():
            try:
                self._producer.begin_transaction()  # asks nobody: who has ended for good says why
            except KafkaException as reason:
                return reason.args[0] if reason.args[0].fatal() else fault
        return self._fatal if fault.code() == KafkaError._FATAL and self._fatal else fault

    def _lost(self, error: KafkaException) -> Exception:
        fault = self._cause(error.args[0])
        what = f"Kafka at {self._pipeline.kafka.bootstrap}"
        if fault.code() in FENCED:
            return FencedError(
                "delivering to",
                what,
                f"another producer took the transactional id {names.transactional_id(self._pipeline)} ({fault.str()})",
                "Another streamer of the pipeline runs: let one of the two be.",
            )
        if fault.code() not in LOST | broker.AWAY and not fault.retriable():
            return broker.typed(KafkaException(fault), "delivering to", self._pipeline.kafka)
        return TransactionLostError(
            "delivering to",
            what,
            f"the Kafka transaction was given up ({fault.str()})",
            "Nothing of it is visible; it is read and sent again from the last checkpoint.",
        )
