"""Delivery policies that tests can wait for."""


def quick(retries):
    """`retries` (at least 1) retries, all of them at once."""
    return {"retries_with_no_delay": retries - 1, "minimum_delay_retries": 0, "minimum_delay": 0, "maximum_delay": 0,
            "backoff_retries": 1, "maximum_delay_retries": 0}


def steady(seconds, retries=100):
    """The first retry and each later one after the same delay."""
    return {"retries_with_no_delay": 0, "minimum_delay_retries": retries, "minimum_delay": seconds, "maximum_delay": seconds,
            "backoff_retries": 1, "maximum_delay_retries": 0}


# 5 retries, after 0, 1, 1, 2, 2 s: every phase once, the backoff phase (linear from 1 to 2 in 2) twice.
PHASES = {"retries_with_no_delay": 1, "minimum_delay_retries": 1, "minimum_delay": 1, "maximum_delay": 2,
          "backoff_retries": 2, "maximum_delay_retries": 1}
PHASES_MS = [0, 1000, 1000, 2000, 2000]
