# A server to play with.

dev_run() {
    need "building and the tour" "${PACKAGES_build[@]}" "${PACKAGES_run[@]}"
    configure_plain
    compile build retryd retryctl shipped-plugins
    echo "For the README's tour deliveries to this machine are allowed (--set delivery.allow_networks=loopback) and the demo"
    echo "types of orders are there (--set orders.demo=true). Data is kept in ./retryd-data; stop with Ctrl-C."
    exec build/retryd serve --data retryd-data --set delivery.allow_networks=loopback --set orders.demo=true \
        --set plugins.directory="$ROOT/build/plugins" "$@"
}

dev_demo_kafka() {
    need "building" "${PACKAGES_build[@]}"
    need "the demo" "${PACKAGES_demo[@]}"
    need "Kafka" "${PACKAGES_kafka[@]}"
    configure_plain
    compile build retryd
    /usr/bin/python3 tests/e2e/kafka_broker.py fetch
    /usr/bin/python3 tools/tour/demo_kafka.py build/retryd
}

dev_demo() {
    need "building" "${PACKAGES_build[@]}"
    need "the demo" "${PACKAGES_demo[@]}"
    configure_plain
    compile build retryd
    # With the data of a folder of its own and on free ports: nothing of yours is touched.
    python3 tools/tour/demo.py build/retryd
}
