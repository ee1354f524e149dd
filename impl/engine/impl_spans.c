/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_spans.c - spans: the elements that one call of the optimizer steps.
 * Parameters that lie side by side in a shard, and to which the same numbers
 * apply, are one span.
 */
#include "impl_calls.h"

#include <stdlib.h>

static struct impl_span make_span(const struct fsdp_sharded *s, uint32_t p,
                                  bool decays)
{
    const struct impl_parameter *x = &s->parameter[p];

    return (struct impl_span){.unit = x->unit,
                              .group = x->numbers.group,
                              .decays = decays,
                              .local = x->local,
                              .grad = x->grad_local,
                              .state = x->state_local,
                              .n = x->n,
                              .momentum = x->numbers.momentum,
                              .beta1 = x->numbers.beta1,
                              .beta2 = x->numbers.beta2,
                              .eps = x->numbers.eps,
                              .steps = s->unit[x->unit].steps - x->begun};
}

static bool follows(const struct impl_span *last, const struct impl_span *next)
{
    return last->unit == next->unit && last->group == next->group &&
           last->decays == next->decays && last->steps == next->steps &&
           last->local + last->n == next->local &&
           last->grad + last->n == next->grad &&
           last->state + last->n == next->state;
}

/* Spans lie in the order of units. */
static void index_spans(struct fsdp_sharded *s)
{
    uint32_t i = 0;

    for (uint32_t u = 0; u <= s->units.n_units; u++) {
        s->unit[u].first_span = i;
        while (i < s->n_spans && s->span[i].unit == u) {
            i++;
        }
    }
}

/* Neighbours to which the same hyperparameters apply become one span. Padding
 * and frozen parameters are in none. */
int impl_find_spans(struct fsdp_sharded *s)
{
    struct impl_span *last = NULL;

    if (!s->span) {
        s->span = calloc(s->model->n_parameters + (size_t)1, sizeof(*s->span));
    }
    if (!s->span) {
        return impl_out_of_memory(s->env);
    }
    s->n_spans = 0;
    for (uint32_t i = 0; i < s->of_unit.first[s->units.n_units]; i++) {
        uint32_t p = s->of_unit.parameter[i];
        const struct impl_parameter *x = &s->parameter[p];
        bool decays = !(s->model->parameter_flags[p] & FSDP_NO_DECAY);
        const struct impl_span span = make_span(s, p, decays);

        if (x->n == 0 || x->frozen) {
            continue;
        }
        if (last && follows(last, &span)) {
            last->n += x->n;
            continue;
        }
        last = &s->span[s->n_spans++];
        *last = span;
    }
    index_spans(s);
    impl_settle_powers(s);
    return FSDP_OK;
}
