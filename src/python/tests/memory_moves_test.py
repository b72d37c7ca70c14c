"""What a step moves is counted whichever tool moves it, and a tool that moves nothing is named."""

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks  # noqa: E402

from dsc.memory import CountedMoves  # noqa: E402


def forward(device, around):
    """A forward as on a GPU: its tensors have shapes and a device, and no memory."""
    with FakeTensorMode():
        weight = torch.empty(512, 512, device=device, requires_grad=True)
        x = torch.empty(1024, 512, device=device)
        with CountedMoves() as moves, around():
            torch.relu(x @ weight).sum()
    return moves


def test_copies_of_other_tools_are_counted_in_both_directions():
    moves = forward("cuda", save_on_cpu)
    # The input and the result of the activation: only the input's own gradient would need the weight.
    assert (moves.out_bytes, moves.in_bytes, moves.copies) == (2 * 1024 * 512 * 4, 0, 2)
    assert str(moves) == "4.00 MiB moved out, 0 B moved in, in 2 copies"
    with FakeTensorMode(), CountedMoves() as moves:
        torch.empty(256).to("cuda")
        torch.empty(64, device="cuda").copy_(torch.empty(64))
        torch.empty(64, device="cuda").to(torch.float16)  # stays on its device
    assert str(moves) == "0 B moved out, 1.25 KiB moved in, in 2 copies"


class Lazy(saved_tensors_hooks):
    """An offload whose condition never holds."""

    def __init__(self):
        super().__init__(lambda tensor: tensor, lambda saved: saved)


def test_a_tool_that_moves_nothing_is_named_and_so_is_one_that_was_never_on():
    said = str(forward("cuda", Lazy))
    assert said == f"0 bytes moved: {__name__}.Lazy was on, and left every saved tensor on its device"
    said = str(forward("cuda", torch.enable_grad))
    assert said == "0 bytes moved: no saved-tensor hook was on, so no tool was given what autograd saves"
    said = str(forward("cpu", save_on_cpu))
    assert said == "0 bytes moved: every tensor is on the CPU, which is the host already"
