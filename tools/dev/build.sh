# Compiling: build/ is the plain build; build/asan, build/tsan and build/fuzz lie within it.

# quietly LOG COMMAND…: its output only if it fails.
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 || {
        local code=$?
        tail -n 60 "$log" >&2
        return $code
    }
}

# configure DIR MESON-OPTION…: sets it up, or changes the options of what is there.
configure() {
    local dir=$1
    shift
    if [ -f "$dir/build.ninja" ]; then
        quietly "$dir/configure.log" meson configure "$dir" "$@"
    else
        quietly "$dir/configure.log" meson setup "$dir" "$@"
    fi
}

# compile DIR [TARGET…]: the progress line where somebody watches, errors in any case.
compile() {
    local dir=$1
    shift
    if [ -t 1 ]; then
        ninja -C "$dir" "$@"
    else
        quietly "$dir/compile.log" ninja -C "$dir" "$@"
    fi
}

# Warnings are errors, of the compiler that they were looked at with; another one may know more of them.
configure_plain() {
    local werror=false
    [ "$(gcc -dumpversion)" = 12 ] && werror=true
    configure build -Dwerror=$werror
}

dev_build() {
    need "building" "${PACKAGES_build[@]}"
    configure_plain
    compile build "$@"
    [ $# -gt 0 ] || echo "built build/retryd and build/retryctl"
}

dev_install() {
    local prefix=${PREFIX:-/usr/local} sudo=()
    need "building" "${PACKAGES_build[@]}"
    # Left to itself, meson takes lib64 on a Debian without dpkg-dev, where neither the linker nor pkg-config looks.
    configure build --prefix "$prefix" --libdir lib --buildtype release -Dwerror=false
    compile build
    if [ -n "${DESTDIR:-}" ]; then
        meson install -C build --no-rebuild
        return
    fi
    { mkdir -p "$prefix/bin" && [ -w "$prefix/bin" ]; } 2>/dev/null || sudo=(sudo)
    "${sudo[@]}" meson install -C build --no-rebuild
    # So that programs find the client library.
    if [ ${#sudo[@]} -gt 0 ] || [ "$(id -u)" -eq 0 ]; then "${sudo[@]}" /sbin/ldconfig; fi
}

dev_simulate() {
    need "building" "${PACKAGES_build[@]}"
    configure_plain
    compile build tests/simulation/simulate
    build/tests/simulation/simulate "$@"
}
