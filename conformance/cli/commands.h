/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the commands; each takes the words that follow its name and
 * returns an exit code.
 */
#ifndef FSDP_CTS_COMMANDS_H
#define FSDP_CTS_COMMANDS_H

#include "cli/line/arguments.h"

int command_run(int argc, char **argv);
int command_list(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_report(int argc, char **argv);
int command_summary(int argc, char **argv);
int command_submit(int argc, char **argv);
int command_results(int argc, char **argv);
int command_mutants(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_consolidate(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_track(int argc, char **argv);
int command_fixtures(int argc, char **argv);
int command_check(int argc, char **argv);
int command_probe(int argc, char **argv);
int command_init(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_count(int argc, char **argv);
int command_worker(int argc, char **argv);

/* The part of `verify` that is about bundles, from tools/submit/: bundle_is
 * says whether the folder is one; command_verify_bundle checks and judges it,
 * after the options were parsed. */
bool bundle_is(const char *folder);
int command_verify_bundle(const struct arguments *a);

#endif
