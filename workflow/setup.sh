#!/bin/sh
# Make a virtual environment from a hash-locked list: setup.sh PYTHON FOLDER LIST
# The list names everything, so pip resolves nothing (--no-deps): where a package of the list asks for another with an
# extra, such as coverage[toml], older pips take its newest release instead of the locked one, and refuse that.
set -eu
python=$1 folder=$2 list=$3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "dpstudy needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
echo "Installing $list into $folder (a few minutes and 6 GB the first time) ..."
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r "$list" 2>"$folder/pip.log" ||
    { cat "$folder/pip.log" >&2; exit 1; }
# The library itself, editable.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e . \
    2>"$folder/pip.log" || { cat "$folder/pip.log" >&2; exit 1; }
