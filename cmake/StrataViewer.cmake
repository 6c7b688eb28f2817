# What the desktop viewer needs of the distribution: one target `viewer::libraries`, and STRATA_HAVE_VIEWER. A build
# without them leaves `strata-view` out.
#
#   libimgui-dev (Dear ImGui with its OpenGL 3 renderer and FreeType fonts), libglfw3-dev, libgl-dev, libfreetype-dev,
#   fonts-dejavu-core
set(STRATA_HAVE_VIEWER OFF)
pkg_check_modules(STRATA_IMGUI QUIET IMPORTED_TARGET imgui)
pkg_check_modules(STRATA_GLFW QUIET IMPORTED_TARGET glfw3)
pkg_check_modules(STRATA_FREETYPE QUIET IMPORTED_TARGET freetype2)
pkg_check_modules(STRATA_GL QUIET IMPORTED_TARGET gl)
find_path(STRATA_STB_INCLUDE stb/stb_image_write.h)
find_library(STRATA_STB_LIBRARY stb)
set(STRATA_FONT_FOLDER "/usr/share/fonts/truetype/dejavu" CACHE PATH "Folder of DejaVuSans.ttf and its siblings")

set(viewer_missing "")
foreach(part IN ITEMS "STRATA_IMGUI_FOUND:libimgui-dev" "STRATA_GLFW_FOUND:libglfw3-dev" "STRATA_GL_FOUND:libgl-dev"
                      "STRATA_FREETYPE_FOUND:libfreetype-dev" "STRATA_STB_INCLUDE:libstb-dev"
                      "STRATA_STB_LIBRARY:libstb-dev")
  string(REGEX MATCH "^[^:]+" variable ${part})
  string(REGEX REPLACE "^[^:]+:" "" package ${part})
  if(NOT ${variable})
    list(APPEND viewer_missing ${package})
  endif()
endforeach()
list(REMOVE_DUPLICATES viewer_missing)

if(viewer_missing)
  list(JOIN viewer_missing " " viewer_missing)
  message(STATUS "Strata: no desktop viewer: install ${viewer_missing}")
else()
  set(STRATA_HAVE_VIEWER ON)
  add_library(viewer::libraries INTERFACE IMPORTED)
  # The order of static libraries matters: imgui uses stb and FreeType.
  target_link_libraries(viewer::libraries INTERFACE
    PkgConfig::STRATA_IMGUI ${STRATA_STB_LIBRARY} PkgConfig::STRATA_FREETYPE PkgConfig::STRATA_GLFW
    PkgConfig::STRATA_GL ${CMAKE_DL_LIBS})
  target_compile_definitions(viewer::libraries INTERFACE STRATA_FONT_FOLDER="${STRATA_FONT_FOLDER}")
endif()
