#!/bin/sh
# What the daemon writes has its fields in a fixed order, so that no JSON parser is needed here.
MARK=$1 ME=$2

reply() {
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"
}

answer() {
    reply "$1" "{\"results\":[{\"kind\":\"track\",\"content_id\":\"1\",\"title\":\"$2\"}]}"
}

initialize() {
    reply "$1" "{\"protocol\":\"segue.plugin/1\",\"id\":\"$ME\",\"version\":\"1\",\"capabilities\":[\"search\"],\"scopes\":[]}"
}

fail() {
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$1" "$2" "$3"
}

abuse() {
    answer "$1" "$2"
}

#ABUSE

while read -r line; do
    id=${line#*'"id":'} id=${id%%[,\}]*}
    words=${line#*'"query":"'} words=${words%%\"*}
    case $line in
    *'"method":"initialize"'*) initialize "$id" ;;
    *'"method":"ping"'*) reply "$id" '{"status":"ok","version":"1","capabilities":["search"]}' ;;
    *'"method":"search"'*'"query":"well'*) answer "$id" "$words" ;;
    *'"method":"search"'*) abuse "$id" "$words" ;;
    *) fail "$id" -32601 'no such method' ;;
    esac
done
