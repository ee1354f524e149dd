#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_test.sh - `fsdp-cts plan`: what it prints of a model that was worked out
# by hand, that records of both engines have what was planned for them, and
# one line with the exit code that --help promises for what is no model.
#
# usage: plan_test.sh FSDP-CTS [INCLUDE-FOLDER]
set -uo pipefail
# shellcheck source=conformance/cli/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../cli/checks.sh"
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
cd "$folder" || exit 1

# says WHAT TEXT ARGUMENT...: exit 0, and TEXT is in what it prints, however
# many blanks stand between its words.
says()
{
    local what=$1 text=$2 why=''

    shift 2
    if ! timeout 60 "$cts" plan "$@" >out 2>err; then
        why="exit is not 0: $(head -c 300 err)"
    else
        why=$(lacks "$text" "$(<out)")
    fi
    result "$what" "$why"
}

# lacks TEXT SAID: says that TEXT is not in it, if so
lacks()
{
    local said=$2

    while [[ $said == *'  '* ]]; do
        said=${said//  / }
    done
    [[ $said == *"$1"* ]] || echo "no '$1': ${2:0:1000}"
}

# refuses CODE TEXT ARGUMENT...: one line on stderr that has TEXT.
refuses()
{
    local code=$1 text=$2 why='' got said

    shift 2
    timeout 60 "$cts" plan "$@" >out 2>err
    got=$?
    if [ "$got" -ne "$code" ]; then
        why="exit $got, not $code"
    else
        said=$(<err)
        [[ $said == *"$text"* ]] || why="no '$text': ${said:0:300}"
        [[ $said != *$'\n'* ]] || why="not one line: ${said:0:300}"
    fi
    result "plan $*" "$why"
}

# The miniature, K = 4: M/K = 544, the largest unit 1024, four bytes each.
says 'the miniature' \
    'full-shard 1x4 2176 6272 11008 19584 8/4/0' mlp --ranks 4 --optimizer sgd
says 'with two moments' \
    'full-shard 1x4 6528 6272 15360 19584 8/4/0' mlp --ranks 4
says 'in 16 bits all is sent in half as many bytes: exercise 16.5.1' \
    'all-gathers 6528, reduce-scatters 3264, all-reduces 0' mlp --ranks 4 \
    --strategy full-shard --param-dtype bf16 --reduce-dtype bf16
says 'a precision' 'gathered in bf16, reduced in bf16' mlp --precision bf16s
says 'each unit its own' 'each unit in its own dtypes' mlp --precision units
says 'DDP sends two thirds' 'all-reduces 6528' mlp --ranks 4 \
    --strategy no-shard --param-dtype bf16 --reduce-dtype bf16
says 'units: one for all' 'full-shard 1x4 6528 10880' mlp --ranks 4 \
    --units whole
says 'two units each' 'in 2 units; K = 4' mlp --ranks 4 --units 2
says 'hybrids of five ranks have no mesh' 'hybrid-shard no mesh' mlp --ranks 5
says 'three replicas' 'hybrid-shard 3x2' mlp --ranks 6 --replicas 3
says 'a list' 'llama3-8b Llama 3 8B 8030261248 parameters in 34 units' --list
says 'help' '--replicas R' --help
says '65536 ranks' 'full-shard 1x65536' llama3-405b --ranks 65536
says 'what fits' 'least sharding that fits: shard-grad-op; 45.14 GB are left' \
    llama3-8b --ranks 8 --memory 100GB --activations 8GiB
says 'JSON' '"peak_parameters": 6272' mlp --ranks 4 --json

"$cts" plan llama3-8b --ranks 8 --json >out
result 'JSON can be read' "$(python3 -c '
import json
o = json.load(open("out"))
rows = {r["strategy"]: r for r in o["strategies"]}
full = rows["full-shard"]
if len(rows) != 5 or full["rest"]["param-shard"] != 4 * o["parameters"] / 8:
    print("the shards are not an eighth")
' 2>&1)"

ahead='--prefetch-forward 1 --prefetch-backward 1 --reduces-in-flight 2'
# shellcheck disable=SC2086
says 'time of a published run' '2158 188.1 188.1 60.3%' llama2-13b --ranks 64 \
    --param-dtype bf16 $ahead --cluster a100 --tokens 8192 --sequence 4096
says 'what is fastest' 'fastest that fits: shard-grad-op' llama2-13b \
    --ranks 64 --param-dtype bf16 --replicas 8 --cluster a100 --memory 80GB
says 'the unit that compute waits for' 'unit 0' llama2-13b --ranks 64 \
    --strategy full-shard --cluster a100
# shellcheck disable=SC2086
says 'units by trying' 'as described 34 525340672'  llama3-8b --ranks 8 --cluster a100 \
    --strategy full-shard --param-dtype bf16 $ahead --try-units --memory 80GB
# By fours they do not fit, as described they do.
says 'units that fit, by trying' '362.083 <- fastest' llama3-8b --ranks 8 \
    --cluster a100 --strategy full-shard --units 4 --try-units --memory 21GB
refuses 65 'fits nowhere' llama3-8b --ranks 8 --cluster a100 \
    --strategy full-shard --try-units --memory 1GB
mkdir gpt2
says 'a folder with the name of a model' 'GPT-2' gpt2 --ranks 2
rmdir gpt2
says '405B: how many ranks' 'full-shard fits from 128 ranks on' llama3-405b \
    --memory 80GB --param-dtype bf16 --least-ranks
says "a cluster's memory" 'full-shard fits from 128 ranks on' llama3-405b \
    --cluster a100 --param-dtype bf16 --least-ranks
sed 's/"memory": [0-9]*/"memory": 1000/' "$here/clusters/a100.json" >small.json
refuses 65 'fits nowhere' mlp --cluster small.json
says 'its own is given' 'fits' mlp --cluster small.json --memory 1GB
says 'what a record takes of options' 'without --ranks is planned as' --help
says '405B: what never fits' 'no-shard fits in no world' llama3-405b \
    --memory 80GB --param-dtype bf16 --least-ranks
# The page is well formed, needs nothing else, and draws every collective.
# shellcheck disable=SC2086
"$cts" plan gpt2 --ranks 8 --replicas 2 --strategy hybrid-shard --cluster a100 \
    $ahead --memory 80GB --page page.html >out 2>err
result 'a page' "$(python3 -c '
import xml.etree.ElementTree as tree
text = open("page.html").read()
body = tree.fromstring(text[text.index("<body>"):text.index("</html>")]
                       .replace("&nbsp;", " "))
names = [t.text for t in body.iter("title")]
for kind, n in ("all-gather", 28), ("reduce-scatter", 14), ("all-reduce", 14):
    if sum(name.startswith(kind + " ") for name in names) != n:
        print(f"not {n} of {kind}")
if "http" in text or "src=" in text or len(body.findall("svg")) != 2:
    print("not by itself")
' 2>&1; cat err)"
says 'a page without time' 'full-shard 1x4' mlp --ranks 4 --strategy full-shard \
    --page page.html
refuses 64 '--page needs' mlp --page page.html
refuses 74 'cannot open none/page.html' mlp --strategy full-shard --page none/page.html
refuses 64 'no page of a mesh' mlp --ranks 5 --strategy hybrid-shard --page a
refuses 64 '--least-ranks needs' mlp --least-ranks
refuses 65 'fits in no world' llama3-405b --memory 1GB --least-ranks
refuses 64 '--try-units needs' mlp --try-units
says 'time in JSON' '"exposed": 0.0' mlp --ranks 1 --cluster h200 --json
sed 's/"network_bandwidth": [0-9.e]*/"network_bandwidth": 0/' \
    "$here/clusters/a100.json" >broken.json
refuses 65 'network_bandwidth: a number from 1 on' mlp --cluster broken.json
sed 's/"flops": [0-9.e]*/"flops": 1e-300/' "$here/clusters/a100.json" >slow.json
refuses 65 'flops: a number from 1 on' mlp --cluster slow.json --json
refuses 65 'no-cluster' mlp --cluster no-cluster
refuses 64 'from 0 to 1' mlp --recompute 2
refuses 64 '2^40' mlp --tokens 0

# The textbook's exercises, and what articles name, line by line.
exercises=$("$cts" plan --exercises)
while read -r line; do
    result "exercises: $line" "$(lacks "$line" "$exercises")"
done <<'END'
2176 1 1 0 0 0 0 0 0.0000 0
2176 4 1 3264 3264 3264 9792 6528 1.5000 3
7000000000 8 1 12250000000 12250000000 12250000000 36750000000 24500000000 1.5000 3
7000000000 8 32 12250000000 12250000000 12250000000 36750000000 24500000000 1.5000 96
7000000000 64 32 13781251008 13781251008 13781251008 41343753024 27562500000 1.5000 96
175000000000 128 1 347265625000 347265625000 347265625000 1041796875000 694531250000 1.5000 3
1 2 2176 2720
2 4 1536 2080
4 8 1024 1568
8B, 8 H100, 8192 tokens, 400 TFLOPS, 350 GB/s 8.94e+05 8.94e+05 0.3280 s 0.3293 s 0.3293 s
175B, 128 A100, 2048 tokens, 200 TFLOPS, 225 GB/s 4.92e+07 4.92e+07 3.5885 s 3.6337 s 3.6337 s
16 bytes of state a parameter = 2 parameter + 2 gradient + 4 master + 8 moments
7B: more than 100 GB 112.00 GB
13B, AdamW: 156 GB of optimizer state 156.00 GB
13B with parameters and gradients 208.00 GB
1.3B under DDP on 40 GB: fits 20.80 GB
full-shard over 8 x 40 GB, and a block: fits 27.27 GB
shard-grad-op over 8: does not fit 48.75 GB
hybrid 2 x 4: does not fit 52.00 GB
by the oracle 28.33 GB
at most 28.57 GB
END

# Records have what was planned for them, of both engines and of other worlds.
for engine in ref impl; do
    "$cts" run --engine $engine --workload mlp --ranks 2,4 --record-only \
        --records records-$engine --quiet >out 2>err
    n=0
    why=''
    simulated=0 trained=0
    for case in records-$engine/*/; do
        [ -e "$case/case.json" ] || continue
        case $engine.$case in
        *options* | *disagree*) continue ;;
        esac
        if [[ $(<"$case/case.json") == *'"scenario": "script"'* ]]; then
            script=$case
            continue
        fi
        said=$("$cts" plan "$case" --check 2>&1) || why="$case: $said"
        n=$((n + 1))
        if [[ $said == *'in the order of'* ]]; then
            trained=$((trained + 1))
            [[ $said != *'2 of 2 ranks'* && $said != *'4 of 4 ranks'* ]] ||
                simulated=$((simulated + 1))
        fi
    done
    [ "$n" -ge 20 ] || why="$why; only $n records"
    result "$n records of $engine are as planned" "$why"
    # ref may run ahead and does not; impl does, as it is simulated.
    if [ $engine = impl ]; then
        result "$simulated of them communicate in the order of the simulation" \
            "$([ "$simulated" -eq "$trained" ] && [ "$trained" -ge 40 ] ||
                echo "$trained were trained")"
    fi
done
"$cts" plan "$script" --check >out 2>err
got=$?
result 'a record of a script is refused' "$(
    [ "$got" -eq 65 ] && grep -q 'plays a script of its own' err || cat out err
)"
# An engine that gathers twice, and one that keeps what it gathered.
for mutant in gather-twice reshard-late; do
    "$cts" run --engine ref --mutant $mutant --workload mlp --ranks 4 \
        --strategy full-shard --record-only --records records-$mutant \
        --quiet >out 2>err
    one=$(find records-$mutant -name 'mlp.seed.natural.full-shard.k4.flat.layer*steps40')
    "$cts" plan "$one" --check >out 2>err
    result "a record of $mutant" "$([ $? -eq 1 ] && grep -q \
        'rank 3: .* in the record, .* planned' out || cat out err)"
done

# What an engine's run of this model has (docs/measurements/memory.md).
# shellcheck disable=SC2086
for row in 'optimizer 236928 584832 932736 473856 760768 236928 473856' \
    'params 473856 347904 1319616 236928 236928 710784 236928' \
    'all 0 347904 695808 710784 947712 473856 236928'; do
    read -r what rest parameters peak host <<<"$row"
    of="gpt.small --ranks 4 --layout per-parameter --strategy full-shard"
    says "the device, --offload $what" \
        "full-shard 1x4 $rest $parameters $peak 2132352 10/5/0" $of \
        --offload "$what"
    says "the host, --offload $what" "full-shard $host" $of --offload "$what"
done
# shellcheck disable=SC2086
says 'the host in JSON' '"to_device": 473856' $of --offload all --json

# The page's tables are what is printed.
for of in 'llama3-8b --ranks 64' \
    'llama3-8b --ranks 64 --offload all --strategy full-shard'; do
    sed -n "/^\\\$ fsdp-cts plan $of\$/,/^\`\`\`/{//!p}" \
        "$here/../../../docs/plan.md" >shown
    # shellcheck disable=SC2086
    "$cts" plan $of >out 2>err
    result "docs/plan.md shows plan $of" "$([ -s shown ] ||
        echo 'it does not'; diff shown out 2>&1)"
done

refuses 64 'needs a MODEL'
refuses 64 'one MODEL' mlp gpt
refuses 64 'from 1 to 65536' mlp --ranks 65537
refuses 64 'from 1 to 65536' mlp --ranks 18446744073709551620
refuses 64 'divide' mlp --ranks 6 --replicas 4
refuses 64 'f32, bf16 or f16' mlp --param-dtype i32
refuses 64 'no precision has both' mlp --param-dtype bf16 --reduce-dtype f16
refuses 64 'one or the other' mlp --param-dtype bf16 --precision bf16
refuses 64 'bf16r, bf16s' mlp --precision int8
refuses 64 'has 4 of them' mlp --units 5
for option in '--tensor-parallel 8' '--pipeline-parallel 4' \
    '--context-parallel 2' --float8; do
    # shellcheck disable=SC2086
    refuses 64 'not modelled' llama3-405b --ranks 128 $option
done
refuses 64 'full-shard, shard-grad-op' mlp --strategy all
refuses 64 's the last' mlp --sync sn
refuses 64 '80GiB' mlp --memory 80XB
refuses 64 '80GiB' mlp --memory 9223372036854775808
refuses 64 'unknown' mlp --nothing
refuses 64 'about a record' mlp --check
refuses 64 'none, all, optimizer or params' mlp --offload some
refuses 64 'not go with --cluster' llama3-8b --ranks 8 --offload all \
    --cluster h100
refuses 65 'no workload' nothing
refuses 65 'fits nowhere: full-shard needs least, and 10.01 kB more' mlp \
    --ranks 4 --optimizer sgd --memory 1000
refuses 65 'no size "huge"' gpt.huge
echo '{"version": 1' >broken.json
refuses 65 'broken.json' broken.json
echo '{"version": 2}' >newer.json
refuses 65 'newer.json: version: 2' newer.json
mkdir empty
refuses 65 'case.json' empty

finish 90
