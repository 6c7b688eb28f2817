# Tests. All run with the repository root as working directory. Those that may use LibTorch have OMP_NUM_THREADS=1: they
# run side by side, one core each. Tests of several threads ask for them.
#
# strata_test(NAME SOURCES file… [DEPS target…] [LABELS label…] [FIRST test-case…])
#
#   A doctest program; main() is provided. NAME is `<library>_test`. Every TEST_CASE becomes a ctest entry
#   "<library>: <test case>". A program that loads LibTorch takes 0.4 s to start, so it has one entry per source
#   file `…_test.cc` instead ("<library>: <file>"). LABELS default to "unit". ctest starts those of FIRST before others:
#   test cases of many seconds that would otherwise run alone in the end.
#
# strata_script_test(NAME SCRIPT file [ARGS arg…] [LABELS label…] [VENV])
#
#   A Python script: exit 0 passes, 77 skips. It runs with the system's interpreter and the standard library, or with
#   VENV with .venv's, where there is one, and its packages. Generator expressions in ARGS are allowed.
#
# strata_fuzz(NAME SOURCES file [DEPS target…] [CORPUS folder] [RUNS n])
#
#   The source defines LLVMFuzzerTestOneInput. With the preset `fuzz` this is a libFuzzer program; otherwise a plain one
#   that replays the corpus, then RUNS mutations of it made from a fixed seed (ctest label "fuzz").

find_package(doctest REQUIRED)
set(STRATA_LIST_TESTS ${CMAKE_SOURCE_DIR}/cmake/list_tests.py)

function(strata_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;LABELS;FIRST")
  strata_check_arguments(strata_test ${name})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE strata_flags strata_doctest_main ${arg_DEPS})
  target_link_libraries(${name} PRIVATE fmt::fmt)
  strata_share_headers(${name} strata_test_headers ${arg_DEPS})

  # To optimize a test takes longer than to run it; the libraries are optimized. With LibTorch, -Og takes as long as -O0,
  # and shares the precompiled header of the libraries, which -O0 cannot.
  get_target_property(pool ${name} JOB_POOL_COMPILE)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:$<IF:$<STREQUAL:${pool},torch>,-Og,-O0>>)
  strata_compile_together(${name} APART)
  string(REGEX REPLACE "_test$" "" prefix ${name})
  if(pool STREQUAL "torch")
    foreach(source IN LISTS arg_SOURCES)
      get_filename_component(stem ${source} NAME_WE)
      if(NOT stem MATCHES "_test$")
        continue()
      endif()
      add_test(NAME "${prefix}: ${stem}"
               COMMAND ${name} --source-file=*/${stem}.cc
               WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      set_tests_properties("${prefix}: ${stem}" PROPERTIES
        LABELS "${arg_LABELS}" FAIL_REGULAR_EXPRESSION "test cases: +0 \\|" ENVIRONMENT OMP_NUM_THREADS=1)
    endforeach()
  else()
    set(listing ${CMAKE_CURRENT_BINARY_DIR}/${name}.ctest.cmake)
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${STRATA_PYTHON} ${STRATA_LIST_TESTS} $<TARGET_FILE:${name}> ${prefix}
              ${CMAKE_SOURCE_DIR} "${arg_LABELS}" ${listing}
      VERBATIM)
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${STRATA_LIST_TESTS})
    list(TRANSFORM arg_FIRST PREPEND "${prefix}: ")
    strata_include_test_listing(${name} ${listing} ${arg_FIRST})
  endif()
endfunction()

# ctest reads `listing`; until the program is built, a failing entry stands for its tests. Further arguments are entries
# to start first.
function(strata_include_test_listing name listing)
  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/${name}.include.cmake)
  set(costs "")
  foreach(entry IN LISTS ARGN)
    string(APPEND costs "  set_tests_properties([[${entry}]] PROPERTIES COST 10)\n")
  endforeach()
  file(WRITE ${include_file}
"if(EXISTS \"${listing}\")
  include(\"${listing}\")
${costs}else()
  add_test([[${name} is not built]] ${name}_NOT_BUILT)
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()

function(strata_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "VENV" "SCRIPT" "ARGS;LABELS")
  strata_check_arguments(strata_script_test ${name})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  get_filename_component(script ${arg_SCRIPT} ABSOLUTE)
  set(python ${STRATA_PYTHON})
  if(arg_VENV AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(python ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  endif()
  add_test(NAME ${name} COMMAND ${python} -B ${script} ${arg_ARGS}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77 ENVIRONMENT OMP_NUM_THREADS=1)
endfunction()

function(strata_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CORPUS;RUNS" "SOURCES;DEPS")
  strata_check_arguments(strata_fuzz ${name})
  if(NOT arg_RUNS)
    set(arg_RUNS 10000)
  endif()
  if(arg_CORPUS)
    get_filename_component(corpus ${arg_CORPUS} ABSOLUTE)
    if(NOT EXISTS ${corpus})
      message(FATAL_ERROR "strata_fuzz(${name}): no corpus ${arg_CORPUS}")
    endif()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE strata_flags ${arg_DEPS})
  if(STRATA_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    # tools/dev_fuzz reads this list: program, corpus.
    file(APPEND ${CMAKE_BINARY_DIR}/fuzz_targets.txt "${name} ${corpus}\n")
  else()
    target_link_libraries(${name} PRIVATE strata_fuzz_replay)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    strata_share_headers(${name} strata_standard_headers ${arg_DEPS})
    add_test(NAME "fuzz: ${name}" COMMAND ${name} --runs=${arg_RUNS} --seed=1 ${corpus}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties("fuzz: ${name}" PROPERTIES LABELS fuzz)
  endif()
endfunction()

if(STRATA_FUZZ)
  file(WRITE ${CMAKE_BINARY_DIR}/fuzz_targets.txt "")
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
