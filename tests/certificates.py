"""Certificates of servers and clients that live as long as their test."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from stack.ports import HOST

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def certificate(folder: Path, name: str, by: str | None = None, older: bool = False) -> Path:
    """One for this machine's address, and its key, in one file `<name>-key.pem`; alone in `<name>.pem`. `by`: the name
    of the one that signs it; by itself without. `older`: as servers of 2019 take it, which know no elliptic curves."""
    key: Key = rsa.generate_private_key(65537, 2048) if older else ec.generate_private_key(ec.SECP256R1())
    who = _name(name)
    signer = serialization.load_pem_private_key((folder / f"{by}-key.pem").read_bytes(), None) if by else key
    assert isinstance(signer, Key)
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(_name(by or name), who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    both = folder / f"{name}-key.pem"
    both.write_bytes(key.private_bytes(*form) + made.public_bytes(serialization.Encoding.PEM))
    return both


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
