#!/bin/bash
# A worker in 20 lines: worker.sh PROCESS KIND COMMAND… runs COMMAND with the entity's name and value for each claim, until
# there is nothing to do for ten seconds. $RETRYD_URL; wants curl and jq.
set -u
url=${RETRYD_URL:-http://127.0.0.1:8888} process=$1 kind=$2; shift 2
post() { curl -s --retry 5 --retry-connrefused -X POST "$url/v1/$1" -d "$2"; }

session=$(post sessions "{\"component\": \"worker.sh\", \"runtime\": \"$(hostname)\", \"interval_s\": 10}" | jq -r .session)
while sleep 3; do post "sessions/$session/heartbeat" '' >/dev/null; done &
trap 'kill $!; curl -s -X DELETE "$url/v1/sessions/$session"' EXIT

while claim=$(post work/claim "{\"session\": \"$session\", \"process\": \"$process\", \"kind\": \"$kind\", \"wait_ms\": 10000}")
      [ -n "$claim" ] && work=$(jq -er .work <<<"$claim"); do
    end=$(jq '{session, token}' <<<"$claim")
    if cause=$("$@" "$(jq -r .entity <<<"$claim")" "$(jq -c .value <<<"$claim")" 2>&1 >/dev/null); then
        post "work/$work/finish" "$end" >/dev/null
    else
        post "work/$work/fail" "$(jq --arg cause "${cause:-no words}" '. + {$cause}' <<<"$end")" >/dev/null
    fi
done
