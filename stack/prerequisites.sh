#!/bin/sh
# Finds what must be there before anything can be installed: Python 3.11-3.13 with venv, Java 17 or newer,
# Maven, and apt with Debian's keyring (or a mysqld). Prints the path of Python and nothing else; what is
# missing is installed where this is root on Debian or Ubuntu, else the one line that installs it is said.
set -u

say() { echo "headrace: $*" >&2; }

python_fits() {
    "$1" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
    for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
        if python_fits "$name"; then
            "$name" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    return 1
}

java_fits() {
    program=java
    [ -n "${JAVA_HOME:-}" ] && program="$JAVA_HOME/bin/java"
    major=$("$program" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
    [ -n "$major" ] && [ "$major" -ge 17 ]
}

has() { command -v "$1" >/dev/null 2>&1; }
mysql_fits() {
    [ -n "${HEADRACE_MYSQLD:-}" ] || PATH="$PATH:/usr/sbin" has mysqld ||
        { has apt-get && has dpkg-deb && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ]; }
}

# The names of Debian's packages for what is missing, in $missing.
look() {
    missing=
    python=$(find_python) || missing="$missing $(python_packages)"
    java_fits || missing="$missing $(java_package)"
    has mvn || missing="$missing maven"
    mysql_fits || missing="$missing debian-archive-keyring"
    missing=$(echo $missing)
}

known() { apt-cache show "$1" >/dev/null 2>&1; }
java_package() {
    if ! known openjdk-17-jdk-headless && known openjdk-21-jdk-headless; then
        echo openjdk-21-jdk-headless
    else
        echo openjdk-17-jdk-headless
    fi
}
python_packages() {
    for version in 3.11 3.12 3.13; do
        if [ "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$version" ]; then
            echo python3 python3-venv
            return
        fi
    done
    for version in 3.12 3.11 3.13; do
        if known "python$version"; then
            echo "python$version python$version-venv"
            return
        fi
    done
    echo python3 python3-venv
}

look
if [ -n "$missing" ] && has apt-get && [ "$(id -u)" = 0 ]; then
    say "installing $missing"
    apt-get update -q >&2 </dev/null
    look # some names are known only now
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >&2 </dev/null
    look
fi
if [ -n "$missing" ]; then
    if has apt-get; then
        say "some programs are missing. This line installs them:"
        say "    sudo apt-get update && sudo apt-get install -y $missing"
    elif has brew; then
        say "some programs are missing ($missing, as Debian calls them). This line installs all that is needed:"
        say "    brew install python@3.12 openjdk@17 maven mysql"
    else
        say "missing (as Debian's packages are called): $missing. Install Python 3.11 to 3.13 with venv, a JDK 17,"
        say "Maven and a MySQL 9.7 server (mysqld on PATH, or named by HEADRACE_MYSQLD) with this system's package manager."
    fi
    exit 1
fi
echo "$python"
