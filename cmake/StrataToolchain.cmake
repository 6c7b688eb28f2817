# Language level, warnings, sanitizers, and the tools that only make builds faster.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Scripts of the build use the standard library only; the system's Python starts faster than a version manager's.
find_program(STRATA_PYTHON python3 HINTS /usr/bin REQUIRED)

# Bundles the modules of the report's page.
find_program(STRATA_ESBUILD esbuild)
if(NOT STRATA_ESBUILD)
  message(FATAL_ERROR "esbuild is missing: run './dev setup' or: apt-get install esbuild")
endif()

find_program(STRATA_CCACHE ccache)
if(STRATA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Files with a precompiled header are stored too; its hash is computed once.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_INODECACHE=true ${STRATA_CCACHE})
endif()

find_program(STRATA_MOLD mold)
if(STRATA_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# A file that includes LibTorch needs up to 1.5 GB of memory to compile.
cmake_host_system_information(RESULT memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
math(EXPR torch_jobs "${memory_mb} / 1536")
if(torch_jobs LESS 1)
  set(torch_jobs 1)
endif()
set_property(GLOBAL PROPERTY JOB_POOLS torch=${torch_jobs})

# Compiler flags of every target.
add_library(strata_flags INTERFACE)
target_include_directories(strata_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_features(strata_flags INTERFACE cxx_std_20)
target_compile_options(strata_flags INTERFACE -pthread) # some libraries ask for it; with a precompiled header all must
target_compile_options(strata_flags INTERFACE -Wall -Wextra -Wpedantic -Wconversion)
# GCC's plain -Wshadow also warns about a constructor's parameter named as the member that it initializes.
target_compile_options(strata_flags INTERFACE $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(STRATA_PCH)
    # Garbage collections, from 128 MB on, walk what was precompiled, too: up to a tenth of a compilation. Without any,
    # a file needs a fifth more memory, 1.7 GB at most.
    target_compile_options(strata_flags INTERFACE --param=ggc-min-heapsize=1572864)
  endif()
  # These guess from inlined library code: wrong about std::optional (GCC PR 80635), `std::string + const char*`
  # (PR 105651), vectors that grow, and what is precompiled. The sanitizers and clang-tidy look for the real cases.
  target_compile_options(strata_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds
    -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # GCC 12's std::stable_sort uses what C++17 deprecated.
  target_compile_options(strata_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(STRATA_WERROR)
  target_compile_options(strata_flags INTERFACE -Werror)
endif()

# The standard library checks indices, iterators and empty containers; the layout of its classes stays.
target_compile_definitions(strata_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)

if(STRATA_SANITIZE)
  add_compile_options(-fsanitize=${STRATA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${STRATA_SANITIZE})
  if(STRATA_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
