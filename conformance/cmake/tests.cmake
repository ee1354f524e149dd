# SPDX-License-Identifier: Apache-2.0
#
# Every test of the suite. Labels: unit, lint, command, mutant, conformance,
# mpi. A test that cannot run here exits 77 and says why; nothing else skips.
#
# Traps that this file steers around (each turned a failure green once): CMocka
# returns the number of failures, so mains normalise it; WILL_FAIL and
# SKIP_REGULAR_EXPRESSION hide crashes and failures, so neither is used; a
# skipped fixture does not stop its dependents, so none of ours can skip.

pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
find_library(MPFR_LIBRARY mpfr REQUIRED)
find_library(GMP_LIBRARY NAMES gmp libgmp.so.10 REQUIRED)

set(here ${CMAKE_SOURCE_DIR}/conformance)
set(fixtures ${CMAKE_SOURCE_DIR}/fixtures)

# unit(FILE libraries... [WITH sources...]): FILE_test.c beside its code.
function(unit file)
    cmake_parse_arguments(UNIT "" "TIMEOUT" "LINK;WITH" ${ARGN})
    get_filename_component(name ${file} NAME_WE)
    add_executable(${name} ${CMAKE_SOURCE_DIR}/${file} ${UNIT_WITH})
    target_link_libraries(${name} PRIVATE house PkgConfig::CMOCKA ${UNIT_LINK})
    target_include_directories(${name} PRIVATE ${here})
    target_compile_definitions(${name} PRIVATE FIXTURES_DIR="${fixtures}")
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    if(NOT UNIT_TIMEOUT)
        set(UNIT_TIMEOUT 300)
    endif()
    add_test(NAME unit.${name} COMMAND ${name}
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(unit.${name} PROPERTIES LABELS unit
        TIMEOUT ${UNIT_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# ---- Arithmetic ----
foreach(name arith_test half_test)
    unit(conformance/include/fsdp/arith/${name}.c
        LINK fsdp-api ${MPFR_LIBRARY} ${GMP_LIBRARY} m)
endforeach()
unit(conformance/include/fsdp/scaler_test.c LINK fsdp-api)
unit(conformance/include/fsdp/kit_test.c LINK fsdp-api)
add_executable(arith_exhaustive
    ${here}/include/fsdp/arith/arith_exhaustive.c)
target_link_libraries(arith_exhaustive PRIVATE house fsdp-api
    ${MPFR_LIBRARY} ${GMP_LIBRARY} Threads::Threads m)
add_test(NAME exhaustive.rsqrt COMMAND arith_exhaustive rsqrt --threads 2)
set_tests_properties(exhaustive.rsqrt PROPERTIES LABELS unit TIMEOUT 300
    PROCESSORS 2)

# ---- The optimized engine's device ----
include(${CMAKE_SOURCE_DIR}/impl/host/tests.cmake)
include(${CMAKE_SOURCE_DIR}/impl/host/device_tests.cmake)
include(${CMAKE_SOURCE_DIR}/impl/cuda/cuda_tests.cmake)
foreach(name impl_arena_test impl_layout_test impl_norm_test impl_place_test
        impl_schedule_test)
    unit(impl/engine/${name}.c LINK fsdp-impl-all)
endforeach()

# ---- Checkpoints as files, models, cases, records, judge ----
foreach(name safetensors_test safetensors_write_test safetensors_refused_test
        folder_erase_test)
    unit(conformance/checkpoint/${name}.c LINK fsdp-checkpoint)
endforeach()
foreach(name model_build_test wrap_test)
    unit(conformance/models/${name}.c LINK fsdp-models)
endforeach()
foreach(name case_test case_model_test case_graph_test
        case_graph_claims_test manifest_test)
    unit(conformance/cases/${name}.c LINK fsdp-cases)
endforeach()
foreach(name script_plain_test script_shrink_test script_docs_test)
    unit(conformance/script/${name}.c LINK fsdp-script)
endforeach()
foreach(name script_test script_legal_test script_draw_test
        script_draw_occurs_test)
    unit(conformance/script/${name}.c LINK fsdp-script
        WITH ${here}/script/script_testing.c)
endforeach()
foreach(name script_mask_test script_claims_test)
    unit(conformance/script/${name}.c LINK fsdp-script
        WITH ${here}/script/script_mask_testing.c)
endforeach()
unit(conformance/mutants/mutants_test.c LINK fsdp-mutants)
unit(conformance/mutants/mutant_kit_test.c LINK fsdp-mutants)
unit(conformance/cases/case_pairs_test.c LINK fsdp-cases
    WITH ${here}/cases/case_axes_testing.c)
foreach(name record_test record_agree_test record_docs_test
        record_faults_test record_hostile_test record_sample_test
        record_spill_test)
    unit(conformance/record/${name}.c LINK fsdp-record)
endforeach()
foreach(name expect_test expect_walk_test expect_rest_test
        expect_ahead_test expect_watch_test)
    unit(conformance/judge/oracle/${name}.c LINK fsdp-judge
        WITH ${here}/judge/oracle/expect_testing.c)
endforeach()
foreach(name judge_adapter_test judge_test judge_causes_test judge_ended_test
        judge_prove_test judge_store_test report/report_test requirement_set_test)
    unit(conformance/judge/${name}.c LINK fsdp-judge
        WITH ${here}/judge/judge_testing.c ${here}/judge/oracle/expect_testing.c)
endforeach()
# Every bit of a record; ctest flips some (docs/measurements/bits.md has all).
add_executable(judge_bits ${here}/tools/submit/judge_bits_testing.c
    ${here}/tools/submit/judge_scene_testing.c)
target_link_libraries(judge_bits PRIVATE house fsdp-judge)
set_target_properties(judge_bits PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME unit.judge_bits COMMAND judge_bits ${fixtures}/golden/records
    mlp.odd.natural.full-shard.k2.flat.layer.rank.ns.sgd 499)
set_tests_properties(unit.judge_bits PROPERTIES LABELS unit TIMEOUT 300)

unit(conformance/tools/submit/schema_fields_test.c LINK fsdp-submit fsdp-probe
    fsdp-plan fsdp-check
    WITH ${here}/run/adapter_claims.c)
file(GLOB compare_tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
    ${here}/judge/compare/*_test.c ${here}/judge/replay/*_test.c)
foreach(file ${compare_tests})
    unit(${file} LINK fsdp-judge WITH ${here}/judge/oracle/expect_testing.c)
endforeach()

# ---- Reference engine and workloads ----
file(GLOB ref_tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
    ref/*/*_test.c)
foreach(file ${ref_tests})
    unit(${file} LINK fsdp-ref m)
endforeach()
# The operators once more, as on a processor that lacks what this one has.
foreach(name op_attention_test op_gradient_test op_optimizer_test op_rows_test
        op_sums_test plain_device_test)
    add_test(NAME unit.${name}.portable COMMAND ${name})
    set_tests_properties(unit.${name}.portable PROPERTIES LABELS unit
        TIMEOUT 300 ENVIRONMENT FSDP_REF_PORTABLE=1)
endforeach()
foreach(name workload_test workload_exact_test workload_gradient_test
        workload_train_test workload_recompute_test
        workload_frozen_test)
    unit(conformance/models/${name}.c LINK fsdp-models fsdp-ref
        WITH ${here}/models/workload_testing.c)
endforeach()

# ---- Worlds ----
unit(conformance/world/world_fold_test.c LINK fsdp-world)
unit(conformance/world/world_half_test.c LINK fsdp-world)
unit(conformance/world/arena_test.c LINK fsdp-world)
foreach(name broker_test world_test world_failure_test)
    unit(conformance/world/${name}.c LINK fsdp-world
        WITH ${here}/world/world_body_testing.c)
endforeach()
if(MPI_C_FOUND)
    add_executable(world_mpi_test ${here}/world/world_mpi_test.c
        ${here}/world/world_body_testing.c)
    target_link_libraries(world_mpi_test PRIVATE house fsdp-world
        PkgConfig::CMOCKA)
    foreach(mode fails leaves is-slow)
        foreach(ranks 3 4)
            add_test(NAME mpi.world.${mode}.${ranks} COMMAND
                ${MPIEXEC_EXECUTABLE} --oversubscribe --allow-run-as-root
                ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:world_mpi_test>
                ${mode})
            set_tests_properties(mpi.world.${mode}.${ranks} PROPERTIES
                LABELS "unit;mpi" TIMEOUT 300 PROCESSORS 2
                ENVIRONMENT OMPI_MCA_mpi_yield_when_idle=1)
        endforeach()
    endforeach()
endif()

# ---- Measurements ----
foreach(name bench_cluster_test bench_count_test bench_initial_test
        bench_report_test shares_test)
    unit(conformance/tools/bench/${name}.c LINK fsdp-bench)
endforeach()
add_test(NAME compare.pytorch_shares
    COMMAND ${here}/tools/adapters/pytorch_shares_test.sh
    ${here}/tools/adapters ${fixtures})
set_tests_properties(compare.pytorch_shares PROPERTIES LABELS unit TIMEOUT 300
    SKIP_RETURN_CODE 77)

add_test(NAME compare.gpu_bars
    COMMAND ${here}/tools/adapters/gpu_bars_test.sh ${here}/tools/adapters/gpu_bars)
set_tests_properties(compare.gpu_bars PROPERTIES LABELS unit TIMEOUT 300)

# ---- Driver ----
file(GLOB run_tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
    ${here}/run/*_test.c ${here}/run/*/*_test.c)
list(FILTER run_tests EXCLUDE REGEX "/(allocation|baseline_scripts|between_passes|mixed_engine|plain_engines|race_damage|thaw_allocation|trace)_test\\.c$")
unit(conformance/run/play/race_damage_test.c LINK fsdp-run fsdp-ref fsdp-impl-all
    WITH ${here}/run/play/late_testing.c)
unit(conformance/run/play/baseline_scripts_test.c LINK fsdp-run fsdp-ref fsdp-impl-all)
# What engines of float32 refuse, those of docs/example as plug-ins.
unit(conformance/run/worker/plain_engines_test.c LINK fsdp-run fsdp-ref fsdp-impl-all)
add_dependencies(plain_engines_test first grown)
set_property(TARGET plain_engines_test APPEND PROPERTY COMPILE_DEFINITIONS
    FIRST_ENGINE="$<TARGET_FILE:first>" GROWN_ENGINE="$<TARGET_FILE:grown>")
unit(conformance/run/worker/mixed_engine_test.c LINK fsdp-run fsdp-ref fsdp-impl-all m
    WITH ${here}/run/worker/mixed_engine_testing.c ${here}/run/worker/mixed_watch_testing.c)
unit(conformance/run/play/between_passes_test.c LINK fsdp-run fsdp-ref fsdp-impl-all)
unit(conformance/run/play/trace_test.c LINK fsdp-run fsdp-ref fsdp-impl-all)
foreach(file ${run_tests})
    unit(${file} LINK fsdp-run fsdp-ref)
endforeach()
# It makes every allocation of a rank fail in turn.
unit(conformance/run/play/allocation_test.c LINK fsdp-run fsdp-ref fsdp-impl-all
    WITH ${here}/run/play/fault_testing.c)
unit(conformance/run/play/thaw_allocation_test.c LINK fsdp-run fsdp-ref fsdp-impl-all
    WITH ${here}/run/play/fault_testing.c)
unit(conformance/checkpoint/checkpoint_allocation_test.c
    LINK fsdp-run fsdp-ref fsdp-impl-all WITH ${here}/run/play/fault_testing.c)
foreach(test allocation_test thaw_allocation_test checkpoint_allocation_test)
    target_link_options(${test} PRIVATE
        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc
        -Wl,--wrap=free)
endforeach()
foreach(test allocation_test checkpoint_allocation_test)
    target_link_options(${test} PRIVATE -Wl,--wrap=pthread_create)
endforeach()

# ---- Checkpoints ----
file(GLOB checkpoint_tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
    ${here}/checkpoint/checkpoint_*_test.c)
list(FILTER checkpoint_tests EXCLUDE REGEX "durability|erase|allocation")
foreach(file ${checkpoint_tests})
    unit(${file} LINK fsdp-run fsdp-ref fsdp-impl-all)
endforeach()

# Each call that reads fails in turn, and those that make a place to keep things.
target_link_options(checkpoint_replace_test PRIVATE
    -Wl,--wrap=pread,--wrap=pwrite,--wrap=openat,--wrap=open)

# Each call that reads, or keeps what is there, may kill.
target_link_options(checkpoint_kill_test PRIVATE
    -Wl,--wrap=pread,--wrap=pwrite)

# Each call that writes fails in turn, or kills.
foreach(name checkpoint_durability_test checkpoint_erase_test)
    unit(conformance/checkpoint/${name}.c LINK fsdp-checkpoint)
    target_link_options(${name} PRIVATE
        -Wl,--wrap=write,--wrap=pwrite,--wrap=fsync,--wrap=renameat
        -Wl,--wrap=mkdirat,--wrap=ftruncate,--wrap=openat,--wrap=close
        -Wl,--wrap=unlinkat)
endforeach()

add_test(NAME checkpoint.pytorch
    COMMAND ${here}/tools/adapters/checkpoint_pytorch_test.sh
    $<TARGET_FILE:fsdp-cts> ${fixtures}/checkpoints)
set_tests_properties(checkpoint.pytorch PROPERTIES LABELS conformance
    TIMEOUT 600 SKIP_RETURN_CODE 77)

# What docs/results.md and docs/faults.md say, outside of the suite.
add_test(NAME results.shown COMMAND ${here}/tools/adapters/shown_test.sh)
set_tests_properties(results.shown PROPERTIES LABELS conformance
    TIMEOUT 1800 SKIP_RETURN_CODE 77)

# What others hold, save and cast, and others that hold more, save something
# else or cast otherwise.
foreach(row memory.pytorch_fsdp2 memory.pytorch_fsdp1 memory.fairscale_fsdp
        memory.deepspeed_zero3 saved.pytorch_fsdp2 saved.pytorch_fsdp1
        saved.fairscale_fsdp saved.deepspeed_zero3 dtypes.pytorch_fsdp2
        dtypes.pytorch_fsdp1)
    string(REGEX MATCH "^(.*)[.](.*)$" of ${row})
    add_test(NAME results.${row}
        COMMAND ${here}/tools/adapters/${CMAKE_MATCH_1}_test.sh
            $<TARGET_FILE:fsdp-cts> ${CMAKE_MATCH_2})
    set_tests_properties(results.${row} PROPERTIES
        LABELS conformance TIMEOUT 900 SKIP_RETURN_CODE 77)
endforeach()

# Others that are wrong in one thing that they claim: played, and kept.
foreach(engine pytorch_fsdp2 pytorch_fsdp1 fairscale_fsdp deepspeed_zero3)
    add_test(NAME results.planted.${engine}
        COMMAND ${here}/tools/adapters/planted_test.sh
            $<TARGET_FILE:fsdp-cts> ${engine})
    add_test(NAME results.planted-kept.${engine}
        COMMAND ${here}/tools/adapters/planted_test.sh
            $<TARGET_FILE:fsdp-cts> ${engine} --kept)
    set_tests_properties(results.planted.${engine}
        results.planted-kept.${engine} PROPERTIES LABELS conformance
        TIMEOUT 1800 SKIP_RETURN_CODE 77)
endforeach()

# Ranks that torchrun starts, also on two hosts.
add_test(NAME results.torchrun
    COMMAND ${here}/tools/adapters/torchrun_test.sh $<TARGET_FILE:fsdp-cts>)
set_tests_properties(results.torchrun PROPERTIES LABELS conformance
    TIMEOUT 1800 SKIP_RETURN_CODE 77)

# Random graphs, without sharding, and wrong ones.
add_test(NAME results.graph
    COMMAND ${here}/tools/adapters/graph_test.sh $<TARGET_FILE:fsdp-cts>)
set_tests_properties(results.graph PROPERTIES LABELS conformance
    TIMEOUT 900 SKIP_RETURN_CODE 77)

add_test(NAME plan.pytorch
    COMMAND ${here}/tools/adapters/pytorch_describe_test.sh
        $<TARGET_FILE:fsdp-cts>)
set_tests_properties(plan.pytorch PROPERTIES LABELS conformance TIMEOUT 600
    SKIP_RETURN_CODE 77)

# For people: how fast, against plain writing and reading.
add_executable(checkpoint_benchmark ${here}/checkpoint/checkpoint_benchmark.c)
target_link_libraries(checkpoint_benchmark PRIVATE house fsdp-checkpoint)

# A short run; more is for people: ci/fuzz --runs 10000000.
add_test(NAME fuzz COMMAND ${CMAKE_SOURCE_DIR}/ci/fuzz 2)
add_test(NAME fuzz.self-test COMMAND ${CMAKE_SOURCE_DIR}/ci/fuzz --self-test)
set_tests_properties(fuzz fuzz.self-test PROPERTIES LABELS unit TIMEOUT 600
    SKIP_RETURN_CODE 77 ENVIRONMENT FSDP_FUZZ_FOLDER=${CMAKE_BINARY_DIR}/fuzz)

# ---- Probes ----
include(${here}/tools/probes/probes_tests.cmake)
include(${here}/tools/order/order.cmake)

# ---- A model of one's own ----
unit(conformance/tools/check/own_judge_test.c LINK fsdp-check)
unit(conformance/tools/check/own_record_test.c LINK fsdp-check)
foreach(name check_planted check_deepspeed)
    add_test(NAME check.${name} COMMAND ${here}/tools/check/${name}_test.sh
        $<TARGET_FILE:fsdp-cts>)
    set_tests_properties(check.${name} PROPERTIES LABELS conformance
        TIMEOUT 3600 SKIP_RETURN_CODE 77)
endforeach()

# ---- Track ----
foreach(name plan_bytes_test plan_model_test plan_time_test
        prefetch_test)
    unit(conformance/tools/plan/${name}.c LINK fsdp-plan
        WITH ${here}/judge/oracle/expect_testing.c)
endforeach()
unit(conformance/tools/plan/plan_memory_test.c LINK fsdp-plan TIMEOUT 600
    WITH ${here}/tools/plan/plan_limit_testing.c)
unit(conformance/tools/plan/plan_larger_test.c LINK fsdp-plan TIMEOUT 300
    WITH ${here}/tools/plan/plan_limit_testing.c)
foreach(name edivisive_test results_test track_judge_test track_page_test)
    unit(conformance/tools/track/${name}.c LINK fsdp-track)
endforeach()
add_executable(track_benchmark ${here}/tools/track/track_benchmark.c)
target_link_libraries(track_benchmark PRIVATE house fsdp-track)

# ---- Lints ----
foreach(lint layers words names pages)
    add_test(NAME lint.${lint} COMMAND ${here}/tools/lint/${lint}
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    add_test(NAME lint.${lint}.self-test
        COMMAND ${here}/tools/lint/${lint} --self-test
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(lint.${lint} lint.${lint}.self-test PROPERTIES
        LABELS lint TIMEOUT 300)
endforeach()

add_test(NAME lint.format COMMAND ${here}/tools/lint/format
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(lint.format PROPERTIES LABELS lint TIMEOUT 300
    SKIP_RETURN_CODE 77)
foreach(lint requirements_page claims_tables memory_table)
    add_test(NAME lint.${lint}
        COMMAND ${here}/tools/lint/${lint} $<TARGET_FILE:fsdp-cts> --check
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    add_test(NAME lint.${lint}.self-test
        COMMAND ${here}/tools/lint/${lint} --self-test)
    set_tests_properties(lint.${lint} lint.${lint}.self-test PROPERTIES
        LABELS lint TIMEOUT 300)
endforeach()
# It runs ten cases.
set_tests_properties(lint.memory_table PROPERTIES TIMEOUT 600)

# ---- Bounds: other arithmetics, and how far they are ----
add_library(arithmetic MODULE ${here}/cli/verdict/arithmetic_testing.c)
target_include_directories(arithmetic PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(arithmetic PRIVATE house fsdp-ref m)
set_target_properties(arithmetic PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_executable(bounds_ratio ${here}/cli/verdict/bounds_testing.c)
target_link_libraries(bounds_ratio PRIVATE house fsdp-cli)
set_target_properties(bounds_ratio PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# ---- Supervision: an engine that does more than it should ----
add_library(hostile MODULE ${here}/cli/hostile/hostile_engine_testing.c
    ${here}/cli/hostile/hostile_ways_testing.c
    ${here}/cli/hostile/hostile_files_testing.c)
target_include_directories(hostile PRIVATE ${here})
target_link_libraries(hostile PRIVATE house fsdp-ref m)
set_target_properties(hostile PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# ---- Faults: calls of the system that fail ----
add_library(clock_testing MODULE ${here}/cli/hostile/clock_testing.c)
set_target_properties(clock_testing PROPERTIES PREFIX "" SUFFIX .so
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(clock_testing PRIVATE house)
add_executable(faults_testing ${here}/cli/hostile/faults_testing.c)
target_link_libraries(faults_testing PRIVATE house)
set_target_properties(faults_testing PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# ---- Commands ----
file(GLOB scripts CONFIGURE_DEPENDS ${here}/cli/*_test.sh
    ${here}/cli/*/*_test.sh ${here}/world/*_test.sh
    ${here}/tools/bench/*_test.sh ${here}/tools/submit/*_test.sh
    ${here}/tools/track/*_test.sh ${here}/tools/init/*_test.sh
    ${here}/tools/probes/probe_usage_test.sh
    ${here}/tools/probes/probe_page_test.sh
    ${here}/tools/check/check_test.sh
    ${here}/tools/plan/*_test.sh ${here}/tools/count/*_test.sh)
foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME command.${name}
        COMMAND ${script} $<TARGET_FILE:fsdp-cts> ${here}/include
        WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(command.${name} PROPERTIES LABELS command TIMEOUT 600
        SKIP_RETURN_CODE 77)
endforeach()
# Most run one command after the other, or wait for what hangs or is stopped:
# less than a processor's worth. These do not.
set_tests_properties(command.hostile_test command.many_ranks_test
    command.shard_test command.tour_test PROPERTIES PROCESSORS 2)
set_tests_properties(command.hosts_test command.srun_test
    PROPERTIES LABELS "command;mpi")
# They look for what the same engine leaves, or for what is left in memory.
set_tests_properties(command.hostile_test command.supervision_test
    command.interrupt_test PROPERTIES RESOURCE_LOCK hostile)

# ---- Conformance: each engine runs once, one test a requirement ----
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/records)
foreach(engine ref impl)
    set(records ${CMAKE_BINARY_DIR}/records/${engine})
    # Not isolated, so that README's rows do not depend on the kernel.
    add_test(NAME conformance.${engine}.run COMMAND fsdp-cts run
        --engine ${engine} --records ${records} --record-only --no-isolate)
    set_tests_properties(conformance.${engine}.run PROPERTIES
        LABELS conformance FIXTURES_SETUP records-${engine} TIMEOUT 600
        PROCESSORS 2)
    add_test(NAME conformance.${engine}.judge COMMAND fsdp-cts verify
        ${records} --report-only --report ${records}.jsonl
        --junit ${records}.xml)
    set_tests_properties(conformance.${engine}.judge PROPERTIES
        LABELS conformance FIXTURES_REQUIRED records-${engine}
        FIXTURES_SETUP report-${engine} TIMEOUT 300)
    add_test(NAME conformance.${engine}.verdict COMMAND fsdp-cts report
        ${records}.jsonl)
    set_tests_properties(conformance.${engine}.verdict PROPERTIES
        LABELS conformance FIXTURES_REQUIRED report-${engine} TIMEOUT 300)
endforeach()
add_test(NAME conformance.readme COMMAND ${here}/cli/pages/readme_figures.sh
    $<TARGET_FILE:fsdp-cts> ${CMAKE_SOURCE_DIR}/README.md
    ${CMAKE_BINARY_DIR}/records/ref.jsonl
    ${CMAKE_BINARY_DIR}/records/impl.jsonl)
set_tests_properties(conformance.readme PROPERTIES LABELS conformance
    FIXTURES_REQUIRED "report-ref;report-impl" TIMEOUT 300)
add_test(NAME conformance.ref.submission COMMAND ${here}/tools/submit/submit_whole.sh
    $<TARGET_FILE:fsdp-cts> ${CMAKE_BINARY_DIR}/records/ref)
set_tests_properties(conformance.ref.submission PROPERTIES
    LABELS conformance FIXTURES_REQUIRED records-ref TIMEOUT 600 PROCESSORS 2)
# A test for each row of the families' tables.
file(GLOB families CONFIGURE_DEPENDS ${here}/requirements/*_requirements.c)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${families})
set(ids "")
foreach(file ${families})
    file(STRINGS ${file} lines REGEX "\\.id = \"|\\.profile = PROFILE_BOUND")
    foreach(line ${lines})
        if(line MATCHES "\\.id = \"([^\"]+)\"")
            list(APPEND ids ${CMAKE_MATCH_1})
        else() # of other arithmetic: fixtures.records.* are about it
            list(POP_BACK ids)
        endif()
    endforeach()
endforeach()
# Isolated: command.isolate_test; of adapters: results.dtypes.
list(FILTER ids EXCLUDE REGEX
    "^(run\\.no-forbidden-call|comm\\.(as-carried|carries-.*)|memory\\.(private-.*|bounded)|mixed\\.dtypes-at-points)$")
foreach(id ${ids})
    set(engine ref)
    if(id MATCHES "prefetch|options-ahead|^stream|factors")
        set(engine impl) # ref: nothing ahead, one stream, no factors but one
    endif()
    add_test(NAME conformance.${engine}.${id} COMMAND fsdp-cts report
        ${CMAKE_BINARY_DIR}/records/${engine}.jsonl --requirement ${id}
        --partial-ok --quiet)
    set_tests_properties(conformance.${engine}.${id} PROPERTIES
        LABELS "conformance;${id}" FIXTURES_REQUIRED report-${engine}
        TIMEOUT 300)
endforeach()
# Isolated, where the kernel can.
add_test(NAME conformance.isolated COMMAND fsdp-cts run --engine ref,impl
    --isolate --cover --partial-ok)
set_tests_properties(conformance.isolated PROPERTIES LABELS conformance
    TIMEOUT 300 PROCESSORS 2)
# The same engine through the plug-in seam.
add_test(NAME conformance.plugin COMMAND fsdp-cts run
    --engine $<TARGET_FILE:fsdp-ref-plugin> --ranks 3,4 --cover --partial-ok)
set_tests_properties(conformance.plugin PROPERTIES LABELS conformance
    TIMEOUT 300 PROCESSORS 2)
# The optimized engine at each level of instructions.
set(levels_here portable)
file(STRINGS /proc/cpuinfo avx2 REGEX "^flags.* avx2 " LIMIT_COUNT 1)
if(avx2)
    list(APPEND levels_here avx2)
endif()
foreach(level ${levels_here})
    add_test(NAME conformance.impl.${level} COMMAND fsdp-cts run
        --engine impl --workload mlp,gpt --ranks 3,4 --cover --partial-ok)
    set_tests_properties(conformance.impl.${level} PROPERTIES
        LABELS conformance TIMEOUT 600 PROCESSORS 2
        ENVIRONMENT FSDP_SIMD=${level})
endforeach()
# What the example grows into, which runs ahead where ref does not.
add_test(NAME conformance.example COMMAND fsdp-cts run
    --engine $<TARGET_FILE:grown> --script-seed 1
    --report ${CMAKE_BINARY_DIR}/records/grown.jsonl)
set_tests_properties(conformance.example PROPERTIES LABELS conformance
    FIXTURES_SETUP report-grown TIMEOUT 600 PROCESSORS 2)
add_test(NAME conformance.example.report COMMAND fsdp-cts report
    ${CMAKE_BINARY_DIR}/records/grown.jsonl)
set_tests_properties(conformance.example.report PROPERTIES
    LABELS conformance FIXTURES_REQUIRED report-grown TIMEOUT 300
    PASS_REGULAR_EXPRESSION "drawn: 200 scripts, --script-seed 1; 0 fail")
# Drawn scripts, always the same ones; a whole run by hand draws anew.
add_test(NAME conformance.drawn COMMAND fsdp-cts run --engine ref,impl
    --scripts 50 --seed 1)
set_tests_properties(conformance.drawn PROPERTIES LABELS conformance
    TIMEOUT 300 PROCESSORS 2)

# ---- The package: what an engine from elsewhere builds against ----
add_test(NAME package COMMAND ${here}/cmake/package_test.sh
    ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/docs/example)
set_tests_properties(package PROPERTIES LABELS conformance TIMEOUT 600
    SKIP_RETURN_CODE 77 PROCESSORS 2)

# Samples of pipelines for such an engine, and the action.
add_test(NAME samples.schema COMMAND ${here}/cmake/samples_test.sh
    ${CMAKE_SOURCE_DIR}/ci)
set_tests_properties(samples.schema PROPERTIES LABELS command TIMEOUT 300
    SKIP_RETURN_CODE 77)

# Nothing is compiled for a processor that others have not.
add_test(NAME package.levels COMMAND ${here}/cmake/levels_test.sh
    ${CMAKE_BINARY_DIR})
set_tests_properties(package.levels PROPERTIES LABELS command TIMEOUT 300
    SKIP_RETURN_CODE 77)

# Engines that were built against the headers of an earlier commit.
add_test(NAME package.older COMMAND ${here}/cmake/older_plugin_test.sh
    $<TARGET_FILE:fsdp-cts> ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR})
set_tests_properties(package.older PROPERTIES LABELS conformance TIMEOUT 600
    SKIP_RETURN_CODE 77)

# ---- Golden data, and records of engines from elsewhere ----
add_test(NAME fixtures.golden COMMAND fsdp-cts fixtures
    --check ${fixtures}/golden --quiet)
add_test(NAME fixtures.schema COMMAND ${fixtures}/schema/schema_test
    ${fixtures})
foreach(engine pytorch-fsdp2 pytorch-fsdp1 pytorch-ddp fairscale-fsdp
        deepspeed-zero3 pytorch-fsdp2-mixed pytorch-fsdp1-mixed
        pytorch-fsdp2-more pytorch-fsdp1-more fairscale-fsdp-more
        deepspeed-zero3-more pytorch-fsdp2-values pytorch-fsdp1-values
        pytorch-fsdp2-later pytorch-fsdp1-later fairscale-fsdp-later
        deepspeed-zero3-later pytorch-fsdp1-ignored deepspeed-zero3-unmeasured
        pytorch-fsdp2-saved pytorch-fsdp2-through
        pytorch-fsdp1-saved pytorch-fsdp1-through fairscale-fsdp-saved
        fairscale-fsdp-through deepspeed-zero3-saved deepspeed-zero3-through)
    add_test(NAME fixtures.records.${engine}
        COMMAND ${here}/tools/adapters/records_test.sh $<TARGET_FILE:fsdp-cts>
        ${fixtures}/records/${engine})
    set_tests_properties(fixtures.records.${engine} PROPERTIES
        LABELS conformance TIMEOUT 300)
endforeach()
# How they are kept: with fixtures/bad and fixtures/planted, at most 5 MB more
# than was kept of losses and collectives alone.
add_test(NAME results.kept COMMAND ${here}/tools/adapters/kept --check
    ${fixtures}/records 14600000)
add_test(NAME results.kept-self-test COMMAND ${here}/tools/adapters/kept
    --self-test)
# Their bundles, and the page that is made of them.
add_test(NAME results.page COMMAND ${here}/tools/adapters/results_page
    $<TARGET_FILE:fsdp-cts> --check)
add_test(NAME results.capabilities
    COMMAND ${here}/tools/adapters/capabilities_test.sh
    $<TARGET_FILE:fsdp-cts>)
add_test(NAME results.releases COMMAND ${here}/tools/adapters/results_page
    $<TARGET_FILE:fsdp-cts> --check --releases)
add_test(NAME results.faults COMMAND ${here}/tools/adapters/faults_page
    $<TARGET_FILE:fsdp-cts> --check)
add_test(NAME results.bad COMMAND ${here}/tools/adapters/faults_page
    $<TARGET_FILE:fsdp-cts> --check --bad)
set_tests_properties(results.kept results.kept-self-test results.page
    results.capabilities results.releases results.faults results.bad PROPERTIES
    LABELS conformance TIMEOUT 300)
add_test(NAME releases.stand-ins
    COMMAND ${here}/tools/adapters/releases/stand_ins_test.sh)
set_tests_properties(releases.stand-ins PROPERTIES LABELS conformance
    TIMEOUT 300 SKIP_RETURN_CODE 77)
set_tests_properties(fixtures.golden fixtures.schema PROPERTIES
    LABELS conformance TIMEOUT 300 SKIP_RETURN_CODE 77)

# ---- Mutants: each is judged exactly as listed ----
get_directory_property(mutants DIRECTORY ${here} DEFINITION mutants_rows)
foreach(name ${mutants})
    add_test(NAME mutant.${name} COMMAND fsdp-cts mutants ${name})
    set_tests_properties(mutant.${name} PROPERTIES LABELS mutant TIMEOUT 300
        SKIP_RETURN_CODE 77)
endforeach()

# ---- Source mutation: a sample of all small changes to ref's source ----
# A sixth of what kill_rate takes by itself; docs/mutation.md has the last rate.
add_test(NAME mutation.source COMMAND ${here}/mutants/source/kill_rate
    ${CMAKE_BINARY_DIR} --sample 40 --floor 80)
set_tests_properties(mutation.source PROPERTIES LABELS mutant TIMEOUT 1200
    PROCESSORS 2)

# ---- CUDA: the shared headers compile for the device ----
find_program(NVCC nvcc)
if(NVCC)
    add_test(NAME cuda.arith COMMAND ${NVCC} -arch=sm_90 --fmad=false
        -I ${here}/include -c ${here}/include/fsdp/arith/arith_cuda_test.cu
        -o ${CMAKE_BINARY_DIR}/arith_cuda_test.o)
    set_tests_properties(cuda.arith PROPERTIES LABELS unit TIMEOUT 300)
endif()

# ---- The longest first, so that none of them runs alone at the end ----
# Seconds on two idle processors, as estimated for docs/performance.md ("Where the
# time of ci/test goes").
foreach(row mutation.source=82 fuzz=60 command.interrupt_test=57
        package=52 command.ci_gpu=50 command.adapter_test=41
        command.hosts_test=30 command.cuda_faults=18)
    string(REGEX MATCH "^(.*)=(.*)$" row ${row})
    if(TEST ${CMAKE_MATCH_1})
        set_tests_properties(${CMAKE_MATCH_1} PROPERTIES COST ${CMAKE_MATCH_2})
    endif()
endforeach()
