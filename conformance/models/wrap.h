/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h - wrap policies: from a model to its units.
 *
 * A policy marks modules; a marked module starts a unit that takes all modules
 * below it that are not marked themselves. Modules that no mark covers belong
 * to the root's unit. Units without a parameter vanish (their modules have
 * FSDP_NO_UNIT); the others are numbered by their first module in the model's
 * order.
 */
#ifndef FSDP_CTS_WRAP_H
#define FSDP_CTS_WRAP_H

#include <fsdp/model.h>

struct wrap_units {
    struct fsdp_units units;
    uint32_t *unit_of_module; /* what units.unit_of_module points to */
    uint32_t *reshard; /* what units.reshard_after_forward points to, if any */
    uint32_t *unit_of_parameter; /* likewise */
};

/* One unit for everything. */
int wrap_whole(const struct fsdp_model *model, struct wrap_units *out);
/* Bottom-up, as PyTorch's size_based_auto_wrap_policy: a module is marked when
 * the parameters below it that no mark covers yet are at least min_numel. */
int wrap_by_size(const struct fsdp_model *model, uint64_t min_numel,
                 struct wrap_units *out);
/* Marks the modules of these classes (transformer_auto_wrap_policy). INVALID if
 * no module of the model has one of the classes. */
int wrap_by_class(const struct fsdp_model *model,
                  const char *const *module_class, uint32_t n_classes,
                  struct wrap_units *out);
/* Marks the modules for which mark(context, model, module) != 0. */
int wrap_by_callback(const struct fsdp_model *model,
                     int (*mark)(void *context, const struct fsdp_model *model,
                                 uint32_t module),
                     void *context, struct wrap_units *out);
/* Marks modules by name, one unit each. INVALID if a name is unknown or is
 * there twice. */
int wrap_by_hand(const struct fsdp_model *model, const char *const *name,
                 uint32_t n_names, struct wrap_units *out);
/* Puts `per_unit` consecutive leaf modules with parameters into each unit (the
 * last may have fewer): how coarse units are, as exercise 16.5.2 of the
 * textbook varies it (cli/verdict/textbook.h). */
int wrap_every(const struct fsdp_model *model, uint32_t per_unit,
               struct wrap_units *out);

/* Splits each unit that has both frozen and trainable parameters: the trainable
 * ones get a unit of their own, behind it. */
int wrap_apart(const struct fsdp_model *model, struct wrap_units *units);
/* Moves the third and the last three of each eight parameters to the unit
 * behind that of their module; behind the last unit is the first. So a module
 * has parameters of two units, or none of its own unit. */
int wrap_scatter(const struct fsdp_model *model, struct wrap_units *units);
/* Takes frozen vectors out of their units: they are in none, and so ignored. */
int wrap_ignore(const struct fsdp_model *model, struct wrap_units *units);

void wrap_release(struct wrap_units *units);

#endif
