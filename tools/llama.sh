#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The newest llama.cpp that is packaged, for `npm run bench` to compare with: Debian unstable's, with a backend for each kind of x86-64 CPU.
#   tools/llama.sh FOLDER   make sure it is there, not older than a week (says what it does; silent when it is)
# It wants a newer libc, so that comes along, and its own loader starts it. llama.cpp looks for backends in the working directory too: FOLDER/all
# holds every one, of which it takes the best; FOLDER/avx2 only the one for AVX2 (named after Haswell), which CPUs without AVX-512 get.
#   cd FOLDER/all && ../lib/ld-linux-x86-64.so.2 --library-path ../lib ../bin/llama-bench -m MODEL
set -euo pipefail

readonly suite=sid               # Debian unstable
readonly packages=(llama.cpp-tools llama.cpp-tools-extra llama.cpp-examples libllama0 libggml0 libllama-dev libggml-dev)    # extra: llama-batched-bench; examples: llama-embedding; dev: headers
readonly libraries=(libc6 libgcc-s1 libstdc++6 libgomp1 libssl3t64 zlib1g libzstd1)
readonly loader=ld-linux-x86-64.so.2

say() { printf 'llama: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# shellcheck source=tools/debian.sh
. "$(dirname "$0")/debian.sh"

is_fresh() { [ -e "$out/include/mtmd.h" ] && [ -n "$(find "$out" -maxdepth 0 -mtime -7)" ]; }

# arrange FOLDER: the packages' programs, libraries and backends.
arrange() {
    local package
    for package in "${packages[@]}" "${libraries[@]}"; do unpack "$package" "$prefix/usr" 2 --exclude=./usr/share --exclude='*/gconv' ./usr; done
    mkdir -p "$1/avx2"
    mv "$prefix/usr/bin" "$1/bin"
    mv "$prefix/usr/include" "$1/include"
    mv "$prefix/usr/lib/x86_64-linux-gnu" "$1/lib"
    mv "$1/lib/ggml"/backends* "$1/all"
    mv "$1/lib/llama"/* "$1/lib"
    ln "$1/all/libggml-cpu-haswell.so" "$1/avx2"
}

# check FOLDER: does it run? What it says of its version is kept.
check() { (cd "$1/all" && "../lib/$loader" --library-path ../lib ../bin/llama-bench --version) >"$1/version" 2>&1; }

[ $# = 1 ] || { sed -n 4,9p "$0"; exit 2; }
out=$(realpath -m "$1")
if is_fresh; then exit; fi
[ "$(debian_release)" -ge 12 ] || die 'only for Debian'
[ "$(uname -m)" = x86_64 ] || die 'only for x86-64'

mkdir -p "$(dirname "$out")"
prefix=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$prefix"' EXIT
download "$suite" "Debian unstable's llama.cpp (12 MB)" "${packages[@]}" "${libraries[@]}"
arrange "$prefix/new"
check "$prefix/new" || die "it does not run: $(tail -n 1 "$prefix/new/version")"
rm -rf "$out" && mv -T "$prefix/new" "$out"
say "$(sed -n 's/^version: //p' "$out/version") is ready in $out"
