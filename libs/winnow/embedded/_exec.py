"""Become another program, as another user, that ends with its parent. Run as a script, never imported.

    python -I -S _exec.py DEATH_SIGNAL PARENT_PID UID GID PROGRAM [ARGUMENT ...]      (UID and GID -1: stay who you are)

A script of its own instead of subprocess's `preexec_fn`, which may deadlock in a process that has threads.
"""

import ctypes
import os
import sys

#: prctl(2): the signal that this process gets when the thread that started it ends.
PR_SET_PDEATHSIG = 1
#: The shell's exit status for a program that is there but cannot be run.
CANNOT_RUN = 126


def main() -> int:
    """Replace this process; return only on failure."""
    death_signal, parent, uid, gid = map(int, sys.argv[1:5])
    program = sys.argv[5:]
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if death_signal and sys.platform == "linux":
        # After the change of user, which clears it.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if os.getppid() != parent:
            return 0  # the parent died before the line above; nobody would ever stop us
    try:
        os.execv(program[0], program)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"cannot run {program[0]}: {error.strerror}\n")
    return CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main())
