#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pytorch_shares_test.sh - PyTorch's side of the shares of a step: the same
# arithmetic as ours (fixtures/shares/spans.json), the names of kernels and
# operators, traces that are none; and the table that has both sides.
#
# usage: pytorch_shares_test.sh COMPARE-FOLDER FIXTURES-FOLDER
# Exits 77 if there is no python3. Needs no torch.
set -euo pipefail

if ! command -v python3 >/dev/null; then
    echo "skip: python3 is not installed"
    exit 77
fi
compare=$1
fixtures=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$compare python3 - \
    "$fixtures/shares/spans.json" "$folder/trace.json" <<'END'
import json
import math
import sys

import pytorch_shares as p

cases = json.load(open(sys.argv[1], encoding="utf-8"))
assert len(cases) >= 17


def refuses(spans, begin, end):
    try:
        p.shares(spans, begin, end)
    except ValueError:
        return
    raise SystemExit(f"taken: {spans} in {begin} to {end}")


for c in cases:
    spans = [tuple(s) for s in c["spans"]]
    if c["want"] is None:
        refuses(spans, *c["step"])
        continue
    want = {name: c["want"].get(name, 0) for name in p.NAMES}
    got = p.shares(spans, *c["step"])
    assert got == want, (c["what"], got)
for bad in (math.nan, math.inf, -math.inf):
    refuses([("gemm", bad, 4)], 0, 8)
    refuses([("gemm", 1, bad)], 0, 8)
    refuses([], bad, 8)
    refuses([], 0, bad)

KERNELS = {
    "gemm": """ampere_sgemm_128x64_tn
        void_cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>
        sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_cublas
        nvjet_sm90_sss_128x64_64x8_1x1_h_bz_NNT gemv2T_kernel_val
        void_cublasLt::splitKreduce_kernel<32,16,int,float>""",
    "attention": """fmha_cutlassF_f32_aligned_64x64_rf_sm80(Params)
        fmha_cutlassB_f32_aligned_64x64_k64_sm80
        void_pytorch_flash::flash_fwd_kernel<traits>
        cudnn_generated_fort_native_sdpa_sm90_flash_fprop""",
    "communication": """ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgs)
        ncclDevKernel_ReduceScatter_Sum_f32_RING_LL ncclKernel_AllReduce""",
    "rest": """void_at::native::vectorized_elementwise_kernel<4,add>
        void_at::native::(anonymous_namespace)::multi_tensor_apply_kernel
        void_at::native::vectorized_layer_norm_kernel<float>
        cunn_SoftMaxForward Memcpy_DtoD Memset_(Device)""",
}
for what, names in KERNELS.items():
    for name in names.split():
        assert p.class_of(name, p.KERNELS) == what, name
for name, what in {
    "aten::addmm": "gemm", "aten::mm": "gemm", "aten::linear": "gemm",
    "aten::mm_else": "rest", "aten::mul": "rest",
    "aten::_scaled_dot_product_flash_attention_for_cpu": "attention",
    "aten::scaled_dot_product_attention": "attention",
    "c10d::_allgather_base_": "communication",
    "gloo:all_reduce": "communication", "fsdp::chunk_cat": "rest",
    "autograd::engine::evaluate_function: AddmmBackward0": None,
    "FSDP::all_gather (blocks.0)": None, "ProfilerStep#1": None,
}.items():
    assert p.class_of(name, p.OPERATORS) == what, name


def event(cat, name, tid, ts, dur):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid,
            "ts": ts, "dur": dur}


def read(events, step=None):
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump({"traceEvents": events}, f)
    return {k: v for k, v in p.read(sys.argv[2], step).items() if v}


# What lies within another is of its class; so is a copy in gloo's thread.
step = event("user_annotation", "a step", 1, 0, 16)
host = [
    step,
    event("cpu_op", "aten::linear", 1, 0, 4),
    event("cpu_op", "aten::t", 1, 0, 1),
    event("cpu_op", "aten::addmm", 1, 1, 3),
    event("cpu_op", "aten::scaled_dot_product_attention", 1, 4, 4),
    event("cpu_op", "aten::bmm", 1, 5, 2),
    event("user_annotation", "gloo:all_gather", 2, 6, 6),
    event("cpu_op", "aten::copy_", 2, 10, 1),
    event("cpu_op", "autograd::engine::evaluate_function: X", 1, 8, 8),
    {"ph": "i", "name": "no duration", "ts": 0},
]
want = {"gemm": 0.25, "attention": 0.25, "exposed": 0.25, "idle": 0.25,
        "communication": 0.375}
assert read(host, "a step") == want, read(host, "a step")
# Without a step: from the first to the last of what counts.
got = read(host)
assert got["communication"] == 0.5 and "idle" not in got, got
# Where there are kernels, nothing of the host counts.
got = read(host + [event("kernel", "ampere_sgemm_32x32", 7, 4, 4),
                   event("gpu_memcpy", "Memcpy DtoD", 8, 6, 4)], "a step")
assert got == {"gemm": 0.25, "rest": 0.125, "idle": 0.625}, got
assert p.read(sys.argv[2], "a step", gpu=True)["gemm"] == 0.25
read(host)
try:
    p.read(sys.argv[2], gpu=True)
except ValueError as error:
    assert "no kernel" in str(error), error
else:
    raise SystemExit("a GPU without a kernel")
for events, name in ((host, "no such step"), ([], None), ({}, None),
                     ([1], None), ([{"ph": "X"}], None),
                     ([event("cpu_op", 1, 1, 0, 1)], None),
                     ([event("cpu_op", "aten::mm", 1, "0", 1)], None),
                     ([event("kernel", "gemm", 1, 0, -1)], None)):
    try:
        read(events, name)
    except ValueError:
        continue
    raise SystemExit(f"a trace: {events}")
END

export PYTHONDONTWRITEBYTECODE=1
if "$compare/pytorch_shares.py" "$folder/none.json" >"$folder/out" 2>&1; then
    echo 'a trace that is not there was read' >&2
    exit 1
fi
grep -q 'none.json' "$folder/out"
cat >"$folder/trace.json" <<'END'
{"traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "ampere_sgemm", "pid": 0, "tid": 7,
  "ts": 2.0, "dur": 3.0},
 {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather", "pid": 0,
  "tid": 8, "ts": 4.0, "dur": 2.0}]}
END
"$compare/pytorch_shares.py" "$folder/trace.json" >"$folder/out"
grep -qx 'gemm           0.750' "$folder/out"
grep -qx 'exposed        0.250' "$folder/out"
grep -qx 'communication  0.500' "$folder/out"

# The table: a column for each step, whoever printed it; other rows are not.
cat >"$folder/ours" <<'END'
gpu.gpt-124m.k1.impl                                  9000.000 tokens/s
gpu.gpt-124m.k1.impl.share.gemm                           0.500 share
gpu.gpt-124m.k1.impl.share.idle                           0.125 share
gpu.gpt-124m.k1.impl.share.step                        2500.000 us
END
echo 'step.gpt-124m.fsdp2.k1.pytorch.share.gemm 0.25 share' >"$folder/theirs"
"$compare/shares_table" "$folder/ours" "$folder/theirs" >"$folder/table"
# shellcheck disable=SC2016 # backquotes are the table's
grep -qxF '| share of a step | `gpu.gpt-124m.k1.impl` | `step.gpt-124m.fsdp2.k1.pytorch` |' \
    "$folder/table"
grep -qxF '| matrix products | 0.500 | 0.250 |' "$folder/table"
grep -qxF '| nothing runs | 0.125 | |' "$folder/table"
grep -qxF '| the traced step, ms | 2.5 | |' "$folder/table"
: >"$folder/ours"
"$compare/shares_table" "$folder/ours" >"$folder/table"
[ ! -s "$folder/table" ]
echo ok
