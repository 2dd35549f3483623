"""Counts tests one by one: prints "PASSED FAILED SKIPPED" and, on stderr, what the failed ones said.

tally.py meson TESTLOG.json   each line a program; cmocka's programs say which of their tests passed
tally.py junit FILE.xml…      as pytest writes it
"""
import json
import re
import sys
import xml.etree.ElementTree as xml

CMOCKA = re.compile(r"^\[ +(OK|FAILED|ERROR|SKIPPED) +\] (\S+)$", re.M)


def meson(path):
    passed = failed = skipped = 0
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        said = (test.get("stdout") or "") + (test.get("stderr") or "")
        each = {}
        for verdict, name in CMOCKA.findall(said):
            if not name.endswith("test(s),"):
                each[name] = verdict
        ok = list(each.values()).count("OK")
        bad = sum(verdict in ("FAILED", "ERROR") for verdict in each.values())
        if test["result"] in ("OK", "EXPECTEDFAIL"):
            passed += max(ok, 1)
            skipped += list(each.values()).count("SKIPPED")
        elif test["result"] == "SKIP":
            skipped += 1
        else:
            passed += ok
            failed += max(bad, 1)
            print(f"--- {test['name']}: {test['result']}\n{said[-6000:]}", file=sys.stderr)
    return passed, failed, skipped


def junit(paths):
    passed = failed = skipped = 0
    for path in paths:
        for case in xml.parse(path).iter("testcase"):
            kinds = {child.tag for child in case}
            if kinds & {"failure", "error"}:
                failed += 1
                print(f"--- {case.get('classname')}.{case.get('name')}", file=sys.stderr)
                for child in case:
                    print((child.text or child.get("message") or "")[-3000:], file=sys.stderr)
            elif "skipped" in kinds:
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    print(*(meson(sys.argv[2]) if sys.argv[1] == "meson" else junit(sys.argv[2:])))
