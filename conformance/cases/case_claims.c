/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_claims.c - every capability that can be claimed, and from a case to
 * those that it needs. The strings are those of engine.h and are written out
 * here: they are a contract with engines, while the names in ids are the
 * suite's own. The lint claims_tables compares this table with engine.h and
 * with the tables in the docs.
 */
#include "cases/case_claims.h"
#include "cases/case_factors.h"
#include "cases/case_precision.h"
#include "cases/case_script.h"

#include <string.h>

/* A model that is only sharded is not folded, and not stepped. */
static bool trains_with(const struct run_case *c, uint32_t field,
                        uint32_t value)
{
    return c->scenario != CASE_SHARD && field == value;
}

/* Of who loads and of who has saved. */
static bool has_layout(const struct run_case *c, uint32_t layout)
{
    struct run_case saver;

    return c->layout == layout ||
           (case_saver(c, &saver) && saver.layout == layout);
}

static bool has_strategy(const struct run_case *c, uint32_t strategy)
{
    return c->strategy == strategy;
}

static bool has_fold(const struct run_case *c, uint32_t fold)
{
    return trains_with(c, c->fold, fold);
}

static bool has_optimizer(const struct run_case *c, uint32_t optimizer)
{
    return trains_with(c, c->optimizer, optimizer);
}

/* Whether the case plays a script of its own with these words in its text. */
static bool says(const struct run_case *c, const char *words)
{
    const struct case_script *s =
        case_is_script(c) ? case_script_find(c->script) : NULL;

    return s && strstr(s->text, words);
}

/* Or a script does the same, or makes a call of it that must be refused. */
static bool has_scenario(const struct run_case *c, uint32_t scenario)
{
    enum {
        MOST = 5
    };
    static const char *const words[CASE_N_SCENARIOS][MOST] = {
        [CASE_EVAL] = {"\neval ", "! end-of-another"},
        [CASE_CANCEL] = {" until "},
        [CASE_SUMMON] = {"\nsummon", "\nunshard\n", "! unshard-all-",
                         "! reshard-all-", "! deferred-unshard-all"},
        [CASE_CLIP] = {"\nclip ", "! clip-", "-then-clip"},
        [CASE_GROUPS] = {"\ngroups "},
        [CASE_RESUME_FULL] = {" full\n", " full-rank0"},
        [CASE_RESUME_LOCAL] = {" local\n"}};

    for (uint32_t i = 0; i < MOST && words[scenario][i]; i++) {
        if (says(c, words[scenario][i])) {
            return true;
        }
    }
    return c->scenario == scenario;
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
    return c->frozen != WORKLOAD_TRAINS_ALL || says(c, "! grad-of-frozen") ||
           says(c, "! shard-frozen");
}

static bool thaws(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, "\nfreeze ") || says(c, "\nthaw ") || says(c, "! freeze-") ||
           says(c, "! load-without-states");
}

static bool ties(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_is_tied(c) || says(c, "! tied-") || says(c, "! shard-tied");
}

static bool cuts_modules(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->wrap == CASE_WRAP_APART || c->wrap == CASE_WRAP_IGNORE ||
           c->wrap == CASE_WRAP_SCATTER || says(c, "! parameter-unit-") ||
           says(c, "! shard-parameter-");
}

static bool ignores(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->wrap == CASE_WRAP_IGNORE || says(c, "-of-ignored") ||
           says(c, "! shard-ignored") || says(c, "! tied-name-ignored");
}

static bool has_buffers(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_has_buffers(c) || says(c, "! unknown-buffer\n") ||
           says(c, "! unknown-buffer ") || says(c, "! shard-buffers");
}

static bool steps_in_backward(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, "backward-step");
}

static bool assigns(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, "\nassign ") || says(c, "! assign-");
}

static bool defers(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, "\ndeferred\n") || says(c, "! deferred-") ||
           says(c, "! shard-values");
}

static bool sends_initial(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, "\nrank0\n");
}

static bool leaves_unreduced(const struct run_case *c, uint32_t value)
{
    (void)value;
    for (uint32_t b = 0; b < c->microbatches && b < CASE_MAX_MICROBATCHES;
         b++) {
        if (c->sync[b] == 0) {
            return true;
        }
    }
    return says(c, " n\n") || says(c, " n at ") || says(c, "sync off") ||
           says(c, " sync 0");
}

/* Scenarios that resume save shards, unless they are about another form. */
static bool saves_shards(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, " sharded") || says(c, "! save-") || says(c, "! wait-") ||
           says(c, "! deferred-save") ||
           (case_resumes(c) && c->scenario != CASE_RESUME_FULL &&
            c->scenario != CASE_RESUME_LOCAL);
}

static bool loads(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_resumes(c) || says(c, "\nload ") || says(c, "! load-");
}

static bool runs_ahead(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->prefetch_forward != 0 || c->prefetch_backward != 0 ||
           c->reduces_in_flight != 0 || says(c, "! prefetch-") ||
           says(c, "! reduces-beyond");
}

static bool scales_loss(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, "\nscale ") || says(c, "! step-scale-");
}

static bool controls_units(const struct run_case *c, uint32_t value)
{
    (void)value;
    static const char *const words[] = {"\nset ",           "! set-",
                                        "unshard-unknown-", "unshard-while-",
                                        "reshard-unknown-", "reshard-while-",
                                        "reshard-in-",      "reshard-kept",
                                        "nshard 0",         "reshard 0"};

    for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (says(c, words[i])) {
            return true;
        }
    }
    return false;
}

static bool keeps_partials(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, " all-reduce ") || says(c, "! step-with-partials");
}

static bool turns_factors(const struct run_case *c, uint32_t value)
{
    (void)value;
    return says(c, "divide-factor ") || says(c, "! set-divide-") ||
           says(c, "! set-predivide-") || says(c, "! set-factor-");
}

static bool offers_factors(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_predivide(c) != 0.0f || c->factors == CASE_UNIT_FACTORS ||
           says(c, "! infinite-") || says(c, "! negative-predivide-") ||
           says(c, "! nan-predivide-") ||
           says(c, "! negative-factor-of-unit") || says(c, "! shard-factors");
}

/* Whether a setting of the case's script has a number for each group. */
static bool says_each(const struct run_case *c, const char *setting)
{
    const struct case_script *s =
        case_is_script(c) ? case_script_find(c->script) : NULL;
    const char *at = s ? strstr(s->text, setting) : NULL;

    return at && memchr(at, ',', strcspn(at + 1, "\n") + 1);
}

static bool has_numbers(const struct run_case *c, uint32_t value)
{
    (void)value;
    return case_has_numbers(c) || says_each(c, "\nbetas ") ||
           says_each(c, "\neps ") || says_each(c, "\nmomentum ");
}

static bool has_groups(const struct run_case *c, uint32_t scenario)
{
    return has_scenario(c, scenario) || case_groups(c) > 1;
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

static bool offloads(const struct run_case *c, uint32_t value)
{
    (void)value;
    return c->offload != CASE_NOT_OFFLOADED || says(c, "! shard-offload");
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
    {"shard-grad-op", CLAIM_ENGINE, .text = "cases of this strategy",
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
     .asked_by = leaves_unreduced},
    {"eval", CLAIM_ENGINE, .text = "cases that evaluate",
     .asked_by = has_scenario, .value = CASE_EVAL},
    {"cancel", CLAIM_ENGINE, .text = "cases that cancel a pass",
     .asked_by = has_scenario, .value = CASE_CANCEL},
    {"unshard-all", CLAIM_ENGINE, .text = "cases that summon all parameters",
     .asked_by = has_scenario, .value = CASE_SUMMON},
    {"clip", CLAIM_ENGINE,
     .text = "cases that clip gradients; `clip.*` and `error.clip-arguments`",
     .asked_by = has_scenario, .value = CASE_CLIP},
    {"groups", CLAIM_ENGINE,
     .text = "cases with several parameter groups; `step.*` goes by the "
             "numbers of each",
     .asked_by = has_groups, .value = CASE_GROUPS},
    {"save-full", CLAIM_ENGINE,
     .text = "cases that save everything gathered, and resume",
     .asked_by = has_scenario, .value = CASE_RESUME_FULL},
    {"save-local", CLAIM_ENGINE,
     .text = "cases that save flat shards as they are, and resume",
     .asked_by = has_scenario, .value = CASE_RESUME_LOCAL},
    {"save-sharded", CLAIM_ENGINE, .text = "cases that save shards, and resume",
     .asked_by = saves_shards},
    {"load", CLAIM_ENGINE,
     .text = "all cases that resume, and the requirements of checkpoints",
     .asked_by = loads},
    {"prefetch", CLAIM_ENGINE,
     .text = "cases that ask for running ahead, `memory.prefetch-bound`, "
             "`prefetch.*` "
             "and `error.options-ahead`",
     .asked_by = runs_ahead},
    {"strict-memory", CLAIM_ENGINE,
     .text = "the requirements that measure the strict profile to the byte "
             "(`memory.peak-*`, `comm.order`, ...); no case"},
    {"strict-storage", CLAIM_ENGINE,
     .text = "`memory.storage-total`, which measures what is allocated in the "
             "strict "
             "profile; no case"},
    {"scripts", CLAIM_ENGINE,
     .text = "scripts that are drawn: `run --scripts` plays none. Of an "
             "adapter: cases that play a script of their own"},
    {"bf16", CLAIM_ENGINE,
     .text = "cases with bf16 parameters, gradients or reductions, and "
             "`mixed.*`; `shard` must then refuse a bf16 `param_dtype` or "
             "`reduce_dtype` "
             "(`error.unclaimed-dtype`, `error.unclaimed`)",
     .asked_by = has_dtype, .value = FSDP_DTYPE_BF16},
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
     .asked_by = controls_units},
    {"partial-replicas", CLAIM_ENGINE,
     .text = "scripts in which replicas do not meet in every pass; "
             "`control.all-reduce`, `control.partial-sum`, "
             "`error.step-with-partials`",
     .asked_by = keeps_partials},
    {"factor-controls", CLAIM_ENGINE,
     .text = "scripts that `set` a unit's divide or predivide factor; "
             "`control.factor`, `error.control-factors`",
     .asked_by = turns_factors},
    {"unit-factors", CLAIM_ENGINE,
     .text = "cases with a predivide factor, or units' own factors; "
             "`reduce.predivide`, `reduce.unit-scale`, `error.factors`",
     .asked_by = offers_factors},
    {"groups-betas", CLAIM_ENGINE,
     .text = "cases with groups that have their own betas, eps and momentum; "
             "`groups.*`",
     .asked_by = has_numbers},
    {"frozen", CLAIM_ENGINE,
     .text =
         "cases in which some parameters are frozen; `frozen.*`; without it "
         "`shard` must refuse them (`error.unclaimed`)",
     .asked_by = freezes},
    {"thaw", CLAIM_ENGINE,
     .text = "scripts that freeze and thaw parameters; `thaw.*`, "
             "`mixed.after-frozen-forward`, `error.freeze`",
     .asked_by = thaws},
    {"shared", CLAIM_ENGINE,
     .text = "cases with tied parameters; `tied.*`, `error.tied`; without it "
             "`shard` must refuse them (`error.unclaimed`)",
     .asked_by = ties},
    {"parameter-units", CLAIM_ENGINE,
     .text = "cases in which some parameters of a module have a unit of their "
             "own, or none; `parameter-units.*`, `error.parameter-units`, "
             "`error.parameter-units-disagree`; without it `shard` must refuse "
             "that (`error.unclaimed`)",
     .asked_by = cuts_modules},
    {"ignored", CLAIM_ENGINE,
     .text = "cases in which parameters are ignored; `ignored.*`, "
             "`error.ignored-disagree`; without it `shard` must refuse that "
             "(`error.unclaimed`)",
     .asked_by = ignores},
    {"buffers", CLAIM_ENGINE,
     .text =
         "cases of models that have buffers; `buffer.*`, "
         "`memory.buffers`, `error.unknown-buffer`; without it `shard` must "
         "refuse them (`error.unclaimed`)",
     .asked_by = has_buffers},
    {"step-in-backward", CLAIM_ENGINE,
     .text = "scripts that give a pass its step ahead; `step-in-backward.*`, "
             "`error.step-in-backward`, `error.step-in-backward-windows`",
     .asked_by = steps_in_backward},
    {"assign", CLAIM_ENGINE,
     .text = "scripts that assign values; `assign.*`, `error.assign-in-pass`, "
             "`error.assign-range`",
     .asked_by = assigns},
    {"deferred", CLAIM_ENGINE,
     .text = "scripts of models that begin without values, and of ranks that "
             "do not agree who has some; `deferred.*`, `error.deferred`, "
             "`error.values-disagree`; without it `shard` must refuse a model "
             "without values (`error.unclaimed`)",
     .asked_by = defers},
    {"rank0-initial", CLAIM_ENGINE,
     .text = "scripts in which rank 0 alone has initial values; `rank0.*`",
     .asked_by = sends_initial},
    {"recompute", CLAIM_ENGINE,
     .text = "cases that compute activations again; `recompute.*`",
     .asked_by = recomputes},
    {"offload", CLAIM_ENGINE,
     .text = "cases in which shards, gradients or states rest on the host; "
             "`offload.*`, `error.offload`, `error.offload-no-host`; without "
             "it `shard` must refuse that (`error.unclaimed`)",
     .asked_by = offloads},
    {"loss-scale", CLAIM_ENGINE,
     .text = "scripts that scale the loss; `scale.*`", .asked_by = scales_loss},
    {"f32-fma", CLAIM_ENGINE,
     .text = "nothing of an engine in the suite's process: bits are compared "
             "in any "
             "case. An adapter is then judged by bounds"},
    {"serial", CLAIM_ENGINE,
     .text = "nothing: who claims it plays all ranks in one process, as the "
             "baseline "
             "does"},
    {"fold-any", CLAIM_ADAPTER,
     .text = "ranks meet in some order, which is not declared; in place of "
             "`fold-rank` and `fold-ring`"},
    {"workload-", CLAIM_ADAPTER, .text = "cases of this workload can be played",
     .begins = true},
    {"wrap-", CLAIM_ADAPTER, .text = "cases of this wrap can be played",
     .begins = true},
    {"reshard-root", CLAIM_ADAPTER,
     .text = "a root with parameters can be resharded after its forward (cases "
             "that "
             "do not keep it)"},
    {"divide-factor", CLAIM_ADAPTER, .text = "another divisor than the world"},
    {"precision-", CLAIM_ADAPTER,
     .text = "cases of this [precision](specification.md#mixed-precision) can "
             "be played, beside `bf16` or `fp16`",
     .begins = true},
    {"again", CLAIM_ADAPTER, .text = "a second life in the same process"},
    {"in-pass", CLAIM_ADAPTER,
     .text = "scripts that do something in the middle of a pass (`at`)"},
    {"live-bytes", CLAIM_ADAPTER,
     .text = "`memory` is measured as the specification says. Without it "
             "`memory.*` "
             "and `run.leaves-nothing` are not claimed"},
    {"late-states", CLAIM_ADAPTER,
     .text = "optimizer states are live from the first step on, and under the "
             "per-parameter layout without padding; else from `shard` on, "
             "with it. `thaw.states-rest` is then not asked"},
    {"ahead-", CLAIM_ADAPTER,
     .text =
         "whatever a case asks for, it runs ahead by no less than W, 1 to 9 "
         "(units gathered early in either phase, and reductions in "
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
             "Without it "
             "`stream.*` and `prefetch.*` are not claimed"},
    {"answers", CLAIM_ADAPTER,
     .text = "it makes the wrong calls and records what they are answered "
             "(`misuse`, "
             "`options`, `disagree`, `!` in scripts), and the norms that "
             "`clip` asks for"},
    {"timeline", CLAIM_ADAPTER,
     .text = "`timeline` is recorded. Without it `frozen.reshards` is not "
             "claimed"},
    {.name = NULL},
};

uint32_t case_claims(const struct run_case *c,
                     const char *list[CASE_MAX_CLAIMS])
{
    uint32_t n = 0;

    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->asked_by && q->asked_by(c, q->value)) {
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
