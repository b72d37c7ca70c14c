"""Public models in small sizes, each with inputs and a loss of its own kind: what the memory matrix runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F


class Case(NamedTuple):
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[], dict[str, torch.Tensor]]
    loss: Callable[[Any], torch.Tensor]
    has_convolutions: bool = False
    budget: str = "80%"  # of its peak; more where parameters or a single layer are most of it


def classes(output):
    """Cross entropy against the labels 0, 1, 2, ..."""
    return F.cross_entropy(output, torch.arange(output.shape[0]) % output.shape[1])


def noise(output):
    """What a diffusion model is trained for: the distance to the noise that was added."""
    sample = output.sample
    return F.mse_loss(sample, torch.sin(torch.arange(sample.numel(), dtype=torch.float32)).view(sample.shape))


def own(output):
    """The loss that a model of transformers computes from its labels."""
    return output.loss


def torchvision(name, size=64, **options):
    def make():
        return importlib.import_module("torchvision.models").get_model(name, weights=None, num_classes=10, **options)

    return make, size


def timm(name, size=64, **options):
    def make():
        return importlib.import_module("timm").create_model(name, num_classes=10, **options)

    return make, size


def images(made, budget="80%", batch=4):
    make, size = made
    return Case(make, lambda: {"x": torch.randn(batch, 3, size, size)}, classes, True, budget)


def configured(library, model, config, **options):
    def make():
        found = importlib.import_module(library)
        return getattr(found, model)(getattr(found, config)(**options)) if config else getattr(found, model)(**options)

    return make


def words(model, config, **options):
    def inputs():
        tokens = torch.randint(3, 60, (8, 24))
        return {"input_ids": tokens, "labels": tokens.clone()}

    sizes = {"vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    return Case(configured("transformers", model, config, **{**sizes, **options}), inputs, own)


LAYERS = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
# A single layer of theirs needs a third of what two layers save.
DEEPER = {**LAYERS, "num_hidden_layers": 3}
GPT_LAYERS = {"n_embd": 64, "n_layer": 3, "n_head": 4}

WORDS = {
    "BERT": words("BertForMaskedLM", "BertConfig", **LAYERS),
    "ALBERT": words("AlbertForMaskedLM", "AlbertConfig", embedding_size=32, **DEEPER),
    "ELECTRA": words("ElectraForMaskedLM", "ElectraConfig", embedding_size=32, **LAYERS),
    "DistilBERT": words("DistilBertForMaskedLM", "DistilBertConfig", dim=64, n_layers=2, n_heads=4, hidden_dim=128),
    "GPT-2": words("GPT2LMHeadModel", "GPT2Config", **GPT_LAYERS),
    "GPT-NeoX": words("GPTNeoXForCausalLM", "GPTNeoXConfig", **DEEPER),
    "OPT": words(
        "OPTForCausalLM",
        "OPTConfig",
        hidden_size=64,
        word_embed_proj_dim=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=128,
    ),
    "Llama": words("LlamaForCausalLM", "LlamaConfig", **LAYERS),
    "Mistral": words("MistralForCausalLM", "MistralConfig", num_key_value_heads=2, **LAYERS),
    "Qwen2": words("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2, **LAYERS),
    "Gemma": words("GemmaForCausalLM", "GemmaConfig", num_key_value_heads=2, head_dim=16, **LAYERS),
    "Phi": words("PhiForCausalLM", "PhiConfig", **DEEPER),
    "T5": words(
        "T5ForConditionalGeneration",
        "T5Config",
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    ),
}

VISION = {
    "ResNet-18": images(torchvision("resnet18"), "98%"),
    "MobileNetV3": images(torchvision("mobilenet_v3_small"), "85%"),
    "ShuffleNetV2": images(torchvision("shufflenet_v2_x0_5")),
    "SqueezeNet": images(torchvision("squeezenet1_1"), "90%"),
    "MNASNet": images(torchvision("mnasnet0_5")),
    "ConvNeXt": images(timm("convnext_atto", depths=(3, 3, 6, 2)), "90%"),
    "LCNet": images(timm("lcnet_035")),
    "MobileViTv2": images(timm("mobilevitv2_050", 32)),
    "EdgeNeXt": images(timm("edgenext_xx_small")),
    "DeiT": images(timm("deit_tiny_patch16_224", 32, img_size=32, patch_size=8, depth=3), batch=32),
    "Swin": images(
        timm("swin_tiny_patch4_window7_224", 32, img_size=32, window_size=4, embed_dim=24, depths=(2, 2, 2, 2)), "95%"
    ),
}

BLOCKS = {"block_out_channels": (32, 32), "layers_per_block": 1, "norm_num_groups": 8}

DIFFUSION = {
    "UNet": Case(
        configured(
            "diffusers",
            "UNet2DModel",
            None,
            sample_size=16,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            **BLOCKS,
        ),
        lambda: {"sample": torch.randn(4, 3, 16, 16), "timestep": torch.tensor([1, 2, 3, 4])},
        noise,
        True,
    ),
    "UNet with text": Case(
        configured(
            "diffusers",
            "UNet2DConditionModel",
            None,
            sample_size=16,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            cross_attention_dim=32,
            attention_head_dim=4,
            **BLOCKS,
        ),
        lambda: {
            "sample": torch.randn(4, 4, 16, 16),
            "timestep": torch.tensor([1, 2, 3, 4]),
            "encoder_hidden_states": torch.randn(4, 6, 32),
        },
        noise,
        True,
    ),
    "VAE": Case(
        configured(
            "diffusers",
            "AutoencoderKL",
            None,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            **BLOCKS,
        ),
        lambda: {"sample": torch.randn(4, 3, 16, 16)},
        noise,
        True,
    ),
    "DiT": Case(
        configured(
            "diffusers",
            "DiTTransformer2DModel",
            None,
            num_attention_heads=4,
            attention_head_dim=16,
            in_channels=4,
            num_layers=2,
            sample_size=16,
            num_embeds_ada_norm=10,
        ),
        lambda: {
            "hidden_states": torch.randn(4, 4, 16, 16),
            "timestep": torch.tensor([1, 2, 3, 4]),
            "class_labels": torch.tensor([1, 2, 3, 4]),
        },
        noise,
        True,
    ),
}

MODELS = {**VISION, **WORDS, **DIFFUSION}


def fresh_case(name):
    """The same model and inputs at every call."""
    case = MODELS[name]
    torch.manual_seed(0)
    return case.make().train(), case.inputs()
