#!/bin/sh
# Fails if the generated assembly is not what the generator writes today.
set -e
cd "$(dirname "$0")"
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
go vet .
go run . -dir "$new"
for f in "$new"/*; do
	cmp "$f" "../$(basename "$f")" || {
		echo "engine/kernel/$(basename "$f") is stale: run go generate ./engine/kernel" >&2
		exit 1
	}
done
