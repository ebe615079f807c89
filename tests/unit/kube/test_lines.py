from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from loopwatch.kube.lines import LineCutter


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))), st.lists(st.integers(0, 60)), st.booleans())
def test_lines_come_out_whole_wherever_the_chunks_are_cut(lines: list[bytes], cuts: list[int], finished: bool) -> None:
    stream = b"\n".join(lines) + (b"\n" if finished and lines else b"")
    borders = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    cutter = LineCutter()
    out = [line for start, end in itertools.pairwise(borders) for line in cutter.feed(stream[start:end])]
    whole, _, rest = stream.rpartition(b"\n")
    assert out == [line for line in whole.split(b"\n") if line]
    assert cutter.unfinished == bool(rest)


def test_a_line_of_twenty_megabytes_in_small_chunks_is_one_line() -> None:
    cutter = LineCutter()
    part = b"x" * 2**16
    for _ in range(320):
        assert cutter.feed(part) == []
    (line,) = cutter.feed(b"y\n")
    assert len(line) == 320 * 2**16 + 1
    assert not cutter.unfinished


def test_an_empty_chunk_is_nothing() -> None:
    cutter = LineCutter()
    assert cutter.feed(b"") == []
    assert not cutter.unfinished
