"""The second accountant over its domain: how narrow its bracket is, how long it takes, and where training's epsilon is.

Sampling rates from 1e-4 to 1, 1 to 10,000 steps, epsilon from 0.01 to 8, delta 1e-5, 1e-6 and 1e-7; every fourth
point is a mixture of two sampled releases and a whole one. Training's epsilon must be no less than the lower end, and
at most a thousandth above the upper one.
"""

import math
import time

import numpy as np

from dpstudy.privacy.accounting import certify
from dpstudy.privacy.events import Event
from dpstudy.privacy.second_accountant import bracket

_AGREEMENT, _MOST_SECONDS = 1e-3, 5.0


def point(rng: np.random.Generator, mixed: bool) -> tuple[list[tuple[float, float, int]], float]:
    """(releases, delta) whose epsilon is about log-uniform in 0.01 to 8."""
    delta, epsilon = float(10 ** -rng.choice([5.0, 6.0, 7.0])), float(np.exp(rng.uniform(math.log(0.01), math.log(8))))
    shape = [(1.0, float(10 ** rng.uniform(-4, 0)), round(10 ** rng.uniform(0, 4)))]
    if mixed:
        shape += [(2.0, float(10 ** rng.uniform(-4, 0)), round(10 ** rng.uniform(0, 3))), (5.0, 1.0, 2)]
    low, high = math.log(0.2), math.log(1e5)
    for _ in range(20):
        middle = (low + high) / 2
        found = bracket([(math.exp(middle) * noise, rate, count) for noise, rate, count in shape], delta, 0.05)[1]
        low, high = (middle, high) if found > epsilon else (low, middle)
    return [(math.exp(high) * noise, rate, count) for noise, rate, count in shape], delta


def run(threads: int, repeats: int, rows: int = 200) -> None:
    """Print what was found over `rows` points, and each that disagrees or takes too long."""
    rng = np.random.default_rng(0)
    widths, above, seconds, wrong = [], [], [], 0
    for number in range(rows):
        releases, delta = point(rng, number % 4 == 3)
        started = time.process_time()
        low, high = bracket(releases, delta)
        seconds.append(time.process_time() - started)
        events = [Event(f"e{k}", "gaussian", s, 1.0, n, "poisson" if q < 1 else "none", q)
                  for k, (s, q, n) in enumerate(releases)]  # fmt: skip
        stated = certify(events, delta).epsilon
        widths.append((high - low) / high if high else 0.0)
        above.append(stated / high - 1 if high else 0.0)
        if stated < low * (1 - 1e-9) or max(widths[-1], above[-1]) > _AGREEMENT or seconds[-1] > _MOST_SECONDS:
            wrong += 1
            print(f"disagrees: {releases} at delta {delta:g}: [{low:.6g}, {high:.6g}], training {stated:.6g}, "
                  f"{seconds[-1]:.1f} s of CPU")  # fmt: skip
    print(f"second accountant, {rows} points: {wrong} outside 0.1 % or {_MOST_SECONDS:g} s")
    for name, values in (("width of the bracket / epsilon", widths), ("training above its upper end", above)):
        print(f"  {name}: median {np.median(values):.1e}, most {max(values):.1e}")
    print(f"  CPU seconds: median {np.median(seconds):.2f}, most {max(seconds):.2f}")
