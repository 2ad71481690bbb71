import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import FakeEngine, Gateway  # noqa: E402


@pytest.fixture
def engines():
    """engines(n, script=...) gives n fake engines."""
    made = []

    def make(n=1, **kw):
        made.extend(FakeEngine(**kw) for _ in range(n))
        return made[-n:] if n > 1 else made[-1]

    yield make
    for engine in made:
        engine.stop()


@pytest.fixture
def gateway(engines):
    """gateway(*engines, sets=[...]) starts the program; afterwards it must be idle and healthy."""
    made = []

    def start(*behind, ready=True, **kw):
        made.append(Gateway(*behind, **kw))
        return made[-1].wait_ready() if ready else made[-1]

    yield start
    for running in made:
        if running.process.poll() is None:
            running.idle()
        running.stop()
