import pickle

import torch
from exchange_models import TinyGpt, text_batch
from exchange_workers import run_ranks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import ScaledHalf, scaled_half_hook


def train_gpt(rank, steps, first_step=0, checkpoint=None, stop_at=None, hook=True):
    torch.manual_seed(1)
    model = TinyGpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.1)
    state = ScaledHalf(model.parameters())
    if checkpoint:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        state = pickle.loads(checkpoint["state"])
        state.bind(model.parameters())
    if hook:
        ddp.register_comm_hook(state, scaled_half_hook)
    losses = []
    for step in range(first_step, steps):
        words, following = text_batch(step, rank)
        optimizer.zero_grad()
        loss = cross_entropy(ddp(words).flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if stop_at == step + 1:
            return {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "state": pickle.dumps(state),
            }
    return losses, [parameter.detach().clone() for parameter in model.parameters()], state.state_dict()


def _resume(rank):
    losses, weights, state = train_gpt(rank, 12)
    checkpoint = train_gpt(rank, 12, stop_at=7)
    again, resumed, resumed_state = train_gpt(rank, 12, first_step=7, checkpoint=checkpoint)
    same = all(torch.equal(a, b) for a, b in zip(weights, resumed))
    return same, losses[7:] == again, state == resumed_state, len(state["groups"])


def test_training_resumed_from_a_checkpoint_is_bit_equal_to_training_without_a_break():
    for same, same_losses, same_state, groups in run_ranks(2, _resume):
        assert groups >= 3
        assert same_losses
        assert same
        assert same_state


def _train(rank):
    losses, weights, state = train_gpt(rank, 24)
    plain_losses, _, _ = train_gpt(rank, 24, hook=False)
    fingerprint = [weight.double().sum().item() for weight in weights]
    return losses, plain_losses, fingerprint, state


def test_four_ranks_train_as_in_fp32_and_hold_the_same_weights_and_scales():
    results = run_ranks(4, _train)
    hooked = sum(losses[-1] for losses, _, _, _ in results)
    plain = sum(losses[-1] for _, losses, _, _ in results)
    assert hooked != plain and abs(hooked / plain - 1) <= 5e-3
    for losses, _, fingerprint, state in results:
        assert losses[-1] < 0.97 * losses[0]
        assert fingerprint == results[0][2] and state == results[0][3]
    assert len(results[0][3]["groups"]) >= 3
