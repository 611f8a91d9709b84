"""The pass `pk-guard-waits`: every wait for a counter ends, and a thread that gives up says so and goes on."""

from __future__ import annotations

from pkc.passes.machine.bound_waits import BoundWaits


class GuardWaits(BoundWaits):
    """As `pk-bound-waits`, for kernels whose time matters: nothing changes but loops that wait for a counter.

    What other ranks owe arrives by counters. A thread that waits for one longer than `wait_limit` writes a report,
    raises `stopped` on all ranks and goes on as if the wait were over; so does every other thread once its rank's
    `stopped` is not zero. All roles come to their end, stages are filled and released as ever, and the kernel ends,
    with outputs that mean nothing. The clock and `stopped` are looked at once in 1024 looks at the counter.

    Before:

        pk.instruction "spin"(%counter, %count) {awaits = "ready", until = "raised"} : (i64, index) -> ()

    After:

        %why = pk.instruction "spin_guarded"(%seen, %counter, %count, %stopped, %limit) {awaits = "ready", ...} : ...
        %gone = arith.cmpi ne, %why, %zero : index
        scf.if %gone {
          pk.instruction "record"(%n, %report, %two, ...)
          scf.if %first_to_stop {
            scf.for %rank = %zero to %ranks step %one {
              pk.instruction "signal_relaxed_sys"(%stopped_there, %one) : (i64, index) -> ()
            }
          }
        }
    """

    name = "pk-guard-waits"
    ENDS = False
