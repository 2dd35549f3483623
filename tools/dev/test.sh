# The tests. Each group appends one line "PASSED FAILED SKIPPED" to $TALLY; what fails is printed as it comes.

TEST_GROUPS=(lint unit store sim asan tsan fuzz e2e postgres)
SIMULATION_SEEDS=${SIMULATION_SEEDS:-1..10000}
WORK_SEEDS=${WORK_SEEDS:-1..60}
CALLS_SEEDS=${CALLS_SEEDS:-1..30}
ORDERS_SEEDS=${ORDERS_SEEDS:-1..400}
FUZZ_SECONDS=${FUZZ_SECONDS:-5}

tally() { echo "$1 $2 ${3:-0}" >>"$TALLY"; }

# meson_tests DIR SUITE…: runs the suites that were built in DIR and counts every single test in them.
meson_tests() {
    local dir=$1 suites=() suite
    shift
    for suite in "$@"; do suites+=(--suite "$suite"); done
    rm -f "$dir/meson-logs/testlog.json"
    meson test -C "$dir" --no-rebuild --timeout-multiplier "${TIMEOUT_MULTIPLIER:-2}" --num-processes "$(nproc)" \
        "${suites[@]}" >"$dir/test.log" 2>&1 || true
    if [ -f "$dir/meson-logs/testlog.json" ]; then
        python3 tools/dev/tally.py meson "$dir/meson-logs/testlog.json" >>"$TALLY"
    else
        tail -n 30 "$dir/test.log" >&2
        tally 0 1
    fi
}

# Debian's packages for the tests with Kafka, and Kafka. Where it cannot be had that is said once, and those tests are
# skipped, without each of them trying again.
need_kafka() {
    need "the tests with Kafka" "${PACKAGES_kafka[@]}"
    [ -n "${RETRYD_TEST_NO_KAFKA:-}" ] || /usr/bin/python3 tests/e2e/kafka_broker.py fetch ||
        export RETRYD_TEST_NO_KAFKA=1
}

test_unit() { meson_tests build unit; }

store_tests() {
    need "the tests of stores" "${PACKAGES_store[@]}"
    need_kafka
    meson_tests "$@"
}
test_store() { store_tests build store; }

test_lint() {
    local passed=0 failed=0 check
    for check in tools/core_is_pure tools/layers tools/tidy; do
        if "$check"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
    tally $passed $failed
}

# simulated NAME PROGRAM ARGUMENT…: one test: the simulator says itself which seed and which rule.
simulated() {
    local log=build/$1.log
    if nice "build/tests/simulation/$2" "${@:3}" >"$log" 2>&1; then
        tail -n 1 "$log"
        tally 1 0
    else
        tail -n 40 "$log" >&2
        tally 0 1
    fi
}

# Those on LMDB wait for the disk most of the time, so they go beside the others.
test_sim() {
    simulated simulate_work_lmdb simulate_work --seeds 1..5 --lmdb build &
    simulated simulate_orders_lmdb simulate_orders --seeds 1..10 --lmdb build &
    simulated simulate simulate --seeds "$SIMULATION_SEEDS" --jobs "$(nproc)"
    simulated simulate_calls simulate_calls --seeds "$CALLS_SEEDS" &
    simulated simulate_work simulate_work --seeds "$WORK_SEEDS" &
    simulated simulate_orders simulate_orders --seeds "$ORDERS_SEEDS" &
    wait
}

# sanitized DIR CC SANITIZERS [OPTION…] [-- TARGET…]
sanitized() {
    local dir=$1 cc=$2 sanitizers=$3 options=() werror=false
    shift 3
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
    need "the sanitized builds" "${PACKAGES_sanitize[@]}"
    # gcc warns of more than there is once sanitizers have rewritten the code; clang does not.
    [ "$cc" != clang ] || werror=true
    CC=$cc configure "$dir" -Dwerror=$werror -Doptimization=1 -Db_lundef=false -Db_sanitize="$sanitizers" "${options[@]}" &&
        compile "$dir" "${@:2}"
}

test_asan() {
    sanitized build/asan gcc address,undefined || { tally 0 1; return; }
    export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    store_tests build/asan unit store
    RETRYD_MAP_BYTES=4G RETRYD_BIN=$ROOT/build/asan/retryd e2e_tests asan "not slow and not kafka"
    unset ASAN_OPTIONS UBSAN_OPTIONS
}

# With clang, so that the warnings of both compilers are errors here.
test_tsan() {
    sanitized build/tsan clang thread || { tally 0 1; return; }
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    meson_tests build/tsan threads
    RETRYD_MAP_BYTES=4G RETRYD_BIN=$ROOT/build/tsan/retryd e2e_tests tsan "threads"
    unset TSAN_OPTIONS
}

# fuzzed HARNESS: one test: its stored corpus, then a short walk from there.
fuzzed() {
    local name=${1##*/fuzz_} log
    log=build/fuzz/$name.log
    mkdir -p "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
    if "$1" -max_total_time="$FUZZ_SECONDS" -timeout=10 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=0 \
        -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        tally 1 0
    else
        { echo "fuzz_$name:" && tail -n 40 "$log"; } >&2
        tally 0 1
    fi
}

# As many at once as there are processors.
test_fuzz() {
    sanitized build/fuzz clang address,undefined -Doptimization=2 -Dfuzz=true -- fuzzers || { tally 0 1; return; }
    local harness running=0
    for harness in build/fuzz/tests/fuzz/fuzz_*; do
        [ -f "$harness" ] && [ -x "$harness" ] || continue
        [ $running -lt "$(nproc)" ] || wait -n || true
        running=$((running + 1))
        fuzzed "$harness" &
    done
    wait
    [ $running -gt 0 ] || { echo "no fuzz harness was built" >&2; tally 0 1; }
}

# e2e_tests NAME MARKERS [WITH…]: each file of tests/e2e in a process of its own, several at once, since they mostly wait.
# WITH…: a program that runs them all.
e2e_tests() {
    local out=$ROOT/build/e2e-$1 markers=$2
    shift 2
    need "the end-to-end tests" "${PACKAGES_e2e[@]}"
    need_kafka
    [ -x "$RETRYD_BIN" ] || { echo "$RETRYD_BIN was not built" >&2; tally 0 1; return; }
    rm -rf "$out"
    mkdir -p "$out"
    # Those with databases and brokers of their own first: they take longest. pytest's 5: nothing in that file was chosen by
    # the markers.
    (cd tests/e2e && printf '%s\n' test_{postgres,kafka,nodes}*.py test_*.py | awk '!seen[$0]++') | OUT=$out MARKERS=$markers "$@" xargs -P 6 -I{} bash -c '
        name=${1%.py}
        /usr/bin/python3 -m pytest -q --tb=short -p no:cacheprovider -m "$MARKERS" --junitxml "$OUT/$name.xml" \
            --basetemp "$OUT/tmp-$name" "tests/e2e/$1" >"$OUT/$name.log" 2>&1
        code=$?
        [ $code -eq 5 ] || [ -f "$OUT/$name.xml" ] || { echo "$1 did not run" >>"$OUT/broken"; cat "$OUT/$name.log" >&2; }
        exit 0' _ {}
    [ ! -f "$out/broken" ] || tally 0 "$(wc -l <"$out/broken")"
    python3 tools/dev/tally.py junit "$out"/*.xml >>"$TALLY"
}

test_e2e() { RETRYD_BIN=$ROOT/build/retryd e2e_tests plain ""; }

# All faces on PostgreSQL: one private server, a fresh database for each server that a test starts. Left out is what takes
# long (RETRYD_POSTGRES_ALL=1 runs it too), and what has been tested by `e2e` because it chooses its store itself.
test_postgres() {
    local markers="not postgres and not kafka"
    [ -n "${RETRYD_POSTGRES_ALL:-}" ] || markers+=" and not slow"
    RETRYD_BIN=$ROOT/build/retryd e2e_tests postgres "$markers" /usr/bin/python3 tests/e2e/postgres.py
}

# No process outlives the tests: all of them are in this script's process group or tell their children to go with them.
stop_children() {
    local children
    children=$(jobs -p)
    [ -z "$children" ] || kill $children 2>/dev/null || true
}

dev_test() {
    local groups=("$@") group started lines totals
    [ $# -gt 0 ] || groups=("${TEST_GROUPS[@]}")
    for group in "${groups[@]}"; do
        case " ${TEST_GROUPS[*]} " in *" $group "*) ;; *) echo "dev: no test group '$group'; there are: ${TEST_GROUPS[*]}" >&2; exit 2 ;; esac
    done
    TALLY=$(mktemp)
    trap 'stop_children; rm -f "$TALLY"' EXIT
    need "testing" "${PACKAGES_build[@]}" "${PACKAGES_lint[@]}" "${PACKAGES_test[@]}"
    SECONDS=0
    if configure_plain && compile build; then
        printf '%-6s %4d s\n' build "$SECONDS"
        for group in "${groups[@]}"; do
            started=$SECONDS lines=$(wc -l <"$TALLY")
            "test_$group"
            totals=$(tail -n +$((lines + 1)) "$TALLY" | awk '{p += $1; f += $2; s += $3} END {print p+0, "passed,", f+0, "failed,", s+0, "skipped"}')
            printf '%-6s %4d s  %s\n' "$group" $((SECONDS - started)) "$totals"
        done
    else
        echo "build: failed"
        tally 0 1
    fi
    awk '{p += $1; f += $2; s += $3}
         END {printf "%d passed, %d failed%s\n", p, f, s ? ", " s " skipped" : ""; exit f > 0 || p == 0}' "$TALLY"
}

dev_lint() {
    need "linting" "${PACKAGES_build[@]}" "${PACKAGES_lint[@]}"
    configure_plain
    compile build
    TALLY=/dev/null
    local failed=0 check
    for check in tools/core_is_pure tools/layers tools/tidy; do "$check" || failed=1; done
    [ $failed -eq 0 ] && echo "lint: nothing to complain about"
    return $failed
}
