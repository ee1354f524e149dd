# SPDX-License-Identifier: Apache-2.0
# The probes: shared objects for programs that cannot be changed. Each has a
# copy of what it needs, exports only what it interposes, and stays where it is
# once it is loaded.
include(CheckSymbolExists)

function(probe name)
    cmake_parse_arguments(PROBE "" "" "SOURCES;LINK" ${ARGN})
    list(TRANSFORM PROBE_SOURCES PREPEND tools/probes/preload/)
    add_library(${name} MODULE ${PROBE_SOURCES} tools/probes/preload/log_writer.c
        tools/probes/probe_names.c)
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE house Threads::Threads
        ${CMAKE_DL_LIBS} ${PROBE_LINK})
    set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/probes)
    target_link_options(${name} PRIVATE -Wl,-z,nodelete)
endfunction()

probe(fsdp-probe-heap SOURCES heap_probe.c heap_log.c heap_maps.c)
probe(fsdp-probe-nccl SOURCES nccl_probe.c call_log.c)
probe(fsdp-probe-torch SOURCES torch_probe.c call_log.c heap_log.c)
# PyTorch's allocator throws through it.
target_compile_options(fsdp-probe-torch PRIVATE -fexceptions)
set(probes fsdp-probe-heap fsdp-probe-nccl fsdp-probe-torch)

if(MPI_C_FOUND)
    probe(fsdp-probe-mpi SOURCES mpi_probe.c mpi_communicators.c mpi_requests.c
        mpi_arguments.c mpi_collectives.c call_log.c LINK MPI::MPI_C)
    list(APPEND probes fsdp-probe-mpi)
    # Persistent collectives: MPI 4's, or those of Open MPI before it.
    set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
    check_symbol_exists(MPI_Allgather_init mpi.h FSDP_HAVE_MPI_PERSISTENT)
    check_symbol_exists(MPIX_Allgather_init "mpi.h;mpi-ext.h"
        FSDP_HAVE_MPIX_PERSISTENT)
    unset(CMAKE_REQUIRED_LIBRARIES)
    foreach(kind MPI MPIX)
        if(FSDP_HAVE_${kind}_PERSISTENT)
            target_compile_definitions(fsdp-probe-mpi PRIVATE
                FSDP_HAVE_${kind}_PERSISTENT=1)
        endif()
    endforeach()
endif()
set(FSDP_PROBES ${probes} PARENT_SCOPE)
