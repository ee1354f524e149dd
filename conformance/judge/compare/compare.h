/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - what requirements share: walking over a record without trusting
 * it, comparing values in bits, and saying where they first differ.
 *
 * Every function that takes a `struct finding *` returns true if all is well;
 * else it fills the finding and returns false, so that a requirement reads
 * `return compare_...`. A value that the record lacks is never skipped: it
 * fails as "not recorded".
 *
 * Walks go by what the oracle says a rank must own, see or send, never by what
 * the record lists; so a record cannot pass by leaving things out.
 */
#ifndef FSDP_CTS_COMPARE_H
#define FSDP_CTS_COMPARE_H

#include "judge/requirement.h"

/* ---- findings ---- */

/* A place in a run; a number that does not apply is -1, and so is each that is
 * not given here. */
struct finding finding_at(const char *stage, int64_t step, int64_t microbatch,
                          int64_t rank);
/* Each stores `at`, with a note, in *f, and returns false. */
bool finding_text(struct finding *f, struct finding at, const char *note);
/* The other side of the comparison is missing: that is no failure, but never a
 * pass. */
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

/* Like finding_text, with a note that is printed from its parts and cut if it
 * is too long. */
bool finding_note(struct finding *f, struct finding at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *compare_parameter_name(const struct expect *e, uint64_t parameter);
/* "an all-gather of unit layers.2" */
void compare_collective_words(const struct expect *e,
                              const struct record_collective *c,
                              char out[COMPARE_WORDS_BYTES]);

/* "runs over", "replicate", "shard": how a field of a collective is said; a
 * NULL name is unknown. */
struct compare_wording {
    const char *verb, *got, *want;
};
/* "collective 3 of the step, an all-gather of unit layers.2, runs over
 * replicate, expected shard"; `index` counts from 0, the words from 1. */
bool finding_collective(const struct expect *e, struct finding *f,
                        struct finding at, const struct record_collective *c,
                        uint32_t index, const struct compare_wording *wording);

/* finding_bytes, and in the note the peak of each kind alone, as far as there
 * is room. */
bool finding_peak(struct finding *f, struct finding at, uint64_t got,
                  uint64_t want, const char *note,
                  const struct record_memory *memory);

/* "got is want times 2", "got is want divided by 4"; false: the one is no
 * simple multiple of the other. */
bool compare_factor_words(double got, double want,
                          char out[COMPARE_WORDS_BYTES]);

/* ---- which cases ---- */

/* Whether the engine is to train to the end of the case: not in OPTIONS,
 * DISAGREE and SHARD. */
bool compare_case_trains(const struct expect *e);
/* Whether any parameter gets a gradient. None does if all that could are
 * frozen, or tied to frozen ones. */
bool compare_any_gradient(const struct expect *e);
/* Whether the case has losses: the engine trains to its end, or plays a script
 * of its own. */
bool compare_case_plays(const struct expect *e);
/* Whether the engine is to come to the end of the case, training or not. */
bool compare_case_shards(const struct expect *e);
/* Whether the case has one life in which nothing communicates but its steps, so
 * that all that a rank says of its collectives must fit together. */
bool compare_case_lives_once(const struct expect *e);
/* Whether stages can be judged one by one: tensors are recorded, and the case
 * does nothing but train (CANCEL and MISUSE have requirements of their own). */
bool compare_case_staged(const struct expect *e);
/* Whether that is so, or the scenario is SHARD, in which the pieces are
 * recorded as shard left them. */
bool compare_case_initial(const struct expect *e);
/* Whether the case is of the strict profile: no prefetch, and no reduction in
 * flight. */
bool compare_case_strict(const struct expect *e);
/* Whether the case trains on more than one rank, so that there is something to
 * communicate. */
bool compare_case_communicates(const struct expect *e);
/* Whether some parameter in a unit is frozen from the beginning. */
bool compare_case_freezes(const struct expect *e);
/* Whether the case loads a checkpoint. */
bool compare_case_resumes(const struct expect *e);
/* Whether the case is staged, and has more than one replica. */
bool compare_case_replicated(const struct expect *e);
/* Whether a point of a pass belongs to a forward. */
bool compare_is_forward(uint32_t point);
/* How many microbatches of a step are reduced, without the last one, which
 * always is. */
uint32_t compare_synced_early(const struct expect *e);
/* How many steps have recorded tensors. */
uint32_t compare_recorded_steps(const struct expect *e);

/* ---- ranks ---- */

/* The rank k; NULL: the record has no such rank, or its files were missing. */
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

/* Calls `check` with what every rank communicated in every step; `at` has the
 * rank and the step. */
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
/* Whether an all-gather of a unit carries the shards of what each rank owns,
 * each parameter once: the flat parameter, or a block of each; `words` say so.
 * True for all other collectives. */
bool compare_gather_of_shard(const struct expect *e,
                             const struct record_collective *c,
                             struct finding at, const char *words,
                             struct finding *f);

/* Sequence `index` of a rank; NULL: there is none, or it is malformed. */
const struct record_sequence *compare_sequence(const struct record_rank *rank,
                                               uint32_t index);
/* What a rank communicated in a step; NULL: not known, or the rank is NULL. */
const struct record_sequence *
compare_step_sequence(const struct record_rank *rank, uint32_t step);
/* How many collectives of a kind a sequence has. */
uint64_t compare_count(const struct record_sequence *sequence, uint32_t kind);
/* "all-gathers in this step"; only for the three kinds of which steps are
 * made. */
const char *compare_kind_words(uint32_t kind);
/* Whether every step has as many collectives of a kind as the oracle says. The
 * other does the least damage to that: it takes one away, beyond all that were
 * made ahead; if there is to be none, it adds one. */
bool compare_kind_count(const struct expect *e, const struct record *r,
                        uint32_t kind, struct finding *f);
bool compare_spoil_kind_count(const struct expect *e, struct record *r,
                              uint32_t kind);
/* Whether two collectives agree in every field. */
bool compare_same_collective(const struct record_collective *a,
                             const struct record_collective *b);
/* Whether a collective is the expected one in every field; the fold is not
 * compared if the engine declares none. */
bool compare_as_asked(const struct expect *e,
                      const struct record_collective *got,
                      const struct record_collective *want);
/* How many collectives of a kind a sequence has of a unit. */
uint32_t compare_count_of(const struct record_sequence *sequence, uint32_t kind,
                          uint32_t unit);
/* Whether a collective reduces gradients. */
bool compare_reduces(const struct record_collective *c);
/* Whether a collective moves values of that dtype. */
bool compare_moves(const struct expect *e, const struct record_collective *c,
                   uint32_t index, uint32_t dtype, struct finding at,
                   struct finding *f);
/* For spoiling: what rank 0 communicated in step 0, and the first collective of
 * that; NULL: nothing. */
struct record_sequence *compare_sequence_to_spoil(struct record *r);
struct record_collective *compare_collective_to_spoil(struct record *r);

/* ---- tensors ---- */

/* Elements [first, first + n) of a parameter, and one place of a run at which
 * they are looked at. */
struct compare_part {
    uint32_t rank, step, microbatch, parameter, unit;
    uint64_t first, n;
    /* If a module has several backwards in a pass, each leaves a gradient:
     * gradient j is recorded from element j * numel on. */
    uint64_t base;
    /* Both sides were recorded from the engine, so that a NaN on both is no
     * difference here; grad.finite and the comparison with the baseline find
     * it. */
    bool own;
    /* The arithmetic is the engine's own, in which neither the value that a sum
     * of zeros begins with nor the sign of a 0 is specified. */
    bool any_zero;
    /* Where the baseline has a NaN, the record must have one, too, with any
     * bits (compare_any_nan). */
    bool any_nan;
    /* the requirement that checks the part; NULL: none */
    const struct requirement *q;
};
/* The place of the part, with its parameter and its unit. */
struct finding finding_at_part(const char *stage, int64_t microbatch,
                               const struct compare_part *part);

/* Calls `check` for every part that a rank owns by the oracle, in steps [from,
 * to). Empty parts are left out. */
bool compare_parts(const struct expect *e, const struct record *r,
                   uint32_t from, uint32_t to,
                   bool (*check)(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f),
                   struct finding *f);

/* The same for a check of requirement q, which it finds in part->q. */
bool compare_parts_of(const struct requirement *q, const struct expect *e,
                      const struct record *r, uint32_t from, uint32_t to,
                      bool (*check)(const struct expect *e,
                                    const struct record *r,
                                    const struct compare_part *part,
                                    struct finding *f),
                      struct finding *f);

/* Calls `check` for every whole parameter that a rank must show in a microbatch
 * of steps [from, to): so are stages that each rank has by itself. Ignored and
 * tied parameters are left out. */
bool compare_whole(const struct expect *e, const struct record *r,
                   uint32_t from, uint32_t to,
                   bool (*check)(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f),
                   struct finding *f);

/* The same for every local gradient that there must be: one for each backward
 * of the parameter's module. */
bool compare_gradients(
    const struct expect *e, const struct record *r, uint32_t from, uint32_t to,
    bool (*check)(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f),
    struct finding *f);

/* The values that a record shows of exactly this part; NULL: it has none. */
const float *compare_values(const struct record *r, uint32_t stage,
                            const struct compare_part *part);
/* The values of the part within the whole parameter that rank k shows; NULL: it
 * shows none. */
const float *compare_values_in_whole(const struct expect *e,
                                     const struct record *r, uint32_t k,
                                     uint32_t stage,
                                     const struct compare_part *part);
/* The same from the baseline, where whole parameters are rank 0's. */
const float *compare_baseline(const struct expect *e, uint32_t stage,
                              const struct compare_part *part);

/* How many stages a look shows: weights and the optimizer's states. The other:
 * how many of these one parameter has, which has states if it is trained. */
enum {
    COMPARE_STAGES = 3
};
extern const uint32_t compare_stages[COMPARE_STAGES];
uint32_t compare_n_stages(const struct expect *e);
uint32_t compare_n_stages_of(const struct expect *e,
                             const struct compare_part *part);

/* Compares part->n values in bits. `got` NULL: it was not recorded, which is a
 * failure; `want` NULL: there is nothing to compare with; a NaN in `want` is a
 * failure. The finding names the parameter, and the element by its index in it,
 * in the flat parameter and in its shard. */
bool compare_equal(const struct expect *e, const struct compare_part *part,
                   uint32_t stage, const float *got, const float *want,
                   struct finding *f);
/* Compares the part with the unsharded run's at this stage, as exactly as the
 * case's arithmetic, and the gradients that its script makes, allow. */
bool compare_as_baseline(const struct expect *e, const struct record *r,
                         const struct compare_part *part, uint32_t stage,
                         struct finding *f);
/* Compares weights, and all states that there are, with the unsharded run's. */
bool compare_all_as_baseline(const struct expect *e, const struct record *r,
                             const struct compare_part *part,
                             struct finding *f);
/* Compares the part at a stage with what the same record has of it at another
 * stage and step. A NaN may stay a NaN. */
bool compare_as_then(const struct expect *e, const struct record *r,
                     const struct compare_part *part, uint32_t stage,
                     uint32_t stage_then, uint32_t step_then,
                     struct finding *f);
/* Whether got equals what it is compared with: the same bits, or NaN on both
 * sides. */
bool compare_same_or_nan(float got, float want);
/* The same for element i of the part. */
bool compare_element(const struct expect *e, const struct compare_part *part,
                     uint32_t stage, uint64_t i, float got, float want,
                     struct finding *f);
/* Says in *f that this part was not recorded at this stage. */
bool compare_missing(const struct compare_part *part, uint32_t stage,
                     struct finding *f);
/* Whether every rank's weights before this step are the baseline's in bits, so
 * that from there on the two runs can be compared. */
bool compare_starts_alike(const struct expect *e, const struct record *r,
                          uint32_t step);

/* Compares the part with the first replica's. */
bool compare_replica(const struct expect *e, const struct record *r,
                     const struct compare_part *part, uint32_t stage,
                     struct finding *f);
/* Compares `want`, the values that the owner of the part holds, with what every
 * rank of its shard group saw of them. For RECORD_UNSHARDED `want` is first
 * rounded to the unit's parameter dtype. */
bool compare_gathered(const struct expect *e, const struct record *r,
                      const struct compare_part *part, uint32_t stage,
                      const float *want, struct finding *f);

/* The first tensor of the last rank that has one with values, of a parameter
 * for which `is` is true; NULL: there is none. */
struct record_tensor *compare_find_tensor(
    const struct expect *e, struct record *r,
    bool (*is)(const struct expect *e, const struct record_tensor *t));
/* Changes the first value of the tensor by more than any rounding, even if it
 * is a NaN. False: t is NULL. */
bool compare_spoil_value(struct record_tensor *t);
/* The first tensor of a stage with values in `step` or later, of the last rank
 * that has one; NULL: there is none. */
struct record_tensor *compare_tensor_to_spoil(struct record *r, uint32_t stage,
                                              uint32_t step);
/* Flips the last bit of the first value of that tensor. */
bool compare_spoil_stage(struct record *r, uint32_t stage, uint32_t step);
/* The same for tensors of this step alone. */
bool compare_spoil_step(struct record *r, uint32_t stage, uint32_t step);
/* The same for a trained parameter, if there is one: not every requirement
 * compares frozen ones. */
bool compare_spoil_trained(const struct expect *e, struct record *r,
                           uint32_t stage, uint32_t step);

/* ---- curves ---- */

/* Loss i (by step, then by microbatch) of a record, folded over its ranks;
 * false: some rank lacks it. */
bool compare_loss(const struct expect *e, const struct record *r, uint64_t i,
                  float *out);
/* Whether a NaN in the unsharded run may be right: the case's script makes
 * gradients of its own, or is not one of the suite's, and may let losses grow
 * without end. */
bool compare_any_nan(const struct expect *e);
/* Compares the first n folded losses in bits. */
bool compare_curves(const struct expect *e, const struct record *r,
                    const struct record *other, uint64_t n, struct finding *f);
/* How many losses a case has: steps times microbatches. */
uint64_t compare_n_losses(const struct expect *e);
/* Changes the last loss of rank 0 so that no rounding can hide it. */
bool compare_spoil_curve(const struct expect *e, struct record *r);
/* Whether losses and final weights are those of the same case with nothing in
 * it but training; or those of the baseline, if this run has no such record. */
bool compare_undisturbed(const struct expect *e, const struct record *r,
                         struct finding *f);

/*
 * The record of the case that `change` makes of this one; NULL: this run has
 * none, or that case did not end well. A requirement that needs the record
 * applies only where there is one: a case that was run and left no good record
 * fails by itself.
 */
const struct record *compare_companion(const struct expect *e,
                                       void (*change)(struct run_case *c));
/* Whether there is such a record, of a case that its engine claims. A bundle
 * has records of claimed cases only, and elsewhere others are not compared
 * with, either. */
bool compare_twin(const struct expect *e, void (*change)(struct run_case *c));
/* The record of this case on one rank, whatever its wrap and strategy, or
 * NULL. */
const struct record *compare_companion_single(const struct expect *e);

/* ---- answers to wrong calls ---- */

/* The first answer of this name; NULL: there is none, or no such rank. */
struct record_answer *compare_find_answer(const struct record_rank *rank,
                                          const char *name);
/* Whether every rank answered each of these wrong calls as wanted. */
bool compare_answers(const struct expect *e, const struct record *r,
                     const struct compare_answer *answer, uint32_t n,
                     struct finding *f);
/* Whether the rank's last answer has this name; false: it gave none. */
bool compare_spoil_name(struct record_rank *rank, const char *name);
/* For spoiling: changes the first of these answers of the last rank to
 * INTERNAL. */
bool compare_spoil_answers(struct record *r,
                           const struct compare_answer *answer, uint32_t n);

#endif
