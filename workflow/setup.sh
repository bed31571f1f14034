#!/bin/sh
# Make a virtual environment from a hash-locked list: setup.sh PYTHON FOLDER LIST [cpu]
# The list names everything, so nothing is resolved (--no-deps): where a package of the list asks for another with an
# extra, such as coverage[toml], older pips take its newest release instead of the locked one, and refuse that.
# cpu: PyTorch without CUDA; the environment remembers it. TORCH_WHEELS=FOLDER has its wheels where there is no network.
set -eu
python=$1 folder=$2 list=$3 torch=${4:-}
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }
new_enough "$python" ||
    { echo "dpstudy needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
case $torch in
"") torch=$(cat "$folder/torch" 2>/dev/null || :) ;;
cpu) ;;
*) echo "dpstudy: TORCH=$torch: leave it out, or write TORCH=cpu" >&2; exit 1 ;;
esac

[ -w "$(dirname "$folder")" ] ||
    { echo "dpstudy: $PWD cannot be written to; copy or clone the repository to where you may write" >&2; exit 1; }

# What a setup left that broke off is made again: without a pip that runs, or marked by one that was killed.
whole() { new_enough "$folder/bin/python" && "$folder/bin/python" -m pip --version && [ ! -e "$folder/unfinished" ]; }
if ! whole >/dev/null 2>&1; then
    [ ! -e "$folder" ] || echo "$folder is half-made, or of another Python; it is made again"
    "$python" -m venv "$folder" --clear
fi

by_pip() { "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$@" 2>"$folder/pip.log"; }
# Compiled, as pip does: each job is a process, which else compiles torch and all, where nothing may be written.
by_uv() {
    [ -x "$uv" ] &&
        "$uv" pip install --quiet --compile-bytecode --python "$folder/bin/python" --no-deps "$@" 2>"$folder/pip.log"
}
failed() {
    [ "$1" -gt 128 ] || rm "$folder/unfinished"  # pip itself ended, and leaves nothing half-made
    cat "$folder/pip.log" >&2
    [ -z "${2:-}" ] || echo "dpstudy: $2" >&2
    exit 1
}
install() {
    : > "$folder/unfinished"
    by_uv "$@" || by_pip "$@" || failed $?  # a pip that knows another index may get what uv did not
    rm "$folder/unfinished"
}

# uv takes a fifth of pip's time. It does not read pip's settings, of which the index is what matters.
uv=$(command -v uv || echo "$folder/bin/uv")
[ -x "$uv" ] || by_pip --require-hashes -r "$(dirname "$list")/uv.txt" || :
[ -x "$uv" ] || uv=
index=$("$folder/bin/python" -m pip config get global.index-url 2>/dev/null || :)
[ -n "${UV_DEFAULT_INDEX:-}" ] || [ -z "${PIP_INDEX_URL:-$index}" ] || export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-$index}"

if [ "$torch" = cpu ]; then
    echo "Installing $list into $folder, PyTorch without CUDA (1.5 GB the first time) ..."
    # All but PyTorch and what it brings for GPUs; its wheels for CPUs are not in the list, and have no hash in it.
    awk '/^[a-z]/ { skipped = /^(torch|torchvision|triton|nvidia-|cuda-)/ } !skipped' "$list" > "$folder/cpu.txt"
    install --require-hashes -r "$folder/cpu.txt"
    wanted=$(sed -n 's/^\(torch==[^ ]*\|torchvision==[^ ]*\).*/\1/p' "$list")
    if [ -n "${TORCH_WHEELS:-}" ]; then
        for each in $wanted; do install "$TORCH_WHEELS/${each%%==*}-${each##*==}"*.whl; done
    elif [ -n "$uv" ]; then
        : > "$folder/unfinished"  # which pip cannot take over: it knows no such option
        by_uv --torch-backend cpu $wanted || failed $? \
            "PyTorch's own index gave no PyTorch for CPUs; leave TORCH=cpu out, or name a TORCH_WHEELS=FOLDER that has it"
        rm "$folder/unfinished"
    else
        echo "dpstudy: TORCH=cpu needs uv, which could not be installed, or TORCH_WHEELS=FOLDER with $wanted" >&2; exit 1
    fi
    echo cpu > "$folder/torch"  # only now: a choice that did not work out is none
else
    echo "Installing $list into $folder (6 GB the first time) ..."
    install --require-hashes -r "$list"
fi
install --no-build-isolation --no-index -e .  # the library itself, editable
