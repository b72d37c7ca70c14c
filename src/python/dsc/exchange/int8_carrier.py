"""Carries runs as block-wise int8: ranks swap parts of a run, sum theirs in fp32, and gather the means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

from .buffers import Buffers
from .carrier import Arrived, Carrier
from .host_carrier import open_group, when_done
from .in_order import InOrder
from .int8_blocks import BLOCK_BYTES, BLOCK_VALUES, encode_blocks, mean_blocks
from .run import Run

# Blocks between gradients and wire at a time on a CPU: a whole bucket as floats would be fresh memory in each step, and
# its page faults take longer than the conversion.
PIECE_BLOCKS = 4096
# Whole blocks of one gradient that are worth calls of their own; fewer are first copied beside their neighbours.
LONE_BLOCKS = 64


class Int8Carrier(Carrier):
    """A `Carrier`. On a CPU the hook only hands runs over: all else happens in other threads, while backward goes on.

    Args:
        process_group: None is the default group.
        device: where the values are.
    """

    def __init__(self, process_group: dist.ProcessGroup | None, device: torch.device) -> None:
        self._ranks = dist.get_world_size(process_group)
        # On a GPU its allocator keeps memory, and knows which stream still uses it.
        self._buffers = Buffers() if device.type == "cpu" else None
        # Calls of one group must come in the same order on all ranks. On a CPU threads of their own send and gather,
        # whenever they come to it, also between calls of DDP itself, such as for unused parameters: so three groups.
        self._send_group = open_group(process_group) if device.type == "cpu" else process_group
        self._gather_group = open_group(process_group) if device.type == "cpu" else process_group
        self._gathers = InOrder(self._start_gather)
        # One thread, so that runs are sent in the order of the calls. On a GPU the calls' order is the stream's.
        self._sender = ThreadPoolExecutor(1, "dsc-exchange-int8") if device.type == "cpu" else None

    def send(self, run: Run, arrived: Arrived) -> None:
        """See `Carrier`."""
        if self._sender is None:
            self._send(run, arrived)
        else:
            self._sender.submit(self._try_to_send, run, arrived)

    def _try_to_send(self, run: Run, arrived: Arrived) -> None:
        try:
            self._send(run, arrived)
        except Exception as error:  # nobody looks at what the thread raises
            arrived(error)

    def _send(self, run: Run, arrived: Arrived) -> None:
        exchange = Int8Exchange(run.values, run.sizes, self._ranks, self._buffers)
        own = exchange.encode()
        shown = exchange.take(len(own))
        work = dist.all_to_all_single(shown, own, group=self._send_group, async_op=True)
        gather = _Gather(run, exchange, arrived)
        self._gathers.announce(gather)

        def add() -> None:
            gather.share = exchange.sum(shown)
            gather.whole = own  # nobody needs what this rank has sent, and the means take as much room
            exchange.give(shown)
            self._gathers.drain()

        when_done(work, arrived, add)

    def end_step(self) -> None:
        """See `Carrier`."""
        if self._buffers is not None:
            self._buffers.trim()
        self._gathers = InOrder(self._start_gather)

    def _start_gather(self, gather: _Gather) -> bool:
        share, whole = gather.share, gather.whole
        if share is None or whole is None:
            return False
        gather.share = gather.whole = None  # else all of them are kept until the next backward
        work = dist.all_gather_into_tensor(whole, share, group=self._gather_group, async_op=True)

        def accept() -> None:
            gather.exchange.accept(whole)
            gather.exchange.give(share, whole)
            gather.run.is_here = True
            gather.arrived(None)

        when_done(work, gather.arrived, accept)
        return True


class _Gather:
    """A run whose means are to be gathered, once this rank's share of them is complete."""

    def __init__(self, run: Run, exchange: Int8Exchange, arrived: Arrived) -> None:
        self.run = run
        self.exchange = exchange
        self.arrived = arrived
        self.share: torch.Tensor | None = None
        self.whole: torch.Tensor | None = None  # room for the shares of all


class Int8Exchange:
    """Values on their way. Each parameter begins a block, however DDP fills its buckets.

    Args:
        values: flat, of any float type; the mean is written over them.
        sizes: values per parameter.
        ranks: how many take the mean.
        buffers: where memory comes from; None is the device's allocator.
    """

    def __init__(self, values: torch.Tensor, sizes: Sequence[int], ranks: int, buffers: Buffers | None = None) -> None:
        self._values = values
        self._ranks = ranks
        self._buffers = buffers
        self._blocks = sum(-(-size // BLOCK_VALUES) for size in sizes)
        self._spans = _join_whole_blocks(sizes)

    def encode(self) -> torch.Tensor:
        """The values as blocks, a multiple of `ranks` of them."""
        wire = self.take(-(-self._blocks // self._ranks) * self._ranks)
        wire[self._blocks :].zero_()
        for first, count, parts in self._pieces():
            room = self._find_room(count, parts)
            if room is None:
                room = self._values.new_empty(count, BLOCK_VALUES)
                flat = room.view(-1)
                for start, part in parts:
                    end = start + part.numel()
                    flat[start:end].copy_(part)
                    flat[end : -(-end // BLOCK_VALUES) * BLOCK_VALUES].zero_()
            encode_blocks(room, out=wire[first : first + count])
        return wire

    def sum(self, shown: torch.Tensor) -> torch.Tensor:
        """The mean of what all ranks have sent here, in rank order and fp32, as it travels."""
        rows = shown.view(self._ranks, -1, BLOCK_BYTES)
        share = self.take(rows.shape[1])
        most = min(self._most_blocks, len(share))
        room = self._take(most, BLOCK_VALUES, torch.float32)
        for part, target in zip(rows.split(most, 1), share.split(most)):
            encode_blocks(mean_blocks(part, out=room[: len(target)]), out=target)
        self.give(room)
        return share

    def accept(self, whole: torch.Tensor) -> None:
        """Writes the mean over the gradients."""
        for first, count, parts in self._pieces():
            room = self._find_room(count, parts)
            found = mean_blocks(whole[None, first : first + count], out=room)
            if room is None:
                for start, part in parts:
                    part.copy_(found.view(-1)[start : start + part.numel()])

    def take(self, count: int) -> torch.Tensor:
        """Room for so many blocks."""
        return self._take(count, BLOCK_BYTES, torch.uint8)

    def give(self, *rooms: torch.Tensor) -> None:
        """Gives back room that nobody uses any more."""
        if self._buffers is not None:
            self._buffers.give(*(room.view(-1) for room in rooms))

    def _take(self, count: int, width: int, dtype: torch.dtype) -> torch.Tensor:
        if self._buffers is None:
            return torch.empty(count, width, dtype=dtype, device=self._values.device)
        return self._buffers.take(count * width, dtype).view(count, width)

    @property
    def _most_blocks(self) -> int:
        return self._values.numel() + len(self._spans) if self._values.is_cuda else PIECE_BLOCKS

    @property
    def _lone_blocks(self) -> int:
        # On a GPU calls cost more than copies, unless one call does all.
        return self._blocks if self._values.is_cuda else LONE_BLOCKS

    def _find_room(self, count: int, parts: list[tuple[int, torch.Tensor]]) -> torch.Tensor | None:
        """The gradients themselves as blocks, where they are whole ones."""
        start, part = parts[0]
        is_whole = len(parts) == 1 and start == 0 and part.numel() == count * BLOCK_VALUES
        return part.view(count, BLOCK_VALUES) if is_whole else None

    def _pieces(self) -> Iterator[tuple[int, int, list[tuple[int, torch.Tensor]]]]:
        """Runs of blocks: the first, how many, and the gradients in them, each with its start in the run's values."""
        first, count, parts = 0, 0, list[tuple[int, torch.Tensor]]()
        for rest in self._values.split(self._spans):
            while rest.numel() > 0:
                whole = rest.numel() // BLOCK_VALUES
                is_alone = whole >= self._lone_blocks
                if count > 0 and (is_alone or count == self._most_blocks):
                    yield first, count, parts
                    first, count, parts = first + count, 0, []
                room = whole if is_alone else self._most_blocks - count
                part = rest[: room * BLOCK_VALUES]
                parts.append((count * BLOCK_VALUES, part))
                count += -(-part.numel() // BLOCK_VALUES)
                rest = rest[part.numel() :]
                if is_alone:
                    yield first, count, parts
                    first, count, parts = first + count, 0, []
        if count > 0:
            yield first, count, parts


def _join_whole_blocks(sizes: Sequence[int]) -> list[int]:
    """Values by span: parameters of whole blocks, and the one that ends them."""
    spans, open_values = [], 0
    for size in sizes:
        open_values += size
        if size % BLOCK_VALUES != 0:
            spans.append(open_values)
            open_values = 0
    return [*spans, open_values]
