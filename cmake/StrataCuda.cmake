# CUDA runtime headers and NCCL, when a toolkit is there. Sets STRATA_HAVE_CUDA and STRATA_HAVE_NCCL.

set(STRATA_HAVE_CUDA OFF)
set(STRATA_HAVE_NCCL OFF)

if(NOT STRATA_CUDA STREQUAL "OFF" AND STRATA_HAVE_TORCH)
  find_package(CUDAToolkit 13 QUIET)
  if(CUDAToolkit_FOUND)
    set(STRATA_HAVE_CUDA ON)
    find_path(STRATA_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(STRATA_NCCL_INCLUDE)
      set(STRATA_HAVE_NCCL ON)
    endif()
  elseif(STRATA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "no CUDA toolkit 13 found: install it or configure with -DSTRATA_CUDA=AUTO")
  endif()
endif()
