# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` gives to those who bring an engine: the headers of the
# contract, the command, the device of the host as a library (for an engine
# whose only novelty is its sharding), both engines as plug-ins, the probes, a
# package for find_package and one for pkg-config; and what is no program:
# documentation, examples, adapters, golden data, samples of pipelines.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# All that is installed, and nothing else: `ninja suite`.
set(installed fsdp-cts fsdp-host fsdp-host-ops fsdp-ref-plugin fsdp-impl
    ${FSDP_PROBES})
add_custom_target(suite DEPENDS ${installed})
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# First of all: without its programs nothing is installed, rather than half.
set(files "")
foreach(target ${installed})
    string(APPEND files " \"$<TARGET_FILE:${target}>\"")
endforeach()
install(CODE "foreach(file IN ITEMS${files})
    if(NOT EXISTS \"\${file}\")
        message(FATAL_ERROR \"\${file} is not built; first: \"
            \"cmake --build ${CMAKE_BINARY_DIR} --target suite\")
    endif()
endforeach()")

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fsdp-cts)
set_target_properties(fsdp-api PROPERTIES EXPORT_NAME api)
set_target_properties(fsdp-host PROPERTIES EXPORT_NAME host)
set_target_properties(fsdp-host-ops PROPERTIES EXPORT_NAME host-ops)
install(TARGETS fsdp-cts fsdp-api fsdp-host fsdp-host-ops EXPORT fsdp-cts)
install(DIRECTORY conformance/include/fsdp DESTINATION
    ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(FILES impl/host/host_env.h DESTINATION
    ${CMAKE_INSTALL_INCLUDEDIR}/fsdp-host)
install(TARGETS fsdp-ref-plugin fsdp-impl LIBRARY DESTINATION
    ${CMAKE_INSTALL_LIBDIR}/fsdp-cts)
install(TARGETS ${FSDP_PROBES} LIBRARY DESTINATION
    ${CMAKE_INSTALL_LIBDIR}/fsdp-cts)
if(TARGET fsdp-impl-cuda) # it takes a minute of nvcc: who wants it builds it
    install(TARGETS fsdp-impl-cuda LIBRARY DESTINATION
        ${CMAKE_INSTALL_LIBDIR}/fsdp-cts OPTIONAL)
endif()
install(EXPORT fsdp-cts NAMESPACE fsdp:: DESTINATION ${package})

configure_package_config_file(conformance/cmake/fsdp-cts-config.cmake.in
    ${CMAKE_BINARY_DIR}/package/fsdp-cts-config.cmake
    INSTALL_DESTINATION ${package})
write_basic_package_version_file(
    ${CMAKE_BINARY_DIR}/package/fsdp-cts-config-version.cmake
    COMPATIBILITY SameMinorVersion)
# Relative, so that `cmake --install --prefix` may put it anywhere.
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(conformance/cmake/fsdp-cts.pc.in
    ${CMAKE_BINARY_DIR}/package/fsdp-cts.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/package/fsdp-cts-config.cmake
    ${CMAKE_BINARY_DIR}/package/fsdp-cts-config-version.cmake
    conformance/cmake/fsdp_cts_discover_tests.cmake
    conformance/cmake/fsdp_cts_unless_done.cmake DESTINATION ${package})
install(FILES ${CMAKE_BINARY_DIR}/package/fsdp-cts.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Pages lie as in the repository, so that their links lead somewhere.
install(FILES LICENSE README.md conformance/cmake/copyright
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ref/miniature.c DESTINATION ${CMAKE_INSTALL_DOCDIR}/ref)
set(data ${CMAKE_INSTALL_DATADIR}/fsdp-cts)
install(DIRECTORY conformance/tools/adapters DESTINATION ${data}
    FILES_MATCHING PATTERN *.py PATTERN *.txt PATTERN __pycache__ EXCLUDE)
install(DIRECTORY conformance/tools/check DESTINATION ${data}
    FILES_MATCHING PATTERN *.py PATTERN __pycache__ EXCLUDE)
install(DIRECTORY conformance/tools/probes/torch/ DESTINATION ${data}/probes
    FILES_MATCHING PATTERN *.py PATTERN __pycache__ EXCLUDE)
install(DIRECTORY fixtures/golden fixtures/schema DESTINATION ${data}
    PATTERN schema_test EXCLUDE)
install(DIRECTORY ci/samples DESTINATION ${data})
# The manual page and completions: the command prints them, of its own options.
foreach(page "man;share/man/man1;fsdp-cts.1"
        "bash;share/bash-completion/completions;fsdp-cts"
        "zsh;share/zsh/site-functions;_fsdp-cts"
        "fish;share/fish/vendor_completions.d;fsdp-cts.fish")
    list(GET page 0 form)
    list(GET page 1 folder)
    list(GET page 2 name)
    install(CODE "
        file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/${folder}\")
        execute_process(COMMAND \"$<TARGET_FILE:fsdp-cts>\" completion ${form}
            OUTPUT_FILE \"${CMAKE_BINARY_DIR}/${folder}/${name}\"
            RESULT_VARIABLE failed)
        if(failed)
            message(FATAL_ERROR \"fsdp-cts completion ${form}: \${failed}\")
        endif()
        file(INSTALL \"${CMAKE_BINARY_DIR}/${folder}/${name}\"
            DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${folder}\")"
        COMPONENT help)
endforeach()
