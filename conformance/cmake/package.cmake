# SPDX-License-Identifier: Apache-2.0
# What `cpack -G DEB` packs: what `cmake --install` installs. The package's
# dependencies are those that its programs are linked with. ci/package gives the
# version of a commit that has no tag, and builds without MPI.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fsdp-cts)
set(CPACK_PACKAGE_CONTACT "fsdp-cts maintainers <maintainers@fsdp-cts.invalid>"
    CACHE STRING "Who publishes the package, with an address")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
    "A command that runs an engine of Fully Sharded Data Parallel (FSDP, ZeRO-3)
 through the suite and says, with evidence, whether its losses, its memory and
 its collectives are what they must be; a reference engine and an optimized one,
 the headers to write one's own, adapters, golden data and documentation.")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# To build an engine, and to test it with ctest.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gcc | clang, cmake (>= 3.25), pkg-config")
include(CPack)
