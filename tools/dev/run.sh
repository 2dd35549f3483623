# A server to play with.

dev_run() {
    need "building" "${PACKAGES_build[@]}"
    configure_plain
    compile build retryd retryctl
    echo "Deliveries to this machine are allowed here (--set delivery.allow_networks=loopback), for the README's tour;"
    echo "by default retryd refuses them. Data is kept in ./retryd-data; stop with Ctrl-C."
    exec build/retryd serve --data retryd-data --set delivery.allow_networks=loopback "$@"
}

dev_demo() {
    need "building" "${PACKAGES_build[@]}"
    need "the demo" "${PACKAGES_demo[@]}"
    configure_plain
    compile build retryd
    # With the data of a folder of its own and on free ports: nothing of yours is touched.
    python3 tools/tour/demo.py build/retryd
}
