/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_claims.c - the table of all capabilities that can be claimed, and which
 * of them a case needs. The strings are those of engine.h and are written out
 * here: they are a contract with engines, while the names in ids are the
 * suite's own. The lint claims_tables compares it with engine.h and the docs.
 */
#include "cases/case_claims.h"
#include "cases/case_factors.h"
#include "cases/case_graph.h"
#include "cases/case_precision.h"
#include "cases/case_script.h"

#include <string.h>

/* A field such as the fold or the optimizer asks for nothing where the model is
 * only sharded. */
static bool trains_with(const struct run_case *c, uint32_t field,
                        uint32_t value)
{
    return c->scenario != CASE_SHARD && field == value;
}

/* Whether the ranks that load, or those that saved, have this layout. */
static bool has_layout(const struct run_case *c, uint32_t layout)
{
    struct run_case saver;

    return c->layout == layout ||
           (case_saver(c, &saver) && saver.layout == layout);
}

static bool has_strategy(const struct run_case *c, uint32_t strategy)
{
    /* A unit that says itself whether it is resharded may stay, as here. */
    return c->strategy == strategy || (strategy == CASE_SHARD_GRAD_OP &&
                                       case_graph_has(c, GRAPH_OWN_RESHARD));
}

static bool has_fold(const struct run_case *c, uint32_t fold)
{
    return trains_with(c, c->fold, fold);
}

static bool has_optimizer(const struct run_case *c, uint32_t optimizer)
{
    return trains_with(c, c->optimizer, optimizer);
}

static bool plays(const struct run_case *c, uint32_t scenario)
{
    return c->scenario == scenario;
}

static bool has_groups(const struct run_case *c, uint32_t scenario)
{
    return c->scenario == scenario || case_groups(c) > 1;
}

static bool keeps_root(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->keep_root != 0;
}

static bool recomputes(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->recompute != WORKLOAD_KEEPS;
}

static bool freezes(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->frozen != WORKLOAD_TRAINS_ALL;
}

static bool ties(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_is_tied(c);
}

static bool cuts_modules(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_has_own_units(c);
}

static bool ignores(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_ignores(c);
}

static bool has_buffers(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_has_buffers(c);
}

static bool offloads(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->offload != CASE_NOT_OFFLOADED;
}

static bool leaves_unreduced(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_leaves_unreduced(c);
}

/* Scenarios that resume save shards, unless they are about another form. */
static bool saves_shards(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_resumes(c) && c->scenario != CASE_RESUME_FULL &&
           c->scenario != CASE_RESUME_LOCAL;
}

static bool loads(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_resumes(c);
}

static bool runs_ahead(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->prefetch_forward != 0 || c->prefetch_backward != 0 ||
           c->reduces_in_flight != 0;
}

static bool offers_factors(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_predivide(c) != 0.0f || c->factors == CASE_UNIT_FACTORS;
}

static bool has_dtype(const struct run_case *c, uint32_t dtype)
{
    return c->scenario != CASE_SHARD && case_uses_dtype(c, dtype);
}

static bool sums_wide(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_sums_wide(c);
}

/* The text of the case's script; NULL: it plays none. */
static const char *text_of(const struct run_case *c)
{
    const struct case_script *s = case_script_of(c);

    return s ? s->text : NULL;
}

/* Whether a setting of the case's script has a number for each group. */
static bool says_each(const struct run_case *c, const char *setting)
{
    const char *text = text_of(c);
    const char *at = text ? strstr(text, setting) : NULL;

    return at && memchr(at, ',', strcspn(at + 1, "\n") + 1);
}

static bool has_numbers(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_has_numbers(c) || says_each(c, "\nbetas ") ||
           says_each(c, "\neps ") || says_each(c, "\nmomentum ");
}

static const char core[] =
    "core: its cases are not claimed, and the verdict is INCOMPLETE";

const struct claim known_claims[] = {
    {"flat", CLAIM_CORE, .text = core, .asked_by = has_layout,
     .value = FSDP_LAYOUT_FLAT},
    {"per-parameter", CLAIM_ENGINE,
     .text = "cases of this layout; of the core it is as good as `flat`",
     .asked_by = has_layout, .value = FSDP_LAYOUT_PER_PARAMETER},
    {"full-shard", CLAIM_CORE, .text = core, .asked_by = has_strategy,
     .value = CASE_FULL_SHARD},
    {"shard-grad-op", CLAIM_ENGINE,
     .text = "cases of this strategy; random graphs of which a unit says "
             "itself whether it is resharded",
     .asked_by = has_strategy, .value = CASE_SHARD_GRAD_OP},
    {"no-shard", CLAIM_ENGINE, .text = "cases of this strategy",
     .asked_by = has_strategy, .value = CASE_NO_SHARD},
    {"hybrid-shard", CLAIM_ENGINE, .text = "cases of this strategy",
     .asked_by = has_strategy, .value = CASE_HYBRID_SHARD},
    {"hybrid-shard-zero2", CLAIM_ENGINE, .text = "cases of this strategy",
     .asked_by = has_strategy, .value = CASE_HYBRID_SHARD_ZERO2},
    {"fold-rank", CLAIM_CORE, .text = core, .asked_by = has_fold,
     .value = FSDP_FOLD_RANK},
    {"fold-ring", CLAIM_ENGINE, .text = "cases of this fold",
     .asked_by = has_fold, .value = FSDP_FOLD_RING},
    {"fold-tree", CLAIM_ENGINE, .text = "cases of this fold",
     .asked_by = has_fold, .value = FSDP_FOLD_TREE},
    {"sgd", CLAIM_CORE, .text = core, .asked_by = has_optimizer,
     .value = FSDP_OPTIMIZER_SGD},
    {"momentum", CLAIM_ENGINE,
     .text = "cases of this optimizer, and its requirement",
     .asked_by = has_optimizer, .value = FSDP_OPTIMIZER_MOMENTUM},
    {"adamw", CLAIM_ENGINE,
     .text = "cases of this optimizer, and its requirement",
     .asked_by = has_optimizer, .value = FSDP_OPTIMIZER_ADAMW},
    {"keep-root", CLAIM_ENGINE, .text = "cases that keep the root",
     .asked_by = keeps_root},
    {"no-sync", CLAIM_ENGINE, .text = "cases that leave a microbatch unreduced",
     .asked_by = leaves_unreduced,
     .says = {" n\n", " n at ", "sync off", " sync 0"}},
    {"eval", CLAIM_ENGINE, .text = "cases that evaluate", .asked_by = plays,
     .value = CASE_EVAL, .says = {"\neval ", "! end-of-another"}},
    {"cancel", CLAIM_ENGINE, .text = "cases that cancel a pass",
     .asked_by = plays, .value = CASE_CANCEL, .says = {" until "}},
    {"unshard-all", CLAIM_ENGINE, .text = "cases that summon all parameters",
     .asked_by = plays, .value = CASE_SUMMON,
     .says = {"\nsummon\n", "\nunshard\n", "! unshard-all-", "! reshard-all-",
              "! deferred-unshard-all"}},
    {"clip", CLAIM_ENGINE,
     .text = "cases that clip gradients; `clip.*` and `error.clip-arguments`",
     .asked_by = plays, .value = CASE_CLIP,
     .says = {"\nclip ", "! clip-", "-then-clip"}},
    {"groups", CLAIM_ENGINE,
     .text = "cases with several parameter groups; `step.*` goes by the "
             "numbers of each",
     .asked_by = has_groups, .value = CASE_GROUPS, .says = {"\ngroups "}},
    {"save-full", CLAIM_ENGINE,
     .text = "cases that save everything gathered, and resume",
     .asked_by = plays, .value = CASE_RESUME_FULL,
     .says = {" full\n", " full-rank0"}},
    {"save-local", CLAIM_ENGINE,
     .text = "cases that save flat shards as they are, and resume",
     .asked_by = plays, .value = CASE_RESUME_LOCAL, .says = {" local\n"}},
    {"save-sharded", CLAIM_ENGINE, .text = "cases that save shards, and resume",
     .asked_by = saves_shards,
     .says = {" sharded", "! save-", "! wait-", "! deferred-save"}},
    {"load", CLAIM_ENGINE,
     .text = "all cases that resume, and the requirements of checkpoints",
     .asked_by = loads, .says = {"\nload ", "! load-"}},
    {"prefetch", CLAIM_ENGINE,
     .text = "cases that ask for running ahead, `memory.prefetch-bound`, "
             "`prefetch.*` and `error.options-ahead`",
     .asked_by = runs_ahead, .says = {"! prefetch-", "! reduces-beyond"}},
    {"strict-memory", CLAIM_ENGINE,
     .text = "the requirements that measure the strict profile to the byte "
             "(`memory.peak-*`, `comm.order`, ...); no case"},
    {"strict-storage", CLAIM_ENGINE,
     .text = "`memory.storage-total` and `memory.bounded`, which measure what "
             "is allocated in the strict profile; no case"},
    {"scripts", CLAIM_ENGINE,
     .text = "scripts that are drawn: `run --scripts` plays none. Of an "
             "adapter: cases that play a script of their own"},
    {"bf16", CLAIM_ENGINE,
     .text = "cases with bf16 parameters, gradients or reductions, and "
             "`mixed.*`; `shard` must then refuse a bf16 `param_dtype` or "
             "`reduce_dtype` (`error.unclaimed-dtype`, `error.unclaimed`)",
     .asked_by = has_dtype, .value = FSDP_DTYPE_BF16,
     .says = {"! shard-dtypes", "! shard-reduce-dtype", "! shard-grad-dtype",
              "! shard-accumulate-dtype", "! shard-buffer-dtype"}},
    {"fp16", CLAIM_ENGINE,
     .text = "cases with float16; `shard` must then refuse an f16 "
             "`param_dtype` or `reduce_dtype` (`error.unclaimed`)",
     .asked_by = has_dtype, .value = FSDP_DTYPE_F16},
    {"sum-f32", CLAIM_ENGINE,
     .text = "cases whose sums are float32 where the wire has 16 bits",
     .asked_by = sums_wide},
    {"unit-controls", CLAIM_ENGINE,
     .text = "scripts that `set` what holds of a unit; `control.*`, "
             "`error.control-in-pass`, `error.control-arguments`",
     .says = {"\nset ", "! set-", "shard-unknown-", "shard-while-",
              "reshard-in-", "reshard-kept", "shard 0", "! shard-reshard",
              "! deferred-unshard\n"}},
    {"partial-replicas", CLAIM_ENGINE,
     .text = "scripts in which replicas do not meet in every pass; "
             "`control.all-reduce`, `control.partial-sum`, "
             "`error.step-with-partials`",
     .says = {" all-reduce ", "! step-with-partials"}},
    {"factor-controls", CLAIM_ENGINE,
     .text = "scripts that `set` a unit's divide or predivide factor; "
             "`control.factor`, `error.control-factors`",
     .says = {"divide-factor ", "! set-divide-", "! set-predivide-",
              "! set-factor-"}},
    {"unit-factors", CLAIM_ENGINE,
     .text = "cases with a predivide factor, or units' own factors; "
             "`reduce.predivide`, `reduce.unit-scale`, `error.factors`",
     .asked_by = offers_factors,
     .says = {"! infinite-", "! negative-predivide-", "! nan-predivide-",
              "! negative-factor-of-unit", "! shard-factors"}},
    {"groups-betas", CLAIM_ENGINE,
     .text = "cases with groups that have their own betas, eps and momentum; "
             "`groups.*`",
     .asked_by = has_numbers},
    {"frozen", CLAIM_ENGINE,
     .text = "cases in which some parameters are frozen; `frozen.*`; without "
             "it `shard` must refuse them (`error.unclaimed`)",
     .asked_by = freezes, .says = {"! grad-of-frozen", "! shard-frozen"}},
    {"thaw", CLAIM_ENGINE,
     .text = "scripts that freeze and thaw parameters; `thaw.*`, "
             "`mixed.after-frozen-forward`, `error.freeze`",
     .says = {"\nfreeze ", "\nthaw ", "! freeze-", "! load-without-states"}},
    {"shared", CLAIM_ENGINE,
     .text = "cases with tied parameters; `tied.*`, `error.tied`; without it "
             "`shard` must refuse them (`error.unclaimed`)",
     .asked_by = ties, .says = {"! tied-", "! shard-tied"}},
    {"parameter-units", CLAIM_ENGINE,
     .text = "cases in which some parameters of a module have a unit of their "
             "own, or none; `parameter-units.*`, `error.parameter-units`, "
             "`error.parameter-units-disagree`; without it `shard` must "
             "refuse that (`error.unclaimed`)",
     .asked_by = cuts_modules,
     .says = {"! parameter-unit-", "! shard-parameter-"}},
    {"ignored", CLAIM_ENGINE,
     .text = "cases in which parameters are ignored; `ignored.*`, "
             "`error.ignored-disagree`; without it `shard` must refuse that "
             "(`error.unclaimed`)",
     .asked_by = ignores,
     .says = {"-of-ignored", "! shard-ignored", "! tied-name-ignored"}},
    {"buffers", CLAIM_ENGINE,
     .text = "cases of models that have buffers; `buffer.*`, "
             "`memory.buffers`, `error.unknown-buffer`; without it `shard` "
             "must refuse them (`error.unclaimed`)",
     .asked_by = has_buffers,
     .says = {"! unknown-buffer\n", "! unknown-buffer ", "! shard-buffers"}},
    {"step-in-backward", CLAIM_ENGINE,
     .text = "scripts that give a pass its step ahead; `step-in-backward.*`, "
             "`error.step-in-backward`, `error.step-in-backward-windows`",
     .says = {"backward-step"}},
    {"assign", CLAIM_ENGINE,
     .text = "scripts that assign values; `assign.*`, `error.assign-in-pass`, "
             "`error.assign-range`",
     .says = {"\nassign ", "! assign-"}},
    {"deferred", CLAIM_ENGINE,
     .text = "scripts of models that begin without values, and of ranks that "
             "do not agree who has some; `deferred.*`, `error.deferred`, "
             "`error.values-disagree`; without it `shard` must refuse a model "
             "without values (`error.unclaimed`)",
     .says = {"\ndeferred\n", "! deferred-", "! shard-values"}},
    {"rank0-initial", CLAIM_ENGINE,
     .text = "scripts in which rank 0 alone has initial values; `rank0.*`",
     .says = {"\nrank0\n"}},
    {"summon", CLAIM_ENGINE,
     .text = "scripts that summon one unit, or on rank 0 alone; `summon.*`, "
             "`error.summon`",
     .says = {"\nsummon ", "! summon-", "! deferred-summon"}},
    {"send-values", CLAIM_ENGINE,
     .text = "scripts in which rank 0 sends values that it has in memory; "
             "`send.*`, `error.send`, `error.send-lacking`, "
             "`error.send-disagree`",
     .says = {"\nsend ", "! send-"}},
    {"lenient-load", CLAIM_ENGINE,
     .text = "scripts that load leniently; `checkpoint.lenient`, "
             "`checkpoint.reports-names`",
     .says = {" lenient\n"}},
    {"save-parts", CLAIM_ENGINE,
     .text = "scripts that save parts of a run; `checkpoint.parts`, "
             "`checkpoint.parts-extra`, `error.save-unknown-part`, "
             "`error.load-parts`",
     .says = {" of parameters", " of states", " of buffers", " of extra",
              "! save-unknown-part", "! load-parts"}},
    {"save-dtype", CLAIM_ENGINE,
     .text = "scripts that save parameters in bf16 or fp16; "
             "`checkpoint.export-rounded`, `checkpoint.export-dtype`, "
             "`error.save-dtype`, `error.load-rounded`",
     .says = {" in bf16\n", " in fp16\n", "! save-unknown-dtype",
              "! save-rounded-", "! load-rounded"}},
    {"recompute", CLAIM_ENGINE,
     .text = "cases that compute activations again; `recompute.*`",
     .asked_by = recomputes},
    {"offload", CLAIM_ENGINE,
     .text = "cases in which shards, gradients or states rest on the host; "
             "`offload.*`, `error.offload`, `error.offload-no-host`; without "
             "it `shard` must refuse that (`error.unclaimed`)",
     .asked_by = offloads, .says = {"! shard-offload"}},
    {"loss-scale", CLAIM_ENGINE,
     .text = "scripts that scale the loss; `scale.*`",
     .says = {"\nscale ", "! step-scale-"}},
    {"f32-fma", CLAIM_ENGINE,
     .text = "nothing of an engine in the suite's process: bits are compared "
             "in any case. An adapter is then judged by bounds"},
    {"serial", CLAIM_ENGINE,
     .text = "nothing: an engine with this claim plays all ranks in one "
             "process, as the baseline does"},
    {"devices", CLAIM_ENGINE,
     .text = "nothing: an engine with this claim is not isolated, since it "
             "opens devices, sockets or processes"},
    {"fold-any", CLAIM_ADAPTER,
     .text = "ranks meet in some order, which is not declared; in place of "
             "`fold-rank` and `fold-ring`"},
    {"workload-", CLAIM_ADAPTER, .text = "cases of this workload can be played",
     .begins = true},
    {"wrap-", CLAIM_ADAPTER, .text = "cases of this wrap can be played",
     .begins = true},
    {"graph-", CLAIM_ADAPTER,
     .text = "cases of a random graph that has [this](#random-graphs)",
     .begins = true},
    {"reshard-root", CLAIM_ADAPTER,
     .text = "a root with parameters can be resharded after its forward "
             "(cases that do not keep it)"},
    {"divide-factor", CLAIM_ADAPTER, .text = "another divisor than the world"},
    {"unshard-f32", CLAIM_ADAPTER,
     .text = "in mixed precision, too, all units are unsharded at once in "
             "float32"},
    {"precision-", CLAIM_ADAPTER,
     .text = "cases of this [precision](specification.md#mixed-precision) can "
             "be played, beside `bf16` or `fp16`",
     .begins = true},
    {"again", CLAIM_ADAPTER, .text = "a second life in the same process"},
    {"in-pass", CLAIM_ADAPTER,
     .text = "scripts that do something in the middle of a pass (`at`), or "
             "end there (`left-open`)"},
    {"step-drops", CLAIM_ADAPTER,
     .text = "a step drops the gradients that it has used. Scripts that use "
             "them again (a `pass` or a `step` behind it, without `zero`) are "
             "not asked; of drawn ones the first of the two steps falls away"},
    {"live-bytes", CLAIM_ADAPTER,
     .text = "`memory` is measured as the specification says. Without it "
             "`memory.*` and `run.leaves-nothing` are not claimed"},
    {"late-states", CLAIM_ADAPTER,
     .text = "optimizer states are live from the first step on, and under the "
             "per-parameter layout without padding; else from `shard` on, "
             "with it. `thaw.states-rest` is then not asked"},
    {"ahead-", CLAIM_ADAPTER,
     .text = "whatever a case asks for, it runs ahead by no less than W, 1 to "
             "9 (units gathered early in either phase, and reductions in "
             "flight); with `prefetch`, `memory.prefetch-bound` is asked in "
             "all cases",
     .begins = true},
    {"wire", CLAIM_ADAPTER,
     .text = "`dirty_padding`, `dirty_frozen` and `misplaced` are measured"},
    {"process", CLAIM_ADAPTER, .text = "`new_channels` is measured"},
    {"isolated", CLAIM_ADAPTER,
     .text = "`isolation` is named, and `refused` has the calls that its "
             "processes were refused"},
    {"process-state", CLAIM_ADAPTER,
     .text = "`changes` has what calls changed in their process"},
    {"streams", CLAIM_ADAPTER,
     .text = "`races` and `flights` are recorded from its order of calls. "
             "Without it `stream.*` and `prefetch.*` are not claimed"},
    {"answers", CLAIM_ADAPTER,
     .text = "it makes the wrong calls and records what they are answered "
             "(`misuse`, `options`, `disagree`, `!` in scripts), and the "
             "norms that `clip` asks for"},
    {"timeline", CLAIM_ADAPTER,
     .text = "`timeline` is recorded. Without it `frozen.reshards` is not "
             "claimed"},
    {"dtypes", CLAIM_ADAPTER,
     .text = "`edges` is recorded. Without it `mixed.dtypes-at-points` is not "
             "claimed"},
    {"casts-inputs", CLAIM_ADAPTER,
     .text = "in mixed precision what a unit is given is cast to the dtype of "
             "its parameters; else it is float32"},
    {"casts-outputs", CLAIM_ADAPTER,
     .text = "in mixed precision what a unit returns is cast to the dtype of "
             "its parameters; else it is float32"},
    {.name = NULL},
};

static bool says(const char *text, const char *const words[])
{
    for (uint32_t i = 0; text && i < CLAIM_MOST_WORDS && words[i]; i++) {
        if (strstr(text, words[i])) {
            return true;
        }
    }
    return false;
}

uint32_t case_claims(const struct run_case *c,
                     const char *list[CASE_MAX_CLAIMS])
{
    const char *text = text_of(c);
    uint32_t n = 0;

    for (const struct claim *q = known_claims; q->name; q++) {
        if ((q->asked_by && q->asked_by(c, q->value)) || says(text, q->says)) {
            list[n++] = q->name;
        }
    }
    if (!case_layout_name(c->layout) || !case_strategy_name(c->strategy) ||
        !case_fold_name(c->fold) || !case_optimizer_name(c->optimizer)) {
        list[n++] = "unknown";
    }
    return n;
}

bool claim_is_known(const char *claim)
{
    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->begins ? strncmp(q->name, claim, strlen(q->name)) == 0
                      : strcmp(q->name, claim) == 0) {
            return true;
        }
    }
    return false;
}
