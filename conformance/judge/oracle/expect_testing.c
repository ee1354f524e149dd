/* SPDX-License-Identifier: Apache-2.0 */
/* expect_testing.c - see expect_testing.h. */
#include "judge/oracle/expect_testing.h"
#include "judge/compare/compare.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_points(const char *text, uint32_t *point, uint32_t *module,
                        struct fsdp_sequence *out)
{
    static const char letter[] = "-FfBbRr"; /* index: enum fsdp_point */

    out->n = 0;
    for (const char *s = text; *s != '\0'; s++) {
        const char *at = strchr(letter, *s);

        if (at && out->n < TESTING_POINTS) {
            point[out->n] = (uint32_t)(at - letter);
            module[out->n] = (uint32_t)(s[1] - '0');
            out->n++;
            s++;
        }
    }
    out->size = sizeof(*out);
    out->point = point;
    out->module = module;
}

static void read_parameters(struct testing_model *t, const char *text)
{
    char *s = NULL;
    uint32_t p = 0;

    while (*text != '\0' && p < TESTING_PARAMETERS) {
        t->parameter_module[p] = (uint32_t)strtoul(text, &s, 10);
        t->shape[p][0] = strtoull(s + 1, &s, 10);
        t->n_dims[p] = 1;
        t->dtype[p] = FSDP_DTYPE_F32;
        t->alias[p] = -1;
        text = *s == ' ' ? s + 1 : s;
        p++;
    }
    t->model.n_parameters = p;
}

void testing_model(struct testing_model *t, const char *units,
                   const char *parameters, const char *train, const char *eval)
{
    static const char *const names[TESTING_PARAMETERS] = {
        "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
    static const char *const modules[TESTING_MODULES] = {
        "", "m1", "m2", "m3", "m4", "m5", "m6", "m7"};

    memset(t, 0, sizeof(*t));
    t->units.size = sizeof(t->units);
    for (uint32_t m = 0; units[m] != '\0' && m < TESTING_MODULES; m++) {
        uint32_t u = (uint32_t)(units[m] - '0');

        t->unit_of_module[m] = units[m] == '-' ? FSDP_NO_UNIT : u;
        t->parent[m] = m == 0 ? -1 : 0;
        t->name[m] = modules[m];
        t->model.n_modules = m + 1;
        if (units[m] != '-' && u >= t->units.n_units) {
            t->units.n_units = u + 1;
        }
    }
    t->units.unit_of_module = t->unit_of_module;
    read_parameters(t, parameters);
    read_points(train, t->point[0], t->module[0], &t->sequence[0]);
    read_points(eval, t->point[1], t->module[1], &t->sequence[1]);
    t->sequences[0] = &t->sequence[0];
    t->sequences[1] = &t->sequence[1];
    t->model.size = sizeof(t->model);
    t->model.n_sequences = 2;
    t->model.sequence = t->sequences;
    t->model.module_name = t->name;
    t->model.module_parent = t->parent;
    t->model.parameter_name = names;
    t->model.parameter_module = t->parameter_module;
    t->model.parameter_shape = (const uint64_t(*)[FSDP_MAX_DIMS])t->shape;
    t->model.parameter_n_dims = t->n_dims;
    t->model.parameter_dtype = t->dtype;
    t->model.parameter_flags = t->parameter_flags;
    t->model.parameter_alias = t->alias;
}

void testing_mlp(struct testing_model *t)
{
    testing_model(t, "-0123", "1:512 2:1024 3:512 4:128",
                  "F1 f1 F2 f2 F3 f3 F4 f4 B4 b4 B3 b3 B2 b2 B1 b1",
                  "F1 f1 F2 f2 F3 f3 F4 f4");
}

struct run_case testing_case(uint32_t strategy, uint32_t ranks,
                             uint32_t replicas)
{
    struct run_case c = {.workload = "mlp", .size = "seed"};

    c.strategy = strategy;
    c.ranks = ranks;
    c.replicas = replicas;
    c.wrap = CASE_WRAP_LAYER;
    c.microbatches = 1;
    c.sync[0] = 1;
    c.lr = 0.5f;
    c.steps = 4;
    c.recorded_steps = 2;
    return c;
}

const char *testing_sequence(const struct expect *e,
                             const struct record_sequence *s,
                             char text[TESTING_TEXT])
{
    static const char letter[] = "ARL";
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < s->n && used + 4 < TESTING_TEXT; i++) {
        const struct record_collective *c = &s->c[i];
        uint32_t dim =
            c->kind == FSDP_ALL_REDUCE ? FSDP_DIM_REPLICATE : FSDP_DIM_SHARD;

        if (c->kind > FSDP_ALL_REDUCE || c->unit >= e->units->n_units ||
            c->dim != dim || c->dtype != FSDP_DTYPE_F32 || c->root != 0 ||
            c->fold != e->c->fold || c->n != e->unit[c->unit].chunk) {
            return "?";
        }
        if (used > 0) {
            text[used++] = ' ';
        }
        text[used++] = letter[c->kind];
        text[used++] = (char)('0' + c->unit);
        text[used] = '\0';
    }
    return text;
}

void testing_check(const struct testing_model *t, const struct run_case *c,
                   const struct testing_wanted *want)
{
    struct expect e;
    char text[TESTING_TEXT];

    assert_int_equal(expect_make(c, &t->model, &t->units, &e), FSDP_OK);
    assert_string_equal(testing_sequence(&e, &e.step, text), want->step);
    assert_string_equal(testing_sequence(&e, &e.end, text),
                        want->end ? want->end : "");
    assert_int_equal(e.resting, want->resting);
    assert_int_equal(e.rest.live[FSDP_PARAM_SHARD], 4 * want->resting);
    assert_int_equal(e.peak_parameters, 4 * (want->resting + want->full));
    assert_int_equal(e.peak_full, 4 * want->full);
    assert_int_equal(e.peak_grads, 4 * want->grads);
    assert_int_equal(e.peak[FSDP_STAGING], 4 * want->staging);
    assert_int_equal(e.peak_engine, 4 * want->engine);
    expect_release(&e);
}

struct fixture *fixture_open(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));

    assert_non_null(x);
    *state = x;
    return x;
}

void fixture_make(struct fixture *x)
{
    assert_int_equal(expect_make(&x->c, &x->t.model, &x->t.units, &x->e),
                     FSDP_OK);
    assert_int_equal(record_init(&x->r, &x->c, x->c.ranks), FSDP_OK);
    assert_int_equal(record_init(&x->baseline, &x->c, x->c.ranks), FSDP_OK);
}

int fixture_close(void **state)
{
    struct fixture *x = *state;

    record_release(&x->r);
    record_release(&x->baseline);
    expect_release(&x->e);
    free(x);
    return 0;
}

bool fixture_holds(const struct fixture *x, const char *id, struct finding *f)
{
    const struct requirement *const *table = requirement_table();
    const struct requirement *q = table[requirement_index(table, id)];

    assert_non_null(q);
    return requirement_holds(q, &x->e, &x->r, f);
}
