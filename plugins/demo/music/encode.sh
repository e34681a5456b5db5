#!/bin/sh
# Renders and encodes the three pieces anew, beside this script.
# Needs python3, flac, lame and opusenc (Debian: flac lame opus-tools).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8
python3 "$here/compose.py" "$work"

artist='The Segue developers'
album='First Light'
date=2026
terms='MIT OR Apache-2.0'

flac --silent --force --best --exhaustive-model-search --no-padding \
    --tag=TITLE='Dew' --tag=ARTIST="$artist" --tag=ALBUM="$album" --tag=TRACKNUMBER=1 --tag=TRACKTOTAL=3 \
    --tag=DATE="$date" --tag=GENRE=Acoustic --tag=LICENSE="$terms" \
    --output-name="$here/1-dew.flac" "$work/1-dew.wav"

# The LAME header (delay and padding) is what makes an MP3 joinable without a gap.
lame --quiet -V 2 --id3v2-only --tt 'Slow Mist' --ta "$artist" --tl "$album" --tn 2/3 \
    --ty "$date" --tg Ambient --tv TCOP="$terms" "$work/2-slow-mist.wav" "$here/2-slow-mist.mp3"

opusenc --quiet --bitrate 96 --serial 3 --padding 0 --title 'Éclaircie' --artist "$artist" --album "$album" \
    --tracknumber 3 --date "$date" --genre Minimalism --comment "LICENSE=$terms" \
    "$work/3-eclaircie.wav" "$here/3-eclaircie.opus"

chmod 644 "$here"/*.flac "$here"/*.mp3 "$here"/*.opus
