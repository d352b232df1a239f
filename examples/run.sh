#!/bin/sh
# Repairs a copy of the broken calculator. Arguments are handed to `agent run`; without any, a script plays the model,
# so neither a key nor a network is needed.
#
#   examples/run.sh
#   examples/run.sh --model openai/gpt-5.5
#
# $AGENT names the program; without it, cargo builds and runs the one of this checkout.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
copy=$(mktemp -d)
cp -R "$here/broken-calculator/." "$copy"
if [ "$#" -eq 0 ]; then
    set -- --model "script:$here/repair.toml"
fi

echo "the project is copied to $copy; its tests say:" >&2
sh "$copy/test.sh" >&2 || true
set -- run "$@" -C "$copy" --roles explorer,worker \
    "The tests of this project (sh test.sh) fail. Let an explorer find the cause and a worker repair it."
if [ -n "${AGENT:-}" ]; then
    "$AGENT" "$@"
else
    cargo run --release --manifest-path "$here/../Cargo.toml" -- "$@"
fi
echo "ask again with: agent send -C $copy /root/worker \"...\"" >&2
