# One room = one static library hidane_<room> from the room's *.cc (main.cc apart), its *_test.cc
# as one test program <room>_test, each *_bench.cc as one benchmark program.

# hidane_library(<room> [DEPS room...] [LINK target...])
function(hidane_library room)
  cmake_parse_arguments(ARG "" "" "DEPS;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|_bench|/main)\\.cc$")
  if(HIDANE_FUZZ)  # clang 14 fails on coroutines that are instrumented
    foreach(source ${sources})
      file(STRINGS ${source} coroutine REGEX "co_(await|return|spawn)" LIMIT_COUNT 1)
      if(coroutine)
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
                                    "-fno-sanitize=all;-fno-sanitize=fuzzer-no-link")
      endif()
    endforeach()
  endif()
  add_library(hidane_${room} STATIC ${sources})
  target_include_directories(hidane_${room} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  list(TRANSFORM ARG_DEPS PREPEND hidane_)
  target_link_libraries(hidane_${room} PUBLIC ${ARG_DEPS} fmt::fmt PRIVATE ${ARG_LINK})
endfunction()

# hidane_test(<room> [LINK target...] [DATA dir]): every *_test.cc of the room in one program.
function(hidane_test room)
  if(NOT HIDANE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *_test.cc)
  if(NOT sources)
    return()
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${room}_test ${sources})
  target_link_libraries(${room}_test PRIVATE hidane_${room} ${ARG_LINK} GTest::gmock
                                             GTest::gtest_main rapidcheck Threads::Threads)
  target_compile_definitions(${room}_test PRIVATE HIDANE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(${room}_test DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${room} TIMEOUT 300)
endfunction()

# hidane_bench(<room> [LINK target...]): every *_bench.cc a program of its own name.
function(hidane_bench room)
  if(NOT HIDANE_BENCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *_bench.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE hidane_${room} ${ARG_LINK} benchmark Threads::Threads)
    target_compile_definitions(${name} PRIVATE HIDANE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  endforeach()
endfunction()

# hidane_fuzz(<name> ROOM room): fuzz/<name>_fuzz.cc with the corpus fuzz/corpus/<name>/.
function(hidane_fuzz name)
  if(NOT HIDANE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "ROOMS;LINK" ${ARGN})
  list(TRANSFORM ARG_ROOMS PREPEND hidane_)
  add_executable(${name}_fuzz ${CMAKE_SOURCE_DIR}/fuzz/${name}_fuzz.cc)
  target_link_libraries(${name}_fuzz PRIVATE ${ARG_ROOMS} ${ARG_LINK} Threads::Threads)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
endfunction()
