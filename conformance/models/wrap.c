/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.c - wrap policies. Each policy gives modules marks; one function makes
 * units of marks.
 */
#include "wrap.h"

#include <stdlib.h>
#include <string.h>

/* Mark 0 means no mark, and is the root's. Modules with the same mark start the
 * same unit. */
enum {
    WRAP_ROOT = 0
};

/* False for a tied parameter, which is stored, and counted, with its
 * original. */
static bool is_own(const struct fsdp_model *model, uint32_t p)
{
    return !model->parameter_alias || model->parameter_alias[p] < 0;
}

/*
 * From marks in [0, n_modules] to units, in place: a module without a mark
 * belongs where its parent does; marks without a parameter vanish; the others
 * are numbered as they come. `unit` has n_modules + 1 entries.
 */
static uint32_t number_units(const struct fsdp_model *model, uint32_t *mark,
                             uint32_t *unit)
{
    const uint32_t used = FSDP_NO_UNIT - 1; /* has a parameter, no number */
    uint32_t n_units = 0;

    for (uint32_t m = 0; m <= model->n_modules; m++) {
        unit[m] = FSDP_NO_UNIT;
    }
    for (uint32_t m = 1; m < model->n_modules; m++) {
        if (mark[m] == WRAP_ROOT) {
            mark[m] = mark[model->module_parent[m]];
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (is_own(model, p)) {
            unit[mark[model->parameter_module[p]]] = used;
        }
    }
    for (uint32_t m = 0; m < model->n_modules; m++) {
        if (unit[mark[m]] == used) {
            unit[mark[m]] = n_units++;
        }
        mark[m] = unit[mark[m]];
    }
    return n_units;
}

/* Makes the units. Takes over `mark`, even if it fails: it becomes the
 * result. */
static int finish(const struct fsdp_model *model, uint32_t *mark,
                  struct wrap_units *out)
{
    uint32_t *unit = calloc((size_t)model->n_modules + 1, sizeof(*unit));

    if (!unit) {
        free(mark);
        return FSDP_ERR_NOMEM;
    }
    out->units.size = sizeof(out->units);
    out->units.n_units = number_units(model, mark, unit);
    out->unit_of_module = mark;
    out->units.unit_of_module = mark;
    free(unit);
    return FSDP_OK;
}

/* No marks yet; NULL if there is no memory. *out is empty from here on. */
static uint32_t *start(const struct fsdp_model *model, struct wrap_units *out)
{
    memset(out, 0, sizeof(*out));
    return calloc((size_t)model->n_modules + 1, sizeof(uint32_t));
}

/* The mark with which module m starts a unit of its own. */
static uint32_t own_mark(uint32_t m)
{
    return m + 1;
}

void wrap_release(struct wrap_units *units)
{
    if (units) {
        free(units->unit_of_module);
        free(units->reshard);
        free(units->unit_of_parameter);
        memset(units, 0, sizeof(*units));
    }
}

int wrap_whole(const struct fsdp_model *model, struct wrap_units *out)
{
    uint32_t *mark = start(model, out);

    return !mark ? FSDP_ERR_NOMEM : finish(model, mark, out);
}

int wrap_by_size(const struct fsdp_model *model, uint64_t min_numel,
                 struct wrap_units *out)
{
    uint32_t *mark = start(model, out);
    uint64_t *open = calloc(model->n_modules, sizeof(*open)); /* uncovered */

    if (!mark || !open) {
        free(mark);
        free(open);
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (is_own(model, p)) {
            open[model->parameter_module[p]] += fsdp_numel(model, p);
        }
    }
    /* Parents come first, so backwards every module comes after all that is
     * below it. */
    for (uint32_t m = model->n_modules - 1; m > 0; m--) {
        if (open[m] >= min_numel) {
            mark[m] = own_mark(m);
        } else {
            open[model->module_parent[m]] += open[m];
        }
    }
    free(open);
    return finish(model, mark, out);
}

int wrap_by_callback(const struct fsdp_model *model,
                     int (*callback)(void *context,
                                     const struct fsdp_model *model,
                                     uint32_t module),
                     void *context, struct wrap_units *out)
{
    uint32_t *mark = start(model, out);

    if (!mark) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t m = 1; m < model->n_modules; m++) {
        if (callback(context, model, m) != 0) {
            mark[m] = own_mark(m);
        }
    }
    return finish(model, mark, out);
}

int wrap_by_class(const struct fsdp_model *model,
                  const char *const *module_class, uint32_t n_classes,
                  struct wrap_units *out)
{
    uint32_t *mark = start(model, out);

    if (!mark) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t c = 0; c < n_classes; c++) {
        bool found = false;

        for (uint32_t m = 0; m < model->n_modules; m++) {
            if (strcmp(model->module_class[m], module_class[c]) == 0) {
                found = true;
                mark[m] = m > 0 ? own_mark(m) : WRAP_ROOT;
            }
        }
        if (!found) {
            free(mark);
            return FSDP_ERR_INVALID;
        }
    }
    return finish(model, mark, out);
}

/* The module of that name; n_modules: none. */
static uint32_t find_module(const struct fsdp_model *model, const char *name)
{
    uint32_t m = 0;

    while (m < model->n_modules && strcmp(model->module_name[m], name) != 0) {
        m++;
    }
    return m;
}

int wrap_by_hand(const struct fsdp_model *model, const char *const *name,
                 uint32_t n_names, struct wrap_units *out)
{
    uint32_t *mark = start(model, out);
    bool *seen = calloc(model->n_modules, sizeof(*seen));
    int status = !mark || !seen ? FSDP_ERR_NOMEM : FSDP_OK;

    for (uint32_t i = 0; status == FSDP_OK && i < n_names; i++) {
        const uint32_t m = find_module(model, name[i]);

        if (m == model->n_modules || seen[m]) {
            status = FSDP_ERR_INVALID;
        } else {
            seen[m] = true;
            mark[m] = m > 0 ? own_mark(m) : WRAP_ROOT;
        }
    }
    free(seen);
    if (status != FSDP_OK) {
        free(mark);
        return status;
    }
    return finish(model, mark, out);
}

int wrap_every(const struct fsdp_model *model, uint32_t per_unit,
               struct wrap_units *out)
{
    uint32_t *mark = start(model, out);
    bool *counts = calloc(model->n_modules, sizeof(*counts));
    uint32_t n = 0;
    uint32_t first = 0;

    if (!mark || !counts || per_unit == 0) {
        free(mark);
        free(counts);
        return per_unit == 0 ? FSDP_ERR_INVALID : FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        counts[model->parameter_module[p]] |= is_own(model, p);
    }
    for (uint32_t m = 1; m < model->n_modules; m++) {
        counts[model->module_parent[m]] = false; /* no leaf */
    }
    for (uint32_t m = 1; m < model->n_modules; m++) {
        if (counts[m]) {
            first = n++ % per_unit == 0 ? m : first;
            mark[m] = own_mark(first);
        }
    }
    free(counts);
    return finish(model, mark, out);
}

/* ---- Units of parameters ------------------------------------------------ */

/* Says the unit of each parameter, at first its module's, so that a policy may
 * change it. */
static int begin_parameters(const struct fsdp_model *model,
                            struct wrap_units *units)
{
    uint32_t *of = calloc((size_t)model->n_parameters + 1, sizeof(*of));

    for (uint32_t p = 0; of && p < model->n_parameters; p++) {
        of[p] = fsdp_unit_of(model, &units->units, p);
    }
    free(units->unit_of_parameter);
    units->unit_of_parameter = of;
    units->units.unit_of_parameter = of;
    return of ? FSDP_OK : FSDP_ERR_NOMEM;
}

static bool is_frozen(const struct fsdp_model *model, uint32_t p)
{
    return (model->parameter_flags[p] & FSDP_FROZEN) != 0;
}

/* Whether unit u has a frozen parameter, or one that is not frozen. */
static bool unit_has(const struct fsdp_model *model,
                     const struct wrap_units *units, uint32_t u, bool frozen)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (units->unit_of_module[model->parameter_module[p]] == u &&
            is_frozen(model, p) == frozen) {
            return true;
        }
    }
    return false;
}

int wrap_apart(const struct fsdp_model *model, struct wrap_units *units)
{
    const uint32_t n = units->units.n_units;
    uint32_t *number = calloc((size_t)n + 1, sizeof(*number));
    uint32_t next = 0;
    int status = number ? begin_parameters(model, units) : FSDP_ERR_NOMEM;

    for (uint32_t u = 0; status == FSDP_OK && u < n; u++) {
        number[u] = next;
        next += unit_has(model, units, u, true) ? 1 : 0;
        next += unit_has(model, units, u, false) ? 1 : 0;
    }
    for (uint32_t p = 0; status == FSDP_OK && p < model->n_parameters; p++) {
        const uint32_t u = units->unit_of_parameter[p];
        const bool behind =
            !is_frozen(model, p) && unit_has(model, units, u, true);

        units->unit_of_parameter[p] = number[u] + (behind ? 1 : 0);
    }
    for (uint32_t m = 0; status == FSDP_OK && m < model->n_modules; m++) {
        if (units->unit_of_module[m] != FSDP_NO_UNIT) {
            units->unit_of_module[m] = number[units->unit_of_module[m]];
        }
    }
    units->units.n_units = status == FSDP_OK ? next : n;
    free(number);
    return status;
}

/* A tied parameter follows its original. */
int wrap_scatter(const struct fsdp_model *model, struct wrap_units *units)
{
    FSDP_TRY(begin_parameters(model, units));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint32_t *u = &units->unit_of_parameter[p];

        if (*u != FSDP_NO_UNIT && (p % 8 == 2 || p % 8 >= 5)) {
            *u = (*u + 1) % units->units.n_units;
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        units->unit_of_parameter[p] =
            units->unit_of_parameter[fsdp_original(model, p)];
    }
    return FSDP_OK;
}

int wrap_ignore(const struct fsdp_model *model, struct wrap_units *units)
{
    FSDP_TRY(begin_parameters(model, units));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (is_frozen(model, p) && model->parameter_n_dims[p] < 2) {
            units->unit_of_parameter[p] = FSDP_NO_UNIT;
        }
    }
    return FSDP_OK;
}
