# SPDX-License-Identifier: Apache-2.0
#
# For who changes the suite: cmake -C ci/developer.cmake -S . -B build
# What a compiler warns of that is newer than ours is no reason not to build
# the suite for those who only use it. A folder that ci/conformance has made
# says otherwise, and is to change.
set(FSDP_WERROR ON CACHE BOOL "Warnings are errors" FORCE)
set(BUILD_TESTING ON CACHE BOOL "Build the tests" FORCE)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON CACHE BOOL "For clang-tidy" FORCE)
