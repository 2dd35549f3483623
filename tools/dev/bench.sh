# Measuring: see bench/run.py. Numbers worth keeping go to docs/performance.md by hand.

# The rivals of Node.js; without npm's registry there is nothing to compare with, and the parts that want them say so.
fetch_rivals() {
    mkdir -p build/rivals
    cp bench/rivals/package.json bench/rivals/rival.mjs build/rivals/
    [ -d build/rivals/node_modules ] && [ ! bench/rivals/package.json -nt build/rivals/node_modules ] && return
    (cd build/rivals && npm install --no-audit --no-fund --no-package-lock --silent && touch node_modules) ||
        echo "bench: npm could not fetch the rivals of bench/rivals/package.json" >&2
}

dev_bench() {
    need "building" "${PACKAGES_build[@]}"
    need "the benchmarks" "${PACKAGES_bench[@]}" "${PACKAGES_kafka[@]}"
    configure_plain
    compile build retryd bench/load bench/sink bench/fill bench/bare_post bench/bare_curl bench/bare_lmdb
    fetch_rivals
    python3 bench/run.py "$@"
}
