"""What `source.tls` of the pipeline file means to PyMySQL, and to Python's ssl."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from contract import regular_file
from contract.pipeline_tls import VERIFYING, Tls

SIZE = 1_048_576  # bytes of a file of certificates


class TlsFileError(ValueError):
    """A file of certificates, or of a key, that cannot be used. `str(error)` says which, and why."""


def settings(tls: Tls) -> dict[str, Any]:
    """Arguments of `pymysql.connect`. Without any of its own it encrypts where the server offers that, and verifies
    nothing. Raises TlsFileError."""
    if tls.mode == "disabled":
        return {"ssl_disabled": True}
    return {} if tls.mode == "preferred" else {"ssl": _context(tls)}


def _context(tls: Tls) -> ssl.SSLContext:
    pem = read("ca_file", tls.ca_file) if tls.ca_file else None
    try:
        made = ssl.create_default_context(cadata=pem)
    except ssl.SSLError as error:
        raise TlsFileError(f"source.tls.ca_file: {tls.ca_file} holds no certificate ({error.reason})") from None
    # The certificates that servers make for themselves lack what the strict check asks for.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    made.check_hostname = tls.mode == "verify_identity"
    made.verify_mode = ssl.CERT_REQUIRED if tls.mode in VERIFYING else ssl.CERT_NONE
    if tls.cert_file and tls.key_file:
        _show(made, tls.cert_file, tls.key_file)
    return made


def _show(context: ssl.SSLContext, cert: Path, key: Path) -> None:
    read("cert_file", cert)
    read("key_file", key)
    try:
        context.load_cert_chain(cert, key, password=lambda: b"")  # else an encrypted key asks the terminal
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or str(error)
        raise TlsFileError(
            f"source.tls.cert_file and key_file: {cert} and {key} are no certificate and its key, or the key has a "
            f"password ({why})"
        ) from None


def read(name: str, path: Path) -> str:
    """A PEM file's text. Raises TlsFileError."""
    try:
        found = regular_file.read(path, SIZE)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise TlsFileError(f"source.tls.{name}: {path} cannot be read ({why})") from None
    if "-----BEGIN " not in found:
        raise TlsFileError(f"source.tls.{name}: {path} is no PEM file")
    return found


def fault(error: BaseException) -> str:
    """Why the two sides did not come to TLS, as PyMySQL's error tells it; empty of another error, and where the other
    side merely went away."""
    cause = getattr(error, "original_exception", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the server's certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError) and not isinstance(
        cause, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError
    ):
        return f"no connection by TLS: {cause.reason or cause}"
    if (code := _code(error)) in REFUSALS:
        return REFUSALS[code]
    return ""


REFUSALS = {
    2026: "the server offers no TLS",
    3159: "the server takes connections by TLS alone",
}


def _code(error: BaseException) -> int:
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0
