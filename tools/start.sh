#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `npm start`: installs what is missing, builds what has changed, serves the chat page.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
if ! make -sq site; then
    echo 'start: building (the first time takes some minutes)'
    make --no-print-directory -s -j2 site
fi
exec node tools/serve.mjs "$@"
