#!/bin/sh
# selftest.sh [OUTDIR]: builds the virtual card and proves that it does what
# README.md says. One line a check; the exit status is the verdict.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lib=$("$here/build.sh" "${1:-$work}")
PYTHONDONTWRITEBYTECODE=1 python3 "$here/selftest.py" "$lib" "$work"
