#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pytorch_describe_test.sh - GPT-2 small, written with PyTorch's modules and
# described, is planned as the GPT-2 that `plan` brings along: to the byte, for
# every strategy; in the order of a forward, too.
#
# usage: pytorch_describe_test.sh FSDP-CTS [INCLUDE-FOLDER]
# Exits 77 without PyTorch; FSDP_PYTHON names a python that has it.
set -uo pipefail
# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
describe=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/pytorch_describe.py
python=${FSDP_PYTHON:-python3}
if ! "$python" -c 'import torch' 2>/dev/null; then
    echo "skip: $python has no PyTorch (set FSDP_PYTHON)"
    exit 77
fi
cd "$folder" || exit 1

cat >model.py <<'END'
import torch
from torch import nn


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Parameter(torch.empty(50257, 768))
        self.wpe = nn.Parameter(torch.empty(1024, 768))

    def forward(self, x):
        return self.wte[x] + self.wpe[torch.arange(x.shape[1])]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(768, 2304)
        self.c_proj = nn.Linear(768, 768)

    def forward(self, x):
        return self.c_proj(self.c_attn(x)[..., :768])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(768)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(768)
        self.mlp = nn.Sequential(nn.Linear(768, 3072), nn.Linear(3072, 768))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Head(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.ln_f = nn.LayerNorm(768)
        self.linear = nn.Linear(768, 50257, bias=False)
        self.linear.weight = tied

    def forward(self, x):
        return self.linear(self.ln_f(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = Embeddings()
        self.h = nn.Sequential(*[Block() for _ in range(12)])
        self.head = Head(self.embedding.wte)

    def forward(self, x):
        return self.head(self.h(self.embedding(x)))


def tree():
    return Model()


def called():
    return Model(), (torch.zeros(1, 8, dtype=torch.int64),)


def convolves():
    return nn.Conv2d(3, 4, 3)
END

# planned MODEL: the table, without the name; and the time of full sharding.
planned()
{
    "$cts" plan "$1" --ranks 8 --precision bf16 | tail -n +2
    "$cts" plan "$1" --ranks 8 --strategy full-shard --cluster a100 \
        --recompute 1 | grep -A1 'step, ms'
}
planned gpt2 >want
units='--unit Embeddings --unit Block --unit Head --flops Embeddings=0'
for function in tree called; do
    # shellcheck disable=SC2086
    "$python" "$describe" "model.py:$function" $units --checkpoint Block \
        --attention Attention=768 --out "$function.json" 2>err
    planned "./$function.json" >got 2>>err
    result "described by its $function" "$(diff want got && [ -s want ] ||
        cat err)"
done
"$cts" plan ./tree.json --ranks 2 >got 2>&1
result 'all parameters, the tied one once' "$(
    grep -q 'Model: 124439808 parameters in 14 units' got || cat got)"
for wrong in 'model.py:nothing' 'model.py:convolves' \
    'model.py:tree --unit Bloc' 'model.py:tree --flops Block' 'model.py'; do
    # shellcheck disable=SC2086
    "$python" "$describe" $wrong >got 2>err
    code=$?
    result "refused in a line: $wrong" "$([ $code -ne 0 ] && [ ! -s got ] &&
        [ "$(wc -l <err)" -eq 1 ] || cat got err)"
done

finish 8
