#!/usr/bin/env python3
"""charge.c in Python: charge.py run CARD… | work, with $RETRYD_URL, $DEPENDENCY and $SPOOL."""
import os
import signal
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
import retryd  # noqa: E402

client = retryd.Client(os.environ.get("RETRYD_URL", "http://127.0.0.1:8888"), spool=os.environ.get("SPOOL"),
                       log=lambda message: print(f"charge: {message}", file=sys.stderr))


@client.retryable("card.transaction")
def charge(card):
    try:
        with open(os.open(os.environ["DEPENDENCY"], os.O_WRONLY | os.O_APPEND), "w") as file:
            print(card, file=file)
    except OSError as error:
        raise retryd.Failure("card-unreachable", error.strerror)


with client:
    if sys.argv[1] == "run":
        for card in sys.argv[2:]:
            print(f"{card}: {charge(card) or 'charged'}")
    else:
        stop = [signal.SIGINT, signal.SIGTERM]
        signal.pthread_sigmask(signal.SIG_BLOCK, stop)
        client.start(threads=4, lease_s=10, wait_ms=1000)
        signal.sigwait(stop)
