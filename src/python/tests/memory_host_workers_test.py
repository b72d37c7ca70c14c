"""Workers whose parameters live on the host and are updated by a server."""

import pytest

torch = pytest.importorskip("torch")

from memory_host_parameters_test import fresh, plan_for, same  # noqa: E402
from memory_networks import loss_of  # noqa: E402
from memory_tools import one_thread  # noqa: E402, F401
from params_client_test import Server, in_threads  # noqa: E402

from dsc.memory import Offload  # noqa: E402
from dsc.params import ParameterClient  # noqa: E402


def test_two_workers_whose_parameters_live_on_the_host_equal_one_process(tmp_path):
    plan, _, _ = plan_for("wide", tmp_path, "40%")
    server = Server("--mode", "sync", "--workers", "2", "--lr", "0.1", "--momentum", "0.9")
    try:
        torch.manual_seed(3)
        inputs = torch.randn(32, 128)
        finals = {}

        def work(rank, model):
            executor = Offload(plan, model=model)
            client = ParameterClient(model, server.url, rank, parameters=executor.host_parameters())
            while client.begin_step() < 6:
                with executor:
                    loss = loss_of(model(inputs[16 * rank : 16 * rank + 16]))
                loss.backward()
                executor.end_step()
                client.push()
                for parameter in executor.host_parameters():
                    parameter.grad = None
            executor.close()
            client.close()
            finals[rank] = [p.detach().clone() for p in model.parameters()]

        models = [fresh("wide")[0] for _ in range(2)]
        in_threads(*[lambda r=rank: work(r, models[r]) for rank in range(2)])
        alone, _ = fresh("wide")
        optimizer = torch.optim.SGD(alone.parameters(), lr=0.1, momentum=0.9)
        for _ in range(6):
            optimizer.zero_grad()
            loss_of(alone(inputs)).backward()
            optimizer.step()
        assert same(finals[0], finals[1])
        for got, expected in zip(finals[0], alone.parameters()):
            assert torch.allclose(got, expected, rtol=1e-5, atol=1e-7)
    finally:
        server.kill()
