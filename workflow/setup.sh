#!/bin/sh
# Make a virtual environment from a hash-locked list: setup.sh PYTHON FOLDER LIST
# The list names everything, so pip resolves nothing (--no-deps): where a package of the list asks for another with an
# extra, such as coverage[toml], older pips take its newest release instead of the locked one, and refuse that.
set -eu
python=$1 folder=$2 list=$3
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }
new_enough "$python" ||
    { echo "dpstudy needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }

[ -w "$(dirname "$folder")" ] ||
    { echo "dpstudy: $PWD cannot be written to; copy or clone the repository to where you may write" >&2; exit 1; }

# What a setup left that broke off is made again: without a pip that runs, or marked by one that was killed.
whole() { new_enough "$folder/bin/python" && "$folder/bin/python" -m pip --version && [ ! -e "$folder/unfinished" ]; }
if ! whole >/dev/null 2>&1; then
    [ ! -e "$folder" ] || echo "$folder is half-made, or of another Python; it is made again"
    "$python" -m venv "$folder" --clear
fi

install() {
    : > "$folder/unfinished"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$@" 2>"$folder/pip.log" || {
        [ $? -gt 128 ] || rm "$folder/unfinished"  # pip itself ended, and leaves nothing half-made
        cat "$folder/pip.log" >&2
        exit 1
    }
    rm "$folder/unfinished"
}
echo "Installing $list into $folder (a few minutes and 6 GB the first time) ..."
install --require-hashes -r "$list"
install --no-build-isolation --no-index -e .  # the library itself, editable
