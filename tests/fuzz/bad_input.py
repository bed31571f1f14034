"""What the tests of bad input share: damage for files, and what reading a damaged file may do."""

import contextlib
import os
import resource
import signal

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from dpstudy.core.errors import StudyError

_MORE = "FUZZ_EXAMPLES"  # for a longer search than a run of the tests makes: examples a test, other ones each time
_BUDGET = 1 << 30  # bytes that reading a small file may ask for: Pillow allows images of 89 million pixels
_PATIENCE_SECONDS = 20
_HUGE = (0, 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1)


def examples(count):
    """Settings of one test: `count` examples, the same ones in each run."""
    longer = int(os.environ.get(_MORE, 0))
    return settings(
        max_examples=longer or count,
        derandomize=not longer,
        deadline=None,
        database=None,
        # each example writes its file anew, so that it does not matter that they share a folder
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


class _HangError(BaseException):  # no library may take it for a damaged file
    pass


@contextlib.contextmanager
def bounded():
    """Little time and memory for what is done within: a hang, and a request for gigabytes, are errors."""

    def too_long(*_):
        raise _HangError(f"not done in {_PATIENCE_SECONDS} s")

    with open("/proc/self/statm", encoding="ascii") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (held + _BUDGET, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def refusal(read, *names, memory=MemoryError):
    """Call `read`: the sentence by which it refused, or None.

    Any other exception ends the test, as do a hang, gigabytes, and a sentence that says none of `names`. With `memory`
    None, it may be refused because memory was asked for that there is not.
    """
    try:
        with bounded():
            read()
    except StudyError as error:
        check_sentence(error, *names, memory=memory)
        return str(error)
    return None


def check_sentence(error, *names, memory=MemoryError):
    """A refusal is one sentence for a person, says one of `names`, and was not forced by lack of memory."""
    sentence = str(error)
    assert sentence.strip() and "Traceback" not in sentence, sentence
    assert len(sentence) < 4000, f"a sentence of {len(sentence)} characters: {sentence[:300]}"
    assert not names or any(name in sentence for name in names), f"none of {names} in {sentence!r}"
    cause = error
    while memory and cause is not None:
        assert not isinstance(cause, memory), f"memory was asked for before it was refused: {sentence}"
        cause = cause.__cause__ or cause.__context__


@st.composite
def damaged(draw, content):
    """The bytes `content` with one to three kinds of damage."""
    content = bytes(content)
    for _ in range(draw(st.integers(1, 3))):
        content = draw(st.sampled_from((_flipped, _cut, _repeated, _inserted, _numbered)))(draw, content)
    return content


def _place(draw, content):
    """A place in the content, more often near its ends, where headers and directories stand."""
    last = len(content)
    near = min(last, 120)
    return draw(st.one_of(st.integers(0, near), st.integers(last - near, last), st.integers(0, last)))


def _flipped(draw, content):
    place = _place(draw, content)
    return content[:place] + bytes([draw(st.integers(0, 255))]) + content[place + 1 :]


def _cut(draw, content):
    return content[: _place(draw, content)]


def _repeated(draw, content):
    first, last = sorted((_place(draw, content), _place(draw, content)))
    return content[:last] + content[first:last] * draw(st.integers(1, 3)) + content[last:]


def _inserted(draw, content):
    place = _place(draw, content)
    return content[:place] + draw(st.binary(min_size=1, max_size=8)) + content[place:]


def _numbered(draw, content):
    """A number of a header becomes a huge one, or nothing; so do digits where the file is text."""
    place, width = _place(draw, content), draw(st.sampled_from((1, 2, 4, 8)))
    number = draw(st.sampled_from(_HUGE))
    if draw(st.booleans()):
        digits = str(number).encode()
        return content[:place] + digits + content[place + draw(st.integers(0, len(digits))) :]
    order = draw(st.sampled_from(("little", "big")))
    return content[:place] + (number % 256**width).to_bytes(width, order) + content[place + width :]
