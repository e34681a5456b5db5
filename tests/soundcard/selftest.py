"""The checks of selftest.sh: python3 selftest.py LIBRARY WORKDIR."""

import os
import sys
import traceback

import check_access
import check_clock
import check_faults
from cards import CARDS, WORK, events


def every_line_of_the_log_can_be_read():
    for card in CARDS:
        last = 0
        if not os.path.exists(os.path.join(WORK, card, "events.log")):
            continue
        for ns, _, keys in events(card):
            assert ns >= last and "pid" in keys
            last = ns


CHECKS = [value for module in (check_access, check_clock, check_faults) for value in vars(module).values()
          if getattr(value, "__module__", None) == module.__name__]
CHECKS.append(every_line_of_the_log_can_be_read)


def main():
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            note = check()
            print("ok    " + name + (": " + note if note else ""), flush=True)
        except Exception as problem:
            failed += 1
            print("FAIL  %s: %s" % (name, problem or type(problem).__name__), flush=True)
            traceback.print_exc()
    print("%d checks, %d failed" % (len(CHECKS), failed))
    return 1 if failed else 0


sys.exit(main())
