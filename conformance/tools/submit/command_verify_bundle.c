/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_verify_bundle.c - `fsdp-cts verify BUNDLE`: checks and judges a
 * bundle that was submitted.
 */
#include "cli/commands.h"
#include "tools/submit/bundle.h"

#include <stdio.h>
#include <stdlib.h>

/* A bundle is judged as it is, in whole. */
int command_verify_bundle(const struct arguments *a)
{
    struct fsdp_error error = {0};
    struct bundle *b;
    struct text text;
    int code;

    if (a->n_ranks || a->workloads.n || a->cases.n || a->strategies.n ||
        a->n_seeds || a->seed || a->fixtures || a->requirements.n ||
        a->level < N_LEVELS || a->report_only) {
        fprintf(stderr, "fsdp-cts verify: a bundle says itself which cases it "
                        "is about; nothing can be selected\n");
        return EXIT_USAGE;
    }
    if (text_load(a->text, &text, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_USAGE;
    }
    supervise_catch_signals();
    b = calloc(1, sizeof(*b));
    code = b ? bundle_verify(a->rest[0], a, &text, b) : EXIT_INCOMPLETE;
    if (b && code != EXIT_BAD_DATA) {
        if (b->judged.judged && !evaluate_write(a, &b->judged, 1)) {
            code = evaluate_worse(code, EXIT_OUTPUT);
        }
        bundle_print(b, a, code);
    }
    if (b) {
        bundle_release(b);
    }
    free(b);
    text_release(&text);
    return code;
}
