# Precompiled headers: a file that includes LibTorch spends most of its compilation in LibTorch's headers, a unit test
# in doctest's; every other spends a second in fmt's and the standard library's.
#
# STRATA_PCH means GCC's. In the presets no-runtime and fuzz each file compiles with what it includes itself.

option(STRATA_PCH "Precompile the headers of other libraries" OFF)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(STRATA_PCH OFF)
endif()

# strata_headers_target(NAME DEPS target… HEADERS header… [OPTIONS option…]): what targets reuse.
function(strata_headers_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;HEADERS;OPTIONS")
  set(source ${CMAKE_BINARY_DIR}/generated/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE strata_flags ${arg_DEPS})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  list(TRANSFORM arg_HEADERS REPLACE "(.+)" "<\\1>")
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

set(common_headers
  algorithm array cstdint functional map memory optional set span string string_view unordered_map utility vector
  fmt/format.h)
if(STRATA_PCH)
  strata_headers_target(strata_standard_headers DEPS fmt::fmt HEADERS ${common_headers})
  strata_headers_target(strata_test_headers
    DEPS doctest::doctest fmt::fmt
    HEADERS ${common_headers} doctest/doctest.h
    OPTIONS $<$<CONFIG:Release>:-O0>)
endif()
if(STRATA_PCH AND STRATA_HAVE_TORCH)
  set(torch_headers
    ATen/ATen.h ATen/Parallel.h ATen/TensorOperators.h ATen/core/dispatch/Dispatcher.h torch/library.h)
  strata_headers_target(strata_torch_headers
    DEPS torch::cpu fmt::fmt
    HEADERS ${common_headers} ${torch_headers})
  set_property(TARGET strata_torch_headers PROPERTY JOB_POOL_COMPILE torch)
endif()

# strata_reuse_headers(TARGET HEADERS): compiles TARGET with a precompiled header, if there is one.
#
# A precompiled header is for -fPIC or for -fPIE; programs take the former, as libraries do.
function(strata_reuse_headers target headers)
  if(TARGET ${headers})
    target_precompile_headers(${target} REUSE_FROM ${headers})
    target_link_libraries(${target} PRIVATE fmt::fmt) # its definitions are part of the precompiled header
    set_property(TARGET ${target} PROPERTY POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()
