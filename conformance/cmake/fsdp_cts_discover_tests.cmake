# SPDX-License-Identifier: Apache-2.0
#[[
fsdp_cts_discover_tests(<target> [WORLDS local|threads|mpi ...]
    [PREFIX name] [RANKS K ...] [WORKLOADS W ...] [LAUNCHER command]
    [TIMEOUT seconds])

Adds the tests of an engine that <target>, a MODULE or SHARED library with the
symbol fsdp_engine_v1, brings. For each world (local, if none is named):

  <prefix>.<world>.run           runs all cases and keeps their records
  <prefix>.<world>.judge         judges them; writes a report (JSON Lines) and
                                 one in JUnit's form beside them
  <prefix>.<world>.verdict       whether the verdict in that report is good
  <prefix>.<world>.<requirement> what it says of each requirement

A requirement that the engine does not claim is skipped, never passed, and so
is one that is blocked by another, which fails: one fault is one red test. Each
test of a requirement is labelled with its level, its id and `fsdp-cts`:
`ctest -L memory` is about memory alone. `run` and `judge` are fixtures, so
that `ctest -R comm.order` runs what it needs.

RANKS and WORKLOADS select cases: then no verdict is CONFORMANT, and the test
`verdict` says whether all that was selected passes. LAUNCHER starts an MPI
world, as 'mpirun -n {K}'. PREFIX: the target's name. TIMEOUT: of `run`, 900.
Records and reports: ${CMAKE_CURRENT_BINARY_DIR}/<prefix>.<world>.
]]

# The requirements are the command's; they do not depend on the engine.
function(_fsdp_cts_requirements command out)
    execute_process(COMMAND ${command} list requirements --json
        OUTPUT_VARIABLE json RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "${command} list requirements --json: ${code}")
    endif()
    set(list "")
    string(JSON n LENGTH "${json}")
    math(EXPR last "${n} - 1")
    foreach(i RANGE ${last})
        string(JSON id GET "${json}" ${i} id)
        string(JSON level GET "${json}" ${i} level)
        list(APPEND list "${id},${level}")
    endforeach()
    set(${out} ${list} PARENT_SCOPE)
endfunction()

function(fsdp_cts_discover_tests target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX;LAUNCHER;TIMEOUT"
        "WORLDS;RANKS;WORKLOADS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "fsdp_cts_discover_tests(${target}): unknown "
            "argument '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    foreach(default "PREFIX;${target}" "TIMEOUT;900" "WORLDS;local")
        list(POP_FRONT default name)
        if(NOT arg_${name})
            set(arg_${name} ${default})
        endif()
    endforeach()

    set(selection "")
    foreach(axis ranks workload)
        string(TOUPPER ${axis} list)
        string(REPLACE WORKLOAD WORKLOADS list ${list})
        if(arg_${list})
            string(REPLACE ";" "," values "${arg_${list}}")
            list(APPEND selection --${axis} ${values})
        endif()
    endforeach()
    set(launcher "")
    if(arg_LAUNCHER)
        set(launcher --launcher ${arg_LAUNCHER})
    endif()

    get_target_property(command fsdp::fsdp-cts LOCATION)
    _fsdp_cts_requirements(${command} requirements)
    foreach(world ${arg_WORLDS})
        set(name ${arg_PREFIX}.${world})
        set(records ${CMAKE_CURRENT_BINARY_DIR}/${name})
        add_test(NAME ${name}.run COMMAND ${command} run
            --engine $<TARGET_FILE:${target}> --world ${world} ${launcher}
            --records ${records} --record-only ${selection})
        set_tests_properties(${name}.run PROPERTIES LABELS fsdp-cts
            FIXTURES_SETUP ${name}.records TIMEOUT ${arg_TIMEOUT}
            RUN_SERIAL ON)
        add_test(NAME ${name}.judge COMMAND ${command} verify ${records}
            ${selection} --report-only --report ${records}.jsonl
            --junit ${records}.xml)
        set_tests_properties(${name}.judge PROPERTIES LABELS fsdp-cts
            FIXTURES_REQUIRED ${name}.records FIXTURES_SETUP ${name}
            TIMEOUT 300)
        add_test(NAME ${name}.verdict COMMAND ${command} report
            ${records}.jsonl)
        set_tests_properties(${name}.verdict PROPERTIES LABELS fsdp-cts
            FIXTURES_REQUIRED ${name} TIMEOUT 300)
        foreach(requirement ${requirements})
            string(REPLACE "," ";" requirement ${requirement})
            list(POP_FRONT requirement id)
            add_test(NAME ${name}.${id} COMMAND ${command} report
                ${records}.jsonl --requirement ${id})
            set_tests_properties(${name}.${id} PROPERTIES
                LABELS "fsdp-cts;${requirement};${id}"
                FIXTURES_REQUIRED ${name} TIMEOUT 300 SKIP_RETURN_CODE 77)
        endforeach()
    endforeach()
endfunction()
