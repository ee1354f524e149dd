/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_plugin.c - the one symbol that makes the optimized engine a plug-in.
 */
#include "impl.h"

const struct fsdp_engine *fsdp_engine_v1(void)
{
    return fsdp_impl_engine();
}
