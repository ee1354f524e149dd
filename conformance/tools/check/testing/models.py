# SPDX-License-Identifier: Apache-2.0
"""Models that nobody here wrote, small and made from their configurations,
without weights. The environment says which: MODEL, WRAP (fsdp2, fsdp1), DTYPES
(f32, bf16: computed in bf16 and reduced in float32), RECOMPUTE (1: activations
are computed again). models_table plays all of them.
"""

import functools
import os

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as Fsdp
from torch.distributed.fsdp import (
    MixedPrecision, MixedPrecisionPolicy, fully_shard,
)
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.utils.checkpoint import checkpoint

MODEL = os.environ["MODEL"]
WRAP = os.environ.get("WRAP", "fsdp2")
COMPUTE = os.environ.get("DTYPES", "f32")
RECOMPUTE = os.environ.get("RECOMPUTE") == "1"
STEPS = 2
WORDS = 97


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=WORDS, n_positions=16, n_embd=24, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0))


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=WORDS, hidden_size=24, intermediate_size=40,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=16))


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM
    return MixtralForCausalLM(MixtralConfig(
        vocab_size=WORDS, hidden_size=24, intermediate_size=40,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        num_local_experts=4, max_position_embeddings=16))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    return T5ForConditionalGeneration(T5Config(
        vocab_size=WORDS, d_model=24, d_kv=12, d_ff=40, num_layers=2,
        num_heads=2, decoder_start_token_id=0, dropout_rate=0.1))


def bert():
    from transformers import BertConfig, BertForMaskedLM
    return BertForMaskedLM(BertConfig(
        vocab_size=WORDS, hidden_size=24, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=40,
        max_position_embeddings=16))


def vit():
    from transformers import ViTConfig, ViTForImageClassification
    return ViTForImageClassification(ViTConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=40, image_size=16, patch_size=4, num_labels=7,
        hidden_dropout_prob=0.1))


def resnet():
    import torchvision
    return torchvision.models.resnet18(num_classes=7)


def lora():
    from peft import LoraConfig, get_peft_model
    return get_peft_model(llama(), LoraConfig(
        r=2, target_modules=["q_proj", "v_proj"], lora_dropout=0.1))


BLOCKS = ("GPT2Block", "LlamaDecoderLayer", "MixtralDecoderLayer", "T5Block",
          "BertLayer", "ViTLayer", "BasicBlock")


def blocks(m):
    return [x for x in m.modules() if type(x).__name__ in BLOCKS]


def model():
    m = globals()[MODEL]()
    if RECOMPUTE and MODEL == "resnet":
        for block in blocks(m):
            block.forward = functools.partial(checkpoint, block.forward,
                                              use_reentrant=False)
    elif RECOMPUTE:
        m.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False})
    m.train()
    return m


def batch(step, microbatch, rank):
    g = torch.Generator().manual_seed(10000 * step + 100 * microbatch + rank)
    if MODEL in ("vit", "resnet"):
        size = 16 if MODEL == "vit" else 32
        return (torch.randn(2, 3, size, size, generator=g),
                torch.randint(0, 7, (2,), generator=g))
    return torch.randint(0, WORDS, (2, 12), generator=g)


def loss(model, batch):
    if MODEL == "vit":
        return model(pixel_values=batch[0], labels=batch[1]).loss
    if MODEL == "resnet":
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    return model(input_ids=batch, labels=batch).loss


def shard(model):
    policy = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32} \
        if COMPUTE == "bf16" else {}
    if WRAP == "fsdp1":
        # Otherwise it would have units of batch norm alone, in float32.
        policy = MixedPrecision(**policy, _module_classes_to_ignore=())
        return Fsdp(model, use_orig_params=True, mixed_precision=policy,
                    device_id=torch.device("cpu"),
                    auto_wrap_policy=ModuleWrapPolicy(
                        {type(block) for block in blocks(model)}))
    for module in (*blocks(model), model):
        fully_shard(module, mp_policy=MixedPrecisionPolicy(**policy))
    return model


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3)
