/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_mask.h - what is kept of a drawn script, and its id.
 *
 *     script.7.77                   drawn by generator 7 from the seed 77
 *     script.6.77.9f-2              of its actions those with the numbers 1 to
 *                                   5 and 8; plain: bit 1
 *     script.6.77.9f-2-8            and the first one that is kept says less
 *
 * What is kept is a mask: which actions, which plain choices in place of the
 * header's, and by how much each action says less. Any mask is of a legal
 * script: an action that has become illegal falls away with those that are not
 * kept. docs/scripts.md says more.
 */
#ifndef FSDP_CTS_SCRIPT_MASK_H
#define FSDP_CTS_SCRIPT_MASK_H

#include "script/script_draw.h"

enum {
    SCRIPT_ID_BYTES = 160
};

/* Choices of the header that a mask makes plain; bits. Each comment says what
 * stands in place of the choice. */
enum script_plain {
    SCRIPT_PLAIN_GROUPS = 1u << 0,     /* one */
    SCRIPT_PLAIN_AHEAD = 1u << 1,      /* no running ahead */
    SCRIPT_PLAIN_OPTIMIZER = 1u << 2,  /* sgd */
    SCRIPT_PLAIN_NUMBERS = 1u << 3,    /* those of case_options */
    SCRIPT_PLAIN_MODEL = 1u << 4,      /* mlp.seed */
    SCRIPT_PLAIN_RANKS_1 = 1u << 5,    /* at most 1 rank */
    SCRIPT_PLAIN_RANKS_2 = 1u << 6,    /* at most 2 ranks */
    SCRIPT_PLAIN_RANKS_4 = 1u << 7,    /* at most 4 ranks; hybrid if they fit */
    SCRIPT_PLAIN_STRATEGY = 1u << 8,   /* full-shard */
    SCRIPT_PLAIN_FOLD = 1u << 9,       /* rank */
    SCRIPT_PLAIN_LAYOUT = 1u << 10,    /* flat */
    SCRIPT_PLAIN_WRAP = 1u << 11,      /* layer; graphs keep theirs */
    SCRIPT_PLAIN_KEEP_ROOT = 1u << 12, /* keep-root is off */
    SCRIPT_PLAIN_DIVIDE = 1u << 13,    /* by the world */
    SCRIPT_PLAIN_REDUCED = 1u << 14,   /* every pass is reduced */
    SCRIPT_PLAIN_MICROBATCHES = 1u << 15, /* one; batches are S.0 */
    SCRIPT_PLAIN_SEED = 1u << 16,         /* 1; graphs keep theirs */
    SCRIPT_PLAIN_PRECISION = 1u << 17,    /* all is float32 */
    SCRIPT_PLAIN_SCALE = 1u << 18,        /* the loss is not scaled */
    SCRIPT_PLAIN_RECOMPUTE = 1u << 19,    /* activations are kept */
    SCRIPT_PLAIN_FROZEN = 1u << 20,       /* every parameter is trained */
    SCRIPT_PLAIN_FACTORS = 1u << 21,      /* no predivision, none of a unit */
    SCRIPT_PLAIN_SAME = 1u << 22,         /* groups have the same numbers */
    SCRIPT_PLAIN_TIES = 1u << 23,         /* nothing is tied */
    SCRIPT_PLAIN_VALUES = 1u << 24,       /* lives begin with values */
    SCRIPT_PLAIN_OFFLOAD = 1u << 25,      /* all rests on the device */
    SCRIPT_PLAIN_UNITS = 1u << 26,        /* of a graph: those of modules */
    SCRIPT_N_PLAIN = 27,
};

/* What an action no longer says; bits, whose meaning depends on the verb. Lower
 * bits are tried first. */
enum script_less {
    SCRIPT_LESS_EDITS = 1,   /* pass: gradients are not edited */
    SCRIPT_LESS_SECOND = 2,  /* pass, eval: only the first thing inside stays */
    SCRIPT_LESS_FIRST = 4,   /* that first thing goes, too */
    SCRIPT_LESS_ENDING = 8,  /* the pass is whole */
    SCRIPT_LESS_DECAY = 1,   /* step: no decay */
    SCRIPT_LESS_RATES = 2,   /* one learning rate for all groups */
    SCRIPT_LESS_RATE = 4,    /* the rate is case_default_lr */
    SCRIPT_LESS_P = 1,       /* clip: p is 2 */
    SCRIPT_LESS_NORM = 2,    /* max_norm is inf: nothing is clipped */
    SCRIPT_LESS_STRICT = 4,  /* not strict */
    SCRIPT_LESS_SLICE = 1,   /* assign: all of a parameter at once */
    SCRIPT_LESS_SOURCE = 2,  /* initial: what the parameter began with */
    SCRIPT_LESS_FORM = 1,    /* save: sharded */
    SCRIPT_LESS_PARTS = 2,   /* save: all parts */
    SCRIPT_LESS_DTYPE = 4,   /* save: values are not rounded */
    SCRIPT_LESS_LENIENT = 1, /* load: not lenient */
    SCRIPT_LESS_NAME = 1,    /* again: every parameter has its own name */
    SCRIPT_LESS_RANK0 = 1,   /* summon: of one unit, on every rank */
    SCRIPT_LESS_WORLD = 1,   /* anew: the same world */
    SCRIPT_LESS_PROCESS = 2, /* `again` in place of anew */
    SCRIPT_LESS_TEN = 1,     /* repeat: at most 10 times */
    SCRIPT_LESS_TWO = 2,     /* at most twice */
    SCRIPT_LESS_BITS = 4,
};

/* What is kept of a drawn script. */
struct script_mask {
    uint64_t actions; /* bit i: the i-th action that is written is kept */
    uint32_t plain;   /* enum script_plain */
    uint8_t less[SCRIPT_MOST_DRAWN]; /* enum script_less, by action */
};

/* The mask that keeps everything. */
void script_mask_all(const struct script *drawn, struct script_mask *out);
bool script_mask_same(const struct script_mask *a, const struct script_mask *b);
/*
 * What a mask keeps of a drawn script: a legal script, which may have no action
 * left. *left, which may be NULL, gets the mask without the actions that fell
 * away and without bits that change nothing. *out is to be released whatever is
 * returned: OK or NOMEM.
 */
int script_masked(const struct script *drawn, const struct script_mask *mask,
                  struct script *out, struct script_mask *left,
                  struct fsdp_error *error);

void script_id(uint64_t seed, const struct script *drawn,
               const struct script_mask *mask, char id[SCRIPT_ID_BYTES]);
/* FORMAT: this is no such id, its generator is not known, or script_masked
 * would not leave its mask as it is; NOMEM. `seed` and `mask` may be NULL. */
int script_of_id(const char *id, struct script *out, uint64_t *seed,
                 struct script_mask *mask, struct fsdp_error *error);

/* The first claim that a script needs and that is not in `claims`, the
 * NULL-ended list of an engine's claims; NULL: all are there. */
const char *script_unclaimed(const struct script *s, const char *const *claims);
/*
 * A mask that keeps what an engine with these claims can be asked: an action
 * that needs another claim falls away, or says less, and choices of the header
 * become plain. OK; UNSUPPORTED: the engine does not even claim what is plain
 * (flat, full-shard, fold-rank, sgd), as error says; NOMEM.
 */
int script_project(const struct script *drawn, const char *const *claims,
                   struct script_mask *mask, struct fsdp_error *error);

#endif
