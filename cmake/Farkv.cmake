# Build helpers: the only place where flags and include paths are set.
option(FARKV_BUILD_TESTS "Build the tests" ON)
# Saves about a second of each library source, three of one that reads gRPC.
# Off in the preset debug, which thereby finds a source that forgot an include;
# the target header_check finds a header that did.
option(FARKV_PCH "Precompile the headers that most library sources read" OFF)
# Half of a test file's compile time goes into GoogleTest's headers. Off for a
# build whose objects a compiler cache shares between folders.
option(FARKV_TEST_PCH "Precompile the headers that nearly every test reads" ON)
# Most of a source's compile time is its headers'. Off in the preset debug, which
# rebuilds less after an edit and finds a source that forgot an include. A name
# in an anonymous namespace must be the only one of its target.
option(FARKV_UNITY "Compile the sources of a target eight at a time" OFF)
set(FARKV_SANITIZER "" CACHE STRING "address, thread, fuzzer or empty")

add_library(farkv_options INTERFACE)
target_include_directories(farkv_options INTERFACE ${CMAKE_SOURCE_DIR})
# Contraction would let the compiler choose where to round; the bits of the
# attention tree are a promise (docs/DECISIONS.md).
target_compile_options(farkv_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror
  -ffp-contract=off -fno-math-errno -pthread)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(farkv_options INTERFACE -Wthread-safety)
else()
  # gcc 12 warns about its own std::string concatenation (GCC bug 105651).
  target_compile_options(farkv_options INTERFACE -Wno-restrict)
  if(FARKV_UNITY)
    # gcc takes a source that another one includes for a header.
    target_compile_options(farkv_options INTERFACE -Wno-subobject-linkage)
  endif()
  if(FARKV_PCH OR FARKV_TEST_PCH)
    # Likewise, once <string> comes out of a precompiled header; the debug preset
    # has none.
    target_compile_options(farkv_options INTERFACE -Wno-array-bounds
      -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()
if(FARKV_SANITIZER STREQUAL "address")
  set(farkv_sanitize -fsanitize=address,undefined
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(FARKV_SANITIZER STREQUAL "thread")
  set(farkv_sanitize -fsanitize=thread)
elseif(FARKV_SANITIZER STREQUAL "fuzzer")
  set(farkv_sanitize -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=all)
endif()
if(DEFINED farkv_sanitize)
  target_compile_options(farkv_options INTERFACE ${farkv_sanitize})
  target_link_options(farkv_options INTERFACE ${farkv_sanitize})
endif()
# A sanitizer build takes its minutes in the vector kernels, once per Highway
# target. It keeps the fallback and what this machine runs of AVX2 and newer;
# what the targets compute is compared in the release build, on all of them.
if(FARKV_SANITIZER)
  file(STRINGS /proc/cpuinfo farkv_avx512 REGEX "^flags.* avx512vl" LIMIT_COUNT 1)
  if(FARKV_SANITIZER STREQUAL "thread" OR NOT farkv_avx512)
    set(farkv_no_avx3 "|HWY_AVX3")
  endif()
  # clang 14 has no macro of its own that says so.
  target_compile_definitions(farkv_options INTERFACE FARKV_SANITIZED
    $<$<NOT:$<STREQUAL:${FARKV_SANITIZER},thread>>:FARKV_ADDRESS_SANITIZED>
    "HWY_BROKEN_TARGETS=(HWY_SSSE3|HWY_SSE4${farkv_no_avx3})")
endif()
if(FARKV_SANITIZER STREQUAL "thread")
  include(Tsan)
  target_link_libraries(farkv_options INTERFACE farkv_tsan_absl)
endif()

# What scripts/test.sh builds: the tests that the sanitizers run (LABELS of
# farkv_test), and the quick ones.
add_custom_target(farkv_tests_asan)
add_custom_target(farkv_tests_tsan)
add_custom_target(farkv_tests_fast)

# Precompiled headers are named once and shared, because each takes seconds to
# make and 100 MB to keep.
function(farkv_pch name options)
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/cmake/pch.cc)
  target_link_libraries(${name} PRIVATE ${options} absl::any_invocable
    absl::btree absl::flat_hash_map absl::status absl::statusor absl::strings
    absl::synchronization absl::time)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
if(FARKV_PCH)
  set(headers <algorithm> <array> <atomic> <cstdint> <deque> <functional> <map>
    <memory> <optional> <set> <span> <string> <thread> <unordered_map>
    <utility> <variant> <vector> <absl/container/btree_map.h>
    <absl/container/flat_hash_map.h> <absl/functional/any_invocable.h>
    <absl/status/statusor.h> <absl/strings/str_cat.h>
    <absl/synchronization/mutex.h> <absl/time/time.h>)
  farkv_pch(farkv_library_pch farkv_options ${headers})
  farkv_pch(farkv_grpc_pch farkv_options ${headers}
    <grpcpp/grpcpp.h> <grpcpp/support/client_callback.h>
    <google/protobuf/generated_message_util.h>)
  target_link_libraries(farkv_grpc_pch PRIVATE gRPC::grpc++)
  if(FARKV_SANITIZER)
    target_compile_options(farkv_grpc_pch PRIVATE -O0)
  endif()
endif()

# farkv_library(NAME [OBJECT] [PCH target] SRCS a.cc ... DEPS t ...): the one
# target of a room, or of a folder of a room. Header-only when SRCS is empty.
# OBJECT: whoever links it gets all of it; for a main that two programs share.
# PCH: the precompiled headers, farkv_library_pch unless named; farkv_grpc_pch
# for what speaks gRPC, which tests spend no time in: half of the compile time of
# a sanitizer build is saved there at -O0.
function(farkv_library name)
  cmake_parse_arguments(ARG "OBJECT" "PCH" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  if(NOT ARG_SRCS)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE farkv_options ${ARG_DEPS})
    return()
  endif()
  set(kind STATIC)
  if(ARG_OBJECT)
    set(kind OBJECT)
  endif()
  add_library(${name} ${kind} ${ARG_SRCS})
  target_link_libraries(${name} PUBLIC farkv_options ${ARG_DEPS}
    PRIVATE ${ARG_PRIVATE_DEPS})
  if(NOT ARG_PCH)
    set(ARG_PCH farkv_library_pch)
  endif()
  if(FARKV_SANITIZER AND ARG_PCH STREQUAL farkv_grpc_pch)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  # Kernels set instruction sets file by file.
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "/kernels$")
    return()
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${FARKV_UNITY})
  if(FARKV_PCH)
    target_precompile_headers(${name} REUSE_FROM ${ARG_PCH})
  endif()
endfunction()

# farkv_binary(NAME SRCS ... DEPS ...): a program in <build>/bin.
function(farkv_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE farkv_options ${ARG_DEPS})
  if(FARKV_PCH AND ARG_SRCS)
    target_precompile_headers(${name} REUSE_FROM farkv_library_pch)
  endif()
endfunction()

# Tests check, they are not measured. In release -O0 compiles them a third
# faster than -O3 did, under AddressSanitizer twice as fast as -O1; libraries
# are optimised as ever. UBSan looks at what is tested, not at the tests, which
# saves a fifth of what is left.
add_library(farkv_test_options INTERFACE)
target_compile_options(farkv_test_options INTERFACE
  $<$<OR:$<CONFIG:Release>,$<STREQUAL:${FARKV_SANITIZER},address>>:-O0>
  $<$<STREQUAL:${FARKV_SANITIZER},address>:-fno-sanitize=undefined>)
target_link_libraries(farkv_test_options INTERFACE farkv_options
  GTest::gmock GTest::gtest_main)
if(FARKV_BUILD_TESTS AND FARKV_TEST_PCH)
  farkv_pch(farkv_test_pch farkv_test_options
    <gtest/gtest.h> <gmock/gmock.h> <algorithm> <filesystem> <fstream> <map>
    <memory> <random> <set> <string> <thread> <vector>
    <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/time/clock.h>
    <absl/synchronization/mutex.h>)
endif()

# farkv_test(NAME SRCS ... DEPS ... LABELS ... [TIMEOUT s] [LONG]
# [SANITIZED_FILTER pattern]): one GoogleTest program, registered with ctest
# under NAME with LABELS: its kind (unit, conformance, model, golden,
# integration, faults, bench, fuzz), and any of cpu, cuda, ucx, tsan. The ones
# labelled tsan run under ThreadSanitizer; unit, conformance and model run under
# AddressSanitizer, unless they are labelled bench too. A test that starts
# processes or measures runs alone. LONG: takes ten seconds or more in some
# build, and starts before the others. SANITIZED_FILTER: GoogleTest's filter of
# what sanitizers run of a table of cases whose others take the same code over
# other numbers.
function(farkv_test name)
  cmake_parse_arguments(ARG "LONG" "TIMEOUT;SANITIZED_FILTER"
    "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # Ends what hangs; not a measure of speed, machines are shared.
  if(FARKV_SANITIZER)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE farkv_test_options ${ARG_DEPS})
  if(FARKV_TEST_PCH)
    target_precompile_headers(${name} REUSE_FROM farkv_test_pch)
  endif()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${FARKV_UNITY}
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(sets ${ARG_LABELS})
  if("bench" IN_LIST ARG_LABELS)
    set(sets "")
  endif()
  foreach(label IN LISTS sets)
    if(label MATCHES "^(unit|conformance|model)$")
      add_dependencies(farkv_tests_asan ${name})
    endif()
    if(label MATCHES "^(unit|conformance)$")
      add_dependencies(farkv_tests_fast ${name})
    endif()
    if(label STREQUAL "tsan")
      add_dependencies(farkv_tests_tsan ${name})
    endif()
  endforeach()
  set(filter)
  if(FARKV_SANITIZER AND ARG_SANITIZED_FILTER)
    set(filter --gtest_filter=${ARG_SANITIZED_FILTER})
  endif()
  add_test(NAME ${name} COMMAND ${name} ${filter})
  if("integration" IN_LIST ARG_LABELS OR "faults" IN_LIST ARG_LABELS OR
     "bench" IN_LIST ARG_LABELS)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
  if(ARG_LONG)
    set_tests_properties(${name} PROPERTIES COST 100)
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "UCX_MEM_EVENTS=no;UCX_HANDLE_ERRORS=none;TSAN_OPTIONS=ignore_noninstrumented_modules=1 halt_on_error=1;FARKV_TEST_BIN_DIR=${CMAKE_BINARY_DIR}/bin;FARKV_TEST_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
endfunction()
