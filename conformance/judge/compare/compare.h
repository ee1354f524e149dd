/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - what requirements share: walking over a record without trusting
 * it, comparing values in bits, and saying where they first differ.
 *
 * Every function that takes a `struct finding *` returns true if all is well
 * and otherwise fills the finding and returns false, so that a requirement
 * reads `return compare_...`. What the record lacks is never skipped: it
 * fails as "not recorded".
 *
 * Walks go by what the oracle says a rank must own, see or send, never by what
 * the record lists; so a record cannot pass by leaving things out.
 */
#ifndef FSDP_CTS_COMPARE_H
#define FSDP_CTS_COMPARE_H

#include "judge/requirement.h"

/* ---- findings ---- */

/* A place; -1 for what does not apply, and everything else is -1. */
struct finding finding_at(const char *stage, int64_t step, int64_t microbatch,
                          int64_t rank);
/* Each stores `at` with its note in *f and returns false. */
bool finding_text(struct finding *f, struct finding at, const char *note);
/* What would be compared with is not there: no failure, and never a pass. */
bool finding_missing(struct finding *f, struct finding at, const char *note);
bool finding_count(struct finding *f, struct finding at, uint64_t got,
                   uint64_t want, const char *note);
bool finding_bytes(struct finding *f, struct finding at, uint64_t got,
                   uint64_t want, const char *note);
bool finding_bits(struct finding *f, struct finding at, float got, float want,
                  const char *note);

/* ---- words ---- */

enum {
    COMPARE_WORDS_BYTES = 64
};

/* Like finding_text, with a note made of parts; cut where it is full. */
bool finding_note(struct finding *f, struct finding at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *compare_parameter_name(const struct expect *e, uint64_t parameter);
/* "an all-gather of unit layers.2" */
void compare_collective_words(const struct expect *e,
                              const struct record_collective *c,
                              char out[COMPARE_WORDS_BYTES]);

/* "runs over", "replicate", "shard"; a NULL name is unknown. */
struct compare_wording {
    const char *verb, *got, *want;
};
/* "collective 3 of the step, an all-gather of unit layers.2, runs over
 * replicate, expected shard"; `index` counts from 0, the words from 1. */
bool finding_collective(const struct expect *e, struct finding *f,
                        struct finding at, const struct record_collective *c,
                        uint32_t index, const struct compare_wording *wording);

/* finding_bytes with the peak of each kind alone, as far as the note
 * reaches. */
bool finding_peak(struct finding *f, struct finding at, uint64_t got,
                  uint64_t want, const char *note,
                  const struct record_memory *memory);

/* "got is want times 2", "got is want divided by 4"; false: the factor is not
 * simple. */
bool compare_factor_words(double got, double want,
                          char out[COMPARE_WORDS_BYTES]);

/* ---- which cases ---- */

/* The engine is to train to the end: not OPTIONS, not DISAGREE, not SHARD. */
bool compare_case_trains(const struct expect *e);
/* Whether any parameter gets a gradient: not where all that have one are
 * frozen, or tied to what is. */
bool compare_any_gradient(const struct expect *e);
/* The same, or plays a script of its own: there are losses. */
bool compare_case_plays(const struct expect *e);
/* The engine is to come to the end, whether it trains or not. */
bool compare_case_shards(const struct expect *e);
/* One life, in which nothing but its steps communicates: all that a rank says
 * of its collectives must fit. */
bool compare_case_lives_once(const struct expect *e);
/* Stages are judged one by one: tensors are recorded, and nothing but
 * training happens (CANCEL and MISUSE have requirements of their own). */
bool compare_case_staged(const struct expect *e);
/* Those, and SHARD: the pieces are recorded as shard has left them. */
bool compare_case_initial(const struct expect *e);
/* The strict profile: no prefetch and no reduction in flight. */
bool compare_case_strict(const struct expect *e);
/* Trains, and more than one rank: there is something to communicate. */
bool compare_case_communicates(const struct expect *e);
/* Some parameter of a unit is frozen from the beginning. */
bool compare_case_freezes(const struct expect *e);
/* Loads a checkpoint. */
bool compare_case_resumes(const struct expect *e);
/* Staged, and on more than one replica. */
bool compare_case_replicated(const struct expect *e);
/* Whether a point of a pass is one of a forward. */
bool compare_is_forward(uint32_t point);
/* Microbatches of a step that are reduced, but for the last one, which always
 * is. */
uint32_t compare_synced_early(const struct expect *e);
/* Steps whose tensors are recorded. */
uint32_t compare_recorded_steps(const struct expect *e);

/* ---- ranks ---- */

/* Rank k, or NULL if the record has none or its files were missing. */
const struct record_rank *compare_rank(const struct record *r, uint32_t k);
struct record_rank *compare_rank_to_spoil(struct record *r, uint32_t k);

/* Whether rank k is to show whole parameters: all ranks are, unless the record
 * is sampled. */
bool compare_is_sampled(const struct record *r, uint32_t k);

/* Calls `check` for every rank of the case. */
bool compare_ranks(const struct expect *e, const struct record *r,
                   bool (*check)(const struct expect *e,
                                 const struct record_rank *rank, uint32_t k,
                                 struct finding *f),
                   struct finding *f);

/* ---- collectives ---- */

/* Calls `check` for every rank and step with what was communicated in it;
 * `at` is that place. */
bool compare_steps(const struct expect *e, const struct record *r,
                   bool (*check)(const struct expect *e,
                                 const struct record_sequence *sequence,
                                 struct finding at, struct finding *f),
                   struct finding *f);
/* The same for every collective of every step; `index` counts from 0. */
bool compare_collectives(const struct expect *e, const struct record *r,
                         bool (*check)(const struct expect *e,
                                       const struct record_collective *c,
                                       uint32_t index, struct finding at,
                                       struct finding *f),
                         struct finding *f);
/* An all-gather of a unit is of the shards of what it owns, each parameter
 * once: flat, or a block of each. `words` say so. Others hold. */
bool compare_gather_of_shard(const struct expect *e,
                             const struct record_collective *c,
                             struct finding at, const char *words,
                             struct finding *f);

/* Sequence `index` of a rank, or NULL if there is none or it is malformed. */
const struct record_sequence *compare_sequence(const struct record_rank *rank,
                                               uint32_t index);
/* What a rank (or NULL) communicated in a step, or NULL. */
const struct record_sequence *
compare_step_sequence(const struct record_rank *rank, uint32_t step);
/* How many collectives of a kind a sequence has. */
uint64_t compare_count(const struct record_sequence *sequence, uint32_t kind);
/* "all-gathers in this step"; of the three kinds that steps are made of. */
const char *compare_kind_words(uint32_t kind);
/* Whether every step has as many collectives of a kind as the oracle says. And
 * the least damage to that: one too few, beyond all that were made ahead; or
 * one, where there is to be none. */
bool compare_kind_count(const struct expect *e, const struct record *r,
                        uint32_t kind, struct finding *f);
bool compare_spoil_kind_count(const struct expect *e, struct record *r,
                              uint32_t kind);
/* Whether two collectives agree in every field. */
bool compare_same_collective(const struct record_collective *a,
                             const struct record_collective *b);
/* The same of what is expected, but for the order in which ranks meet, where
 * none is declared. */
bool compare_as_asked(const struct expect *e,
                      const struct record_collective *got,
                      const struct record_collective *want);
/* How many collectives of a kind a sequence has of a unit. */
uint32_t compare_count_of(const struct record_sequence *sequence, uint32_t kind,
                          uint32_t unit);
/* Whether a collective reduces gradients. */
bool compare_reduces(const struct record_collective *c);
/* Whether it moves that dtype. */
bool compare_moves(const struct expect *e, const struct record_collective *c,
                   uint32_t index, uint32_t dtype, struct finding at,
                   struct finding *f);
/* What rank 0 communicated in step 0, for spoiling, and the first collective
 * of that; NULL if nothing. */
struct record_sequence *compare_sequence_to_spoil(struct record *r);
struct record_collective *compare_collective_to_spoil(struct record *r);

/* ---- tensors ---- */

/* Elements [first, first + n) of a parameter, at one place of a run. */
struct compare_part {
    uint32_t rank, step, microbatch, parameter, unit;
    uint64_t first, n;
    /* A module that has several backwards in a pass leaves a gradient in
     * each: the j-th is recorded from element j * numel on. */
    uint64_t base;
    /* Both sides are the engine's own: the same NaN on both is no difference
     * here; grad.finite and the baseline find it. */
    bool own;
    /* Of an arithmetic of its own: what a sum of zeros begins with is not
     * specified, nor so the sign of a 0. */
    bool any_zero;
    /* Where the baseline has a NaN there must be one, whatever its bits
     * (compare_any_nan). */
    bool any_nan;
    const struct requirement *q; /* whose check this is; NULL: none's */
};
/* Where it is, with its parameter and its unit. */
struct finding finding_at_part(const char *stage, int64_t microbatch,
                               const struct compare_part *part);

/* Calls `check` for every part that the oracle gives to every rank, for steps
 * [from, to). Empty parts are left out. */
bool compare_parts(const struct expect *e, const struct record *r,
                   uint32_t from, uint32_t to,
                   bool (*check)(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f),
                   struct finding *f);

/* The same for a check of row q, which finds it in the part. */
bool compare_parts_of(const struct requirement *q, const struct expect *e,
                      const struct record *r, uint32_t from, uint32_t to,
                      bool (*check)(const struct expect *e,
                                    const struct record *r,
                                    const struct compare_part *part,
                                    struct finding *f),
                      struct finding *f);

/* Calls `check` for every whole parameter on every rank and microbatch that is
 * to show it, for steps [from, to): the form of local stages. Ignored and tied
 * ones are not. */
bool compare_whole(const struct expect *e, const struct record *r,
                   uint32_t from, uint32_t to,
                   bool (*check)(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f),
                   struct finding *f);

/* The same for every local gradient that there must be: of each backward of
 * the parameter's module. */
bool compare_gradients(
    const struct expect *e, const struct record *r, uint32_t from, uint32_t to,
    bool (*check)(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f),
    struct finding *f);

/* The values that a record shows at exactly this part, or NULL. */
const float *compare_values(const struct record *r, uint32_t stage,
                            const struct compare_part *part);
/* The values of the part within rank k's whole parameter, or NULL. */
const float *compare_values_in_whole(const struct expect *e,
                                     const struct record *r, uint32_t k,
                                     uint32_t stage,
                                     const struct compare_part *part);
/* The same of the baseline, which keeps whole parameters under rank 0. */
const float *compare_baseline(const struct expect *e, uint32_t stage,
                              const struct compare_part *part);

/* What a look shows of a parameter, weights and states, and how much of that
 * there is: of the optimizer; of a parameter, which has states where it is
 * trained. */
enum {
    COMPARE_STAGES = 3
};
extern const uint32_t compare_stages[COMPARE_STAGES];
uint32_t compare_n_stages(const struct expect *e);
uint32_t compare_n_stages_of(const struct expect *e,
                             const struct compare_part *part);

/* Compares part->n values in bits. `got` NULL: not recorded, a failure; `want`
 * NULL: missing; a NaN in `want`: a failure. The finding names parameter,
 * element, flat, shard, local index. */
bool compare_equal(const struct expect *e, const struct compare_part *part,
                   uint32_t stage, const float *got, const float *want,
                   struct finding *f);
/* Compares a stage's part with the unsharded run's: as exactly as the case's
 * arithmetic, and what its script makes, let one. */
bool compare_as_baseline(const struct expect *e, const struct record *r,
                         const struct compare_part *part, uint32_t stage,
                         struct finding *f);
/* Weights and states, as far as there are any, with the unsharded run's. */
bool compare_all_as_baseline(const struct expect *e, const struct record *r,
                             const struct compare_part *part,
                             struct finding *f);
/* A stage's part with what the record itself has of it at another stage and
 * step: a NaN may have stayed one. */
bool compare_as_then(const struct expect *e, const struct record *r,
                     const struct compare_part *part, uint32_t stage,
                     uint32_t stage_then, uint32_t step_then,
                     struct finding *f);
/* Whether got is what it is compared with: the same bits, or both are NaN. */
bool compare_same_or_nan(float got, float want);
/* The same for element i of the part. */
bool compare_element(const struct expect *e, const struct compare_part *part,
                     uint32_t stage, uint64_t i, float got, float want,
                     struct finding *f);
/* That a stage's values at this part are not recorded. */
bool compare_missing(const struct compare_part *part, uint32_t stage,
                     struct finding *f);
/* Whether every rank's weights before this step are the baseline's, in bits:
 * from there on the two runs can be compared. */
bool compare_starts_alike(const struct expect *e, const struct record *r,
                          uint32_t step);

/* Compares the part with the same part of the first replica. */
bool compare_replica(const struct expect *e, const struct record *r,
                     const struct compare_part *part, uint32_t stage,
                     struct finding *f);
/* Compares `want`, what the owner of the part holds, with what every rank of
 * its shard group saw there: of RECORD_UNSHARDED that rounded to the unit's
 * parameter dtype. */
bool compare_gathered(const struct expect *e, const struct record *r,
                      const struct compare_part *part, uint32_t stage,
                      const float *want, struct finding *f);

/* The first tensor with values, of a parameter, of which `is` is true, on the
 * last rank that has one; NULL: there is none. */
struct record_tensor *compare_find_tensor(
    const struct expect *e, struct record *r,
    bool (*is)(const struct expect *e, const struct record_tensor *t));
/* Changes its first value by more than any rounding; a NaN, too. False: it is
 * NULL. */
bool compare_spoil_value(struct record_tensor *t);
/* The first tensor with values of a stage in `step` or later, on the last rank
 * that has one; NULL: there is none. */
struct record_tensor *compare_tensor_to_spoil(struct record *r, uint32_t stage,
                                              uint32_t step);
/* Flips the last bit of its first value. */
bool compare_spoil_stage(struct record *r, uint32_t stage, uint32_t step);
/* The same of this step alone. */
bool compare_spoil_step(struct record *r, uint32_t stage, uint32_t step);
/* The same of a parameter that is trained, if there is one: what is frozen is
 * not compared by all. */
bool compare_spoil_trained(const struct expect *e, struct record *r,
                           uint32_t stage, uint32_t step);

/* ---- curves ---- */

/* Loss i (by step, then microbatch) of a record, folded over its ranks; false
 * if a rank lacks it. */
bool compare_loss(const struct expect *e, const struct record *r, uint64_t i,
                  float *out);
/* Whether a NaN of the unsharded run is right: the case's script makes
 * gradients of its own, or is not the suite's, and may let a curve diverge. */
bool compare_any_nan(const struct expect *e);
/* Compares the first n folded losses in bits. */
bool compare_curves(const struct expect *e, const struct record *r,
                    const struct record *other, uint64_t n, struct finding *f);
/* Losses that a case has: steps times microbatches. */
uint64_t compare_n_losses(const struct expect *e);
/* Changes the last loss of rank 0 so that no rounding can hide it. */
bool compare_spoil_curve(const struct expect *e, struct record *r);
/* Whether losses and final weights are those of the same case in which nothing
 * but training happens; of the baseline, where this run has no such record. */
bool compare_undisturbed(const struct expect *e, const struct record *r,
                         struct finding *f);

/*
 * The record of the case that `change` makes of this one; NULL if this run
 * has none, or it did not end well. A requirement that needs it applies only
 * where it is: a case that was to be run and left no good record is judged,
 * and found wanting, by itself.
 */
const struct record *compare_companion(const struct expect *e,
                                       void (*change)(struct run_case *c));
/* Whether there is one, of a case that its engine claims: a bundle has no
 * others, and elsewhere, too, they are compared with nothing. */
bool compare_twin(const struct expect *e, void (*change)(struct run_case *c));
/* The record of this case on one rank, whatever its wrap and strategy, or
 * NULL. */
const struct record *compare_companion_single(const struct expect *e);

/* ---- answers to wrong calls ---- */

/* The first answer of this name; NULL: there is none, or no rank. */
struct record_answer *compare_find_answer(const struct record_rank *rank,
                                          const char *name);
/* Every rank answered every one of these as wanted. */
bool compare_answers(const struct expect *e, const struct record *r,
                     const struct compare_answer *answer, uint32_t n,
                     struct finding *f);
/* The last answer that the rank gave goes by this name; false: it gave none. */
bool compare_spoil_name(struct record_rank *rank, const char *name);
/* Turns the last rank's first of these answers into INTERNAL. */
bool compare_spoil_answers(struct record *r,
                           const struct compare_answer *answer, uint32_t n);

#endif
