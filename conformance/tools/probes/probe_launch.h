/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_launch.h - a program under the probe of torch.distributed.
 */
#ifndef FSDP_CTS_PROBE_LAUNCH_H
#define FSDP_CTS_PROBE_LAUNCH_H

/* Becomes the program: argv[0] is a folder for logs, argv[1] the program, up to
 * a NULL. Returns an exit code if that cannot be, having said why. */
int probe_launch(char **argv);

#endif
