# Libraries of the distribution. Each has one target name; all headers are system headers.
#
#   fmt::fmt  simdjson::simdjson  tomlplusplus::tomlplusplus  CLI11::CLI11
#   SQLite::SQLite3  ZLIB::ZLIB  zstd::zstd  xxhash::xxhash  re2::re2  utf8proc::utf8proc  doctest::doctest
#   Threads::Threads  graphviz::dot, coinor::clp and blis::blis, which may be missing

set(missing "")

macro(strata_find package debian_package)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND missing ${debian_package})
  endif()
endmacro()

function(strata_find_pkg_config target debian_package)
  string(MAKE_C_IDENTIFIER ${target} prefix)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${ARGN})
  if(${prefix}_FOUND)
    add_library(${target} ALIAS PkgConfig::${prefix})
  else()
    set(missing ${missing} ${debian_package} PARENT_SCOPE)
  endif()
endfunction()

strata_find(fmt libfmt-dev)
strata_find(simdjson libsimdjson-dev)
strata_find(tomlplusplus libtomlplusplus-dev)
strata_find(CLI11 libcli11-dev)
strata_find(SQLite3 libsqlite3-dev)
strata_find(ZLIB zlib1g-dev)
strata_find(doctest doctest-dev)
strata_find_pkg_config(zstd::zstd libzstd-dev libzstd)
strata_find_pkg_config(re2::re2 libre2-dev re2)
strata_find_pkg_config(utf8proc::utf8proc libutf8proc-dev libutf8proc)

# xxHash is used as a header (XXH_INLINE_ALL, defined by the target): there is nothing to link.
find_path(STRATA_XXHASH_INCLUDE xxhash.h)
if(STRATA_XXHASH_INCLUDE)
  add_library(xxhash::xxhash INTERFACE IMPORTED)
  target_include_directories(xxhash::xxhash INTERFACE ${STRATA_XXHASH_INCLUDE})
  target_compile_definitions(xxhash::xxhash INTERFACE XXH_INLINE_ALL)
else()
  list(APPEND missing libxxhash-dev)
endif()

# Graphviz `dot` crosses fewer lines inside slabs than rows by longest paths do (./dev bench report counts them). A build
# without it draws the latter everywhere. One plug-in is linked; the others, and what they draw with, are not needed.
pkg_check_modules(GRAPHVIZ QUIET IMPORTED_TARGET libgvc libcgraph)
find_library(STRATA_DOT_PLUGIN gvplugin_dot_layout PATH_SUFFIXES graphviz)
if(GRAPHVIZ_FOUND AND STRATA_DOT_PLUGIN)
  add_library(graphviz::dot INTERFACE IMPORTED)
  target_link_libraries(graphviz::dot INTERFACE PkgConfig::GRAPHVIZ ${STRATA_DOT_PLUGIN})
  target_compile_definitions(graphviz::dot INTERFACE STRATA_HAVE_GRAPHVIZ=1)
endif()

# COIN-OR Clp solves the linear programs of `strata place`. A build without it searches by multipliers and messages,
# which is exact for small graphs only. It is loaded when it is needed: every other command would wait for its libraries.
pkg_check_modules(CLP QUIET clp)
if(CLP_FOUND)
  add_library(coinor::clp INTERFACE IMPORTED)
  target_include_directories(coinor::clp SYSTEM INTERFACE ${CLP_INCLUDE_DIRS})
  target_link_libraries(coinor::clp INTERFACE ${CMAKE_DL_LIBS})
  target_compile_definitions(coinor::clp INTERFACE STRATA_HAVE_CLP=1)
endif()

# BLIS multiplies matrices of floats on processors where MKL, which LibTorch contains, is slow
# (runtime/aten/fast_products.h). A build without it calls MKL. It defines functions of BLAS, as LibTorch does: they stay
# hidden.
find_library(STRATA_BLIS libblis.a PATH_SUFFIXES blis-serial)
find_path(STRATA_BLIS_INCLUDE blis.h PATH_SUFFIXES blis-serial)
if(STRATA_BLIS AND STRATA_BLIS_INCLUDE)
  add_library(blis::blis INTERFACE IMPORTED)
  target_include_directories(blis::blis SYSTEM INTERFACE ${STRATA_BLIS_INCLUDE})
  target_link_libraries(blis::blis INTERFACE ${STRATA_BLIS})
  target_link_options(blis::blis INTERFACE -Wl,--exclude-libs,libblis.a)
  target_compile_definitions(blis::blis INTERFACE STRATA_HAVE_BLIS=1)
endif()

if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "missing libraries: run './dev setup' or install: ${missing}")
endif()
