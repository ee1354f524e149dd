# SPDX-License-Identifier: Apache-2.0
#[[
fsdp_cts_discover_tests(<target> [WORLDS local|threads|mpi ...]
    [PREFIX name] [RANKS K ...] [WORKLOADS W ...] [STRATEGIES S ...]
    [LEVEL L] [BY requirement|case] [LABELS label ...] [DEPENDS file ...]
    [LAUNCHER command] [TIMEOUT seconds])

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

Records are made again only when they would be others: when the engine, a
library that it is linked with, the suite or what is selected has changed. What
the engine loads or reads by itself is named as DEPENDS. To have them made
anyway, remove <records>.stamp.

BY case: instead of these, for each case that is selected

  <prefix>.<world>.<case>        runs this case and judges it

which takes a fraction of a second, needs no other test, and is run by ctest on
as many processors as it is given. Requirements that compare cases with each
other then see one alone. The labels are `fsdp-cts` and the workload.

RANKS, WORKLOADS and STRATEGIES select cases: then no verdict is CONFORMANT, and
the test `verdict` says whether all that was selected passes. LEVEL: requirements
up to this one, as `run --level`. LABELS: more labels, of all tests. LAUNCHER
starts an MPI world, as 'mpirun -n {K}'. PREFIX: the target's name. TIMEOUT: of
`run`, 900. Records and reports: ${CMAKE_CURRENT_BINARY_DIR}/<prefix>.<world>.
]]
set(_fsdp_cts_unless_done ${CMAKE_CURRENT_LIST_DIR}/fsdp_cts_unless_done.cmake)

# What a list of the command says, as JSON; it does not depend on the engine.
function(_fsdp_cts_list out command)
    execute_process(COMMAND ${command} list ${ARGN} --json
        OUTPUT_VARIABLE json RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "${command} list ${ARGN} --json: ${code}")
    endif()
    set(${out} "${json}" PARENT_SCOPE)
endfunction()

# "id,level" of each requirement, up to a level that may be empty.
function(_fsdp_cts_requirements out command most)
    set(list "")
    set(end "")
    _fsdp_cts_list(levels ${command} levels)
    _fsdp_cts_list(json ${command} requirements)
    string(JSON n LENGTH "${levels}")
    set(known "")
    foreach(i RANGE 1 ${n})
        math(EXPR i "${i} - 1")
        string(JSON name GET "${levels}" ${i} name)
        list(APPEND known ${name})
    endforeach()
    if(most MATCHES "^[0-9]+$")
        set(end ${most})
    elseif(NOT most STREQUAL "")
        list(FIND known ${most} end)
    endif()
    if(NOT end STREQUAL "" AND (end LESS 0 OR NOT end LESS n))
        message(FATAL_ERROR "fsdp_cts_discover_tests: no level '${most}'; "
            "there are 0 to 8, or ${known}")
    endif()
    string(JSON n LENGTH "${json}")
    math(EXPR last "${n} - 1")
    foreach(i RANGE ${last})
        string(JSON id GET "${json}" ${i} id)
        string(JSON level GET "${json}" ${i} level)
        list(FIND known ${level} at)
        if(end STREQUAL "" OR NOT at GREATER end)
            list(APPEND list "${id},${level}")
        endif()
    endforeach()
    set(${out} ${list} PARENT_SCOPE)
endfunction()

# The ids of the selected cases.
function(_fsdp_cts_cases out command)
    execute_process(COMMAND ${command} list cases ${ARGN}
        OUTPUT_VARIABLE ids RESULT_VARIABLE code)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "${command} list cases ${ARGN}: ${code}")
    endif()
    string(STRIP "${ids}" ids)
    string(REPLACE "\n" ";" ids "${ids}")
    set(${out} ${ids} PARENT_SCOPE)
endfunction()

function(fsdp_cts_discover_tests target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PREFIX;LAUNCHER;TIMEOUT;LEVEL;BY"
        "WORLDS;RANKS;WORKLOADS;STRATEGIES;LABELS;DEPENDS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "fsdp_cts_discover_tests(${target}): unknown "
            "argument '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    foreach(default "PREFIX;${target}" "TIMEOUT;900" "WORLDS;local"
            "BY;requirement")
        list(POP_FRONT default name)
        if(NOT arg_${name})
            set(arg_${name} ${default})
        endif()
    endforeach()
    if(NOT arg_BY MATCHES "^(requirement|case)$")
        message(FATAL_ERROR "fsdp_cts_discover_tests(${target}): BY is "
            "requirement or case, not '${arg_BY}'")
    endif()

    set(selection "")
    foreach(axis ranks:RANKS workload:WORKLOADS strategy:STRATEGIES)
        string(REPLACE ":" ";" axis ${axis})
        list(POP_BACK axis list)
        if(arg_${list})
            string(REPLACE ";" "," values "${arg_${list}}")
            list(APPEND selection --${axis} ${values})
        endif()
    endforeach()
    set(level "")
    if(NOT "${arg_LEVEL}" STREQUAL "")
        set(level --level ${arg_LEVEL})
    endif()
    set(launcher "")
    if(arg_LAUNCHER)
        set(launcher --launcher ${arg_LAUNCHER})
    endif()
    set(labels fsdp-cts ${arg_LABELS})

    get_target_property(command fsdp::fsdp-cts LOCATION)
    _fsdp_cts_requirements(requirements ${command} "${arg_LEVEL}")
    foreach(world ${arg_WORLDS})
        set(name ${arg_PREFIX}.${world})
        set(records ${CMAKE_CURRENT_BINARY_DIR}/${name})
        set(engine --engine $<TARGET_FILE:${target}> --world ${world}
            ${launcher})
        if(arg_BY STREQUAL "case")
            _fsdp_cts_cases(ids ${command} ${selection})
            foreach(id ${ids})
                string(REGEX REPLACE "\\..*" "" workload ${id})
                add_test(NAME ${name}.${id} COMMAND ${command} run ${engine}
                    --case ${id} ${level})
                set_tests_properties(${name}.${id} PROPERTIES
                    LABELS "${labels};${workload}" TIMEOUT ${arg_TIMEOUT}
                    SKIP_RETURN_CODE 77)
            endforeach()
            continue()
        endif()
        add_test(NAME ${name}.run COMMAND ${CMAKE_COMMAND}
            -DSTAMP=${records}.stamp
            "-DFILES=$<TARGET_FILE:${target}>;${arg_DEPENDS}"
            -DMAKES=${records}/rerun.json -P ${_fsdp_cts_unless_done} --
            ${command} run ${engine} --records ${records} --record-only
            ${selection} ${level})
        set_tests_properties(${name}.run PROPERTIES LABELS "${labels}"
            FIXTURES_SETUP ${name}.records TIMEOUT ${arg_TIMEOUT}
            RUN_SERIAL ON)
        add_test(NAME ${name}.judge COMMAND ${CMAKE_COMMAND}
            -DSTAMP=${records}.judged -DFILES=${records}.stamp
            "-DMAKES=${records}.jsonl;${records}.xml"
            -P ${_fsdp_cts_unless_done} -- ${command} verify ${records}
            ${selection} ${level} --report-only --report ${records}.jsonl
            --junit ${records}.xml)
        set_tests_properties(${name}.judge PROPERTIES LABELS "${labels}"
            FIXTURES_REQUIRED ${name}.records FIXTURES_SETUP ${name}
            TIMEOUT 300)
        add_test(NAME ${name}.verdict COMMAND ${command} report
            ${records}.jsonl)
        set_tests_properties(${name}.verdict PROPERTIES LABELS "${labels}"
            FIXTURES_REQUIRED ${name} TIMEOUT 300)
        foreach(requirement ${requirements})
            string(REPLACE "," ";" requirement ${requirement})
            list(POP_FRONT requirement id)
            add_test(NAME ${name}.${id} COMMAND ${command} report
                ${records}.jsonl --requirement ${id})
            set_tests_properties(${name}.${id} PROPERTIES
                LABELS "${labels};${requirement};${id}"
                FIXTURES_REQUIRED ${name} TIMEOUT 300 SKIP_RETURN_CODE 77)
        endforeach()
    endforeach()
endfunction()
