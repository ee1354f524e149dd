#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# checkpoint_test.sh - consolidate and inspect on the stored samples: what is
# sound is shown and made whole, what is not is refused with one line, exit 65,
# and nothing written. Where Python has safetensors, it reads what we write,
# puts shards together as PyTorch's distributed checkpoint does, and we read
# what it writes.
#
# usage: checkpoint_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail

# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
fixtures=$(realpath "$(dirname "$0")/../../fixtures")
cd "$folder" || exit 1

# shown WHAT TEXT ARGUMENT...: exit 0, TEXT on stdout.
shown()
{
    local what=$1 text=$2 why=''
    shift 2
    "$cts" "$@" >out 2>err || why="exit $?: $(cat err)"
    grep -qF -- "$text" out || why="$why no '$text'"
    result "$what" "$why"
}

# refused WHAT CODE TEXT ARGUMENT...: one line on stderr with TEXT in it.
refused()
{
    local what=$1 code=$2 text=$3 why='' got
    shift 3
    timeout 60 "$cts" "$@" >out 2>err
    got=$?
    [ "$got" -eq "$code" ] || why="exit $got, not $code"
    [ "$(wc -l <err)" -eq 1 ] || why="$why $(wc -l <err) lines"
    grep -qF -- "$text" err || why="$why no '$text' in: $(head -c 300 err)"
    result "$what" "$why"
}

samples=$fixtures/checkpoints
shown 'inspect a checkpoint' 'checkpoint-000001 is the newest complete one' \
    inspect "$samples/sharded"
shown 'inspect its step' 'step: 2' inspect "$samples/sharded"
shown 'inspect a file' 'F32 [5, 7]  at [0, 140]' inspect \
    "$samples/full/checkpoint-000001/model-00001-of-00002.safetensors"
shown 'inspect as JSON' '"saved_offsets' inspect --json \
    "$samples/sharded/checkpoint-000001/shard-00001-model-00001-of-00002.safetensors"
mkdir indexed
cp "$samples"/full/checkpoint-000001/model* indexed
shown 'inspect an index' 'layers.2.weight' inspect indexed

shown 'consolidate' 'newest complete' consolidate "$samples/sharded" whole
"$cts" inspect --json whole >json
result 'its form' "$(grep -q '"form": "full"' json || echo not full)"
for name in a b; do # twice the same bytes
    "$cts" consolidate "$samples/sharded" "twice-$name" >/dev/null
done
result 'twice the same' "$(diff -r twice-a twice-b)"
shown 'consolidate what is full' 'newest complete' consolidate \
    "$samples/full" again
result 'full or sharded: the same tensors' "$(cmp \
    whole/checkpoint-000001/model.safetensors \
    again/checkpoint-000001/model.safetensors)"

# What is said of each, by inspect, and by consolidate of what has a manifest.
while read -r bad text; do
    refused "inspect $bad" 65 "$bad" inspect "$samples/refused/$bad"
    refused "inspect $bad" 65 "$text" inspect "$samples/refused/$bad"
    case $bad in index-*) continue ;; esac
    refused "consolidate $bad" 65 "$text" consolidate \
        "$samples/refused/$bad" out-1
done <"$samples/refused.txt"
result 'all that is to be refused is listed' "$(diff \
    <(cut -d' ' -f1 "$samples/refused.txt") <(LC_ALL=C ls "$samples/refused"))"
for bad in "$fixtures"/safetensors/refused/*; do
    refused "inspect $(basename "$bad")" 65 "$(basename "$bad")" inspect "$bad"
done
refused 'an index that leaves' 65 'leads out' inspect \
    "$samples/refused/index-escapes"
refused 'consolidate nothing' 65 nowhere consolidate nowhere out-1
refused 'consolidate a file' 65 'a directory was expected' consolidate json \
    out-1
refused 'consolidate into a file' 65 'directory' consolidate \
    "$samples/sharded" json
cp -r "$samples/sharded" damaged
chmod -R u+w damaged
rm damaged/checkpoint-000001/shard-00002-model-00002*
refused 'a shard is missing' 65 shard-00002-model-00002 consolidate damaged \
    out-1
cp -r "$samples/sharded" turned
chmod -R u+w turned
state=turned/checkpoint-000001/state-00002.safetensors
printf '\377' | dd of=$state bs=1 seek=$(($(wc -c <$state) - 1)) conv=notrunc \
    status=none
refused 'other bytes' 65 'SHA-256' consolidate turned out-1
result 'nothing was written' "$(find . -name out-1)"
if mkdir full && mount -t tmpfs -o size=4k none full 2>/dev/null; then
    refused 'no space' 65 'No space left on device' consolidate \
        "$samples/sharded" full
    result 'no space: nothing is left' "$(find full -name 'checkpoint-*')"
    umount full
else
    echo 'skip: no tmpfs is to be had here to grow full'
fi
chmod 755 "$folder" && mkdir shut && chmod 700 shut
if [ "$(id -u)" -ne 0 ]; then
    chmod 500 shut
    refused 'no permission' 65 'Permission denied' consolidate \
        "$samples/sharded" shut
    chmod 700 shut
elif command -v setpriv >/dev/null && setpriv --reuid 65534 --clear-groups \
    "$cts" --help >/dev/null 2>&1; then
    setpriv --reuid 65534 --clear-groups "$cts" consolidate \
        "$samples/sharded" shut >out 2>err
    result 'no permission' "$([ $? -eq 65 ] &&
        grep -qF 'Permission denied' err || cat err)"
fi
refused 'usage' 64 'two directories' consolidate one
refused 'usage of inspect' 64 'one FILE or DIR' inspect

# ---- Python ----
python=${FSDP_PYTHON:-python3}
cat >check.py <<'TEXT'
import glob, json, subprocess, sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

cts, samples = sys.argv[1:]
full = {}
for path in glob.glob(samples + "/full/*/model-*.safetensors"):
    full.update(load_file(path))
for path in glob.glob(samples + "/full/*/optimizer-*.safetensors"):
    full.update(load_file(path))
assert len(full) == 9, sorted(full)
index = json.load(open(glob.glob(
    samples + "/full/*/model.safetensors.index.json")[0]))
assert sum(full[n].nbytes for n in index["weight_map"]) == \
    index["metadata"]["total_size"]

# As PyTorch's HuggingFaceStorageReader does: one chunk of a name in a file,
# a tensor's size the furthest end of any of its chunks.
size, chunks = {}, {}
for path in glob.glob(samples + "/sharded/*/shard-*.safetensors"):
    with safe_open(path, "np") as f:
        info = json.loads(f.metadata()["DCP_SHARDING_INFO"])
        assert f.metadata()["DCP_VERSION"] == "1.0"
        for name in f.keys():
            x, at = f.get_tensor(name), info[name]["saved_offsets"]
            end = [a + n for a, n in zip(at, x.shape)]
            size[name] = [max(a, b) for a, b in
                          zip(size.get(name, end), end)]
            chunks.setdefault(name, []).append((at, x))
assert sorted(size) == sorted(full)
for name, shape in size.items():
    x = np.full(shape, np.nan, np.float32)
    for at, chunk in chunks[name]:
        place = tuple(slice(a, a + n) for a, n in zip(at, chunk.shape))
        assert np.isnan(x[place]).all(), "an overlap in " + name
        x[place] = chunk
    assert (x == full[name]).all(), name

# What Python writes, we read.
save_file({"b": np.arange(6, dtype=np.float32).reshape(2, 3),
           "a": np.zeros((0, 4), np.int64), "c": np.array(7, np.uint8)},
          "python.safetensors", {"by": "python"})
shown = json.loads(subprocess.check_output(
    [cts, "inspect", "--json", "python.safetensors"]))
assert {t["name"]: (t["dtype"], t["shape"]) for t in shown["tensors"]} == \
    {"b": ("F32", [2, 3]), "a": ("I64", [0, 4]), "c": ("U8", [])}
print("python: safetensors and numpy agree")
TEXT
if "$python" -c 'import safetensors, numpy' 2>/dev/null; then
    result 'python' "$("$python" check.py "$cts" "$samples" 2>&1 >python.out |
        tail -1)"
    cat python.out
else
    echo 'skip: Python has no safetensors and numpy here (set FSDP_PYTHON)'
fi

finish 40
