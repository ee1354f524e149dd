/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_requirement.h - the requirements for a user's own model: rows of a table,
 * each with a function that says whether the records satisfy it, and one that
 * does a damage which that function has to notice.
 */
#ifndef FSDP_CTS_OWN_REQUIREMENT_H
#define FSDP_CTS_OWN_REQUIREMENT_H

#include "tools/check/own_record.h"

/* Where a requirement first failed. -1: does not apply. */
struct own_finding {
    int64_t step, microbatch, rank, unit, parameter, element;
    char text[400]; /* what is wrong, and what would be right */
    bool unsynced;  /* a step used gradients that no rank had reduced: other
                     * failures of that step follow from it */
};

/* A damage: where it is, and the bytes that stood there before. */
struct own_spoil {
    void *at;
    size_t bytes;
    unsigned char old[512];
};

struct own_requirement {
    const char *id;   /* "own.local-grad": never reused */
    const char *text; /* one sentence */
    /* Whether it applies to these records; NULL: always. */
    bool (*applies)(const struct own_set *s);
    /* Whether it holds; fills *f if not. It must not trust any number beyond
     * what the reader checked. */
    bool (*holds)(const struct own_requirement *q, const struct own_set *s,
                  struct own_finding *f);
    /* Damages the records. False: there is nothing to damage. */
    bool (*spoil)(const struct own_requirement *q, struct own_set *s,
                  struct own_spoil *undo);
    /* The data of the checks that rows share. */
    const char *stage; /* of tensors; "state.": all stages that begin so */
    const char *with;  /* own_saved: the stage that it is compared with */
    uint32_t kind;     /* of an event */
    const char *words; /* how messages call these tensors */
};

/* All requirements, in the order in which the events they check happen: if two
 * fail in the same step, the first is the more likely cause. */
extern const struct own_requirement own_requirements[];
extern const uint32_t own_n_requirements;
/* Whether nothing can be compared if it fails. */
bool own_is_basis(const struct own_requirement *q);

#define OWN_UNSYNCED                                                     \
    "a step follows, and their synchronization is off (no_sync, "        \
    "set_requires_gradient_sync, require_backward_grad_sync); the last " \
    "microbatch before a step has to reduce"

/* Fills a finding without a place, with a text. */
__attribute__((format(printf, 2, 3))) bool own_fail(struct own_finding *f,
                                                    const char *format, ...);
struct own_finding own_nowhere(void);
/* Remembers `bytes` at `at`, which are about to be damaged. */
void own_damage(struct own_spoil *undo, void *at, size_t bytes);
void own_repair(const struct own_spoil *undo);

/* The value of bits, as people write it. */
enum {
    OWN_VALUE_BYTES = 64
};
void own_value(uint32_t dtype, uint64_t bits, char text[OWN_VALUE_BYTES]);

/* own_values.c: tensors of one stage equal those of the unsharded run. */
bool own_same_holds(const struct own_requirement *q, const struct own_set *s,
                    struct own_finding *f);
bool own_same_spoil(const struct own_requirement *q, struct own_set *s,
                    struct own_spoil *undo);
/* Changes one bit of a tensor's digest, and of a recorded value. */
void own_tensor_spoil(struct own_tensor *t, struct own_spoil *undo);
bool own_has_stage(const struct own_set *s, const char *stage);
bool own_stage_is(const struct own_tensor *t, const char *stage);
/* Whether two tensors of the same elements are equal; if not, and an element
 * whose bits are known differs, which one. */
bool own_tensors_same(const struct own_set *s, const struct own_tensor *got,
                      const struct own_tensor *want, const char *whose,
                      struct own_finding *f);
/* own_saved.c, own_reduce.c, own_model.c, own_passes.c, own_walk.c */
#define OWN_CHECK(name)                                                       \
    bool name##_holds(const struct own_requirement *, const struct own_set *, \
                      struct own_finding *);                                  \
    bool name##_spoil(const struct own_requirement *, struct own_set *,       \
                      struct own_spoil *)
OWN_CHECK(own_ends);
OWN_CHECK(own_model);
OWN_CHECK(own_tied);
OWN_CHECK(own_units);
OWN_CHECK(own_layout);
OWN_CHECK(own_optimizer);
OWN_CHECK(own_batches);
OWN_CHECK(own_batches_differ);
OWN_CHECK(own_random);
OWN_CHECK(own_loss);
OWN_CHECK(own_reduced);
OWN_CHECK(own_buffers);
OWN_CHECK(own_frozen);
OWN_CHECK(own_saved);
OWN_CHECK(own_gathers);
OWN_CHECK(own_reductions);
OWN_CHECK(own_wire);
OWN_CHECK(own_order);
OWN_CHECK(own_memory);
#undef OWN_CHECK
bool own_has_units(const struct own_set *s); /* that are judged */
/* DeepSpeed's stages 1 to 3, whose parts do not belong to units. */
bool own_is_zero(const struct own_set *s);
/* Whether each rank has a part. */
bool own_is_sharded(const struct own_set *s);
/* FSDP1: a unit's parameters lie one behind the other in a flat one. */
bool own_is_flat(const struct own_set *s);

#endif
