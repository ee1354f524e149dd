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
        target_link_libraries(${test} PRIVATE unit-testing ${library}
            ${CUDA_LINK})
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
cuda_unit(cuda_large_test LINK fsdp-host-ops fsdp-ref TIMEOUT 600)
cuda_unit(cuda_device_test LINK fsdp-host-ops fsdp-ref)
cuda_unit(cuda_comm_test LINK fsdp-host-ops fsdp-ref)
cuda_unit(cuda_ipc_test LINK fsdp-host-ops fsdp-ref)
if(TARGET fsdp-cuda-emulated)
    foreach(what ranges strict order ipc nccl operands growth pace)
        set(test emulated_${what}_test)
        add_executable(${test}
            ${CMAKE_SOURCE_DIR}/impl/cuda/emulated/${test}.c)
        target_link_libraries(${test} PRIVATE unit-testing fsdp-cuda-emulated
            fsdp-host-ops fsdp-ref)
        set_target_properties(${test} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        add_test(NAME emulated.${what} COMMAND ${test})
        set_tests_properties(emulated.${what} PROPERTIES LABELS unit
            TIMEOUT 60)
    endforeach()
endif()
if(TARGET emulated_math_test)
    add_test(NAME emulated.math COMMAND emulated_math_test)
    set_tests_properties(emulated.math PROPERTIES LABELS unit
        TIMEOUT 600)
endif()
if(TARGET fsdp-cuda)
    # With the flags that the build has, the user's too.
    separate_arguments(flags UNIX_COMMAND "${CMAKE_CUDA_FLAGS}")
    get_target_property(own_flags fsdp-cuda-kernels COMPILE_OPTIONS)
    add_test(NAME cuda.resources COMMAND
        ${CMAKE_SOURCE_DIR}/impl/cuda/resources_test.sh
        ${CMAKE_CUDA_COMPILER} ${flags} ${own_flags})
    add_test(NAME cuda.arithmetic COMMAND
        ${CMAKE_SOURCE_DIR}/impl/cuda/arithmetic_test.sh
        ${CMAKE_CUDA_COMPILER} ${CMAKE_SOURCE_DIR}/conformance/include
        ${flags} ${own_flags})
    # It needs cuobjdump, which a machine without CUDA's tools has not.
    add_test(NAME cuda.machine_code COMMAND
        ${CMAKE_SOURCE_DIR}/impl/cuda/machine_code_test.sh
        ${CMAKE_CUDA_COMPILER} ${CMAKE_SOURCE_DIR}/conformance/include)
    set_tests_properties(cuda.resources cuda.arithmetic
        cuda.machine_code PROPERTIES LABELS unit TIMEOUT 1200 SKIP_RETURN_CODE 77)
endif()
add_test(NAME cuda.find_nccl COMMAND
    ${CMAKE_SOURCE_DIR}/impl/cuda/find_nccl_test.sh ${CMAKE_COMMAND})
set_tests_properties(cuda.find_nccl PROPERTIES LABELS unit TIMEOUT 60)

# The engine on the emulated GPU: cases that have every operator, every
# strategy and every fold, K = 1 to 4. Staging is small, so that folds take
# several chunks.
if(TARGET fsdp-impl-cuda-emulated)
    set(emulated $<TARGET_FILE:fsdp-impl-cuda-emulated>)
    # on_emulated(NAME CASES [OPTION...])
    function(on_emulated name cases)
        add_test(NAME conformance.cuda-emulated.${name} COMMAND fsdp-cts run
            --engine ${emulated} --case ${cases} --ranks 1,2,3,4 --cover
            --timeout 120 --partial-ok ${ARGN})
        set_tests_properties(conformance.cuda-emulated.${name} PROPERTIES
            ENVIRONMENT FSDP_CUDA_STAGING=4096)
    endfunction()
    on_emulated(mlp "mlp.seed.*,mlp.empty.*,linear.small.*,linear.tiny.*")
    on_emulated(gpt "gpt.tiny.*")
    add_test(NAME unit.cuda_emulated_mixed COMMAND mixed_engine_test
        ${emulated})
    set_tests_properties(unit.cuda_emulated_mixed PROPERTIES LABELS unit
        TIMEOUT 300)
    # All ranks on one GPU: CUDA IPC in place of NCCL.
    on_emulated(ipc "mlp.odd.*,mlp.wide.*,linear.tiny.*")
    on_emulated(threads "mlp.odd.*" --world threads)
    # The model beside which the rest of a process is small, its reductions in
    # thousands of chunks.
    on_emulated(large "linear.large.*")
    set_tests_properties(conformance.cuda-emulated.large PROPERTIES
        ENVIRONMENT FSDP_CUDA_STAGING=16384)
    # NCCL's ring is tried in the middle of a step, where a dimension has three
    # ranks or more, and another collective follows at once.
    add_test(NAME conformance.cuda-emulated.ring COMMAND fsdp-cts run
        --engine ${emulated} --timeout 120 --partial-ok --case
        linear.small.natural.hybrid-shard.k6r2.flat.block.ring.s.momentum.summon)
    set_tests_properties(conformance.cuda-emulated.mlp
        conformance.cuda-emulated.gpt conformance.cuda-emulated.threads
        conformance.cuda-emulated.ipc conformance.cuda-emulated.ring
        conformance.cuda-emulated.large
        PROPERTIES LABELS conformance TIMEOUT 900 PROCESSORS 2
        FAIL_REGULAR_EXPRESSION "where nobody looks around")
    set_tests_properties(conformance.cuda-emulated.ipc PROPERTIES
        ENVIRONMENT "FSDP_CUDA_STAGING=4096;FSDP_EMULATED_GPUS=1")
    foreach(what trace races orders)
        add_test(NAME command.cuda_${what} COMMAND
            ${CMAKE_SOURCE_DIR}/impl/cuda/emulated/emulated_${what}_test.sh
            $<TARGET_FILE:fsdp-cts> ${emulated})
        set_tests_properties(command.cuda_${what} PROPERTIES LABELS command
            TIMEOUT 900 PROCESSORS 2)
    endforeach()
    set(real "")
    if(TARGET fsdp-impl-cuda)
        set(real $<TARGET_FILE:fsdp-impl-cuda>)
    endif()
    add_test(NAME command.cuda_faults COMMAND
        ${CMAKE_SOURCE_DIR}/impl/cuda/emulated/faults_test.sh
        $<TARGET_FILE:fsdp-cts> ${emulated} ${real})
    # This one and command.ci_gpu are waiting most of the time, for what hangs.
    set_tests_properties(command.cuda_faults PROPERTIES LABELS command
        TIMEOUT 900)
endif()

# The engine on a GPU: K = 1 where there is one, more where there are more.
if(TARGET fsdp-impl-cuda)
    foreach(ranks 1 2 4)
        add_test(NAME gpu.conformance.k${ranks} COMMAND
            ${CMAKE_SOURCE_DIR}/impl/cuda/gpu_conformance.sh
            $<TARGET_FILE:fsdp-cts> $<TARGET_FILE:fsdp-impl-cuda> ${ranks})
        set_tests_properties(gpu.conformance.k${ranks} PROPERTIES LABELS gpu
            TIMEOUT 1800 SKIP_RETURN_CODE 77 RESOURCE_GROUPS gpus:${ranks}
            RUN_SERIAL ON)
    endforeach()
endif()
if(TARGET fsdp-impl-cuda-emulated)
    add_test(NAME command.ci_gpu COMMAND
        ${CMAKE_SOURCE_DIR}/impl/cuda/emulated/gpu_script_test.sh
        ${CMAKE_SOURCE_DIR}/ci/gpu $<TARGET_FILE:fsdp-cts> ${emulated}
        $<TARGET_FILE:cuda_device_test_emulated>
        $<TARGET_FILE_DIR:fsdp-emulated-driver>)
    add_test(NAME command.cuda_largest COMMAND
        ${CMAKE_SOURCE_DIR}/impl/cuda/emulated/largest_test.sh
        $<TARGET_FILE:fsdp-cts> ${emulated}
        $<TARGET_FILE_DIR:fsdp-emulated-driver>)
    set_tests_properties(command.cuda_largest PROPERTIES LABELS command
        TIMEOUT 600)
    set_tests_properties(command.ci_gpu PROPERTIES LABELS command
        TIMEOUT 1800)
endif()
