/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_build.h - describes a model piece by piece, where struct fsdp_model
 * wants parallel arrays.
 *
 * The functions that add something return its index, or a negative status.
 * The first failure sticks: all later calls return it too, so a caller may
 * add everything and look at what `model_build_finish` says. Names are
 * copied, checked to be unique, and parents come before their children.
 *
 * Ownership: what `model_build_finish` writes points into the builder and is
 * valid until `model_build_destroy`.
 */
#ifndef FSDP_CTS_MODEL_BUILD_H
#define FSDP_CTS_MODEL_BUILD_H

#include <fsdp/model.h>

#ifdef __cplusplus
extern "C" {
#endif

struct model_build;

/* NULL: out of memory. */
struct model_build *model_build_create(void);
void model_build_destroy(struct model_build *b); /* NULL allowed */

/* The first module is the root and has the parent -1; all others have one. */
int32_t model_build_module(struct model_build *b, const char *name,
                           const char *class_name, int32_t parent);

/* `name` is the full, dotted one. flags: FSDP_FROZEN, FSDP_NO_DECAY. */
int32_t model_build_parameter(struct model_build *b, const char *name,
                              int32_t module, uint32_t dtype, uint32_t flags,
                              uint32_t n_dims, const uint64_t *shape);

/* Another name, in another module, for a parameter that exists: the two are
 * tied. Shape, dtype and flags are those of the original. */
int32_t model_build_tied(struct model_build *b, const char *name,
                         int32_t module, int32_t original);

int32_t model_build_buffer(struct model_build *b, const char *name,
                           int32_t module, uint32_t dtype, uint32_t flags,
                           uint64_t numel);

/*
 * A call sequence of the model's own, for modules used twice, recomputed or
 * left out: n points, BEGIN and END not included. PRE and POST points nest.
 * One named "train" or "eval" takes the place of the derived one.
 */
int model_build_sequence(struct model_build *b, const char *name, uint32_t n,
                         const uint32_t *point, const uint32_t *module);

/* A train sequence in which checkpoints are recomputed: checkpoint[m] of each
 * module that was added, as for model_sequence_recompute. */
int model_build_recompute(struct model_build *b, const uint32_t *checkpoint);

/*
 * Describes what was added. The sequences are [0] "train", [1] "eval", then
 * the model's own. Unless given, train passes the tree depth first (PRE_FORWARD
 * m, its children, POST_FORWARD m), then the mirror image of that with the
 * points of the backward; eval is the first half. `initial` and `context` are
 * NULL and the caller's to fill in. Nothing can be added afterwards.
 */
int model_build_finish(struct model_build *b, struct fsdp_model *out);

/* What was wrong first, as a sentence; "" if nothing. The builder's. */
const char *model_build_message(const struct model_build *b);

#ifdef __cplusplus
}
#endif
#endif
