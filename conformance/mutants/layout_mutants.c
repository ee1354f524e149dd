/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_mutants.c - engines that are wrong about which rank owns which
 * elements, or about the values that those start with.
 */
#include "mutants/mutant_kit.h"

static void pieces_gap(struct fsdp_piece *x)
{
    x->n -= mutant_real.rank == 0;
}

static void pieces_overlap(struct fsdp_piece *x)
{
    struct fsdp_piece before = *x;

    if (x->first > 0) {
        before.first--;
        before.n = 1;
        mutant_tell(&before);
    }
}

static void pieces_shifted(struct fsdp_piece *x)
{
    x->first++;
}

static void pieces_wild(struct fsdp_piece *x)
{
    x->parameter += 1000;
    x->first += UINT64_C(1) << 50;
}

static void padding_as_rows(struct fsdp_piece *x)
{
    x->n = mutant_block(x->parameter);
}

static const float row_values[64];

/* Deals rows out as torch.tensor_split does, and not as torch.chunk. */
static int rows_balanced(struct fsdp_sharded *s,
                         void (*visit)(void *context,
                                       const struct fsdp_piece *piece),
                         void *context)
{
    const struct fsdp_model *m = mutant_real.model;
    uint64_t k = mutant_real.rank % mutant_real.shards;

    (void)s;
    for (uint32_t p = 0; p < m->n_parameters; p++) {
        uint64_t rows = m->parameter_shape[p][0];
        uint64_t row = fsdp_numel(m, p) / rows;
        uint64_t each = rows / mutant_real.shards;
        uint64_t more = rows % mutant_real.shards; /* ranks with one more */
        struct fsdp_piece x = {.size = sizeof(x),
                               .parameter = p,
                               .first =
                                   (k * each + (k < more ? k : more)) * row,
                               .n = (each + (k < more)) * row,
                               .value = row_values,
                               .grad = row_values};

        if (x.n > 0) {
            visit(context, &x);
        }
    }
    return FSDP_OK;
}

static int rows_torn(struct fsdp_sharded *s,
                     void (*visit)(void *context,
                                   const struct fsdp_piece *piece),
                     void *context)
{
    const struct fsdp_model *m = mutant_real.model;

    (void)s;
    for (uint32_t p = 0; p < m->n_parameters; p++) {
        uint64_t numel = fsdp_numel(m, p);
        uint64_t n = (numel + mutant_real.shards - 1) / mutant_real.shards;
        uint64_t first = mutant_real.rank % mutant_real.shards * n;
        struct fsdp_piece x = {.size = sizeof(x),
                               .parameter = p,
                               .first = first,
                               .n = first + n < numel ? n : numel - first,
                               .value = row_values,
                               .grad = row_values};

        if (first < numel) {
            visit(context, &x);
        }
    }
    return FSDP_OK;
}

static int initial_by_rank(void *context, uint32_t p, uint64_t first,
                           uint64_t n, void *out)
{
    float *x = out;
    uint32_t replica = mutant_real.rank / mutant_real.shards;
    float factor = (float)(1 + replica);

    FSDP_TRY(mutant_initial(context, p, first, n, out));
    for (uint64_t i = 0; i < n; i++) {
        x[i] *= factor;
    }
    return FSDP_OK;
}

static int initial_same_shards(void *context, uint32_t p, uint64_t first,
                               uint64_t n, void *out)
{
    (void)first;
    return mutant_initial(context, p, 0, n, out);
}

enum {
    MODULES = 64
};

static int wrap_ignored(struct mutant_told *t, const struct fsdp_env *env)
{
    static const uint32_t none[MODULES]; /* all modules: unit 0 */

    (void)env;
    if (t->model.n_modules <= MODULES) {
        t->units.n_units = 1;
        t->units.unit_of_module = none;
    }
    return FSDP_OK;
}

const struct mutant layout_mutants[] = {
    /* An element is owned by no rank. */
    {.name = "pieces-gap",
     .text = "a piece that ends within its parameter is one element too short",
     .evidence = "pytorch/pytorch#102821",
     .kills = "layout.covers-once",
     .shows = {.in = mutant_plain},
     .piece = pieces_gap},
    /* An element is owned by two ranks. */
    {.name = "pieces-overlap",
     .text = "a piece is preceded by the last element of the rank before",
     .evidence = "shards that tile a parameter and hold other elements",
     .kills = "layout.covers-once",
     .shows = {.in = mutant_plain},
     .piece = pieces_overlap},
    /* A rank says of its shard that it lies one element later. */
    {.name = "pieces-shifted",
     .text = "pieces report `first` one too large, so that one ends past its "
             "parameter",
     .evidence = "shards that tile a parameter and hold other elements",
     .kills = "layout.no-padding",
     .shows = {.in = mutant_plain},
     .piece = pieces_shifted},
    /* Pieces are of no parameter, and lie nowhere. */
    {.name = "pieces-wild",
     .text = "pieces have numbers that index nothing",
     .evidence = "a record is hostile: its numbers must not be trusted",
     .kills = "layout.no-padding",
     .shows = {.in = mutant_plain, .n_cases = 1},
     .piece = pieces_wild},
    /* Padding in the last rank's block is taken for rows. */
    {.name = "padding-as-rows",
     .text = "a rank with fewer rows than others shows its padding as rows",
     .evidence = "pytorch/pytorch#83111, writes to padding",
     .kills = "layout.no-padding",
     .shows = {.in = mutant_rows},
     .piece = padding_as_rows},
    /* No two ranks differ by more than one row. */
    {.name = "rows-balanced",
     .text = "rows are dealt out evenly: as many ranks as can have the same "
             "number of them, and none is empty",
     .evidence =
         "uneven shards computed with another rule than they were made by",
     .kills = "layout.chunk-rule",
     .shows = {.in = mutant_few_rows},
     .calls.pieces = rows_balanced},
    {.name = "rows-torn",
     .text = "each parameter is cut as a flat one is, within its rows",
     .evidence = "ZeRO-3 beside fully_shard: shards of the same sizes that are "
                 "not slices",
     .kills = "layout.whole-rows",
     .shows = {.in = mutant_few_rows},
     .calls.pieces = rows_torn},
    /* Replicas start with other values. */
    {.name = "initial-by-rank",
     .text = "initial values differ between replicas",
     .evidence = "allenai/OLMo-core#319",
     .kills = "layout.replicas-equal",
     .shows = {.in = mutant_hybrid},
     .initial = initial_by_rank},
    /* Every shard starts as a copy of the first. */
    {.name = "initial-same-shards",
     .text = "initial values are asked for from element 0, whatever the shard",
     .evidence = "pytorch/torchtitan#3106",
     .kills = "layout.initial-values",
     .shows = {.in = mutant_plain},
     .initial = initial_same_shards},
    /* The wrap policy is not followed. */
    {.name = "wrap-ignored",
     .text = "one unit is made of all modules, so that all of it is gathered "
             "at once",
     .evidence =
         "design: a policy that is not followed shows in counts and sizes",
     .kills =
         "comm.all-gather-count comm.message-size comm.reduce-scatter-count "
         "layout.chunk-rule memory.peak-gradients memory.peak-unsharded "
         "memory.rest-after-shard",
     .shows = {.in = mutant_plain},
     .told = wrap_ignored},
    {0},
};
