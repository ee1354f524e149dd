# SPDX-License-Identifier: Apache-2.0
# Tests of the CUDA device and of the engine on it, read by
# conformance/cmake/tests.cmake. Each test of the device is built twice: against
# the emulation, which runs anywhere, and for a GPU. Tests with the label gpu
# need one: they ask CTest for it, and skip with the reason where there is none.

# cuda_unit(NAME libraries...)
function(cuda_unit name)
    cmake_parse_arguments(CUDA "" "TIMEOUT" "LINK" ${ARGN})
    if(NOT CUDA_TIMEOUT)
        set(CUDA_TIMEOUT 120)
    endif()
    set(kinds "")
    if(TARGET fsdp-cuda-emulated)
        list(APPEND kinds emulated)
    endif()
    if(TARGET fsdp-cuda)
        list(APPEND kinds gpu)
    endif()
    foreach(kind ${kinds})
        set(test ${name}_${kind})
        set(library fsdp-cuda)
        if(kind STREQUAL "emulated")
            set(library fsdp-cuda-emulated)
        endif()
        add_executable(${test} ${CMAKE_SOURCE_DIR}/impl/cuda/${name}.c)
        target_link_libraries(${test} PRIVATE house PkgConfig::CMOCKA
            ${library} ${CUDA_LINK})
        set_target_properties(${test} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        add_test(NAME ${kind}.${name} COMMAND ${test})
        set_tests_properties(${kind}.${name} PROPERTIES LABELS unit
            TIMEOUT ${CUDA_TIMEOUT} SKIP_RETURN_CODE 77)
        if(kind STREQUAL "gpu")
            set_tests_properties(${kind}.${name} PROPERTIES LABELS gpu
                RESOURCE_GROUPS gpus:1)
        endif()
    endforeach()
endfunction()

cuda_unit(cuda_ops_test LINK fsdp-host-ops fsdp-ref TIMEOUT 600)
