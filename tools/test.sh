#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `npm test` and its relatives: installs what is missing, builds, runs.
#   tools/test.sh         every test: C under sanitizers, wasm in Node, the page in Chromium
#   tools/test.sh big     proofs at real sizes (Qwen3-0.6B), minutes; writes docs/benchmarks/big.json
#                         some of them: npm run test:big -- schemas limits
#   tools/test.sh smoke   greedy text from real weights: QUERN_MODEL=path
#   tools/test.sh long    every test in its full length, as before a release: hours, one of them eight clients of a server
#                         some of them: npm run test:long -- saboteur schedules store-schedules, or a folder: npm run test:long -- net/
#   tools/test.sh bench   quern in Chromium, WebKit, Firefox and Node beside wllama and native llama.cpp; writes docs/benchmarks/bench.*
#                         options as tests/bench/bench.mjs takes them: npm run bench -- --quick
#   tools/test.sh places  the packed package in every place where people build and run it; writes docs/places.md
#                         some of them: npm run test:places -- vite "node 20"
#   tools/test.sh ops     each operation alone, over lengths; writes build/bench/ops.html
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in bench | places) tools/setup.sh "$1" ;; *) tools/setup.sh test ;; esac
echo 'test: building'
make --no-print-directory -s -j2 native site $(case "${1:-}" in '' | long) echo faults ;; esac)
case "${1:-}" in
'') exec make --no-print-directory -s test ;;
big)
    shift
    if [ $# = 0 ]; then set -- tests/big/*.test.mjs; else set -- "${@/#/tests/big/}" && set -- "${@/%/.test.mjs}"; fi
    exec node --test --test-concurrency=1 "$@"
    ;;
long)
    shift
    export QUERN_LONG=1
    if [ $# = 0 ]; then exec make --no-print-directory -s test; fi
    shopt -s nullglob
    files=()
    for name; do
        case $name in
        */) found=(tests/[j]s/"$name"*.test.mjs) ;;
        *) found=(tests/[jw]*/"$name".test.mjs tests/js/*/"$name".test.mjs) ;;
        esac
        [ ${#found[@]} -gt 0 ] || { echo "test: no $name.test.mjs in tests/js/* or tests/web, nor a folder tests/js/$name" >&2; exit 2; }
        files+=("${found[@]}")
    done
    exec node tools/test-node.mjs "${files[@]}"
    ;;
smoke) exec node --test tests/smoke/*.test.mjs ;;
bench) shift; exec node tests/bench/bench.mjs "$@" ;;
places) shift; exec node --test-reporter=spec tests/places/places.mjs "$@" ;;
ops) shift; exec make --no-print-directory -s bench-ops ARGS="$*" ;;
*) echo "test: unknown suite $1" >&2; exit 2 ;;
esac
