# The two target kinds of the project. Sources are listed, sorted, in each folder's CMakeLists.txt.

add_library(snug_warnings INTERFACE)
target_compile_options(snug_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-sign-conversion -Werror)

# snug_library(NAME SOURCES a.cpp ... DEPENDS target ...): the static library snug_NAME of one floor's folder.
function(snug_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(snug_${name} STATIC ${ARG_SOURCES})
  target_include_directories(snug_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(snug_${name} PUBLIC ${ARG_DEPENDS} PRIVATE snug_warnings)
endfunction()

# snug_packable(NAME): its libraries are looked for in lib beside it and two folders up first, where bench/gpu/pack
# carries them, and those that they need themselves too (hence RPATH, not RUNPATH).
function(snug_packable name)
  set_target_properties(${name} PROPERTIES BUILD_RPATH "\$ORIGIN/lib;\$ORIGIN/../../lib")
  target_link_options(${name} PRIVATE LINKER:--disable-new-dtags)
endfunction()

# snug_test(NAME SOURCES a_test.cpp ... DEPENDS target ... [FILTER tests]): a GoogleTest binary, one ctest entry a
# binary, which runs the tests that the filter lets through.
function(snug_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;FILTER" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gtest_main snug_warnings)
  target_compile_definitions(${name} PRIVATE SNUG_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(ARG_FILTER)
    set(filter "--gtest_filter=${ARG_FILTER}")
  endif()
  add_test(NAME ${name} COMMAND ${name} ${filter} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # A sanitizer makes a test up to ten times slower.
  if(CMAKE_CXX_FLAGS MATCHES "fsanitize")
    math(EXPR ARG_TIMEOUT "10 * ${ARG_TIMEOUT}")
  endif()
  # Waiting threads sleep: spinning ones would starve each other on a busy machine.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()
