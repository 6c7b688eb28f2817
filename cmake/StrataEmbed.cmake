# strata_embed(NAME FILES file… [NAMESPACE strata::assets])
#
# A static library that holds files as bytes. Its header is "embedded/NAME.h"; `report.css` becomes
#   extern const std::string_view kReportCss;
#
# The target `embedded` makes all of them: what a linter needs.
add_custom_target(embedded)

function(strata_embed name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAMESPACE" "FILES")
  strata_check_arguments(strata_embed ${name})
  if(NOT arg_NAMESPACE)
    set(arg_NAMESPACE strata::assets)
  endif()
  set(files "")
  foreach(file IN LISTS arg_FILES)
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND files ${file})
  endforeach()
  set(stem ${CMAKE_BINARY_DIR}/generated/embedded/${name})
  add_custom_command(
    OUTPUT ${stem}.h ${stem}.cc
    COMMAND ${STRATA_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/embed.py ${stem} ${arg_NAMESPACE} ${files}
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/embed.py ${files}
    COMMENT "Embedding ${name}"
    VERBATIM)
  add_custom_target(${name}_sources DEPENDS ${stem}.h ${stem}.cc)
  add_dependencies(embedded ${name}_sources)
  add_library(${name} STATIC ${stem}.cc ${stem}.h)
  target_link_libraries(${name} PUBLIC strata_flags)
endfunction()
