/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case.h - a case: one configuration of workload, strategy and world that an
 * engine runs, and from whose record requirements are judged.
 *
 * A case is plain data and has no pointers, so that it can be compared,
 * hashed and written. Its id is made of its fields alone.
 */
#ifndef FSDP_CTS_CASE_H
#define FSDP_CTS_CASE_H

#include "models/data.h"

#include <fsdp/engine.h>
#include <stddef.h>

enum case_strategy {
    CASE_FULL_SHARD = 0,
    CASE_SHARD_GRAD_OP = 1,
    CASE_NO_SHARD = 2,
    CASE_HYBRID_SHARD = 3,
    CASE_HYBRID_SHARD_ZERO2 = 4,
    CASE_N_STRATEGIES = 5,
};

enum case_wrap {
    CASE_WRAP_WHOLE = 0, /* one unit */
    CASE_WRAP_LAYER = 1, /* each leaf module with parameters */
    CASE_WRAP_PAIR = 2,  /* two consecutive leaves a unit */
    CASE_WRAP_SIZE = 3,  /* by size: a quarter of the model */
    CASE_WRAP_BLOCK = 4, /* by class "Block" or "Linear"; the rest: root */
    CASE_WRAP_HEAD = 5,  /* by hand: the last leaf alone; the rest: root */
    CASE_WRAP_DRAWN = 6, /* the units that were drawn with the model */
    /* As BLOCK, but where a unit also has frozen parameters, its trainable ones
     * get a unit of their own. */
    CASE_WRAP_APART = 7,
    /* As BLOCK, but frozen vectors are in no unit: they are ignored. */
    CASE_WRAP_IGNORE = 8,
    /* As LAYER, or DRAWN, but some parameters are in the unit behind their
     * module's. */
    CASE_WRAP_SCATTER = 9,
    CASE_N_WRAPS = 10,
};

/* What the driver does with the engine. */
enum case_scenario {
    CASE_TRAIN = 0,    /* trains */
    CASE_EVAL = 1,     /* trains, with an evaluation pass after each step */
    CASE_CANCEL = 2,   /* trains; before each step a pass is cancelled */
    CASE_MISUSE = 3,   /* trains; makes wrong calls on the way (answers) */
    CASE_OPTIONS = 4,  /* offers options that do not fit (answers) */
    CASE_DISAGREE = 5, /* rank 0 is given another fold than the others */
    CASE_SUMMON = 6,   /* trains, with unshard_all and reshard_all between */
    CASE_AGAIN = 7,    /* trains, destroys, trains again: the same record */
    /* Trains half of the steps, saves and destroys; then shards anew, loads and
     * trains the rest. The three save in the three forms: shards, everything
     * gathered, flat shards as they are. */
    CASE_RESUME = 8,
    CASE_RESUME_FULL = 9,
    CASE_RESUME_LOCAL = 10,
    /* The same, but the checkpoint was saved by half (GROW) or twice (SHRINK)
     * as many ranks, under another strategy and wrap. Under FSDP_FOLD_TREE
     * alone. */
    CASE_GROW = 11,
    CASE_SHRINK = 12,
    /* Trains; before each step gradients are measured, and clipped
     * (case_clip). */
    CASE_CLIP = 13,
    /* Trains; parameters are in two groups (case_group_of). */
    CASE_GROUPS = 14,
    /* Shards, looks at the pieces, and destroys: for an engine that can do no
     * more yet. `run --level layout` makes such cases of the manifest's
     * (case_sharded); the manifest itself has none. */
    CASE_SHARD = 15,
    /* Plays a script (case_script.h). Each step of its record is one action of
     * the script, with a loss if that action is a pass. */
    CASE_SCRIPT = 16,
    CASE_N_SCENARIOS = 17,
};

/* Which dtypes units have (case_precision.h). Ids leave f32 out. */
enum case_precision {
    CASE_F32 = 0,
    CASE_BF16 = 1,            /* parameters bf16, all else float32 */
    CASE_BF16_REDUCE = 2,     /* and the reduction bf16, and its sums */
    CASE_BF16_SUM = 3,        /* but its sums float32 */
    CASE_REDUCE_BF16 = 4,     /* the reduction alone is bf16 */
    CASE_BF16_ACCUMULATE = 5, /* adds up in bf16, reduces in float32 */
    CASE_FP16 = 6,
    CASE_FP16_REDUCE_F32 = 7,
    CASE_UNITS = 8, /* every third unit float32, every third float16 */
    CASE_DEFAULTS =
        9, /* units of three kinds; leaves out dtypes that have a default */
    CASE_REDUCE_BF16_PENDING = 10, /* REDUCE_BF16, and pending sums bf16 too */
    CASE_N_PRECISIONS = 11,
};

/* What gradients are divided by, and which numbers parameter groups have of
 * their own (case_factors.h). Ids leave USUAL_FACTORS out. */
enum case_factors {
    CASE_USUAL_FACTORS = 0,
    CASE_PRE2 = 1, /* predivided by 2, which is exact */
    CASE_PRE3 = 2,
    CASE_UNIT_FACTORS = 3, /* two of three units have factors of their own */
    CASE_ONE_GROUP = 4,    /* one group, with its own betas, eps and momentum */
    CASE_EMPTY_GROUP = 5,  /* three such groups, one of them empty */
    CASE_OWN_GROUPS = 6,   /* five such groups */
    CASE_N_FACTORS = 7,
};

/* What units keep on the host. Ids leave NOT_OFFLOADED out. */
enum case_offload {
    CASE_NOT_OFFLOADED = 0,
    CASE_OFFLOAD_ALL = 1,
    CASE_OFFLOAD_OPTIMIZER = 2,
    CASE_OFFLOAD_PARAMS = 3,
    CASE_OFFLOAD_LESS = 4, /* all, but three of four units say otherwise */
    CASE_OFFLOAD_SOME = 5, /* nothing, but three of four units say otherwise */
    CASE_N_OFFLOADS = 6,
};

enum {
    CASE_MAX_MICROBATCHES = 4,
    CASE_MAX_RANKS = 512,
    /* A larger world has the cases of large_worlds.txt alone. */
    CASE_USUAL_RANKS = 64,
    CASE_MAX_STEPS = 100000,
    CASE_SCRIPT_NAME_BYTES = 28,
    CASE_MAX_AHEAD = 64, /* the most of each option of running ahead */
    /* The values of fields that an id does not mention. */
    CASE_DEFAULT_SEED = 1,
    CASE_DEFAULT_STEPS = 4,
    CASE_DEFAULT_RECORDED_STEPS = 2,
    /* The grains of a microbatch under FSDP_FOLD_TREE: 8 in worlds whose size
     * divides 8, and otherwise 64 (case_grains). */
    CASE_GRAINS = 8,
    CASE_MANY_GRAINS = 64,
};

struct run_case {
    char workload[16];
    char size[16];
    uint32_t data; /* enum workload_data */
    uint32_t scenario;
    uint64_t seed;
    uint32_t strategy;
    uint32_t ranks;    /* K >= 1 */
    uint32_t replicas; /* R: 1 unless HYBRID (2 <= R < K), K for NO_SHARD */
    uint32_t layout;   /* enum fsdp_layout */
    uint32_t wrap;
    uint32_t fold;   /* enum fsdp_fold */
    uint32_t grains; /* case_grains */
    uint32_t keep_root;
    uint32_t microbatches;                /* a step: 1..4 */
    uint32_t sync[CASE_MAX_MICROBATCHES]; /* 1: reduced; the last is 1 */
    uint32_t optimizer;
    float lr, weight_decay;
    float divide_factor; /* 0: the world */
    uint32_t prefetch_forward, prefetch_backward, reduces_in_flight;
    uint32_t recompute; /* enum workload_recompute */
    uint32_t precision; /* enum case_precision */
    uint32_t frozen;    /* enum workload_frozen */
    uint32_t factors;   /* enum case_factors */
    uint32_t offload;   /* enum case_offload */
    uint32_t steps;
    uint32_t recorded_steps; /* tensors are recorded for steps [0, this) */
    /* The name of the script if the scenario is SCRIPT, else empty. In ids it
     * stands in the scenario's place. */
    char script[CASE_SCRIPT_NAME_BYTES];
};

/* "mlp.seed.natural.full-shard.k4.flat.layer.rank.s.sgd", then each field that
 * is not at its default: "k8r2" are 8 ranks in 2 replicas, "ns" are two
 * microbatches of which the second is reduced. An id has lower case letters,
 * digits, dots and hyphens. */
enum {
    CASE_ID_BYTES = 240
};
void case_id(const struct run_case *c, char id[CASE_ID_BYTES]);

/* The case that has this id; false if no case has it. */
bool case_of_id(const char *id, struct run_case *out);

/* Names of enum values, as in ids; NULL out of range. */
const char *case_strategy_name(uint32_t strategy);
const char *case_wrap_name(uint32_t wrap);
const char *case_scenario_name(uint32_t scenario);
const char *case_fold_name(uint32_t fold);
const char *case_optimizer_name(uint32_t optimizer);
const char *case_layout_name(uint32_t layout);
const char *case_data_name(uint32_t data);
const char *case_recompute_name(uint32_t recompute);
const char *case_frozen_name(uint32_t frozen);
const char *case_precision_name(uint32_t precision);
const char *case_factors_name(uint32_t factors);
const char *case_offload_name(uint32_t offload);

/* The value that one of the functions above gives this name to. */
bool case_value(const char *(*name)(uint32_t), const char *text, uint32_t *out);

/* Which microbatches are reduced, "nns"; the fewest digits that give x back
 * when they are read, without a plus sign. */
void case_sync_text(const struct run_case *c,
                    char text[CASE_MAX_MICROBATCHES + 1]);
enum {
    CASE_FLOAT_BYTES = 24
};
void case_float_text(float x, char text[CASE_FLOAT_BYTES]);

/* The learning rate of a case that asks for no other. */
float case_default_lr(const struct run_case *c);

/* Whether the scenario trains: the others are about the engine's answers alone,
 * or about the pieces that shard makes. */
bool case_trains(const struct run_case *c);

/* The case (scenario SHARD) that shards c's model as c does and does nothing
 * else. Many cases have the same one. */
void case_sharded(const struct run_case *c, struct run_case *out);
/* Whether the case plays a script. */
bool case_is_script(const struct run_case *c);
/* Whether its model is a random graph. */
#define CASE_GRAPH "graph"
bool case_is_graph(const struct run_case *c);
/* Whether some parameters are in another unit than their module, or in none;
 * and whether some are in none. */
bool case_has_own_units(const struct run_case *c);
bool case_ignores(const struct run_case *c);
/* Whether some microbatch of a step is not reduced. */
bool case_leaves_unreduced(const struct run_case *c);
/* How many losses each step of the case's record has: one for each microbatch,
 * and a single one if the case plays a script. */
uint32_t case_losses_a_step(const struct run_case *c);

/* Whether the case is run once more, with isolated ranks, to weigh the memory
 * of their processes. These are cases with a model that is large enough, in
 * each strategy, and a run that is long enough. */
bool case_is_weighed(const struct run_case *c);

/* Whether the scenario saves and loads, which it does after half of the
 * steps. */
bool case_resumes(const struct run_case *c);
/* GROW, SHRINK: the case of the ranks that save. False: in this scenario the
 * case's own ranks save. */
bool case_saver(const struct run_case *c, struct run_case *out);

/* How many parameter groups the case has, which group a parameter is in, and
 * the numbers of each group. There is more than one group only in GROUPS, or
 * where groups have numbers of their own (case_factors.h). */
enum {
    CASE_MAX_GROUPS = 5
};
uint32_t case_groups(const struct run_case *c);
uint32_t case_group_of(const struct run_case *c, uint32_t parameter);
float case_group_lr(const struct run_case *c, uint32_t group);
float case_group_decay(const struct run_case *c, uint32_t group);

/* CLIP: the norm by which a step's gradients are clipped. */
void case_clip(const struct run_case *c, uint32_t step, struct fsdp_clip *out);
/* The norms that are asked for before the clipping: of p = 1, 2 and
 * infinity. */
enum {
    CASE_N_NORMS = 3,
    CASE_MOST_CLIPPED = 128 /* recorded steps: each has four answers */
};
extern const float case_norm_p[CASE_N_NORMS];
/* The name under which the record keeps one of these norms, or (n =
 * CASE_N_NORMS) the norm that the call that clips returns. The status of that
 * record is the bits of the norm. */
enum {
    CASE_NORM_BYTES = 32
};
void case_norm_name(uint32_t n, uint32_t step, char name[CASE_NORM_BYTES]);

/* NULL if c is well formed: every value in its range, and the fields agree.
 * Else a sentence that says what is wrong. Whether its workload exists is
 * for case_model_make. */
const char *case_check(const struct run_case *c);

/* The grains of a microbatch in a world of so many ranks under FSDP_FOLD_TREE;
 * 0: that fold does not allow such a world. Under another fold 0. */
uint32_t case_grains(uint32_t fold, uint32_t ranks);

/* Shard degree S = K / R. */
uint32_t case_shard_degree(const struct run_case *c);

/* Whether some parameters of the case's model are tied. */
bool case_is_tied(const struct run_case *c);
/* Whether the case may recompute a module that has no backward, in a window of
 * its own. Then what is reduced and stepped depends on what is recomputed. */
bool case_recomputes_alone(const struct run_case *c);

/* Whether its model has buffers. */
bool case_has_buffers(const struct run_case *c);

/* What a unit says of its own offload (model.h); 0: nothing, as every unit of a
 * case in which units do not differ. */
uint32_t case_offload_of_unit(const struct run_case *c, uint32_t unit);

/* The options that an engine is given for c. (The extents of its mesh are
 * {replicas, case_shard_degree}.) */
void case_options(const struct run_case *c, struct fsdp_options *out);

/* The key of the unsharded run that c must equal: two cases with the same key
 * share one baseline. The key is a file name. */
void case_baseline_key(const struct run_case *c, char key[CASE_ID_BYTES]);

/* A list of cases; manifest_release frees it. Zeroed, it is empty. */
struct case_list {
    struct run_case *c;
    uint32_t n;
};
bool case_list_has(const struct case_list *list, const struct run_case *c);
/* Adds a case, unless the list has it already. NOMEM. */
int case_list_add(struct case_list *list, const struct run_case *c);
/* The cases of a text that has an id a line, among empty lines and comments,
 * which begin with #. INTERNAL: a line is no id, or is there twice; NOMEM. The
 * error names the line, and the list is empty. */
int case_list_read(const char *name, const char *text, struct case_list *out,
                   struct fsdp_error *error);

/*
 * The manifest: every case of the suite, in a fixed order (cases.txt), pinned
 * by count and SHA-256. Every pair of values of two axes that can occur
 * together does (case_pairs_test.c). Fails as case_list_read does.
 */
int manifest_make(struct case_list *out, struct fsdp_error *error);
/* Adds the cases of a world size to a list that has no case of that size, as
 * the manifest has none of 5 ranks, or a single one, as of 16; else adds
 * nothing. `ranks` is from 1 to CASE_MAX_RANKS. A world beyond CASE_USUAL_RANKS
 * has a dozen cases, which do not cover every pair of values. */
int manifest_add_world(uint32_t ranks, struct case_list *list,
                       struct fsdp_error *error);
/* The cases of the golden data (golden.txt). */
int manifest_golden(struct case_list *out, struct fsdp_error *error);
void manifest_release(struct case_list *list);
/* The unsharded runs that these cases are compared with, each once;
 * manifest_release frees the list. NOMEM. */
int case_baselines(const struct case_list *cases, struct case_list *out);
/* The hash of all ids, one a line, ended by LF, followed by each script of the
 * suite: a line with its name, then its text. */
extern const char manifest_sha256[];
extern const uint32_t manifest_count;

#endif
