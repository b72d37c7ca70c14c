"""Layers as models have them: parameters used without a call, masks, copies of the model."""

import copy
import time

import pytest

torch = pytest.importorskip("torch")

from params_client_test import loss_of, model_and_batch, serve  # noqa: E402, F401

from dsc.params import ParameterClient  # noqa: E402


class Attends(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(20, 2, batch_first=True)
        self.last = torch.nn.Linear(20, 5)
        self.register_buffer("mask", torch.triu(torch.full((4, 4), float("-inf")), 1))
        self.register_buffer("mean", torch.zeros(5))

    def forward(self, x):
        return self.last(self.attention(x, x, x, attn_mask=self.mask)[0]) - self.mean


def batch_of_four():
    torch.manual_seed(0)
    return Attends(), torch.randn(2, 4, 20), torch.randn(2, 4, 5)


def test_parameters_that_are_used_without_a_call_of_their_layer_are_those_of_the_step(serve, monkeypatch):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.5")
    model, x, y = batch_of_four()
    client = ParameterClient(model, server.url, 0)
    copy_all = client.copy_all

    def copy_slowly(parameters, half):
        time.sleep(0.05)
        copy_all(parameters, half)

    monkeypatch.setattr(client, "copy_all", copy_slowly)
    for _ in range(3):
        client.begin_step()
        loss = loss_of(model, x, y)
        assert torch.isfinite(loss)
        loss.backward()
        assert client.push() == "applied"
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(float("nan"))  # only the prefetch can make the next forward right
    client.close()


def test_a_mask_with_infinities_is_no_buffer_that_is_shared(serve):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.5")
    model, x, y = batch_of_four()
    client = ParameterClient(model, server.url, 0, buffers=True)
    client.begin_step()
    loss_of(model, x, y).backward()
    model.mean.fill_(3.0)
    assert client.push() == "applied"
    model.mean.zero_()
    client.begin_step()
    client.load()
    client.close()
    assert torch.equal(model.mean, torch.full((5,), 3.0))
    assert torch.isinf(model.mask).sum() == 6


def test_a_copy_of_the_model_that_is_made_within_a_step_outlives_it(serve):  # noqa: F811
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.5")
    model, x, y = model_and_batch()
    client = ParameterClient(model, server.url, 0)
    client.begin_step()
    average = copy.deepcopy(model)
    loss_of(model, x, y).backward()
    assert client.push() == "applied"
    assert torch.isfinite(average(x)).all()
    client.close()
