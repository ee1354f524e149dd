/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_factors.c - see case_factors.h: a row each; and which groups there are.
 */
#include "cases/case_factors.h"

static const struct factors {
    const char *name;
    float predivide; /* 0: none */
    bool units;      /* have their own */
    uint32_t groups; /* with their own numbers; 0: none have */
} factors[CASE_N_FACTORS] = {
    [CASE_USUAL_FACTORS] = {.name = "usual-factors"},
    [CASE_PRE2] = {.name = "pre2", .predivide = 2.0f},
    [CASE_PRE3] = {.name = "pre3", .predivide = 3.0f},
    [CASE_UNIT_FACTORS] = {.name = "unit-factors", .units = true},
    [CASE_ONE_GROUP] = {.name = "one-group", .groups = 1},
    [CASE_EMPTY_GROUP] = {.name = "empty-group", .groups = 3},
    [CASE_OWN_GROUPS] = {.name = "own-groups", .groups = 5},
};

/* None is that of the options, so that whoever takes those is found. */
static const struct case_numbers numbers[CASE_MAX_GROUPS] = {
    {0.875f, 0.8f, 0.99f, 1e-6f}, {0.5f, 0.75f, 0.9f, 1e-3f},
    {0.25f, 0.95f, 0.95f, 1e-2f}, {0.0f, 0.5f, 0.875f, 1e-4f},
    {0.75f, 0.0f, 0.75f, 0.125f},
};

static const struct factors *row(const struct run_case *c)
{
    return &factors[c->factors < CASE_N_FACTORS ? c->factors : 0];
}

const char *case_factors_name(uint32_t factor)
{
    return factor < CASE_N_FACTORS ? factors[factor].name : NULL;
}

float case_predivide(const struct run_case *c)
{
    return row(c)->predivide;
}

/* Neighbours are divided otherwise: by the option; by no power of two, part of
 * it before the fold; not at all. */
bool case_factors_of_unit(const struct run_case *c, uint32_t unit,
                          struct case_unit_factors *out)
{
    static const struct case_unit_factors own[] = {
        {0.0f, 0.0f}, {2.5f, 3.0f}, {1.0f, 0.0f}};

    *out = own[row(c)->units ? unit % 3 : 0];
    return row(c)->units;
}

bool case_has_numbers(const struct run_case *c)
{
    return row(c)->groups > 0;
}

bool case_numbers_of_group(const struct run_case *c, uint32_t group,
                           struct case_numbers *out)
{
    *out = numbers[group < CASE_MAX_GROUPS ? group : 0];
    return case_has_numbers(c);
}

uint32_t case_groups(const struct run_case *c)
{
    if (case_has_numbers(c)) {
        return row(c)->groups;
    }
    return c->scenario == CASE_GROUPS ? 2 : 1;
}

/* Neither layers nor weights and biases: neighbours are in different ones.
 * The empty one is in the middle. */
uint32_t case_group_of(const struct run_case *c, uint32_t parameter)
{
    const uint32_t n = case_groups(c);

    if (n > 3) {
        return parameter % n;
    }
    return n > 1 && parameter % 3 == 1 ? n - 1 : 0;
}

/* By powers of two, so that what is exact stays so. */
float case_group_lr(const struct run_case *c, uint32_t group)
{
    static const float times[CASE_MAX_GROUPS] = {1.0f, 0.25f, 0.5f, 0.125f,
                                                 2.0f};

    return c->lr * times[group < CASE_MAX_GROUPS ? group : 0];
}

float case_group_decay(const struct run_case *c, uint32_t group)
{
    static const float times[CASE_MAX_GROUPS] = {1.0f, 8.0f, 2.0f, 4.0f, 0.5f};

    return c->weight_decay * times[group < CASE_MAX_GROUPS ? group : 0];
}
