# Which Debian packages a command needs, and how they get here.

PACKAGES_build=(meson ninja-build pkg-config gcc libc6-dev libmicrohttpd-dev libcurl4-openssl-dev liblmdb-dev
    libyajl-dev libjansson-dev libssl-dev libinih-dev libcmocka-dev libsystemd-dev libpq-dev librdkafka-dev)
PACKAGES_run=(curl jq python3) # what README and docs/ play with it
PACKAGES_test=(make libsqlite3-dev) # examples/store
PACKAGES_lint=(binutils python3)
PACKAGES_sanitize=(clang libclang-rt-14-dev)
PACKAGES_e2e=(python3-pytest python3-requests python3-zaqarclient python3-zaqar python3-testtools python3-ddt openssl
    nghttp2-server curl jq procps iproute2 postgresql pgbouncer nodejs g++ python3-barbicanclient)
PACKAGES_store=(python3 postgresql)
PACKAGES_kafka=(maven default-jre-headless kcat python3-requests) # Apache Kafka itself: tests/kafka/pom.xml
PACKAGES_demo=(python3 curl)
PACKAGES_bench=(beanstalkd procps redis-server postgresql nodejs)
command -v npm >/dev/null || PACKAGES_bench+=(npm) # a Node.js that is not Debian's brings its own, and is at odds with this

# need WHY PACKAGE…: installs those that are missing; says nothing when there are none.
need() {
    local why=$1 sudo=() present missing=() package
    shift
    if ! command -v dpkg-query >/dev/null; then
        echo "dev: this is no Debian; $why needs what Debian calls: $*" >&2
        return
    fi
    present=" $(dpkg-query -W -f '${Package}=${db:Status-Status} ' "$@" 2>/dev/null || true)"
    for package in "$@"; do
        case $present in *" $package=installed "*) ;; *) missing+=("$package") ;; esac
    done
    [ ${#missing[@]} -eq 0 ] && return
    echo "dev: installing what $why needs and this machine lacks: ${missing[*]}" >&2
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "dev: that takes root, and there is no sudo; as root, run" >&2
            echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
            exit 1
        fi
        sudo=(sudo)
    fi
    local log
    log=$(mktemp)
    apt_install() {
        "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -q \
            --no-install-recommends "${missing[@]}" >"$log" 2>&1
    }
    # The package lists are fetched only if they are missing or too old to find what is wanted.
    if ! apt_install; then
        "${sudo[@]}" apt-get -o DPkg::Lock::Timeout=120 update -q >>"$log" 2>&1 || true
        if ! apt_install; then
            cat "$log" >&2
            rm -f "$log"
            echo "dev: apt-get could not install ${missing[*]}" >&2
            exit 1
        fi
    fi
    rm -f "$log"
}
