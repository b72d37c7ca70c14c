"""A communication hook for DistributedDataParallel: block-wise int8, half the bytes of fp16."""

# Without `annotations` from the future: DDP compares those of a hook, and text would be refused.
from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist

from ..torch_private import GradBucket
from .errors import ExchangeMismatch
from .host_carrier import open_group, when_done
from .in_order import InOrder
from .int8_blocks import BLOCK_BYTES, BLOCK_VALUES, decode_blocks, encode_blocks, mean_blocks, new_wire

# Blocks between gradients and wire at a time on a CPU: a whole bucket as floats would be fresh memory in each step, and
# its page faults take longer than the conversion.
PIECE_BLOCKS = 4096


class BlockwiseInt8:
    """The ranks of `blockwise_int8_hook`. It keeps nothing from one step to the next, and a checkpoint needs nothing.

    Args:
        process_group: that of DDP; None is the default group.
    """

    def __init__(self, process_group: dist.ProcessGroup | None = None) -> None:
        self.process_group = process_group
        self._gather_group: dist.ProcessGroup | None = None
        self._gathers = InOrder(self._start_gather)

    def exchange(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Sends one bucket on its way.

        Args:
            bucket: gradients of one bucket of DDP, flat.

        Returns:
            A future that ends when its mean is there.
        """
        values = bucket.buffer()
        if values.layout != torch.strided:
            raise ExchangeMismatch(
                "a gradient is sparse, and int8 of sparse gradients is not exchanged: make the layer with "
                "sparse=False, or train it without this hook"
            )
        if bucket.index() == 0:
            self._begin_step(values.device)
        exchange = Int8Exchange(values, [parameter.numel() for parameter in bucket.parameters()])
        ranks = dist.get_world_size(self.process_group)
        own = exchange.encode(ranks)
        shown = torch.empty_like(own)
        work = dist.all_to_all_single(shown, own, group=self.process_group, async_op=True)
        self._gathers.announce(exchange)

        def add() -> None:
            exchange.sum(shown, ranks)
            self._gathers.drain()

        when_done(work, exchange.end, add)
        return exchange.result

    def _begin_step(self, device: torch.device) -> None:
        # As in HostCarrier: gathers on a CPU start between the calls of the hook, in an order of their own.
        if device.type == "cpu" and self._gather_group is None:
            self._gather_group = open_group(self.process_group)
        self._gathers = InOrder(self._start_gather)

    def _start_gather(self, exchange: "Int8Exchange") -> bool:
        share = exchange.share
        if share is None:
            return False
        exchange.share = None  # else all of them are kept until the next backward
        group = self._gather_group or self.process_group
        whole = share.new_empty(len(share) * dist.get_world_size(group), BLOCK_BYTES)
        work = dist.all_gather_into_tensor(whole, share, group=group, async_op=True)
        when_done(work, exchange.end, lambda: exchange.accept(whole))
        return True


class Int8Exchange:
    """One bucket on its way. Each parameter begins a block, however DDP fills its buckets."""

    def __init__(self, values: torch.Tensor, sizes: Sequence[int]) -> None:
        self._values = values
        self._sizes = list(sizes)
        self._error: Exception | None = None
        self._gate: torch.futures.Future[torch.Tensor] = torch.futures.Future(
            devices=[values.device] if values.is_cuda else []
        )
        self.share: torch.Tensor | None = None  # this rank's part of the mean, as it travels
        self.result = self._gate.then(self._open)

    def encode(self, ranks: int) -> torch.Tensor:
        """The values as blocks, a multiple of `ranks` of them."""
        total = sum(-(-size // BLOCK_VALUES) for size in self._sizes)
        wire = new_wire(-(-total // ranks) * ranks, self._values.device)
        wire[total:].zero_()
        room = self._values.new_empty(min(total, self._most_blocks), BLOCK_VALUES)
        for first, count, parts in self._pieces():
            flat = room[:count].view(-1)
            for start, part in parts:
                end = start + part.numel()
                flat[start:end].copy_(part)
                flat[end : -(-end // BLOCK_VALUES) * BLOCK_VALUES].zero_()
            encode_blocks(room[:count], out=wire[first : first + count])
        return wire

    def sum(self, shown: torch.Tensor, ranks: int) -> None:
        """Takes the mean of what all ranks have sent here, in rank order and fp32."""
        self.share = encode_blocks(mean_blocks(shown.view(ranks, -1, BLOCK_BYTES)))

    def accept(self, whole: torch.Tensor) -> None:
        """Writes the mean over the gradients."""
        for first, count, parts in self._pieces():
            found = decode_blocks(whole[first : first + count]).view(-1)
            for start, part in parts:
                part.copy_(found[start : start + part.numel()])
        self.end(None)

    @property
    def _most_blocks(self) -> int:
        return self._values.numel() + len(self._sizes) if self._values.is_cuda else PIECE_BLOCKS

    def _pieces(self) -> Iterator[tuple[int, int, list[tuple[int, torch.Tensor]]]]:
        """Runs of blocks: the first, how many, and the gradients in them, each with its start in the run's values."""
        first, count, parts = 0, 0, list[tuple[int, torch.Tensor]]()
        for rest in self._values.split(self._sizes):
            while rest.numel() > 0:
                if count == self._most_blocks:
                    yield first, count, parts
                    first, count, parts = first + count, 0, []
                part = rest[: (self._most_blocks - count) * BLOCK_VALUES]
                parts.append((count * BLOCK_VALUES, part))
                count += -(-part.numel() // BLOCK_VALUES)
                rest = rest[part.numel() :]
        if count > 0:
            yield first, count, parts

    def end(self, error: Exception | None) -> None:
        """Lets DDP go on, or tells it what went wrong."""
        self._error = self._error or error
        if not self._gate.done():
            self._gate.set_result(self._values)

    def _open(self, gate: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
        # As in Step: this is how DDP, which is not Python, hears of it.
        if self._error is not None:
            raise self._error
        return gate.value()


def blockwise_int8_hook(state: BlockwiseInt8, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For `ddp.register_comm_hook(BlockwiseInt8(), blockwise_int8_hook)`.

    Ranks swap parts of the bucket as int8 in blocks of 256 values, sum theirs in fp32, and gather the means as int8: 1
    byte per value and 4 per block travel where fp16's all-reduce has 2 per value (ZeRO++'s quantized gradients, Wang et
    al. 2023, without their second level). A value is off by less than 1/63 of the largest that a rank had among the 256
    of its block, before the rounding of its own type, and by nothing on average. A block with inf or NaN is NaN on
    every rank.

    Args:
        state: The ranks.
        bucket: The gradients that DDP hands over, flat: [values], of any float type.

    Returns:
        The mean of all ranks, of the bucket's shape and type, once it is there: bit-equal on all of them.
    """
    return state.exchange(bucket)
