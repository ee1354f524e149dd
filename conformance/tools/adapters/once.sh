# SPDX-License-Identifier: Apache-2.0
#
# once.sh - sourced by tests that start Python many times: behind
# `imported_once`, $player plays a script as $python does, in a fork of a
# process that has imported torch already (once.py). Both, and $folder, are the
# test's.
# shellcheck shell=bash

# shellcheck disable=SC2154  # python and folder
player=$python
imported_once() # MODULE... that are imported, too
{
    local server once

    once=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/once.py
    export FSDP_ONCE=$folder/once
    "$python" -B -W ignore "$once" --serve "$FSDP_ONCE" "$@" &
    server=$!
    while [ ! -e "$FSDP_ONCE" ]; do
        kill -0 $server 2>/dev/null || { echo 'FAIL once.py has ended'; exit 1; }
        sleep 0.1
    done
    player=$once
}
