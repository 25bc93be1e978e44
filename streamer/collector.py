"""Python's cyclic garbage collector, set for a stream. By itself it looks at everything that the start has made, some
ten thousands of objects that stay for good, again and again, and holds the stream for tens of milliseconds each time.
"""

from __future__ import annotations

import gc

# Objects made and not yet freed: what waits for its acknowledgement is freed by itself, and has no cycles.
YOUNG = 20_000


def settle() -> None:
    """What is there now is not looked at any more, but for what an earlier call had left so."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
