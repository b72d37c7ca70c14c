import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
CODEC = ROOT / "dist/half/codec.js"
NODE = ROOT / "node_modules/.bin/node"

# Reads a file of 4 or 2 byte values, converts it with dsc's WebAssembly codec, writes the other kind.
CONVERT = """
import { readFileSync, writeFileSync } from 'node:fs'
const [codecPath, kernel, from, to, source, target] = process.argv.slice(1)
const { openCodec } = await import(codecPath)
const bytes = readFileSync(source)
const count = bytes.length / Number(from)
const codec = openCodec(count * (Number(from) + Number(to)) + 64)
const [a, b] = [codec.allocate(count * Number(from)), codec.allocate(count * Number(to))]
new Uint8Array(codec.memory).set(bytes, a)
codec.kernels[kernel](a, b, count, 1)
writeFileSync(target, new Uint8Array(codec.memory, b, count * Number(to)))
"""


def convert(tmp_path, kernel, tensor, result_dtype):
    source, target = tmp_path / "source", tmp_path / "target"
    tensor.view(torch.uint8).numpy().tofile(source)
    sizes = [str(tensor.element_size()), str(torch.empty(0, dtype=result_dtype).element_size())]
    command = [NODE, "--input-type=module", "-e", CONVERT, CODEC.as_uri(), kernel, *sizes, source, target]
    subprocess.run(command, check=True)
    return torch.frombuffer(bytearray(target.read_bytes()), dtype=result_dtype)


def assert_same_bits(found, expected):
    """Bit by bit, except that any NaN stands for any other."""
    assert torch.equal(found.isnan(), expected.isnan())
    kind = {2: torch.int16, 4: torch.int32}[found.element_size()]
    number = ~expected.isnan()
    assert torch.equal(found.view(kind)[number], expected.view(kind)[number])


pytestmark = pytest.mark.skipif(not (CODEC.exists() and NODE.exists()), reason="dsc is not built here")


@pytest.mark.parametrize("kernel, dtype", [("encodeHalf", torch.float16), ("encodeBrain", torch.bfloat16)])
def test_ten_million_floats_become_the_same_bits_as_in_pytorch(tmp_path, kernel, dtype):
    seed = torch.seed() % 2**31
    print(f"seed {seed}")
    generator = torch.Generator().manual_seed(seed)
    # Every bit pattern, and as many in the range where halves round, overflow and become subnormal.
    anything = torch.randint(-(2**31), 2**31, (5_000_000,), generator=generator).to(torch.int32).view(torch.float32)
    exponents = torch.randint(-30, 18, (5_000_000,), generator=generator).float()
    nearby = torch.randn(5_000_000, generator=generator) * 2.0**exponents
    floats = torch.cat([anything, nearby])
    assert_same_bits(convert(tmp_path, kernel, floats, dtype), floats.to(dtype))


@pytest.mark.parametrize("kernel, dtype", [("decodeHalf", torch.float16), ("decodeBrain", torch.bfloat16)])
def test_all_65536_narrow_values_become_the_same_floats_as_in_pytorch(tmp_path, kernel, dtype):
    narrow = torch.arange(65536).to(torch.uint16).view(dtype)
    assert_same_bits(convert(tmp_path, kernel, narrow, torch.float32), narrow.float())
