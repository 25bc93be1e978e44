"""The service that carries a MySQL server's committed changes from its binlog to Kafka."""

VERSION = "0.1.0"  # also in pyproject.toml; a test holds the two together
