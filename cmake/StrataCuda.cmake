# The CUDA runtime (CUDA::cudart), LibTorch for CUDA (torch::cuda) and NCCL (nccl::nccl), when a toolkit is there. All are
# used from plain C++. Sets STRATA_HAVE_CUDA and STRATA_HAVE_NCCL, and STRATA_NVRTC_LIBRARIES: where NVRTC may be, with
# colons between.

set(STRATA_HAVE_CUDA OFF)
set(STRATA_HAVE_NCCL OFF)
set(STRATA_NVRTC_LIBRARIES "")
if(STRATA_HAVE_TORCH)
  cmake_path(GET torch_dir PARENT_PATH wheels)
  set(STRATA_NVRTC_LIBRARIES ${wheels}/nvidia/cu13/lib/libnvrtc.so.13) # of ./dev setup cuda
endif()

if(NOT STRATA_CUDA STREQUAL "OFF" AND STRATA_HAVE_TORCH)
  find_package(CUDAToolkit 13 QUIET)
  if(CUDAToolkit_FOUND)
    set(STRATA_HAVE_CUDA ON)
    string(APPEND STRATA_NVRTC_LIBRARIES ":${CUDAToolkit_LIBRARY_DIR}/libnvrtc.so.13")
    add_library(torch::c10_cuda SHARED IMPORTED)
    set_target_properties(torch::c10_cuda PROPERTIES IMPORTED_LOCATION ${torch_dir}/lib/libc10_cuda.so)
    add_library(torch::cuda SHARED IMPORTED)
    set_target_properties(torch::cuda PROPERTIES IMPORTED_LOCATION ${torch_dir}/lib/libtorch_cuda.so)
    target_link_libraries(torch::cuda INTERFACE torch::cpu torch::c10_cuda CUDA::cudart)
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
