# SPDX-License-Identifier: Apache-2.0
# Tests of the probes: programs that use nothing of the suite, run as they are.

function(program name)
    cmake_parse_arguments(PROGRAM "SHARED" "" "LINK" ${ARGN})
    set(source ${here}/tools/probes/testing/${name}.c)
    if(PROGRAM_SHARED)
        add_library(${name} MODULE ${source})
    else()
        add_executable(${name} ${source})
    endif()
    target_link_libraries(${name} PRIVATE house ${PROGRAM_LINK})
    target_include_directories(${name} PRIVATE ${here})
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

unit(conformance/tools/probes/probe_test.c LINK fsdp-probe)
program(plain_heap LINK Threads::Threads)
program(nccl_driver LINK Threads::Threads ${CMAKE_DL_LIBS})
set(scripts heap_probe nccl_probe torch_launch)
if(MPI_C_FOUND)
    program(plain_fsdp LINK MPI::MPI_C Threads::Threads)
    program(private_calls SHARED LINK MPI::MPI_C ${CMAKE_DL_LIBS})
    program(own_run LINK fsdp-probe)
    list(APPEND scripts mpi_probe own_run)
endif()
foreach(name ${scripts})
    add_test(NAME probe.${name} COMMAND ${here}/tools/probes/${name}_test.sh
        $<TARGET_FILE:fsdp-cts> ${CMAKE_BINARY_DIR}/probes
        ${CMAKE_BINARY_DIR}/tests "${FSDP_SANITIZE}")
    set_tests_properties(probe.${name} PROPERTIES LABELS command TIMEOUT 600
        SKIP_RETURN_CODE 77)
endforeach()
if(MPI_C_FOUND)
    set_tests_properties(probe.mpi_probe probe.own_run PROPERTIES
        LABELS "command;mpi")
endif()
# Training by PyTorch, which is looked for where the adapters find it.
add_test(NAME probe.torch_train COMMAND
    ${here}/tools/probes/torch_train_test.sh $<TARGET_FILE:fsdp-cts>
    ${CMAKE_BINARY_DIR}/probes ${CMAKE_BINARY_DIR}/tests "${FSDP_SANITIZE}")
set_tests_properties(probe.torch_train PROPERTIES LABELS conformance
    TIMEOUT 1200 SKIP_RETURN_CODE 77)
