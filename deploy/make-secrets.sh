#!/bin/sh
# Makes the files of deploy/secrets that are not there: random passwords, and empty files for the keys of others, which
# you fill in. Nothing that is there is changed.
set -eu
umask 077

folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"

make() {
    if [ ! -e "$folder/$1" ]; then
        printf '%s' "$2" >"$folder/$1"
        echo "made $folder/$1${3:+: $3}"
    fi
}

random() {
    od -An -N 24 -tx1 /dev/urandom | tr -d ' \n'
}

make POSTGRES_PASSWORD "$(random)"
make DATABASE_URI "postgres://stepcraft:$(cat "$folder/POSTGRES_PASSWORD")@postgres:5432/stepcraft?sslmode=disable"
make WEAVIATE_API_KEY "$(random)"
make LANGSMITH_API_KEY "" "put the key of LangSmith there, which the server asks for when it starts"
make OPENAI_API_KEY "" "put the key of the model there; it may stay empty while no model is named"
