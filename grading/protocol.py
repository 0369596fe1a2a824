"""What the host and a worker say to each other: fixed headers with raw bytes behind them, and outcomes by number.

    host to worker    JOB and the program; then TEST and the input, for each input; then TEST with END
    worker to host    HELLO, once its walls stand; then, for each input in order, RESULT, a note and what was printed

Both ends import this file, and a worker wants few modules: it needs one. Left out: what a value looks like (plain.py).
"""

from __future__ import annotations

import struct

OUTCOMES = (
    "ended", "runtime_error", "timeout", "memory_limit", "output_limit", "not_run", "syntax_error", "missing_module",
    "forbidden", "bad_value", "fault",
)  # fmt: skip
(ENDED, RUNTIME_ERROR, TIMEOUT, MEMORY_LIMIT, OUTPUT_LIMIT, NOT_RUN, SYNTAX_ERROR, MISSING_MODULE,
 FORBIDDEN, BAD_VALUE, FAULT) = range(len(OUTCOMES))  # fmt: skip

MAIN, MODULE = 0, 1  # how a program runs: reads stdin and prints; is loaded, and then a call is made in its namespace
TIMEOUTS = 3  # after so many the rest of a program's tests is not run, where nothing else is said
JOB = struct.Struct("<4sBdddQQII")  # JOB_MAGIC, mode, the limits in the order of sandbox.Limits, length of the program
TEST = struct.Struct("<I")  # length of the input, or END
END = 0xFFFFFFFF  # no more tests: the next is another program
# RESULT_MAGIC, outcome, status, whether it ran, CPU seconds, lengths of the note and of stdout
RESULT = struct.Struct("<4sBiBdBI")
# Of a test that an exception has ended: the lines of the program that led to it, innermost first, 0 for none; then the
# name of its class, \0, and the name of the built-in class that it derives from. Told by a process that is not trusted:
# raised.py
NOTE = struct.Struct("<8I")
NOTE_BYTES = 230  # at most
JOB_MAGIC, RESULT_MAGIC, HELLO = b"JOB1", b"RES1", b"UP01"
