# SPDX-License-Identifier: Apache-2.0
# Where NCCL is: header and library of one place, so that they are of one
# version. NCCL_HOME, of the cache or the environment, comes first, then what is
# beside the toolkit, the system, and the wheel that Python has (nvidia-nccl-*),
# which has no libnccl.so but the name that programs load. Communicators that do
# not block came with 2.14; what is older is passed over.
#
# find_nccl(FOLDER...): sets NCCL_INCLUDE and NCCL_LIBRARY, or neither, and
# NCCL_WHY_NOT. The folders are those of the toolkit.

if(NOT DEFINED NCCL_SYSTEM)
    set(NCCL_SYSTEM /usr /usr/local)
endif()

set(NCCL_OLDEST 2.14)

function(nccl_version header out)
    file(STRINGS ${header} lines REGEX "^#define NCCL_(MAJOR|MINOR) ")
    string(REGEX REPLACE "[^0-9]+" "." version "${lines}.")
    string(REGEX REPLACE "^\\.|\\.$" "" version "${version}")
    set(${out} "${version}" PARENT_SCOPE)
endfunction()

# nccl_at(HOME): sets both if it is there, and NCCL_TOO_OLD if it is that.
function(nccl_at home)
    foreach(folder lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE}
            lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
        foreach(name libnccl.so libnccl.so.2)
            if(EXISTS ${home}/include/nccl.h AND
                    EXISTS ${home}/${folder}/${name})
                nccl_version(${home}/include/nccl.h version)
                if(version VERSION_LESS NCCL_OLDEST)
                    set(NCCL_TOO_OLD "NCCL at ${home} is ${version}, and \
${NCCL_OLDEST} or later is needed" PARENT_SCOPE)
                    return()
                endif()
                get_filename_component(include ${home}/include ABSOLUTE)
                get_filename_component(library ${home}/${folder}/${name}
                    ABSOLUTE)
                set(NCCL_INCLUDE ${include} PARENT_SCOPE)
                set(NCCL_LIBRARY ${library} PARENT_SCOPE)
                return()
            endif()
        endforeach()
    endforeach()
endfunction()

function(nccl_of_python out)
    find_program(FSDP_PYTHON python3)
    set(${out} "" PARENT_SCOPE)
    if(FSDP_PYTHON)
        execute_process(COMMAND ${FSDP_PYTHON} -c "
import importlib.util
spec = importlib.util.find_spec('nvidia.nccl')
print(list(spec.submodule_search_locations)[0])"
            OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE
            ERROR_QUIET RESULT_VARIABLE status)
        if(status EQUAL 0)
            set(${out} ${folder} PARENT_SCOPE)
        endif()
    endif()
endfunction()

function(find_nccl)
    set(wish ${NCCL_HOME})
    if(NOT wish)
        set(wish $ENV{NCCL_HOME})
    endif()
    if(wish)
        nccl_at("${wish}")
        set(why "NCCL_HOME is ${wish}, which has no include/nccl.h with \
lib/libnccl.so or lib/libnccl.so.2")
    else()
        nccl_of_python(wheel)
        foreach(home ${ARGN} ${NCCL_SYSTEM} ${wheel})
            if(NOT NCCL_LIBRARY)
                nccl_at("${home}")
            endif()
        endforeach()
        set(why "NCCL was not found beside the toolkit, in the system or in \
Python's packages; NCCL_HOME names its folder")
    endif()
    if(NCCL_TOO_OLD)
        set(why "${NCCL_TOO_OLD}")
    endif()
    set(NCCL_INCLUDE "${NCCL_INCLUDE}" PARENT_SCOPE)
    set(NCCL_LIBRARY "${NCCL_LIBRARY}" PARENT_SCOPE)
    set(NCCL_WHY_NOT "${why}" PARENT_SCOPE)
endfunction()
