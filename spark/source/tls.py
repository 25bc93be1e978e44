"""The pipeline file's `source.tls` in the words of Connector/J, by which Spark reads the source's rows.

Java knows no PEM files: the certificates go into stores of the session's own, in a folder that ends with the job.
Without files of the pipeline's Java goes by its own authorities.
"""

from __future__ import annotations

import secrets
import tempfile
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from pyspark.sql import SparkSession

from contract.pipeline_tls import Tls
from contract.tls import TlsFileError, read
from spark.errors import LakeError

FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # which go when the process ends


def jdbc(spark: SparkSession, tls: Tls) -> dict[str, str]:
    """Properties of each connection, for its URL. Raises LakeError."""
    options = {"sslMode": tls.mode.upper()}
    if tls.ca_file is None and tls.cert_file is None:
        return options
    if not str(spark.sparkContext.master).startswith("local"):
        raise LakeError(
            "source.tls names files, which Spark's machines elsewhere do not have: leave out ca_file there, and give "
            "the authority to their Java (keytool -importcert -cacerts), and to this machine; or run the job with the "
            "master local[*]. A client's certificate is for local[*] alone"
        )
    try:
        return options | _stores(tls)
    except TlsFileError as error:
        raise LakeError(str(error)) from None


@lru_cache
def _stores(tls: Tls) -> dict[str, str]:
    folder = tempfile.TemporaryDirectory(prefix="headrace-tls-")
    FOLDERS.append(folder)
    word = secrets.token_urlsafe(24)
    how = serialization.BestAvailableEncryption(word.encode())
    found: dict[str, str] = {}
    if tls.ca_file is not None:
        known = [
            pkcs12.PKCS12Certificate(one, f"authority-{at}".encode())
            for at, one in enumerate(_certificates("ca_file", tls.ca_file))
        ]
        store = pkcs12.serialize_java_truststore(known, how)
        found |= _store("trust", Path(folder.name), store, word)
    if tls.cert_file is not None and tls.key_file is not None:
        own, *others = _certificates("cert_file", tls.cert_file)
        store = pkcs12.serialize_key_and_certificates(b"headrace", _key(tls.key_file), own, others, how)
        found |= _store("client", Path(folder.name), store, word)
    return found


def _store(kind: str, folder: Path, store: bytes, word: str) -> dict[str, str]:
    path = folder / f"{kind}.p12"
    path.write_bytes(store)
    given = {"Url": path.as_uri(), "Type": "PKCS12", "Password": word}
    return {f"{kind}CertificateKeyStore{name}": value for name, value in given.items()}


def _certificates(name: str, path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(read(name, path).encode())
    except ValueError as error:
        if isinstance(error, TlsFileError):
            raise
        raise TlsFileError(f"source.tls.{name}: {path} holds no certificate") from None


def _key(path: Path) -> pkcs12.PKCS12PrivateKeyTypes:
    try:
        found = serialization.load_pem_private_key(read("key_file", path).encode(), None)
    except (ValueError, TypeError) as error:
        if isinstance(error, TlsFileError):
            raise
        raise TlsFileError(f"source.tls.key_file: {path} holds no key, or one with a password") from None
    return found  # type: ignore[return-value]
