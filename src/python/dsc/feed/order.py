"""The order of samples, as src/feed/plan/{random,order}.ts compute it. For checks; a running feed sends the ids."""

from __future__ import annotations

from collections.abc import Sequence

_MASK64 = (1 << 64) - 1
_MASK32 = (1 << 32) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(word: int) -> int:
    z = word & _MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
    return z ^ (z >> 31)


class RandomStream:
    """xoshiro128** for one epoch of one seed."""

    def __init__(self, seed: int, epoch: int) -> None:
        start = _mix(seed + _GOLDEN)
        first = _mix(start + _GOLDEN * (2 * epoch + 1))
        second = _mix(start + _GOLDEN * (2 * epoch + 2))
        self._state = [first & _MASK32, first >> 32, second & _MASK32, second >> 32]
        if not any(self._state):
            self._state[0] = 1

    def next_uint32(self) -> int:
        """The next number, below 2**32."""
        a, b, c, d = self._state
        scaled = (b * 5) & _MASK32
        result = ((((scaled << 7) | (scaled >> 25)) & _MASK32) * 9) & _MASK32
        shifted = (b << 9) & _MASK32
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = ((d << 11) | (d >> 21)) & _MASK32
        self._state = [a, b, c, d]
        return result

    def next_below(self, bound: int) -> int:
        """The next number below `bound`, all alike."""
        limit = (1 << 32) - ((1 << 32) % bound)
        word = self.next_uint32()
        while word >= limit:
            word = self.next_uint32()
        return word % bound


def epoch_order(sample_count: int, seed: int, epoch: int, kind: str = "shuffle") -> list[int]:
    """The ids 0 ... sample_count - 1 in the order in which the epoch visits them."""
    if kind == "sequential":
        return list(range(sample_count))
    if kind == "feistel6":
        return _feistel6(sample_count, seed, epoch)
    samples = list(range(sample_count))
    random = RandomStream(seed, epoch)
    for i in range(sample_count - 1, 0, -1):
        j = random.next_below(i + 1)
        samples[i], samples[j] = samples[j], samples[i]
    return samples


def mixed_order(parts: Sequence[tuple[int, float]], seed: int, epoch: int, kind: str = "shuffle") -> list[int]:
    """The order of an epoch of a mix; `parts` is [(sample count, times), ...], as src/feed/plan/mix.ts has it."""
    visits: list[int] = []
    first = 0
    for index, (count, times) in enumerate(parts):
        whole = int(times)
        chosen = int((times - whole) * count + 0.5)
        visits += [first + place for _ in range(whole) for place in range(count)]
        turns = _feistel6(count, seed, (1 << 40) + index)
        visits += [first + turns[(epoch * chosen + place) % count] for place in range(chosen)]
        first += count
    return [visits[visit] for visit in epoch_order(len(visits), seed, epoch, kind)]


def _feistel6(sample_count: int, seed: int, epoch: int) -> list[int]:
    random = RandomStream(seed, epoch)
    keys = [random.next_uint32() for _ in range(6)]
    half_bits = 1
    while 4**half_bits < sample_count:
        half_bits += 1
    base = 1 << half_bits

    def at(position: int) -> int:
        value = position
        while True:
            left, right = divmod(value, base)
            for key in keys:
                word = ((right ^ key) * 0x9E3779B1) & _MASK32
                word = ((word ^ (word >> 15)) * 0x85EBCA77) & _MASK32
                word ^= word >> 13
                left, right = right, left ^ (word % base)
            value = left * base + right
            if value < sample_count:
                return value

    return [at(position) for position in range(sample_count)]
