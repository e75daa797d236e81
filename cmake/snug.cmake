# The two target kinds of the project. Sources are listed, sorted, in each folder's CMakeLists.txt.

add_library(snug_warnings INTERFACE)
target_compile_options(snug_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-sign-conversion -Werror)

# gcc collects its garbage again and again from 128 MB on, which is a fifteenth of the time of a large file. From 1 GB on it takes up to a
# quarter more memory: 1.3 GB for the largest unit of a fast build.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000;--param=ggc-min-expand=200>")

# SNUG_FAST_BUILD: what most files include is compiled once, and the files of a library are compiled several at a time, which takes
# more than half off the time of their compilation. It is for those who build everything once ("make demo"). Without it each file is seen to
# include what it uses, a change compiles one file again, and clang-tidy gets plain commands.
option(SNUG_FAST_BUILD "Build everything once in the least time: headers precompiled, several files in a unit" OFF)

# Other builds use a compiler cache that is there, unless CMAKE_CXX_COMPILER_LAUNCHER says otherwise. It knows files one by one and cannot look
# into precompiled headers.
if(NOT SNUG_FAST_BUILD AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SNUG_COMPILER_CACHE ccache)
  if(SNUG_COMPILER_CACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${SNUG_COMPILER_CACHE})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${SNUG_COMPILER_CACHE})
  endif()
endif()
set(SNUG_FILES_IN_UNIT 8 CACHE STRING "Files that a fast build compiles as one: more are fewer units, and more work after a change")

# snug_precompiled_headers(NAME [HEADERS header ...]): the object library NAME, whose headers others use. All of a fast build is compiled
# with OpenMP, since headers precompiled without it cannot be used with it.
function(snug_precompiled_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS" ${ARGN})
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cpp)
  target_precompile_headers(${name} PRIVATE <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>
    <algorithm> <array> <charconv> <chrono> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <set> <span>
    <string> <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector> ${ARG_HEADERS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE fmt::fmt nlohmann_json::nlohmann_json OpenMP::OpenMP_CXX snug_warnings)
endfunction()

# Headers precompiled for optimised code cannot be used where there is less of that.
if(SNUG_FAST_BUILD AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  snug_precompiled_headers(snug_precompiled HEADERS ${PROJECT_SOURCE_DIR}/src/formats/recipe/recipe.h
    ${PROJECT_SOURCE_DIR}/src/program/ir/builder.h ${PROJECT_SOURCE_DIR}/src/program/kinds/kind.h)
endif()

# snug_use_precompiled(NAME HEADERS): NAME uses the headers HEADERS of those above.
function(snug_use_precompiled name headers)
  set_target_properties(${name} PROPERTIES PCH_WARN_INVALID OFF)
  target_precompile_headers(${name} REUSE_FROM ${headers})
  target_link_libraries(${name} PRIVATE OpenMP::OpenMP_CXX)
  # As the headers are, where a binary's own files would be -fPIE: other code would have the compiler read them anew.
  target_compile_options(${name} PRIVATE -fPIC)
endfunction()

# snug_unite(NAME): the library NAME is compiled in units of several files, except for files with options of their own and those with
# the property SKIP_UNITY_BUILD_INCLUSION. What gcc says of types without linkage and of shadowed names is about single files.
add_library(snug_united_warnings INTERFACE)
target_compile_options(snug_united_warnings INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
function(snug_unite name)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SNUG_FILES_IN_UNIT})
  target_link_libraries(${name} PRIVATE snug_united_warnings)
endfunction()

# snug_build_fast(NAME): what SNUG_FAST_BUILD asks of the library NAME.
function(snug_build_fast name)
  if(SNUG_FAST_BUILD AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    snug_use_precompiled(${name} snug_precompiled)
    snug_unite(${name})
  endif()
endfunction()

# snug_library(NAME SOURCES a.cpp ... DEPENDS target ...): the static library snug_NAME of one floor's folder.
function(snug_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(snug_${name} STATIC ${ARG_SOURCES})
  target_include_directories(snug_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(snug_${name} PUBLIC ${ARG_DEPENDS} PRIVATE snug_warnings)
  snug_build_fast(snug_${name})
endfunction()

# snug_packable(NAME): its libraries are looked for in lib beside it and two folders up first, where bench/gpu/pack
# carries them, and those that they need themselves too (hence RPATH, not RUNPATH).
function(snug_packable name)
  set_target_properties(${name} PROPERTIES BUILD_RPATH "\$ORIGIN/lib;\$ORIGIN/../../lib")
  target_link_options(${name} PRIVATE LINKER:--disable-new-dtags)
endfunction()

# snug_test_entry(NAME COMMAND command ... [ENVIRONMENT NAME=VALUE ...] [property value ...]): an entry of ctest, which runs
# from the source folder and sees nothing of its user (tests/run_isolated). Tests with the label "long" are not in "make test".
function(snug_test_entry name)
  cmake_parse_arguments(ARG "" "TIMEOUT;LABELS;SKIP_RETURN_CODE;PASS_REGULAR_EXPRESSION" "COMMAND;ENVIRONMENT" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "snug_test_entry(${name}): ${ARG_UNPARSED_ARGUMENTS} means nothing here")
  endif()
  # Where CUDA's libraries lie is a matter of the build, as its toolkit is.
  if(SNUG_CUDA_FOUND)
    foreach(variable LD_LIBRARY_PATH VIRTUAL_ENV CONDA_PREFIX)
      if(DEFINED ENV{${variable}} AND NOT ARG_ENVIRONMENT MATCHES "${variable}=")
        list(PREPEND ARG_ENVIRONMENT "${variable}=$ENV{${variable}}")
      endif()
    endforeach()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # A sanitizer makes a test up to ten times slower.
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
    math(EXPR ARG_TIMEOUT "10 * ${ARG_TIMEOUT}")
  endif()
  # Which Archer asks for (docs/architecture.md).
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize=thread")
    list(APPEND ARG_ENVIRONMENT TSAN_OPTIONS=ignore_noninstrumented_modules=1)
  endif()
  add_test(NAME ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMAND ${PROJECT_SOURCE_DIR}/tests/run_isolated ${PROJECT_BINARY_DIR} ${ARG_ENVIRONMENT} ${ARG_COMMAND})
  # In a fresh clone ctest does not know yet which take long: those that may are begun first, so that none is left running alone.
  set_tests_properties(${name} PROPERTIES COST ${ARG_TIMEOUT})
  foreach(property TIMEOUT LABELS SKIP_RETURN_CODE PASS_REGULAR_EXPRESSION)
    if(DEFINED ARG_${property})
      set_tests_properties(${name} PROPERTIES ${property} "${ARG_${property}}")
    endif()
  endforeach()
endfunction()

# snug_compile_quickly(NAME): NAME is of the tests (a binary or a library). What tests themselves compute is little, and a third of the time
# of their compilation goes into optimising it further.
function(snug_compile_quickly name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# snug_test(NAME SOURCES a_test.cpp ... DEPENDS target ... [FILTER tests] [ENVIRONMENT NAME=VALUE ...] [TIMEOUT seconds]): a GoogleTest
# binary, one ctest entry a binary, which runs the tests that the filter lets through.
function(snug_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;FILTER" "SOURCES;DEPENDS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} snug_source_folder GTest::gtest_main snug_warnings)
  snug_compile_quickly(${name})
  if(ARG_FILTER)
    set(filter "--gtest_filter=${ARG_FILTER}")
  endif()
  snug_test_entry(${name} COMMAND $<TARGET_FILE:${name}> ${filter}
    TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT ${ARG_ENVIRONMENT})
endfunction()
