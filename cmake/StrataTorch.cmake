# LibTorch from the Python wheel, as targets.
#
#   torch::cpu      tensors, autograd, c10d and Gloo on the CPU; links libtorch_cpu and libc10 only
#   torch::openmp   what libtorch_cpu runs its threads with, of the same file
#
# find_package(Torch) of the same wheel wants a CUDA toolkit even for programs that use none, and loads libtorch_cuda.
# Sets STRATA_HAVE_TORCH; what needs LibTorch is built only if it is true.

set(STRATA_HAVE_TORCH OFF)

if(NOT STRATA_RUNTIME STREQUAL "OFF")
  if(STRATA_TORCH_DIR)
    set(torch_dir ${STRATA_TORCH_DIR})
  else()
    file(GLOB torch_dir ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  endif()
  if(torch_dir AND EXISTS ${torch_dir}/lib/libtorch_cpu.so)
    set(STRATA_HAVE_TORCH ON)
    file(STRINGS ${CMAKE_SOURCE_DIR}/tools/versions.env pinned REGEX "^TORCH_VERSION=")
    file(STRINGS ${torch_dir}/version.py found REGEX "^__version__ = ")
    string(REPLACE "TORCH_VERSION=" "" pinned "${pinned}")
    string(REGEX REPLACE ".*'([0-9.]+).*" "\\1" found "${found}")
    if(NOT found STREQUAL pinned)
      message(FATAL_ERROR "LibTorch in '${torch_dir}' is ${found}, tools/versions.env wants ${pinned}: run './dev setup'")
    endif()
    message(STATUS "LibTorch ${found}: ${torch_dir}")
  elseif(STRATA_RUNTIME STREQUAL "ON")
    message(FATAL_ERROR "no LibTorch in '${torch_dir}': run './dev setup', set STRATA_TORCH_DIR, "
                        "or configure with -DSTRATA_RUNTIME=OFF")
  endif()
endif()

if(STRATA_HAVE_TORCH)
  add_library(torch::c10 SHARED IMPORTED)
  set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION ${torch_dir}/lib/libc10.so)

  # The wheel brings the headers of another version of fmt, which must not come before ours.
  get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/before_torch)
  file(CREATE_LINK ${fmt_include}/fmt ${CMAKE_BINARY_DIR}/before_torch/fmt SYMBOLIC)

  add_library(torch::cpu SHARED IMPORTED)
  set_target_properties(torch::cpu PROPERTIES IMPORTED_LOCATION ${torch_dir}/lib/libtorch_cpu.so)
  target_include_directories(torch::cpu SYSTEM INTERFACE
    ${CMAKE_BINARY_DIR}/before_torch ${torch_dir}/include ${torch_dir}/include/torch/csrc/api/include)
  # The wheel is built with NDEBUG, by which its headers lay out structures. Release has it anyway.
  target_compile_definitions(torch::cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO $<$<NOT:$<CONFIG:Release>>:NDEBUG>)
  target_link_libraries(torch::cpu INTERFACE torch::c10 Threads::Threads)

  file(GLOB openmp ${torch_dir}/lib/libgomp* ${torch_dir}/lib/libiomp5* ${torch_dir}.libs/libgomp*)
  if(NOT openmp)
    message(FATAL_ERROR "LibTorch in '${torch_dir}' brings no OpenMP: run './dev setup' for the wheel that does")
  endif()
  list(GET openmp 0 openmp)
  add_library(torch::openmp SHARED IMPORTED)
  set_target_properties(torch::openmp PROPERTIES IMPORTED_LOCATION ${openmp})
endif()
