/* SPDX-License-Identifier: Apache-2.0 */
/* probe_launch.h - runs a program under the probe of torch.distributed. */
#ifndef FSDP_CTS_PROBE_LAUNCH_H
#define FSDP_CTS_PROBE_LAUNCH_H

/* Becomes the program: argv[0] is a folder for logs, argv[1] the program; the
 * list ends with NULL. If that fails, says why and returns an exit code. */
int probe_launch(char **argv);

#endif
