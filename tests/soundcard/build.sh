#!/bin/sh
# build.sh OUTDIR: builds the virtual card into OUTDIR if the sources are newer
# than what is there, and prints the path of the library.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { echo "usage: build.sh OUTDIR" >&2; exit 64; }
mkdir -p "$1"
out=$(cd "$1" && pwd)/libasound_module_pcm_vcard.so
stale=no
[ -e "$out" ] || stale=yes
for source in vcard.c vctl.c card.c card.h record.c record.h build.sh; do
	[ "$here/$source" -nt "$out" ] && stale=yes
done
if [ $stale = yes ]; then
	# Several tests may build at once: each its own file, then a rename.
	temporary=$(mktemp "$out.XXXXXX")
	trap 'rm -f "$temporary"' EXIT
	${CC:-gcc} -std=gnu11 -O2 -g -Wall -Wextra -Werror -shared -fPIC -DPIC \
		-Wl,-Bsymbolic -o "$temporary" "$here/vcard.c" "$here/vctl.c" "$here/card.c" "$here/record.c" -lasound -lm
	chmod 755 "$temporary"
	mv "$temporary" "$out"
fi
echo "$out"
