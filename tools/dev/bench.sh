# Measuring: see bench/run.py. Numbers worth keeping go to docs/performance.md by hand.

dev_bench() {
    need "building" "${PACKAGES_build[@]}"
    need "the benchmarks" "${PACKAGES_bench[@]}"
    configure_plain
    compile build retryd bench/load bench/sink bench/fill bench/bare_post bench/bare_curl bench/bare_lmdb
    python3 bench/run.py "$@"
}
