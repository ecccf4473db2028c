#!/bin/sh
# Exports each file in /run/secrets (or in SECRETS_FOLDER) as the environment variable that it is named for, then runs
# the command. A variable that is set already is an error, because it could only be a mistake; an empty file is skipped.
set -eu

for file in "${SECRETS_FOLDER:-/run/secrets}"/*; do
    name=${file##*/}
    case $name in
    '' | [0-9]* | *[!A-Z0-9_]*) continue ;;
    esac
    [ -f "$file" ] || continue
    value=$(cat "$file")
    [ -n "$value" ] || continue
    eval "taken=\${$name:-}"
    if [ -n "$taken" ]; then
        echo "with-secrets: $name is set in the environment and as a secret; remove one of them" >&2
        exit 64
    fi
    export "$name=$value"
done
unset file name taken value
exec "$@"
