#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `npm start`: installs what is missing, builds what has changed, serves the chat page and the documentation.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
if ! make -sq docs; then
    echo 'start: building (the first time takes some minutes)'
    make --no-print-directory -s -j2 docs
fi
exec node tools/serve.mjs --docs docs/site "$@"
