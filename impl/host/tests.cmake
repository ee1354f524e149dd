# SPDX-License-Identifier: Apache-2.0
# The tests of the host's operators, read by conformance/cmake/tests.cmake.
unit(impl/host/simd_test.c LINK fsdp-host-ops)
unit(impl/host/host_check_test.c LINK fsdp-host-ops fsdp-ref)
foreach(name host_ops_test host_matrix_test)
    unit(impl/host/${name}.c LINK fsdp-host-ops fsdp-ref TIMEOUT 600)
endforeach()

# The arithmetic with the flags of each level. FSDP_EXHAUSTIVE=1 in the
# environment makes a test take all 2^32 inputs.
get_directory_property(levels DIRECTORY ${CMAKE_SOURCE_DIR}/impl/host
    DEFINITION FSDP_HOST_LEVELS)
get_directory_property(flags DIRECTORY ${CMAKE_SOURCE_DIR}/impl/host
    DEFINITION FSDP_HOST_FLAGS)
foreach(level ${levels})
    get_directory_property(own_flags DIRECTORY ${CMAKE_SOURCE_DIR}/impl/host
        DEFINITION FSDP_HOST_FLAGS_${level})
    set(test host_arith_${level}_test)
    add_executable(${test} ${CMAKE_SOURCE_DIR}/impl/host/host_arith_test.c)
    target_link_libraries(${test} PRIVATE unit-testing fsdp-host-ops m)
    target_compile_definitions(${test} PRIVATE HOST_LEVEL=${level})
    target_compile_options(${test} PRIVATE ${flags} ${own_flags})
    set_target_properties(${test} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME unit.${test} COMMAND ${test})
    set_tests_properties(unit.${test} PROPERTIES LABELS unit TIMEOUT 600
        SKIP_RETURN_CODE 77)
endforeach()
