# SPDX-License-Identifier: Apache-2.0
# Black boxes of order.py, and its test.

function(box name source)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE house ${ARGN})
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

if(MPI_C_FOUND)
    box(box_mpi ${here}/tools/order/box_mpi.c fsdp-api MPI::MPI_C)
endif()
if(TARGET fsdp-cuda-emulated)
    box(box_nccl ${CMAKE_SOURCE_DIR}/impl/cuda/emulated/emulated_box.c
        fsdp-cuda-emulated fsdp-host-ops fsdp-ref)
endif()
if(NOT FSDP_SANITIZE STREQUAL "")
    return() # nothing in it is ours but the boxes
endif()
add_test(NAME order.trees COMMAND ${here}/tools/order/order_test.sh
    ${CMAKE_BINARY_DIR}/tests ${MPIEXEC_EXECUTABLE} --oversubscribe
    --allow-run-as-root ${MPIEXEC_NUMPROC_FLAG})
set_tests_properties(order.trees PROPERTIES LABELS conformance TIMEOUT 300
    SKIP_RETURN_CODE 77)
