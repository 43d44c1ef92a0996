#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Gets this machine ready, installing only what it lacks; with nothing to do it is silent.
#   tools/setup.sh               what `npm start` and the build need: Debian packages, node_modules, Emscripten
#   tools/setup.sh test          also what `npm test` needs: Chromium, with windows and without, and Firefox
#   tools/setup.sh bench         also what `npm run bench` needs: WebKit's driver and a display without a screen
#   tools/setup.sh places        also what `npm run test:places` needs: an ARM processor, and Python for clients of the server
#   tools/setup.sh apt NAME...   install these Debian packages (used by toolchain.sh)
# Packages are installed as root or through a sudo that asks for no password; otherwise it prints the one command to run.
# All missing packages go into one apt call. No package's install script is run: esbuild's program comes as a package.
# On another system it says what is missing and leaves the installing to its owner.
set -euo pipefail

readonly min_node=20
tools=$(cd "$(dirname "$0")" && pwd)
readonly tools
cd "$tools/.."

# shellcheck source=tools/debian.sh
. "$tools/debian.sh"

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

present() { command -v "$1" >/dev/null; }

# Debian also has Chromium without windows, in which tests take two thirds of the processor's time.
has_shell() {
    [ "$(debian_release)" != 0 ]
}

# missing MODE: lines of "command Debian-package" for the programs that are not here
missing() {
    present make || echo 'make make'
    present cc || echo 'cc gcc'                 # brings the sanitizers' libraries too
    [ "$1" = build ] || present chromium || echo 'chromium chromium'
    [ "$1" = build ] || ! has_shell || present chromium-headless-shell || echo 'chromium-headless-shell chromium-headless-shell'
    [ "$1" = build ] || present firefox-esr || present firefox || echo 'firefox-esr firefox-esr'
    case $1 in build | test) return 0 ;; esac
    present WebKitWebDriver || echo 'WebKitWebDriver webkit2gtk-driver'
    present Xvfb || echo 'Xvfb xvfb'
    [ "$1" = places ] || return 0
    python3 -c 'import ensurepip' 2>/dev/null || echo 'python3 python3-venv'
    present qemu-aarch64-static || echo 'qemu-aarch64-static qemu-user-static'
}

# quietly COMMAND...: its output is shown only when it fails.
quietly() {
    local log
    log=$(mktemp)
    if "$@" >"$log" 2>&1 </dev/null; then rm -f "$log"; return; fi
    tail -n 20 "$log" >&2
    rm -f "$log"
    return 1
}

apt_lists_present() { [ -n "$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' 2>/dev/null | head -n 1)" ]; }

apt_install() {
    [ $# -gt 0 ] || return 0
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null ||
            die "some Debian packages are missing; run as root: apt-get update && apt-get install -y --no-install-recommends $*"
        apt=(sudo -n "${apt[@]}")
    fi
    apt_lists_present || quietly "${apt[@]}" update || die 'apt-get update failed'
    say "installing the Debian packages $*"
    if quietly "${apt[@]}" install -y --no-install-recommends "$@" 2>/dev/null; then return; fi
    say 'trying again with fresh package lists'
    quietly "${apt[@]}" update || die 'apt-get update failed'
    quietly "${apt[@]}" install -y --no-install-recommends "$@" || die "apt-get could not install $*"
}

check_node() {
    local major
    major=$(node -p 'parseInt(process.versions.node)' 2>/dev/null) || major=0
    if [ "$major" -lt "$min_node" ] || ! present npm; then
        die "Node.js $min_node or newer with npm is needed (https://nodejs.org)"
    fi
}

debian_packages() {
    missing "$1" | cut -d ' ' -f 2
    [ -e /usr/include/stdio.h ] || echo libc6-dev
    [ -e /usr/include/xxhash.h ] || echo libxxhash-dev
    # Mesa has the graphics device for Firefox, and AMD's compiler; drivers are no commands.
    [ "$1" = build ] || [ -n "$(find /usr/share/vulkan/icd.d -name 'lvp_icd*' 2>/dev/null)" ] || echo mesa-vulkan-drivers
    [ "$1" != places ] || [ -e /usr/aarch64-linux-gnu/lib/libatomic.so.1 ] || echo libstdc++6-arm64-cross libatomic1-arm64-cross
    "$tools/toolchain.sh" packages
}

system_packages() {
    if [ -e /etc/debian_version ] && present apt-get; then
        # shellcheck disable=SC2046
        apt_install $(debian_packages "$1")
        return
    fi
    local lacking
    lacking=$(missing "$1" | cut -d ' ' -f 1 | tr '\n' ' ')
    [ -z "$lacking" ] || die "install make, a C compiler (cc), xxHash's header (xxhash.h), chromium, Firefox, and emcc >= 3.1.69 with this system's own tools; missing: $lacking"
}

# npm leaves node_modules/.package-lock.json as the last thing of a complete installation.
node_modules() {
    if [ node_modules/.package-lock.json -nt package-lock.json ]; then return; fi
    say 'installing the npm packages of package-lock.json'
    quietly npm ci --ignore-scripts --no-audit --no-fund || die 'npm ci failed'
}

mode=${1-build}
case $mode in
    build | test | bench | places) check_node; system_packages "$mode"; node_modules; "$tools/toolchain.sh" ;;
    apt) shift; apt_install "$@" ;;
    *) die "unknown argument '$mode': none, 'test', 'bench' or 'places'" ;;
esac
