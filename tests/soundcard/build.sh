#!/bin/sh
# build.sh OUTDIR: builds the virtual card, and the machine to put it in, into
# OUTDIR if the sources are newer than what is there; prints the card's path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: build.sh OUTDIR" >&2; exit 64; }
mkdir -p "$1"
out=$(cd "$1" && pwd)/libasound_module_pcm_vcard.so
rack=$(dirname "$out")/librack.so
stale=no
[ -e "$out" ] && [ -e "$rack" ] || stale=yes
for source in vcard.c vctl.c card.c card.h record.c record.h rack.c build.sh; do
	[ "$here/$source" -nt "$out" ] && stale=yes
done
if [ $stale = yes ]; then
	# Several tests may build at once: each its own file, then a rename.
	temporary=$(mktemp "$out.XXXXXX")
	trap 'rm -f "$temporary"' EXIT
	compile() {
		file=$1
		shift
		${CC:-gcc} -std=gnu11 -O2 -g -Wall -Wextra -Werror -shared -fPIC -DPIC -Wl,-Bsymbolic -o "$temporary" "$@"
		chmod 755 "$temporary"
		mv "$temporary" "$file"
	}
	compile "$rack" "$here/rack.c"
	compile "$out" "$here/vcard.c" "$here/vctl.c" "$here/card.c" "$here/record.c" -lasound -lm
fi
echo "$out"
