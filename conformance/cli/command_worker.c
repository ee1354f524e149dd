/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_worker.c - the command that supervisors start; not for people.
 */
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "run/worker/worker.h"

#include <stdio.h>

int command_worker(int argc, char **argv)
{
    struct arguments a;
    struct worker_options o;

    if (arguments_parse(argc, argv,
                        TAKES_WORLD | TAKES_RECORDS | TAKES_TEXT |
                            TAKES_WORKER | TAKES_MUTANT,
                        &a)) {
        return EXIT_USAGE;
    }
    if (!a.batch || !a.records || !a.engines.name[0] || a.n_rest) {
        fprintf(stderr, "fsdp-cts worker: is started by fsdp-cts run\n");
        return EXIT_USAGE;
    }
    o = (struct worker_options){.batch = a.batch,
                                .records = a.records,
                                .engine = a.engines.name[0],
                                .mutant = a.mutant,
                                .text = a.text,
                                .world = a.world,
                                .timeout_ms = a.timeout_ms,
                                .words = a.words,
                                .outputs = a.outputs,
                                .trace = a.trace_events,
                                .isolate = a.isolated,
                                .sample = a.sample_ranks,
                                .wrapped = a.wrapped,
                                .debug = a.debug};
    return worker_run(&o);
}
