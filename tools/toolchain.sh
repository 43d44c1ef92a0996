#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes an Emscripten compiler available: the first one with the final relaxed-SIMD instructions is 3.1.69.
#   tools/toolchain.sh            make sure there is one (says what it does; silent when there is)
#   tools/toolchain.sh path       print which emcc to use
#   tools/toolchain.sh packages   print the Debian packages this needs and the machine lacks
# A good emcc on PATH wins. Debian 12 packages 3.1.6, so there the compiler is put together inside .toolchain/:
# Debian 13's emscripten (scripts, headers, prebuilt libraries) over Debian 12's own LLVM 19. Debian 13's binaryen wants a
# newer libc, so that comes along and its loader starts binaryen: nothing has to be patched, and the folder may be moved.
set -euo pipefail

readonly min_version=3.1.69
readonly recipe=1                # raise it when the steps below change: installed copies are then made anew
readonly suite=trixie            # Debian 13
readonly debs=(emscripten binaryen node-acorn libc6 libstdc++6 libgcc-s1)
readonly steps=(download_debs unpack_emscripten unpack_binaryen write_programs check_compiler)

tools=$(cd "$(dirname "$0")" && pwd)
readonly tools
readonly prefix="${tools%/*}/.toolchain"
readonly stamp="$prefix/stamp"

say() { printf 'toolchain: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# shellcheck source=tools/debian.sh
. "$tools/debian.sh"

# version_ok EMCC: is it min_version or newer?
version_ok() {
    found=$("$1" --version 2>/dev/null | sed -n '1s/.*) \([0-9][0-9.]*[0-9]\).*/\1/p')
    [ -n "$found" ] && printf '%s\n' "$min_version" "$found" | sort -V -C
}

have_system_emcc() { command -v emcc >/dev/null && version_ok emcc; }
have_local_emcc() { [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ] && [ -z "$(missing_packages)" ]; }

# One package name per line, for what the compiler needs and this Debian lacks.
missing_packages() {
    local release
    release=$(debian_release)
    if [ "$release" -ge 13 ]; then echo emscripten; fi
    if [ "$release" -ne 12 ]; then return; fi
    local need
    for need in python3:python3 clang-19:clang-19 wasm-ld-19:lld-19 llvm-ar-19:llvm-19; do
        [ -x "/usr/bin/${need%:*}" ] || echo "${need#*:}"
    done
}

download_debs() { download "$suite" "Debian 13's emscripten and binaryen (246 MB)" "${debs[@]}"; }

# Without the link-time-optimised and position-independent libraries, which nothing here links: 0.4 of 1.7 GB.
unpack_emscripten() {
    say 'unpacking emscripten'
    rm -rf "$prefix/emscripten"
    unpack emscripten "$prefix" 3 --exclude='*/wasm32-emscripten/*pic' --exclude='*/wasm32-emscripten/lto' \
        --exclude='*/emscripten/test/*' ./usr/share/emscripten
    unpack node-acorn "$prefix/emscripten/node_modules" 4 ./usr/share/nodejs/acorn
}

unpack_binaryen() {
    say 'unpacking binaryen'
    rm -rf "$prefix/binaryen"
    local package
    for package in binaryen libc6 libstdc++6 libgcc-s1; do
        unpack "$package" "$prefix/binaryen" 2 --exclude='./usr/share' --exclude='./usr/include' ./usr
    done
    mv "$prefix/binaryen/bin" "$prefix/binaryen/programs"
}

# write_script FILE: standard input becomes an executable file, all at once.
write_script() { cat >"$1.new" && chmod 755 "$1.new" && mv "$1.new" "$1"; }

# One launcher per folder, called by many names: each finds everything from its own place.
write_programs() {
    rm -rf "${prefix:?}/bin" "$prefix/binaryen/bin"
    mkdir -p "$prefix/bin" "$prefix/binaryen/bin"
    write_config
    write_script "$prefix/bin/emcc" <<'END'
#!/bin/sh
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
export EM_CONFIG="$root/emscripten.py"
unset _PYTHON_SYSCONFIGDATA_NAME
exec /usr/bin/python3 -E "$root/emscripten/$(basename -- "$0").py" "$@"
END
    for name in em++ emar emranlib em-config embuilder; do ln -s emcc "$prefix/bin/$name"; done
    write_script "$prefix/binaryen/launch" <<'END'
#!/bin/sh
root=$(dirname -- "$(readlink -f -- "$0")")
lib=$(echo "$root"/lib/*-linux-gnu*)
exec "$lib"/ld-linux* --library-path "$lib" "$root/programs/$(basename -- "$0")" "$@"
END
    for program in "$prefix/binaryen/programs"/wasm*; do ln -s ../launch "$prefix/binaryen/bin/${program##*/}"; done
}

# FROZEN_CACHE: the libraries are all there, nothing may be built at link time (wasm64 will need a cache of its own).
write_config() {
    echo '{ "type": "commonjs" }' >"$prefix/package.json"   # else Emscripten's scripts would be read as the project's: ES modules
    cat >"$prefix/emscripten.py" <<'END'
import os
import shutil

root = os.path.dirname(os.environ['EM_CONFIG'])
LLVM_ROOT = '/usr/bin'
LLVM_ADD_VERSION = CLANG_ADD_VERSION = '19'
BINARYEN_ROOT = root + '/binaryen'
NODE_JS = shutil.which('node')
FROZEN_CACHE = True
END
}

# The kind of program the engine is: threads, relaxed SIMD, an ES module.
check_compiler() {
    say 'checking that it compiles and links'
    version_ok "$prefix/bin/emcc" || die "$prefix/bin/emcc does not run, or is older than $min_version"
    rm -rf "$prefix/check" && mkdir "$prefix/check"
    cat >"$prefix/check/check.c" <<'END'
#include <pthread.h>
#include <wasm_simd128.h>
static void *add(void *p) { *(v128_t *)p = wasm_f32x4_relaxed_madd(*(v128_t *)p, *(v128_t *)p, *(v128_t *)p); return p; }
int main(void) { pthread_t t; v128_t v = wasm_f32x4_splat(1); return pthread_create(&t, 0, add, &v) || pthread_join(t, 0); }
END
    "$prefix/bin/emcc" -O3 -pthread -msimd128 -mrelaxed-simd -sMODULARIZE -sEXPORT_ES6 "$prefix/check/check.c" \
        -o "$prefix/check/check.mjs" || die 'it does not: remove .toolchain and try again'
    rm -r "$prefix/check"
    say "emcc $found is ready in .toolchain/bin"
}

# A step that was interrupted has left no mark, so it is done again from its start.
run_steps() {
    [ "$(cat "$prefix/done/recipe" 2>/dev/null)" = "$recipe" ] || rm -rf "$prefix/done"
    mkdir -p "$prefix/done" && echo "$recipe" >"$prefix/done/recipe"
    local step
    for step in "${steps[@]}"; do
        if [ ! -e "$prefix/done/$step" ]; then "$step"; : >"$prefix/done/$step"; fi
    done
    rm -rf "$prefix/apt" "$prefix/debs"
    echo "$recipe" >"$stamp"
}

install_local() {
    mkdir -p "$prefix"
    exec 9>"$prefix/lock" && flock 9        # a build and a test run may ask at the same time
    have_local_emcc && return
    run_steps
}

ensure() {
    if have_system_emcc || have_local_emcc; then return; fi
    [ "$(debian_release)" -ge 12 ] || die "install Emscripten $min_version or newer (emsdk) so that 'emcc' is on PATH, then try again"
    # shellcheck disable=SC2046
    "$tools/setup.sh" apt $(missing_packages)
    if [ "$(debian_release)" = 12 ]; then install_local; else have_system_emcc || die "Debian's emcc is older than $min_version"; fi
}

case ${1-} in
    '') ensure ;;
    path) if have_system_emcc; then command -v emcc; elif have_local_emcc; then echo "$prefix/bin/emcc"
          else die 'no emcc yet: run tools/setup.sh'; fi ;;
    packages) have_system_emcc || missing_packages ;;
    *) die "unknown argument '$1'" ;;
esac
