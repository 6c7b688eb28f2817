# strata_library(NAME [O3] SOURCES file… [DEPS target…] [PUBLIC_DEPS target…])
#
# A static library. Includes are written from the repository root ("ir/graph.h"). DEPS are used by the .cc files
# only; PUBLIC_DEPS appear in headers. Files of targets that use torch::cpu compile in a job pool sized by memory. O3 is
# for code that visits each byte of a log or each node of a graph: it saves 4 to 10 % of the time there, and takes an
# eighth more to compile.
function(strata_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "O3" "" "SOURCES;DEPS;PUBLIC_DEPS")
  strata_check_arguments(strata_library ${name})
  add_library(${name} STATIC ${arg_SOURCES})
  if(arg_O3)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
  target_link_libraries(${name} PUBLIC strata_flags ${arg_PUBLIC_DEPS} PRIVATE ${arg_DEPS})
  strata_prepare_for_torch(${name} strata_torch_headers ${arg_DEPS} ${arg_PUBLIC_DEPS})
  strata_compile_together(${name})
endfunction()

# strata_executable(NAME SOURCES file… [DEPS target…]): a program in build/<preset>/bin.
function(strata_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  strata_check_arguments(strata_executable ${name})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE strata_flags ${arg_DEPS})
  strata_prepare_for_torch(${name} strata_torch_headers ${arg_DEPS})
  strata_compile_together(${name})
endfunction()

option(STRATA_UNITY "Compile many files of a folder at a time" OFF)
set(STRATA_UNITY_FILES 20 CACHE STRING "As many as this, with STRATA_UNITY")

# Two thirds of a compilation are headers, and what they instantiate. With STRATA_UNITY files of a folder share them, so
# names in anonymous namespaces are unique in a folder. Groups of a folder are equally large. Files of other folders do
# not matter: a new file moves nothing elsewhere. The preset no-runtime and `./dev lint` compile each file by itself,
# which shows a missing include.
function(strata_compile_together target)
  if(NOT STRATA_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "_${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND sources_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH sources_${folder} count)
    math(EXPR groups "(${count} + ${STRATA_UNITY_FILES} - 1) / ${STRATA_UNITY_FILES}")
    set(number 0)
    foreach(source IN LISTS sources_${folder})
      math(EXPR group "${number} * ${groups} / ${count}")
      math(EXPR number "${number} + 1")
      set_property(SOURCE ${source} PROPERTY UNITY_GROUP "${target}${folder}_${group}")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes an included file for a header, which must not use anonymous namespaces.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()

# strata_prepare_for_torch(TARGET HEADERS dependency…): puts the compile jobs of TARGET into the pool "torch", with the
# precompiled HEADERS, if one of its dependencies is, or publicly uses, LibTorch.
function(strata_prepare_for_torch target headers)
  foreach(dep IN LISTS ARGN)
    set(uses_torch OFF)
    if(dep STREQUAL "torch::cpu")
      set(uses_torch ON)
    elseif(TARGET ${dep})
      get_target_property(public_deps ${dep} INTERFACE_LINK_LIBRARIES)
      if("torch::cpu" IN_LIST public_deps)
        set(uses_torch ON)
      endif()
    endif()
    if(uses_torch)
      set_property(TARGET ${target} PROPERTY JOB_POOL_COMPILE torch)
      strata_reuse_headers(${target} ${headers})
      return()
    endif()
  endforeach()
endfunction()

# A misspelt keyword would otherwise be taken for a source file.
macro(strata_check_arguments function name)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
endmacro()

function(strata_print_summary)
  foreach(part IN ITEMS TORCH CUDA NCCL)
    if(NOT STRATA_HAVE_${part})
      list(APPEND left_out ${part})
    endif()
  endforeach()
  if(left_out)
    list(JOIN left_out ", " left_out)
    message(STATUS "Strata ${CMAKE_BUILD_TYPE}, left out: ${left_out}")
  else()
    message(STATUS "Strata ${CMAKE_BUILD_TYPE}, complete")
  endif()
endfunction()
