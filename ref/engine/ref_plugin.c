/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ref_plugin.c - the one symbol that makes the reference engine a plug-in.
 */
#include "ref.h"

const struct fsdp_engine *fsdp_engine_v1(void)
{
    return fsdp_ref_engine();
}
