"""Makes the secrets that compose.yaml mounts, those that are missing: `python3 docker/make_secrets.py`.

One file a secret under docker/secrets/, which only its owner may enter; the containers' users, which are
other ones, read the mounted files. Nothing that exists is changed.
"""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "secrets"
PASSWORDS = ("mysql_root_password", "headrace_mysql_password", "headrace_streamer_token", "airflow_admin_password")
# Bytes of each key: Fernet takes 32, and the signature of Airflow's tokens (SHA-512) wants 64.
KEYS = {"airflow_jwt_secret": 64, "airflow_api_secret": 64, "airflow_fernet_key": 32}


def make(folder: Path) -> list[str]:
    """The names of the secrets that were missing."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    made = [name for name in (*PASSWORDS, *KEYS) if not (folder / name).exists()]
    for name in made:
        size = KEYS.get(name)
        text = base64.urlsafe_b64encode(os.urandom(size)).decode() if size else secrets.token_urlsafe(18)
        path = folder / name
        path.write_text(text + "\n")
        path.chmod(0o444)
    return made


if __name__ == "__main__":
    made = make(FOLDER)
    print(f"{FOLDER}: made {', '.join(made)}" if made else f"{FOLDER}: all secrets are there")
