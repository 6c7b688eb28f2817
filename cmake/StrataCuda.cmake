# The CUDA runtime (CUDA::cudart) and NCCL (nccl::nccl), when a toolkit is there. Both are used from plain C++.
# Sets STRATA_HAVE_CUDA and STRATA_HAVE_NCCL.

set(STRATA_HAVE_CUDA OFF)
set(STRATA_HAVE_NCCL OFF)

if(NOT STRATA_CUDA STREQUAL "OFF" AND STRATA_HAVE_TORCH)
  find_package(CUDAToolkit 13 QUIET)
  if(CUDAToolkit_FOUND)
    set(STRATA_HAVE_CUDA ON)
    find_path(STRATA_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(STRATA_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
    if(STRATA_NCCL_INCLUDE AND STRATA_NCCL_LIBRARY)
      set(STRATA_HAVE_NCCL ON)
      add_library(nccl::nccl SHARED IMPORTED)
      set_target_properties(nccl::nccl PROPERTIES IMPORTED_LOCATION ${STRATA_NCCL_LIBRARY})
      target_include_directories(nccl::nccl SYSTEM INTERFACE ${STRATA_NCCL_INCLUDE})
    endif()
  elseif(STRATA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "no CUDA toolkit 13 found: install it or configure with -DSTRATA_CUDA=AUTO")
  endif()
endif()
