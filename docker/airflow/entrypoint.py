"""The Airflow image's entry: turns mounted secrets into Airflow's settings, then becomes the given command.

A secret is a file under /run/secrets. Those that Airflow can read itself by a command are handed on as
such (`..._CMD`), so that no secret stands in the environment of a process. Errors: one line, status 1.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

SECRETS = Path("/run/secrets")
# Airflow runs the command of a setting that ends in _CMD and takes what it prints.
BY_COMMAND = {
    "airflow_fernet_key": "AIRFLOW__CORE__FERNET_KEY_CMD",
    "airflow_jwt_secret": "AIRFLOW__API_AUTH__JWT_SECRET_CMD",
    "airflow_api_secret": "AIRFLOW__API__SECRET_KEY_CMD",
}


def write_password(secret: Path, target: Path) -> None:
    """The login of the user `admin`, in the form that Airflow's simple auth manager reads."""
    password = secret.read_text().strip()
    if not password:
        raise ValueError(f"{secret} is empty; put the password of Airflow's user admin into it")
    target.unlink(missing_ok=True)
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as stream:
        json.dump({"admin": password}, stream)


def check_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK):
        user = f"{os.getuid()}:{os.getgid()}"
        raise ValueError(f"{folder} cannot be written by user {user}; mount a folder or volume that this user owns")


def prepare() -> None:
    check_writable(Path(os.environ["AIRFLOW_HOME"]))
    password = SECRETS / "airflow_admin_password"
    if password.exists():
        write_password(password, Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]))
    for name, setting in BY_COMMAND.items():
        if (SECRETS / name).exists():
            os.environ.setdefault(setting, f"cat {SECRETS / name}")


def main(command: list[str]) -> None:
    try:
        prepare()
        os.execvp(command[0], command)
    except (OSError, ValueError) as error:
        sys.exit(f"headrace-airflow: {error}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["airflow", "standalone"])
