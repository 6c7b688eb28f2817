# Builds the graph of step.cpp against LibTorch alone; TORCH is the folder of LibTorch or of PyTorch's wheel:
#   cmake -B build -DTORCH=$(python -c 'import os, torch; print(os.path.dirname(torch.__file__))')
#   cmake --build build
cmake_minimum_required(VERSION 3.18)
project(step CXX)
set(CMAKE_CXX_STANDARD 17)
set(TORCH "" CACHE PATH "Folder of LibTorch: it has include and lib")
if(NOT EXISTS ${TORCH}/include/ATen/ATen.h)
  message(FATAL_ERROR "no LibTorch in '${TORCH}': give -DTORCH=FOLDER")
endif()

# Operators of Inductor that LibTorch does not have, where the graph calls them.
file(GLOB prims CONFIGURE_DEPENDS runtime/aten/*.cc)
add_executable(step call.cpp main.cpp step.cpp tensors.cpp ${prims})
target_include_directories(step PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_include_directories(step SYSTEM PRIVATE ${TORCH}/include)
# The headers lay out structures by NDEBUG, as LibTorch was built.
target_compile_definitions(step PRIVATE NDEBUG)
target_link_libraries(step PRIVATE ${TORCH}/lib/libtorch_cpu.so ${TORCH}/lib/libc10.so)
