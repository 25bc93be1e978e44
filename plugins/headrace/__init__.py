"""Headrace inside Airflow: the factory of a pipeline's DAGs, its operators, its notifier and its page.

Airflow puts `plugins/` on the path, not the checkout: importing this package adds the checkout, so that
`contract`, `streamer` and `quality` are importable in every Airflow process, whatever started it.
"""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

if str(CHECKOUT) not in sys.path:
    sys.path.append(str(CHECKOUT))
