# SPDX-License-Identifier: Apache-2.0
#[[
Runs a command, unless the same was done before with the same files:

  cmake -DSTAMP=<file> -DFILES=<file>[;...] -DMAKES=<file>[;...]
      -P fsdp_cts_unless_done.cmake -- <command> [<argument> ...]

STAMP says what was done when the command last ended with 0: its words, the
bytes of its program, of FILES, and of the libraries that these are linked with.
It is done again if any of that has changed, if one of MAKES is missing, if
STAMP is, or where nobody can say what libraries there are (there is no
objdump). What a file loads or reads by itself is not known here: name it in
FILES, or remove STAMP.
]]
cmake_minimum_required(VERSION 3.25)

set(command "")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
    if(command OR "${CMAKE_ARGV${i}}" STREQUAL "--")
        list(APPEND command "${CMAKE_ARGV${i}}")
    endif()
endforeach()
list(POP_FRONT command)
list(GET command 0 program)

# A library's name may be all that is known of it.
function(libraries_of file out)
    file(READ ${file} magic LIMIT 4 HEX)
    set(${out} "" PARENT_SCOPE)
    if(magic STREQUAL "7f454c46")
        file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${file}
            RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing)
        set(${out} ${found} ${missing} PARENT_SCOPE)
    endif()
endfunction()

set(key "")
find_program(objdump objdump)
if(objdump)
    set(key "${command}")
    foreach(file ${program} ${FILES})
        set(all ${file})
        if(EXISTS ${file})
            libraries_of(${file} libraries)
            list(APPEND all ${libraries})
        endif()
        foreach(one ${all})
            set(sum missing)
            if(EXISTS ${one})
                file(SHA256 ${one} sum)
            endif()
            string(APPEND key "\n${sum} ${one}")
        endforeach()
    endforeach()
endif()

set(done "")
if(key AND EXISTS ${STAMP})
    file(READ ${STAMP} done)
    string(REGEX REPLACE "\nat [^\n]*\n$" "" done "${done}")
endif()
foreach(file ${MAKES})
    if(NOT EXISTS ${file})
        set(done "")
    endif()
endforeach()
if(key AND "${done}" STREQUAL "${key}")
    message("nothing has changed since this was done: ${STAMP}")
    return()
endif()

file(REMOVE ${STAMP})
execute_process(COMMAND ${command} RESULT_VARIABLE code)
if(NOT code EQUAL 0)
    message(FATAL_ERROR "${program}: ${code}")
endif()
# Whoever uses what was made sees by the time that it was made anew.
string(TIMESTAMP now "%s.%f" UTC)
file(WRITE ${STAMP} "${key}\nat ${now}\n")
