/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_count.c - collectives, bytes and memory of an engine at any number
 * of ranks, without arithmetic.
 */
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "mutants/mutant.h"
#include "run/play/engine_claims.h"
#include "run/worker/engine_load.h"
#include "tools/count/count_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: fsdp-cts count K [CASE] [OPTION ...]\n\n"
    "Plays the twelve cases of large worlds for K ranks, 2 to 65536, one rank "
    "after the\nother: nothing is sent, nothing is computed, tensors have no "
    "values. Collectives,\nbytes and memory of every rank are compared with "
    "what they must be; values are\nnot judged, and there is no verdict. CASE: "
    "those of this form alone, as\n"
    "'gpt.*.full-shard.*'.\n\n"
    "example:\n"
    "  fsdp-cts count 4096 --engine ref\n"
    "\n";

static const char ending[] =
    "\nexit: 0 as it must be; 1 not so; 64 usage error; 65 no such model\n";

static int take_ranks(const struct arguments *a, uint32_t *out)
{
    char *end = NULL;
    unsigned long n = 0;

    if ((a->n_rest == 1 || a->n_rest == 2) && a->rest[0][0] >= '1' &&
        a->rest[0][0] <= '9') {
        errno = 0;
        n = strtoul(a->rest[0], &end, 10);
    }
    if (!end || *end != '\0' || errno != 0 || n < 2 || n > EXPECT_MAX_RANKS) {
        fprintf(stderr,
                "fsdp-cts count: K is a number of ranks, 2 to %d, as in "
                "fsdp-cts count 4096\n",
                (int)EXPECT_MAX_RANKS);
        return EXIT_USAGE;
    }
    *out = (uint32_t)n;
    return 0;
}

static uint32_t least_divisor(uint32_t n)
{
    for (uint32_t d = 2; d <= n / d; d++) {
        if (n % d == 0) {
            return d;
        }
    }
    return n;
}

/* The case of a large world with so many ranks; false: K has no such mesh. */
static bool resize(struct run_case *c, uint32_t ranks)
{
    if (c->replicas > 1 && c->replicas < c->ranks) {
        c->replicas = least_divisor(ranks);
    } else if (c->replicas > 1) {
        c->replicas = ranks;
    }
    if (c->replicas > 1 && c->replicas == ranks &&
        (c->strategy == CASE_HYBRID_SHARD ||
         c->strategy == CASE_HYBRID_SHARD_ZERO2)) {
        return false;
    }
    c->ranks = ranks;
    c->recorded_steps = 0;
    return true;
}

static int count_one(const struct run_case *c, const struct fsdp_engine *engine,
                     const struct fsdp_engine *lender,
                     const struct mutant *mutant)
{
    struct count_result r;
    struct fsdp_error error = {0};
    char id[CASE_ID_BYTES];
    const int status = count_case(c, engine, lender, mutant, &r, &error);

    case_id(c, id);
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts count: %s: %s\n", id,
                error.message[0] != '\0' ? error.message
                                         : fsdp_status_text(status));
        return EXIT_BAD_DATA;
    }
    printf("%-5s %2u hold, %u not, %12llu collectives %16llu bytes  %s\n",
           r.failed > 0 || r.unproved > 0 ? "FAIL" : "pass",
           r.asked - (r.asked > 0 ? r.failed : 0), r.failed,
           (unsigned long long)r.collectives, (unsigned long long)r.bytes, id);
    if (r.first[0] != '\0') {
        printf("      %s\n", r.first);
    }
    if (r.unproved > 0) {
        printf("      %u checks do not notice a spoiled record\n", r.unproved);
    }
    (void)fflush(stdout);
    return r.failed > 0 || r.unproved > 0 ? EXIT_NOT_CONFORMANT : 0;
}

static bool is_of_form(const struct run_case *c, const char *form)
{
    const struct name_list one = {.name = {form}, .n = form ? 1 : 0};
    char id[CASE_ID_BYTES];

    case_id(c, id);
    return !form || name_list_matches(&one, id);
}

/* Returns 0, 1, or the exit code that ends the command. */
static int count_cases(const struct case_list *list, uint32_t ranks,
                       const char *form, const struct fsdp_engine *engine,
                       const struct fsdp_engine *lender,
                       const struct mutant *mutant)
{
    uint32_t n = 0;
    uint32_t no_mesh = 0;
    int code = 0;

    for (uint32_t i = 0; i < list->n && code <= EXIT_NOT_CONFORMANT; i++) {
        struct run_case c = list->c[i];

        if (!resize(&c, ranks)) {
            no_mesh++;
        } else if (is_of_form(&c, form)) {
            const int one = count_one(&c, engine, lender, mutant);

            code = one > code ? one : code;
            n++;
        }
    }
    if (n == 0) {
        fprintf(stderr, "fsdp-cts count: no case of %u ranks is '%.200s'\n",
                ranks, form ? form : "");
        return EXIT_USAGE;
    }
    if (code <= EXIT_NOT_CONFORMANT) {
        printf("%s: counts and bytes alone: %u of %u cases, %u ranks each%s\n",
               engine->name, n, list->n, ranks,
               no_mesh > 0 ? "; those with replicas have no mesh of a prime "
                             "number of ranks"
                           : "");
    }
    return code;
}

static int count_engine(const struct arguments *a, const char *name,
                        uint32_t ranks, const struct case_list *list)
{
    const struct fsdp_engine *engine = NULL;
    const struct fsdp_engine *lender = NULL;
    struct fsdp_error error = {0};
    int status = engine_load(name, &engine, &error);

    if (status == FSDP_OK) {
        status = engine_trains(name, engine, &error);
    }
    if (status == FSDP_OK && engine_claims(engine, "serial")) {
        status = FSDP_ERR_UNSUPPORTED;
        snprintf(error.message, sizeof(error.message),
                 "%s plays all ranks at once, and is no engine to count",
                 engine->name);
    }
    if (status == FSDP_OK) {
        status = engine_load("ref", &lender, &error);
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts count: %s\n", error.message);
        return EXIT_USAGE;
    }
    return count_cases(list, ranks, a->n_rest == 2 ? a->rest[1] : NULL, engine,
                       lender, mutant_named(a->mutant));
}

int command_count(int argc, char **argv)
{
    struct arguments a;
    struct case_list list = {0};
    struct fsdp_error error = {0};
    uint32_t ranks = 0;
    int code = 0;

    if (arguments_parse(argc, argv, TAKES_ENGINE | TAKES_MUTANT, &a)) {
        return EXIT_USAGE;
    }
    if (a.help) {
        fputs(usage, stdout);
        arguments_help(TAKES_ENGINE | TAKES_MUTANT);
        fputs(ending, stdout);
        return 0;
    }
    if (take_ranks(&a, &ranks)) {
        return EXIT_USAGE;
    }
    if (a.engines.n == 0) {
        a.engines.name[a.engines.n++] = "ref";
    }
    /* Of which the letter R of the cases' lines is two. */
    if (manifest_add_world(CASE_MAX_RANKS, &list, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts count: %s\n", error.message);
        return EXIT_BAD_DATA;
    }
    for (uint32_t i = 0; i < a.engines.n && code <= EXIT_NOT_CONFORMANT; i++) {
        const int one = count_engine(&a, a.engines.name[i], ranks, &list);

        code = one > code ? one : code;
    }
    manifest_release(&list);
    return code;
}
