# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
#
# Sourced by setup.sh, which only asks what system this is, and by toolchain.sh and llama.sh: packages of a newer Debian, unpacked beside the
# system's own. A private apt directory fetches them, so signatures are checked, the system's sources stay as they are, and nobody has to be root.
# The caller has `say`, `die` and a folder `prefix`, in which apt/ and debs/ are ours.

readonly keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The number of the Debian release (13 for one without a number), 0 on another system.
debian_release() {
    # shellcheck source=/dev/null
    (. /etc/os-release 2>/dev/null && [ "${ID-}" = debian ] && echo "${VERSION_ID:-13}") || echo 0
}

# Where this machine gets Debian from, best first. apt parses its sources itself, whatever their format; a foreign
# archive that slips through has no Debian signature and is passed over.
mirrors() {
    # shellcheck disable=SC2016
    apt-get indextargets --no-release-info --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk '$1 ~ /^(bookworm|trixie|forky|sid|(old)?stable|testing|unstable)$/ && $2 == "main" && !seen[$3]++ { print $3 }'
}

# apt_private ARGS...: apt-get with lists, cache and sources of its own, blind to what is installed and pinned here.
apt_private() {
    apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$prefix/apt/sources" \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o Dir::State="$prefix/apt" -o Dir::State::Lists="$prefix/apt/lists" -o Dir::State::status=/dev/null \
        -o Dir::Cache="$prefix/apt" -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::AllowInsecureRepositories=false -o APT::Get::AllowUnauthenticated=false "$@" </dev/null
}

# update_from MIRROR SUITE: write the private source and fetch its signed index.
update_from() {
    cat >"$prefix/apt/sources/debian.sources" <<SOURCE
Types: deb
URIs: $1
Suites: $2
Components: main
Targets: Packages
Signed-By: $keyring
SOURCE
    apt_private -o APT::Update::Error-Mode=any update 2>"$prefix/apt/errors"
}

# download FROM WHAT PACKAGE...: FROM is a suite, WHAT is for people.
download() {
    local from=$1 what=$2 mirror
    shift 2
    mkdir -p "$prefix/apt/sources" "$prefix/apt/lists/partial" "$prefix/apt/archives/partial" "$prefix/debs"
    for mirror in $(mirrors); do
        update_from "$mirror" "$from" || continue
        say "downloading $what from $mirror"
        (cd "$prefix/debs" && rm -f ./*.deb && apt_private download "$@")
        return
    done
    cat "$prefix/apt/errors" >&2 2>/dev/null || true
    die "no mirror gave a $from index signed by a key of $keyring: is the network up, and the package debian-archive-keyring current?"
}

# unpack PACKAGE FOLDER DEPTH TAR-ARGUMENTS...: some of the package's tree, less its first DEPTH path components.
unpack() {
    local package=$1 folder=$2 depth=$3
    shift 3
    mkdir -p "$folder"
    dpkg-deb --fsys-tarfile "$prefix/debs/${package}_"*.deb | tar -x -C "$folder" --strip-components="$depth" "$@"
}
